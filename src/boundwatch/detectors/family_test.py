"""Several tasks at once: a verdict on each, with control over all of them (Holm)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import InTable, frame, html, one_line, table
from boundwatch._support.validation import check_level, check_margin
from boundwatch.bounds.multiple import holm
from boundwatch.certificates.family import CertificateFamily, no_certificate
from boundwatch.detectors.fixed_sample import TAILS, JointJudge, Judge, TailJudge, choose_tail
from boundwatch.detectors.verdicts import LOOK_LEVEL, Finding, TailName, Verdict, new_costs
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch

Array = NDArray[np.float64]
_LIMITS = ("lower", "upper")
_NUMBERS = ("p_adverse", "p_benign", "shift_lower", "shift_upper")
_OF_ALL = ("false_positive_rate", "false_negative_rate", "detector", "tail")
"""What is the same for all tasks, and not shown for each."""


@dataclass(frozen=True, kw_only=True)
class TaskFinding(Finding):
    """What a `FamilyTest` found for one task; verdict and `no_worse` take all other tasks into account.

    The p-values are its own, not corrected. The limits on the shift hold for all tasks at once; the rates are
    those of the family.

    Attributes
    ----------
    adjusted_adverse, adjusted_benign
        The smallest level of the family at which it would be called ADVERSE or BENIGN: Holm's adjusted
        p-values. The deltas of certificates that are judged jointly are part of the level.
    """

    task: str
    adjusted_adverse: float
    adjusted_benign: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, its name first."""
        return {"task": self.task} | super().to_dict()


@dataclass(frozen=True, kw_only=True)
class FamilyFinding(InTable):
    """The verdicts on all tasks, and what is guaranteed for them together; see `FamilyTest`.

    Attributes
    ----------
    verdict
        ADVERSE if any task is, BENIGN if all are, else WITHIN.
    false_positive_rate, false_negative_rate
        The guaranteed totals for wrong ADVERSE and wrong BENIGN verdicts, deltas included.
    not_judged
        Tasks that are certified but had no new costs.
    """

    tasks: Mapping[str, TaskFinding] = field(hash=False)
    verdict: Verdict
    false_positive_rate: float
    false_negative_rate: float
    not_judged: tuple[str, ...]

    def __repr__(self) -> str:
        shown = {"verdict": self.verdict, "tasks": len(self.tasks), "not_judged": len(self.not_judged)}
        return one_line(self, shown)

    @property
    def no_worse(self) -> bool | None:
        """Whether every certified task is shown to be worse by at most the margin; None without a margin."""
        if any(finding.margin is None for finding in self.tasks.values()):
            return None
        return not self.not_judged and all(finding.no_worse for finding in self.tasks.values())

    def called(self, verdict: Verdict) -> list[str]:
        """Return the tasks with this verdict."""
        return [task for task, finding in self.tasks.items() if finding.verdict is verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "verdict": self.verdict.value,
            "no_worse": self.no_worse,
            "tasks": [finding.to_dict() for finding in self.tasks.values()],
            "not_judged": list(self.not_judged),
            "false_positive_rate": self.false_positive_rate,
            "false_negative_rate": self.false_negative_rate,
        }

    def to_frame(self) -> Any:
        """Return a data frame of one row per task, of pandas or, without it, of polars (extra ``frame``)."""
        return frame([finding.to_dict() for finding in self.tasks.values()])

    def _repr_html_(self) -> str:
        content = self.to_dict()
        tasks = content.pop("tasks")
        names = [name for name, value in tasks[0].items() if not (value is None or name in _OF_ALL)]
        return html(
            self, table([[task[name] for name in names] for task in tasks], names), table(content.items())
        )


@dataclass(frozen=True)
class Weighed:
    """What costs show, in a column of each task, and of all together where that is asked for (the first).

    `p` are p-values of "did not get worse", "got worse" and "got worse by more than the margin"; `lower` and
    `upper` are limits on the shift.
    """

    p: Array
    lower: Array
    upper: Array

    @classmethod
    def nothing(cls, columns: int) -> Weighed:
        """Return what no costs show."""
        return cls(np.ones((3, columns)), np.full(columns, -1.0), np.ones(columns))

    def with_look(self, look: Weighed, share: float) -> Weighed:
        """Return what is known after one more look, at which a share of all levels is spent."""
        p = np.minimum(self.p, look.p / share)
        return Weighed(p, np.maximum(self.lower, look.lower), np.minimum(self.upper, look.upper))

    def column(self, place: int) -> dict[str, Any]:
        """Return the fields of a finding that come from a column."""
        known = *np.minimum(self.p[:2, place], 1.0), self.lower[place], self.upper[place]
        return dict(zip(_NUMBERS, map(float, known), strict=True))


