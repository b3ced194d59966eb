"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from boundwatch._support.validation import check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import no_certificate
from boundwatch.certificates.record import costs_digest
from boundwatch.episodes.declared import is_customary
from boundwatch.episodes.design import USUAL_REDUCTION, Design
from boundwatch.episodes.measure import COUNTS, Measure
from boundwatch.episodes.words import normal
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes.episodes import Episodes

OWN = "are the costs that the certificate was made from"
_RARE = math.log(0.001)
_FEWEST_KEPT = 20


class Doubt(NamedTuple):
    """Why a certificate may not be able to judge costs.

    ``own``: they are (or begin with) its own. ``chance``: the same, but others may well look like that.
    ``shared``: most values are also among its own. ``unit``: all are far below what was certified.
    ``measure``: they are measured in another way.
    """

    kind: Literal["own", "chance", "shared", "unit", "measure"]
    problem: str
    n: int = 0  # how many of its own the costs begin with
    constant: bool = False  # these are all alike: new successes begin like a certificate of nothing else

    def __str__(self) -> str:
        return self.problem


def compared(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate, *, allow_own: bool = False
) -> Episodes:
    """Return new episodes with warnings if no verdict should be built on them."""
    allow_own = check_flag(allow_own, "allow_own")
    if isinstance(certificates, Certificate):
        _refuse_other_strata(episodes, certificates)
    tasks = episodes.by_task() if "by" in episodes.keys else {}
    if isinstance(certificates, Certificate):  # of several robots, first what is true of all
        judges = {"": certificates} | dict.fromkeys(tasks if len(tasks) > 1 else (), certificates)
    else:
        _refuse_unknown(episodes, certificates)
        judges = {task: certificate for task, certificate in certificates.items() if task in tasks}
    warnings: list[str] = []
    notes: list[str] = []
    said_of_all = False
    for task, certificate in judges.items():
        costs, is_part = tasks.get(task, episodes.costs), bool(task) and "" in judges
        whose = ": ".join(filter(None, [episodes.source, task]))
        likeness = Likeness(certificate, episodes.measure)
        likeness.among = len(judges)
        doubts = {doubt.kind: doubt for doubt in likeness.take(costs)}
        own = doubts.pop("own", None) or doubts.pop("chance", None)
        if own is not None and not (is_part and own.constant):  # in a good fleet that is true of every robot
            if own.kind == "own" and not allow_own:
                rest = costs.size - own.n
                remedy = f"give only the {rest} after them" if rest else "give new episodes"
                raise ProvenanceMismatch(own.problem, where=Place(whose) if whose else None, remedy=remedy)
            usual = own.kind == "chance" and own.constant and own.n < costs.size
            (notes if usual else warnings).append(f"{whose}: {own}" if whose else own.problem)
            if own.kind == "own" or own.n == costs.size:
                continue
        others = [*measured_otherwise(certificate, episodes.measure, episodes.design), *doubts.values()]
        if not (is_part and said_of_all):
            warnings += (f"{whose}: {doubt}" if whose else doubt.problem for doubt in others)
        said_of_all = said_of_all or (not task and bool(others))
    warnings, notes = [*episodes.warnings, *warnings], [*episodes.notes, *notes]
    return replace(episodes, warnings=tuple(dict.fromkeys(warnings)), notes=tuple(dict.fromkeys(notes)))


def _refuse_other_strata(episodes: Episodes, certificate: Certificate) -> None:
    """Refuse tasks whose mean was not certified, and weights other than the certified ones."""
    design, where = episodes.design, Place(episodes.source) if episodes.source else None
    if design.strata is not None and not certificate.strata:
        problem = "the certificate is not of the mean over tasks"
        remedy = ("certify with ", Argument("strata"), ", or leave it out")
        raise InvalidSetting(problem, where=where, remedy=remedy)
    certified = {each.name: each.weight for each in certificate.strata}
    total = sum(design.weights.values())
    given = {name: weight / total for name, weight in design.weights.items()}
    if given and (
        given.keys() != certified.keys() or any(abs(given[n] - certified[n]) > 1e-9 for n in given)
    ):
        problem = "are not those of the certificate, whose mean is judged"
        raise InvalidSetting(
            problem, where=where, name="weights", remedy="leave them out, or certify with them"
        )


