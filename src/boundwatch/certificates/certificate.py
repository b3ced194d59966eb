"""Certificates: what is promised about a policy's expected cost, and how anybody can check it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Unpack

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import InNotebook, one_line
from boundwatch._support.files import canonical
from boundwatch._support.schema import Level, Probability, convert
from boundwatch._support.validation import check_costs, check_number
from boundwatch.bounds.kl import shifted_mean_upper
from boundwatch.bounds.pac_bayes import Variant
from boundwatch.bounds.predicted_mean import lucks_of
from boundwatch.certificates import limits, verification
from boundwatch.certificates.limits import Measured, Origin, fields_of, held_out
from boundwatch.certificates.record import (
    AuditRecord,
    CostRecord,
    PredictionRecord,
    Provenance,
    Stratum,
    Trials,
    plain,
)
from boundwatch.certificates.verification import Check, Saved
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import InvalidSetting, SchemaMismatch


@dataclass(frozen=True)
class Certificate(Saved, InNotebook):
    """A promise: lower <= expected cost <= upper, with probability at least 1 - delta.

    **Guarantee**: with probability at least 1 - `delta` over the draw of the episodes (and, for the PAC-Bayes
    kinds, of the policy), both limits hold; the upper one alone fails with probability at most
    `delta_upper`, the lower one with at most `delta_lower`. **Assumes**: i.i.d. episodes, costs in [0, 1], a
    policy that does not change afterward.

    Attributes
    ----------
    lower, upper
        The certified interval for the expected cost.
    delta
        Probability with which either limit may fail.
    delta_upper, delta_lower
        Probability with which each limit may fail; what a detector adds to its own error rates.
    n, mean_cost
        Number and mean of the costs behind it; None for a bound that somebody else proved.
    source
        ``"held-out"``, ``"audit"``, ``"pac-bayes"``, ``"pointwise"`` or ``"external"``.
    method
        How the limits follow from the costs: ``"betting"``, ``"kl"``, ``"pinsker"``, …
    binary
        Whether costs are promised to be 0 or 1, which allows the exact methods.
    renyi, log_ratio
        What the PAC-Bayes kinds pay for training: D2(P || P0), or ln P(w)/P0(w); None elsewhere.
    provenance
        When, with what, and from what it was made.
    record
        The costs behind it without their order, from which `verify` derives the limits again; None where `n`
        and `mean_cost` say as much (binary costs) or the limits follow from them (the PAC-Bayes kinds).
    measure, design
        How its costs were measured, None if nobody said so, and how its episodes relate to each other.
    strata
        If the mean over a fixed set of tasks is meant: each with its weight and what is kept of its costs.
    trials
        If its costs are means over clusters (see `design`), which `n` counts: the trials behind them.
    audit
        If a machine judged and people labeled some: what is kept of both. `n` then counts labels.
    predictions
        If predictions narrowed the limits: what is kept of each trial and of its predictions.
    """

    lower: Probability
    upper: Probability
    delta: Level
    delta_upper: Level
    delta_lower: Level
    n: Annotated[int, Meta(ge=1, le=1 << 53)] | None
    mean_cost: Probability | None
    source: limits.Source
    method: limits.Method
    binary: bool
    renyi: Annotated[float, Meta(ge=0)] | None
    log_ratio: float | None
    provenance: Provenance
    record: CostRecord | None
    measure: Measure | None
    design: Design
    strata: tuple[Stratum, ...] = ()
    trials: Trials | None = None
    audit: AuditRecord | None = None
    predictions: PredictionRecord | None = None

    def __post_init__(self) -> None:
        for name, kind in (("measure", Measure | None), ("design", Design)):
            if not isinstance(value := getattr(self, name), kind):
                raise InvalidSetting(f"is not a {name.title()}", name=name, value=value, remedy="make one")

    @classmethod
    def from_held_out(  # noqa: PLR0913  (every fact that a certificate keeps)
        cls,
        costs: ArrayLike | Measured | None = None,
        delta: float = 0.01,
        *,
        successes: ArrayLike | None = None,
        method: limits.HeldOutMethod | None = None,
        binary: bool | None = None,
        delta_upper: float | None = None,
        delta_lower: float | None = None,
        seed: int | None = None,
        policy: str | os.PathLike[str] | None = None,
        measure: Measure | None = None,
        predicted: Sequence[float | None] | None = None,
        unlabeled: Sequence[ArrayLike] = (),
    ) -> Certificate:
        """Certify a finished policy from episodes that it was not trained on.

        Parameters
        ----------
        costs
            One cost per episode, in [0, 1], higher is worse; at least one. Also what `boundwatch.read_costs`
            returns: `binary` and `measure` are then its own unless given.
        delta
            Probability with which either limit may fail; each side gets half of it.
        successes
            Instead of costs, whether each episode succeeded: True and False, or 1 and 0.
        method
            ``"betting"`` (any cost in [0, 1]; the default), ``"tuned"`` (betting for these levels alone, the
            default for clusters), ``"kl"``, ``"hoeffding"``, or ``"exact"`` (binary costs only, and then the
            default). Choose it before you look at the costs.
        binary
            Promise that costs are 0 or 1, now and when the certificate is used.
        delta_upper, delta_lower
            Give each side its own failure probability; both or neither. `delta` is then ignored.
        seed, policy
            For the provenance: the seed behind the episodes, and the policy's file (its SHA-256 is kept).
        measure
            How the costs were measured. It changes no number here; new costs are read in the same way, and
            those that are not are warned about.
        predicted, unlabeled
            The cost predicted for each trial, in the order of trials, and predictions for some other scenes
            that were not run, as in `PredictedTest.update`: narrower limits if they are good.

        Examples
        --------
        >>> cert = Certificate.from_held_out([0, 0, 1, 0] * 50, delta=0.01, binary=True)
        >>> round(cert.lower, 3), round(cert.upper, 3), cert.method
        (0.175, 0.337, 'exact')
        >>> Certificate.from_held_out(successes=[True, True, False, True] * 50).mean_cost
        0.25
        """
        origin = Origin(delta_upper=delta_upper, delta_lower=delta_lower, seed=seed, policy=policy)
        given: Any = {"successes": successes, "method": method, "measure": measure, "binary": binary}
        given["lucks"] = None if predicted is None else lucks_of(predicted, unlabeled)
        return cls._of(held_out(costs, delta, **given, **origin))

    @classmethod
    def from_audit(
        cls,
        audit: AuditRecord,
        delta: float = 0.05,
        *,
        judged: ArrayLike,
        design: Design = limits.PLAIN,
        **origin: Unpack[Origin],
    ) -> Certificate:
        """Certify a finished policy whose episodes a machine judged and people labeled in part.

        `boundwatch.Audit.certificate` makes one. `judged` are the judge's costs, for the provenance; `origin`
        is `delta_upper`, `delta_lower`, `seed`, `policy` and `measure`, as in `from_held_out`. Of clusters
        the mean over each one's trials is certified, as there.
        """
        origin["binary"] = audit.counts is not None and design.cluster is None
        given: dict[str, Any] = {"method": "exact" if audit.counts else "tuned", "audit": audit, **origin}
        return cls._of(fields_of("audit", judged, delta, design=design, **given))

    @classmethod
    def from_pac_bayes(
        cls,
        costs: ArrayLike,
        delta: float = 0.01,
        *,
        renyi: float,
        method: Variant = "kl",
        **origin: Unpack[Origin],
    ) -> Certificate:
        """Certify a policy drawn from a trained posterior, on its own training environments (Theorem 1).

        Parameters
        ----------
        costs
            One cost for each of the m >= 8 training environments, of the one policy drawn.
        delta
            Probability with which either limit may fail; one event gives both (Corollary 1).
        renyi
            D2 of the posterior from the prior, `boundwatch.bounds.renyi_divergence`.
        method
            ``"kl"`` (the line of the proof before Pinsker's inequality) or ``"pinsker"`` (as printed).
        **origin
            `binary`, `delta_upper`, `delta_lower`, `seed`, `policy` and `measure`, as in `from_held_out`.

        Examples
        --------
        >>> cert = Certificate.from_pac_bayes([0.2, 0.4] * 5000, delta=0.01, renyi=0.4)
        >>> round(cert.upper, 4), round(cert.lower, 4)
        (0.3307, 0.2705)
        """
        remedy = "it must be finite and >= 0, so keep every posterior variance below twice the prior's"
        price = check_number(renyi, "renyi", "a divergence that bounds anything", least=0, remedy=remedy)
        return cls._of(fields_of("pac-bayes", costs, delta, method=method, renyi=price, **origin))

    @classmethod
    def from_pointwise(
        cls, costs: ArrayLike, delta: float = 0.01, *, log_ratio: float, **origin: Unpack[Origin]
    ) -> Certificate:
        """Certify a policy drawn from a trained posterior by the pointwise bound, tighter than Theorem 1.

        Parameters
        ----------
        log_ratio
            ln P(w)/P0(w) of the policy drawn, `boundwatch.bounds.log_density_ratio`.
        costs, delta, **origin
            As in `from_pac_bayes`.

        Examples
        --------
        >>> cert = Certificate.from_pointwise([0.2, 0.4] * 5000, delta=0.01, log_ratio=1.3)
        >>> round(cert.upper, 4), round(cert.lower, 4)
        (0.322, 0.2786)
        """
        remedy = "check the densities of the policy drawn"
        price = check_number(log_ratio, "log_ratio", "a finite number", remedy=remedy)
        return cls._of(fields_of("pointwise", costs, delta, method="kl", log_ratio=price, **origin))

    @classmethod
    def from_bounds(
        cls, *, lower: float, upper: float, delta: float, **origin: Unpack[Origin]
    ) -> Certificate:
        """Use a bound that somebody else proved.

        It says: lower <= expected cost <= upper, with probability at least 1 - delta.

        Parameters
        ----------
        lower, upper
            The interval, 0 <= lower <= upper <= 1.
        delta
            Probability with which either limit may fail. Each side counts as failing this often, too,
            unless `delta_upper` and `delta_lower` say better.
        **origin
            As in `from_pac_bayes`.

        Examples
        --------
        >>> Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01).upper
        0.2
        """
        remedy = "give 0 <= lower <= upper <= 1, for costs scaled to [0, 1]"
        high = check_number(upper, "upper", "a limit in [0, 1]", least=0, most=1, remedy=remedy)
        what = f"a limit between 0 and upper = {high:g}"
        low = check_number(lower, "lower", what, least=0, most=high, remedy=remedy)
        given = fields_of("external", None, delta, method="external", **origin)
        return cls(**given | {"lower": low, "upper": high})

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Certificate:
        """Return the certificate of these fields, with the limits that follow from them."""
        draft = cls(**fields)
        lower, upper = limits.derive(draft)
        return dataclasses.replace(draft, lower=lower, upper=upper)

    @property
    def failures(self) -> int | None:
        """How many of the `n` episodes failed, if costs are binary."""
        if not self.binary or self.n is None or self.mean_cost is None or self.audit:
            return None
        if self.strata:  # whose weights may differ
            return sum(each.failures for each in self.strata)
        return round(self.mean_cost * self.n)

    @cached_property
    def saved_trials(self) -> int | None:
        """About how many more trials without predictions give limits as narrow; below 0, fewer."""
        return limits.saved_by_predictions(self)

    @property
    def shares_of(self) -> str | None:
        """What its costs are shares of failed trials in: ``"scene"``, say; None if they are no such means."""
        failed = None if self.trials is None else self.trials.failures
        return None if self.binary or failed is None else self.design.cluster

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate's canonical JSON: any change to any number changes it."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    def __repr__(self) -> str:
        names = ("lower", "upper", "delta", "n", "source", "method", "binary")
        facts = {name: getattr(self, name) for name in names}
        return one_line(self, facts | {"fingerprint": self.fingerprint[:12]})

    def check_costs(self, costs: ArrayLike, *, ndim: int = 1) -> NDArray[np.float64]:
        """Return new costs as an array, or refuse those of another kind than were certified.

        Examples
        --------
        >>> Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).check_costs([0, 0.5])
        Traceback (most recent call last):
        boundwatch.errors.InvalidCost: costs[1] = 0.5 is not 0 or 1; binary costs were promised
        """
        return check_costs(costs, binary=self.binary, ndim=ndim)

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON values, the content of its file."""
        parts: dict[str, Any] = {"schema_version": verification.VERSION}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value or name not in ("strata", "trials", "audit", "predictions"):
                parts[name] = value.to_dict() if hasattr(value, "to_dict") else plain(value)
        return parts

    def _row(self) -> dict[str, Any]:
        long = "record.", "strata", "audit", "predictions"
        return {name: cell for name, cell in super()._row().items() if not name.startswith(long)}

    @classmethod
    def from_dict(cls, content: object) -> Certificate:
        """Rebuild a certificate from `to_dict`; see `load` for what is checked."""
        certificate = cls._unverified(content)
        verification.refuse_altered(certificate.verify())
        return certificate

    @classmethod
    def _unverified(cls, content: object) -> Certificate:
        """Return a certificate whose numbers need not follow from each other."""
        if not isinstance(content, dict) or "schema_version" not in content:
            remedy = "give the file that certify or Certificate.save wrote"
            raise SchemaMismatch("no schema_version; not a certificate", remedy=remedy)
        if "certificates" in content:
            problem = "holds the certificates of several tasks, but one is needed here"
            remedy = "take it out with: boundwatch show FILE --task NAME -o OTHER_FILE"
            raise SchemaMismatch(problem, remedy=remedy)
        certificate = convert(cls, verification.body(content))
        verification.check_fields(certificate)
        return certificate

    def under_shift(self, *, kl: float | None = None, tv: float | None = None) -> float:
        """Return the worst expected cost in any world within a stated distance of the certified one.

        **Guarantee**: with probability at least 1 - `delta_upper`, no world within the distance has a higher
        expected cost. For costs of 0 and 1, some world within it has this one if the upper limit is exact.

        Parameters
        ----------
        kl
            Relative entropy KL(new world || certified world) in nats, >= 0.
        tv
            Or total variation, in [0, 1]: the largest difference in the probability of any event.

        Examples
        --------
        >>> certificate = Certificate.from_bounds(lower=0.0, upper=0.1, delta=0.01)
        >>> round(certificate.under_shift(kl=0.1), 4), round(certificate.under_shift(tv=0.1), 4)
        (0.2569, 0.2)
        """
        if (kl is None) == (tv is None):
            raise InvalidSetting("give one distance: kl= (relative entropy, nats) or tv= (total variation)")
        if tv is not None:
            moved = check_number(tv, "tv", "a total variation", least=0, most=1, remedy="it lies in [0, 1]")
            return min(self.upper + moved, 1.0)
        remedy = "it must be finite and >= 0, in nats"
        return float(shifted_mean_upper(self.upper, check_number(kl, "kl", "a distance", 0, remedy=remedy)))

    def verify(
        self, costs: ArrayLike | None = None, *, policy: str | os.PathLike[str] | None = None
    ) -> list[Check]:
        """Derive every number again, from what the certificate keeps and, if given, from the costs.

        A certificate keeps a record of its costs, from which all its limits follow; only a bound taken over
        from elsewhere cannot be derived again: its limits' order is checked then, and the check says so.

        Parameters
        ----------
        costs
            The costs that the certificate was made from, in their order.
        policy
            The file of the policy that was certified; its SHA-256 is compared.

        Returns
        -------
        One `Check` per number; the certificate stands if all are ok.

        Examples
        --------
        >>> cert = Certificate.from_held_out([0, 0, 1, 0], delta=0.1, binary=True)
        >>> all(check.ok for check in cert.verify([0, 0, 1, 0]))
        True
        >>> [check.name for check in cert.verify([0, 1, 1, 0]) if not check.ok]
        ['costs_sha256', 'mean_cost', 'lower', 'upper']
        """
        return verification.verify(self, costs, policy)


def require_certificate(value: object, name: str = "certificate") -> Certificate:
    """Return a certificate, or refuse what a detector cannot compare with."""
    if not isinstance(value, Certificate):
        raise InvalidSetting("is not a Certificate", name=name, value=value, remedy="make or load one")
    if value.audit is not None and value.design.strata is not None:
        problem = "is of the mean over tasks as an audit shows it, which judges no new costs"
        raise InvalidSetting(problem, name=name, remedy="audit the episodes of each task alone")
    return value
