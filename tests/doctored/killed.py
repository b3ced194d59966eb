"""A training of the drone that is killed when it comes to a certain function."""

import os
import signal

from boundwatch.tasks.navigation import train


def train_until(moment, recipe, folder):
    """Train, in a process of its own, until the function is called."""

    def die(*_arguments, **_options):
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(train, moment, die)
    train.train(recipe, folder)
