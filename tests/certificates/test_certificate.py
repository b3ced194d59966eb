"""Certificates: constructors, files, and what is caught when a file was altered."""

import copy
import dataclasses
import hashlib
import json
import pickle
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch import bounds
from boundwatch.certificates.family import load
from boundwatch.certificates.record import CostRecord
from boundwatch.certificates.signing import generate_keys, sign
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import (
    NOTHING,
    CertificateError,
    InvalidCost,
    InvalidLevel,
    InvalidSetting,
    SchemaMismatch,
)

RNG = np.random.default_rng(0)
BOUNDED, BINARY = RNG.random(40) ** 2, (RNG.random(40) < 0.2).astype(float)
MADE = {
    "exact": (bw.Certificate.from_held_out(BINARY, binary=True), BINARY),
    "betting": (bw.Certificate.from_held_out(BOUNDED), BOUNDED),
    "kl": (bw.Certificate.from_held_out(BOUNDED, method="kl"), BOUNDED),
    "hoeffding": (bw.Certificate.from_held_out(BOUNDED, method="hoeffding"), BOUNDED),
    "theorem-1": (bw.Certificate.from_pac_bayes(BOUNDED, renyi=0.4), BOUNDED),
    "pinsker": (bw.Certificate.from_pac_bayes(BOUNDED, renyi=0.4, method="pinsker"), BOUNDED),
    "pointwise": (bw.Certificate.from_pointwise(BOUNDED, log_ratio=1.3), BOUNDED),
}
each_kind = pytest.mark.parametrize("kind", MADE)


@each_kind
def test_interval_and_fields(kind):
    cert, costs = MADE[kind]
    assert 0 <= cert.lower <= cert.mean_cost <= cert.upper <= 1
    assert cert.n == 40
    assert cert.mean_cost == pytest.approx(costs.mean())
    assert cert.delta == 0.01
    assert cert.binary == (kind == "exact")


def test_held_out_splits_delta_and_pac_bayes_does_not():
    """Held-out limits fail apart from each other; Theorem 1 and Corollary 1 hold on one event (erratum 9)."""
    held_out, trained = MADE["kl"][0], MADE["theorem-1"][0]
    assert (held_out.delta_upper, held_out.delta_lower) == (0.005, 0.005)
    assert (trained.delta_upper, trained.delta_lower) == (0.01, 0.01)
    assert held_out.upper == pytest.approx(float(bounds.chernoff_upper(BOUNDED.mean(), 40, 0.005)))
    assert trained.upper == pytest.approx(bounds.pac_bayes_upper(BOUNDED.mean(), 40, 0.01, 0.4))


def test_a_delta_for_each_side():
    cert = bw.Certificate.from_held_out(BOUNDED, method="kl", delta_upper=0.01, delta_lower=0.2)
    assert cert.delta == pytest.approx(0.21)
    assert cert.upper > MADE["kl"][0].mean_cost
    assert cert.lower > MADE["kl"][0].lower  # a larger delta, a tighter limit
    assert bw.HypothesisTest(cert).decide(BOUNDED).false_negative_rate == pytest.approx(0.25)
    trained = bw.Certificate.from_pac_bayes(BOUNDED, renyi=0.0, delta_upper=0.01, delta_lower=0.2)
    assert trained.delta == 0.2
    with pytest.raises(InvalidSetting, match="go together"):
        bw.Certificate.from_held_out(BOUNDED, delta_upper=0.01)
    with pytest.raises(InvalidLevel, match="promises nothing"):
        bw.Certificate.from_held_out(BOUNDED, delta_upper=0.6, delta_lower=0.5)


@each_kind
def test_save_and_load_give_the_same_certificate(kind, tmp_path):
    cert, costs = MADE[kind]
    cert.save(tmp_path / "c.json")
    loaded = bw.Certificate.load(tmp_path / "c.json")
    assert loaded == cert
    assert loaded.fingerprint == cert.fingerprint
    assert all(check.ok for check in loaded.verify(costs))
    names = {check.name for check in loaded.verify(costs)}
    assert names - {"record"} == {"delta", "costs_sha256", "n", "mean_cost", "lower", "upper"}
    assert ("record" in names) == (cert.source == "held-out" and not cert.binary)
    assert {"lower", "upper"} <= {check.name for check in loaded.verify()}  # derived again without the costs
    assert (tmp_path / "c.json").stat().st_size < 10_000


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_an_external_bound_survives_json_bit_by_bit(a, b, delta):
    cert = bw.Certificate.from_bounds(lower=min(a, b), upper=max(a, b), delta=delta)
    assert bw.Certificate.from_dict(json.loads(json.dumps(cert.to_dict()))) == cert


