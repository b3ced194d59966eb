"""Verdicts on several tasks, with control over all of them."""

import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds.rate_difference import rate_difference_p_value
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting

COSTS = {"pick": [0, 0, 1, 0] * 25, "place": [0, 1] * 50, "pour": [0, 0, 0, 0, 1] * 20}


@pytest.fixture
def family():
    return bw.CertificateFamily.from_held_out(COSTS, delta=0.03, binary=True)


def test_verdicts(family):
    test = bw.FamilyTest(family)
    new = {"pour": [1] * 20, "pick": [0, 0, 0, 1] * 5, "place": [0] * 60}
    finding = test.decide(new)
    assert list(finding.tasks) == ["pick", "place", "pour"], "the family's order"
    assert finding.called(bw.Verdict.ADVERSE) == ["pour"]
    assert finding.called(bw.Verdict.BENIGN) == ["place"]
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.false_positive_rate == pytest.approx(0.05 + 0.015)
    assert json.loads(json.dumps(finding.to_dict(), allow_nan=False))["not_judged"] == []
    pour = finding.tasks["pour"]
    assert pour.shift_lower > 0
    assert pour.e_adverse is None
    assert test.decide({"place": [0] * 60}).verdict is bw.Verdict.BENIGN


def test_levels_of_any_kind_of_number_give_findings_for_json():
    level = np.float32(0.05)
    family = bw.CertificateFamily.from_held_out(COSTS, delta=level, binary=True)
    test = bw.FamilyTest(family, alpha_adverse=level, alpha_benign=level)
    finding = test.decide({task: [0, 1] * 4 for task in COSTS})
    assert json.loads(json.dumps(finding.to_dict())) == finding.to_dict()
    assert bw.CertificateFamily.from_dict(json.loads(json.dumps(family.to_dict()))) == family


def test_fewer_tasks_are_corrected_for_their_own_number(family):
    test = bw.FamilyTest(family)
    alone = test.decide({"pick": [1, 1, 1, 0]})
    assert alone.tasks["pick"].adjusted_adverse == alone.tasks["pick"].p_adverse
    assert alone.not_judged == ("place", "pour")
    assert alone.false_positive_rate == pytest.approx(0.05 + 0.005)
    both = test.decide({"pick": [1, 1, 1, 0], "place": [0, 1]})
    assert both.tasks["pick"].adjusted_adverse == pytest.approx(2 * alone.tasks["pick"].p_adverse)


def test_settings_that_do_not_fit(family):
    with pytest.raises(InvalidSetting, match="tail = 'magic' is unknown"):
        bw.FamilyTest(family, tail="magic")
    with pytest.raises(InvalidLevel, match="alpha_adverse = 0 is outside"):
        bw.FamilyTest(family, alpha_adverse=0)


def test_a_family_is_judged_jointly_only_if_every_certificate_keeps_its_costs(family):
    promised = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    mixed = bw.CertificateFamily({"pick": family["pick"], "sold": promised})
    with pytest.raises(InvalidSetting, match="'joint' needs a certificate from held-out costs"):
        bw.FamilyTest(mixed, tail="joint")
    found = bw.FamilyTest(mixed).decide({"pick": [1] * 8, "sold": [1] * 8})
    assert [found.tasks[task].tail for task in mixed] == ["joint", "exact"]
    assert found.false_positive_rate == pytest.approx(0.05 + 0.005 + 0.01)
    p_values = rate_difference_p_value(100, 25, 8, 8), 0.2**8
    assert [found.tasks[task].p_adverse for task in mixed] == pytest.approx(p_values)
    doubtful = bw.CertificateFamily.from_held_out(COSTS, delta=0.98, binary=True)
    certain = bw.FamilyTest(doubtful, alpha_adverse=0.6).decide({task: [1] * 5 for task in doubtful})
    assert {each.tail for each in certain.tasks.values()} == {"exact"}, "totals of 1 and more promise nothing"


def test_costs_that_do_not_fit(family):
    test = bw.FamilyTest(family)
    with pytest.raises(
        InvalidSetting, match="task 'stir' has no certificate, only 'pick', 'place', 'pour'; certify"
    ):
        test.decide({"pick": [0], "stir": [0]})
    with pytest.raises(InvalidCost, match=r"task 'place': costs\[0\] = 0.5 is not 0 or 1"):
        test.decide({"pick": [0], "place": [0.5]})
    with pytest.raises(InvalidCost, match="costs is empty"):
        test.decide({})


def test_many_tasks_are_judged_as_each_by_itself():
    rng = np.random.default_rng(9)
    costs = {f"t{i}": rng.beta(2, 6, int(rng.integers(1, 9))) for i in range(30)}
    family = bw.CertificateFamily(
        {
            task: bw.Certificate.from_bounds(lower=0.1, upper=0.15 + i / 60, delta=0.01, binary=i % 3 == 0)
            for i, task in enumerate(costs)
        }
    )
    new = {task: values.round() if family[task].binary else values for task, values in costs.items()}
    found = bw.FamilyTest(family).decide(new).tasks
    could = bw.FamilyTest(family).could_alarm({task: len(values) for task, values in new.items()})
    for task, each in found.items():
        certificate = family[task]
        tail = "exact" if certificate.binary else "betting"
        alone = bw.HypothesisTest(certificate, alpha_adverse=0.05 / 30, alpha_benign=0.05 / 30, tail=tail)
        expected = alone.decide(new[task])
        for name in ("n", "mean_cost", "p_adverse", "p_benign", "shift_lower", "shift_upper"):
            assert getattr(each, name) == pytest.approx(getattr(expected, name), abs=1e-12), name
        worst = bw.HypothesisTest(certificate, tail=tail).decide([1] * each.n)
        assert could[task] == (worst.verdict is bw.Verdict.ADVERSE)
    assert set(could.values()) == {True, False}
