"""Whether a certificate's fields go together, and its numbers follow from each other and from its costs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.files import one_page, read_bytes, sha256_file, write_text
from boundwatch._support.schema import decode
from boundwatch.bounds.pac_bayes import MIN_ENVIRONMENTS
from boundwatch.certificates import limits
from boundwatch.certificates.record import (
    CostRecord,
    Rounds,
    check_strata,
    costs_digest,
    mean_over,
    strata_of,
    tasks_of,
)
from boundwatch.errors import Argument, CertificateError, ProvenanceMismatch, SchemaMismatch, part_of

if TYPE_CHECKING:
    from boundwatch.certificates.certificate import Certificate

VERSION = 1
"""Version of the files that this release writes and reads."""
# Another machine's logarithm may differ in the last digits; a number that was altered differs by more.
_TOLERANCE = 1e-9


class Saved(Protocol):
    """What is kept in a file of its own."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""

    @classmethod
    def from_dict(cls, content: object) -> Self:
        """Return what `to_dict` described, checked."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as one page of JSON, whole or not at all."""
        write_text(path, one_page(self.to_dict()) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read one, and check all that can be checked without the costs.

        Raises
        ------
        SchemaMismatch
            If a field is missing, unknown, of the wrong type or out of range, or the schema is another.
        CertificateError
            If its numbers do not match each other.
        """
        data = read_bytes(path)
        with part_of(str(path)):
            return cls.from_dict(decode(data, "certificate"))


@dataclass(frozen=True)
class Check:
    """One thing that `Certificate.verify` looked at."""

    name: str
    ok: bool
    detail: str

    def __str__(self) -> str:
        return f"{self.name} {'ok' if self.ok else 'FAILED'}: {self.detail}"


def body(content: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a file without its version, which must be the one that this release writes."""
    fields = dict(content)
    version = fields.pop("schema_version", None)
    if version != VERSION or isinstance(version, bool):
        remedy = f"this release reads {VERSION}: use the release that wrote it, or certify again"
        raise SchemaMismatch("is unknown", name="schema_version", value=version, remedy=remedy)
    return fields


def check_fields(certificate: Certificate) -> None:
    """Refuse fields that do not go together; its type says what each may hold by itself."""
    source, problem = certificate.source, f"does not go with source = {certificate.source!r}"
    if certificate.method not in limits.METHODS[source]:
        remedy = f"allowed: {', '.join(limits.METHODS[source])}"
        raise SchemaMismatch(problem, name="method", value=certificate.method, remedy=remedy)
    wanted = {
        "n": source != "external",
        "mean_cost": source != "external",
        "renyi": source == "pac-bayes",
        "log_ratio": source == "pointwise",
        "audit": source == "audit",
        "predictions": certificate.method.startswith("predicted"),
        "record": source == "held-out" and not certificate.binary and not certificate.strata,
    }
    for name, needed in wanted.items():
        value = getattr(certificate, name)
        if needed != (value is not None):
            remedy = f"it must {'' if needed else 'not '}be given"
            raise SchemaMismatch(problem, name=name, value=value, remedy=remedy)
    if source in ("pac-bayes", "pointwise") and (certificate.n or 0) < MIN_ENVIRONMENTS:
        remedy = f"it must be at least {MIN_ENVIRONMENTS}"
        raise SchemaMismatch(problem, name="n", value=certificate.n, remedy=remedy)
    of_clusters = certificate.audit is not None and certificate.design.cluster is not None
    if certificate.method == "exact" and not certificate.binary and not of_clusters:
        raise SchemaMismatch("needs binary = true", name="method", value="exact")
    if (kept := certificate.audit) is not None and (kept.counts is None or of_clusters) == certificate.binary:
        raise SchemaMismatch("keeps costs of another kind than binary says", name="audit")
    check_strata(certificate.strata, certificate.method)
    if (trials := certificate.trials) is not None and (certificate.n or 0) > trials.n:
        problem = f"has fewer trials than clusters, n = {certificate.n}"
        raise SchemaMismatch(problem, name="trials", value=trials.n)
    if certificate.lower > certificate.upper:
        problem = f"is above upper = {certificate.upper}"
        raise SchemaMismatch(problem, name="lower", value=certificate.lower)


def verify(
    certificate: Certificate,
    costs: ArrayLike | None = None,
    policy: str | os.PathLike[str] | None = None,
    derived: tuple[float, float] | None = None,
) -> list[Check]:
    """Derive every number again, limits unless they are `derived`; see `boundwatch.Certificate.verify`."""
    checks, known = [_check_delta(certificate)], certificate
    if policy is not None:
        checks.append(_same("policy_sha256", sha256_file(policy), certificate.provenance.policy_sha256))
    if costs is not None and certificate.source in ("external", "audit"):
        what = "labels, which it keeps" if certificate.audit else "a bound proved elsewhere"
        raise ProvenanceMismatch(f"costs: this certificate uses {what}", remedy="verify it without costs")
    if certificate.source == "external":
        ok = 0 <= certificate.lower <= certificate.upper <= 1
        detail = "in order; not derived again: taken over from elsewhere" if ok else "out of order"
        return [*checks, Check("limits", ok, detail)]
    if (kept := certificate.audit) is not None:
        checks += [_same("n", kept.n, certificate.n), _same("mean_cost", kept.mean, certificate.mean_cost)]
    if (pairs := certificate.predictions) is not None:
        values = np.array([cost for cost, _ in pairs.trials])
        checks += [_same("n", values.size, certificate.n)]
        checks += [_same("mean_cost", float(values.mean()), certificate.mean_cost)]
    if costs is not None:
        found, known = _compare(certificate, costs)
        checks += found
    elif (record := certificate.record) is not None:
        n, mean = certificate.n, certificate.mean_cost or 0.0
        ok = record.n == n and abs(record.mean - mean) <= _TOLERANCE
        fault = f"{record.n} costs of mean {record.mean:.10g} do not match n and mean_cost"
        checks.append(Check("record", ok, f"{len(record.values)} values" if ok else fault))
    if certificate.strata:
        checks.append(_check_strata(certificate))
    lower, upper = derived or limits.derive(known)
    return [*checks, _same("lower", lower, certificate.lower), _same("upper", upper, certificate.upper)]


def verify_all(certificates: Sequence[Certificate]) -> list[list[Check]]:
    """Derive every number of many certificates again, without their costs."""
    ours = [each for each in certificates if each.source != "external"]
    derived = dict(zip(map(id, ours), limits.derive_all(ours), strict=True))
    return [verify(each, derived=derived.get(id(each))) for each in certificates]


def _compare(certificate: Certificate, costs: ArrayLike) -> tuple[list[Check], Certificate]:
    """Compare costs with what a certificate keeps of them; return also the certificate that is theirs."""
    values, strata, checks = certificate.check_costs(costs), certificate.strata, []
    given = values.size
    if certificate.method == "rounds":
        found = _rounds(certificate, costs, values)
        values, strata = found.array().ravel(), found.strata(binary=certificate.binary)
    elif strata:
        if (tasks := tasks_of(costs)) is None:
            problem = "these costs do not say which task each is of"
            raise ProvenanceMismatch(problem, remedy=("give ", Argument("strata")))
        weights = {each.name: each.weight for each in strata}
        strata = strata_of(values, tasks, weights, binary=certificate.binary)
    elif certificate.method in ("anytime", "predicted-anytime"):
        values = values[: certificate.n]
    if values.size < given:  # a campaign stops in the middle of what may be a longer file
        checks.append(Check("stopped", True, f"after {values.size} of these {given} costs"))
    mean, record = mean_over(strata) if strata else float(values.mean()), certificate.record
    facts: dict[str, Any] = {"n": values.size, "mean_cost": mean, "record": record and CostRecord.of(values)}
    theirs = dataclasses.replace(certificate, strata=strata, **facts)
    checks.append(_same("costs_sha256", costs_digest(values), certificate.provenance.costs_sha256))
    checks += [_same(name, getattr(theirs, name), getattr(certificate, name)) for name in ("n", "mean_cost")]
    if theirs.record is not None and record is not None:
        ok = len(theirs.record.values) == len(record.values) and bool(
            np.allclose(theirs.record.arrays(), record.arrays(), rtol=_TOLERANCE, atol=_TOLERANCE)
        )
        checks.append(Check("record", ok, f"{len(record.values)} values" if ok else "not of these costs"))
    return checks, theirs


def _rounds(certificate: Certificate, costs: Any, values: NDArray[np.float64]) -> Rounds:
    """Return costs in rounds, from the task of each, or from one of each task after the other."""
    names, tasks = [each.name for each in certificate.strata], tasks_of(costs)
    found = Rounds({each.name: each.weight for each in certificate.strata})
    for place, cost in enumerate(values.tolist()):
        task = names[place % len(names)] if tasks is None else tasks[place]
        if task not in found.costs:
            raise ProvenanceMismatch(f"{task!r} is not among the certified tasks", remedy="leave it out")
        if len(found.costs[task]) < certificate.strata[0].n:
            found.add(cost, task)
    if not found.complete:
        raise ProvenanceMismatch("these costs complete no round", remedy="give at least one of each task")
    return found


def refuse_altered(checks: Sequence[Check]) -> None:
    """Raise `CertificateError` if anything does not follow."""
    if failed := [f"{check.name}: {check.detail}" for check in checks if not check.ok]:
        problem = f"{', '.join(failed)}; the file was altered"
        raise CertificateError(problem, remedy="certify again from the costs")


def on_trust(certificate: Certificate) -> str:
    """Return which numbers nothing in the certificate lets one derive again; nothing if there are none."""
    if certificate.source == "external":
        return "both limits, which were proved elsewhere"
    price = {"pac-bayes": "renyi", "pointwise": "log_ratio"}.get(certificate.source)
    return f"{price}, from which they follow" if price else ""


def _check_delta(certificate: Certificate) -> Check:
    """Held-out limits fail apart from each other; those of PAC-Bayes fail on one event."""
    above, below, stored = certificate.delta_upper, certificate.delta_lower, certificate.delta
    if certificate.source == "external":  # whoever proved it may know less of either than of each
        return _same("delta", max(above, below, stored), stored)
    return _same("delta", above + below if certificate.source in limits.APART else max(above, below), stored)


def _check_strata(certificate: Certificate) -> Check:
    """Compare the number and mean of the costs with those of the tasks, and theirs with what they keep."""
    strata, n = certificate.strata, sum(each.n for each in certificate.strata)
    ok = n == certificate.n and abs(mean_over(strata) - (certificate.mean_cost or 0.0)) <= _TOLERANCE
    faults = [] if ok else [f"{n} costs of mean {mean_over(strata):.10g} do not match n and mean_cost"]
    for each in strata:
        if abs((mean := float(each.costs.mean())) - each.mean_cost) > _TOLERANCE:
            faults.append(f"{each.n} costs of mean {mean:.10g} are not those of {each.name!r}")
    return Check("strata", not faults, "; ".join(faults) or f"{len(strata)} of them")


def _same(name: str, derived: float | str, stored: float | str | None) -> Check:
    """Compare what follows with what is stored: numbers but for rounding, digests exactly."""
    if isinstance(derived, str) or isinstance(stored, str | None):
        fault = ", but the certificate keeps none to compare with" if stored is None else ", not as certified"
        return Check(name, derived == stored, f"{derived}{'' if derived == stored else fault}")
    ok = abs(derived - stored) <= _TOLERANCE
    return Check(name, ok, f"{stored:.10g}" if ok else f"{stored:.10g} is stored, {derived:.10g} follows")