@each_kind
def test_other_costs_are_noticed(kind):
    cert, costs = MADE[kind]
    other = np.append(costs[1:], 1 - costs[0])
    assert "costs_sha256" in {check.name for check in cert.verify(other) if not check.ok}
    assert "n" in {check.name for check in cert.verify(costs[:-1]) if not check.ok}


def test_provenance(tmp_path):
    policy = tmp_path / "policy.pt"
    policy.write_bytes(b"weights")
    cert = bw.Certificate.from_held_out(BOUNDED, seed=7, policy=policy, measure=Measure("success", "grasped"))
    assert cert.provenance.seed == 7
    assert cert.measure == Measure("success", "grasped")
    assert bw.Certificate.from_dict(cert.to_dict()) == cert
    assert cert.provenance.policy_sha256 == hashlib.sha256(b"weights").hexdigest()
    assert datetime.fromisoformat(cert.provenance.created).tzinfo is not None
    assert {"boundwatch", "python", "numpy", "scipy"} <= set(cert.provenance.versions)
    assert cert.provenance.costs_sha256 != bw.Certificate.from_held_out(BOUNDED[::-1]).provenance.costs_sha256


@pytest.mark.parametrize("measure", ["cost = 1 - success", 7])
def test_how_costs_were_measured_is_a_measure(measure):
    with pytest.raises(InvalidSetting) as refused:
        bw.Certificate.from_held_out(BOUNDED, measure=measure)
    assert (refused.value.name, refused.value.value) == ("measure", measure)


def test_the_design_of_episodes_is_kept(tmp_path):
    design = Design(strata="task", where={"site": "lab"}, pair_by=("seed",))
    episodes = Episodes(BOUNDED, measure=Measure("cost", "force", (0, 20)), design=design)
    cert = bw.Certificate.from_held_out(episodes)
    cert.save(tmp_path / "c.json")
    loaded = bw.Certificate.load(tmp_path / "c.json")
    assert (loaded.measure, loaded.design) == (episodes.measure, design)
    assert (cert.lower, cert.upper) == (MADE["betting"][0].lower, MADE["betting"][0].upper)


def test_the_policys_file_is_compared(tmp_path):
    policy = tmp_path / "policy.pt"
    policy.write_bytes(b"weights")
    cert = bw.Certificate.from_held_out(BOUNDED, policy=policy)
    assert all(check.ok for check in cert.verify(BOUNDED, policy=policy))
    policy.write_bytes(b"other weights")
    assert [check.name for check in cert.verify(policy=policy) if not check.ok] == ["policy_sha256"]
    unnamed = bw.Certificate.from_held_out(BOUNDED)
    assert not all(check.ok for check in unnamed.verify(policy=policy))


ALTERED = {"upper": 0.9, "lower": 0.01, "n": 400, "mean_cost": 0.21, "delta": 0.02, "renyi": 4.0}
ALTERED["delta_upper"] = 0.02


def test_numbers_that_do_not_match_each_other_are_refused_and_named():
    content = MADE["theorem-1"][0].to_dict()
    with pytest.raises(CertificateError, match=r"delta: .*lower: .*upper: .*the file was altered"):
        bw.Certificate.from_dict(content | {"renyi": 4.0, "delta": 0.02})
    for field, value in ALTERED.items():
        with pytest.raises(CertificateError, match="the file was altered"):
            bw.Certificate.from_dict(content | {field: value})


