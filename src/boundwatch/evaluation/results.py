"""What an evaluation has found, by policy: the answer in a sentence, tables, and rows for a paper."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import written
from boundwatch._support.validation import shortest
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import Ranking
from boundwatch.evaluation.replay import Replay
from boundwatch.reporting.families import Table
from boundwatch.reporting.wording import ceiling, count, floor, percent, percents

HEADS = ("trial", "round", "task", "scene", "policy", "letter", "station", "time")


class Seen(NamedTuple):
    """What was seen of a policy, overall or on a task: trials, mean cost, limits on the expected cost."""

    n: int
    cost: float
    lower: float
    upper: float


class Results:
    """What follows from the rows so far, with the names of the policies.

    **Guarantee**: the limits on a policy's expected cost, in the mean over tasks, hold at all times with
    probability at least 1 - `alpha` each (of a ranking, all of them). **Assumes**, for these limits alone and
    not for the answer, that conditions stay the same.
    """

    def __init__(self, known: Replay) -> None:
        self.known, self.protocol = known, known.protocol
        self.binary, self.ends = self.protocol.measure == "success", self.protocol.measured.ends

    @cached_property
    def finding(self) -> Any:
        """The answer as data; None before the first complete round."""
        return self.known.evidence.finding() if self.known.rounds else None

    @cached_property
    def seen(self) -> dict[tuple[str, str], Seen]:
        """What was seen in complete rounds, by policy and task; overall, the task has no name."""
        rounds = [self.known.costs(number) for number in range(1, self.known.rounds + 1)]
        slots = [task for task, weight in self.protocol.weights.items() for _ in range(weight)]
        found = {}
        for name in self.protocol.policies if rounds else ():
            costs = np.array([each[name] for each in rounds if name in each])
            for task in dict.fromkeys(["", *slots]):
                part = costs[:, [not task or slot == task for slot in slots]]
                found[name, task] = Seen(part.size, float(part.mean()), *self._limits(name, task, part))
        return found

    def _limits(self, name: str, task: str, costs: NDArray[np.float64]) -> tuple[float, float]:
        known = [*self.finding.policies] if isinstance(self.finding, Ranking) else [self.finding]
        for each in known if not task else ():
            if isinstance(each, Certificate) or getattr(each, "name", None) == name:
                return each.lower, each.upper
        # Bets of sizes fixed before: over a complete round the expected factors of its tasks multiply to at
        # most the power of their mean, so the limits are on the mean over tasks, however these differ.
        campaign = Campaign(self.protocol.alpha, binary=self.binary).update_many(costs.ravel())
        return campaign.lower, campaign.upper

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        rounds = count(self.known.rounds, "round")
        if self.finding is None:
            return "Nothing is known: no round is complete."
        counts = ", ".join(f"{name} {self.shown(self.seen[name, ''])}" for name in self.protocol.policies)
        said = self.known.evidence.said(self.finding, rounds, counts)
        return said if self.known.ended else f"Not finished, after {rounds}: {said}"

    def shown(self, seen: Seen) -> str:
        """Say what was seen in the units of the measure."""
        if self.binary:
            return f"{round((1 - seen.cost) * seen.n)}/{seen.n}"
        return f"{self.units(seen.cost):.3g} in {seen.n} trials"

    def units(self, cost: float) -> float:
        """Return the success rate, the score or the points of a cost."""
        low, high = self.ends
        return high - cost * (high - low)

    def _between(self, seen: Seen) -> str:
        low, high = self.units(seen.upper), self.units(seen.lower)
        return percents(max(low, 0), min(high, 1)) if self.binary else f"{floor(low)} to {ceiling(high)}"

    @property
    def overall(self) -> Table:
        """A row per policy: what was seen, its mean, limits, group, letter; its name is last."""
        letters = self.known.schedule.letters(1) if self.protocol.blind is True else {}
        groups = {each.name: each.letters for each in getattr(self.finding, "policies", ())}
        word = "rate" if self.binary else f"mean {self.protocol.measured.column}"
        between = f"{percent(1 - self.protocol.alpha)} limits"
        heads: tuple[str, ...] = ("successes" if self.binary else "trials", word, between)
        heads += ("group",) * bool(groups) + ("letter",) * bool(letters) + ("policy",)
        rows: list[tuple[str, ...]] = []
        for name in self.protocol.policies if self.seen else ():
            seen = self.seen[name, ""]
            mean = self.units(seen.cost)
            told = (self.shown(seen), percent(mean)) if self.binary else (str(seen.n), f"{mean:.3g}")
            rows.append(
                (*told, self._between(seen), *(each[name] for each in (groups, letters) if each), name)
            )
        return heads, rows

    @property
    def by_task(self) -> Table:
        """A row per task: what was seen of each policy, and its name; for reading, not corrected."""
        names = self.protocol.policies
        tasks = self.protocol.weights if self.seen else ()
        return (*names, "task"), [
            (*(self.shown(self.seen[name, task]) for name in names), task) for task in tasks
        ]

    def paper(self) -> dict[str, str]:
        """Return the overall table as LaTeX, Markdown and CSV."""
        heads, rows = self.overall
        lines = [(line[-1], *line[:3]) for line in [heads, *rows]]
        return {kind: written(lines, kind.lower()) for kind in ("LaTeX", "Markdown", "CSV")}

    @property
    def flags(self) -> str:
        """How `compare` reads the export."""
        measure = self.protocol.measured
        ends = "" if measure.cost_range is None else f" --cost-range {' '.join(map(shortest, self.ends))}"
        tasks = " --strata task" if self.protocol.slots > 1 else ""
        return f"--policy policy --{measure.kind} {measure.column}{ends}{tasks} --where counted=yes"

    def as_csv(self) -> str:
        """Return every trial with an outcome as a table."""
        lines: list[tuple[Any, ...]] = [(*HEADS, self.protocol.measured.column, "left", "note", "counted")]
        for trial, name, outcome in self.known.recorded:
            value = shortest(round(self.units(outcome.cost), 9))
            counted = "yes" if trial.round <= self.known.rounds else "no"
            about = (trial.number, trial.round, trial.task, trial.scene, name, trial.policy)
            said = (outcome.left, outcome.said.get("note", ""), counted)
            lines.append((*about, outcome.station, outcome.time, value, *said))
        return written(lines, "csv") + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        heads, rows = self.overall
        policies = [dict(zip(heads, row, strict=True)) for row in rows]
        finding = None if self.finding is None else self.finding.to_dict()
        return {"answer": self.answer, "policies": policies, "finding": finding}
