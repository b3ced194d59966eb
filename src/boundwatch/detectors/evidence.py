"""What anytime-valid tests weigh: new costs against a certificate's limits, or jointly with its costs.

An `Evidence` has a row per stream and says which sides its costs have reached (ADVERSE, BENIGN and, with a
margin, "no worse by more than it"), and what e-values, p-values and limits to report. There is one for each
kind of cost, and `evidence_for` chooses it.
"""

from __future__ import annotations

import copy
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import (
    STEPS,
    Array,
    Bets,
    Counts,
    Rows,
    Wealth,
    Where,
    add_costs,
    bet_bounds,
    clamp_bound,
    grid_points,
    largest_refuted,
    log_sums,
    numbers,
)
from boundwatch.bounds.joint_evidence import JointSide
from boundwatch.bounds.joint_region import AlarmLine, alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import saving
from boundwatch.detectors.joint import (
    Pair,
    cost_p_value,
    counts_of,
    is_joint,
    joint_levels,
    joint_p_value,
    sides_of,
)
from boundwatch.detectors.mixture import Mark
from boundwatch.detectors.verdicts import Finding

Flags = NDArray[np.bool_]
Row = Mapping[str, NDArray[Any]]
"""What is known of one stream, or of several, by the names of the arrays."""
_AT_ONCE = 1000
"""Findings whose e-values are computed together: the costs of more would fill the memory."""
_ENDS = np.array([0.0, 1.0])
_NEVER = 1 << 53


def evidence_for(certificate: Certificate, alphas: Pair, margin: float | None, sharing: int = 1) -> Evidence:
    """Return joint evidence where the certificate allows it, else evidence against its limits."""
    if not is_joint(certificate, alphas, sharing):
        return CertifiedEvidence(certificate, alphas, margin)
    kind = JointCounts if certificate.binary else JointCosts
    return kind(certificate, joint_levels(certificate, alphas, sharing), margin)


class Evidence(ABC):
    """The evidence of streams, a row each."""

    tail = "joint"
    """``"joint"`` if new costs are judged together with the certificate's, so that no delta comes on top."""
    _wealth: Wealth
    """Of those that bet against a bound."""

    def __init__(self, *, binary: bool, sides: int, **first: NDArray[Any]) -> None:
        self.binary = binary
        common: dict[str, NDArray[Any]] = {
            "n": np.array(0, dtype=np.int64),
            "total": np.array(0.0),
            "reached": np.zeros(sides, dtype=np.bool_),
        }
        if not binary:  # else two counts tell all costs
            common["grid"] = np.zeros(STEPS + 1)
        self._read = tuple(common)
        self.rows = Rows(common | first, size=1)

    @cached_property
    def held(self) -> WeakValueDictionary[int, EvidenceFinding]:
        """Findings whose e-values are not known yet: it is ten times as quick to compute them at once."""
        return WeakValueDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "held"}  # a copy begins alone

    @property
    def thresholds(self) -> Pair | None:
        """The e-values that reach ADVERSE and BENIGN; None if something else does."""
        return None

    def count(self, where: Where, costs: Array) -> Flags:
        """Count one cost for each of some different streams; return which sides each has ever reached."""
        rows = self.rows
        n, total = rows["n"][where] + 1, rows["total"][where] + costs
        rows["n"][where], rows["total"][where] = n, total
        if not self.binary:
            add_costs(rows["grid"], where, costs)
        reached: Flags = rows["reached"][where] | self._reached(where, costs, n, total)
        rows["reached"][where] = reached
        return reached

    def row(self, where: int | Where) -> Row:
        """Return what is known of one stream now, or of several, whatever costs come later."""
        return {name: self.rows[name][where].copy() for name in self._read}

    def highest(self, side: int, streams: int) -> Array:  # noqa: ARG002
        """Return what the log e-values of the first streams do not exceed, where that is quick to compute."""
        return np.full(streams, math.inf)

    def copy(self) -> Self:
        """Return the same evidence to go on with, apart from this."""
        other = copy.copy(self)
        other.rows = copy.deepcopy(self.rows)
        return other

    def state(self, streams: int) -> dict[str, Any]:
        """Return what is known of the first streams as plain JSON values."""
        return saving.pack_rows(self.rows, streams)

    def restore(self, state: Mapping[str, Any], streams: int) -> None:
        """Continue where a state of so many streams was taken."""
        saving.unpack_rows(self.rows, state, streams)
        if "tops" in self.rows:
            self._wealth.rescale(self.rows, slice(streams))

    @abstractmethod
    def log_e_values(self, side: int, rows: Row) -> Array:
        """Return the log e-values of one side, of several streams."""

    @abstractmethod
    def p_value(self, side: int, row: Row, log: float) -> float:
        """Return the p-value of one side, given its log e-value."""

    @abstractmethod
    def shift_limit(self, side: int, row: Row) -> float:
        """Return a limit on the shift: the lower one for ADVERSE, the upper one for BENIGN."""

    @abstractmethod
    def _reached(self, where: Where, costs: Array, n: Counts, total: Array) -> Flags:
        """Weigh costs; return which sides they reach now, given the streams' new numbers and sums."""

    def _costs(self, row: Row) -> tuple[Array, Array]:
        """Return the costs of a stream, or of several, as points, and how many there are at each."""
        if not self.binary:
            return grid_points(), row["grid"]
        return _ENDS, np.stack([row["n"] - row["total"], row["total"]], axis=-1)


