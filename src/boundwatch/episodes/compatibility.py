"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from boundwatch._support.validation import check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CERTIFY_IT, no_certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import is_customary
from boundwatch.episodes.design import Design, Reduction
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidSetting, Place, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes.episodes import Episodes

_RARE = math.log(0.001)


class Doubt(NamedTuple):
    """Why a certificate may not be able to judge costs.

    ``own``: they are (or begin with) its own. ``chance``: the same, but others may well look like that.
    ``shared``: most values are also among its own. ``unit``: all are far below what was certified.
    ``measure``: they are measured in another way.
    """

    kind: Literal["own", "chance", "shared", "unit", "measure"]
    problem: str
    n: int = 0
    """How many of its own the costs begin with."""
    constant: bool = False
    """Whether these are all alike: new successes always begin like a certificate of nothing else."""

    def __str__(self) -> str:
        return self.problem


def compared(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate, *, allow_own: bool = False
) -> Episodes:
    """Return new episodes with warnings if no verdict should be built on them."""
    allow_own = check_flag(allow_own, "allow_own")
    found: list[str] = []
    notes: list[str] = []
    said_of_all = False
    for task, certificate, costs in _parts(episodes, certificates):
        part = isinstance(certificates, Certificate) and bool(task)  # of what was looked at as a whole
        doubts = Likeness(certificate, episodes.measure).take(costs)
        own = next((doubt for doubt in doubts if doubt.kind in ("own", "chance")), None)
        if own is not None and part and own.constant:
            own = None  # in a good fleet that is true of every robot
        if own is not None and own.kind == "own" and not allow_own:
            raise _refusal(episodes.source, task, own, costs.size)
        whose = ": ".join(filter(None, [episodes.source, task]))
        if own is not None:
            kept = notes if own.kind == "chance" and own.constant and own.n < costs.size else found
            kept.append(f"{whose}: {own}" if whose else own.problem)
        if (part and said_of_all) or (own is not None and (own.kind == "own" or own.n == costs.size)):
            continue
        others = [doubt for doubt in doubts if doubt.kind in ("shared", "unit")]
        others = [*measured_otherwise(certificate, episodes.measure, episodes.design), *others]
        found += (f"{whose}: {doubt}" if whose else doubt.problem for doubt in others)
        said_of_all = said_of_all or (not task and bool(others))
    if not found and not notes:
        return episodes
    return replace(
        episodes,
        warnings=tuple(dict.fromkeys((*episodes.warnings, *found))),
        notes=tuple(dict.fromkeys((*episodes.notes, *notes))),
    )


def _parts(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate
) -> Iterator[tuple[str, Certificate, NDArray[np.float64]]]:
    """Yield what is judged by itself: the task, if any, its certificate and its costs."""
    new = episodes.by_task()
    if isinstance(certificates, Certificate):
        yield "", certificates, episodes.costs
        yield from ((task, certificates, costs) for task, costs in new.items() if len(new) > 1)
        return
    refuse_unknown(episodes, certificates)
    yield from ((task, certificate, new[task]) for task, certificate in certificates.items() if task in new)


def _refusal(source: str, task: str, own: Doubt, n: int) -> ProvenanceMismatch:
    which = "these" if own.n == n else f"the first {own.n} of {n}"
    remedy = "give new episodes" if own.n == n else f"give only the {n - own.n} after them"
    problem = f"{which} {OWN}, which cannot judge them"
    where = Place(": ".join(filter(None, [source, task])))
    return ProvenanceMismatch(problem, where=where if where.source else None, remedy=remedy)


OWN = "are the costs that the certificate was made from"


def refuse_unknown(
    episodes: Episodes, certificates: Mapping[str, Certificate], remedy: str = CERTIFY_IT
) -> None:
    """Refuse a task without a certificate, and say where it is."""
    tasks = episodes.keys.get("by", ())
    unknown = set(tasks).difference(certificates)
    if not unknown:
        return
    place = next(place for place, task in enumerate(tasks) if task in unknown)
    number = episodes.numbers[place] if len(episodes.numbers) else None
    where = Place(episodes.source, episodes.unit, number, episodes.design.by)
    raise InvalidSetting(no_certificate(tasks[place], certificates, remedy), where=where, value=tasks[place])


def by_chance(costs: NDArray[np.float64]) -> bool:
    """Return whether other episodes may well have the same costs in the same order.

    Independent episodes repeat a sequence with the product of its costs' probabilities. No distribution makes
    that larger than the one with the sequence's own frequencies. So what is not called chance comes by chance
    at most once in 1,000 times, whatever the costs are: five different ones suffice.
    """
    counts = np.unique(costs, return_counts=True)[1]
    return bool(xlogy(counts, counts / costs.size).sum() > _RARE)


