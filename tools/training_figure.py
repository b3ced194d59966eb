"""Draw the figure of docs/training.md: a training on a task whose optimum is known.

Run it from the repository's root: ``python tools/training_figure.py``.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from boundwatch._support.figures import new_figure, save_figure
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


def draw(history, path):
    """Draw bound, cost and divergence over the steps."""
    figure = new_figure(7, 5)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    steps = range(1, len(history) + 1)
    above.plot(steps, history.upper, color="black", label=f"upper bound ({history.bound})")
    above.plot(steps, history.cost, color="#0072B2", linestyle="--", label="training cost")
    above.set(ylabel="cost", ylim=(0, None))
    above.legend(frameon=False)
    below.plot(steps, history.divergence, color="#D55E00")
    below.set(xlabel="step", ylabel="ln P(w)/P₀(w)" if history.bound == "pointwise" else "D₂(P‖P₀)")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    save_figure(figure, path)


if __name__ == "__main__":
    noise = np.random.default_rng(SEED).standard_normal((ENVIRONMENTS, 2))
    posterior = GaussianPosterior.over(Point(), prior_variance=0.2)
    targets = torch.tensor(OPTIMUM + SPREAD * noise, dtype=torch.float32)
    history = train_backprop(posterior, miss, (targets,), steps=150, samples=4)
    draw(history, ASSETS / "training.png")
    history.save(ASSETS / "training.json")
    print(f"Wrote {ASSETS / 'training.png'} and its numbers; the mean is {posterior.mean.tolist()}")
