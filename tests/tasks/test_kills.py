"""kill -9 in the middle of a training: a small part of `python -m benchmarks kill_training`."""

import json
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import json, sys
from pathlib import Path
from benchmarks import kill_training
import boundwatch.training
print(json.dumps(kill_training.run_task("pendulum", 3, 4, Path(sys.argv[1]))))
"""


def test_a_killed_training_ends_with_the_same_bytes(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, tmp_path], cwd=root, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["kills"] == 3
    assert found["same_bytes"] == found["date_of_first_start"] == found["trainings"]
