"""The worst mean under a stated shift, against search over worlds and closed forms."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds import binary_kl, kl_inverse_upper, shift_kl_lower, shifted_mean_upper
from boundwatch.errors import InvalidSetting


def exact_kl(q, p):
    """Return kl(q || p) of numbers inside (0, 1) with 50 digits."""
    with mpmath.workdps(50):
        q, p = mpmath.mpf(q), mpmath.mpf(p)
        return q * mpmath.log(q / p) + (1 - q) * mpmath.log((1 - q) / (1 - p))


def test_the_worst_mean_is_never_inward_by_a_single_digit():
    rng = np.random.default_rng(0)
    means = np.concatenate(
        [rng.random(500), 10 ** rng.uniform(-12, 0, 500), 1 - 10 ** rng.uniform(-9, -0.1, 500)]
    )
    distances = 10 ** rng.uniform(-14, 1, means.size)
    worst = shifted_mean_upper(means, distances)
    tried = 0
    for mean, distance, found in zip(means.tolist(), distances.tolist(), worst.tolist(), strict=True):
        if found < 1:
            tried += 1
            assert exact_kl(found, mean) >= distance
            assert found - 1e-12 <= mean or exact_kl(found - 1e-12, mean) < distance
    assert tried > 800


def test_the_worst_mean_at_the_edges_and_at_round_distances():
    assert shifted_mean_upper([0.0, 0.0, 0.3, 1.0], [1.0, 5.0, 0.0, 1.0]).tolist() == [0.0, 0.0, 0.3, 1.0]
    assert exact_kl(float(shifted_mean_upper(0.1, 1.0)), 0.1) == pytest.approx(1.0, abs=1e-9)
    assert exact_kl(float(shifted_mean_upper(1e-3, 2.0)), 1e-3) == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("shift", [1e-12, 1.3e-9, 7e-7, 3e-5, 1.1e-4, 0.003, 0.05, 0.2, 0.3, 0.8])
def test_the_smallest_distance_is_never_too_high(shift):
    with mpmath.workdps(50):
        exact = mpmath.mpf(shift)
        low, high = mpmath.mpf("1e-9"), 1 - exact - mpmath.mpf("1e-9")
        for _ in range(120):  # it is convex in the old mean
            third = (high - low) / 3
            left, right = low + third, high - third
            lower = exact_kl(left + exact, left) < exact_kl(right + exact, right)
            low, high = (low, right) if lower else (left, high)
        smallest = exact_kl(low + exact, low)
        found = mpmath.mpf(float(shift_kl_lower(shift)))
    assert smallest * (1 - mpmath.mpf("1e-8")) < found <= smallest
    assert float(shift_kl_lower(-shift)) == 0.0


def worst_by_search(costs, probabilities, kl):
    """Return the largest expected cost over worlds at this distance: those tilted by exp(t cost)."""
    best = 0.0
    for tilt in np.linspace(0, 60, 4001):
        tilted = probabilities * np.exp(tilt * (costs - 1))
        tilted /= tilted.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.nansum(tilted * np.log(tilted / probabilities))
        if distance <= kl:
            best = max(best, float(tilted @ costs))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kl", [0.02, 0.2])
def test_no_world_within_the_distance_is_worse(seed, kl):
    rng = np.random.default_rng(seed)
    costs = np.append(rng.random(4), [0.0, 1.0]) if seed else np.array([0.0, 1.0])
    probabilities = rng.dirichlet(np.ones(costs.size))
    certificate = bw.Certificate.from_bounds(lower=0, upper=float(probabilities @ costs), delta=0.01)
    worst = worst_by_search(costs, probabilities, kl)
    assert worst <= certificate.under_shift(kl=kl)
    if seed == 0:  # costs of 0 and 1: attained
        assert worst > certificate.under_shift(kl=kl) - 0.02


def test_inverting_the_other_argument_would_promise_too_much():
    """The broken twin: at a mean of 0.9 a world at this distance always fails, and the twin denies it."""
    mean, kl = 0.9, 0.11
    assert float(binary_kl(1.0, mean)) <= kl
    assert float(kl_inverse_upper(mean, kl)) < 1.0
    assert float(shifted_mean_upper(mean, kl)) == 1.0


def test_a_finding_says_how_far_the_world_moved():
    certificate = bw.Certificate.from_held_out([0] * 95 + [1] * 5, binary=True)
    adverse = bw.HypothesisTest(certificate).decide([1] * 10)
    assert adverse.shift_size.tv == adverse.shift_lower > 0.5
    assert adverse.shift_size.kl > 2 * adverse.shift_size.tv**2
    within = bw.HypothesisTest(certificate).decide([0] * 10)
    assert within.shift_size == (0.0, 0.0)


WRONG = [
    ({}, "one"),
    ({"kl": 0.1, "tv": 0.1}, "one"),
    ({"kl": -0.1}, "kl = -0.1"),
    ({"kl": np.nan}, "kl = nan"),
]


@pytest.mark.parametrize(
    ("arguments", "named"), [*WRONG, ({"tv": 1.5}, "tv = 1.5"), ({"tv": "x"}, "tv = 'x'")]
)
def test_a_wrong_distance_is_named(arguments, named):
    with pytest.raises(InvalidSetting, match=named):
        bw.Certificate.from_bounds(lower=0, upper=0.1, delta=0.01).under_shift(**arguments)