@dataclass(frozen=True)
class FamilyTest:
    """Compares the new costs of several tasks with their certificates, and corrects for their number.

    **Guarantee**: any task whose expected cost did not rise is called ADVERSE with probability at most
    `alpha_adverse` + the `delta_upper` of the tasks judged, and any whose expected cost did rise BENIGN with
    at most `alpha_benign` + their `delta_lower`; `no_worse` keeps what BENIGN keeps. **Assumes**: for each
    task, i.i.d. episodes, costs of the certified kind and an unchanged policy; which tasks are judged, and
    how many episodes each has, was fixed without regard to the costs. The tasks may depend on each other in
    any way.

    Parameters
    ----------
    alpha_adverse, alpha_benign
        Levels for all tasks together; the deltas come on top.
    tail
        As in `HypothesisTest`, for each task.
    margin
        How much worse is acceptable for every task, in expected cost.

    Examples
    --------
    >>> import boundwatch as bw
    >>> costs = {"pick": [0, 0, 0, 1] * 50, "place": [0, 1] * 100}
    >>> family = bw.CertificateFamily.from_held_out(costs, delta=0.01, binary=True)
    >>> finding = bw.FamilyTest(family).decide({"pick": [1] * 8 + [0] * 4, "place": [0, 1] * 6})
    >>> finding.tasks["pick"].verdict.value, finding.tasks["place"].verdict.value
    ('adverse', 'within')
    >>> round(finding.false_positive_rate, 6)
    0.055
    """

    family: CertificateFamily
    alpha_adverse: float = field(default=LOOK_LEVEL, kw_only=True)
    alpha_benign: float = field(default=LOOK_LEVEL, kw_only=True)
    tail: TailName | None = field(default=None, kw_only=True)
    margin: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.family, CertificateFamily):
            raise InvalidSetting(
                "is not a CertificateFamily", name="family", value=self.family, remedy="make or load one"
            )
        for name in ("alpha_adverse", "alpha_benign"):  # kept as floats: findings must fit into JSON
            object.__setattr__(self, name, check_level(getattr(self, name), name))
        if self.margin is not None:
            object.__setattr__(self, "margin", check_margin(self.margin))
        self.tails(self.family)  # refuses one that does not fit

    def __str__(self) -> str:
        levels = f"{self.alpha_adverse:g} (ADVERSE) and {self.alpha_benign:g} (BENIGN)"
        return f"FamilyTest of {len(self.family)} tasks, at levels of {levels}"

    def decide(self, costs: Mapping[str, ArrayLike]) -> FamilyFinding:
        """Judge the new costs of every task.

        A task without a certificate is an error; one without costs is not judged. What is suspicious about
        `Episodes` is said as a Python warning; a certificate's own are refused.
        """
        if unknown := [task for task in costs if task not in self.family]:
            problem, remedy = no_certificate(unknown[0], self.family)
            raise InvalidSetting(f"{self.family.by} {unknown[0]!r} {problem}", remedy=remedy)
        if not costs:
            raise InvalidCost("costs is empty; at least one task needs new episodes")
        judged = self.family.only(task for task in self.family if task in costs)
        values = {}
        for task, certificate in judged.items():
            try:
                values[task] = new_costs(costs[task], certificate)
            except (InvalidCost, ProvenanceMismatch) as error:
                raise error.inside(f"{self.family.by} {task!r}") from error
        tails, levels = self.tails(judged)
        weighed = self.weigh(judged, values)
        adverse, benign, shown = map(holm, weighed.p)
        totals: dict[str, Any] = {
            "false_positive_rate": min(self.alpha_adverse + judged.delta_upper, 1.0),
            "false_negative_rate": min(self.alpha_benign + judged.delta_lower, 1.0),
        }
        tasks = {
            task: TaskFinding(
                **weighed.column(place),
                **totals,
                task=task,
                n=each.size,
                mean_cost=float(each.mean()),
                binary=judged[task].binary,
                verdict=verdict_of(adverse[place] <= levels[0], benign[place] <= levels[1]),
                adjusted_adverse=float(adverse[place]),
                adjusted_benign=float(benign[place]),
                detector="family-test",
                tail=tails[task],
                margin=self.margin,
                no_worse=None if self.margin is None else bool(shown[place] <= levels[1]),
            )
            for place, (task, each) in enumerate(values.items())
        }
        called = {finding.verdict for finding in tasks.values()}
        same = next(iter(called)) if len(called) == 1 else Verdict.WITHIN
        return FamilyFinding(
            tasks=tasks,
            verdict=Verdict.ADVERSE if Verdict.ADVERSE in called else same,
            **totals,
            not_judged=tuple(task for task in self.family if task not in costs),
        )

    def could_alarm(self, sizes: Mapping[str, int]) -> dict[str, bool]:
        """Return whether failures throughout would be ADVERSE for each task, if all others were ADVERSE, too.

        Examples
        --------
        >>> family = CertificateFamily.from_held_out({"pick": [0, 0, 0, 1] * 50}, binary=True)
        >>> FamilyTest(family).could_alarm({"pick": 1}), FamilyTest(family).could_alarm({"pick": 2})
        ({'pick': False}, {'pick': True})
        """
        judged = self.family.only(sizes)
        level = self.tails(judged)[1][0]
        found: dict[str, float] = {}
        for tasks, judge, rows in self._judges(judged, {task: np.ones(n) for task, n in sizes.items()}):
            found |= zip(tasks, judge.p_values(rows)[0].tolist(), strict=True)
        return {task: found[task] <= level for task in sizes}

    def weigh(self, judged: CertificateFamily, values: Mapping[str, Array]) -> Weighed:
        """Weigh the costs of each task by itself; its limits get a share of the levels (Bonferroni)."""
        weighed = Weighed.nothing(len(values))
        places = {task: place for place, task in enumerate(values)}
        for tasks, judge, rows in self._judges(judged, values):
            where = [places[task] for task in tasks]
            weighed.p[:2, where] = judge.p_values(rows)
            weighed.lower[where], weighed.upper[where] = judge.shift_lower(rows), judge.shift_upper(rows)
            if self.margin is not None:
                weighed.p[2, where] = judge.p_margin(rows, self.margin)
        return weighed

    def _judges(
        self, judged: CertificateFamily, values: Mapping[str, Array]
    ) -> Iterator[tuple[list[str], Judge, Array]]:
        """Yield tasks, what judges them, and their costs as rows; by limits, equally many at once."""
        tails, (adverse, benign) = self.tails(judged)
        shares = adverse / len(judged), benign / len(judged)
        alike: dict[tuple[TailName, int], list[str]] = {}
        for task, each in values.items():
            if tails[task] == "joint":
                yield [task], JointJudge(judged[task], shares), each[None]
            else:
                alike.setdefault((tails[task], each.size), []).append(task)
        for (tail, _), tasks in alike.items():
            lower, upper = (np.array([getattr(judged[task], side) for task in tasks]) for side in _LIMITS)
            judge = TailJudge(lower, upper, shares, TAILS[tail])
            yield tasks, judge, np.stack([values[task] for task in tasks])

    def tails(self, judged: CertificateFamily) -> tuple[dict[str, TailName], tuple[float, float]]:
        """Return how each task is weighed, and what may be spent on all of them.

        That is the levels and the deltas of certificates that are judged jointly, each once. The limits of
        the others fail with their delta, which comes on top.
        """
        levels = self.alpha_adverse, self.alpha_benign
        tails = {task: choose_tail(self.tail, certificate) for task, certificate in judged.items()}
        joint = [task for task, tail in tails.items() if tail == "joint"]
        if not joint:
            return tails, levels
        spent = judged.only(joint)
        totals = levels[0] + spent.delta_upper, levels[1] + spent.delta_lower
        if max(totals) < 1:
            return tails, totals
        for task in joint:
            tails[task] = "exact" if judged[task].binary else "betting"
        return tails, levels


def verdict_of(adverse: bool, benign: bool) -> Verdict:
    """Return the verdict, given what each side found."""
    return Verdict.ADVERSE if adverse else Verdict.BENIGN if benign else Verdict.WITHIN
