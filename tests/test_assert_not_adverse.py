"""The gate for continuous integration: its level, its power, and what it prints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidLevel
from boundwatch.testing import assert_no_worse, assert_not_adverse

CERTIFICATE = bw.Certificate.from_held_out(1.0 * (np.arange(200) < 16), binary=True)
N = 40


def _failed(n, failures):
    return 1.0 * (np.arange(n) < failures)


def passes(failures, alpha, tail=None):
    return opens(assert_not_adverse, CERTIFICATE, _failed(N, failures), alpha=alpha, tail=tail)


def failure_rate(gate, rate):
    """Return exactly how often a gate fails when a policy fails at a rate."""
    counts = np.arange(N + 1)
    return binom.pmf(counts, N, rate)[[not gate(count) for count in counts]].sum()


LAB, NEW = 12, 8


def joint_rate(gate, lab_rate, rate):
    """Return exactly how often a gate fails, over the draw of the certificate's episodes and of new ones."""
    labs = [bw.Certificate.from_held_out(_failed(LAB, k), binary=True) for k in range(LAB + 1)]
    fails = np.array([[not gate(lab, _failed(NEW, k)) for k in range(NEW + 1)] for lab in labs])
    of_lab = binom.pmf(np.arange(LAB + 1), LAB, np.array(lab_rate)[:, None])
    of_new = binom.pmf(np.arange(NEW + 1), NEW, np.array(rate)[:, None])
    return np.einsum("ri,ij,rj->r", of_lab, fails, of_new)


def opens(gate, *arguments, **options):
    try:
        gate(*arguments, **options)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("alpha", [0.001, 0.2])
def test_a_policy_that_is_not_worse_fails_at_most_as_often_as_promised(alpha):
    rates = np.linspace(0, 1, 21)

    def calls_adverse(certificate, costs):
        try:
            assert_not_adverse(certificate, costs, alpha=alpha)
        except AssertionError as failed:
            return str(failed).startswith("ADVERSE")  # and not: too few episodes to judge
        return False

    wrong = joint_rate(lambda *given: not calls_adverse(*given), rates, rates)
    assert wrong.max() <= alpha + 0.005
    assert alpha < 0.1 or wrong.max() > 0.5 * alpha


def test_given_the_certificate_each_run_spends_alpha_and_jointly_it_spends_delta_too():
    alpha = 0.001
    given = failure_rate(lambda count: passes(count, alpha, "exact"), CERTIFICATE.upper)
    assert 0.1 * alpha < given <= alpha
    # Broken on purpose: the default read as if the certificate's delta had been paid once for all runs.
    assert failure_rate(lambda count: passes(count, alpha), CERTIFICATE.upper) > 5 * alpha
    assert failure_rate(lambda count: passes(count, alpha, "exact"), 0.5) > 0.95


def test_no_worse_given_the_certificate_keeps_alpha_at_its_lower_limit():
    margin, alpha = 0.3, 0.01

    def shown(count, **options):
        return opens(assert_no_worse, CERTIFICATE, _failed(N, count), margin=margin, alpha=alpha, **options)

    rate = CERTIFICATE.lower + margin
    assert 0.1 * alpha < 1 - failure_rate(lambda count: shown(count, tail="exact"), rate) <= alpha
    assert 1 - failure_rate(shown, rate) > 2 * alpha  # the default spends delta, too


def test_no_worse_is_shown_wrongly_at_most_as_often_as_promised():
    margin, alpha = 0.2, 0.1
    rates = np.linspace(0, 1 - margin, 21)

    def gate(certificate, costs):
        return opens(assert_no_worse, certificate, costs, margin=margin, alpha=alpha)

    passed = 1 - joint_rate(gate, rates, rates + margin)
    assert 0.3 * alpha < passed.max() <= alpha + 0.005
    # Broken on purpose: the mean of the new costs is within the margin of the old mean.
    naive = 1 - joint_rate(lambda old, costs: costs.mean() <= old.mean_cost + margin, rates, rates + margin)
    assert naive.max() > 0.4


def test_no_worse_can_be_shown():
    finding = assert_no_worse(CERTIFICATE, _failed(100, 8), margin=0.1)
    assert finding.no_worse
    assert finding.verdict is bw.Verdict.WITHIN
    with pytest.raises(AssertionError, match="not shown"):
        assert_no_worse(CERTIFICATE, _failed(10, 1), margin=0.05)


