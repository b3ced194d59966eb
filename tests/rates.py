"""How the statistical tests judge a simulated rate, with both of their own error rates stated."""

from scipy.stats import binom

FALSE_FAIL = 1e-6


def assert_rate_at_most(hits: int, trials: int, limit: float) -> None:
    """Fail if so many hits would occur with probability below 1e-6 at the promised rate."""
    chance = binom.sf(hits - 1, trials, limit)
    assert chance >= FALSE_FAIL, f"{hits} of {trials} against a promise of {limit}: chance {chance:.1e}"


def min_trials(limit: float, broken: float) -> int:
    """Trials after which `assert_rate_at_most` fails a rate of `broken` but for a chance of 1e-6."""
    low, high = 1, 1 << 22
    while low < high:
        middle = (low + high) // 2
        passing = binom.isf(FALSE_FAIL, middle, limit)  # the most hits that still pass
        low, high = (low, middle) if binom.cdf(passing, middle, broken) <= FALSE_FAIL else (middle + 1, high)
    return low
