"""New episodes judged by a machine and audited: levels and power by enumeration, with broken twins."""

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.audit import (
    Audited,
    Judged,
    RateCurve,
    audit_p_value,
    combined,
    difference_lower,
    difference_p_value,
)
from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.certificates.record import AuditRecord
from boundwatch.errors import BoundwatchError
from boundwatch.evaluation.audit import allocation

N, LABELS, LAB = 12, 6, 10
ALPHA = 0.1
JUDGES = [(0.9, 0.1), (0.5, 0.5), (0.2, 0.8), (1.0, 1.0), (0.0, 0.6)]
"""How often a judge calls failures, and successes, failures: good, useless, inverted, biased, blind."""


@cache
def outcomes(n=N, labels=LABELS):
    """Every outcome of an audit: how many episodes were judged, and drawn, and how many of these failed."""
    return [
        Audited(judged, drawn, Judged(*failures))
        for calls in range(n + 1)
        for judged in [Judged(n - calls, calls)]
        for drawn in [allocation(judged, labels)]
        for failures in product(range(drawn.passed + 1), range(drawn.failed + 1))
    ]


@cache
def audits(n=N, labels=LABELS):
    return [RateCurve.of_audit(each, ALPHA) for each in outcomes(n, labels)]


def chances(rate, judge, n=N, labels=LABELS):
    """The probability of every such outcome if episodes fail at a rate."""
    called = rate * judge[0] + (1 - rate) * judge[1]
    each = [rate * (1 - judge[0]) / max(1 - called, 1e-12), rate * judge[0] / max(called, 1e-12)]
    judged, drawn, failures = np.moveaxis(np.array(outcomes(n, labels)), 1, 0)
    of_labels = binom.pmf(failures, drawn, np.minimum(each, 1)).prod(axis=1)
    return binom.pmf(judged[:, 1], n, called) * of_labels


@cache
def against_lab(which, n=N, labels=LABELS, lab=LAB):
    """What is found for every outcome of trials in the lab (columns) and of an audit (rows)."""
    labs = [RateCurve.of_counts(lab, k) for k in range(lab + 1)]
    return np.array([[which(old, new) for old in labs] for new in audits(n, labels)])


def worst(rejected, shift, n=N, labels=LABELS):
    """The largest probability of a rejection, if the new rate is that of the lab plus a shift."""
    most, size = 0.0, rejected.shape[1] - 1
    for rate, judge in product(np.linspace(0.05, 0.95, 10), JUDGES):
        if 0 <= rate + shift <= 1:
            lab = binom.pmf(np.arange(size + 1), size, rate)
            most = max(most, float(chances(rate + shift, judge, n, labels) @ rejected @ lab))
    return most


@cache
def beside_lab():
    """The p-value of every outcome of both, by the one test of both."""
    tests = [partial(rate_difference_p_value, LAB, k, N) for k in range(LAB + 1)]
    return np.array([[audit_p_value(each, ALPHA, LAB, test) for test in tests] for each in outcomes()])


@pytest.mark.parametrize("alpha", [0.05, ALPHA, 0.3])
def test_an_audit_is_called_worse_than_the_lab_at_its_level_whatever_the_judge(alpha):
    for p_values in (beside_lab(), against_lab(difference_p_value)):
        assert worst(p_values <= alpha, 0.0) <= alpha


def test_it_is_called_no_worse_by_more_than_a_margin_at_its_level():
    p_values = against_lab(lambda lab, new: difference_p_value(lab.mirrored(), new.mirrored(), -0.2))
    assert worst(p_values <= ALPHA, 0.2) <= ALPHA


def test_limits_on_the_shift_hold():
    small = 8, 4
    lower = against_lab(lambda lab, new: difference_lower(lab, new, ALPHA), *small, 7)
    for shift in (-0.2, 0.0, 0.3):
        assert worst(lower > shift, shift, *small) <= ALPHA
    assert worst(lower > 0, 0.9, *small) > 0.5


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.8])
def test_limits_on_the_rate_hold_and_are_not_idle(rate):
    lower = np.array([curve.lower(ALPHA) for curve in audits()])
    upper = np.array([curve.upper(ALPHA) for curve in audits()])
    for judge in JUDGES:
        weights = chances(rate, judge)
        assert weights @ (lower > rate) <= ALPHA
        assert weights @ (upper < rate) <= ALPHA
    assert upper.min() < 0.45


def test_it_has_power():
    lab = binom.pmf(np.arange(LAB + 1), LAB, 0.05)
    weights = chances(0.9, (0.95, 0.05))
    assert weights @ (against_lab(difference_p_value) <= ALPHA) @ lab > 0.6
    assert weights @ (beside_lab() <= ALPHA) @ lab > 0.8


def test_the_judge_taken_at_its_word_fails_this_test():
    """A judge that was right in the lab calls half of the successes failures in the new place."""
    labs = [RateCurve.of_counts(LAB, k) for k in range(LAB + 1)]
    believed = [difference_p_value(lab, RateCurve.of_counts(N, k)) for k in range(N + 1) for lab in labs]
    rejected = np.reshape(believed, (N + 1, LAB + 1)) <= ALPHA
    new = binom.pmf(np.arange(N + 1), N, 0.1 * 0.95 + 0.9 * 0.5)
    assert new @ rejected @ binom.pmf(np.arange(LAB + 1), LAB, 0.1) > 3 * ALPHA


