"""Starts a local Ray cluster of two workers and rolls out on it; run in its own process by the tests.

Usage: on_ray.py FOLDER, where every worker that takes part leaves a file with its process id.
"""

import functools
import json
import os
import sys
import time
from pathlib import Path

from boundwatch.training import Rollouts
from training.toy import ENVIRONMENTS, network, noisy


def checked_in(folder, workers, policy, environment, rng):
    """Roll out, once as many workers as expected have taken up work."""
    (Path(folder) / str(os.getpid())).touch()
    for _ in range(3000):
        if len(list(Path(folder).iterdir())) >= workers:
            break
        time.sleep(0.02)
    return noisy(policy, environment, rng)


if __name__ == "__main__":
    import ray  # here, because pytest imports this file

    folder = Path(sys.argv[1])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    on_ray = Rollouts(functools.partial(checked_in, folder, 2), ENVIRONMENTS, jobs=2, backend="ray")(
        network()
    )
    ray.shutdown()
    here = Rollouts(noisy, ENVIRONMENTS)(network())
    workers = len(list(folder.iterdir()))
    sys.stdout.write(
        "\n" + json.dumps({"workers": workers, "on_ray": on_ray.tolist(), "here": here.tolist()})
    )