PROVENANCE = MADE["theorem-1"][0].to_dict()["provenance"]
MALFORMED = [
    ({"upper": 1.2}, "upper", 1.2),
    ({"upper": True}, "upper", True),
    ({"upper": float("nan")}, "upper", None),
    ({"renyi": 10**400}, "renyi", 10**400),
    ({"renyi": float("inf")}, "renyi", float("inf")),
    ({"delta": 0}, "delta", 0),
    ({"n": 40.5}, "n", 40.5),
    ({"n": 7}, "n", 7),
    ({"n": None}, "n", None),
    ({"renyi": None}, "renyi", None),
    ({"log_ratio": 1.0}, "log_ratio", 1.0),
    ({"log_ratio": "1.0"}, "log_ratio", "1.0"),
    ({"source": "hearsay"}, "source", "hearsay"),
    ({"method": "exact"}, "method", "exact"),
    ({"method": "magic"}, "method", "magic"),
    ({"binary": "no"}, "binary", "no"),
    ({"lower": 0.5, "upper": 0.4}, "lower", 0.5),
    ({"schema_version": 2}, "schema_version", 2),
    ({"schema_version": 0}, "schema_version", 0),
    ({"schema_version": "1"}, "schema_version", "1"),
    ({"schema_version": True}, "schema_version", True),
    ({"surprise": 1}, "surprise", NOTHING),
    ({"measure": {"kind": "cost", "cost_range": [1, 0]}}, "measure", None),
    ({"measure": {"kind": "luck"}}, "measure.kind", "luck"),
    ({"measure": {"kind": "cost", "unit": "s"}}, "measure.unit", NOTHING),
    ({"design": {"reduce": "mean"}}, "design", {"reduce": "mean"}),
    ({"design": None}, "design", None),
    ({"record": {"values": [0.5], "weights": [40]}}, "record", CostRecord((0.5,), (40.0,))),
    ({"provenance": {}}, "provenance.created", NOTHING),
    ({"provenance": PROVENANCE | {"created": "yesterday"}}, "provenance.created", "yesterday"),
    ({"provenance": PROVENANCE | {"created": "2026-01-01T00:00:00"}}, "provenance.created", None),
    ({"provenance": PROVENANCE | {"costs_sha256": "0" * 63}}, "provenance.costs_sha256", "0" * 63),
    ({"provenance": PROVENANCE | {"costs_sha256": "0" * 64 + "\n"}}, "provenance.costs_sha256", None),
    ({"provenance": PROVENANCE | {"surprise": 1}}, "provenance.surprise", NOTHING),
    ({"provenance": []}, "provenance", []),
]


@pytest.mark.parametrize(("change", "name", "value"), MALFORMED)
def test_malformed_certificates_are_refused(change, name, value):
    with pytest.raises(SchemaMismatch) as refused:
        bw.Certificate.from_dict(MADE["theorem-1"][0].to_dict() | change)
    assert refused.value.name == name
    assert value is None or refused.value.value is value or refused.value.value == value


def test_missing_fields_are_refused():
    complete = MADE["theorem-1"][0].to_dict()
    for field in complete:
        with pytest.raises(SchemaMismatch) as refused:
            bw.Certificate.from_dict({k: v for k, v in complete.items() if k != field})
        assert refused.value.name == (None if field == "schema_version" else field)


@pytest.mark.parametrize("made", [MADE["exact"][0], bw.CertificateFamily({"pick": MADE["exact"][0]})])
def test_every_truncation_of_a_file_is_refused(tmp_path, made):
    path = tmp_path / "c.json"
    made.save(path)
    whole = path.read_bytes()
    for length in range(len(whole.rstrip()) - 1, -1, -7):
        path.write_bytes(whole[:length])
        with pytest.raises(SchemaMismatch, match=r"c\.json: "):
            load(path)


def test_files_that_are_no_certificates(tmp_path):
    path = tmp_path / "c.json"
    strange = [b"[1, 2]", b"3", b"\xff\xfe\x00", b'{"schema_version": 1, "upper": NaN}', b"[" * 100_000]
    for content in (*strange, b"1" * 5000):
        path.write_bytes(content)
        with pytest.raises(SchemaMismatch):
            bw.Certificate.load(path)
    with pytest.raises(InvalidSetting, match="no such file"):
        bw.Certificate.load(tmp_path / "missing.json")
    with pytest.raises(InvalidSetting, match="is a folder"):
        bw.Certificate.load(tmp_path)


def test_a_name_that_occurs_twice_is_refused(tmp_path):
    path, (private, public) = tmp_path / "c.json", generate_keys(tmp_path / "lab")
    MADE["exact"][0].save(path)
    sign(path, MADE["exact"][0].to_dict(), private)
    path.write_text(path.read_text().replace('"lower":', '"lower": 0.0,\n  "lower":'))
    for key in (None, public):
        with pytest.raises(SchemaMismatch, match="twice") as refused:
            load(path, key=key)
        assert (refused.value.name, refused.value.where.source) == ("lower", str(path))


RECORDS = [
    ({"values": [0.1, 0.1], "weights": [20, 20]}, "record"),
    ({"values": [-0.1], "weights": [1]}, "record.values[0]"),
    ({"values": [float("nan")], "weights": [1]}, "record.values[0]"),
    ({"values": [0.5] * 258, "weights": [1]}, "record.values"),
    ({"values": [], "weights": []}, "record.values"),
    ({"values": [0.1, 0.2], "weights": [1, 0]}, "record.weights[1]"),
    ({"values": [0.1], "weights": [1e308]}, "record.weights[0]"),
    ({"values": [0.1], "weights": [10**400]}, "record.weights[0]"),
    ({"values": [0.1, 0.2], "weights": [40]}, "record"),
    ({"values": [0.1]}, "record.weights"),
    (None, "record"),
]


