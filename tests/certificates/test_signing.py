"""Signatures: whatever is changed in a certificate, it is refused with a key; what is said without one."""

import json
import re

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.certificates import signing
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.certificates.record import CostRecord
from boundwatch.certificates.verification import on_trust
from boundwatch.episodes.measure import Measure
from boundwatch.errors import BoundwatchError, CertificateError, InvalidSetting

RNG = np.random.default_rng(4)
BOUNDED = RNG.beta(2, 6, 60).round(4)
BINARY = (RNG.random(60) < 0.2).astype(int)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return signing.generate_keys(tmp_path_factory.mktemp("keys") / "lab")


def betting():
    return bw.Certificate.from_held_out(BOUNDED)


def exact():
    return bw.Certificate.from_held_out(BINARY, binary=True)


def external():
    return bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


def pac_bayes(renyi=0.4):
    return bw.Certificate.from_pac_bayes(np.tile(BOUNDED, 20), renyi=renyi)


def pointwise(log_ratio=1.3):
    return bw.Certificate.from_pointwise(np.tile(BOUNDED, 20), log_ratio=log_ratio)


def family():
    return CertificateFamily.from_held_out({"pick": BOUNDED, "place": BOUNDED[::2]})


def replaced(**changes):
    return lambda content: content | changes


def in_provenance(**changes):
    return lambda content: content | {"provenance": content["provenance"] | changes}


def numbers_of(certificate):
    """Every number of another certificate, under the old provenance."""
    return lambda content: certificate.to_dict() | {"provenance": content["provenance"]}


def moved_weight(content):
    weights = list(content["record"]["weights"])
    weights[0], weights[-1] = weights[-1] + 1, weights[0]
    return content | {"record": content["record"] | {"weights": weights}}


def swapped(content):
    return content | {"tasks": {"pick": 1, "place": 0}}


def one_removed(content):
    return content | {"tasks": {"pick": 0}, "certificates": content["certificates"][:1]}


OTHER_COSTS = numbers_of(bw.Certificate.from_held_out(BOUNDED / 2))

# What was changed, in which certificate, how, and what is said of it without a key.
FORGERIES = [
    ("upper limit raised", betting, replaced(upper=0.9), "upper: 0.9 is stored"),
    ("lower limit lowered", betting, replaced(lower=0.0), "lower: 0 is stored"),
    ("upper limit raised, exact", exact, replaced(upper=0.9), "upper: 0.9 is stored"),
    ("upper limit raised, external", external, replaced(upper=0.9), "both limits, which were proved"),
    ("lower limit lowered, external", external, replaced(lower=0.0), "both limits, which were proved"),
    ("delta made smaller", betting, replaced(delta=0.001), "delta: 0.001 is stored"),
    ("delta_upper made smaller", betting, replaced(delta_upper=0.001), "delta: 0.01 is stored"),
    ("delta of an external bound", external, replaced(delta=0.02), "both limits, which were proved"),
    ("n made larger", betting, replaced(n=6000), "record: "),
    ("n made larger, exact", exact, replaced(n=6000), "is stored"),
    ("mean_cost made smaller", betting, replaced(mean_cost=0.01), "record: "),
    ("method renamed", betting, replaced(method="hoeffding"), "is stored"),
    ("source made external", betting, replaced(source="external", method="external"), "does not go with"),
    ("binary promised", betting, replaced(binary=True), "does not go with"),
    ("weights of the record moved", betting, moved_weight, "record: "),
    ("record and limits of other costs", betting, OTHER_COSTS, ""),
    ("renyi raised alone", pac_bayes, replaced(renyi=90.0), "is stored"),
    ("renyi and limits together", pac_bayes, numbers_of(pac_bayes(90.0)), "renyi, from which they follow"),
    ("log_ratio and limits together", pointwise, numbers_of(pointwise(90.0)), "log_ratio, from which"),
    ("record removed", betting, replaced(record=None, upper=0.9), "does not go with"),
    ("cost range widened", betting, replaced(measure=Measure("cost", "x", (0, 100)).to_dict()), ""),
    ("creation time", betting, in_provenance(created="2020-01-01T00:00:00+00:00"), ""),
    ("hash of other costs", betting, in_provenance(costs_sha256="0" * 64), ""),
    ("hash of another policy", betting, in_provenance(policy_sha256="0" * 64), ""),
    ("how costs were measured", betting, replaced(measure=Measure("success", "x").to_dict()), ""),
    ("tasks of a family swapped", family, swapped, ""),
    ("task of a family removed", family, one_removed, ""),
]


