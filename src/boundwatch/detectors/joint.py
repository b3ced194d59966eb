"""Joint evidence: the new costs weighed together with those of the certificate, not against its limits.

A held-out certificate keeps what its costs were. Spending the error rate once, over the draw of both, needs
far fewer new episodes than paying for the certificate's limits first. Costs of 0 and 1 alarm at the exact
line of `boundwatch.bounds.joint_region`, others when the e-value of `boundwatch.bounds.joint_evidence`
reaches one over the level.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Bets, Wealth, clamp_bound, log_sum
from boundwatch.bounds.betting_limits import fixed_bets
from boundwatch.bounds.cost_grid import CostGrid, grid_points
from boundwatch.bounds.joint_evidence import (
    EvidenceTable,
    Reference,
    Wager,
    joint_difference_lower,
    joint_log_evidence,
)
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS, SMALLEST_TOTAL, alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import CostRecord
from boundwatch.detectors import saving
from boundwatch.detectors.evidence import (
    CertifiedEvidence,
    Evidence,
    Pair,
    memory_from,
    memory_state,
    restore_wealth,
    wealth_state,
)

Array = NDArray[np.float64]
_ENDS = np.array([0.0, 1.0])
# The bounded e-value is a minimum over all means; it is computed when it is high enough at one of them, where
# the reference has gathered this share of the evidence that is needed.
_SENTINEL_SHARE = 0.3
MOST_REFERENCE_COSTS = 5000


def evidence_for(certificate: Certificate, alphas: Pair, margin: float | None, sharing: int = 1) -> Evidence:
    """Return joint evidence where the certificate allows it, else evidence against its limits."""
    if not is_joint(certificate, alphas, sharing):
        return CertifiedEvidence(certificate, alphas, margin)
    kind = JointCounts if certificate.binary else JointCosts
    return kind(certificate, _joint_levels(certificate, alphas, sharing), margin)


def _joint_levels(certificate: Certificate, alphas: Pair, sharing: int) -> Pair:
    """Return what each of the streams that share a certificate may spend: of its delta an equal part.

    Against the limits they all fail together, so delta is spent once. Judged jointly each stream fails by
    itself, and spends what it may.
    """
    return alphas[0] + certificate.delta_upper / sharing, alphas[1] + certificate.delta_lower / sharing


def is_joint(certificate: Certificate, alphas: Pair, sharing: int = 1) -> bool:
    """Return whether new costs are judged jointly with the certificate's, so that no delta comes on top.

    That takes totals below 1 and, for the exact lines of costs of 0 and 1, of at least a millionth.
    `sharing` is the number of streams between which the certificate's delta is divided.

    Examples
    --------
    >>> is_joint(Certificate.from_held_out([0, 0, 1], binary=True), (0.04, 0.04))
    True
    >>> is_joint(Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01), (0.04, 0.04))
    False
    """
    levels = _joint_levels(certificate, alphas, sharing)
    smallest = SMALLEST_TOTAL if certificate.binary else 0.0
    return reference_of(certificate) is not None and smallest <= min(levels) and max(levels) < 1


def reference_of(certificate: Certificate) -> CostRecord | None:
    """Return the costs behind a certificate, or None if it cannot be judged jointly with new ones.

    That takes a fixed number of held-out episodes and a record of their costs, and not so many that the
    certificate's limits say as much.

    Examples
    --------
    >>> reference_of(Certificate.from_held_out([0, 0, 1], binary=True))
    CostRecord(values=(0, 1), weights=(2, 1))
    >>> reference_of(Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)) is None
    True
    """
    if certificate.source != "held-out" or certificate.method == "anytime":
        return None
    n, mean = certificate.n, certificate.mean_cost
    most = MOST_REFERENCE_TRIALS if certificate.binary else MOST_REFERENCE_COSTS
    if n is None or mean is None or n > most:
        return None
    if not certificate.binary:
        return certificate.record
    return CostRecord.of_failures(n, round(n * mean))


@dataclass(frozen=True)
class JointSide:
    """One hypothesis: the stream's expected cost exceeds the reference's by at most a margin.

    Attributes
    ----------
    reference, stream
        What the reference says about its mean; and the bets on the stream, not placed yet.
    mirrored
        Whether both are on 1 - cost, so that low costs in the stream are evidence.
    margin
        What the hypothesis allows, of what is bet on.
    level
        What may be spent on a wrong rejection, over the joint draw.
    """

    reference: Reference
    stream: Wager
    mirrored: bool
    margin: float
    level: float

    @property
    def target(self) -> float:
        """The log e-value that rejects the hypothesis."""
        return math.log(1 / self.level)

    def log_e_value(self, points: Array, weights: Array, *, enough: float = -math.inf) -> float:
        """Return the log e-value after costs at some points; one below `enough` may be given too high."""
        return joint_log_evidence(self.reference, self._placed(points, weights), self.margin, enough=enough)

    def table(self, points: Array) -> EvidenceTable:
        """Return what gives the log e-values of many streams, with costs at all of some points."""
        return EvidenceTable(self.reference, self._placed(points, np.ones(points.size)), self.margin)

    def difference_lower(self, points: Array, weights: Array) -> float:
        """Return a lower limit on the difference, at all times at once."""
        return joint_difference_lower(self.reference, self._placed(points, weights), self.level)

    def sentinel(self) -> tuple[float, float]:
        """Return a mean at which to follow the stream's wealth, and the reference's log e-value there."""
        mean = self.reference.at(_SENTINEL_SHARE * self.target)
        log = np.interp(mean, self.reference.means, self.reference.logs)
        return clamp_bound(mean + self.margin), float(log)

    def _placed(self, points: Array, weights: Array) -> Wager:
        return self.stream.on(1 - points if self.mirrored else points, weights)


@lru_cache(maxsize=64)  # 0.1 s, and the streams of a fleet share a certificate
def _references(record: CostRecord) -> tuple[Reference, Reference]:
    """Return what a reference says about its mean, from below and from above."""
    values, weights = record.arrays()
    sizes, log_shares = fixed_bets(record.n)
    kept, nothing = _kept(record.n), np.empty(0)
    if kept > 0:
        sizes = np.append(0.0, sizes)
        log_shares = np.append(math.log(kept), log_shares + math.log1p(-kept))
    placed = Wager(sizes, log_shares, nothing, nothing)
    return Reference.of(placed.on(1 - values, weights)), Reference.of(placed.on(values, weights))


def _kept(n: int) -> float:
    """Return the share of the capital that is not bet on a reference of n costs.

    Near the reference's own mean every bet loses, and the more the longer it is; the wealth never falls below
    what is kept. A short reference needs the capital for its bets, a long one is nearly a known mean. Chosen
    on pairs of worlds that no published number is about, by how many trials are saved against the limits, in
    the geometric mean: 69 % with nothing kept and 67 % with a fifth at 50 costs; 54, 56 and 55 % with
    nothing, a fifth and a half at 200; -5 and 18 % with nothing and a half at 1,000; -47 and 10 % with
    nothing and 85 % at 4,000.
    """
    return max(n - 50, 0) / (n + 750)


def sides_of(certificate: Certificate, levels: Pair, margin: float | None) -> list[JointSide]:
    """Return the hypotheses "did not rise", "did rise" and, with a margin, "rose by more than it"."""
    record = reference_of(certificate)
    assert record is not None  # noqa: S101  (asked before, where joint evidence was chosen)
    bets = Bets.for_costs(binary=certificate.binary)
    nothing = np.empty(0)
    stream = Wager(bets.sizes, np.log(bets.shares), nothing, nothing)
    low, high = _references(record)
    sides = [
        JointSide(low, stream, mirrored=False, margin=0.0, level=levels[0]),
        JointSide(high, stream, mirrored=True, margin=0.0, level=levels[1]),
    ]
    if margin is not None:
        sides.append(JointSide(high, stream, mirrored=True, margin=-margin, level=levels[1]))
    return sides


def joint_p_value(log_e_value: float, level: float, *, reached: bool) -> float:
    """Return a p-value from an e-value and an alarm that is rarer than `level` but does not follow from it.

    A p-value of a or less means an e-value of 1/a or more if a is below the level, else an alarm
    or an e-value of 1/(a - level): under the hypothesis either has a probability of at most a.

    Examples
    --------
    >>> round(joint_p_value(math.log(100), 0.05, reached=True), 6)
    0.01
    >>> round(joint_p_value(math.log(4), 0.05, reached=False), 6)
    0.3
    """
    inverse = math.exp(-max(log_e_value, 0.0))
    return min(level, inverse) if reached else min(level + inverse, 1.0)


def cost_p_value(log_e_value: float, level: float, *, reached: bool) -> float:
    """Return 1 over an e-value, or the level once an e-value has reached it.

    Examples
    --------
    >>> round(cost_p_value(math.log(4), 0.05, reached=False), 6), cost_p_value(0.0, 0.05, reached=True)
    (0.25, 0.05)
    """
    return min(math.exp(-max(log_e_value, 0.0)), level if reached else 1.0)


class JointCounts(Evidence):
    """Costs of 0 and 1: a side is reached when the failures, or the successes, cross an exact line."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        self.levels = levels
        self.sides = sides_of(certificate, levels, margin)
        self._reference = reference_of(certificate)
        if margin is not None:
            side = self.sides[2]
            rate, log = side.sentinel()
            zero, one = Bets.for_costs(binary=True).log_factors(rate)
            self._watched = side.stream.log_shares + log, zero, one, max(float(one.max()), 1e-9)
        self.reset()

    @property
    def thresholds(self) -> None:
        """None: what reaches a side is a number of failures."""
        return

    def reset(self) -> None:
        """Forget everything."""
        self.reached, self.no_worse = [False, False], False
        self._n, self._failures = 0, 0
        self._lines: list[tuple[int, ...]] = [(), ()]
        self._reach = 0
        self._idle = 0  # for so many episodes nothing can show "no worse"

    def step(self, cost: float) -> None:
        """Count one more episode."""
        n = self._n = self._n + 1
        if cost:
            self._failures += 1
        if n >= self._reach:
            self._lines = self._extended(n)
            self._reach = min(map(len, self._lines))  # a line that others share may be longer
        adverse, benign = self._lines
        if self._failures >= adverse[n]:
            self.reached[0] = True
        if n - self._failures >= benign[n]:
            self.reached[1] = True
        if len(self.sides) == 3 and not self.no_worse:
            self.no_worse = self._shows_no_worse()

    def snapshot(self) -> tuple[int, int, list[bool]]:
        """Return episodes, failures and what has been reached."""
        return self._n, self._failures, self.reached[:]

    def log_e_value(self, side: int, snapshot: tuple[int, int, list[bool]]) -> float:
        """Return the log e-value of one side over the joint draw."""
        return self.sides[side].log_e_value(_ENDS, _counts(*snapshot[:2]))

    def p_value(self, side: int, snapshot: tuple[int, int, list[bool]]) -> float:
        """Return a p-value over the joint draw."""
        log = self.log_e_value(side, snapshot)
        return joint_p_value(log, self.levels[side], reached=snapshot[2][side])

    def shift_limit(self, side: int, snapshot: tuple[int, int, list[bool]]) -> float:
        """Return a limit on the new less the old rate, over the joint draw and for all times at once."""
        limit = self.sides[side].difference_lower(_ENDS, _counts(*snapshot[:2]))
        return -limit if side else limit

    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "evidence": "joint counts",
            "reached": [*self.reached, self.no_worse],
            "counted": self._n,
            "failures": self._failures,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        *self.reached, self.no_worse = saving.flags(state, "reached", 3)
        self._n, self._failures = saving.count(state, "counted") or 0, saving.count(state, "failures") or 0

    def _extended(self, trials: int) -> list[tuple[int, ...]]:
        assert self._reference is not None  # noqa: S101
        n, failures = self._reference.n, round(self._reference.mean * self._reference.n)
        return [
            alarm_line(n, failures, self.levels[0]).listed(trials),
            alarm_line(n, n - failures, self.levels[1]).listed(trials),
        ]

    def _shows_no_worse(self) -> bool:
        if self._idle > 0:
            self._idle -= 1
            return False
        side, (logs, zero, one, most) = self.sides[2], self._watched
        successes = self._n - self._failures
        short = side.target - log_sum(logs + self._failures * zero + successes * one)
        if short > 0:
            # No episode adds more than `most`. One is left for what rounding may do.
            self._idle = int(short / most) - 1
            return False
        return side.log_e_value(_ENDS, _counts(self._n, self._failures)) >= side.target


