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


@pytest.mark.parametrize("control", ["holm", "e-bh"])
def test_verdicts(family, control):
    test = bw.FamilyTest(family, control=control)
    new = {"pour": [1] * 20, "pick": [0, 0, 0, 1] * 5, "place": [0] * 60}
    finding = test.decide(new)
    assert list(finding.tasks) == ["pick", "place", "pour"], "the family's order"
    assert finding.called(bw.Verdict.ADVERSE) == ["pour"]
    assert finding.called(bw.Verdict.BENIGN) == ["place"]
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.false_positive_rate == pytest.approx(0.05 + 0.015)
    assert json.loads(json.dumps(finding.to_dict(), allow_nan=False))["control"] == control
    pour = finding.tasks["pour"]
    assert pour.shift_lower > 0
    assert (pour.e_adverse is None) == (control == "holm")
    assert test.decide({"place": [0] * 60}).verdict is bw.Verdict.BENIGN


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_e_values_are_those_of_the_sequential_test(binary, mean):
    rng = np.random.default_rng(6)
    costs = (rng.random(300) < mean).astype(float) if binary else rng.beta(4 * mean, 4 * (1 - mean), 300)
    certificate = bw.Certificate.from_bounds(lower=0.2, upper=0.35, delta=0.01, binary=binary)
    family = bw.CertificateFamily({"a": certificate})
    found = bw.FamilyTest(family, control="e-bh").decide({"a": costs}).tasks["a"]
    test = bw.SequentialTest(certificate, alpha_adverse=0.05, alpha_benign=0.05)
    stream = [test.update(cost) for cost in costs]
    for side in ("adverse", "benign"):
        e_values = [getattr(each, f"e_{side}") for each in stream]
        assert getattr(found, f"e_{side}") == pytest.approx(e_values[-1], rel=1e-9)
        assert getattr(found, f"p_{side}") == pytest.approx(1 / max(1, *e_values), rel=1e-9)
    assert found.shift_lower == pytest.approx(stream[-1].shift_lower, abs=1e-9)
    assert found.shift_upper == pytest.approx(stream[-1].shift_upper, abs=1e-9)


def test_e_bh_computes_no_alarm_thresholds(family, monkeypatch):
    """They are exact, take up to a second a task, and e-BH does not use them."""

    def refuse(*_):
        raise AssertionError("an alarm threshold was computed")

    monkeypatch.setattr("boundwatch.detectors.mixture.crossing_probability", refuse)
    finding = bw.FamilyTest(family, alpha_adverse=0.0421, control="e-bh").decide(
        {"pour": [1] * 20, "pick": [0, 1] * 10, "place": [0] * 60}
    )
    assert finding.called(bw.Verdict.ADVERSE) == ["pour"]


@pytest.mark.parametrize("control", ["holm", "e-bh"])
def test_levels_of_any_kind_of_number_give_findings_for_json(control):
    level = np.float32(0.05)
    family = bw.CertificateFamily.from_held_out(COSTS, delta=level, binary=True)
    test = bw.FamilyTest(family, alpha_adverse=level, alpha_benign=level, control=control)
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


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"control": "bonferroni"}, "control = 'bonferroni' is unknown; choose one of holm, e-bh"),
        ({"control": "e-bh", "tail": "kl"}, "tail = 'kl' does not go with control = 'e-bh'"),
        ({"tail": "magic"}, "tail = 'magic' is unknown"),
    ],
)
def test_settings_that_do_not_fit(family, settings, fault):
    with pytest.raises(InvalidSetting, match=fault):
        bw.FamilyTest(family, **settings)
    with pytest.raises(InvalidLevel, match="alpha_adverse = 0 is outside"):
        bw.FamilyTest(family, alpha_adverse=0)


def test_a_family_is_judged_jointly_only_if_every_certificate_keeps_its_costs(family):
    promised = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    mixed = bw.CertificateFamily({"pick": family["pick"], "sold": promised})
    with pytest.raises(InvalidSetting, match=r"'joint' needs held-out costs, but .* from external"):
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
