"""Streams that share a certificate: any false alarm, over the draw of the lab and of all of them, exactly."""

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds import clopper_pearson_upper
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.detectors.mixture import alarm_counts, exact_threshold
from boundwatch.watching.loop import build_detectors

ALPHA, DELTA = 0.04, 0.005  # of one side
LAB, HORIZON = 50, 250


def certificate(failures):
    costs = (np.arange(LAB) < failures).astype(float)
    return bw.Certificate.from_held_out(costs, binary=True, delta_upper=DELTA, delta_lower=DELTA)


def divided(streams, failures):
    """What `watch` builds for one of the streams."""
    family = bw.CertificateFamily.shared(certificate(failures), map(str, range(streams)), by="robot")
    return build_detectors(family, "sequential-test", {"alpha_adverse": ALPHA, "alpha_benign": ALPHA})["0"]


def undivided(streams, failures):
    """The broken twin: each stream has its share of alpha, and the whole delta."""
    share = ALPHA / streams
    return bw.SequentialTest(certificate(failures), alpha_adverse=share, alpha_benign=share)


def alarm_chances(lines, rate):
    """P[alarm within the horizon], for each line of the counts that alarm, at one rate of what is counted."""
    alive, rows = np.zeros((len(lines), HORIZON + 2)), np.arange(len(lines))
    alive[:, 0] = 1.0
    for t in range(1, HORIZON + 1):
        alive[:, 1 : t + 1] = (1 - rate) * alive[:, 1 : t + 1] + rate * alive[:, :t]
        alive[:, 0] *= 1 - rate
        alive[rows, np.minimum(lines[:, t], t + 1)] = 0.0
    return 1 - alive[:, : HORIZON + 1].sum(axis=1)


def line_of(test, side):
    """The counts of a side that alarm, after 0, 1, … trials."""
    evidence = test._evidence
    return alarm_line(*evidence._references[side], evidence.levels[side]).needed(HORIZON)[: HORIZON + 1]


def any_alarm(build, streams, side, rates):
    """The largest chance, over some common rates, that any of the streams alarms wrongly."""
    tests = [build(streams, failures) for failures in range(LAB + 1)]
    lines = np.array([line_of(test, side) for test in tests])
    found = []
    for rate in rates:
        # Given the lab, streams of one rate are independent.
        of_one = alarm_chances(lines, 1 - rate if side else rate)
        found.append(binom.pmf(np.arange(LAB + 1), LAB, rate) @ (1 - (1 - of_one) ** streams))
    return max(found)


@pytest.mark.parametrize(
    ("streams", "side", "broken"), [(2, 0, 1.0), (20, 0, 2.0), (20, 1, 2.0), (100, 0, 4.0)]
)
def test_any_false_alarm_of_streams_that_share_a_certificate(streams, side, broken):
    total, rates = ALPHA + DELTA, np.linspace(0.04, 0.96, 24)
    assert 0.5 * total < any_alarm(divided, streams, side, rates) <= total
    assert any_alarm(undivided, streams, side, rates) > broken * total


@pytest.mark.parametrize(
    ("old", "new", "trials", "streams", "at_least"),
    [(0.1, 0.5, 30, 20, 0.75), (0.1, 0.3, 100, 5, 0.5), (0.1, 0.3, 100, 100, 0.17)],
)
def test_dividing_delta_finds_more_than_the_certified_limits(old, new, trials, streams, at_least):
    """The other valid way: limits that fail for all streams at once, so that delta is spent once."""
    labs = np.flatnonzero(binom.pmf(np.arange(LAB + 1), LAB, old) > 1e-6)  # the others find nothing
    bets, uppers = Bets.for_costs(binary=True), clopper_pearson_upper(labs, LAB, DELTA).tolist()
    share = ALPHA / streams
    jointly = np.array([line_of(divided(streams, int(k)), 0) for k in labs])
    by_limits = np.array([alarm_counts(bets, u, np.log(exact_threshold(u, share)), HORIZON) for u in uppers])
    powers = []
    for lines in (jointly, by_limits):
        lines[:, trials + 1 :] = HORIZON + 1  # nothing alarms later
        powers.append(binom.pmf(labs, LAB, old) @ alarm_chances(lines, new))
    assert powers[0] >= at_least
    assert powers[0] > 2 * powers[1]


@pytest.mark.parametrize("binary", [True, False])
def test_all_streams_together_spend_each_delta_once(binary):
    first, second = (bw.Certificate.from_held_out([0.0, 1.0, 0.0] * k, binary=binary) for k in (9, 11))
    taken_over = bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.02, binary=binary)
    family = bw.CertificateFamily({"a": first, "b": second, "c": first, "d": first, "e": taken_over})
    detectors = build_detectors(family, "sequential-test", {})
    spent = [test._constant["false_positive_rate"] for name, test in detectors.items() if name != "e"]
    assert spent == pytest.approx([0.008 + 0.005 / 3, 0.013, 0.008 + 0.005 / 3, 0.008 + 0.005 / 3])
    assert sum(spent) + 0.008 + taken_over.delta_upper == pytest.approx(0.04 + family.delta_upper)
    for name, test in detectors.items():
        if name != "e":
            assert test._evidence.levels[0] == test._constant["false_positive_rate"]
    # Limits fail for all streams at once: there each has the whole delta.
    limits = build_detectors(bw.CertificateFamily.shared(taken_over, ["a", "b"]), "sequential-test", {})
    assert (
        limits["a"].thresholds
        == bw.SequentialTest(taken_over, alpha_adverse=0.02, alpha_benign=0.02).thresholds
    )
    assert limits["a"].update(1.0).false_positive_rate == 0.02 + taken_over.delta_upper
