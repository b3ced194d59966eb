"""Auditing a machine that judges episodes: which of them people label, and what follows from their labels."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import one_line, written
from boundwatch._support.validation import check_costs, check_level
from boundwatch.bounds.audit import Audited, Judged, judge_errors, units_of
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.limits import PLAIN, audit_limits
from boundwatch.certificates.record import AuditRecord, CostRecord, costs_digest
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import InvalidCost, InvalidSetting, Place, ProvenanceMismatch
from boundwatch.reporting.wording import count, percent, percents

Labels = Mapping[int, Any]
"""What people said of episodes, by their places: a cost, or one for each labeler."""
_POWER = 0.75  # between n ~ N (best for a useless judge) and n ~ √N (best for one without errors)
_BLOCK = 10  # episodes whose order is shuffled, so that it does not tell what the judge said
COLUMN = "label"
"""What the names of columns of labels begin with."""
HEAD = re.compile(r"boundwatch audit: (\d+) of \d+ episodes seed (\d+) judged ([0-9a-f]{64})")


def allocation(judged: Judged, n: int) -> Judged:
    """Return how many of n labels go to each, in proportion to N ** 0.75: fixed before any label.

    Examples
    --------
    >>> allocation(Judged(800, 200), 50)
    Judged(passed=37, failed=13)
    """
    if not min(judged) or n < 2:
        return Judged(n, 0) if judged.passed >= judged.failed else Judged(0, n)
    shares = np.array(judged, dtype=np.float64) ** _POWER
    failed = min(max(round(n * float(shares[1] / shares.sum())), 1, n - judged.passed), judged.failed, n - 1)
    return Judged(n - failed, failed)


def width_with(kept: AuditRecord, n: int, delta_lower: float, delta_upper: float) -> float:
    """Return how wide the certificate of an audit would be with n labels, if further ones are like these."""
    if (counts := kept.counts) is None:
        remedy = "plan with failures and successes"
        raise InvalidSetting("is of costs between 0 and 1", name="audit", remedy=remedy)
    drawn = allocation(counts.judged, min(n, sum(counts.judged)))
    each = zip(counts.failures, counts.drawn, drawn, strict=True)
    failures = Judged(*(round(x * m / max(k, 1)) for x, k, m in each))
    like = replace(kept, counts=counts._replace(drawn=drawn, failures=failures))
    lower, upper = audit_limits(like, delta_lower, delta_upper, policy=True)
    return upper - lower


@dataclass(frozen=True)
class AuditFinding:
    """What labels say about all judged episodes, and about the judge.

    **Guarantee**: with probability at least 1 - `delta` over the draw, `lower` <= mean cost of all judged
    episodes <= `upper`; with as much, the limits hold on `misses` (the share of failures that the judge calls
    successes) and `false_alarms` (of successes that it calls failures); None unless costs are binary.
    Further: how many `others` are no evidence, not having been drawn; on how many people `disagreed`.
    """

    judged: int
    labels: int
    judge_says: float
    estimate: float
    lower: float
    upper: float
    misses: tuple[float, float] | None
    false_alarms: tuple[float, float] | None
    disagreed: int
    others: int
    delta: float

    def __str__(self) -> str:
        limits = f"between {self.lower:.4g} and {self.upper:.4g}"
        return f"{self.labels} labels: the mean cost of {self.judged} judged episodes is {limits}"

    def sentences(self) -> list[str]:
        """Say it to people."""
        share, says = percents(self.lower, self.upper), percent(self.judge_says)
        said = [f"Of all {self.judged} judged episodes {share} failed; the judge says {says}."]
        if self.misses is not None and self.false_alarms is not None:
            missed, called = percents(*self.misses), percents(*self.false_alarms)
            said.append(f"It misses {missed} of the failures, and calls {called} of the successes failures.")
        if self.disagreed:
            said.append(f"Labelers disagree on {count(self.disagreed, 'episode')}; the majority counts.")
        if self.others:
            said.append(f"{count(self.others, 'label')} of episodes that were not drawn: no evidence.")
        return said


class Audit:
    """A machine judged episodes; this draws which of them people label, and turns labels into limits.

    The order of the draw follows from the judge's costs and the seed alone: anybody can draw it again, who
    labels more goes on in the same order, and who changes what the judge said has another draw.

    Parameters
    ----------
    judged
        What the judge said of every episode, as a cost: 1 is a failure. Also `Episodes`.
    seed
        A number chosen after the judge had judged; it decides which episodes are drawn.
    clusters
        The scene, seed or day of each episode, whose repeats may depend on each other. All of a task must be
        repeated alike. Tasks are those of `Episodes`; each must have its share of the episodes.

    Examples
    --------
    >>> audit = Audit([0, 0, 1, 0, 0, 1, 0, 0], seed=7)
    >>> audit.draw(4)
    [4, 1, 0, 5]
    >>> certificate = audit.certificate({4: 0, 1: 0, 0: 0, 5: 1}, delta=0.05)
    >>> round(certificate.mean_cost, 3), certificate.source
    (0.25, 'audit')
    """

    def __init__(
        self, judged: ArrayLike | Episodes, *, seed: int, clusters: Sequence[Hashable] | None = None
    ) -> None:
        self.judged: NDArray[np.float64] = check_costs(np.asarray(judged, dtype=np.float64), name="judged")
        self.design, self.units = _design(judged, self.judged.size, clusters)
        self._rows: Sequence[int] | None = None  # of a sheet, by which people know episodes
        self.seed, self.binary = seed, bool(np.isin(self.judged, (0, 1)).all())
        self.digest = costs_digest(self.judged)
        self.drawn: list[int] = []

    def __repr__(self) -> str:
        facts = {"judged": self.judged.size, "seed": self.seed, "drawn": len(self.drawn)}
        return one_line(self, facts | {"digest": self.digest[:12]})

    def __str__(self) -> str:
        return f"audit of {self.judged.size} judged episodes, {len(self.drawn)} of them drawn"

    def draw(self, n: int) -> list[int]:
        """Return the places of the first n episodes to label, in the order to label them."""
        if not 1 <= n <= self.judged.size:
            remedy = f"give a number from 1 to {self.judged.size}"
            raise InvalidSetting("is not a number of judged episodes", name="n", value=n, remedy=remedy)
        queues, sizes = self._queues, Judged(*map(len, self._queues))
        places, before = list[int](), Judged(0, 0)
        for until in range(_BLOCK, n + _BLOCK, _BLOCK):
            now = allocation(sizes, min(until, self.judged.size))
            block = [place for queue, a, b in zip(queues, before, now, strict=True) for place in queue[a:b]]
            places += sorted(block, key=lambda place: self._hash("order", place))
            before = now
        self.drawn = places[:n]
        return list(self.drawn)

    @cached_property
    def _queues(self) -> list[list[int]]:
        """The places of judged successes and of judged failures, each in a random order."""
        failed = self.judged > 0 if self.binary else np.zeros(self.judged.size, dtype=bool)
        each = (np.flatnonzero(~failed).tolist(), np.flatnonzero(failed).tolist())
        return [sorted(places, key=lambda place: self._hash("draw", place)) for places in each]

    def _hash(self, what: str, place: int) -> bytes:
        return hashlib.sha256(f"{self.digest} {self.seed} {what} {place}".encode()).digest()

    def record(self, labels: Labels) -> AuditRecord:
        """Return what a certificate keeps of the judge and the labels; refuse a draw with gaps."""
        places = self._evidence(labels)
        costs = np.array([_decided(labels[place], binary=self.binary) for place in places])
        costs, judge = check_costs(costs, binary=self.binary, name="labels"), self.judged[places]
        if not self.binary:
            of = CostRecord.of
            return AuditRecord(
                costs=(of(self.judged), of(costs), of((costs - judge + 1) / 2)), units=self.units
            )
        counts = [
            Judged(int((of == 0).sum()), int((of == 1).sum()))
            for of in (self.judged, judge, judge[costs == 1])
        ]
        return AuditRecord(Audited(*counts), units=self.units)

    def _evidence(self, labels: Labels) -> list[int]:
        """Return the places of drawn episodes with labels, which must be the first of the draw."""
        if not self.drawn:
            raise InvalidSetting("nothing was drawn", remedy="draw, and label what was drawn")
        known = [place in labels for place in self.drawn]
        if not any(known):
            raise InvalidSetting("no drawn episode has a label", remedy="label them in their order")
        first = known.index(False) if False in known else len(known)
        if any(known[first:]):
            problem = "was drawn and has no label, but later ones have: who skips episodes chooses them"
            name, rows = ("row", self._rows) if self._rows else ("place", range(self.judged.size))
            raise InvalidSetting(problem, name=name, value=rows[self.drawn[first]], remedy="label it, too")
        return self.drawn[:first]

    def certificate(self, labels: Labels, delta: float = 0.05, **origin: Any) -> Certificate:
        """Return a certificate of the policy's expected cost.

        Parameters
        ----------
        labels
            The costs that people gave, by places of the draw: 1 is a failure. All drawn episodes, or the
            first of them in their order, if their number did not depend on the labels. Of several labels the
            majority counts (of costs that are not binary, the mean), and the first one if there is none.
        delta
            Probability with which either limit may fail.
        **origin
            `delta_upper`, `delta_lower`, `policy`, `measure`: as in `Certificate.from_held_out`.
        """
        own: dict[str, Any] = {"judged": self.judged, "design": self.design, "seed": self.seed}
        return Certificate.from_audit(self.record(labels), delta, **own, **origin)

    def finding(self, labels: Labels, delta: float = 0.05) -> AuditFinding:
        """Return what labels say about all judged episodes, and about the judge; see `certificate`."""
        record, half = self.record(labels), check_level(delta, "delta") / 2
        lower, upper = audit_limits(record, half, half, policy=False)
        misses, alarms = (None, None) if record.counts is None else judge_errors(record.counts, delta)
        return AuditFinding(
            judged=self.judged.size,
            labels=record.n,
            judge_says=float(self.judged.mean()),
            estimate=record.mean,
            lower=lower,
            upper=upper,
            misses=misses,
            false_alarms=alarms,
            disagreed=sum(np.unique(each).size > 1 for each in labels.values()),
            others=len(labels.keys() - set(self.drawn)),
            delta=delta,
        )

    def width_with(self, labels: Labels, n: int, delta: float = 0.05) -> float:
        """Return how wide the certificate would be with n labels, if further ones are like these."""
        half = check_level(delta, "delta") / 2
        return width_with(self.record(labels), n, half, half)

    def sheet(self, rows: Sequence[int], shown: Mapping[str, Sequence[str]]) -> str:
        """Return the drawn episodes as CSV to fill in, blind to the judge; its first line says the draw.

        `rows` has what identifies each judged episode, a number; `shown` are columns to carry along.
        """
        for name in shown:
            if name == "row" or name.startswith(COLUMN):
                problem, remedy = "is called as the sheet's own columns are", "rename it, or show another"
                raise InvalidSetting(problem, name="show", value=name, remedy=remedy)
        of = f"{len(self.drawn)} of {self.judged.size} episodes"
        lines: list[list[Any]] = [["row", *shown, "label"]]
        lines += [[rows[place], *(each[place] for each in shown.values()), ""] for place in self.drawn]
        head = f"# boundwatch audit: {of} seed {self.seed} judged {self.digest}"
        return f"{head}\n{written(lines, 'csv')}\n"

    @classmethod
    def from_sheet(cls, judged: Episodes, text: str, source: str) -> tuple[Audit, dict[int, Any]]:
        """Return the audit that a sheet says, drawn again, and its labels; see `sheet`.

        Columns whose names begin with label hold successes (yes or no), one column per labeler.
        """
        head, names, table = table_of(text, source)
        audit = cls(judged, seed=int(head[2]))
        if audit.digest != head[3]:
            problem = "is of other judgments, in another order, or under another first line"
            remedy = "give the file that was drawn from, unchanged and in its order"
            remedy += " (of several files, --labels in the same order)"
            raise ProvenanceMismatch(problem, where=Place(source), remedy=remedy)
        audit._rows = judged.numbers
        audit.draw(int(head[1]))
        places = {row: place for place, row in enumerate(judged.numbers)}
        return audit, _labels(names, table, source, places)


def _design(judged: Any, n: int, clusters: Sequence[Hashable] | None) -> tuple[Design, int | None]:
    """Return how judged episodes relate, and how many independent units they are worth; None if all are."""
    design, tasks = PLAIN, None
    if isinstance(judged, Episodes):
        design, tasks = replace(judged.design, by=None, pair_by=()), judged.keys.get("strata")
        clusters = judged.keys.get("cluster", clusters)
        if any(each.n > 1 for each in judged.repeats):
            remedy = "give the costs of single trials, and their clusters beside them"
            raise InvalidSetting("are means over clusters already", name="judged", remedy=remedy)
    if clusters is not None:
        if len(clusters) != n:
            raise InvalidSetting(f"are {len(clusters)}", name="clusters", remedy=f"give one for each of {n}")
        design = replace(design, cluster=design.cluster or "cluster")
    if tasks is None and clusters is None:
        return design, None
    design = design if tasks is None else replace(design, strata=design.strata or "task")
    units = units_of(tasks or [""] * n, range(n) if clusters is None else clusters)
    if units is None:
        problem, remedy = "are not repeated alike", "audit episodes with as many repeats of each"
        raise InvalidSetting(problem, name="clusters", remedy=remedy)
    shares = Counter(tasks or ())
    weights = design.weights or dict.fromkeys(shares, 1.0)
    if (
        tasks
        and max(abs(shares[task] / n - each / sum(weights.values())) for task, each in weights.items()) > 1e-9
    ):
        problem = "does not give each task its share of the judged episodes"
        raise InvalidSetting(problem, name="weights", remedy="audit the episodes of each task alone")
    return design, units


def table_of(text: str, source: str) -> tuple[re.Match[str], list[str], list[dict[str, str]]]:
    """Return the draw, the columns and the rows of a sheet, as `Audit.sheet` or a spreadsheet wrote it."""
    if (head := HEAD.search(text)) is None:
        remedy = "give the file that boundwatch audit wrote, with its first line"
        raise InvalidSetting("does not say which episodes were drawn", where=Place(source), remedy=remedy)
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip('"\ufeff').startswith("#")
    ]
    reader = csv.DictReader(lines, delimiter=max(",;\t", key=lines[0].count) if lines else ",")
    names = list(filter(None, reader.fieldnames or ()))
    if "row" not in names or not any(name.startswith(COLUMN) for name in names):
        remedy = "keep the columns that boundwatch audit wrote"
        raise InvalidSetting("has no columns row and label", where=Place(source), remedy=remedy)
    return head, names, [{name: (row[name] or "").strip() for name in names} for row in reader]


def _labels(
    names: list[str], table: list[dict[str, str]], source: str, places: Mapping[int, int]
) -> dict[int, Any]:
    """Return the labels of a sheet by the places of their rows; those without one are left out."""
    columns = [name for name in names if name.startswith(COLUMN)]
    measure, found = Measure("success", column=COLUMN), dict[int, Any]()
    for line in table:
        row, cells = line["row"], {name: line[name] for name in columns if line[name]}
        place = places.get(int(row)) if row.isdigit() else None
        if place is None or place in found:
            problem = "is no row that was judged" if place is None else "is labeled in two lines"
            where, remedy = Place(source, column="row"), "keep one line per row, as they were written"
            raise InvalidSetting(problem, where=where, value=row, remedy=remedy)
        if not cells:
            continue
        try:
            found[place] = measure.costs(list(cells.values())).tolist()
        except InvalidCost as error:
            where, remedy = Place(source, "row", int(row), list(cells)[error.cells.start]), "write yes or no"
            raise InvalidCost(error.problem, where=where, value=error.value, remedy=remedy) from None
    return found


def _decided(label: Any, *, binary: bool) -> float:
    """Return the cost that one or several labels mean: that of the majority, or of the first one."""
    each = np.atleast_1d(np.asarray(label, dtype=np.float64))
    halves = binary and (2 * each.mean() == 1 or not np.isin(each, (0, 1)).all())
    return float(each[0] if halves else round(each.mean()) if binary else each.mean())
