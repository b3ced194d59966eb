"""What a sequential test weighs: the new costs against a certificate's limits, or jointly with its costs.

`SequentialTest` keeps the count of episodes and the verdict; an `Evidence` says when a side is reached and
what e-values, p-values and limits to report. `joint.evidence_for` chooses the kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping
from typing import Any

from boundwatch.bounds.bets import Bets, Wealth, bet_bounds, clamp_bound
from boundwatch.bounds.cost_grid import STEPS, CostGrid
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import saving
from boundwatch.detectors.mixture import Mark
from boundwatch.errors import SchemaMismatch

Pair = tuple[float, float]


class Evidence(ABC):
    """The evidence of both sides, ADVERSE first, and that the cost rose by no more than a margin."""

    reached: list[bool]
    """Which sides have been reached so far; once reached, always."""
    no_worse: bool
    """Whether it has been shown that the cost rose by no more than the margin."""

    @property
    @abstractmethod
    def thresholds(self) -> Pair | None:
        """The e-values that reach each side; None if something else does."""

    @abstractmethod
    def reset(self) -> None:
        """Forget everything."""

    @abstractmethod
    def step(self, cost: float) -> None:
        """Weigh one more cost."""

    @abstractmethod
    def snapshot(self) -> Any:
        """Return what the numbers below depend on, as it is now."""

    @abstractmethod
    def log_e_value(self, side: int, snapshot: Any) -> float:
        """Return the log e-value of one side."""

    @abstractmethod
    def p_value(self, side: int, snapshot: Any) -> float:
        """Return the p-value of one side."""

    @abstractmethod
    def shift_limit(self, side: int, snapshot: Any) -> float:
        """Return a limit on the shift: the lower one for ADVERSE, the upper one for BENIGN."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""


def marks_of(certificate: Certificate, alphas: Pair, margin: float | None) -> tuple[list[float], list[Mark]]:
    """Return the means to bet against (for ADVERSE, BENIGN and, with a margin, "no worse") and the marks."""
    bounds, levels = [*bet_bounds(certificate.lower, certificate.upper)], [*alphas]
    if margin is not None:  # a third bet: on 1 - cost, against more than the lower limit plus the margin
        bounds.append(clamp_bound(1 - certificate.lower - margin))
        levels.append(alphas[1])
    marks = [Mark(bound, alpha, certificate.binary) for bound, alpha in zip(bounds, levels, strict=True)]
    return bounds, marks


class CertifiedEvidence(Evidence):
    """New costs against the certificate's limits; its delta comes on top."""

    def __init__(self, certificate: Certificate, alphas: Pair, margin: float | None) -> None:
        self.certificate, self.alphas, self.margin = certificate, alphas, margin
        self.bets = Bets.for_costs(binary=certificate.binary)
        self._bounds, self.marks = marks_of(certificate, alphas, margin)
        self.reset()

    @property
    def thresholds(self) -> Pair:
        """1/alpha, or the exact thresholds for binary costs."""
        return self.marks[0].threshold, self.marks[1].threshold

    def reset(self) -> None:
        """Forget everything."""
        self.reached, self.no_worse = [False, False], False
        self._wealth = Wealth(self.bets, *self._bounds)
        self._memory = CostGrid()

    def step(self, cost: float) -> None:
        """Weigh one more cost."""
        self._wealth.step(cost)
        for line, log in enumerate(self._wealth.log):
            if self.marks[line].reached(log):
                if line < 2:
                    self.reached[line] = True
                else:
                    self.no_worse = True
        self._memory.add(cost)

    def snapshot(self) -> tuple[list[float], list[float], array[float]]:
        """Return the wealth, the best wealth and the costs."""
        return self._wealth.log, self._wealth.best, self._memory.weights[:]

    def log_e_value(self, side: int, snapshot: tuple[list[float], list[float], array[float]]) -> float:
        """Return the log e-value of one side."""
        return snapshot[0][side]

    def p_value(self, side: int, snapshot: tuple[list[float], list[float], array[float]]) -> float:
        """Return 1 over the largest e-value so far."""
        return self.marks[side].p_value(snapshot[1][side])

    def shift_limit(self, side: int, snapshot: tuple[list[float], list[float], array[float]]) -> float:
        """Return the limit on the new mean less the certified limit."""
        _, best, weights = snapshot
        memory, alpha = CostGrid(weights), self.alphas[side]
        # Once the wealth against a certified bound has reached 1/alpha, every mean up to it stays refuted.
        stays = best[side] >= math.log(1 / alpha)
        if side == 0:
            lower, bound = memory.mean_lower(self.bets, alpha), self.certificate.upper
            return (max(lower, bound) if stays else lower) - bound
        upper, bound = memory.mean_upper(self.bets, alpha), self.certificate.lower
        return (min(upper, bound) if stays else upper) - bound

    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "evidence": "certificate",
            "reached": [*self.reached, self.no_worse],
            "wealth": wealth_state(self._wealth),
            "memory": memory_state(self._memory),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        *self.reached, self.no_worse = saving.flags(state, "reached", 3)
        restore_wealth(self._wealth, saving.table(state, "wealth"))
        self._memory = memory_from(state)


def wealth_state(wealth: Wealth) -> dict[str, Any]:
    """Return the capitals of one stream as plain JSON values."""
    return {
        "n": wealth.n,
        "log": saving.pack(wealth.log),
        "best": saving.pack(wealth.best),
        "logs": saving.pack(wealth.logs.tolist()),
        "product": saving.pack(wealth.product.tolist()),
    }


def restore_wealth(wealth: Wealth, state: Mapping[str, Any]) -> None:
    """Continue with the capitals that `wealth_state` described."""
    wealth.n = saving.count(state, "n") or 0
    wealth.log = saving.unpack(state, "log", len(wealth.log)).tolist()
    wealth.best = saving.unpack(state, "best", len(wealth.best)).tolist()
    size = wealth.logs.size
    wealth.restore(saving.unpack(state, "logs", size), saving.unpack(state, "product", size))


def memory_state(memory: CostGrid) -> dict[str, float]:
    """Return the costs on their grid as plain JSON values."""
    return {str(i): value for i, value in enumerate(memory.weights) if value}


def memory_from(state: Mapping[str, Any]) -> CostGrid:
    """Return the costs that `memory_state` described."""
    content, memory = saving.table(state, "memory"), CostGrid()
    for key in content:
        if not (isinstance(key, str) and key.isdecimal() and int(key) <= STEPS):
            raise SchemaMismatch(f"state['memory'] has the unknown key {key!r}; the state is damaged")
        memory.weights[int(key)] = saving.number(content, key)
    return memory
