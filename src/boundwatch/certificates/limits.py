"""A certificate before its limits, and how these follow: to make a certificate, and to check one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch import bounds
from boundwatch._support.validation import check_choice, check_costs, check_flag, check_level
from boundwatch.bounds.audit import audit_lower, audit_upper, bounded_upper
from boundwatch.bounds.bets import Bets, largest_refuted
from boundwatch.bounds.pac_bayes import Variant
from boundwatch.bounds.predicted_mean import HEDGE, Luck, MeanBets
from boundwatch.bounds.rounds import rounds_lower, rounds_upper
from boundwatch.bounds.strata import pooled_lower, pooled_upper, weighted_lower
from boundwatch.certificates.record import (
    AuditRecord,
    CostRecord,
    PredictionRecord,
    Stratum,
    Trials,
    is_balanced,
    mean_over,
    provenance_of,
    rounds_of,
    strata_of,
    tasks_of,
)
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import Argument, CertificateError, InvalidLevel, InvalidSetting

if TYPE_CHECKING:
    from boundwatch.certificates.certificate import Certificate

HeldOutMethod = Literal["betting", "tuned", "kl", "hoeffding", "exact"]
"""How limits may follow from a number of held-out costs that was fixed in advance."""
Predicted = Literal["predicted", "predicted-anytime"]
"""How limits follow with the help of predictions: for one look, or for all times."""
Method = HeldOutMethod | Variant | Predicted | Literal["anytime", "rounds", "weighted", "external"]
Source = Literal["held-out", "audit", "pac-bayes", "pointwise", "external"]
METHODS: dict[Source, tuple[Method, ...]] = {
    "held-out": (*get_args(HeldOutMethod), *get_args(Predicted), "anytime", "rounds", "weighted"),
    "audit": ("exact", "tuned"),
    "pac-bayes": get_args(Variant),
    "pointwise": ("kl",),
    "external": ("external",),
}
"""The methods of each source of a certificate."""
APART = ("held-out", "audit")
"""The sources whose limits fail apart from each other, and so share delta."""
_AGAIN = "certify again, or use the version of boundwatch that made the certificate"
_PAC_BAYES = bounds.pac_bayes_lower, bounds.pac_bayes_upper

_BOUNDS: dict[tuple[Source, Method], tuple[Any, Any, str, tuple[str, ...]]] = {
    ("held-out", "exact"): (bounds.clopper_pearson_lower, bounds.clopper_pearson_upper, "failures", ()),
    ("held-out", "anytime"): (bounds.anytime_lower, bounds.anytime_upper, "failures", ()),
    ("held-out", "kl"): (bounds.chernoff_lower, bounds.chernoff_upper, "mean_cost", ()),
    ("held-out", "hoeffding"): (bounds.hoeffding_lower, bounds.hoeffding_upper, "mean_cost", ()),
    ("pac-bayes", "kl"): (*_PAC_BAYES, "mean_cost", ("renyi", "method")),
    ("pac-bayes", "pinsker"): (*_PAC_BAYES, "mean_cost", ("renyi", "method")),
    ("pointwise", "kl"): (bounds.pointwise_lower, bounds.pointwise_upper, "mean_cost", ("log_ratio",)),
}
"""Which functions give the limits, from which field beside n and delta, and at which price."""


def derive(certificate: Certificate) -> tuple[float, float]:
    """Return the lower and the upper limit that follow from the other fields of a certificate."""
    below, above, record = certificate.delta_lower, certificate.delta_upper, certificate.record
    kind = certificate.source, certificate.method
    if certificate.strata:
        return _OVER_TASKS[certificate.method](certificate.strata, below, above)
    if certificate.predictions is not None:
        return _by_predictions(certificate, certificate.predictions)
    if certificate.audit is not None:
        return audit_limits(certificate.audit, below, above, policy=True)
    if kind == ("held-out", "betting"):
        return _by_betting([record or _failures_of(certificate)], below, above)[0]
    if kind == ("held-out", "tuned"):
        values, weights = (record or _failures_of(certificate)).arrays()
        lower = float(bounds.tuned_lower(values, below, weights))
        return lower, float(bounds.tuned_upper(values, above, weights))
    if kind == ("held-out", "anytime") and record is not None:
        values, weights = record.arrays()
        bets = Bets.for_costs(binary=False)
        upper = 1 - largest_refuted(bets, 1 - values, weights, above)
        return largest_refuted(bets, values, weights, below), min(float(np.nextafter(upper, 2.0)), 1.0)
    if kind not in _BOUNDS:
        problem = f"method = {kind[1]!r} of source = {kind[0]!r} derives no limits"
        raise CertificateError(problem, remedy=_AGAIN)
    lower_of, upper_of, first, names = _BOUNDS[kind]
    known, price = _present(certificate, first, "n"), _present(certificate, *names)
    return max(float(lower_of(*known, below, *price)), 0.0), min(float(upper_of(*known, above, *price)), 1.0)


def audit_limits(
    kept: AuditRecord, delta_lower: float, delta_upper: float, *, policy: bool
) -> tuple[float, float]:
    """Return limits on the mean of all judged episodes, or on the expected cost of the policy."""
    how: Any = {"policy": policy, "units": kept.units}
    if kept.counts is not None:
        return audit_lower(kept.counts, delta_lower, **how), audit_upper(kept.counts, delta_upper, **how)
    given = [np.array(each.arrays()) for each in kept.costs or ()]
    mirrored = [np.stack([1 - values, weights]) for values, weights in given]
    above, below = bounded_upper(mirrored, delta_lower, **how), bounded_upper(given, delta_upper, **how)
    return max(1 - float(above), 0.0), float(below)


def _by_predictions(certificate: Certificate, kept: PredictionRecord) -> tuple[float, float]:
    """Return limits by bets that use predictions, beside those of costs alone."""
    below, above, lower, upper = certificate.delta_lower, certificate.delta_upper, 0.0, 1.0
    bets = MeanBets.anytime(below, above)
    if certificate.method == "predicted":
        hedge = 0.0 if certificate.binary else HEDGE  # bets on failures are nearly exact by themselves
        bets = MeanBets((1 - hedge) * below, (1 - hedge) * above, horizon=len(kept.luck))
        if hedge:
            lower, upper = derive(_alone(certificate, delta_lower=hedge * below, delta_upper=hedge * above))
    for cost, luck in kept.trials:
        bets.add(cost, luck)
    lower, upper = max(lower, bets.lower), min(upper, bets.upper)
    # Limits that cross have failed somewhere: both are moved outward.
    return min(lower, upper), max(lower, upper)


def _alone(certificate: Certificate, **changes: Any) -> Certificate:
    """Return the same without its predictions; its limits are not those that follow."""
    once: Method = "exact" if certificate.binary else "betting"
    method: Method = once if certificate.method == "predicted" else "anytime"
    return dataclasses.replace(certificate, predictions=None, method=method, **changes)


def saved_by_predictions(certificate: Certificate) -> int | None:
    """Return about how many more trials without predictions would have given limits as narrow.

    Fewer than none if predictions cost some; None for a certificate without predictions.
    """
    if certificate.predictions is None:
        return None
    lower, upper = derive(_alone(certificate))
    return round(
        ((upper - lower) ** 2 / (certificate.upper - certificate.lower) ** 2 - 1) * (certificate.n or 0)
    )


def _by_rounds(strata: Sequence[Stratum], delta_lower: float, delta_upper: float) -> tuple[float, float]:
    costs, weights = rounds_of(strata), [each.weight for each in strata]
    lower, upper = rounds_lower(costs, delta_lower, weights), rounds_upper(costs, delta_upper, weights)
    # Limits that were the narrowest once may cross: then one of them failed, and both are moved outward.
    return min(lower, upper), max(lower, upper)


def _exact(strata: Sequence[Stratum], delta_lower: float, delta_upper: float) -> tuple[float, float]:
    failures, n = sum(each.failures for each in strata), sum(each.n for each in strata)
    return float(pooled_lower(failures, n, delta_lower)), float(pooled_upper(failures, n, delta_upper))


def _betting(strata: Sequence[Stratum], delta_lower: float, delta_upper: float) -> tuple[float, float]:
    costs = np.concatenate([each.costs for each in strata])
    lower, upper = bounds.betting_lower(costs, delta_lower), bounds.betting_upper(costs, delta_upper)
    return max(float(lower), 0.0), min(float(upper), 1.0)


def _weighted(strata: Sequence[Stratum], delta_lower: float, delta_upper: float) -> tuple[float, float]:
    means, n, weights = np.array([(each.mean_cost, each.n, each.weight) for each in strata]).T
    rest = weighted_lower(1 - means, n, weights, delta_upper)
    lower = weighted_lower(means, n, weights, delta_lower)
    return max(lower, 0.0), min(float(np.nextafter(1 - rest, 2.0)), 1.0)


_OVER_TASKS = {"exact": _exact, "betting": _betting, "weighted": _weighted, "rounds": _by_rounds}
"""How limits on the mean over tasks follow."""


def _failures_of(certificate: Certificate) -> CostRecord:
    failures, n = _present(certificate, "failures", "n")
    return CostRecord.of_failures(n, failures)


def _present(certificate: Certificate, *names: str) -> list[Any]:
    values = [getattr(certificate, name) for name in names]
    if None in values:  # no file gets here; a certificate built by hand might
        name = names[values.index(None)]
        raise CertificateError("is missing, from which the limits follow", name=name, remedy="certify again")
    return values


def derive_all(certificates: Sequence[Certificate]) -> list[tuple[float, float]]:
    """Return the limits of many certificates: what takes long, for many at once."""
    found: dict[int, tuple[float, float]] = {}
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(certificates):
        if each.method == "betting" and each.record is not None:
            alike.setdefault((each.delta_lower, each.delta_upper, each.record.n), []).append(place)
        else:
            found[place] = derive(each)
    for (below, above, _), places in alike.items():
        records = [record for place in places if (record := certificates[place].record) is not None]
        found |= zip(places, _by_betting(records, below, above), strict=True)
    return [found[place] for place in range(len(certificates))]


def _by_betting(
    records: Sequence[CostRecord], delta_lower: float, delta_upper: float
) -> list[tuple[float, float]]:
    """Return the limits from records of equally many costs."""
    width = max(len(record.values) for record in records)
    rows = np.zeros((2, len(records), width))  # what is added at the end of a row occurs zero times
    for row, record in enumerate(records):
        rows[:, row, : len(record.values)] = record.values, record.weights
    values, weights = rows
    lower = bounds.betting_lower(values, delta_lower, weights)
    upper = bounds.betting_upper(values, delta_upper, weights)
    return list(zip(np.maximum(lower, 0.0).tolist(), np.minimum(upper, 1.0).tolist(), strict=True))


class Origin(TypedDict, total=False):
    """What every certificate may be given beside its costs and delta."""

    binary: bool | None
    delta_upper: float | None
    delta_lower: float | None
    seed: int | None
    policy: str | os.PathLike[str] | None
    measure: Measure | None


PLAIN = Design()
"""Of costs about which nothing else was declared."""


class Measured(Protocol):
    """Costs that come with how they were measured, such as `boundwatch.episodes.Episodes`."""

    costs: NDArray[np.float64]
    binary: bool
    measure: Measure
    design: Design
    keys: Mapping[Any, Sequence[str]]

    @property
    def trials(self) -> Trials | None:
        """The trials behind costs that are means over clusters."""


def held_out(
    costs: ArrayLike | Measured | None,
    delta: float,
    *,
    successes: ArrayLike | None = None,
    method: HeldOutMethod | None,
    binary: bool | None,
    measure: Measure | None,
    lucks: Sequence[Luck] | None = None,
    **origin: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate from held-out costs; see `boundwatch.Certificate.from_held_out`."""
    if (costs is None) == (successes is None):
        raise InvalidSetting("give either costs or successes, one of the two")
    design, trials, tasks = PLAIN, None, None
    if successes is not None:
        given = np.asarray(successes)
        truths = check_costs(given * 1.0 if given.dtype.kind == "b" else given, binary=True, name="successes")
        costs, binary, measure = 1 - truths, True, measure or Measure("success")
    elif isinstance(getattr(costs, "measure", None), Measure):
        read = cast("Measured", costs)
        binary = read.binary if binary is None else binary
        measure, design, trials, costs = measure or read.measure, read.design, read.trials, read.costs
        tasks = tasks_of(read)
    binary = binary is not None and check_flag(binary, "binary")
    origin |= {"binary": binary, "measure": measure, "trials": trials}
    if lucks is not None:
        if tasks is not None or trials is not None or method is not None:
            problem = "go with single trials of one task, and with limits of their own"
            raise InvalidSetting(
                problem, name="predicted", remedy="leave out strata, clusters and the method"
            )
        return with_predictions(cast("ArrayLike", costs), lucks, delta, "predicted", design=design, **origin)
    if tasks is not None:
        return _of_strata(cast("ArrayLike", costs), tasks, design, delta, method, **origin)
    if method is None:
        method = "exact" if binary else "betting" if trials is None else "tuned"
    else:
        check_choice(method, "method", get_args(HeldOutMethod))
    if method == "exact" and not binary:
        remedy = ("pass ", Argument("binary", True), ", or use 'betting' or 'kl'")
        raise InvalidSetting("needs binary costs", name="method", value=method, remedy=remedy)
    return fields_of("held-out", costs, delta, method=method, design=design, **origin)