def test_two_p_values_together_keep_their_level_and_multiplied_they_do_not():
    """Uniform ones on a fine grid: the rule is a sum over cells, each with its largest value."""
    cells = (np.arange(400) + 1) / 400
    first, second = np.meshgrid(cells, cells)
    for slopes in [(1.0,), (0.3, 0.5), (1.0, 2.0, 4.0)]:
        for alpha in (0.01, 0.05, 0.3):
            assert (combined(first, second, slopes) <= alpha).mean() <= alpha
        assert (combined(first, second, slopes) <= 0.05).mean() > 0.04
    assert (first * second <= 0.05).mean() > 0.15


def test_the_labels_decide_and_the_judge_does_not():
    cert = bw.Certificate.from_held_out([0] * 90 + [1] * 10, binary=True)
    test = bw.HypothesisTest(cert, margin=0.1)
    worse = test.decide(AuditRecord(Audited(Judged(300, 0), Judged(50, 0), Judged(25, 0))))
    assert (worse.verdict, worse.tail, worse.n, worse.labels) == (bw.Verdict.ADVERSE, "joint", 300, 50)
    assert worse.shift_lower > 0.15
    assert worse.no_worse is False
    fine = test.decide(AuditRecord(Audited(Judged(0, 300), Judged(0, 200), Judged(0, 2))))
    assert (fine.verdict, fine.no_worse) == (bw.Verdict.BENIGN, True)
    assert fine.shift_upper < 0


def test_limits_that_were_proved_elsewhere_and_audits_at_home_are_compared_too():
    seen = Audited(Judged(800, 200), Judged(40, 10), Judged(20, 9))
    outside = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    finding = bw.HypothesisTest(outside).decide(AuditRecord(seen))
    assert (finding.verdict, finding.tail) == (bw.Verdict.ADVERSE, "exact")
    assert finding.p_adverse < 0.05 < finding.p_benign
    home = bw.Audit(np.repeat([0.0, 1.0], [900, 100]), seed=3)
    at_home = home.certificate({place: float(home.judged[place]) for place in home.draw(60)})
    finding = bw.HypothesisTest(at_home).decide(AuditRecord(seen))
    assert (finding.verdict, finding.tail) == (bw.Verdict.ADVERSE, "joint")


SMALL = 6, 4


@cache
def two_audits(side):
    """The p-value of "the second is not worse (better)" for every pair of outcomes of two small audits."""
    curves = [curve.mirrored() if side else curve for curve in audits(*SMALL)]
    return np.array([[difference_p_value(a, b) for b in curves] for a in curves])


@pytest.mark.parametrize("side", [0, 1])
def test_two_audits_are_told_apart_at_their_level_whatever_the_judges(side):
    for rate, judge, other in product((0.05, 0.2, 0.5, 0.8), JUDGES, JUDGES):
        both = [chances(rate, each, *SMALL) for each in (judge, other)]
        assert both[0].sum() == pytest.approx(1)
        assert both[0] @ (two_audits(side) <= ALPHA) @ both[1] <= ALPHA


def test_two_policies_are_compared_by_the_labels_of_their_audits():
    a = AuditRecord(Audited(Judged(500, 500), Judged(50, 50), Judged(2, 1)))
    b = AuditRecord(Audited(Judged(1000, 0), Judged(80, 0), Judged(35, 0)))
    found = bw.compare_once({"act": a, "dp": b}, margin=0.1)
    assert (found.verdict.value, found.no_worse, found.method) == ("a-better", False, "audit")
    assert 0.2 < found.difference_lower < 0.41 < found.difference_upper
    assert bw.compare_once({"act": b, "dp": a}).verdict.value == "b-better"
    assert bw.compare_once({"act": a, "dp": a}).verdict.value == "undecided"
    assert bw.compare_once({"act": a, "dp": [0] * 60 + [1] * 40}).verdict.value == "a-better"
    with pytest.raises(BoundwatchError, match="single trials"):
        bw.compare_once({"act": a, "dp": bw.Episodes([0.5, 0.2])})
    with pytest.raises(BoundwatchError, match="without partners"):
        bw.compare_once({"act": a, "dp": b}, pair_by={"act": [1], "dp": [1]})


def test_costs_that_are_not_failures_and_other_tails_are_refused():
    cert = bw.Certificate.from_held_out([0] * 9 + [1], binary=True)
    audit = bw.Audit([0.2, 0.5, 0.7], seed=1)
    audit.draw(1)
    with pytest.raises(BoundwatchError, match="not 0 or 1"):
        bw.HypothesisTest(cert).decide(audit.record({audit.drawn[0]: 0.3}))
    record = AuditRecord(Audited(Judged(5, 5), Judged(2, 2), Judged(1, 1)))
    with pytest.raises(BoundwatchError, match="tail"):
        bw.HypothesisTest(cert, tail="kl").decide(record)
    with pytest.raises(BoundwatchError, match="certificate"):
        bw.HypothesisTest(bw.Certificate.from_held_out([0.2, 0.4])).decide(record)


def test_an_audit_spends_alpha_and_the_delta_of_its_side():
    cert = bw.Certificate.from_held_out([0] * 90 + [1] * 10, binary=True, delta=0.04)
    test = bw.HypothesisTest(cert, alpha_adverse=0.05, alpha_benign=0.1)
    found = test.decide(AuditRecord(Audited(Judged(100, 0), Judged(20, 0), Judged(2, 0))))
    assert (found.false_positive_rate, found.false_negative_rate) == pytest.approx((0.07, 0.12))