class JointCosts(Evidence):
    """Costs in [0, 1]: a side is reached when its joint e-value is at least one over the level."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        self.levels = levels
        self.sides = sides_of(certificate, levels, margin)
        self._bets = Bets.for_costs(binary=False)
        self._bounds, self._logs = zip(*[side.sentinel() for side in self.sides], strict=True)
        self.reset()

    @property
    def thresholds(self) -> Pair:
        """One over the levels."""
        return 1 / self.levels[0], 1 / self.levels[1]

    def reset(self) -> None:
        """Forget everything."""
        self.reached, self.no_worse = [False, False], False
        self._wealth = Wealth(self._bets, *self._bounds)
        self._memory = CostGrid()
        # How high the evidence at the sentinel must be before the minimum is computed (again).
        self._due = [side.target for side in self.sides]

    def step(self, cost: float) -> None:
        """Weigh one more cost."""
        self._wealth.step(cost)
        self._memory.add(cost)
        for row, log in enumerate(self._wealth.log):
            if log + self._logs[row] >= self._due[row]:
                self._look(row, log + self._logs[row])

    def snapshot(self) -> tuple[array[float], list[bool]]:
        """Return the costs and what has been reached."""
        return self._memory.weights[:], self.reached[:]

    def log_e_value(self, side: int, snapshot: tuple[array[float], list[bool]]) -> float:
        """Return the log e-value of one side over the joint draw."""
        return self.sides[side].log_e_value(grid_points(), np.array(snapshot[0]))

    def p_value(self, side: int, snapshot: tuple[array[float], list[bool]]) -> float:
        """Return 1 over the e-value, or the level once it was reached."""
        log = self.log_e_value(side, snapshot)
        return cost_p_value(log, self.levels[side], reached=snapshot[1][side])

    def shift_limit(self, side: int, snapshot: tuple[array[float], list[bool]]) -> float:
        """Return a limit on the new less the old mean, over the joint draw and for all times at once."""
        limit = self.sides[side].difference_lower(grid_points(), np.array(snapshot[0]))
        # A side is reached when the evidence of its limit refutes a shift of zero: it stays refuted.
        stays = snapshot[1][side]
        if side == 0:
            return max(limit, 0.0) if stays else limit
        return min(-limit, 0.0) if stays else -limit

    def state(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "evidence": "joint costs",
            "reached": [*self.reached, self.no_worse],
            "due": saving.pack(self._due),
            "wealth": wealth_state(self._wealth),
            "memory": memory_state(self._memory),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        *self.reached, self.no_worse = saving.flags(state, "reached", 3)
        self._due = saving.unpack(state, "due", len(self.sides)).tolist()
        restore_wealth(self._wealth, saving.table(state, "wealth"))
        self._memory = memory_from(state)

    def _look(self, row: int, low: float) -> None:
        side = self.sides[row]
        found = side.log_e_value(grid_points(), np.array(self._memory.weights), enough=side.target)
        if found < side.target:
            self._due[row] = low + max((side.target - found) / 2, 0.05)
            return
        self._due[row] = sys.float_info.max  # JSON has no infinity
        if row < 2:
            self.reached[row] = True
        else:
            self.no_worse = True


def _counts(n: int, failures: int) -> Array:
    return np.array([n - failures, failures], dtype=np.float64)
