"""How a certificate's limits follow from its costs: used to make a certificate, and to check one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from boundwatch import bounds
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.cost_grid import largest_refuted
from boundwatch.certificates.drafting import check_number
from boundwatch.certificates.record import CostRecord
from boundwatch.errors import CertificateError, InvalidSetting

FACTS = (
    "source", "method", "n", "mean_cost", "binary",
    "delta_upper", "delta_lower", "renyi", "log_ratio", "record",
)  # fmt: skip
"""The fields of a certificate that its limits follow from: the arguments of `derive`."""


def derive_all(facts: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return the limits of many certificates, each from the arguments of `derive`.

    What is the same is derived once, and what takes long, for many at once.
    """
    found: dict[int, tuple[float, float]] = {}
    derived: dict[tuple[Any, ...], tuple[float, float]] = {}
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(facts):
        record = each.get("record")
        if (each["source"], each["method"]) == ("held-out", "betting") and record is not None:
            alike.setdefault((record.n, each["delta_lower"], each["delta_upper"]), []).append(place)
            continue
        key = tuple(each.values())
        if key not in derived:
            derived[key] = derive(**each)
        found[place] = derived[key]
    for (_, delta_lower, delta_upper), places in alike.items():
        records = [facts[place]["record"] for place in places]
        found |= zip(places, _by_betting(records, delta_lower, delta_upper), strict=True)
    return [found[place] for place in range(len(facts))]


def derive(  # noqa: PLR0913  (the facts from which limits follow)
    source: str,
    method: str,
    *,
    n: int | None,
    mean_cost: float | None,
    binary: bool,
    delta_upper: float,
    delta_lower: float,
    renyi: float | None = None,
    log_ratio: float | None = None,
    record: CostRecord | None = None,
) -> tuple[float, float]:
    """Return the lower and the upper limit on the expected cost.

    Parameters are the fields of `boundwatch.Certificate`. A method that looks at every single cost needs the
    `record` of costs; for costs of 0 and 1, `n` and `mean_cost` say as much.
    """
    size, mean = _present(n, "n"), _present(mean_cost, "mean_cost")
    failures = round(mean * size)
    pair: tuple[Any, Any]

    def both(below: Callable[..., Any], above: Callable[..., Any], *facts: Any) -> tuple[Any, Any]:
        first, rest = facts[:2], facts[2:]
        return below(*first, delta_lower, *rest), above(*first, delta_upper, *rest)

    match source, method:
        case "held-out", "betting":
            record = record or (CostRecord.of_failures(size, failures) if binary else None)
            pair = _by_betting([_present(record, "record")], delta_lower, delta_upper)[0]
        case "held-out", "exact":
            pair = both(bounds.clopper_pearson_lower, bounds.clopper_pearson_upper, failures, size)
        case "held-out", "anytime" if binary:
            pair = both(bounds.anytime_lower, bounds.anytime_upper, failures, size)
        case "held-out", "anytime":
            values, weights = _present(record, "record").arrays()
            bets = Bets.for_costs(binary=False)
            upper = 1 - largest_refuted(bets, 1 - values, weights, delta_upper)
            pair = largest_refuted(bets, values, weights, delta_lower), np.nextafter(upper, 2.0)
        case "held-out", "kl":
            pair = both(bounds.chernoff_lower, bounds.chernoff_upper, mean, size)
        case "held-out", "hoeffding":
            pair = both(bounds.hoeffding_lower, bounds.hoeffding_upper, mean, size)
        case "pac-bayes", ("kl" | "pinsker"):
            divergence = _present(renyi, "renyi")
            pair = both(bounds.pac_bayes_lower, bounds.pac_bayes_upper, mean, size, divergence, method)
        case "pointwise", "kl":
            ratio = _present(log_ratio, "log_ratio")
            pair = both(bounds.pointwise_lower, bounds.pointwise_upper, mean, size, ratio)
        case _:
            raise CertificateError(
                f"method = {method!r} of source = {source!r} derives no limits; certify again, "
                "or use the version of boundwatch that made the certificate"
            )
    return max(float(pair[0]), 0.0), min(float(pair[1]), 1.0)


def shifted_upper(upper: float, kl: float | None, tv: float | None) -> float:
    """Return the worst expected cost within a distance; see `boundwatch.Certificate.under_shift`."""
    if (kl is None) == (tv is None):
        raise InvalidSetting("give one distance: kl= (relative entropy, nats) or tv= (total variation)")
    if tv is not None:
        tv = check_number(tv, "tv")
        if not 0 <= tv <= 1:
            problem = "is not a total variation"
            raise InvalidSetting(problem, name="tv", value=tv, remedy="it lies in [0, 1]")
        return min(upper + tv, 1.0)
    kl = check_number(kl, "kl")
    if not 0 <= kl < math.inf:
        remedy = "it must be finite and >= 0, in nats"
        raise InvalidSetting("is not a distance", name="kl", value=kl, remedy=remedy)
    return float(bounds.shifted_mean_upper(upper, kl))


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


def _present(value: Any, name: str) -> Any:
    if value is None:  # the schema does not let this through; a certificate built by hand might
        raise CertificateError(f"{name} is missing, from which the limits follow; certify again")
    return value
