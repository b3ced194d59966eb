"""The change detector's promises: exact over every binary sequence and as a Markov chain, and by simulation.

Broken rules must fail the same checks: an alarm at 1/(4 alpha), and twice the share for every new start. With
a certificate for binary costs the detector is calibrated, with one for others that of Shiryaev and Roberts.
"""

import itertools
import math

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.detectors.run_length import calibrated, run_length

DEPTH = 10
FAR = 4.9  # standard errors that chance exceeds with a probability of about 1e-6


class DoubleShare(bw.ChangeDetector):
    """Broken: every episode starts bets with a capital of two."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self._shares = 2 * self._shares


def detector(kind, bound: float, alpha: float, *, binary: bool) -> bw.ChangeDetector:
    cert = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=binary)
    return kind(cert, alpha_adverse=alpha, alpha_benign=1e-9)


def first_alarms(watch: bw.ChangeDetector) -> dict[tuple[int, ...], int]:
    """The episode of the first alarm for every binary sequence of DEPTH costs that has one."""
    alarms = {}
    for costs in itertools.product((0, 1), repeat=DEPTH):
        watch.reset()
        finding = watch.update_many(costs)
        if finding.verdict is bw.Verdict.ADVERSE:
            alarms[costs] = finding.first_alarm
    return alarms


def alarm_probability(alarms, rate: float) -> np.ndarray:
    """P[an alarm within N episodes] for N = 1, …, DEPTH."""
    by_episode = np.zeros(DEPTH + 1)
    for costs, episode in alarms.items():
        by_episode[episode] += rate ** sum(costs) * (1 - rate) ** (DEPTH - sum(costs))
    return np.cumsum(by_episode)[1:]


def assert_at_most_n_alpha(probability: np.ndarray, alpha: float) -> None:
    promised = alpha * np.arange(1, DEPTH + 1)
    assert (probability <= promised).all(), f"{probability} against {promised}"


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("bound", "alpha"), [(0.3, 0.02), (0.9, 0.1)])
def test_false_alarms_within_n_episodes_are_at_most_n_alpha(binary, bound, alpha):
    alarms = first_alarms(detector(bw.ChangeDetector, bound, alpha, binary=binary))
    for rate in (bound / 3, 2 * bound / 3, bound):
        assert_at_most_n_alpha(alarm_probability(alarms, rate), alpha)
    if bound == 0.3:
        assert alarm_probability(alarms, 0.9)[-1] > 0.9  # power
        assert alarm_probability(alarms, 0.3)[-1] > 0.01  # not vacuous


@pytest.mark.parametrize(
    ("binary", "kind", "factor", "bound", "alpha"),
    [
        (False, bw.ChangeDetector, 4, 0.3, 0.02),
        (False, bw.ChangeDetector, 4, 0.9, 0.1),
        (False, DoubleShare, 1, 0.9, 0.1),
        (True, bw.ChangeDetector, 3, 0.3, 0.02),
        (True, bw.ChangeDetector, 3, 0.9, 0.1),
    ],
)
def test_broken_rules_alarm_more_often(binary, kind, factor, bound, alpha):
    alarms = first_alarms(detector(kind, bound, factor * alpha, binary=binary))
    with pytest.raises(AssertionError):
        assert_at_most_n_alpha(alarm_probability(alarms, bound), alpha)


def chain(watch: bw.ChangeDetector) -> tuple[np.ndarray, np.ndarray]:
    """Where a detector goes after a success and a failure, from every state it can be in; -1 is an alarm.

    A bet that has lost starts anew with the next episode: what counts is its capital or, if that is less, 1.
    """
    mine = watch._sides[:, 0] > 0
    blank = watch._rows["best"].copy()

    def key(best):
        return tuple(np.log(np.maximum(best[mine], 1.0)).round(9))

    places, todo, moves = {key(blank[0]): 0}, [blank[0]], []
    for best in todo:
        move = []
        for cost in (0.0, 1.0):
            watch.reset()
            watch._rows["best"][0] = best
            watch.update(cost)
            if watch.verdict is bw.Verdict.ADVERSE:
                move.append(-1)
                continue
            after = watch._rows["best"][0].copy()
            if (name := key(after)) not in places:
                places[name] = len(todo)
                todo.append(after)
            move.append(places[name])
        moves.append(move)
    fine, failed = np.array(moves).T
    return fine, failed


def exact_run_length(fine: np.ndarray, failed: np.ndarray, rate: float) -> np.ndarray:
    """The average number of episodes until an alarm, from every state."""
    size, equations = fine.size, np.eye(fine.size)
    for after, chance in ((fine, 1 - rate), (failed, rate)):
        going = after >= 0
        np.add.at(equations, (np.arange(size)[going], after[going]), -chance)
    return np.linalg.solve(equations, np.ones(size))


@pytest.mark.parametrize(
    ("bound", "alpha", "most"), [(0.3, 0.001, 1.1), (0.1, 0.005, 1.4), (0.9, 0.01, 1.4), (0.003, 0.002, 2.5)]
)
def test_calibrated_the_run_length_is_what_is_promised_and_hardly_more(bound, alpha, most):
    fine, failed = chain(detector(bw.ChangeDetector, bound, alpha, binary=True))
    lengths = exact_run_length(fine, failed, bound)
    assert 1 / alpha <= lengths[0] < most / alpha  # in steps: costs are 0 or 1
    # From every state a failure leads to an earlier alarm than a success, so the largest rate that is allowed
    # is the worst one, whatever came before. And from no state does it take longer than from the first, from
    # which P[alarm within N] <= N alpha follows.
    assert (np.append(lengths, 0)[failed] <= np.append(lengths, 0)[fine] + 1e-9).all()
    assert lengths.max() <= lengths[0] + 1e-9
    if bound == 0.3:  # the chain of the calibration is that of the detector
        bets, threshold = calibrated(bound, alpha)
        assert run_length(bets, bound, threshold) == pytest.approx(lengths[0], rel=1e-9)
        assert run_length(bets, 0.6, threshold) == pytest.approx(exact_run_length(fine, failed, 0.6)[0])
    # Broken: a threshold that is too low.
    low = detector(bw.ChangeDetector, bound, alpha, binary=True)
    low._shares = 1.1 * most * low._shares
    assert exact_run_length(*chain(low), bound)[0] < 1 / alpha


@pytest.mark.parametrize(("bound", "rate", "at_most"), [(0.02, 0.06, 105), (0.1, 0.3, 30)])
def test_calibrated_the_delay_is_short(bound, rate, at_most):
    bets, threshold = calibrated(bound, 0.001)
    assert run_length(bets, bound, threshold) >= 1000
    assert run_length(bets, rate, threshold) <= at_most


def run_lengths(watch: bw.ChangeDetector, draw, runs: int) -> np.ndarray:
    rng = np.random.default_rng(31)
    lengths = np.empty(runs)
    for run in range(runs):
        watch.reset()
        while watch.first_alarm is None:
            watch.update_many(draw(rng, 20))
        lengths[run] = watch.first_alarm
    return lengths


def assert_mean_at_least(values: np.ndarray, promise: float) -> None:
    """Fail if the mean is so far below the promise that chance explains it with less than about 1e-6."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert values.mean() + FAR * error >= promise, (
        f"mean {values.mean():.1f} ± {error:.1f}, promised {promise}"
    )


