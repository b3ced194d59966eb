"""The objectives are the certified bounds, the divergences those of bounds/; their gradients are right."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from boundwatch import bounds
from boundwatch.errors import InvalidCost
from boundwatch.training import objectives
from boundwatch.training.objectives import KlInverseUpper

OBJECTIVES = ("pinsker", "kl", "pointwise")


def certified(objective, cost, m, delta, divergence):
    if objective == "pointwise":
        return bounds.pointwise_upper(cost, m, delta, divergence)
    return bounds.pac_bayes_upper(cost, m, delta, divergence, objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("divergence", [0.0, 1.3, 40.0])
@pytest.mark.parametrize("cost", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_objectives_are_the_bounds_of_the_certificates(objective, cost, divergence):
    m, delta = 500, 0.01
    c = objectives.budget(objective, m, delta, torch.tensor(divergence, dtype=torch.float64))
    value = objectives.upper_bound(objective, torch.tensor(cost, dtype=torch.float64), c)
    # The certificate stops at 1, where Pinsker's form does not: training still needs its slope.
    assert min(float(value), 1.0) == pytest.approx(certified(objective, cost, m, delta, divergence), abs=1e-9)


@given(st.floats(0, 1), st.floats(1e-9, 30))
def test_newton_agrees_with_the_certified_inverse(q, c):
    value = KlInverseUpper.apply(torch.tensor(q, dtype=torch.float64), torch.tensor(c, dtype=torch.float64))
    assert float(value) == pytest.approx(float(bounds.kl_inverse_upper(q, c)), abs=1e-9)


@pytest.mark.parametrize("c", [1e-4, 0.01, 0.5, 3.0])
def test_gradient_of_the_inverse_against_finite_differences(c):
    q = torch.tensor([0.01, 0.1, 0.5, 0.9, 0.99], dtype=torch.float64, requires_grad=True)
    budget = torch.full_like(q, c).detach().requires_grad_()
    assert torch.autograd.gradcheck(KlInverseUpper.apply, (q, budget), eps=1e-7, atol=1e-5, rtol=1e-4)


def test_gradient_of_the_inverse_with_a_wrong_slope_is_noticed():
    """The negative control of the check above: Pinsker's slopes are not those of the inverse."""
    q, c = (torch.tensor([a], dtype=torch.float64, requires_grad=True) for a in (0.1, 0.5))
    exact = torch.autograd.grad(KlInverseUpper.apply(q, c).sum(), (q, c))
    pinsker = torch.autograd.grad(objectives.upper_bound("pinsker", q, c).sum(), (q, c))
    for a, b in zip(exact, pinsker, strict=True):
        assert not torch.allclose(a, b, atol=0.01)


def test_gradients_are_finite_at_the_edges():
    q = torch.tensor([0.0, 0.0, 1.0, 1.0, 0.3], dtype=torch.float64, requires_grad=True)
    c = torch.tensor([0.0, 1.0, 0.0, 1.0, 1e4], dtype=torch.float64, requires_grad=True)
    gradients = torch.autograd.grad(KlInverseUpper.apply(q, c).sum(), (q, c))
    assert all(bool(g.isfinite().all()) for g in gradients)
    assert bool((gradients[0] > 0).all())  # a higher cost never lowers the bound


def test_a_negative_log_ratio_never_makes_a_negative_budget():
    assert objectives.budget("pointwise", 100, 0.01, torch.tensor(-1e6)) == 0.0


def test_costs_outside_the_unit_interval():
    cost, c = torch.tensor([0.2, 1.5]), torch.tensor(0.1)
    assert objectives.upper_bound("pinsker", cost, c)[1] > 1.5  # any surrogate will do there
    with pytest.raises(InvalidCost, match=r"1\.5 is outside \[0, 1\].*pinsker"):
        objectives.upper_bound("kl", cost, c)
    with pytest.raises(InvalidCost, match="outside"):
        objectives.upper_bound("kl", torch.tensor(math.nan), c)


CASES = {
    1: ([0.8], [1.2], [0.0], [1.0]),
    2: ([0.3, -0.5], [0.9, 0.02], [0.0, -0.4], [1.0, 0.03]),
    3: ([0.1, 0.2, -0.3], [0.5, 1.2, 0.9], [0.0, 0.5, 0.0], [1.0, 1.0, 0.8]),
}


def coordinates(mean, variance, prior_mean, prior_variance):
    mean, variance, prior_mean, prior_variance = (
        torch.as_tensor(a, dtype=torch.float64) for a in (mean, variance, prior_mean, prior_variance)
    )
    return (mean - prior_mean) / prior_variance.sqrt(), (variance / prior_variance).log()


