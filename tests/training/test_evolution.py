"""Algorithm 4: its gradient is unbiased, and the paper's printed one is not."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from boundwatch import bounds
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.training import GaussianPosterior, Rollouts, evolution, objectives, train_evolution
from training.toy import DIM, Simulator, posterior, targets

M, DELTA = 50, 0.05
SHIFT = torch.tensor([0.4, -0.3], dtype=torch.float64)
LOG_RATIO = torch.tensor([-0.3, 0.1], dtype=torch.float64)


def score(noise):
    """Return ∇ ln P(w) for each sample, (n, 2, d)."""
    return torch.stack([noise * torch.exp(-0.5 * LOG_RATIO), 0.5 * (noise**2 - 1)], dim=1)


def sampled_gradients(objective, *, factor=1.0, count=300_000):
    """Return single-sample estimates (count, 2, d) of the gradient of the bound.

    The cost is 0.3 for every policy, so that the exact gradient is that of the regularizer alone.
    """
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((count, DIM)))
    cost = torch.full((count,), 0.3, dtype=torch.float64)
    _, _, price, by_cost, by_divergence = evolution._linearize(
        objective, M, DELTA, cost.mean(), noise, SHIFT, LOG_RATIO
    )
    values = by_cost * cost + factor * by_divergence * price
    return values[:, None, None] * score(noise)


def exact_gradient(objective):
    def bound(shift, log_ratio):
        if objective == "pointwise":
            divergence = objectives.kl_divergence(shift, log_ratio)
        else:
            divergence = objectives.renyi_divergence(shift, log_ratio)
        cost = torch.tensor(0.3, dtype=torch.float64)
        return objectives.upper_bound(objective, cost, objectives.budget(objective, M, DELTA, divergence))

    return torch.stack(torch.autograd.functional.jacobian(bound, (SHIFT, LOG_RATIO)))


def standard_errors_off(samples, value):
    return (samples.mean(0) - value).abs() / (samples.std(0) / math.sqrt(len(samples)))


@pytest.mark.parametrize("objective", ["pinsker", "kl", "pointwise"])
def test_gradient_of_the_regularizer_is_unbiased(objective):
    exact = exact_gradient(objective)
    assert bool((standard_errors_off(sampled_gradients(objective), exact) < 5).all())
    # With half the price, as the paper prints it for √R, it is biased, and these samples show it.
    assert bool((standard_errors_off(sampled_gradients(objective, factor=0.5), exact) > 5).any())


def test_price_is_the_corrected_factor():
    """Price times slope is e^(ln P/P0 - D2) / (2 m √R); the paper prints 4 m √R."""
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal((4, DIM)))
    _, divergence, price, by_cost, by_divergence = evolution._linearize(
        "pinsker", M, DELTA, torch.tensor(0.3).double(), noise, SHIFT, LOG_RATIO
    )
    root = math.sqrt(bounds.pac_bayes_complexity(M, DELTA, divergence) / 2)
    weight = torch.exp(objectives.log_density_ratio(noise, SHIFT, LOG_RATIO) - divergence)
    assert float(by_cost) == 1
    torch.testing.assert_close(by_divergence * price, weight / (2 * M * root))
    assert not torch.allclose(by_divergence * price, weight / (4 * M * root))


def test_gradient_of_the_cost_is_unbiased():
    """Against the derivative of E_w[cost], known in closed form for this cost."""
    target = torch.tensor([0.5, 1.0], dtype=torch.float64)

    def smoothed(shift, log_ratio):  # E exp(-|w - e|²/2) for w ~ N(shift, exp(log_ratio)), prior N(0, I)
        spread = 1 + log_ratio.exp()
        return 1 - torch.prod(spread**-0.5 * torch.exp(-((shift - target) ** 2) / (2 * spread)))

    exact = torch.stack(torch.autograd.functional.jacobian(smoothed, (SHIFT, LOG_RATIO)))
    for antithetic in (False, True):
        noise = evolution._noise(400_000, DIM, antithetic, np.random.default_rng(2))
        w = SHIFT + torch.exp(0.5 * LOG_RATIO) * noise
        cost = 1 - torch.exp(-0.5 * ((w - target) ** 2).sum(-1))
        for baseline in (torch.zeros_like(cost), evolution._mean_of_others(cost, antithetic)):
            samples = (cost - baseline)[:, None, None] * score(noise)
            if antithetic:
                samples = samples.reshape(-1, 2, *samples.shape[1:]).mean(1)
            assert bool((standard_errors_off(samples, exact) < 5).all())


def test_baseline_and_opposites_lower_the_variance():
    target = torch.tensor([0.5, 1.0], dtype=torch.float64)

    def spread(antithetic, baseline):
        noise = evolution._noise(40_000, DIM, antithetic, np.random.default_rng(3))
        w = SHIFT + torch.exp(0.5 * LOG_RATIO) * noise
        cost = 1 - torch.exp(-0.5 * ((w - target) ** 2).sum(-1))
        values = cost - evolution._mean_of_others(cost, antithetic) if baseline else cost
        samples = (values[:, None, None] * score(noise)).reshape(-1, 2, 2, DIM).mean(1)
        return samples.var(0)

    assert bool((spread(False, True) < spread(False, False)).all())
    assert bool((spread(True, False)[0] < spread(False, False)[0]).all())


def test_mean_of_others_leaves_out_itself_and_its_opposite():
    values = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)
    assert evolution._mean_of_others(values, False).tolist() == [14 / 3, 13 / 3, 11 / 3, 7 / 3]
    assert evolution._mean_of_others(values, True).tolist() == [6.0, 6.0, 1.5, 1.5]
    assert evolution._mean_of_others(values[:2], True).tolist() == [0.0, 0.0]


def test_every_combination_of_settings_trains():
    for settings in (
        {"per_environment": True, "samples": 2},
        {"antithetic": False, "samples": 5},
        {"baseline": False},
        {"natural": True},
        {"optimizer": "sgd", "natural": True, "learning_rate": 2.0, "variance_rate": 0.2},
        {"variance_rate": 0.0},
    ):
        trained = posterior()
        history = train_evolution(trained, Simulator(targets(40, 0)), steps=25, **settings)
        assert np.mean(history.cost[-5:]) < np.mean(history.cost[:5]), settings
        assert (trained.log_ratio.abs().max() > 0) == (settings.get("variance_rate") != 0.0)


def test_each_environment_meets_its_own_policies():
    class Recorder(Simulator):
        def costs(self, posterior, weights, indices):
            self.seen = weights.shape, indices
            return super().costs(posterior, weights, indices)

    simulator = Recorder(targets(10, 0))
    train_evolution(posterior(), simulator, steps=1, samples=4, per_environment=True)
    shape, indices = simulator.seen
    assert shape == (40, DIM)
    assert indices[:, 0].tolist() == [i for i in range(10) for _ in range(4)]
    train_evolution(posterior(), simulator, steps=1, samples=4)
    shape, indices = simulator.seen
    assert shape == (4, DIM)
    assert indices.tolist() == [list(range(10))] * 4


WRONG = [("samples", 3), ("optimizer", "lbfgs"), ("learning_rate", -1), ("bound", "elbo"), ("steps", 0)]
WRONG += [
    ("per_environment", 1),
    ("antithetic", "no"),
    ("baseline", "no"),
    ("natural", "yes"),
    ("delta", 0.0),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bad_settings_are_named(name, value):
    with pytest.raises(ValueError, match=f"{name} = {value!r}".removesuffix(".0")):
        train_evolution(posterior(), Simulator(targets(10, 0)), **({"steps": 1} | {name: value}))


def test_a_latent_input_is_trained_through_a_simulator():
    """The network stays as it is; only the distribution of its last argument moves."""
    posterior = GaussianPosterior.over_latent(Shifted(), 2, prior_variance=0.2)
    frozen = posterior.policy(posterior.mean).state_dict()["network.scale"].clone()

    def rollout(policy, environment, rng):
        return min(1.0, float((policy(torch.tensor(environment)) - 0.7).abs().sum()) + 0.01 * rng.random())

    rollouts = Rollouts(rollout, [[0.0, 0.1], [0.1, 0.0]] * 5)
    history = train_evolution(
        posterior, rollouts, steps=30, samples=2, per_environment=True, learning_rate=0.1
    )
    assert history.cost[-1] < 0.6 * history.cost[0]
    policy = posterior.policy(posterior.mean)
    assert torch.equal(policy.state_dict()["network.scale"], frozen)


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, observation, latent):
        return self.scale * (observation + latent)


def test_costs_outside_the_range_and_too_few_environments_are_refused():
    class Broken(Simulator):
        def costs(self, posterior, weights, indices):
            return 2 * super().costs(posterior, weights, indices)

    with pytest.raises(InvalidCost, match="is outside"):
        train_evolution(posterior(), Broken(targets(10, 0)), steps=1)
    with pytest.raises(InvalidSetting, match="7 training environments"):
        train_evolution(posterior(), Simulator(targets(7, 0)), steps=1)