def min_trials(promise: float, broken: float, spread: float) -> int:
    """Runs after which `assert_mean_at_least` fails a mean of `broken` but for a chance of about 1e-6."""
    return math.ceil((2 * FAR * spread / (promise - broken)) ** 2)


def failures(rng, n):
    return (rng.random(n) < 0.3).astype(float)


def test_the_mean_run_length_to_a_false_alarm():
    runs = 700
    assert runs >= min_trials(promise=50, broken=36, spread=28)  # the better of the two broken rules
    lengths = run_lengths(detector(bw.ChangeDetector, 0.3, 0.02, binary=False), failures, runs)
    assert_mean_at_least(lengths, 50)
    assert lengths.mean() < 150  # it does alarm
    for kind, factor in ((bw.ChangeDetector, 4), (DoubleShare, 1)):
        broken = detector(kind, 0.3, factor * 0.02, binary=False)
        with pytest.raises(AssertionError):
            assert_mean_at_least(run_lengths(broken, failures, runs), 50)


def test_continuous_costs_keep_the_mean_run_length():
    runs = 400
    assert runs >= min_trials(promise=50, broken=34, spread=22)

    def beta(rng, n):
        return rng.beta(1.0, 3.0, n)

    right, broken = (detector(kind, 0.25, 0.02, binary=False) for kind in (bw.ChangeDetector, DoubleShare))
    lengths = run_lengths(right, beta, runs)
    assert_mean_at_least(lengths, 50)
    assert lengths.mean() < 150  # it does alarm
    with pytest.raises(AssertionError):
        assert_mean_at_least(run_lengths(broken, beta, runs), 50)
