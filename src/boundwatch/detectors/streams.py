"""The evidence of many streams at once, as `evidence` and `joint` weigh that of one: rows of tables.

`Fleet` keeps names, counts and verdicts; a `Streams` says which sides the latest costs reached and what
e-values and p-values to report. `streams_for` chooses the kind.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import Array, Bets, clamp_bound, log_sums
from boundwatch.bounds.cost_grid import STEPS, grid_points
from boundwatch.bounds.joint_evidence import EvidenceTable, joint_log_evidence_many
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.bounds.wealth_table import WealthTable
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.evidence import Pair, marks_of
from boundwatch.detectors.joint import cost_p_value, is_joint, joint_p_value, reference_of, sides_of

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]


def streams_for(certificate: Certificate, alphas: Pair, margin: float | None) -> Streams:
    """Return joint evidence where the certificate allows it, else evidence against its limits."""
    if not is_joint(certificate, alphas):
        return CertifiedStreams(certificate, alphas, margin)
    levels = alphas[0] + certificate.delta_upper, alphas[1] + certificate.delta_lower
    return (CountStreams if certificate.binary else CostStreams)(certificate, levels, margin)


class Streams(ABC):
    """Tables with one row per stream. The third side, with a margin, is "no worse by more than it"."""

    @property
    @abstractmethod
    def tables(self) -> dict[str, Array]:
        """All that is kept of the streams, one row each."""

    @abstractmethod
    def clear(self, rows: slice) -> None:
        """Forget the costs of some streams."""

    @abstractmethod
    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""

    @abstractmethod
    def step(self, rows: Rows, costs: Array, n: Array, totals: Array) -> Flags:
        """Weigh one cost for each of some different streams; return which sides each has reached just now.

        n and totals are those of the rows, this cost included.
        """

    @abstractmethod
    def log_e_values(
        self, side: int, rows: Rows, n: Array, totals: Array, at_least: float = -math.inf
    ) -> Array:
        """Return the log e-values of some streams; n and totals are theirs.

        Those that are sure to be below `at_least` may be given as minus infinity.
        """

    @abstractmethod
    def p_values(self, row: int, logs: Pair, reached: tuple[bool, bool]) -> Pair:
        """Return the p-values of one stream."""


class _Betting(Streams):
    """What is common to the kinds that bet: a table of capitals."""

    def __init__(self, bets: Bets, bounds: Sequence[float]) -> None:
        self._wealth = WealthTable(bets, *bounds, size=16)

    @property
    def tables(self) -> dict[str, Array]:
        """The capitals, and what follows from them."""
        table = self._wealth
        return {"wealth": table.book, "anchors": table.anchors, "capitals": table.capitals}

    def clear(self, rows: slice) -> None:
        """Forget the costs of some streams."""
        self._wealth.clear(rows)

    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""
        self._wealth.grow(size)


class CertifiedStreams(_Betting):
    """New costs against the certificate's limits, as in `CertifiedEvidence`."""

    def __init__(self, certificate: Certificate, alphas: Pair, margin: float | None) -> None:
        bounds, self.marks = marks_of(certificate, alphas, margin)
        self._lowest = np.array([mark.lowest for mark in self.marks])
        super().__init__(Bets.for_costs(binary=certificate.binary), bounds)

    def step(self, rows: Rows, costs: Array, n: Array, totals: Array) -> Flags:  # noqa: ARG002
        """Weigh one cost for each of some different streams."""
        wealth = self._wealth.step(rows, costs)
        reached: Flags = wealth >= self._lowest
        if reached.any():
            reached &= wealth >= self._log_thresholds
        return reached

    def log_e_values(
        self, side: int, rows: Rows, n: Array, totals: Array, at_least: float = -math.inf
    ) -> Array:
        """Return the log e-values while the certificate's limit of the side holds."""
        del n, totals, at_least  # all is in the tables
        logs: Array = self._wealth.log[rows, side]
        return logs

    def p_values(self, row: int, logs: Pair, reached: tuple[bool, bool]) -> Pair:  # noqa: ARG002
        """Return 1 over the largest e-values so far."""
        adverse, benign = self._wealth.best[row, :2].tolist()
        return self.marks[0].p_value(adverse), self.marks[1].p_value(benign)

    @cached_property
    def _log_thresholds(self) -> Array:
        return np.log([mark.threshold for mark in self.marks])


