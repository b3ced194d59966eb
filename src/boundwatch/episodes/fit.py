"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from boundwatch._support.validation import check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CERTIFY_IT, no_certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.errors import InvalidSetting, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes import Episodes

_RARE = math.log(0.001)
OWN = "are the costs that the certificate was made from"


def fit(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate, *, allow_own: bool = False
) -> Episodes:
    """Return new episodes with warnings if no verdict should be built on them.

    Raises
    ------
    ProvenanceMismatch
        If they are, or begin with, those that the certificate was made from, unless `allow_own`: it cannot
        judge them.
    InvalidSetting
        If a task has no certificate.
    """
    allow_own = check_flag(allow_own, "allow_own")
    new = episodes.by_task()
    if shared := isinstance(certificates, Certificate):
        pairs = [("", certificates, episodes.costs)]
        if len(new) > 1:  # each is judged by itself
            pairs += [(f"{t}: ", certificates, costs) for t, costs in new.items()]
    else:
        refuse_unknown(episodes, certificates)
        pairs = [(f"{t}: ", certificate, new[t]) for t, certificate in certificates.items() if t in new]
    found: list[str] = []
    notes: list[str] = []
    said_of_all: list[str] = []
    for task, certificate, costs in pairs:
        whose, own = f"{episodes.source}: {task}", _own(certificate, costs)
        if shared and task and own.size and own.min() == own.max():
            own = own[:0]  # in a good fleet that is true of every robot
        rest = costs.size - own.size
        if own.size and not by_chance(own):
            which, remedy = "these", "new episodes"
            if rest:
                which, remedy = f"the first {own.size} of {costs.size}", f"only the {rest} after them"
            if not allow_own:
                raise ProvenanceMismatch(f"{whose}{which} {OWN}; it cannot judge them, so give {remedy}")
            found.append(f"{whose}{which} {OWN}, and they cannot be judged by it")
        elif own.size and not rest:
            found.append(
                f"{whose}these costs are those of the certificate one by one, which may be chance; if they "
                "are the same episodes, it cannot judge them"
            )
        else:
            if own.size:
                # New successes always begin like a certificate of nothing else.
                said = notes if own.min() == own.max() else found
                said.append(f"{whose}{begins_like(own.size)}")
            if said_of_all:
                continue
            differences = [
                *measured_otherwise(certificate, episodes.measured),
                *_alike(episodes, certificate, costs),
            ]
            found += (f"{whose}{warning}" for warning in differences)
            if shared and not task:
                said_of_all = differences
    return dataclasses.replace(
        episodes,
        warnings=tuple(dict.fromkeys((*episodes.warnings, *found))),
        notes=tuple(dict.fromkeys((*episodes.notes, *notes))),
    )


def refuse_unknown(
    episodes: Episodes, certificates: Mapping[str, Certificate], remedy: str = CERTIFY_IT
) -> None:
    """Refuse a task without a certificate, and say where it is."""
    unknown = set(episodes.tasks).difference(certificates)
    if not unknown:
        return
    place = next(place for place, task in enumerate(episodes.tasks) if task in unknown)
    if episodes.file_format in ("csv", "jsonl"):
        where = "line"
    else:
        where = "row" if episodes.episode is None or episodes.file_format == "xlsx" else "episode"
    line = f" {where} {episodes.lines[place]}:" if len(episodes.lines) else ""
    task = episodes.tasks[place]
    fault = no_certificate(task, certificates, remedy)
    raise InvalidSetting(f"{episodes.source}:{line} {episodes.by or 'task'} {task!r} {fault}")


def fitting(costs: ArrayLike, certificate: Certificate) -> ArrayLike:
    """Return costs as they are; of `Episodes`, say as Python warnings what makes a verdict on them doubtful.

    Raises
    ------
    ProvenanceMismatch
        If they are, or begin with, those that the certificate was made from.

    Examples
    --------
    >>> fitting([0.1, 0.2], Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
    [0.1, 0.2]
    """
    if not hasattr(costs, "against"):
        return costs
    try:
        episodes: Episodes = costs.against(certificate)
    except ProvenanceMismatch as error:
        raise ProvenanceMismatch(f"{error} (their .costs show what it would say)") from None
    for warning in episodes.warnings:
        warnings.warn(warning, stacklevel=_level_of_caller())
    return episodes.costs


def _level_of_caller() -> int:
    """Return the `stacklevel` at which the caller of this function warns whoever called boundwatch."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] == "boundwatch":
        level, frame = level + 1, frame.f_back
    return level


def by_chance(costs: NDArray[np.float64]) -> bool:
    """Return whether other episodes may well have the same costs in the same order.

    Independent episodes repeat a sequence with the product of its costs' probabilities. No distribution makes
    that larger than the one with the sequence's own frequencies. So what is not called chance comes by chance
    at most once in 1,000 times, whatever the costs are: five different ones suffice.

    Examples
    --------
    >>> by_chance(np.zeros(50)), by_chance(np.arange(50) % 2), by_chance(np.array([0.1, 0.5, 0.3, 0.2, 0.9]))
    (True, False, False)
    """
    counts = np.unique(costs, return_counts=True)[1]
    return bool(xlogy(counts, counts / costs.size).sum() > _RARE)


def begins_like(n: int) -> str:
    """Say that new costs begin like those of a certificate, which proves nothing.

    Examples
    --------
    >>> begins_like(5)[:63]
    'the first 5 costs are those of the certificate one by one, whic'
    """
    return (
        f"the first {n} costs are those of the certificate one by one, which may be chance; if they are the "
        "same episodes, give only those after them"
    )


class OwnCosts:
    """Notices, cost by cost, that a stream begins with the costs that a certificate was made from.

    Parameters
    ----------
    certificate
        The certificate.
    costs
        Those that came already, as `costs` had them; left out, none.

    Examples
    --------
    >>> costs = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7]
    >>> own = OwnCosts(Certificate.from_held_out(costs))
    >>> [own.repeats(cost) for cost in costs]
    ['', '', '', '', '', '', 'own']
    """

    def __init__(self, certificate: Certificate, costs: Sequence[float] = ()) -> None:
        self._certificate = certificate
        self.costs = list(costs) if certificate.provenance.costs_sha256 is not None else None
        """What came so far, while it may still be the certificate's; then None."""

    def repeats(self, cost: float) -> Literal["", "chance", "own"]:
        """Take the next cost; say if it was the last of the certificate's, and whether that may be chance."""
        if self.costs is None:
            return ""
        self.costs.append(cost)
        if len(self.costs) < (self._certificate.n or 0):
            return ""
        costs, self.costs = _own(self._certificate, np.array(self.costs)), None
        return "" if not costs.size else "chance" if by_chance(costs) else "own"


def _own(certificate: Certificate, costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first costs, as far as they are those that the certificate was made from; else nothing."""
    first = costs[: certificate.n or 0]
    return first if costs_digest(first) == certificate.provenance.costs_sha256 else costs[:0]


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
