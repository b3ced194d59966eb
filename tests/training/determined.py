"""Trains the toy by both algorithms and returns the hashes; run in another process, too, by the tests."""

import torch

from boundwatch.training import GaussianPosterior, Rollouts, train_backprop, train_evolution
from training.toy import posterior, rollout, targets


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


def run(path):
    """Leave the hashes in a file, computed with as many threads as torch may take."""
    torch.set_num_threads(2)
    path.write_text(" ".join(hashes(threads=2, processes=1)))
