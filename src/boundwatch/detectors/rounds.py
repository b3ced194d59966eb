"""The mean over a fixed set of tasks while trials come in: looks after rounds 1, 2, 4, 8, and so on.

The r-th trial of each task makes the r-th round, in whatever order they come. A look weighs all trials of
complete rounds as `HypothesisTest` does, jointly with the lab's, at a share of the level; with n rounds in
the lab, r/(r + n) of it is spent by round r, so that the shares of all looks add up to at most 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.schema import convert
from boundwatch.certificates.record import Rounds, refuse_unknown
from boundwatch.detectors import saving
from boundwatch.detectors.anytime_detector import SIDES
from boundwatch.detectors.family_test import Weighed
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.strata import StrataTest
from boundwatch.detectors.verdicts import Finding, Verdict, new_costs
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import Argument, InvalidSetting, Place, SchemaMismatch

NAME = "sequential-test"


def share_of(rounds: int, lab: float) -> float:
    """Return the share of the level that is spent at a look after so many rounds, a power of 2.

    Examples
    --------
    >>> [round(share_of(rounds, 20), 3) for rounds in (1, 2, 4, 8, 16, 32)]
    [0.048, 0.043, 0.076, 0.119, 0.159, 0.171]
    """
    before = rounds // 2
    return rounds / (rounds + lab) - before / (before + lab)


class RoundsTest(SequentialTest):
    """What `SequentialTest` makes of a certificate of the mean over tasks; `update` takes the task, too.

    **Guarantee**: if no task got worse, the probability that all together or any task is ever called ADVERSE
    is at most `alpha_adverse` + the certificate's `delta_upper`, however long the stream runs and whatever
    makes one stop; a task that did not get worse is called so with at most that, whatever the others do.
    BENIGN and `no_worse` are wrong with at most `alpha_benign` + `delta_lower`. Limits on the shift hold at
    all looks at once. Without the lab's trials, tasks may spend another fifth of delta. **Assumes**:
    independent trials, each task's with one expected cost (not above the certified one, for ADVERSE).

    A finding tells how many trials were counted; what is said about them comes from the latest look.
    """

    looked: int
    """How many rounds the latest look weighed; 0 before the first."""

    def _prepare(self) -> None:
        strata, alphas = self.certificate.strata, (self.alpha_adverse, self.alpha_benign)
        self._test = StrataTest(self.certificate, alphas, self.margin, self.sharing)
        self._names = [each.name for each in strata]
        self._lab = sum(each.n for each in strata) / len(strata)

    def reset(self) -> None:
        """Forget all costs and any alarm: what follows is a new watch, with its own chance of a false one."""
        self.n, self.first_alarm, self.verdict = 0, None, Verdict.WITHIN
        self._total, self._sums = 0.0, dict.fromkeys(self._names, 0.0)
        self._rounds = Rounds(self._sums)
        self._shown, self.looked = Weighed.nothing(1 + len(self._names)), 0
        self._alarms: dict[str, int] = {}

    @property
    def thresholds(self) -> None:
        """There are none: levels are spent at looks."""
        return

    @property
    def rounds(self) -> int:
        """How many rounds are complete."""
        return self._rounds.complete

    @property
    def waiting(self) -> dict[str, int]:
        """How many trials of each task complete no round yet; the others are not named."""
        return self._rounds.waiting

    @property
    def next_look(self) -> int:
        """After how many rounds the next look comes."""
        return max(2 * self.looked, 1)

    def update(self, cost: float, stratum: str | None = None) -> Finding:  # type: ignore[override]
        """Count one more trial of a task and return the finding.

        Examples
        --------
        >>> import boundwatch as bw
        >>> lab = bw.Episodes([0] * 38 + [1] * 2 + [0] * 30 + [1] * 10, strata=["mug"] * 40 + ["bowl"] * 40)
        >>> test = bw.SequentialTest(bw.Certificate.from_held_out(lab, delta=0.01, binary=True))
        >>> for cost in [1, 0, 1, 1, 1, 0, 1, 1]:
        ...     _ = test.update(cost, "mug")
        ...     finding = test.update(cost, "bowl")
        >>> finding.verdict.value, finding.first_alarm, finding.tasks["mug"].verdict.value
        ('adverse', 8, 'adverse')
        """
        self.refuse_other(stratum)
        self._count(self._check(cost), str(stratum))
        return self._finding()

    def update_many(  # type: ignore[override]  # looks do not bet: there are no e-values
        self, costs: ArrayLike, strata: Sequence[str] | None = None
    ) -> Finding:
        """Count many trials; the result is that of `update` on each. `Episodes` bring their tasks."""
        if strata is None and isinstance(costs, Episodes):
            strata = costs.keys.get("strata")
        values = new_costs(costs, self.certificate).tolist()
        for name in [None] if strata is None else strata:
            self.refuse_other(name)
        for value, name in zip(values, strata or (), strict=True):
            self._count(value, name)
        return self._finding()

    def peek(self, partial_cost: float) -> NoReturn:
        """Refuse: a running episode completes no round."""
        problem = "is of an episode that completes no round of tasks"
        raise InvalidSetting(problem, name="partial_cost", value=partial_cost, remedy="call update")

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values, as `SequentialTest` does."""
        return super().state_dict() | {"kind": SequentialTest.__name__}

    def refuse_other(self, name: str | None, where: Place | None = None) -> None:
        """Refuse a trial of a task whose mean is not certified."""
        if name is None:
            problem = "is missing: the certificate is of the mean over tasks"
            raise InvalidSetting(problem, name="stratum", where=where, remedy=("give ", Argument("strata")))
        refuse_unknown(name, self._names, where)

    def _count(self, cost: float, name: str) -> None:
        self.n, self._total = self.n + 1, self._total + cost
        self._rounds.add(cost, name)
        self._sums[name] += cost
        if len(self._rounds.costs[name]) >= self.next_look and self.rounds >= self.next_look:
            self._look()

    def _look(self) -> None:
        self.looked = looked = self.next_look
        share = share_of(looked, self._lab)
        new = {name: np.array(costs[:looked]) for name, costs in self._rounds.costs.items()}
        self._shown = self._shown.with_look(self._test.weigh(new, share), share)
        found = self._finding()
        if found.verdict not in (Verdict.WITHIN, self.verdict):
            self._alarm(SIDES.index(found.verdict))
        for name, each in found.tasks.items():
            if each.verdict is not Verdict.WITHIN:
                self._alarms.setdefault(name, self.n)

    def _finding(self) -> Finding:  # type: ignore[override]
        alarms = self._alarms if self.first_alarm is None else {**self._alarms, "": self.first_alarm}
        numbers = {name: len(costs) for name, costs in self._rounds.costs.items()}
        seen = {name: (n, self._sums[name] / max(n, 1)) for name, n in numbers.items()}
        return self._test.finding(self._shown, seen, NAME, alarms)

    def _evidence_state(self) -> dict[str, Any]:
        costs: dict[str, Any] = {name: list(each) for name, each in self._rounds.costs.items()}
        if self.certificate.binary:
            costs = {name: "".join(str(int(cost)) for cost in each) for name, each in costs.items()}
        kept = {name: saving.pack(array) for name, array in vars(self._shown).items()}
        return {"costs": costs, "looked": self.looked, "alarms": dict(self._alarms), **kept}

    def _restore(self, state: Mapping[str, Any]) -> None:
        kind: Any = dict[str, str] if self.certificate.binary else dict[str, list[float]]
        costs = convert(kind, state.get("costs"), "state.costs")
        columns = 1 + len(self._names)
        known = {"p": (3, columns), "lower": (columns,), "upper": (columns,)}
        self._shown = Weighed(**{name: saving.unpack(state, name, *shape) for name, shape in known.items()})
        self.looked = convert(saving.Count, state.get("looked"), "state.looked")
        self._alarms = convert(dict[str, saving.Count], state.get("alarms"), "state.alarms")
        if list(costs) != self._names or sum(map(len, costs.values())) != self.n:
            raise SchemaMismatch("does not hold the costs of its tasks", name="state", remedy=saving.DAMAGED)
        for name, each in costs.items():
            for cost in map(float, each):
                self._rounds.add(self._check(cost), name)
                self._sums[name] += cost
