"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.errors import ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes import Episodes

_FEW_ORDERS = math.log(1000)
OWN = "these are the costs that the certificate was made from"


def fit(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate, *, allow_own: bool = False
) -> Episodes:
    """Return new episodes with warnings if no verdict should be built on them.

    Raises
    ------
    ProvenanceMismatch
        If they are those that the certificate was made from, unless `allow_own`: it cannot judge them.
    """
    if isinstance(certificates, Certificate):
        pairs = [("", certificates, episodes.costs)]
    else:
        new = episodes.by_task()
        pairs = [(f"{t}: ", certificate, new[t]) for t, certificate in certificates.items() if t in new]
    found: list[str] = []
    for task, certificate, costs in pairs:
        if certificate.provenance.costs_sha256 == costs_digest(costs):
            if by_chance(costs):
                found.append(
                    f"{episodes.source}: {task}these costs are those of the certificate one by one, which "
                    "may be chance; if they are the same episodes, it cannot judge them"
                )
                continue
            if not allow_own:
                raise ProvenanceMismatch(
                    f"{episodes.source}: {task}{OWN}; it cannot judge them, so give new episodes "
                    "(--allow-own or, in Python, their .costs to see what it would say)"
                )
            found.append(f"{episodes.source}: {task}{OWN}, and they cannot be judged by it")
        else:
            differences = [
                *measured_otherwise(certificate, episodes.measured),
                *_alike(episodes, certificate, costs),
            ]
            found += (f"{episodes.source}: {task}{warning}" for warning in differences)
    return dataclasses.replace(episodes, warnings=tuple(dict.fromkeys((*episodes.warnings, *found))))


def fitting(costs: ArrayLike, certificate: Certificate) -> ArrayLike:
    """Return costs as they are; of `Episodes`, say as Python warnings what makes a verdict on them doubtful.

    Raises
    ------
    ProvenanceMismatch
        If they are those that the certificate was made from.

    Examples
    --------
    >>> fitting([0.1, 0.2], Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
    [0.1, 0.2]
    """
    if not hasattr(costs, "against"):
        return costs
    episodes: Episodes = costs.against(certificate)
    for warning in episodes.warnings:
        warnings.warn(warning, stacklevel=3)
    return episodes.costs


def by_chance(costs: NDArray[np.float64]) -> bool:
    """Return whether other episodes may well have the same costs in the same order: if few orders exist.

    Examples
    --------
    >>> by_chance(np.zeros(50)), by_chance(np.arange(50) % 2)
    (True, False)
    """
    counts = np.unique(costs, return_counts=True)[1]
    return bool(gammaln(costs.size + 1) - gammaln(counts + 1).sum() < _FEW_ORDERS)


class OwnCosts:
    """Notices, cost by cost, that a stream begins with the costs that a certificate was made from.

    Examples
    --------
    >>> costs = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7]
    >>> own = OwnCosts(Certificate.from_held_out(costs))
    >>> [own.repeats(cost) for cost in costs]
    [False, False, False, False, False, False, True]
    """

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self._costs: list[float] | None = [] if certificate.provenance.costs_sha256 is not None else None

    def repeats(self, cost: float) -> bool:
        """Take the next cost; return whether the certificate's costs have come one by one, not by chance."""
        if self._costs is None:
            return False
        self._costs.append(cost)
        if len(self._costs) < (self._certificate.n or 0):
            return False
        costs, self._costs = np.array(self._costs), None
        return costs_digest(costs) == self._certificate.provenance.costs_sha256 and not by_chance(costs)


def measured_otherwise(certificate: Certificate, measured: str) -> list[str]:
    """Say that costs are not measured as the certificate's were; nothing if they are, or nobody knows.

    Examples
    --------
    >>> lab = Certificate.from_held_out([0, 1], binary=True, measured="cost = 1 - success")
    >>> len(measured_otherwise(lab, "cost as given")), measured_otherwise(lab, "cost = 1 - success")
    (1, [])
    """
    certified = certificate.provenance.measured
    if certified in (None, measured):
        return []
    return [
        f"these costs are not measured the way the certificate's were (now {measured}; certified "
        f"{certified}); a verdict means nothing unless they agree"
    ]


def _alike(episodes: Episodes, certificate: Certificate, costs: NDArray[np.float64]) -> Iterator[str]:
    if (share := _shared(certificate, costs)) >= 0.5:
        yield (
            f"{100 * share:.0f} % of these costs are also among those that the certificate was made from, "
            f"to the "
            "last digit; only episodes that it has not seen can be judged"
        )
    if episodes.cost_range is not None and episodes.cost_range == certificate.cost_range:
        low, high = episodes.cost_range
        readings = high - costs * (high - low) if episodes.meaning == "reward" else low + costs * (high - low)
        # Fractions where percentages were certified would look like a wonderful improvement.
        if (
            high - low >= 10
            and low >= 0
            and readings.max() <= 1
            and (certificate.mean_cost or 0) * (high - low) > 2
        ):
            yield (
                f"all values are at most 1 in the certificate's range of {shortest(low)} to "
                f"{shortest(high)}; are "
                "they in another unit?"
            )


def _shared(certificate: Certificate, costs: NDArray[np.float64]) -> float:
    """Return the share of costs that the certificate has, too; 0 where that may be chance."""
    record = certificate.record
    # Few different values are shared by any two files.
    if record is None or certificate.n is None or len(record.values) < 0.9 * certificate.n or costs.size < 5:
        return 0.0
    new = costs.tolist()
    if len(set(new)) < 0.9 * len(new):
        return 0.0
    certified = set(record.values)
    return sum(map(certified.__contains__, new)) / len(new)
