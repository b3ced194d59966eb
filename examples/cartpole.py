"""A certified policy for CartPole, trained by evolutionary strategies; under a minute on two cores.

pip install '.[train,gym]' && python examples/cartpole.py
"""

import argparse
import functools

import gymnasium
import numpy as np
import torch

import boundwatch as bw
from boundwatch.training import GaussianPosterior, Rollouts, certify, load_policy, train_evolution

HORIZON = 200


def rollout(policy, seed, rng, force=10.0):
    """Balance a pole of random length. The cost is the share of the time that is left when it falls."""
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    env.unwrapped.length = rng.uniform(0.3, 0.8)
    env.unwrapped.force_mag = force
    observation, _ = env.reset(seed=seed)
    for step in range(HORIZON):
        right = policy(torch.from_numpy(observation)).item() > 0
        observation, _, fallen, _, _ = env.step(int(right))
        if fallen:
            return 1 - (step + 1) / HORIZON
    return 0.0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--environments", type=int, default=500)
    arguments.add_argument("--steps", type=int, default=12)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--output", default="runs/cartpole")
    options = arguments.parse_args()

    draw = np.random.default_rng(0)
    training, fresh = (draw.integers(2**31, size=n).tolist() for n in (options.environments, 200))
    network = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    posterior = GaussianPosterior.over(network, prior_variance=1.0)  # chosen without the environments
    rollouts = Rollouts(rollout, training, jobs=options.jobs)
    train_evolution(
        posterior, rollouts, steps=options.steps, samples=2, per_environment=True, learning_rate=0.15
    )
    certificate = certify(posterior, rollouts, options.output)
    print(f"training cost {certificate.mean_cost:.3f}, certified below {certificate.upper:.3f}")

    policy = load_policy(f"{options.output}/policy.safetensors", network)
    for name, force in (("as trained", 10.0), ("worn motor", 0.5)):
        shifted = functools.partial(rollout, force=force)
        costs = Rollouts(shifted, fresh, jobs=options.jobs)(policy)
        finding = bw.HypothesisTest(certificate).decide(costs)
        print(f"{name}: mean cost {finding.mean_cost:.3f}, {finding.verdict.value}")
