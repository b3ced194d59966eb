"""PAC-Bayes bounds: exact coverage when the posterior is trained on the same environments.

K policies fail with the same probability p, independently on each of m environments. Training picks the one
with the fewest failures on S: the posterior is a point mass on it, the prior is uniform over all K, and both
D2(P || P0) and ln P/P0 are ln K. The fewest of K binomial counts has a distribution that can be written down.
"""

import numpy as np
import pytest
from scipy.stats import binom

from boundwatch import bounds

MEANS = np.linspace(0.02, 0.98, 49)
M = 60
LOG_POLICIES = 25.0  # so many that a bound which forgets to pay for the choice must fail


def fewest_failures(p):
    """Probability of each number of failures of the policy picked."""
    survival = np.exp(np.exp(LOG_POLICIES) * binom.logsf(np.arange(M + 1) - 1, M, p))
    return survival - np.append(survival[1:], 0.0)


def misses(lower, upper):
    """Probability that either limit fails, for each mean, with limits given for each number of failures."""
    return np.array([fewest_failures(p)[(np.array(lower) > p) | (np.array(upper) < p)].sum() for p in MEANS])


@pytest.mark.parametrize("delta", [0.01, 0.1])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (bounds.pac_bayes_lower, bounds.pac_bayes_upper),
        (
            lambda *a: bounds.pac_bayes_lower(*a, method="pinsker"),
            lambda *a: bounds.pac_bayes_upper(*a, method="pinsker"),
        ),
        (bounds.pointwise_lower, bounds.pointwise_upper),
    ],
    ids=["kl", "pinsker", "pointwise"],
)
def test_both_limits_together_miss_at_most_delta(lower, upper, delta):
    pairs = [
        (lower(k / M, M, delta, LOG_POLICIES), upper(k / M, M, delta, LOG_POLICIES)) for k in range(M + 1)
    ]
    assert misses(*zip(*pairs, strict=True)).max() <= delta
    # and they say something, although e^25 policies were tried on 60 environments
    assert np.mean([high - low for low, high in pairs]) < 0.95
    # The same bound without the price of the choice is the negative control.
    free = [(lower(k / M, M, delta, 0.0), upper(k / M, M, delta, 0.0)) for k in range(M + 1)]
    assert misses(*zip(*free, strict=True)).max() > delta


def test_forgetting_the_price_of_training_fails_this_test():
    """A held-out certificate on the training environments themselves is not one."""
    failures = np.arange(M + 1)
    lower = bounds.clopper_pearson_lower(failures, M, 0.05)
    upper = bounds.clopper_pearson_upper(failures, M, 0.05)
    assert misses(lower, upper).max() > 0.1
