"""The PAC-Bayes bounds: hand-computed cases, dominance, refusals."""

import math

import pytest

from boundwatch import bounds
from boundwatch.errors import InvalidSetting


def test_gaps_at_ten_thousand_environments():
    """Cost 0.30, delta 0.01, posterior equal to prior: the figures computed when the bounds were derived."""
    m, delta, cost = 10_000, 0.01, 0.30
    gaps = {
        "pinsker": bounds.pac_bayes_upper(cost, m, delta, 0.0, "pinsker") - cost,
        "kl": bounds.pac_bayes_upper(cost, m, delta, 0.0, "kl") - cost,
        "pointwise": bounds.pointwise_upper(cost, m, delta, 0.0) - cost,
        "held-out": float(bounds.chernoff_upper(cost, m, delta)) - cost,
    }
    assert {name: round(gap, 4) for name, gap in gaps.items()} == {
        "pinsker": 0.0326,
        "kl": 0.0304,
        "pointwise": 0.0206,
        "held-out": 0.0140,
    }


def test_theorem_1_as_printed_cannot_reach_a_tenth_with_500_environments():
    assert bounds.pac_bayes_upper(0.0, 500, 0.01, 0.0, "pinsker") >= 0.140
    assert bounds.pac_bayes_upper(0.004, 500, 0.01, 0.28, "kl") < 0.1


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("renyi", [0.0, 3.0, 500.0])
def test_kl_inverse_is_never_looser_than_pinsker(mean, renyi):
    m, delta = 200, 0.05
    assert bounds.pac_bayes_upper(mean, m, delta, renyi) <= bounds.pac_bayes_upper(
        mean, m, delta, renyi, "pinsker"
    )
    assert bounds.pac_bayes_lower(mean, m, delta, renyi) >= bounds.pac_bayes_lower(
        mean, m, delta, renyi, "pinsker"
    )


def test_a_divergence_without_bound_gives_a_vacuous_interval():
    assert bounds.pac_bayes_upper(0.3, 100, 0.05, math.inf) == 1.0
    assert bounds.pac_bayes_lower(0.3, 100, 0.05, math.inf) == 0.0


def test_a_policy_that_the_prior_favors_never_beats_its_own_training_cost():
    assert bounds.pointwise_upper(0.3, 100, 0.05, log_ratio=-1000.0) == 0.3


@pytest.mark.parametrize("function", [bounds.pac_bayes_complexity, bounds.pointwise_complexity])
def test_fewer_than_eight_environments_are_refused(function):
    assert function(8, 0.05, 0.0) > 0
    with pytest.raises(InvalidSetting, match="m = 7 training environments are too few"):
        function(7, 0.05, 0.0)
