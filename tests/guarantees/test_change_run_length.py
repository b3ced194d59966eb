"""The change detector's promises: exact over every binary sequence, and average run lengths by simulation."""

import itertools

import numpy as np
import pytest

import boundwatch as bw

METHODS = ["shiryaev-roberts", "cusum"]
DEPTH = 12


def first_alarms(detector: bw.ChangeDetector) -> dict[tuple[int, ...], int]:
    """The episode of the first alarm for every binary sequence of DEPTH costs that has one."""
    alarms = {}
    for costs in itertools.product((0, 1), repeat=DEPTH):
        detector.reset()
        finding = detector.update_many(costs)
        if finding.verdict is bw.Verdict.ADVERSE:
            alarms[costs] = finding.first_alarm
    return alarms


def alarm_probability(alarms, rate: float) -> np.ndarray:
    """P[an alarm within N episodes] for N = 1, …, DEPTH."""
    by_episode = np.zeros(DEPTH + 1)
    for costs, episode in alarms.items():
        by_episode[episode] += rate ** sum(costs) * (1 - rate) ** (DEPTH - sum(costs))
    return np.cumsum(by_episode)[1:]


@pytest.mark.parametrize("method", METHODS)
def test_false_alarms_within_n_episodes_are_at_most_n_alpha(method):
    cert = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=0.01, binary=True)
    detector = bw.ChangeDetector(cert, alpha_adverse=0.02, method=method)
    alarms = first_alarms(detector)
    promised = np.array([detector.false_alarm_probability(n) for n in range(1, DEPTH + 1)])
    for rate in (0.1, 0.2, 0.3):
        assert (alarm_probability(alarms, rate) <= promised).all()
    assert alarm_probability(alarms, 0.9)[-1] > 0.9  # power
    assert alarm_probability(alarms, 0.3)[-1] > 0.01  # not vacuous
    # Broken on purpose: the bound was 0.3, the world has 0.6.
    assert (alarm_probability(alarms, 0.6) > promised).any()


def run_lengths(cert: bw.Certificate, method: str, rate: float, *, runs: int, alpha: float) -> np.ndarray:
    rng = np.random.default_rng(31)
    lengths = np.empty(runs)
    detector = bw.ChangeDetector(cert, alpha_adverse=alpha, alpha_benign=1e-9, method=method)
    for run in range(runs):
        detector.reset()
        while detector.first_alarm is None:
            detector.update_many((rng.random(20) < rate).astype(float))
        lengths[run] = detector.first_alarm
    return lengths


def assert_mean_at_least(values: np.ndarray, promise: float) -> None:
    """Fail if the mean is so far below the promise that chance explains it with less than about 1e-6."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert values.mean() + 4.9 * error >= promise, (
        f"mean {values.mean():.1f} ± {error:.1f}, promised {promise}"
    )


def test_the_mean_run_length_to_a_false_alarm():
    cert = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=0.01, binary=True)
    lengths = run_lengths(cert, "shiryaev-roberts", 0.3, runs=700, alpha=0.02)
    assert_mean_at_least(lengths, 50)
    assert lengths.mean() < 150  # it does alarm
    with pytest.raises(AssertionError):  # the world is worse than the bound, and it is noticed
        assert_mean_at_least(run_lengths(cert, "shiryaev-roberts", 0.5, runs=700, alpha=0.02), 50)


def test_continuous_costs_keep_the_mean_run_length():
    rng = np.random.default_rng(32)
    cert = bw.Certificate.from_bounds(lower=0.0, upper=0.25, delta=0.01)
    lengths = []
    for _ in range(400):
        detector = bw.ChangeDetector(cert, alpha_adverse=0.02, alpha_benign=1e-9)
        while detector.first_alarm is None:
            detector.update_many(rng.beta(1.0, 3.0, 20))
        lengths.append(detector.first_alarm)
    assert_mean_at_least(np.array(lengths), 50)
