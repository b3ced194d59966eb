"""The line at which a stream alarms against a reference: its level over the joint draw, and its power."""

import threading

import numpy as np
import pytest
from scipy.stats import binom

from boundwatch.bounds import joint_evidence, rate_difference, two_sample
from boundwatch.bounds import joint_region as region_module
from boundwatch.bounds.joint_region import alarm_line, joint_region
from boundwatch.certificates.record import CostRecord
from boundwatch.comparison import late
from boundwatch.detectors import joint

LEVEL = 0.045


def alarm_probability(lines: np.ndarray, reference_rate: float, rate: float) -> float:
    """P[alarm] over reference and stream, by the plain recursion over (trials, failures) for each reference.

    Lines: the failures needed after each trial (columns), for each number of failures in the reference.
    """
    n = lines.shape[0] - 1
    chances = binom.pmf(np.arange(n + 1), n, reference_rate)
    return float(1 - chances @ alive_after(lines, rate).sum(axis=1))


def alive_after(lines: np.ndarray, rate: float) -> np.ndarray:
    """P[no alarm, k failures] at the end, for each line."""
    horizon = lines.shape[1] - 1
    alive, failures = np.zeros((lines.shape[0], horizon + 2)), np.arange(horizon + 2)
    alive[:, 0] = 1.0
    for t in range(1, horizon + 1):
        alive[:, 1 : t + 1] = (1 - rate) * alive[:, 1 : t + 1] + rate * alive[:, :t]
        alive[:, 0] *= 1 - rate
        alive[failures >= lines[:, t, None]] = 0.0
    return alive[:, : horizon + 1]


def lines_of(n: int, level: float, horizon: int) -> np.ndarray:
    return np.array([alarm_line(n, k, level).needed(horizon)[: horizon + 1] for k in range(n + 1)])


@pytest.mark.parametrize(("n", "level"), [(5, LEVEL), (20, LEVEL), (20, 0.3), (30, 0.001)])
def test_the_level_holds_at_every_rate_and_is_nearly_spent(n, level):
    region = joint_region(n, level)
    lines = lines_of(n, level, region.horizon)
    rates = np.linspace(0.005, 0.995, 34)
    levels = np.array([alarm_probability(lines, rate, rate) for rate in rates])
    assert levels.max() <= region.bound <= level
    assert levels.max() > 0.9 * level
    # A better stream alarms less, a much worse one nearly always.
    assert alarm_probability(lines, 0.5, 0.4) < 0.6 * level
    if n > 5:
        assert alarm_probability(lines, 0.1, 0.9) > 0.99


def test_an_easier_line_breaks_the_promise():
    lines = np.maximum(lines_of(20, LEVEL, 300) - 1, 1)
    assert alarm_probability(lines, 0.5, 0.5) > 1.2 * LEVEL


def test_small_shifts_alarm_after_the_horizon_and_no_shift_hardly_does():
    n, failures = 1500, 150
    region = joint_region(n, LEVEL)
    line = alarm_line(n, failures, LEVEL).needed(4000)[None, :4001]

    def later(rate):
        """P[alarm after the horizon], given this reference."""
        never = np.full((1, 1), 10**9)
        after = np.append(never.repeat(region.horizon + 1, 1), line[:, region.horizon + 1 :], axis=1)
        return 1 - alive_after(after, rate).sum()

    assert later(0.17) > 0.9
    assert later(0.1) < region.later


@pytest.mark.parametrize("n", [1, 20, 1500])
def test_lines_rise_with_trials_and_with_failures_in_the_reference(n):
    for low, high in ((0, n // 3), (n // 3, n // 2), (n // 2, n)):
        lines = [alarm_line(n, failures, LEVEL).needed(1200)[1:1201] for failures in (low, high)]
        assert (np.diff(lines[0]) >= 0).all()
        assert (lines[1] >= lines[0]).all()


def test_failing_always_is_never_exceeded():
    assert (alarm_line(20, 20, LEVEL).needed(2000)[:2001] > np.arange(2001)).all()


def test_threads_that_extend_one_line_get_the_same_line(monkeypatch):
    """While one thread computes what comes after the horizon, another computes and publishes the same."""
    alone, shared = (joint_region(20, LEVEL).line(4) for _ in range(2))
    step, others = region_module._log_evidence, []

    def interrupted(*arguments):
        monkeypatch.undo()
        other = threading.Thread(target=lambda: others.append(shared.needed(1500)))
        other.start()
        other.join()
        return step(*arguments)

    monkeypatch.setattr(region_module, "_log_evidence", interrupted)
    first = shared.needed(1500)
    later = [shared.needed(trials) for trials in (1505, 2100, 4000)][
        -1
    ]  # a wrong one would be followed by more
    for line in (first, *others, later):
        np.testing.assert_array_equal(line, alone.needed(line.size - 1)[: line.size])
    assert len(others) == 1


@pytest.mark.parametrize(
    "cached",
    [
        lambda: joint_region(5, LEVEL)._needed,
        lambda: joint_region(5, LEVEL)._block,
        lambda: two_sample._elevation(5, 20),
        lambda: rate_difference._ranks(5, 4, 0.0),
        lambda: rate_difference._orders(5, 4),
        lambda: rate_difference.rate_difference_region(5, 4, 0.05),
        lambda: late.late_line(LEVEL, 5).leads,
        lambda: late.late_line(LEVEL, 5).looks,
        lambda: joint_evidence._grid_factors(0.3),
        lambda: joint._references(CostRecord.of_failures(5, 1))[0].logs,
    ],
)
def test_what_a_cache_shares_cannot_be_changed(cached):
    with pytest.raises(ValueError, match="read-only"):
        cached()[...] = 0
