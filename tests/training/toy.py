"""A task whose expected cost is known in closed form, for every policy.

The policy is a vector w, an environment a target e ~ N(THETA, TAU² I), the cost 1 - exp(-|w - e|²/2). So
C_D(w) = 1 - (1 + TAU²)^(-d/2) exp(-|w - THETA|² / (2 (1 + TAU²))), and the best policy is THETA.
"""

import numpy as np
import torch
from torch import nn

from boundwatch.training import GaussianPosterior

THETA, TAU, DIM = 1.2, 0.3, 2


class Point(nn.Module):
    """A policy that answers w, whatever it sees."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(DIM))

    def forward(self, observation):
        return self.w.expand(*observation.shape[:-1], DIM)


def targets(m, seed):
    return torch.from_numpy(THETA + TAU * np.random.default_rng(seed).standard_normal((m, DIM))).float()


def surrogate(policy, environments):
    return 1 - torch.exp(-0.5 * ((policy(environments) - environments) ** 2).sum(-1))


def rollout(policy, environment, _rng):
    return float(surrogate(policy, environment))


def costs_on(environments):
    return lambda policy: surrogate(policy, environments).numpy()


def expected_cost(w):
    spread = 1 + TAU**2
    return 1 - spread ** (-DIM / 2) * np.exp(-((np.asarray(w) - THETA) ** 2).sum(-1) / (2 * spread))


def posterior(prior_variance=0.2):
    return GaussianPosterior.over(Point(), prior_variance=prior_variance)


class Simulator:
    """Algorithm 4's view of the task, all policies and environments at once."""

    def __init__(self, environments):
        self.environments = environments
        self.fingerprint = "toy"

    def __len__(self):
        return len(self.environments)

    def costs(self, posterior, weights, indices):
        del posterior
        gaps = weights[:, None, :] - self.environments[torch.from_numpy(indices)]
        return (1 - torch.exp(-0.5 * (gaps**2).sum(-1))).numpy()


def noisy(policy, environment, rng):
    """Costs that depend on the network, on the environment and on its own randomness."""
    with_noise = torch.tensor([environment + 0.1 * rng.standard_normal()], dtype=torch.float32)
    return float(policy(with_noise).sigmoid())


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).eval()


ENVIRONMENTS = np.linspace(-2, 2, 23).tolist()
