"""Trainings of the toy in other processes: slow enough to be killed, or on several workers for hashes."""

import os
import signal
import time

import torch

from boundwatch.training import GaussianPosterior, Rollouts, train_backprop, train_evolution
from training.toy import Simulator, posterior, rollout, surrogate, targets

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


def train_in(algorithm, folder):
    """Leave the checkpoint, the posterior and what was printed in a folder."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background of a shell has none
    with (folder / "errors").open("a") as errors:
        os.dup2(errors.fileno(), 2)
    train(algorithm, folder / "checkpoint", targets(30, 0)).save(folder / "posterior")


def convolutional(seed, jobs):
    """A network large enough for sums to be split over threads, if they were allowed to."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 46 * 46, 7)
    )
    images, costs = torch.rand(64, 1, 50, 50), torch.rand(64, 7)
    trained = GaussianPosterior.over(net, prior_variance=1e-4)

    def expected(policy, images, costs):
        return (policy(images).softmax(-1) * costs).sum(-1)

    train_backprop(
        trained, expected, (images, costs), steps=4, samples=3, batch_size=32, seed=seed, jobs=jobs
    )
    return trained.sha256()


def evolved(seed, jobs):
    trained = posterior()
    simulator = Rollouts(rollout, targets(12, 0), jobs=jobs)
    train_evolution(trained, simulator, steps=3, samples=4, seed=seed)
    return trained.sha256()


def hashes(*, threads, processes):
    return [
        train(seed, jobs)
        for train, jobs in ((convolutional, threads), (evolved, processes))
        for seed in (0, 1)
    ]


def write_hashes(path):
    """Leave the hashes in a file, computed with as many threads as torch may take."""
    torch.set_num_threads(2)
    path.write_text(" ".join(hashes(threads=2, processes=1)))