class Likeness:
    """Notices that costs are those that a certificate was made from, or in another unit.

    A whole file is taken at once, a stream cost by cost: what is said of a stream after n costs is what would
    be said of a file of these n, and each doubt comes once. A stream that is looked at after every cost would
    sooner or later seem doubtful by chance: look seldom, as `is_time_to_look` says. That costs are the
    certificate's own, in its order, is said at the last of them. Costs are kept as long as something may
    have to be said about them: as many as were certified, or 2.5 times as many as there are values in the
    certificate's record (see `_shared`). Of the unit, only the highest reading is kept.

    Parameters
    ----------
    certificate
        The certificate.
    measure
        How the costs are measured.
    state
        What an earlier object of this class had as its `state`; left out, no cost has come.

    Examples
    --------
    >>> costs = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7]
    >>> new = Likeness(Certificate.from_held_out(costs), Measure("cost"))
    >>> [doubt.kind for cost in costs for doubt in new.take([cost], look=False)]
    ['own']
    """

    def __init__(
        self, certificate: Certificate, measure: Measure, state: Mapping[str, Any] | None = None
    ) -> None:
        self._certificate, self._measure = certificate, measure
        before: Mapping[str, Any] = {"costs": [], "shares": True, "highest": 0.0} if state is None else state
        self._shares = before["shares"] and _is_distinctive(certificate)
        keeps = self._shares or certificate.provenance.costs_sha256 is not None
        self._costs: list[float] | None = None
        if keeps and before["costs"] is not None:
            self._costs = list(before["costs"])
        self._highest: float | None = before["highest"]

    @property
    def state(self) -> dict[str, Any]:
        """Plain JSON values from which an equal object can be made."""
        costs = None if self._costs is None else list(self._costs)
        return {"costs": costs, "shares": self._shares, "highest": self._highest}

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to say, whatever comes."""
        return self._costs is None and self._highest is None

    def take(self, costs: Sequence[float] | NDArray[np.float64], *, look: bool = True) -> list[Doubt]:
        """Take further costs; return what is doubtful by now."""
        new = np.asarray(costs, dtype=np.float64)
        if not new.size:
            return []
        return [*self._seen_before(new, look), *self._in_other_unit(new, look)]

    def _seen_before(self, new: NDArray[np.float64], look: bool) -> Iterator[Doubt]:
        if self._costs is None:
            return
        before, wanted = len(self._costs), self._certificate.n or 0
        n = before + new.size
        if before < wanted <= n:
            first = np.append(self._costs, new[: wanted - before])
            if costs_digest(first) == self._certificate.provenance.costs_sha256:
                self._costs = None
                yield _own(first, n)
                return
        most = _most_shared(self._certificate) if self._shares else 0.0
        if n >= wanted and n > most:
            self._costs = None
            return
        self._costs += new.tolist()
        if look and self._shares and n <= most and (share := _shared(self._certificate, self._costs)) >= 0.5:
            self._shares = False
            self._costs = self._costs if n < wanted else None
            yield Doubt(
                "shared",
                f"{100 * share:.0f} % of these costs are also among those that the certificate was made "
                "from, to the last digit; only episodes that it has not seen can be judged",
            )

    def _in_other_unit(self, new: NDArray[np.float64], look: bool) -> Iterator[Doubt]:
        certificate, before, self._highest = self._certificate, self._highest, None
        ends = self._measure.cost_range
        if before is None or ends is None or certificate.measure is None or certificate.mean_cost is None:
            return
        low, high = ends
        if ends != certificate.measure.cost_range or high - low < 10 or low < 0:
            return
        *readings, certified = (
            high - cost * (high - low) if self._measure.kind == "reward" else low + cost * (high - low)
            for cost in (new.min(), new.max(), certificate.mean_cost)
        )
        highest = float(max(before, *readings))
        # Fractions where percentages were certified would look like a wonderful improvement.
        if certified <= 2 or highest > 1:
            return
        if highest <= low or not look:  # 0 is 0 in every unit
            self._highest = highest
            return
        yield Doubt(
            "unit",
            f"all values are at most 1 in the certificate's range of {shortest(low)} to {shortest(high)}; "
            "are they in another unit?",
        )


def is_time_to_look(n: int, certified: int | None) -> bool:
    """Return whether to look at a stream after n costs: 20, 40, 80, ..., and as many as were certified."""
    return (n % 20 == 0 and (n // 20).bit_count() == 1) or (n == certified and n >= 5)


def _own(first: NDArray[np.float64], n: int) -> Doubt:
    constant = bool(first.min() == first.max())
    if not by_chance(first):
        which = "these" if first.size == n else f"the first {first.size} of {n}"
        return Doubt("own", f"{which} {OWN}, and they cannot be judged by it", first.size, constant)
    which = "these" if first.size == n else f"the first {first.size}"
    remedy = "it cannot judge them" if first.size == n else "give only those after them"
    return Doubt(
        "chance",
        f"{which} costs match the certificate's one by one, possibly by chance; "
        f"if they are the same episodes, {remedy}",
        first.size,
        constant,
    )


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


def measured_otherwise(
    certificate: Certificate, measure: Measure, design: Design | None = None
) -> list[Doubt]:
    """Say that costs are not measured as the certificate's were; nothing if they are, or nobody knows."""
    certified = certificate.measure
    if certified is None or rule_of(certified, certificate.design) == rule_of(measure, design or Design()):
        return []
    problem = (
        "these costs are not measured the way the certificate's were "
        f"(now {measure}; certified {certified}); a verdict means nothing unless they agree"
    )
    return [Doubt("measure", problem)]


_CUSTOM: set[tuple[str, Reduction | None]] = {("success", "any"), ("reward", "sum")}


def rule_of(measure: Measure, design: Design) -> tuple[str | None, tuple[object, ...]]:
    """Return what must be the same where costs are measured alike; customary names are all one.

    That is the column, which is None for these, and everything else.
    """
    column = None if is_customary(measure) else normal(measure.column or "")
    reduce = None if (measure.kind, design.reduce) in _CUSTOM else design.reduce
    return column, (measure.kind, measure.ends, reduce, frozenset(map(normal, measure.success_values)))
