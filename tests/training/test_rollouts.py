"""Rollouts give the same costs on one process, on two, and on a Ray cluster."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.training import GaussianPosterior, Rollouts, train_evolution
from training.toy import ENVIRONMENTS, network, noisy, posterior

HERE = Path(__file__).parent


def test_same_costs_whatever_the_number_of_workers():
    one, two = (Rollouts(noisy, ENVIRONMENTS, jobs=jobs)(network()) for jobs in (1, 2))
    assert one.tolist() == two.tolist()
    assert len(set(one)) == len(ENVIRONMENTS)


def test_randomness_belongs_to_the_environment_and_the_seed():
    first = Rollouts(noisy, ENVIRONMENTS, seed=0)
    assert first(network()).tolist() == first(network()).tolist()
    assert first(network()).tolist() != Rollouts(noisy, ENVIRONMENTS, seed=1)(network()).tolist()
    # An environment meets the same randomness whichever others run beside it.
    assert first(network())[:5].tolist() == Rollouts(noisy, ENVIRONMENTS[:5], seed=0)(network()).tolist()


def noise_of(_policy, _environment, rng):
    return rng.uniform()


def test_fresh_environments_have_fresh_noise():
    """With the same seed, or costs in deployment would depend on the training environments."""
    training, deployed = (Rollouts(noise_of, list(range(k, k + 400)))(network()) for k in (0, 400))
    assert not np.intersect1d(training, deployed).size
    assert abs(np.corrcoef(training, deployed)[0, 1]) < 5 / np.sqrt(400)


def test_equal_environments_have_noise_of_their_own():
    costs = Rollouts(noise_of, ["flat", "steep", "flat", "flat"])(network())
    assert len(set(costs)) == 4
    again = Rollouts(noise_of, ["steep", "flat", "flat"], jobs=2)(network())
    assert again.tolist() == costs[[1, 0, 2]].tolist()


class Counting(torch.nn.Module):
    """Works worse with every call; its memory is saved with it, or not."""

    def __init__(self, persistent):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("calls", torch.zeros(1), persistent=persistent)

    def forward(self, x):
        self.calls += 1
        return x + self.calls + self.w


def episode(policy, environment, _rng):
    policy.calls.zero_()  # as one resets the memory of a recurrent policy
    return float(torch.sigmoid(policy(torch.tensor([environment]))))


@pytest.mark.parametrize("jobs", [1, 2])  # a worker changes its own copy, so only it can tell
def test_a_policy_is_reset_with_every_episode_or_refused(jobs):
    reset = Rollouts(episode, ENVIRONMENTS, jobs=jobs)(Counting(persistent=False))
    assert reset.tolist() == pytest.approx(1 / (1 + np.exp(-1 - np.array(ENVIRONMENTS))))
    with pytest.raises(InvalidSetting, match="Counting changed its state_dict"):
        Rollouts(episode, ENVIRONMENTS, jobs=jobs)(Counting(persistent=True))
    learning = GaussianPosterior.over(Counting(persistent=True), prior_variance=1.0)
    with pytest.raises(InvalidSetting, match="Counting changed its state_dict"):
        train_evolution(learning, Rollouts(episode, ENVIRONMENTS, jobs=jobs), steps=1)


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_policies_at_once(jobs):
    trained = posterior()
    weights = trained.sample(3, np.random.default_rng(0))
    indices = np.array([[0, 4], [1, 1], [3, 2]])

    def rollout(policy, environment, rng):
        return float(torch.sigmoid(policy(torch.zeros(2)).sum() + environment)) * rng.uniform(0.9, 1.0)

    rollouts = Rollouts(rollout, [0.1, 0.2, 0.3, 0.4, 0.5], jobs=jobs)
    costs = rollouts.costs(trained, weights, indices)
    assert costs.shape == (3, 2)
    for w, row, values in zip(weights, indices, costs, strict=True):
        assert values.tolist() == rollouts(trained.policy(w))[row].tolist()


def test_gradients_are_off_and_threads_are_restored():
    seen = []

    def rollout(*_):
        seen.append((torch.is_grad_enabled(), torch.get_num_threads()))
        return 0.5

    torch.set_num_threads(2)
    Rollouts(rollout, [1])(network())
    assert seen == [(False, 1)]
    assert torch.get_num_threads() == 2
    torch.set_num_threads(1)


@pytest.mark.parametrize(("cost", "jobs"), [(1.4, 1), (-0.1, 1), (float("nan"), 1), (1.4, 2)])
def test_costs_outside_the_range_name_the_environment(cost, jobs):
    def rollout(_policy, environment, _rng):
        return cost if environment == 3 else 0.5

    with pytest.raises(InvalidCost, match=rf"the cost in environment 3 is {cost}"):
        Rollouts(rollout, list(range(5)), jobs=jobs)(network())


@pytest.mark.parametrize(("name", "value"), [("jobs", 0), ("backend", "dask"), ("environments", [])])
def test_bad_settings_are_named(name, value):
    with pytest.raises(InvalidSetting, match=f"{name} = {value!r}" if value != [] else name):
        Rollouts(noisy, **({"environments": [1]} | {name: value}))


def test_the_fingerprint_tells_environments_and_seeds_apart():
    same, again = (Rollouts(noisy, ENVIRONMENTS).fingerprint for _ in range(2))
    others = (Rollouts(noisy, ENVIRONMENTS, seed=1), Rollouts(noisy, ENVIRONMENTS[1:]))
    assert again == same not in {other.fingerprint for other in others}
    assert len({other.fingerprint for other in others}) == 2


def test_two_workers_of_a_ray_cluster_share_the_work(tmp_path):
    """In a process of its own, because a cluster leaves threads and handlers behind."""
    done = subprocess.run(
        [sys.executable, HERE / "on_ray.py", tmp_path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["workers"] == 2
    assert result["on_ray"] == result["here"]
