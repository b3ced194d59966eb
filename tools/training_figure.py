"""Draw the figure of docs/training.md: a training on a task whose optimum is known.

Run it from the repository's root: ``python tools/training_figure.py``.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from boundwatch.training import GaussianPosterior, train_backprop

ENVIRONMENTS, SEED, OPTIMUM, SPREAD = 1000, 0, 1.2, 0.3
ASSETS = Path(__file__).parents[1] / "docs" / "assets"


class Point(nn.Module):
    """A policy that goes to a point, whatever it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Parameter(torch.zeros(2))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the point for every observation."""
        return self.point.expand_as(observation)


def miss(policy, targets):
    """Return the cost of the distance to each target; its mean over targets is lowest at the optimum."""
    return 1 - torch.exp(-0.5 * ((policy(targets) - targets) ** 2).sum(-1))


if __name__ == "__main__":
    noise = np.random.default_rng(SEED).standard_normal((ENVIRONMENTS, 2))
    posterior = GaussianPosterior.over(Point(), prior_variance=0.2)
    targets = torch.tensor(OPTIMUM + SPREAD * noise, dtype=torch.float32)
    history = train_backprop(posterior, miss, (targets,), steps=150, samples=4)
    history.plot(ASSETS / "training.png")
    print(f"Wrote {ASSETS / 'training.png'} and its numbers; the mean is {posterior.mean.tolist()}")