def _refuse_unknown(episodes: Episodes, certificates: Mapping[str, Certificate]) -> None:
    """Refuse a task without a certificate, and say where it is."""
    for place, task in enumerate(episodes.keys.get("by", ())):
        if task not in certificates:
            number = episodes.numbers[place] if len(episodes.numbers) else None
            where = Place(episodes.source, episodes.unit, number, episodes.design.by)
            problem, remedy = no_certificate(task, certificates)
            raise InvalidSetting(problem, where=where, value=task, remedy=remedy)


def by_chance(costs: NDArray[np.float64], among: int = 1) -> bool:
    """Return whether other episodes, of one among so many streams, may well have the same costs in order.

    Independent episodes repeat a sequence with the product of its costs' probabilities. No distribution makes
    that larger than the one with the sequence's own frequencies. So what is not called chance comes by chance
    at most once in 1,000 times, whatever the costs are: five different ones suffice for one stream.
    """
    counts = np.unique(costs, return_counts=True)[1]
    return bool(xlogy(counts, counts / costs.size).sum() > _RARE - math.log(among))


class Likeness:
    """Notices that costs are those that a certificate was made from, or in another unit.

    A whole file is taken at once, a stream cost by cost: what is said of a stream after n costs is what would
    be said of a file of these n, and each doubt comes once. A stream that is looked at after every cost would
    sooner or later seem doubtful by chance: look seldom, as `is_time_to_look` says. That costs are the
    certificate's own, in its order, is said at the last of them. As many costs are kept as were certified, or
    2.5 times as many as there are values in the certificate's record (see `_shared`); then all is said.
    """

    among = 1  # streams that are looked at together: each may seem doubtful by chance

    def __init__(
        self, certificate: Certificate, measure: Measure, state: Mapping[str, Any] | None = None
    ) -> None:
        self._certificate, self._measure = certificate, measure
        n, record = certificate.n or 0, certificate.record
        # Only if nearly all values are different, any two files share few of them.
        self._values = set(record.values) if record is not None and len(record.values) >= 0.9 * n else set()
        self._most = max(n, int(2.5 * len(self._values)), _FEWEST_KEPT)
        self._costs: list[float] = [] if state is None else list(state["costs"])
        self._said: list[str] = [] if state is None else list(state["said"])

    @property
    def state(self) -> dict[str, Any]:
        """Plain JSON values from which an equal object can be made."""
        return {"costs": list(self._costs), "said": list(self._said)}

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to say, whatever comes."""
        return len(self._costs) >= self._most

    def take(self, costs: Sequence[float] | NDArray[np.float64], *, look: bool = True) -> list[Doubt]:
        """Take further costs; return what is doubtful by now."""
        if self.is_settled or not len(costs):
            return []
        before, wanted = len(self._costs), self._certificate.n or 0
        n = before + len(costs)
        is_complete = before < wanted <= n
        found: list[Doubt | None] = []
        if look or is_complete:
            known = np.append(self._costs, costs)
            own = self._own(known[:wanted], n) if is_complete else None
            found = [own]
            if look:
                found += [None if own else self._shared(known), self._in_other_unit(known)]
        self._costs += np.asarray(costs, dtype=np.float64)[: self._most - before].tolist()
        new = [doubt for doubt in found if doubt is not None and doubt.kind not in self._said]
        self._said += ["shared" if doubt.n else doubt.kind for doubt in new]  # own costs are all shared
        return new

    def _own(self, first: NDArray[np.float64], n: int) -> Doubt | None:
        """Return that as many costs as were certified are the certified ones, among n costs."""
        if costs_digest(first) != self._certificate.provenance.costs_sha256:
            return None
        whole, constant = first.size == n, bool(first.min() == first.max())
        # Counts have one order, whatever that of their trials was.
        if not (by_chance(first, self.among) or self._measure.counted):
            which = "these" if whole else f"the first {first.size} of {n}"
            return Doubt("own", f"{which} {OWN}, which cannot judge them", first.size, constant)
        problem = (
            f"{'these' if whole else f'the first {first.size}'} costs match the certificate's one by one, "
            "possibly by chance; if they are the same episodes, "
            f"{'it cannot judge them' if whole else 'give only those after them'}"
        )
        return Doubt("chance", problem, first.size, constant)

    def _shared(self, costs: NDArray[np.float64]) -> Doubt | None:
        """Return that most costs were certified, too, where that cannot be chance.

        Of n costs, nine tenths must be different. So with m values in the certificate at most m + n/10 are
        also there, and their share is less than one half as soon as n is more than 2.5 m.
        """
        n, different = costs.size, set(costs.tolist() if costs.size <= self._most else ())
        if n < 5 or len(different) < 0.9 * n:
            return None
        share = sum(map(self._values.__contains__, costs.tolist())) / n
        problem = (
            f"{100 * share:.0f} % of these costs are also among those that the certificate was made "
            "from, to the last digit; only episodes that it has not seen can be judged"
        )
        return Doubt("shared", problem) if share >= 0.5 else None

    def _in_other_unit(self, costs: NDArray[np.float64]) -> Doubt | None:
        """Return that fractions came where percentages, say, were certified: a wonderful improvement."""
        certified, mean = self._certificate.measure, self._certificate.mean_cost
        low, high = ends = self._measure.cost_range or (0.0, 1.0)
        if certified is None or mean is None or ends != certified.cost_range or high - low < 10 or low < 0:
            return None
        is_reward = self._measure.kind == "reward"
        extreme = float(costs.min() if is_reward else costs.max())
        highest, usual = (
            high - cost * (high - low) if is_reward else low + cost * (high - low) for cost in (extreme, mean)
        )
        if usual <= 2 or not low < highest <= 1:  # 0 is 0 in every unit
            return None
        problem = (
            f"all values are at most 1 in the certificate's range of {shortest(low)} to {shortest(high)}; "
            "are they in another unit?"
        )
        return Doubt("unit", problem)


def is_time_to_look(n: int, certified: int | None) -> bool:
    """Return whether to look at a stream after n costs: 20, 40, 80, ..., and as many as were certified."""
    return (n % 20 == 0 and (n // 20).bit_count() == 1) or (n == certified and n >= 5)


def measured_otherwise(
    certificate: Certificate, measure: Measure, design: Design | None = None
) -> list[Doubt]:
    """Say that costs are not measured as the certificate's were; nothing if they are, or nobody knows."""
    certified = certificate.measure
    if certified is None:
        return []
    known, new = rule_of(certified, certificate.design), rule_of(measure, design or Design())
    if known == new or (known[1] == new[1] and certified.counted != measure.counted):
        return []
    problem = (
        "these costs are not measured the way the certificate's were "
        f"(now {measure}; certified {certified}); a verdict means nothing unless they agree"
    )
    return [Doubt("measure", problem)]


def rule_of(measure: Measure, design: Design) -> tuple[str | None, tuple[object, ...]]:
    """Return what must be the same where costs are measured alike; customary names are all one.

    That is the column, which is None for these, and everything else.
    """
    column = None if is_customary(measure) else normal(measure.column or "")
    if measure.kind in COUNTS:
        measure = Measure("success")
    reduce = None if design.reduce == USUAL_REDUCTION.get(measure.kind) else design.reduce
    words = frozenset(map(normal, measure.success_values))
    return column, (measure.kind, measure.ends, reduce, words, measure.timeout_as, measure.empty_as)
