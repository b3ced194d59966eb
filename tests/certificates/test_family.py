"""Certificates of several tasks: what they promise together, and their file."""

import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.certificates.family import load
from boundwatch.errors import CertificateError, InvalidCost, InvalidLevel, InvalidSetting, SchemaMismatch

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
    with pytest.raises(SchemaMismatch, match=r"one\.json: no certificates; not a family"):
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
    ("change", "part", "name"),
    [
        ({"schema_version": 2}, "", "schema_version"),
        ({"schema_version": True}, "", "schema_version"),
        ({"by": 3}, "", "by"),
        ({"certificates": [], "tasks": {}}, "", None),
        ({"certificates": {}}, "", "certificates"),
        ({"certificates": [{}, {}, {}]}, ": task 'pick'", None),
        ({"tasks": None}, "", "tasks"),
        ({"surprise": 1}, "", "surprise"),
        ({"tasks": {"pick": 0, "place": 1, "pour": 3}}, "", None),
        ({"tasks": {"pick": 0, "place": -1, "pour": 2}}, "", "tasks[...]"),
        ({"tasks": {"pick": 0, "place": True, "pour": 2}}, "", "tasks[...]"),
        ({"tasks": {"pick": 0, "place": 1, "pour": 1}}, "", None),
        ({"tasks": {" ": 0, "place": 1, "pour": 2}}, "", None),
    ],
)
def test_damaged_files_are_refused(family, tmp_path, change, part, name):
    path = tmp_path / "family.json"
    path.write_text(json.dumps(family.to_dict() | change))
    with pytest.raises(SchemaMismatch) as refused:
        load(path)
    assert (refused.value.where.source, refused.value.name) == (f"{path}{part}", name)


def test_what_is_no_family_is_refused():
    for wrong, name in (({}, "certificates"), ([3], "certificates"), ({"a": 3}, "certificates['a']")):
        with pytest.raises(InvalidSetting) as refused:
            bw.CertificateFamily(wrong)
        assert refused.value.name == name
    with pytest.raises(InvalidSetting, match="'  ' is not a valid name"):
        bw.CertificateFamily.from_held_out({"  ": [0.1]})
    with pytest.raises(InvalidCost, match=r"task 'pick': costs\[1\] = 1.5 is outside"):
        bw.CertificateFamily.from_held_out({"pick": [0.1, 1.5]})
    with pytest.raises(InvalidLevel, match=r"delta = 1\.5 is outside"):
        bw.CertificateFamily.from_held_out({"pick": [0.1], "place": [0.2]}, delta=1.5)


@pytest.mark.parametrize("binary", [True, False])
def test_limits_of_many_tasks_are_those_of_each(binary):
    rng = np.random.default_rng(8)
    costs = {f"t{i}": rng.beta(2, 6, int(rng.integers(1, 40))).round(2) for i in range(60)}
    costs = {task: (values > 0.3).astype(float) if binary else values for task, values in costs.items()}
    family = bw.CertificateFamily.from_held_out(costs, 0.06, binary=binary)
    for task, values in costs.items():
        alone = bw.Certificate.from_held_out(values, 0.001, binary=binary)
        assert (family[task].lower, family[task].upper) == pytest.approx(
            (alone.lower, alone.upper), abs=1e-13
        )
        assert family[task].provenance.costs_sha256 == alone.provenance.costs_sha256
    content = family.to_dict()
    content["certificates"][7]["upper"] *= 0.9
    with pytest.raises(CertificateError, match=r"task 't7': upper: .* the file was altered"):
        bw.CertificateFamily.from_dict(content)