class CertifiedEvidence(Evidence):
    """New costs against the certificate's limits; its delta comes on top."""

    tail = "mixture"

    def __init__(self, certificate: Certificate, alphas: Pair, margin: float | None) -> None:
        self.certificate, self.alphas = certificate, alphas
        self.bets = Bets.for_costs(binary=certificate.binary)
        bounds, levels = [*bet_bounds(certificate.lower, certificate.upper)], [*alphas]
        if margin is not None:  # a third bet: on 1 - cost, against more than the lower limit plus the margin
            bounds.append(clamp_bound(1 - certificate.lower - margin))
            levels.append(alphas[1])
        self.marks = [Mark(*each, certificate.binary) for each in zip(bounds, levels, strict=True)]
        self._lowest = np.array([mark.lowest for mark in self.marks])
        self._wealth = Wealth(self.bets, *bounds)
        super().__init__(binary=certificate.binary, sides=len(self.marks), **self._wealth.first)
        self._read += "log", "best"

    @property
    def thresholds(self) -> Pair:
        """1/alpha, or the exact thresholds for binary costs."""
        return self.marks[0].threshold, self.marks[1].threshold

    def log_e_values(self, side: int, rows: Row) -> Array:
        """Return the log e-values while the certificate's limit of the side holds."""
        return np.asarray(rows["log"][:, side])

    def p_value(self, side: int, row: Row, log: float) -> float:  # noqa: ARG002
        """Return 1 over the largest e-value so far."""
        return self.marks[side].p_value(float(row["best"][side]))

    def shift_limit(self, side: int, row: Row) -> float:
        """Return the limit on the new mean less the certified limit."""
        alpha, (points, weights) = self.alphas[side], self._costs(row)
        # Once the wealth against a certified bound has reached 1/alpha, every mean up to it stays refuted.
        stays = row["best"][side] >= math.log(1 / alpha)
        if side == 0:
            lower, bound = largest_refuted(self.bets, points, weights, alpha), self.certificate.upper
            return (max(lower, bound) if stays else lower) - bound
        upper, bound = 1 - largest_refuted(self.bets, 1 - points, weights, alpha), self.certificate.lower
        return (min(upper, bound) if stays else upper) - bound

    def _reached(self, where: Where, costs: Array, n: Counts, total: Array) -> Flags:  # noqa: ARG002
        log = self._wealth.step(self.rows, where, costs, n)
        reached: Flags = log >= self._lowest
        if reached.any():  # near enough to need the exact threshold, which takes a while
            for side in np.flatnonzero(reached.any(axis=0)).tolist():
                reached[:, side] = log[:, side] >= math.log(self.marks[side].threshold)
        return reached


class _JointEvidence(Evidence):
    """New costs together with those of the certificate: levels are totals over the draw of both."""

    def __init__(self, sides: list[JointSide], levels: Pair, *, binary: bool, **first: NDArray[Any]) -> None:
        self.sides, self.levels = sides, levels
        super().__init__(binary=binary, sides=len(sides), **first)

    def log_e_values(self, side: int, rows: Row) -> Array:
        """Return the log e-values of one side over the joint draw."""
        return self.sides[side].log_e_values(*self._costs(rows))

    def shift_limit(self, side: int, row: Row) -> float:
        """Return a limit on the new less the old mean, over the joint draw and for all times at once."""
        limit = self.sides[side].difference_lower(*self._costs(row))
        return -limit if side else limit


