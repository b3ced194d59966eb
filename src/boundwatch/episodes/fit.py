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
from boundwatch.episodes import compatibility
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidSetting, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes.former import Episodes

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
                f"{whose}these costs match the certificate's one by one, possibly by chance; if they are the "
                "same episodes, the certificate cannot judge them"
            )
        else:
            if own.size:
                # New successes always begin like a certificate of nothing else.
                said = notes if own.min() == own.max() else found
                said.append(f"{whose}{begins_like(own.size)}")
            if said_of_all:
                continue
            differences = [
                *measured_otherwise(certificate, episodes.measure),
                *Likeness(certificate).take(costs, episodes.meaning, episodes.cost_range),
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
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "boundwatch":
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
    "the first 5 costs match the certificate's one by one, possibly "
    """
    return (
        f"the first {n} costs match the certificate's one by one, possibly by chance; if they are the same "
        "episodes, give only those after them"
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


def measured_otherwise(certificate: Certificate, measure: Measure) -> list[str]:
    """Say that costs are not measured as the certificate's were; nothing if they are, or nobody knows."""
    return [doubt.problem for doubt in compatibility.measured_otherwise(certificate, measure)]


class Likeness:
    """Notices, as costs come, that most were certified before, or that they may be in another unit.

    `fit` says this of a whole file. What is said of a stream after n costs is what would be said of a file
    of these n, and each warning comes once. A stream that is looked at after every cost would sooner or later
    seem doubtful by chance: look seldom, as `is_time_to_look` says. If m values were recorded, at most 2.5 m
    costs are kept, so never more than 642: see `_shared`. Of the unit, only the highest reading is kept.

    Parameters
    ----------
    certificate
        The certificate.
    costs, highest
        What an earlier object of this class had by these names; left out, no cost has come.

    Examples
    --------
    >>> percent = Measure("cost", "error", (0, 100))
    >>> lab = Certificate.from_held_out([0.1, 0.52, 0.34, 0.2, 0.93, 0.4], measure=percent)
    >>> new = Likeness(lab)
    >>> [len(new.take([cost], "cost", (0, 100))) for cost in (0.93, 0.4, 0.1, 0.34, 0.2, 0.52)]
    [0, 0, 0, 0, 1, 0]
    >>> Likeness(lab).take([0.0055, 0.006], "cost", (0, 100))
    ["all values are at most 1 in the certificate's range of 0 to 100; are they in another unit?"]
    """

    def __init__(
        self,
        certificate: Certificate,
        costs: Sequence[float] | None = (),
        highest: float | None = -math.inf,
    ) -> None:
        self._certificate = certificate
        self.costs = list(costs) if costs is not None and _is_distinctive(certificate) else None
        """What came so far, while something may have to be said about it; then None."""
        self.highest = highest
        """The highest reading so far, while something may have to be said about the unit; then None."""

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to say, whatever comes."""
        return self.costs is None and self.highest is None

    def take(
        self,
        costs: Sequence[float] | NDArray[np.float64],
        meaning: str,
        cost_range: tuple[float, float] | None,
        *,
        look: bool = True,
    ) -> list[str]:
        """Take further costs with the range they were read in; return what a look finds doubtful."""
        new = np.asarray(costs, dtype=np.float64)
        if not new.size:
            return []
        return [*self._certified_before(new, look), *self._in_other_unit(new, meaning, cost_range, look)]

    def _certified_before(self, new: NDArray[np.float64], look: bool) -> Iterator[str]:
        if self.costs is None:
            return
        if len(self.costs) + new.size > _most_shared(self._certificate):
            self.costs = None
            return
        self.costs += new.tolist()
        if look and (share := _shared(self._certificate, self.costs)) >= 0.5:
            self.costs = None
            yield (
                f"{100 * share:.0f} % of these costs are also among those that the certificate was made "
                "from, to the last digit; only episodes that it has not seen can be judged"
            )

    def _in_other_unit(
        self, new: NDArray[np.float64], meaning: str, cost_range: tuple[float, float] | None, look: bool
    ) -> Iterator[str]:
        certificate, before, self.highest = self._certificate, self.highest, None
        if before is None or cost_range is None or certificate.measure is None:
            return
        if cost_range != certificate.measure.cost_range:
            return
        low, high = cost_range
        if high - low < 10 or low < 0 or certificate.mean_cost is None:
            return
        *readings, certified = (
            high - cost * (high - low) if meaning == "reward" else low + cost * (high - low)
            for cost in (new.min(), new.max(), certificate.mean_cost)
        )
        highest = float(max(before, *readings))
        # Fractions where percentages were certified would look like a wonderful improvement.
        if certified <= 2 or highest > 1:
            return
        if highest <= low or not look:  # 0 is 0 in every unit
            self.highest = highest
            return
        yield (
            f"all values are at most 1 in the certificate's range of {shortest(low)} to {shortest(high)}; "
            "are they in another unit?"
        )


def is_time_to_look(n: int, certified: int | None) -> bool:
    """Return whether to look at a stream after n costs: 20, 40, 80 and so on, and as many as were certified.

    Examples
    --------
    >>> [n for n in range(200) if is_time_to_look(n, 30)]
    [20, 30, 40, 80, 160]
    """
    return (n % 20 == 0 and (n // 20).bit_count() == 1) or (n == certified and n >= 5)


def _is_distinctive(certificate: Certificate) -> bool:
    """Return whether a certificate keeps its costs, nearly all different: any two files share few values."""
    record = certificate.record
    return record is not None and certificate.n is not None and len(record.values) >= 0.9 * certificate.n


def _most_shared(certificate: Certificate) -> float:
    """Return how many costs there can be at most with a `_shared` of one half."""
    return 0.0 if certificate.record is None else 2.5 * len(certificate.record.values)


def _shared(certificate: Certificate, costs: Sequence[float]) -> float:
    """Return the share of costs that a distinctive certificate has, too; 0 where that may be chance.

    Of n costs, nine tenths must be different. So with m values in the certificate at most m + n/10 are also
    there, and their share is less than one half as soon as n is more than 2.5 m.
    """
    if len(costs) < 5 or len(set(costs)) < 0.9 * len(costs) or certificate.record is None:
        return 0.0
    return sum(map(set(certificate.record.values).__contains__, costs)) / len(costs)
