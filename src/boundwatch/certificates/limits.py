"""How a certificate's limits follow from its costs: used to make a certificate, and to check one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boundwatch import bounds
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.cost_grid import largest_refuted
from boundwatch.certificates.drafting import check_number
from boundwatch.certificates.record import CostRecord
from boundwatch.errors import CertificateError, InvalidSetting

FACTS = (
    "source",
    "method",
    "n",
    "mean_cost",
    "binary",
    "delta_upper",
    "delta_lower",
    "renyi",
    "log_ratio",
    "record",
)
"""The fields of a certificate that its limits follow from: the arguments of `derive`."""


def derive_all(facts: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return the limits of many certificates, each from the arguments of `derive`.

    What is the same is derived once, and what takes long, for many at once.

    Examples
    --------
    >>> costs = CostRecord.of(np.array([0.1, 0.2, 0.2]))
    >>> one = dict(source="held-out", method="betting", n=3, mean_cost=0.5 / 3, binary=False, record=costs)
    >>> one |= {"delta_upper": 0.05, "delta_lower": 0.05}
    >>> derive_all([one, one]) == [derive(**one)] * 2
    True
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


def derive(
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

    Raises
    ------
    CertificateError
        For a source and method that do not go together, or when a number is missing that they need.

    Examples
    --------
    >>> derive("held-out", "hoeffding", n=200, mean_cost=0.25, binary=True, delta_upper=0.1, delta_lower=0.1)
    (0.1741..., 0.3258...)
    >>> derive("held-out", "guess", n=200, mean_cost=0.25, binary=True, delta_upper=0.1, delta_lower=0.1)
    Traceback (most recent call last):
    boundwatch.errors.CertificateError: method = 'guess' of source = 'held-out' derives no limits; ...
    """
    size, mean = _present(n, "n"), _present(mean_cost, "mean_cost")
    match source, method:
        case "held-out", "betting":
            record = record or (CostRecord.of_failures(size, round(mean * size)) if binary else None)
            pair: tuple[Any, Any] = _by_betting([_present(record, "record")], delta_lower, delta_upper)[0]
        case "held-out", "exact":
            failures = round(mean * size)
            pair = (
                bounds.clopper_pearson_lower(failures, size, delta_lower),
                bounds.clopper_pearson_upper(failures, size, delta_upper),
            )
        case "held-out", "anytime" if binary:
            failures = round(mean * size)
            pair = (
                bounds.anytime_lower(failures, size, delta_lower),
                bounds.anytime_upper(failures, size, delta_upper),
            )
        case "held-out", "anytime":
            values, weights = _present(record, "record").arrays()
            bets = Bets.for_costs(binary=False)
            pair = (
                largest_refuted(bets, values, weights, delta_lower),
                np.nextafter(1 - largest_refuted(bets, 1 - values, weights, delta_upper), 2.0),
            )
        case "held-out", "kl":
            pair = (
                bounds.chernoff_lower(mean, size, delta_lower),
                bounds.chernoff_upper(mean, size, delta_upper),
            )
        case "held-out", "hoeffding":
            pair = (
                bounds.hoeffding_lower(mean, size, delta_lower),
                bounds.hoeffding_upper(mean, size, delta_upper),
            )
        case "pac-bayes", ("kl" | "pinsker"):
            divergence = _present(renyi, "renyi")
            pair = (
                bounds.pac_bayes_lower(mean, size, delta_lower, divergence, method),
                bounds.pac_bayes_upper(mean, size, delta_upper, divergence, method),
            )
        case "pointwise", "kl":
            ratio = _present(log_ratio, "log_ratio")
            pair = (
                bounds.pointwise_lower(mean, size, delta_lower, ratio),
                bounds.pointwise_upper(mean, size, delta_upper, ratio),
            )
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