class JointCounts(_JointEvidence):
    """Costs of 0 and 1: a side is reached when the failures, or the successes, cross an exact line."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        self._references = counts_of(certificate, 0), counts_of(certificate, 1)
        first = {} if margin is None else {"due": np.array(0, dtype=np.int64)}
        super().__init__(sides_of(certificate, levels, margin), levels, binary=True, **first)

    def log_e_values(self, side: int, rows: Row) -> Array:
        """Return the log e-values of one side over the joint draw, each pair of counts computed once."""
        counts = np.stack([rows["n"], rows["total"]], axis=1)
        different, which = np.unique(counts, axis=0, return_inverse=True)
        once = {"n": different[:, 0], "total": different[:, 1]}
        return super().log_e_values(side, once)[which.ravel()]

    def p_value(self, side: int, row: Row, log: float) -> float:
        """Return a p-value over the joint draw."""
        return joint_p_value(log, self.levels[side], reached=bool(row["reached"][side]))

    def _reached(self, where: Where, costs: Array, n: Counts, total: Array) -> Flags:  # noqa: ARG002
        most, reached = int(n.max()), np.zeros((n.size, len(self.sides)), dtype=np.bool_)
        for side, (line, failures) in enumerate(zip(self._lines, (total, n - total), strict=True)):
            reached[:, side] = failures >= line.needed(most).take(n)
        if len(self.sides) == 3:
            reached[:, 2] = self._shows_no_worse(where, n, total)
        return reached

    def _shows_no_worse(self, where: Where, n: Counts, total: Array) -> Flags:
        side, (logs, zero, one, most) = self.sides[2], self._sentinel
        due, shown = self.rows["due"][where], np.zeros(n.size, dtype=np.bool_)
        looked = np.flatnonzero(due <= n)
        successes = n[looked] - total[looked]
        short = side.target - log_sums(logs + np.outer(total[looked], zero) + np.outer(successes, one))
        # No episode adds more than `most`. One is left for what rounding may do.
        due[looked] = n[looked] + 1 + np.maximum(short / most - 1, 0).astype(np.int64)
        for place in looked[short <= 0].tolist():
            weights = np.array([n[place] - total[place], total[place]])
            if side.log_e_value(_ENDS, weights) >= side.target:
                shown[place], due[place] = True, _NEVER
        self.rows["due"][where] = due
        return shown

    @cached_property
    def _lines(self) -> list[AlarmLine]:
        """Of both sides; streams share them."""
        both = zip(self._references, self.levels, strict=True)
        return [alarm_line(*reference, level) for reference, level in both]

    @cached_property
    def _sentinel(self) -> tuple[Array, Array, Array, float]:
        rate, log = self.sides[2].sentinel()
        zero, one = Bets.for_costs(binary=True).log_factors(rate)
        return self.sides[2].stream.log_shares + log, zero, one, max(float(one.max()), 1e-9)


class JointCosts(_JointEvidence):
    """Costs in [0, 1]: a side is reached when its joint e-value is at least one over the level."""

    def __init__(self, certificate: Certificate, levels: Pair, margin: float | None) -> None:
        sides = sides_of(certificate, levels, margin)
        bounds, logs = zip(*[side.sentinel() for side in sides], strict=True)
        self._at_sentinel = np.array(logs)
        self._wealth = Wealth(Bets.for_costs(binary=False), *bounds)
        # How high the evidence at the sentinel must be before the minimum is computed (again).
        due = np.array([side.target for side in sides])
        super().__init__(sides, levels, binary=False, due=due, **self._wealth.first)

    @property
    def thresholds(self) -> Pair:
        """One over the levels."""
        return 1 / self.levels[0], 1 / self.levels[1]

    def log_e_values(self, side: int, rows: Row) -> Array:
        """Return the log e-values, below the threshold until a look has found it reached; looks are rare."""
        logs, below = super().log_e_values(side, rows), self.sides[side].target - 1e-9
        return np.where(rows["reached"][:, side], logs, np.minimum(logs, below))

    def p_value(self, side: int, row: Row, log: float) -> float:
        """Return 1 over the e-value, or the level once it was reached."""
        return cost_p_value(log, self.levels[side], reached=bool(row["reached"][side]))

    def shift_limit(self, side: int, row: Row) -> float:
        """Return a limit on the new less the old mean, over the joint draw and for all times at once."""
        limit = super().shift_limit(side, row)
        # A side is reached when the evidence of its limit refutes a shift of zero: it stays refuted.
        if row["reached"][side]:
            return min(limit, 0.0) if side else max(limit, 0.0)
        return limit

    def _reached(self, where: Where, costs: Array, n: Counts, total: Array) -> Flags:  # noqa: ARG002
        low = self._wealth.step(self.rows, where, costs, n) + self._at_sentinel
        reached: Flags = low >= self.rows["due"][where]
        if reached.any():
            places = numbers(where, self.rows.size).tolist()
            for place, side in np.argwhere(reached).tolist():
                reached[place, side] = self._look(places[place], side, float(low[place, side]))
        return reached

    def highest(self, side: int, streams: int) -> Array:
        """Return the evidence at the sentinel, which no minimum exceeds."""
        return np.asarray(self.rows["log"][:streams, side] + self._at_sentinel[side])

    def _look(self, number: int, side: int, low: float) -> bool:
        """Compute the e-value of a stream, and when to do so again."""
        chosen, due = self.sides[side], self.rows["due"]
        found = chosen.log_e_value(grid_points(), self.rows["grid"][number], enough=chosen.target)
        if found < chosen.target:
            due[number, side] = low + max((chosen.target - found) / 2, 0.05)
            return False
        due[number, side] = sys.float_info.max  # JSON has no infinity
        return True


class EvidenceFinding(Finding):
    """A finding that is valid whenever it is read, and whose numbers are computed when they are first read.

    They are as they were when it was made. E-values and p-values of a joint draw take up to a millisecond,
    and a tenth of that for each of many findings that are held when one is read; limits of bounded costs a
    tenth of a second.
    """

    _evidence: Evidence
    _now: Row
    _ended: Row
    """Of a peek: the episodes that ended, from which comes what low costs show."""

    @classmethod
    def of(cls, evidence: Evidence, row: Row, ended: Row | None = None, **known: Any) -> Self:
        """Return a finding of which all other fields are known."""
        finding = cls.__new__(cls)
        # One call: this is made once per episode.
        finding.__dict__.update(known, _evidence=evidence, _now=row, _ended=ended or row)
        evidence.held[id(finding)] = finding
        return finding

    @cached_property
    def _logs(self) -> tuple[float, float]:
        """The log e-values of both sides, computed together with those of other findings that are held."""
        evidence = self._evidence
        evidence.held.pop(id(self), None)
        part = [self, *islice(evidence.held.values(), _AT_ONCE - 1)]  # who reads one may not read all
        sides = [one._now for one in part], [one._ended for one in part]
        several = [{name: np.array([row[name] for row in rows]) for name in rows[0]} for rows in sides]
        logs = [evidence.log_e_values(side, rows).tolist() for side, rows in enumerate(several)]
        for one, found in zip(part, zip(*logs, strict=True), strict=True):
            evidence.held.pop(id(one), None)
            one.__dict__["_logs"] = found
        known: tuple[float, float] = self.__dict__["_logs"]
        return known

    @cached_property
    def e_adverse(self) -> float:
        """The e-value against "the expected cost did not rise"."""
        return bounded_exp(self._logs[0])

    @cached_property
    def e_benign(self) -> float:
        """The e-value against "the expected cost did rise"."""
        return bounded_exp(self._logs[1])

    @cached_property
    def p_adverse(self) -> float:
        """The p-value of "the expected cost did not rise"."""
        return self._evidence.p_value(0, self._now, self._logs[0])

    @cached_property
    def p_benign(self) -> float:
        """The p-value of "the expected cost did rise"."""
        return self._evidence.p_value(1, self._ended, self._logs[1])

    @cached_property
    def shift_lower(self) -> float:
        """The lower limit on the shift."""
        return self._evidence.shift_limit(0, self._now)

    @cached_property
    def shift_upper(self) -> float:
        """The upper limit on the shift."""
        return self._evidence.shift_limit(1, self._ended)


def bounded_exp(log: float) -> float:
    """Return exp(log), or the largest float: JSON has no infinity."""
    return math.exp(log) if log < 709.0 else sys.float_info.max
