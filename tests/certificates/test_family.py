"""Certificates of several tasks: what they promise together, their file, and the verdicts on them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.bounds.multiple import e_bh, holm
from boundwatch.certificates.family import load
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting, SchemaMismatch

COSTS = {"pick": [0, 0, 1, 0] * 25, "place": [0, 1] * 50, "pour": [0, 0, 0, 0, 1] * 20}


@pytest.fixture
def family():
    return bw.CertificateFamily.from_held_out(COSTS, delta=0.03, binary=True)


def test_every_task_gets_its_share_of_delta(family):
    for task, costs in COSTS.items():
        alone = bw.Certificate.from_held_out(costs, delta=0.01, binary=True)
        assert (family[task].lower, family[task].upper) == (alone.lower, alone.upper)
    assert (family.delta, family.delta_upper, family.delta_lower) == pytest.approx((0.03, 0.015, 0.015))


def test_deltas_of_the_two_sides_are_shared_out_too():
    family = bw.CertificateFamily.from_held_out(COSTS, delta_upper=0.03, delta_lower=0.06, binary=True)
    assert family["pick"].delta_upper == pytest.approx(0.01)
    assert (family.delta_upper, family.delta_lower, family.delta) == pytest.approx((0.03, 0.06, 0.09))


def test_tasks_with_equal_costs_count_twice_and_a_shared_certificate_once():
    equal = bw.CertificateFamily.from_held_out({"a": [0, 1], "b": [0, 1]}, delta=0.1, binary=True)
    assert equal["a"].provenance.costs_sha256 == equal["b"].provenance.costs_sha256
    assert equal.delta == pytest.approx(0.1)
    shared = bw.CertificateFamily.shared(equal["a"], ["x", "y", "z"], by="robot")
    assert (list(shared), shared.delta) == (["x", "y", "z"], pytest.approx(0.05))


def test_the_file_holds_everything(family, tmp_path):
    family.save(tmp_path / "family.json")
    loaded = load(tmp_path / "family.json")
    assert loaded == family
    assert loaded.by == "task"
    family["pick"].save(tmp_path / "one.json")
    assert load(tmp_path / "one.json") == family["pick"]
    with pytest.raises(
        SchemaMismatch, match=r"family\.json: holds the certificates of several tasks, but one"
    ):
        bw.Certificate.load(tmp_path / "family.json")
    with pytest.raises(SchemaMismatch, match=r"one\.json: no list 'certificates'; not a family"):
        bw.CertificateFamily.load(tmp_path / "one.json")


def test_the_file_keeps_what_is_promised_of_a_shared_certificate(family, tmp_path):
    """Ten robots with one certificate fail together, before and after the file."""
    robots = [f"arm-{number}" for number in range(10)]
    shared = bw.CertificateFamily.shared(family["pick"], robots, by="robot")
    mixed = bw.CertificateFamily({"a": family["pick"], "b": family["place"], "c": family["pick"]})
    for each, delta in ((shared, 0.01), (mixed, 0.02)):
        each.save(tmp_path / "family.json")
        loaded = bw.CertificateFamily.load(tmp_path / "family.json")
        assert loaded == each
        assert list(loaded) == list(each)
        assert each.delta == pytest.approx(delta)
        for name in ("delta", "delta_upper", "delta_lower"):
            assert getattr(loaded, name) == getattr(each, name)
        first = next(iter(each))
        for task in each:  # which of them share, not only how many
            assert loaded.only([first, task]).delta == each.only([first, task]).delta


def test_families_that_share_otherwise_are_not_equal(family):
    certificate = family["pick"]
    twin = bw.Certificate.from_dict(certificate.to_dict())
    shared = bw.CertificateFamily.shared(certificate, ["a", "b"])
    apart = bw.CertificateFamily({"a": certificate, "b": twin})
    assert shared.delta < apart.delta
    assert shared != apart
    assert shared != {"a": certificate, "b": certificate}
    assert apart == bw.CertificateFamily({"b": certificate, "a": twin}), "the order does not matter"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"schema_version": 2}, "schema_version = 2 is unknown"),
        ({"schema_version": True}, "schema_version = True is unknown"),
        ({"by": 3}, "by = 3 is not the name of a column"),
        ({"certificates": [], "tasks": {}}, "certificates is empty"),
        ({"certificates": {}}, "no list 'certificates'"),
        ({"certificates": [{}, {}, {}]}, "task 'pick': no schema_version"),
        ({"tasks": None}, "no object 'tasks'"),
        ({"tasks": {"pick": 0, "place": 1, "pour": 3}}, "task 'pour': 3 is not the place of one of the 3"),
        ({"tasks": {"pick": 0, "place": -1, "pour": 2}}, "task 'place': -1 is not the place"),
        ({"tasks": {"pick": 0, "place": True, "pour": 2}}, "task 'place': True is not the place"),
        ({"tasks": {"pick": 0, "place": 1, "pour": 1}}, "a certificate belongs to no task"),
        ({"tasks": {" ": 0, "place": 1, "pour": 2}}, "' ' is no name"),
    ],
)
def test_damaged_files_are_refused(family, tmp_path, change, fault):
    path = tmp_path / "family.json"
    path.write_text(json.dumps(family.to_dict() | change))
    with pytest.raises(SchemaMismatch, match=rf"family\.json: {fault}"):
        load(path)


def test_no_cut_file_passes(family, tmp_path):
    path = tmp_path / "family.json"
    text = json.dumps(family.to_dict())
    for end in range(0, len(text) - 1, 97):
        path.write_text(text[:end])
        with pytest.raises(SchemaMismatch):
            load(path)


def test_what_is_no_family_is_refused():
    with pytest.raises(InvalidSetting, match="certificates is empty"):
        bw.CertificateFamily({})
    with pytest.raises(InvalidSetting, match=r"certificates\['a'\] is of type int, not Certificate; make"):
        bw.CertificateFamily({"a": 3})
    with pytest.raises(InvalidSetting, match="certificates is of type list; map the name"):
        bw.CertificateFamily([3])
    with pytest.raises(InvalidSetting, match="'  ' is no name"):
        bw.CertificateFamily.from_held_out({"  ": [0.1]})
    with pytest.raises(InvalidCost, match=r"task 'pick': costs\[1\] = 1.5 is outside"):
        bw.CertificateFamily.from_held_out({"pick": [0.1, 1.5]})
    with pytest.raises(InvalidLevel, match=r"delta = 1\.5 is outside"):
        bw.CertificateFamily.from_held_out({"pick": [0.1], "place": [0.2]}, delta=1.5)


@pytest.mark.parametrize("control", ["holm", "e-bh"])
def test_verdicts(family, control):
    test = bw.FamilyTest(family, control=control)
    new = {"pour": [1] * 20, "pick": [0, 0, 0, 1] * 5, "place": [0] * 60}
    finding = test.decide(new)
    assert [task.task for task in finding.findings] == ["pick", "place", "pour"], "the family's order"
    assert finding.tasks(bw.Verdict.ADVERSE) == ["pour"]
    assert finding.tasks(bw.Verdict.BENIGN) == ["place"]
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.false_positive_rate == pytest.approx(0.05 + 0.015)
    assert json.loads(json.dumps(finding.to_dict(), allow_nan=False))["control"] == control
    pour = finding.findings[2]
    assert pour.shift_lower > 0
    assert (pour.e_adverse is None) == (control == "holm")
    assert test.decide({"place": [0] * 60}).verdict is bw.Verdict.BENIGN


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_e_values_are_those_of_the_sequential_test(binary, mean):
    rng = np.random.default_rng(6)
    costs = (rng.random(300) < mean).astype(float) if binary else rng.beta(4 * mean, 4 * (1 - mean), 300)
    certificate = bw.Certificate.from_bounds(lower=0.2, upper=0.35, delta=0.01, binary=binary)
    (found,) = (
        bw.FamilyTest(bw.CertificateFamily({"a": certificate}), control="e-bh").decide({"a": costs}).findings
    )
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
    assert finding.tasks(bw.Verdict.ADVERSE) == ["pour"]


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
    assert alone.findings[0].adjusted_adverse == alone.findings[0].p_adverse
    assert alone.not_judged == ("place", "pour")
    assert alone.false_positive_rate == pytest.approx(0.05 + 0.005)
    both = test.decide({"pick": [1, 1, 1, 0], "place": [0, 1]})
    assert both.findings[0].adjusted_adverse == pytest.approx(2 * alone.findings[0].p_adverse)


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


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(P_VALUES, st.floats(0.001, 0.5))
def test_holm_is_the_step_down_procedure(p_values, alpha):
    declared, order = set(), sorted(range(len(p_values)), key=p_values.__getitem__)
    for step, index in enumerate(order):
        if p_values[index] * (len(p_values) - step) > alpha:
            break
        declared.add(index)
    assert {index for index, value in enumerate(holm(p_values)) if value <= alpha} == declared


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_e_bh_lists_the_largest_set_that_is_allowed(e_values, rate):
    m = len(e_values)
    ordered = sorted(e_values, reverse=True)
    sizes = [k for k in range(1, m + 1) if ordered[k - 1] > 0 and m / (k * ordered[k - 1]) <= rate]
    with np.errstate(divide="ignore"):
        adjusted = e_bh(np.log(e_values))
    assert (
        (adjusted <= rate * (1 - 1e-12)).sum()
        <= max(sizes, default=0)
        <= (adjusted <= rate * (1 + 1e-12)).sum()
    )


@given(P_VALUES, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(p_values, random):
    order = list(range(len(p_values)))
    random.shuffle(order)
    for adjust, values in ((holm, np.array(p_values)), (e_bh, -np.log(np.array(p_values) + 1e-9))):
        assert adjust(values[order]).tolist() == adjust(values)[order].tolist()