def large_case(dim=100_000):
    prior_variance = math.exp(-14)
    rng = np.random.default_rng(0)
    prior_mean = 0.1 * rng.standard_normal(dim)
    mean = prior_mean + 0.01 * math.sqrt(prior_variance) * rng.standard_normal(dim)
    variance = prior_variance * np.exp(0.01 * rng.standard_normal(dim))
    return mean, variance, prior_mean, np.full(dim, prior_variance)


@pytest.mark.parametrize("case", [*CASES.values(), large_case()], ids=["1", "2", "3", "100000"])
def test_twins_equal_the_functions_that_certify(case):
    shift, log_ratio = coordinates(*case)
    for name in ("renyi_divergence", "kl_divergence"):
        twin, exact = float(getattr(objectives, name)(shift, log_ratio)), getattr(bounds, name)(*case)
        assert twin == pytest.approx(exact, rel=1e-9)
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal((2, len(case[0]))))
    ratios = objectives.log_density_ratio(noise, shift, log_ratio)
    for z, ratio in zip(noise.numpy(), ratios, strict=True):
        weights = np.asarray(case[0]) + np.sqrt(case[1]) * z
        assert float(ratio) == pytest.approx(bounds.log_density_ratio(weights, *case), rel=1e-7, abs=1e-7)


def test_infinite_when_a_variance_reaches_twice_the_prior():
    limit, shift = torch.tensor([0.0, math.log(2)], dtype=torch.float64), torch.zeros(2)
    assert math.isfinite(objectives.renyi_divergence(shift, limit - 1e-9))
    assert objectives.renyi_divergence(shift, limit) == math.inf


def density_ratios(case, count=400_000):
    """Return samples w ~ P as noise z, and P(w)/P0(w); the mean of the latter is exp(D2)."""
    noise = np.random.default_rng(2).standard_normal((count, len(case[0])))
    ratios = objectives.log_density_ratio(torch.from_numpy(noise), *coordinates(*case)).exp().numpy()
    return noise, ratios


def off_by(samples, value):
    """How many standard errors the mean of the samples is away from a value."""
    return abs(samples.mean(0) - value) / (samples.std(0) / math.sqrt(len(samples)))


def gradient(function, *arguments):
    leaves = [a.clone().requires_grad_() for a in arguments]
    return torch.autograd.grad(function(*leaves), leaves)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_against_finite_differences(case):
    noise = torch.from_numpy(np.random.default_rng(3).standard_normal((4, len(case[0]))))
    ratio = partial(objectives.log_density_ratio, noise)
    for function in (objectives.renyi_divergence, objectives.kl_divergence, ratio):
        leaves = tuple(a.clone().requires_grad_() for a in coordinates(*case))
        assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_against_monte_carlo(case):
    """∇D2 = 2 e^-D2 E_P[P/P0 ∇ ln P]; with the paper's factor, 1 instead of 2, it fails."""
    shift, log_ratio = coordinates(*case)
    by_shift, by_log_ratio = gradient(objectives.renyi_divergence, shift, log_ratio)
    noise, ratios = density_ratios(case)
    weight = (ratios * math.exp(-bounds.renyi_divergence(*case)))[:, None]
    # In the coordinates (v, u), ∇ ln P = (z e^(-u/2), (z² - 1)/2).
    score_shift, score_log_ratio = noise * np.exp(-0.5 * log_ratio.numpy()), (noise**2 - 1) / 2
    for score, exact in ((score_shift, by_shift), (score_log_ratio, by_log_ratio)):
        assert (off_by(2 * weight * score, exact.numpy()) < 5).all()
        assert (off_by(1 * weight * score, exact.numpy()) > 5).any()


def test_stable_in_a_hundred_thousand_dimensions():
    """With prior variances of e^-14: the sum against exact summation, the gradient against differences."""
    mean, variance, prior_mean, prior_variance = large_case()
    shift, log_ratio = coordinates(mean, variance, prior_mean, prior_variance)
    excess = np.expm1(log_ratio.numpy())
    exact = math.fsum(shift.numpy() ** 2 / (1 - excess)) - 0.5 * math.fsum(np.log1p(-(excess**2)))
    assert float(objectives.renyi_divergence(shift, log_ratio)) == pytest.approx(exact, rel=1e-12)
    by_shift, by_log_ratio = gradient(objectives.renyi_divergence, shift, log_ratio)
    rng = np.random.default_rng(4)
    for _ in range(3):
        dv, du = (torch.from_numpy(rng.standard_normal(len(mean))) for _ in range(2))
        step = 1e-5
        ahead = objectives.renyi_divergence(shift + step * dv, log_ratio + step * du)
        behind = objectives.renyi_divergence(shift - step * dv, log_ratio - step * du)
        directional = float(by_shift @ dv + by_log_ratio @ du)
        assert float((ahead - behind) / (2 * step)) == pytest.approx(directional, rel=1e-6)