def said_without_key(path):
    """Return what `check` and `show` would say: an error, a note, or nothing."""
    try:
        loaded = load(path)
    except BoundwatchError as error:
        return f"error: {error}"
    each = [loaded] if isinstance(loaded, bw.Certificate) else loaded.values()
    return ", ".join(filter(None, map(on_trust, each)))


@pytest.mark.parametrize(
    ("make", "forge", "said"), [row[1:] for row in FORGERIES], ids=[row[0] for row in FORGERIES]
)
def test_every_forgery_is_refused_with_a_key(tmp_path, keys, make, forge, said):
    private, public = keys
    path, certificate = tmp_path / "certificate.json", make()
    certificate.save(path)
    signing.sign(path, certificate.to_dict(), private)
    assert load(path, key=public) == certificate
    path.write_text(json.dumps(forge(json.loads(path.read_text()))))
    with pytest.raises(CertificateError, match="was altered after it was signed"):
        load(path, key=public)
    found = said_without_key(path)
    assert said in found if said else found == ""


def test_there_are_twenty_seven():
    assert len({name for name, *_ in FORGERIES}) == len(FORGERIES) == 27


def rewrite(path, **changes):
    target = signing.signature_path(path)
    target.write_text(json.dumps(json.loads(target.read_text()) | changes))


def claim(path, other):
    """Sign with another key, and name the expected one beside the signature."""
    expected = json.loads(signing.signature_path(path).read_text())["key"]
    signing.sign(path, exact().to_dict(), other)
    rewrite(path, key=expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path, _: signing.signature_path(path).unlink(), "is not signed"),
        (lambda path, _: signing.signature_path(path).write_text("{}"), "is not a signature"),
        (lambda path, _: signing.signature_path(path).write_bytes(b"\xff" * 9), "is not a signature"),
        (lambda path, _: rewrite(path, algorithm="none"), "algorithm = 'none' does not fit"),
        (lambda path, _: rewrite(path, signature="00" * 64), "was altered after it was signed"),
        (lambda path, _: rewrite(path, signature="00"), "signature = '00' does not fit"),
        (lambda path, _: rewrite(path, key=["x"]), "key = ['x'] does not fit"),
        (lambda path, other: signing.sign(path, exact().to_dict(), other), "is signed with another key"),
        (claim, "was altered after it was signed"),
    ],
)
def test_a_signature_that_does_not_fit(tmp_path, keys, change, message):
    private, public = keys
    path, certificate = tmp_path / "certificate.json", exact()
    certificate.save(path)
    signing.sign(path, certificate.to_dict(), private)
    change(path, signing.generate_keys(tmp_path / "other")[0])
    with pytest.raises(CertificateError, match=re.escape(message)) as refused:
        load(path, key=public)
    assert str(refused.value).count(str(path)) == 1  # the file that is at fault, and no other
    assert load(path) == certificate


def test_a_number_that_is_none_is_an_alteration(tmp_path, keys):
    path, certificate = tmp_path / "certificate.json", exact()
    certificate.save(path)
    signing.sign(path, certificate.to_dict(), keys[0])
    path.write_text(path.read_text().replace(f'"upper": {certificate.upper!r}', '"upper": 1e400'))
    with pytest.raises(CertificateError, match="was altered after it was signed"):
        load(path, key=keys[1])


def test_keys_are_never_replaced_and_nothing_else_passes_for_one(tmp_path, keys):
    private, public = keys
    assert private.stat().st_mode & 0o077 == 0
    before = private.read_bytes()
    with pytest.raises(InvalidSetting, match="never replaced"):
        signing.generate_keys(private.with_suffix(""))
    assert private.read_bytes() == before
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InvalidSetting, match="is not an Ed25519 private key"):
        signing.load_key(public, private=True)
    with pytest.raises(InvalidSetting, match="is a private key; give the public one"):
        signing.load_key(private, private=False)
    for path, fault in (
        (tmp_path / "text", "is not an Ed25519 public key"),
        (tmp_path / "none", "no such file"),
    ):
        with pytest.raises(InvalidSetting, match=fault):
            signing.load_key(path, private=False)


def test_a_record_of_other_costs_is_found_out_by_the_costs():
    """The forgery of numbers that nothing inside shows: that is what --costs and --key are for."""
    forged = bw.Certificate.from_dict(OTHER_COSTS(betting().to_dict()))
    assert all(check.ok for check in forged.verify())
    assert not all(check.ok for check in forged.verify(BOUNDED))
    assert CostRecord.of(BOUNDED) != forged.record
