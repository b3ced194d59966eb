"""Planning before there is a certificate: powers by enumeration, splits, answers where nothing will do."""

import json
from bisect import bisect_left

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.errors import InvalidSetting
from boundwatch.planning.before_certificate import Question


@pytest.mark.parametrize(
    ("name", "cost", "new_cost", "margin"),
    [("worse", 0.1, 0.5, 0.0), ("better", 0.5, 0.1, 0.0), ("no worse", 0.1, 0.1, 0.2)],
)
def test_powers_are_those_of_the_test_of_two_rates(name, cost, new_cost, margin):
    lab, site = 16, 9
    question = Question(name, cost, new_cost, margin, 0.05, 0.005)
    power = 0.0
    for k, before in enumerate(binom.pmf(np.arange(lab + 1), lab, cost)):
        for j, after in enumerate(binom.pmf(np.arange(site + 1), site, new_cost)):
            series = (lab, k, site, j) if name == "worse" else (site, j, lab, k)
            power += before * after * (rate_difference_p_value(*series, -margin) <= 0.055)
    assert question.power(lab, site).power == pytest.approx(power)
    assert power > 0.1


def test_with_very_many_trials_the_power_of_a_margin_is_close_and_does_not_jump():
    question, lab, site = Question("no worse", 0.05, 0.05, 0.08, 0.05, 0.005), 1100, 120
    chance, power = binom.pmf(np.arange(site + 1), site, 0.05), 0.0
    for seen in np.flatnonzero(chance > 1e-4).tolist():
        fewest = bisect_left(
            range(lab + 1), True, key=lambda k: rate_difference_p_value(site, seen, lab, k, -0.08) <= 0.055
        )
        power += chance[seen] * binom.sf(fewest - 1, lab, 0.05)
    planned = question.power(lab, site)
    assert not planned.exact
    assert planned.power == pytest.approx(power, abs=0.02)
    last, first = (Question("no worse", 0.1, 0.1, 0.04, 0.05, 0.005).power(n, n) for n in (1047, 1048))
    assert (last.exact, first.exact) == (True, False)
    assert first.power == pytest.approx(last.power, abs=0.01)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5, 0.9])
def test_where_nothing_changed_the_answer_is_wrong_at_most_at_the_rate(rate):
    for name, margin in (("worse", 0.0), ("better", 0.0), ("no worse", 0.05)):
        question = Question(name, rate, rate + margin, margin, 0.05, 0.005)
        assert question.power(40, 25).power <= 0.055
        # The broken twin has a margin that it does not admit to.
        careless = Question(name, rate, min(rate + margin + 0.3, 1.0), margin, 0.05, 0.005)
        assert name != "worse" or rate == 0.9 or careless.power(40, 25).power > 0.055


def test_a_given_number_in_the_lab():
    plan = bw.plan_trials(cost=0.1, new_cost=0.5, lab_trials=30, trials=10)
    booked = plan.bookings[0.9]
    assert booked.lab == 30
    assert booked.exact
    assert booked.power >= 0.9
    question = Question("worse", 0.1, 0.5, 0.0, 0.05, 0.005)
    assert question.power(30, booked.site - 1).power < 0.9
    assert plan.asked.power == question.power(30, 10).power
    assert (plan.asked.lab, plan.asked.site) == (30, 10)
    json.dumps(plan.to_dict(), allow_nan=False)


def test_the_split_with_the_fewest_in_all():
    plan = bw.plan_trials(cost=0.1, new_cost=0.6)
    best = plan.recommended
    question = Question("worse", 0.1, 0.6, 0.0, 0.05, 0.005)
    for lab in (best.lab // 2, 2 * best.lab):
        other = question.fewest_at_site(lab, 0.9)
        assert other is None or other.lab + other.site >= best.lab + best.site - 1


def test_there_is_always_an_answer():
    few = bw.plan_trials(cost=0.1, new_cost=0.3, lab_trials=6)
    close = bw.plan_trials(cost=0.05, new_cost=0.0501)
    assert few.recommended is close.recommended is None
    assert "too few" in few.recommendation
    assert "too close" in close.recommendation
    assert not bw.plan_trials(cost=0.05, new_cost=0.07).recommended.exact
    assert bw.plan_trials(cost=0.1, new_cost=0.1, margin=0.3).question == "no worse"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"cost": 0.1, "new_cost": 0.1}, "no shift to notice"),
        ({"cost": 0.1, "new_cost": 0.4, "margin": 0.2}, "is not below cost"),
        ({"cost": 0.1, "new_cost": 1.4}, "new_cost = 1.4 is not an expected cost"),
        ({"cost": 0.1, "new_cost": 0.3, "lab_trials": 0}, "lab_trials = 0; give whole numbers"),
    ],
)
def test_bad_input(settings, complaint):
    with pytest.raises(InvalidSetting, match=complaint):
        bw.plan_trials(**settings)


def test_the_plan_is_for_what_check_does():
    lab, site = 30, 12
    question = Question("worse", 0.1, 0.5, 0.0, 0.05, 0.005)
    power = 0.0
    for k, chance in enumerate(binom.pmf(np.arange(lab + 1), lab, 0.1)):
        if chance < 1e-4:
            continue
        certificate = bw.Certificate.from_held_out([1] * k + [0] * (lab - k), binary=True)
        datasets = (np.arange(site) < np.arange(site + 1)[:, None]).astype(float)
        adverse = bw.HypothesisTest(certificate).decide_many(datasets).verdict == bw.Verdict.ADVERSE
        power += chance * float(binom.pmf(np.arange(site + 1), site, 0.5)[adverse].sum())
    assert question.power(lab, site).power == pytest.approx(power, abs=1e-3)


def test_the_trials_of_a_campaign_are_not_pooled():
    campaign = bw.Campaign(binary=True).update_many([0] * 46 + [1] * 4)
    finding = bw.HypothesisTest(campaign.certificate()).decide([1] * 6 + [0] * 4)
    assert finding.tail == "exact"
    fixed = bw.Certificate.from_held_out([0] * 46 + [1] * 4, binary=True)
    assert bw.HypothesisTest(fixed).decide([1] * 6 + [0] * 4).tail == "joint"