@pytest.mark.parametrize(("record", "name"), RECORDS)
def test_malformed_records_are_refused(record, name):
    with pytest.raises(SchemaMismatch) as refused:
        bw.Certificate.from_dict(MADE["betting"][0].to_dict() | {"record": record})
    assert refused.value.name == name


def test_an_altered_record_is_noticed_without_the_costs():
    content = MADE["betting"][0].to_dict()
    first, *others = content["record"]["weights"]
    with pytest.raises(CertificateError, match=r"record: 41 costs .* do not match n and mean_cost"):
        bw.Certificate.from_dict(content | {"record": content["record"] | {"weights": [first + 1, *others]}})
    values = content["record"]["values"]
    moved = (values[-1] - values[-2]) / 3  # the same number and mean, other limits
    spread = [*values[:-2], values[-2] + moved, values[-1] - moved]
    with pytest.raises(CertificateError, match=r"lower: .*upper: "):
        bw.Certificate.from_dict(content | {"record": content["record"] | {"values": spread}})


def test_certificates_are_hashable_and_cannot_be_changed():
    for cert, costs in MADE.values():
        same = bw.Certificate.from_dict(cert.to_dict())
        assert hash(same) == hash(cert)
        assert {cert: costs.size}[same] == 40
        assert pickle.loads(pickle.dumps(cert)) == cert  # noqa: S301 - our own bytes
        versions = cert.provenance.versions
        with pytest.raises(TypeError):
            versions["numpy"] = "0"
        with pytest.raises(TypeError):  # all certificates share it
            versions.update(numpy="0")
        with pytest.raises(TypeError):
            del versions["numpy"]
        assert copy.deepcopy(cert) == cert
        altered = dataclasses.replace(
            cert, measure=Measure("cost", "x", [0, 10]), record=CostRecord([0.5], [40.0])
        )
        assert hash(altered) == hash(dataclasses.replace(altered, measure=Measure("cost", "x", (0.0, 10.0))))
    assert {bw.HypothesisTest(MADE["kl"][0])} == {bw.HypothesisTest(MADE["kl"][0])}


REFUSED = [
    (lambda: bw.Certificate.from_held_out(BOUNDED, delta=0), InvalidLevel, "delta = 0 is outside"),
    (lambda: bw.Certificate.from_held_out(BINARY, method="exact"), InvalidSetting, "needs binary costs"),
    (lambda: bw.Certificate.from_held_out(BOUNDED, method="normal"), InvalidSetting, "'normal' is unknown"),
    (lambda: bw.Certificate.from_held_out(BOUNDED, method="anytime"), InvalidSetting, "is unknown"),
    (lambda: bw.Certificate.from_held_out(BOUNDED, binary=True), InvalidCost, "is not 0 or 1"),
    (
        lambda: bw.Certificate.from_held_out(BOUNDED, seed="abc"),
        InvalidSetting,
        "seed = 'abc' is not a whole",
    ),
    (lambda: pac_bayes(BOUNDED[:7], 0.0), InvalidSetting, "too few"),
    (lambda: pac_bayes(BOUNDED, float("inf")), InvalidSetting, "renyi = inf is not a divergence"),
    (lambda: pac_bayes(BOUNDED, None), InvalidSetting, "renyi = None is not a divergence"),
    (
        lambda: bw.Certificate.from_pointwise(BOUNDED, log_ratio=float("nan")),
        InvalidSetting,
        "log_ratio = nan is not a finite number",
    ),
    (lambda: bounded("0.1", 0.2), InvalidSetting, r"lower = '0\.1' is not a limit"),
    (lambda: bounded(0.3, 0.2), InvalidSetting, r"lower = 0\.3 is not a limit between 0 and upper = 0\.2"),
    (
        lambda: bounded(0.1, 0.2, delta_upper=0.3, delta_lower=0.01),
        InvalidLevel,
        r"delta = 0\.01 is below 0\.3",
    ),
]


def pac_bayes(costs, renyi):
    return bw.Certificate.from_pac_bayes(costs, renyi=renyi)


def bounded(lower, upper, **deltas):
    return bw.Certificate.from_bounds(lower=lower, upper=upper, delta=0.01, **deltas)


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED)
def test_refusals(make, kind, message):
    with pytest.raises(kind, match=message):
        make()
