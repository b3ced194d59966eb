"""The anytime-valid test of episodes that a machine judges, of which people label some."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundwatch.bounds.bets import bet_bounds
from boundwatch.bounds.judged_bets import JudgedBets
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.judged import AUDIT_RATES, Drawing
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.evidence import bounded_exp
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, Finding, Verdict, refuse_tasks
from boundwatch.errors import SchemaMismatch

_GRID = np.linspace(0.0, 1.0, 129)[1:-1]


@dataclass(frozen=True, kw_only=True)
class JudgedFinding(Finding):
    """What a `JudgedTest` knows: of the first `n` episodes, up to the first one that waits for its label.

    Attributes
    ----------
    judged
        How many episodes the machine has judged.
    judge_says
        Their mean cost by what it says, which decides nothing.
    waiting
        The episodes, counted from 1, that were drawn and have no label yet.
    """

    e_adverse: float
    e_benign: float
    judged: int
    judge_says: float
    waiting: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return super().to_dict() | {"waiting": list(self.waiting)}


class JudgedTest(AnytimeDetector[JudgedFinding]):
    """Watches episodes that a machine judges, and may be read after every one; labels of some decide.

    A coin, whose seed is chosen beforehand, says which episodes people label: `waiting` names them. Episodes
    count in their order, up to the first one that waits.

    **Guarantee**: that of `SequentialTest` against the certified limits, for any judge, however it changes.
    **Assumes**: neither the judge nor the episodes know the coin; labels are right, and of costs of the
    certified kind whose expected value, given all earlier episodes, does not exceed the certified one.

    Parameters
    ----------
    seed
        A number chosen before the first episode, which the judge cannot know; it decides which are drawn.
    rates
        The probability that an episode is labeled if the judge calls it a success (a cost below one half),
        and if it calls it a failure.
    alpha_adverse, alpha_benign
        As in `SequentialTest`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> test = bw.JudgedTest(certificate, seed=7, rates=(0.2, 0.5))
    >>> for _ in range(30):
    ...     finding = test.update(1)
    >>> finding.waiting[:3], finding.n
    ((3, 4, 5), 2)
    >>> for episode in finding.waiting:
    ...     finding = test.label(episode, 1)
    >>> finding.verdict.value, finding.labels
    ('adverse', 13)
    """

    def __init__(
        self,
        certificate: Certificate,
        *,
        seed: int,
        rates: Sequence[float] = AUDIT_RATES,
        alpha_adverse: float = ANYTIME_LEVEL,
        alpha_benign: float = ANYTIME_LEVEL,
    ) -> None:
        self._accept(certificate, alpha_adverse, alpha_benign)
        refuse_tasks(self.certificate)
        self.seed, self.rates = seed, Drawing(seed, rates).rates
        upper, rest = bet_bounds(certificate.lower, certificate.upper)
        self._means = np.concatenate([[upper, 1 - rest], _GRID])
        self.reset()

    def reset(self) -> None:
        """Forget all episodes and any alarm: what follows is a new watch."""
        self.n, self.first_alarm, self.verdict, self._total = 0, None, Verdict.WITHIN, 0.0
        self._drawing = Drawing(self.seed, self.rates)
        self._bets = JudgedBets(self._means, self.rates)

    def finding(self) -> JudgedFinding:
        """Return what is known after the latest label; before the first one, nothing."""
        return self._finding()

    @property
    def waiting(self) -> tuple[int, ...]:
        """The episodes, counted from 1, that were drawn and have no label yet."""
        return self._drawing.waiting

    def is_drawn(self, episode: int) -> bool:
        """Return whether people are to label an episode that was judged."""
        return self._drawing.is_drawn(episode)

    def update(self, cost: float, label: float | None = None) -> JudgedFinding:
        """Take one more episode and return the finding.

        Parameters
        ----------
        cost
            What the judge says.
        label
            What people say, if that is known; it counts only if the episode is drawn.
        """
        judged, said = self._check(cost), None if label is None else self._check(label)
        self._receive(judged, said)
        return self._finding()

    def label(self, episode: int, cost: float) -> JudgedFinding:
        """Take the label of an episode that was drawn, and return the finding."""
        self._drawing.label(episode, self._check(cost))
        self._go_on()
        return self._finding()

    def _step(self, cost: float) -> None:
        self._receive(cost, None)

    def _receive(self, judged: float, label: float | None) -> None:
        self._drawing.receive(judged, label)
        self._go_on()

    def _go_on(self) -> None:
        """Count episodes in their order, up to the first one that waits for its label."""
        alphas = self.alpha_adverse, self.alpha_benign
        for failed, label in self._drawing.counted():
            self._total += self._bets.step(failed, label)
            self.n += 1
            for side in (0, 1):
                if self._bets.best[side, side] >= math.log(1 / alphas[side]):
                    self._alarm(side)

    def _finding(self) -> JudgedFinding:
        bets, certificate, drawing = self._bets, self.certificate, self._drawing
        alphas = self.alpha_adverse, self.alpha_benign
        refuted = [bets.best[side, 2:] >= math.log(1 / alpha) for side, alpha in enumerate(alphas)]
        known = self._known() | {"mean_cost": min(max(self._total / max(self.n, 1), 0.0), 1.0)}
        return JudgedFinding(
            **known,
            p_adverse=math.exp(-float(bets.best[0, 0])),
            p_benign=math.exp(-float(bets.best[1, 1])),
            shift_lower=float(_GRID[refuted[0]].max(initial=0.0)) - certificate.upper,
            shift_upper=float(_GRID[refuted[1]].min(initial=1.0)) - certificate.lower,
            detector="judged-test",
            e_adverse=bounded_exp(float(bets.wealth(0)[0])),
            e_benign=bounded_exp(float(bets.wealth(1)[1])),
            labels=sum(each <= self.n for each in drawing.labels),
            judged=len(drawing.judged),
            judge_says=sum(drawing.judged) / max(len(drawing.judged), 1),
            waiting=self.waiting,
        )

    def _evidence_state(self) -> dict[str, Any]:
        return self._drawing.state()

    def _restore(self, state: Mapping[str, Any]) -> None:
        n, first_alarm = self.n, self.first_alarm
        self.reset()
        for judged, label in Drawing.said(state):
            self._receive(self._check(judged), None if label is None else self._check(label))
        if (self.n, self.first_alarm) != (n, first_alarm):
            raise SchemaMismatch("state['n'] is not the number of its evidence; the state is damaged")
