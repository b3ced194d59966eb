"""What the fields of a certificate's file say together; their types say what each of them may hold."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

from boundwatch.bounds.pac_bayes import MIN_ENVIRONMENTS, Variant
from boundwatch.errors import SchemaMismatch

if TYPE_CHECKING:
    from boundwatch.certificates.certificate import Certificate
    from boundwatch.certificates.record import CostRecord

VERSION = 1
"""Version of the schema that this release writes and reads."""

HeldOutMethod = Literal["betting", "kl", "hoeffding", "exact"]
"""How limits may follow from a number of held-out costs that was fixed in advance."""

Method = HeldOutMethod | Variant | Literal["anytime", "external"]
"""How limits may follow from costs."""

Source = Literal["held-out", "pac-bayes", "pointwise", "external"]
"""Where a certificate comes from."""

METHODS: dict[Source, tuple[Method, ...]] = {
    "held-out": (*get_args(HeldOutMethod), "anytime"),
    "pac-bayes": get_args(Variant),
    "pointwise": ("kl",),
    "external": ("external",),
}
"""The methods of each source of a certificate."""

_GIVE = "give the file that certify or Certificate.save wrote"


def body(content: object) -> dict[str, Any]:
    """Return the fields of a certificate's file without its version, which must be the one that is known."""
    if not isinstance(content, dict) or "schema_version" not in content:
        raise SchemaMismatch("no schema_version; not a certificate", remedy=_GIVE)
    if "certificates" in content:
        remedy = "take it out with: boundwatch show FILE --task NAME -o OTHER_FILE"
        raise SchemaMismatch("holds the certificates of several tasks, but one is needed here", remedy=remedy)
    check_version(content["schema_version"])
    return {name: value for name, value in content.items() if name != "schema_version"}


def check_version(version: object) -> None:
    """Refuse a version that this release does not write."""
    if version != VERSION or not isinstance(version, int) or isinstance(version, bool):
        remedy = f"this release reads {VERSION}: use the release that wrote it, or certify again"
        raise SchemaMismatch("is unknown", name="schema_version", value=version, remedy=remedy)


def check(certificate: Certificate) -> None:
    """Refuse fields that do not go together, by where the certificate comes from."""
    source, method = certificate.source, certificate.method
    if method not in METHODS[source]:
        allowed = f"allowed: {', '.join(METHODS[source])}"
        raise _misfit("method", method, source, allowed)
    if method == "exact" and not certificate.binary:
        raise SchemaMismatch("needs binary = true", name="method", value=method)
    wanted = {
        "n": source != "external",
        "mean_cost": source != "external",
        "renyi": source == "pac-bayes",
        "log_ratio": source == "pointwise",
        "record": source == "held-out" and not certificate.binary,
    }
    for name, needed in wanted.items():
        value = getattr(certificate, name)
        if needed != (value is not None):
            raise _misfit(name, value, source, f"it must {'' if needed else 'not '}be given")
    if source in ("pac-bayes", "pointwise") and (certificate.n or 0) < MIN_ENVIRONMENTS:
        raise _misfit("n", certificate.n, source, f"it must be at least {MIN_ENVIRONMENTS}")
    if certificate.record is not None:
        _check_record(certificate.record)
    if certificate.lower > certificate.upper:
        problem = f"is above upper = {certificate.upper}"
        raise SchemaMismatch(problem, name="lower", value=certificate.lower)
    _check_moment(certificate.provenance.created)


def _misfit(name: str, value: object, source: Source, remedy: str) -> SchemaMismatch:
    return SchemaMismatch(f"does not go with source = {source!r}", name=name, value=value, remedy=remedy)


def _check_record(record: CostRecord) -> None:
    if len(record.values) != len(record.weights):
        problem = f"has {len(record.values)} values but {len(record.weights)} weights"
        raise SchemaMismatch(problem, name="record")
    if any(above <= below for below, above in pairwise(record.values)):
        raise SchemaMismatch("does not increase", name="record.values", value=list(record.values))


def _check_moment(created: str) -> None:
    try:
        known = datetime.fromisoformat(created).tzinfo is not None
    except ValueError:
        known = False
    if not known:
        problem = "is not a time in ISO 8601 with its zone"
        raise SchemaMismatch(problem, name="provenance.created", value=created)
