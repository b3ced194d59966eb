"""My own network and my own simulator, trained and certified in under thirty lines; a few seconds."""

import numpy as np
import torch

from boundwatch.training import GaussianPosterior, Rollouts, certify, train_evolution


def brake(policy, environment, rng):
    """Stop a cart at a wall; the cost is the distance left, or 1 for a crash."""
    distance, speed = environment
    for _ in range(15):
        force = policy(torch.tensor([distance, speed])).sigmoid().item()
        speed = max(0.0, speed - force + 0.01 * rng.standard_normal())
        distance -= 0.2 * speed
    return min(distance, 1.0) if distance > 0 else 1.0


network = torch.nn.Sequential(torch.nn.Linear(2, 1))
torch.nn.init.zeros_(network[0].weight), torch.nn.init.zeros_(network[0].bias)
environments = np.random.default_rng(0).uniform([1.0, 1.0], [2.0, 3.0], (300, 2)).tolist()
rollouts = Rollouts(brake, environments)
posterior = GaussianPosterior.over(network, prior_variance=4.0)
train_evolution(posterior, rollouts, steps=12, samples=2, per_environment=True, learning_rate=0.35)
certificate = certify(posterior, rollouts, "runs/brake")
print(f"training cost {certificate.mean_cost:.3f}, certified below {certificate.upper:.3f}")