class CountStreams(Streams):
    """Costs of 0 and 1 against exact lines, as in `JointCounts`: the counts say everything."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        self.levels = levels
        self.sides = sides_of(certificate, levels, margin)
        self._bets = Bets.for_costs(binary=True)
        record = reference_of(certificate)
        assert record is not None  # noqa: S101  (asked by `streams_for`)
        self._n, self._failures = record.n, round(record.mean * record.n)
        self._needed = np.empty((2, 0), dtype=np.int64)

    @property
    def tables(self) -> dict[str, Array]:
        """None: the counts of a fleet say everything."""
        return {}

    def clear(self, rows: slice) -> None:
        """Do nothing."""

    def grow(self, size: int) -> None:
        """Do nothing."""

    def step(self, rows: Rows, costs: Array, n: Array, totals: Array) -> Flags:  # noqa: ARG002
        """Compare the counts of some different streams with the lines."""
        counts = n.astype(np.int64)
        if (most := int(counts.max())) >= self._needed.shape[1]:
            self._needed = self._extended(most)
        reached = np.empty((rows.size, len(self.sides)), dtype=np.bool_)
        reached[:, 0] = totals >= self._needed[0].take(counts)
        reached[:, 1] = n - totals >= self._needed[1].take(counts)
        if len(self.sides) == 3:
            reached[:, 2] = self._shows_no_worse(n, totals)
        return reached

    def log_e_values(
        self, side: int, rows: Rows, n: Array, totals: Array, at_least: float = -math.inf
    ) -> Array:
        """Return the log e-values over the joint draw; those below `at_least` at one mean need no minimum."""
        del rows  # the counts say everything
        evidence = np.full(n.size, -math.inf)
        likely = np.flatnonzero(self._at_one_mean(side, n, totals) >= at_least)
        evidence[likely] = self._log_e_values(side, n[likely], totals[likely])
        return evidence

    def p_values(self, row: int, logs: Pair, reached: tuple[bool, bool]) -> Pair:  # noqa: ARG002
        """Return the p-values over the joint draw."""
        adverse, benign = (
            joint_p_value(log, level, reached=flag)
            for log, level, flag in zip(logs, self.levels, reached, strict=True)
        )
        return adverse, benign

    def _shows_no_worse(self, n: Array, totals: Array) -> Flags:
        target = self.sides[2].target
        shown: Flags = self._at_one_mean(2, n, totals) >= target
        likely = np.flatnonzero(shown)
        shown[likely] = self._log_e_values(2, n[likely], totals[likely]) >= target
        return shown

    def _at_one_mean(self, side: int, n: Array, totals: Array) -> Array:
        """Return the log evidence at the sentinel's mean; the e-value is the smallest of all means."""
        chosen, (zero, one, log) = self.sides[side], self._sentinels[side]
        hits = n - totals if chosen.mirrored else totals
        capitals = chosen.stream.log_shares + np.outer(n - hits, zero) + np.outer(hits, one)
        return log_sums(capitals) + log

    @cached_property
    def _sentinels(self) -> list[tuple[Array, Array, float]]:
        found = [side.sentinel() for side in self.sides]
        return [(*self._bets.log_factors(rate), log) for rate, log in found]

    def _log_e_values(self, side: int, n: Array, totals: Array) -> Array:
        """Compute each pair of counts that occurs once."""
        if not n.size:
            return np.empty(0)
        chosen = self.sides[side]
        pairs, where = np.unique(np.column_stack([n, totals]), axis=0, return_inverse=True)
        hits = pairs[:, 0] - pairs[:, 1] if chosen.mirrored else pairs[:, 1]
        misses = pairs[:, 0] - hits

        def log_wealth(means: Array, streams: Rows) -> Array:
            different, which = np.unique(means, return_inverse=True)
            factors = [self._bets.log_factors(clamp_bound(mean)) for mean in different.tolist()]
            zero, one = (np.array(side)[which] for side in zip(*factors, strict=True))
            return log_sums(
                chosen.stream.log_shares + misses[streams, None] * zero + hits[streams, None] * one
            )

        evidence = joint_log_evidence_many(chosen.reference, log_wealth, hits.size, chosen.margin)
        return evidence[where.ravel()]

    def _extended(self, trials: int) -> NDArray[np.int64]:
        adverse = alarm_line(self._n, self._failures, self.levels[0]).needed(trials)
        benign = alarm_line(self._n, self._n - self._failures, self.levels[1]).needed(trials)
        size = min(adverse.size, benign.size)
        return np.stack([adverse[:size], benign[:size]])


