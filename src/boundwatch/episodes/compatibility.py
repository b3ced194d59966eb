"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from boundwatch._support.validation import check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import no_certificate
from boundwatch.certificates.record import costs_digest
from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import is_customary
from boundwatch.episodes.measure import COUNTS, USUAL_REDUCTION, Design, Measure
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes.episodes import Episodes

OWN = "are the costs that the certificate was made from"
_RARE = math.log(0.001)


class Doubt(NamedTuple):
    """Why a certificate may not be able to judge costs.

    ``own``: they are (or begin with) its own. ``chance``: the same, but others may well look like that.
    ``measure``: they are measured in another way.
    """

    kind: Literal["own", "chance", "measure"]
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
    rows = rows_of(episodes.keys.get("by", ()))
    tasks = {task: episodes.costs[places] for task, places in rows.items()}
    if isinstance(certificates, Certificate):
        _refuse_other_design(episodes, certificates)
        # Of several robots, first what is true of all.
        judges = {"": certificates} | dict.fromkeys(tasks if len(tasks) > 1 else (), certificates)
    else:
        _refuse_unknown(episodes, certificates)
        judges = {task: certificate for task, certificate in certificates.items() if task in tasks}
    warnings, notes, said_of_all = list(episodes.warnings), list(episodes.notes), False
    for task, certificate in judges.items():
        costs, is_part = tasks.get(task, episodes.costs), bool(task) and "" in judges
        whose = ": ".join(filter(None, [episodes.source, task]))
        for doubt in _doubts(certificate, episodes, costs, len(judges)):
            if is_part and (doubt.constant or (doubt.kind == "measure" and said_of_all)):
                continue  # in a good fleet that is true of every robot
            if doubt.kind == "own" and not allow_own:
                rest = costs.size - doubt.n
                remedy = f"give only the {rest} after them" if rest else "give new episodes"
                raise ProvenanceMismatch(doubt.problem, where=Place(whose) if whose else None, remedy=remedy)
            usual = doubt.kind == "chance" and doubt.constant and doubt.n < costs.size
            (notes if usual else warnings).append(f"{whose}: {doubt}" if whose else doubt.problem)
            said_of_all = said_of_all or (not task and doubt.kind == "measure")
    found = tuple(dict.fromkeys(warnings)), tuple(dict.fromkeys(notes))
    unchanged = found == (episodes.warnings, episodes.notes)
    return episodes if unchanged else replace(episodes, warnings=found[0], notes=found[1])


def _doubts(
    certificate: Certificate, episodes: Episodes, costs: NDArray[np.float64], among: int
) -> Iterator[Doubt]:
    """Yield what is doubtful; of costs that are all its own nothing else."""
    own = own_costs(certificate, episodes.measure, costs, among)
    if own is not None:
        yield own
    if own is None or (own.kind == "chance" and own.n < costs.size):
        yield from measured_otherwise(certificate, episodes.measure, episodes.design)


def _refuse_other_design(episodes: Episodes, certificate: Certificate) -> None:
    """Refuse clusters and tasks that were not certified as such, and other weights."""
    design, where = episodes.design, Place(episodes.source) if episodes.source else None
    if design.cluster is not None and certificate.design.cluster is None and certificate.binary:
        problem = f"the certificate is of single trials, and these are counted once for each {design.cluster}"
        remedy = ("certify with ", Argument("cluster"), ", or leave it out")
        raise InvalidSetting(problem, where=where, remedy=remedy)
    if design.strata is not None and not certificate.strata:
        problem = "the certificate is not of the mean over tasks"
        remedy = ("certify with ", Argument("strata"), ", or leave it out")
        raise InvalidSetting(problem, where=where, remedy=remedy)
    refuse_other_weights(design.weights, certificate, where)


def refuse_other_weights(
    weights: Mapping[str, float], certificate: Certificate, where: Place | None = None
) -> None:
    """Refuse weights of tasks other than the certified ones."""
    if not weights:
        return
    certified, total = {each.name: each.weight for each in certificate.strata}, sum(weights.values())
    shares = {name: weight / total for name, weight in weights.items()}
    if shares.keys() != certified.keys() or any(abs(shares[n] - certified[n]) > 1e-9 for n in shares):
        problem, leave = "are not those of the certificate, whose mean is judged", "leave them out"
        raise InvalidSetting(problem, where=where, name="weights", remedy=f"{leave}, or certify with them")


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


def own_costs(
    certificate: Certificate, measure: Measure, costs: NDArray[np.float64], among: int = 1
) -> Doubt | None:
    """Return that costs, of one among so many streams, begin with those that a certificate was made from."""
    first = costs[: certificate.n or 0]
    if not first.size or costs_digest(first) != certificate.provenance.costs_sha256:
        return None
    rest, constant = costs.size - first.size, bool(first.min() == first.max())
    which = f"the first {first.size}" if rest else "these"
    # Counts have one order, whatever that of their trials was.
    if not (by_chance(first, among) or measure.counted):
        of = f" of {costs.size}" if rest else ""
        return Doubt("own", f"{which}{of} {OWN}, which cannot judge them", first.size, constant)
    remedy = "give only those after them" if rest else "it cannot judge them"
    problem = f"{which} costs match the certificate's one by one, possibly by chance"
    return Doubt("chance", f"{problem}; if they are the same episodes, {remedy}", first.size, constant)


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
    kind = "success" if measure.kind in COUNTS else measure.kind
    ends = (0.0, 1.0) if measure.kind in COUNTS else measure.ends
    reduce = None if design.reduce == USUAL_REDUCTION.get(kind) else design.reduce
    words = frozenset(map(normal, measure.success_values))
    return column, (kind, ends, reduce, words, measure.timeout_as, measure.empty_as)