def _of_strata(
    costs: ArrayLike,
    tasks: Sequence[str],
    design: Design,
    delta: float,
    method: HeldOutMethod | None,
    *,
    binary: bool,
    **origin: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate of the mean over a fixed set of tasks."""
    values = check_costs(costs, binary=binary)
    strata = strata_of(values, tasks, design.weights, binary=binary)
    usual: Method = ("exact" if binary else "betting") if is_balanced(strata) else "weighted"
    if method not in (None, usual):
        problem = f"does not go with the mean over these tasks, whose limits are by {usual!r}"
        raise InvalidSetting(problem, name="method", value=method, remedy="leave it out")
    origin |= {"design": dataclasses.replace(design, strata=design.strata or "task"), "strata": strata}
    return fields_of("held-out", values, delta, binary=binary, method=usual, **origin)


def with_predictions(
    costs: ArrayLike, lucks: Sequence[Luck], delta: float, method: Predicted, *, binary: bool, **fields: Any
) -> dict[str, Any]:
    """Return the fields of a certificate of trials that came with predictions."""
    values = check_costs(costs, binary=binary)
    if len(lucks) != values.size:
        problem, remedy = f"are {len(lucks)} for {values.size} trials", "give one per trial"
        raise InvalidSetting(problem, name="predicted", remedy=remedy)
    kept = PredictionRecord.of(values.tolist(), lucks)
    return fields_of("held-out", values, delta, method=method, binary=binary, predictions=kept, **fields)


def fields_of(
    source: Source,
    costs: Any,
    delta: float,
    *,
    binary: object = None,
    delta_upper: float | None = None,
    delta_lower: float | None = None,
    seed: int | None = None,
    policy: str | os.PathLike[str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate that promises nothing yet: its limits follow from the others.

    `costs` are None for a bound that was proved elsewhere; `fields` are further ones, among them the method.
    """
    found = dict.fromkeys(("n", "mean_cost", "renyi", "log_ratio", "record", "measure"))
    found |= {"source": source, "lower": 0.0, "upper": 1.0, "design": PLAIN} | fields
    found["binary"] = binary = binary is not None and check_flag(binary, "binary")
    deltas = split_delta(source, delta, delta_upper, delta_lower)
    found |= zip(("delta", "delta_upper", "delta_lower"), deltas, strict=True)
    values = None if costs is None else check_costs(costs, binary=binary)
    if values is not None:
        found |= {"n": values.size, "mean_cost": float(values.mean())}
        if strata := fields.get("strata"):
            found["mean_cost"] = mean_over(strata)
        elif audit := fields.get("audit"):
            found |= {"n": audit.n, "mean_cost": audit.mean}
        elif source == "held-out" and not binary:
            found["record"] = CostRecord.of(values)
    return found | {"provenance": provenance_of(values, seed, policy)}


def split_delta(
    source: Source, delta: float, delta_upper: float | None, delta_lower: float | None
) -> tuple[float, float, float]:
    """Return the failure probabilities of either limit, of the upper and of the lower one.

    Those of some sources share delta, see `APART`; elsewhere one event gives both.
    """
    if (delta_upper is None) != (delta_lower is None):
        raise InvalidSetting("delta_upper and delta_lower go together", remedy="give both, or delta alone")
    if delta_upper is None or delta_lower is None:
        above = below = check_level(delta, "delta") * (0.5 if source in APART else 1.0)
    else:
        above, below = check_level(delta_upper, "delta_upper"), check_level(delta_lower, "delta_lower")
    if source in APART:
        if above + below >= 1:
            problem = f"delta_upper + delta_lower = {above + below:g} promises nothing"
            raise InvalidLevel(problem, remedy="keep it below 1")
        return above + below, above, below
    larger = max(above, below)
    if source != "external":
        return larger, above, below
    if check_level(delta, "delta") < larger:
        problem, remedy = f"is below {larger:g}, with which one side alone may fail", "give that of either"
        raise InvalidLevel(problem, name="delta", value=delta, remedy=remedy)
    return float(delta), above, below
