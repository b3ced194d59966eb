"""The algebra of Algorithms 1 and 2: exclusive verdicts, duality, order, batches, refusals."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting

levels = st.floats(0.001, 0.98)
datasets = st.lists(st.floats(0, 1), min_size=1, max_size=30)
intervals = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)
EXTERNAL = bw.Certificate.from_bounds(lower=0.1, upper=0.22216, delta=0.01)
tails = pytest.mark.parametrize("tail", TAILS)


def certificate(interval, tail):
    return bw.Certificate.from_bounds(
        lower=interval[0], upper=interval[1], delta=1e-4, binary=tail == "exact"
    )


def of_kind(costs, tail):
    return np.round(costs) if tail == "exact" else np.asarray(costs)


@tails
@given(intervals, datasets, levels, levels)
def test_lemma_1_and_2_exactly_one_verdict(tail, interval, costs, a, b):
    cert, costs = certificate(interval, tail), of_kind(costs, tail)
    test = bw.HypothesisTest(cert, alpha_adverse=a, alpha_benign=b, tail=tail).decide(costs)
    assert test.verdict is implied(test.p_adverse <= a, test.p_benign <= b)
    interval = bw.ConfidenceInterval(cert, false_positive_rate=a, false_negative_rate=b, tail=tail)
    ci = interval.decide(costs)
    assert ci.verdict is implied(ci.p_adverse < interval.levels[0], ci.p_benign <= interval.levels[1])
    assert not (ci.shift_lower > 1e-12 and ci.shift_upper <= -1e-12)


def implied(adverse, benign):
    """The one verdict that two declarations leave; both at once would break the lemmas."""
    assert not (adverse and benign)
    return bw.Verdict.ADVERSE if adverse else bw.Verdict.BENIGN if benign else bw.Verdict.WITHIN


def test_the_printed_algorithm_is_not_exhaustive():
    """Erratum: with alpha_A and alpha_B swapped in the last branch, a dataset may get no verdict at all."""
    finding = bw.HypothesisTest(EXTERNAL, alpha_adverse=0.01, alpha_benign=0.3, tail="hoeffding").decide(
        [0.55] * 10
    )
    printed = [
        finding.p_adverse <= 0.01,
        finding.p_benign <= 0.3,
        finding.p_adverse > 0.3 and finding.p_benign > 0.01,
    ]
    assert printed == [False, False, False]
    assert finding.verdict is bw.Verdict.WITHIN


@tails
@given(intervals, datasets, levels)
def test_tests_and_intervals_are_dual(tail, interval, costs, level):
    """A p-value at the level means a limit at the bound, up to rounding."""
    cert, costs = certificate(interval, tail), of_kind(costs, tail)
    finding = bw.HypothesisTest(cert, alpha_adverse=level, alpha_benign=level, tail=tail).decide(costs)
    if abs(np.log(max(finding.p_adverse, 1e-300) / level)) > 1e-6:
        # Limits are rounded outward: one of 1e-20 above a bound of 0 becomes 0.
        assert (finding.p_adverse <= level) == (finding.shift_lower > 0) or abs(finding.shift_lower) < 1e-12
    if abs(np.log(max(finding.p_benign, 1e-300) / level)) > 1e-6:
        assert (finding.p_benign <= level) == (finding.shift_upper < 0) or abs(finding.shift_upper) < 1e-12


@tails
@given(intervals, datasets)
def test_order_does_not_matter(tail, interval, costs):
    cert, costs = certificate(interval, tail), of_kind(costs, tail)
    detector = bw.HypothesisTest(cert, tail=tail)
    one, other = detector.decide(costs), detector.decide(costs[::-1])
    assert one.p_adverse == pytest.approx(other.p_adverse, rel=1e-9)
    assert one.shift_lower == pytest.approx(other.shift_lower, abs=1e-9)


@tails
@given(intervals, datasets, levels, levels)
def test_a_smaller_level_declares_no_more(tail, interval, costs, one, other):
    cert, costs = certificate(interval, tail), of_kind(costs, tail)
    small, large = sorted((one, other))
    strict = bw.HypothesisTest(cert, alpha_adverse=small, alpha_benign=small, tail=tail).decide(costs)
    loose = bw.HypothesisTest(cert, alpha_adverse=large, alpha_benign=large, tail=tail).decide(costs)
    assert strict.verdict in (bw.Verdict.WITHIN, loose.verdict)


@tails
@pytest.mark.parametrize("detector", [bw.HypothesisTest, bw.ConfidenceInterval])
def test_many_datasets_at_once_are_many_decisions(tail, detector):
    costs = of_kind(np.random.default_rng(2).random((50, 12)), tail)
    judge = detector(certificate((0.15, 0.2), tail), tail=tail)
    many = judge.decide_many(costs)
    for i, row in enumerate(costs):
        one = judge.decide(row)
        assert one.verdict == many.verdict[i]
        for name in ("p_adverse", "p_benign", "shift_lower", "shift_upper", "mean_cost"):
            assert getattr(one, name) == pytest.approx(getattr(many, name)[i], rel=1e-12)
    assert set(many.verdict) >= {"adverse", "within"}


def test_the_papers_harder_environments():
    """Ten flights with a mean cost of 0.5123 against 0.22216: 1 - p = 0.814, Delta C_A = -0.111."""
    costs = np.full(10, 0.5123)
    test = bw.HypothesisTest(EXTERNAL, tail="hoeffding").decide(costs)
    assert round(1 - test.p_adverse, 3) == 0.814
    assert test.false_positive_rate == pytest.approx(0.06)  # alpha plus delta: erratum 7
    ci = bw.ConfidenceInterval(EXTERNAL, tail="hoeffding")
    assert ci.levels == pytest.approx((0.04, 0.04))
    assert round(ci.decide(costs).shift_lower, 3) == -0.111
    assert ci.decide(costs).verdict is bw.Verdict.WITHIN
    assert ci.decide(costs).false_positive_rate == pytest.approx(0.05)


def test_ten_trials_cannot_show_a_benign_shift_by_hoeffding():
    """Erratum: gamma = 0.401 exceeds the lower bound of the drone's certificate, whatever the costs."""
    cert = bw.Certificate.from_bounds(lower=0.27, upper=0.335, delta=0.01)
    best = np.zeros(50)
    assert bw.ConfidenceInterval(cert, tail="hoeffding").decide(best[:10]).verdict is bw.Verdict.WITHIN
    assert bw.ConfidenceInterval(cert, tail="hoeffding").decide(best).verdict is bw.Verdict.BENIGN


