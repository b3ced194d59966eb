"""Trains the toy with a checkpoint, slowly enough to be killed; run in its own process by the tests."""

import os
import signal
import time

from boundwatch.training import train_backprop, train_evolution
from training.toy import Simulator, posterior, surrogate, targets

STEPS = 60


def slow(policy, environments):
    time.sleep(0.01)
    return surrogate(policy, environments)


class SlowSimulator(Simulator):
    def costs(self, *arguments):
        time.sleep(0.01)
        return super().costs(*arguments)


def train(algorithm, checkpoint, environments):
    def waiting(policy, environments):
        """Wait for a signal once there is a checkpoint, however long the one who sends it takes."""
        time.sleep(300 if checkpoint.exists() else 0)
        return surrogate(policy, environments)

    trained = posterior()
    options = {"steps": STEPS, "samples": 2, "checkpoint": checkpoint, "checkpoint_every": 3}
    if algorithm in ("backprop", "waiting"):
        train_backprop(trained, slow if algorithm == "backprop" else waiting, (environments,), **options)
    else:
        train_evolution(trained, SlowSimulator(environments), **options)
    return trained


def run(algorithm, folder):
    """Leave the checkpoint, the posterior and what was printed in a folder."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background of a shell has none
    with (folder / "errors").open("a") as errors:
        os.dup2(errors.fileno(), 2)
    train(algorithm, folder / "checkpoint", targets(30, 0)).save(folder / "posterior")