def test_a_worse_policy_fails():
    assert failure_rate(lambda count: passes(count, 0.05), 0.4) > 0.95


def test_a_naive_gate_does_not_keep_the_promise():
    """Failing when the mean is above the certified mean: wrong every other time."""
    assert failure_rate(lambda count: count / N <= CERTIFICATE.mean_cost, CERTIFICATE.mean_cost) > 0.3


def test_both_answers_have_the_evidence():
    with pytest.raises(AssertionError, match=r"^ADVERSE: [\s\S]*30 of 40 failed[\s\S]*at most 0\.015 "):
        bw.testing.assert_not_adverse(CERTIFICATE, _failed(N, 30), alpha=0.01)
    finding = assert_not_adverse(CERTIFICATE, [0, 0, 0, 1])
    assert (finding.verdict, finding.n) == (bw.Verdict.WITHIN, 4)
    assert assert_not_adverse(CERTIFICATE, [0] * 500).verdict is bw.Verdict.BENIGN


def test_so_few_episodes_that_it_could_never_fail_do():
    with pytest.raises(AssertionError, match=r"1 episode can never fail this check"):
        assert_not_adverse(CERTIFICATE, [0])
    vacuous = bw.Certificate.from_bounds(lower=0, upper=1, delta=0.01)
    with pytest.raises(AssertionError, match="1 episode can never fail this check"):
        assert_not_adverse(vacuous, [0.5])


def test_the_certificates_own_episodes_are_refused(tmp_path):
    (tmp_path / "lab.csv").write_text("success\n" + "yes\n" * 30 + "no\n" * 3)
    lab = bw.read_costs(tmp_path / "lab.csv")
    with pytest.raises(bw.errors.ProvenanceMismatch, match="costs that the certificate was made from"):
        assert_not_adverse(bw.Certificate.from_held_out(lab), lab)
    with pytest.raises(bw.errors.ProvenanceMismatch, match="costs that the certificate was made from"):
        assert_no_worse(bw.Certificate.from_held_out(lab), lab, margin=0.5)
    (tmp_path / "grown.csv").write_text("success\n" + "yes\n" * 30 + "no\n" * 9)
    grown = bw.read_costs(tmp_path / "grown.csv")
    with pytest.raises(bw.errors.ProvenanceMismatch, match="the first 33 of 39 are the costs that"):
        assert_not_adverse(bw.Certificate.from_held_out(lab), grown)
    with pytest.raises(bw.errors.ProvenanceMismatch, match=r"only the 6 after them \(their \.costs show"):
        bw.HypothesisTest(bw.Certificate.from_held_out(lab)).decide(grown)


def test_what_is_wrong_with_the_input_is_no_verdict():
    with pytest.raises(InvalidCost):
        assert_not_adverse(CERTIFICATE, [0.5])
    with pytest.raises(InvalidLevel):
        assert_not_adverse(CERTIFICATE, [0], alpha=0)


def test_the_gate_against_an_old_policy_opens_on_evidence_only():
    rng = np.random.default_rng(6)
    old, new, worse = ((rng.random(150) < rate).astype(float) for rate in (0.2, 0.2, 0.6))
    finding = bw.testing.assert_not_worse_than(new, old, margin=0.2)
    assert finding.no_worse
    assert finding.difference_upper <= 0.25
    with pytest.raises(AssertionError, match=r"not shown: the new policy costs at most 0\.2 more"):
        bw.testing.assert_not_worse_than(worse, old, margin=0.2)
    with pytest.raises(AssertionError, match="not shown"):  # too few to show anything
        bw.testing.assert_not_worse_than(new[:5], old[:5], margin=0.2)


def test_costs_that_are_0_or_1_so_far_are_no_promise():
    """Whoever adds trials must not get a table first and bets later: both would have a chance to err."""
    rng = np.random.default_rng(7)
    old, new = ((rng.random(400) < 0.1).astype(float) for _ in range(2))
    assert not bw.testing.assert_not_worse_than(new, old, margin=0.2).binary
    assert bw.testing.assert_not_worse_than(new, old, margin=0.2, binary=True).binary
    with pytest.raises(AssertionError, match="binary=True takes fewer pairs"):
        bw.testing.assert_not_worse_than(new[:5], old[:5], margin=0.2)
