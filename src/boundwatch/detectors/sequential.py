"""The anytime-valid test: look after every episode, stop whenever you like."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boundwatch._support.validation import check_level
from boundwatch.bounds.memory import STEPS, CostMemory
from boundwatch.bounds.wealth import Bets, Wealth, bet_bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import state as states
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.mixture import Mark
from boundwatch.detectors.stream import SIDES, StreamDetector, overrides
from boundwatch.errors import SchemaMismatch

_KIND = "SequentialTest"


@dataclass(frozen=True, kw_only=True, init=False)
class SequentialFinding(Finding):
    """A finding that is valid whenever it is read.

    **Guarantee**: that of `Finding`, for "ever declared, however long one looks". Each shift limit holds for
    all times at once, except with probability at most `alpha` plus the certificate's `delta` of its side. The
    limits are computed when first asked for (about 3 ms each).

    With binary costs the alarm may come a few episodes before the limits exclude a shift of zero: the alarm
    threshold is computed exactly at the certified bound, the limits use 1/alpha everywhere.

    Attributes
    ----------
    e_adverse, e_benign
        E-values against "the expected cost did not rise" and "it did rise": large is evidence. Under the
        hypothesis the expected value is at most 1 at any stopping time, while the certificate's limit of
        that side holds. (When it does not, which has a chance of at most its `delta`, there is no limit.)
    p_adverse, p_benign
        Anytime-valid p-values while the certificate's limit holds: 1 over the largest e-value so far. Over
        the draw of the certificate, too, one is ever a or less with a chance of at most a + `delta`.
    first_alarm
        The episode, counted from 1, at which the verdict was reached; None while it is WITHIN.
    """

    e_adverse: float
    e_benign: float
    first_alarm: int | None

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)  # one call: this is made once an episode

    # mypy has no word for a field that is computed when it is first read.
    @cached_property  # type: ignore[misc]
    def shift_lower(self) -> float:
        """Lower limit on the shift, for all times at once."""
        return self._limits()[0]

    @cached_property  # type: ignore[misc]
    def shift_upper(self) -> float:
        """Upper limit on the shift, for all times at once."""
        return self._limits()[1]

    def _limits(self) -> tuple[float, float]:
        limits: tuple[float, float] = self.__dict__["_limits_from"](self.__dict__["_memory"])
        self.__dict__.update(shift_lower=limits[0], shift_upper=limits[1])
        return limits


class SequentialTest(StreamDetector[SequentialFinding]):
    """Watches a stream of costs with two e-processes and may be read after every episode.

    **Guarantee**: ADVERSE is ever declared with probability at most `alpha_adverse` + the certificate's
    `delta_upper` in any world that is not worse, BENIGN with at most `alpha_benign` + `delta_lower` in any
    that is, however long it runs and whatever makes one stop. **Assumes**: costs of the certified kind whose
    expected value, given all earlier episodes, does not exceed the certified one (i.i.d. episodes are a
    special case), and an unchanged policy.

    Alarms latch: the verdict stays until `reset`, which starts a new test with its own levels, except that
    ADVERSE still replaces BENIGN. Each side has its own level, so no promise pays for that. A shift that
    begins late is `ChangeDetector`'s task: here, the evidence against a shift that was gathered before must
    first be used up.

    Parameters
    ----------
    certificate
        The promise to compare with.
    alpha_adverse, alpha_benign
        Levels of the two tests. The certificate's delta comes on top: see the finding's totals.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> test = bw.SequentialTest(certificate)
    >>> for cost in [0.7, 0.4, 0.9, 0.8, 0.6]:
    ...     finding = test.update(cost)
    >>> finding.verdict.value, finding.first_alarm, round(finding.e_adverse), round(finding.shift_lower, 2)
    ('adverse', 4, 149, 0.09)
    """

    def __init__(
        self, certificate: Certificate, *, alpha_adverse: float = 0.04, alpha_benign: float = 0.04
    ) -> None:
        self.certificate = certificate
        self.alpha_adverse = check_level(alpha_adverse, "alpha_adverse")
        self.alpha_benign = check_level(alpha_benign, "alpha_benign")
        self.bets = Bets.for_costs(binary=certificate.binary)
        self._bounds = bet_bounds(certificate.lower, certificate.upper)
        alphas = self.alpha_adverse, self.alpha_benign
        self._marks = [
            Mark(bound, alpha, certificate.binary) for bound, alpha in zip(self._bounds, alphas, strict=True)
        ]
        self._rates = {
            "false_positive_rate": min(self.alpha_adverse + certificate.delta_upper, 1.0),
            "false_negative_rate": min(self.alpha_benign + certificate.delta_lower, 1.0),
            "detector": "sequential-test",
            "tail": "mixture",
        }
        self.reset()

    @property
    def thresholds(self) -> tuple[float, float]:
        """The e-values at which ADVERSE and BENIGN are declared."""
        adverse, benign = self._marks
        return adverse.threshold, benign.threshold

    def reset(self) -> None:
        """Forget all costs and any alarm: what follows is a new test, with its own chance of a false one."""
        self.n = 0
        self.first_alarm: int | None = None
        self.verdict = Verdict.WITHIN
        self._total = 0.0
        self._wealth = Wealth(self.bets, *self._bounds)
        self._memory = CostMemory()

    def _finding(self) -> SequentialFinding:
        adverse, benign = self._wealth.log
        best_adverse, best_benign = self._wealth.best
        return SequentialFinding(
            {
                "verdict": self.verdict,
                "n": self.n,
                "mean_cost": self._total / self.n,
                "p_adverse": self._marks[0].p_value(best_adverse),
                "p_benign": self._marks[1].p_value(best_benign),
                **self._rates,
                "e_adverse": bounded_exp(adverse),
                "e_benign": bounded_exp(benign),
                "first_alarm": self.first_alarm,
                "_limits_from": self._shift_limits,
                "_memory": (self._memory.weights[:], best_adverse, best_benign),
            }
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> import json
        >>> import boundwatch as bw
        >>> test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = test.update_many([0.3, 0.1, 0.4])
        >>> again = bw.SequentialTest.from_state_dict(json.loads(json.dumps(test.state_dict())))
        >>> again.update(0.2).e_adverse == test.update(0.2).e_adverse
        True
        """
        content = {
            "alpha_adverse": self.alpha_adverse,
            "alpha_benign": self.alpha_benign,
            "n": self.n,
            "total": self._total,
            "verdict": self.verdict.value,
            "first_alarm": self.first_alarm,
            "wealth": states.pack(self._wealth.log),
            "best": states.pack(self._wealth.best),
            "logs": states.pack(self._wealth.logs.tolist()),
            "product": states.pack(self._wealth.product.tolist()),
            "memory": {str(i): value for i, value in enumerate(self._memory.weights) if value},
        }
        return states.seal(_KIND, self.certificate, content)

    @classmethod
    def from_state_dict(
        cls, state: Mapping[str, Any], certificate: Certificate | None = None
    ) -> SequentialTest:
        """Return the test that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, possibly through a JSON file.
        certificate
            If given, the state must belong to it, or `ProvenanceMismatch` is raised.
        """
        test = cls(
            states.unseal(_KIND, state, certificate),
            alpha_adverse=states.number(state, "alpha_adverse"),
            alpha_benign=states.number(state, "alpha_benign"),
        )
        wealth = test._wealth
        test.n = wealth.n = states.count(state, "n") or 0
        test._total = states.number(state, "total")
        test.verdict, test.first_alarm = states.alarm(state, test.n)
        wealth.log = states.unpack(state, "wealth", 2).tolist()
        wealth.best = states.unpack(state, "best", 2).tolist()
        size = wealth.logs.size
        wealth.restore(states.unpack(state, "logs", size), states.unpack(state, "product", size))
        memory = state.get("memory")
        if not isinstance(memory, Mapping):
            raise SchemaMismatch("state['memory'] is not a table; the state is damaged")
        for key in memory:
            if not (isinstance(key, str) and key.isdecimal() and int(key) <= STEPS):
                raise SchemaMismatch(f"state['memory'] has the unknown key {key!r}; the state is damaged")
            test._memory.weights[int(key)] = states.number(memory, key)
        return test

    def _step(self, cost: float) -> None:
        self.n += 1
        self._total += cost
        self._wealth.step(cost)
        for side in (0, 1):
            if overrides(side, self.verdict) and self._marks[side].reached(self._wealth.log[side]):
                self.first_alarm = self.n
                self.verdict = SIDES[side]
        self._memory.add(cost)

    def _shift_limits(self, snapshot: tuple[array[float], float, float]) -> tuple[float, float]:
        weights, best_adverse, best_benign = snapshot
        memory = CostMemory(weights)
        lower = memory.mean_lower(self.bets, self.alpha_adverse)
        upper = memory.mean_upper(self.bets, self.alpha_benign)
        # Once the wealth against a certified bound has reached 1/alpha, every mean up to it stays refuted.
        if best_adverse >= math.log(1 / self.alpha_adverse):
            lower = max(lower, self.certificate.upper)
        if best_benign >= math.log(1 / self.alpha_benign):
            upper = min(upper, self.certificate.lower)
        return lower - self.certificate.upper, upper - self.certificate.lower


def bounded_exp(log: float) -> float:
    """Return exp(log), or the largest float: JSON has no infinity."""
    return math.exp(log) if log < 709.0 else sys.float_info.max
