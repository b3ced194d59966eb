"""The objectives are the certified bounds, and their gradients are right."""

import math

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


def test_divergence_is_that_of_the_policy_or_of_the_posterior():
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 2)))
    shift, log_ratio = torch.tensor([0.3, -0.2]).double(), torch.tensor([0.1, -0.4]).double()
    per_policy = objectives.divergence("pointwise", noise, shift, log_ratio)
    assert len(set(per_policy.tolist())) == 3
    shared = objectives.divergence("kl", noise, shift, log_ratio)
    assert shared.tolist() == [float(shared[0])] * 3


def test_a_negative_log_ratio_never_makes_a_negative_budget():
    assert objectives.budget("pointwise", 100, 0.01, torch.tensor(-1e6)) == 0.0


def test_costs_outside_the_unit_interval():
    cost, c = torch.tensor([0.2, 1.5]), torch.tensor(0.1)
    assert objectives.upper_bound("pinsker", cost, c)[1] > 1.5  # any surrogate will do there
    with pytest.raises(InvalidCost, match=r"1\.5 is outside \[0, 1\].*pinsker"):
        objectives.upper_bound("kl", cost, c)
    with pytest.raises(InvalidCost, match="outside"):
        objectives.upper_bound("kl", torch.tensor(math.nan), c)