def test_the_default_tail_follows_the_kind_of_cost():
    assert bw.HypothesisTest(EXTERNAL).decide([0.5, 0.2]).tail == "betting"
    binary = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    assert bw.ConfidenceInterval(binary).decide([0, 1]).tail == "exact"


def test_refusals():
    with pytest.raises(InvalidLevel, match="is already spent by the certificate's delta"):
        bw.ConfidenceInterval(EXTERNAL, false_positive_rate=0.01)
    with pytest.raises(InvalidSetting, match="needs a certificate for binary costs"):
        bw.ConfidenceInterval(EXTERNAL, tail="exact")
    with pytest.raises(InvalidCost, match=r"costs\[1\] = 1.5 is outside \[0, 1\]"):
        bw.HypothesisTest(EXTERNAL).decide([0.1, 1.5])
    with pytest.raises(InvalidCost, match="costs is empty"):
        bw.HypothesisTest(EXTERNAL).decide([])


@pytest.mark.parametrize("number", [float, np.float32, np.float64])
def test_a_finding_is_plain_json(number):
    finding = bw.HypothesisTest(EXTERNAL, alpha_adverse=number(0.05)).decide([0.5] * 10)
    json.dumps(bw.ConfidenceInterval(EXTERNAL, false_positive_rate=number(0.05)).decide([0.5]).to_dict())
    assert json.loads(json.dumps(finding.to_dict()))["verdict"] == finding.verdict.value


def test_the_fewest_failures_that_alarm_are_those_that_decide_calls_adverse():
    for lab in ([0] * 20, [0] * 14 + [1] * 6, [0] * 3 + [1] * 3):
        test = bw.HypothesisTest(bw.Certificate.from_held_out(lab, binary=True))
        for n in (1, 2, 3, 5, 9, 30):
            alarms = [k for k in range(n + 1) if called(test, k, n) is bw.Verdict.ADVERSE]
            assert test.fewest_adverse(n) == min(alarms, default=None)


def called(test, failures, n):
    return test.decide([1] * failures + [0] * (n - failures)).verdict