class CostStreams(_Betting):
    """Costs in [0, 1] and their joint e-value, as in `JointCosts`."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        self.levels = levels
        self.sides = sides_of(certificate, levels, margin)
        bounds, logs = zip(*[side.sentinel() for side in self.sides], strict=True)
        self._logs = np.array(logs)
        super().__init__(Bets.for_costs(binary=False), bounds)
        self._due = np.empty((0, len(self.sides)))
        self._memory = np.empty((0, STEPS + 1))
        self.grow(16)

    @property
    def tables(self) -> dict[str, Array]:
        """The capitals, the costs, and when to compute the evidence."""
        return super().tables | {"due": self._due, "memory": self._memory}

    def clear(self, rows: slice) -> None:
        """Forget the costs of some streams."""
        super().clear(rows)
        self._due[rows] = [side.target for side in self.sides]
        self._memory[rows] = 0.0

    def grow(self, size: int) -> None:
        """Make room for so many streams in all."""
        super().grow(size)
        used = self._due.shape[0]
        self._due = np.append(self._due, np.empty((size - used, self._due.shape[1])), axis=0)
        self._memory = np.append(self._memory, np.empty((size - used, STEPS + 1)), axis=0)
        self._due[used:] = [side.target for side in self.sides]
        self._memory[used:] = 0.0

    def step(self, rows: Rows, costs: Array, n: Array, totals: Array) -> Flags:  # noqa: ARG002
        """Weigh one cost for each of some different streams."""
        low = self._wealth.step(rows, costs) + self._logs
        self._remember(rows, costs)
        reached = np.zeros(low.shape, dtype=np.bool_)
        for index, side in zip(*np.nonzero(low >= self._due.take(rows, axis=0)), strict=True):
            reached[index, side] = self._look(int(rows[index]), int(side), float(low[index, side]))
        return reached

    def log_e_values(
        self, side: int, rows: Rows, n: Array, totals: Array, at_least: float = -math.inf
    ) -> Array:
        """Return the log e-values over the joint draw; those below `at_least` at one mean need no minimum."""
        del n, totals  # all is in the tables
        low = self._wealth.log[rows, side] + self._logs[side]
        evidence = np.full(rows.size, -math.inf)
        for place in np.flatnonzero(low >= at_least).tolist():
            evidence[place] = self._evidence_tables[side].log_evidence(self._memory[rows[place]])
        return evidence

    def p_values(self, row: int, logs: Pair, reached: tuple[bool, bool]) -> Pair:  # noqa: ARG002
        """Return 1 over the e-values, or the level once it was reached."""
        adverse, benign = (
            cost_p_value(log, level, reached=flag)
            for log, level, flag in zip(logs, self.levels, reached, strict=True)
        )
        return adverse, benign

    @cached_property
    def _evidence_tables(self) -> list[EvidenceTable]:
        return [side.table(grid_points()) for side in self.sides]

    def _look(self, row: int, side: int, low: float) -> bool:
        target = self.sides[side].target
        found = self._evidence_tables[side].log_evidence(self._memory[row], enough=target)
        if found < target:
            self._due[row, side] = low + max((target - found) / 2, 0.05)
            return False
        self._due[row, side] = sys.float_info.max  # JSON has no infinity
        return True

    def _remember(self, rows: Rows, costs: Array) -> None:
        place = costs * STEPS
        index = place.astype(np.int64)
        beyond = place - index
        flat = self._memory.reshape(-1)  # one index is much quicker than two
        index += rows * (STEPS + 1)
        flat[index] += 1.0 - beyond
        # A cost of 1 has nothing beyond it, and so adds nothing to where the next row begins.
        flat[np.minimum(index + 1, flat.size - 1)] += beyond
