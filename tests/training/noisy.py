"""A network in a noisy simulator, in a module of its own so that other processes can import it."""

import numpy as np
import torch
from torch import nn


def noisy(policy, environment, rng):
    """Costs that depend on the network, on the environment and on its own randomness."""
    with_noise = torch.tensor([environment + 0.1 * rng.standard_normal()], dtype=torch.float32)
    return float(policy(with_noise).sigmoid())


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)).eval()


ENVIRONMENTS = np.linspace(-2, 2, 23).tolist()
