"""A task of your own: Gymnasium's pendulum, swung up by a controller with three gains.

pip install ".[train,gym]" ./examples/pendulum && boundwatch train pendulum -o run --jobs 2
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from gymnasium.envs.classic_control import PendulumEnv

from boundwatch.tasks import folder as folders
from boundwatch.training import GaussianPosterior, Rollouts, certify, load_policy, train_evolution

HORIZON = 150  # steps of 0.05 s
WORST = np.pi**2 + 0.1 * 8**2 + 0.001 * 2**2  # the largest penalty of a step


def rollout(policy, seed, _rng, mass=1.0):
    """Return the mean penalty (angle, speed, torque) as a share of the worst."""
    environment = PendulumEnv()
    environment.m = mass
    (cosine, sine, speed), _ = environment.reset(seed=seed)
    penalty = 0.0
    for _ in range(HORIZON):
        missing = 10.0 * (1.0 - cosine) - speed**2 / 3.0  # energy to the upright pendulum at rest
        torque = policy(torch.tensor([speed * missing, sine, speed])).item()
        (cosine, sine, speed), reward, *_ = environment.step([torque])
        penalty -= float(reward)
    return penalty / (HORIZON * WORST)


@dataclass(frozen=True)
class Run:
    """A finished training."""

    saved: folders.Saved
    notes: tuple[str, ...] = ()
    certificate = property(lambda self: self.saved.certificate)
    summary = property(lambda self: self.saved.summary)


def train(folder: Path, *, environments: int = 300, steps: int = 10, jobs: int = 1, seed: int = 0) -> Run:
    """Swing a pendulum up and hold it there."""
    settings = {"environments": environments, "steps": steps, "seed": seed}
    with folders.claim(folder, "pendulum", settings) as claimed:
        if not claimed.finished:
            posterior = GaussianPosterior.over(_controller(), prior_variance=0.1)
            rollouts = Rollouts(rollout, _starts(environments, seed, 0), jobs=jobs)
            checkpoint = claimed.checkpoints / "evolution.safetensors"
            train_evolution(posterior, rollouts, steps=steps, samples=2, seed=seed, checkpoint=checkpoint)
            certificate = certify(posterior, rollouts, folder, seed=seed, created=claimed.started)
            claimed.finish({"cost": certificate.mean_cost})
    return load(folder)


def load(folder: Path) -> Run:
    """Load what `train` wrote."""
    return Run(folders.load(folder, "pendulum"))


def deploy(run: Run, n: int, *, mass: float = 1.0, jobs: int = 1, seed: int = 0) -> SimpleNamespace:
    """Swing up a pendulum of another mass, in kg; it was trained with 1."""
    starts = _starts(n, run.saved.settings["seed"], 1, seed)
    policy = load_policy(run.saved.policy, _controller())
    return SimpleNamespace(costs=Rollouts(partial(rollout, mass=mass), starts, jobs=jobs)(policy), columns={})


def _controller():
    gains = torch.nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        gains.weight.copy_(torch.tensor([[0.2, -4.0, -1.0]]))  # chosen without the environments
    return gains


def _starts(n, *stream):
    return np.random.default_rng(stream).integers(2**31, size=n).tolist()
