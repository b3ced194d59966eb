"""Many streams at once: a sequential test for each robot or task, and one answer for the fleet."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import arguments, one_line
from boundwatch._support.validation import check_level, check_margin
from boundwatch.bounds.bets import Array, Rows, Where
from boundwatch.bounds.multiple import e_bh_rows
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors import saving
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.detectors.evidence import EvidenceFinding, evidence_for
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, DISCOVERY_RATE, Verdict, new_costs, refuse_tasks
from boundwatch.errors import InvalidSetting, SchemaMismatch

_VERDICTS = (Verdict.WITHIN, Verdict.ADVERSE, Verdict.BENIGN)
_CHUNK = 2048  # streams at a time: their capitals stay in the processor's cache
_ALARMS: dict[str, NDArray[Any]] = {
    "first_alarm": np.array(0, dtype=np.int64),
    "verdict": np.array(0, dtype=np.int64),
}
"""What is kept of a stream besides its evidence."""


@dataclass(frozen=True)
class _Content:
    """What is kept of a fleet."""

    settings: dict[str, Any]
    ids: list[str | int]
    shares: dict[str, Any]
    alarms: dict[str, Any]
    evidence: dict[str, Any]


class Fleet(saving.Kept):
    """Runs a `SequentialTest` on each of many streams, vectorized.

    **Guarantee**: for each stream by itself, that of `SequentialTest`. Over the fleet, `discoveries` keeps
    the false discovery rate: the expected share of streams listed although their world is not worse is at
    most the rate asked for, whatever the dependence between streams, for the list at one look; plus the
    certificate's `delta_upper` if its costs are not judged jointly with the new ones. Streams may appear, and
    may be reset, after a look and because of it. **Assumes**: for each stream, as in `SequentialTest`; which
    streams there are at the first look does not depend on their costs; and either a stream's expected cost
    does not exceed the certified one given the past of all streams, or the look comes at a time that was
    fixed in advance. Parameters are as there, for each stream.

    Examples
    --------
    >>> import boundwatch as bw
    >>> fleet = bw.Fleet(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
    >>> for _ in range(10):
    ...     alarms = fleet.update(["arm-1", "arm-2", "arm-3"], [0.1, 0.9, 0.2])
    >>> fleet.discoveries(rate=0.05)
    ['arm-2']
    >>> finding = fleet.finding("arm-2")
    >>> finding.verdict.value, finding.n, finding.first_alarm
    ('adverse', 10, 3)
    """

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = ANYTIME_LEVEL,
        alpha_benign: float = ANYTIME_LEVEL,
        margin: float | None = None,
    ) -> None:
        self.certificate = refuse_tasks(require_certificate(certificate))
        self.alpha_adverse = check_level(alpha_adverse, "alpha_adverse")
        self.alpha_benign = check_level(alpha_benign, "alpha_benign")
        self.margin = None if margin is None else check_margin(margin)
        self._evidence = evidence_for(certificate, (self.alpha_adverse, self.alpha_benign), self.margin)
        self._alarms = Rows(_ALARMS, size=1)
        self._rows: dict[str | int, int] = {}
        self._shares = DiscoveryShares()

    def __repr__(self) -> str:
        return one_line(self, arguments(self) | {"streams": len(self._rows)})

    def __str__(self) -> str:
        verdicts = self.verdicts
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict.name}" for verdict in Verdict)
        return f"Fleet of {len(verdicts)} streams: {counts}"

    @property
    def ids(self) -> list[str | int]:
        """The streams, in the order in which they appeared; the arrays below follow it."""
        return list(self._rows)

    @property
    def n(self) -> NDArray[np.int64]:
        """The number of episodes of each stream."""
        return self._evidence.rows["n"][: len(self._rows)].copy()

    @property
    def e_adverse(self) -> Array:
        """The e-value of each stream against "the expected cost did not rise"."""
        return self._e_values(0)

    @property
    def e_benign(self) -> Array:
        """The e-value of each stream against "the expected cost did rise"."""
        return self._e_values(1)

    @property
    def verdicts(self) -> list[Verdict]:
        """The latched verdict of each stream."""
        return [_VERDICTS[code] for code in self._alarms["verdict"][: len(self._rows)].tolist()]

    @property
    def no_worse(self) -> list[bool] | None:
        """Which streams are shown to cost at most the margin more than certified; None without a margin."""
        if self.margin is None:
            return None
        shown: list[bool] = self._evidence.rows["reached"][: len(self._rows), 2].tolist()
        return shown

    def update(self, ids: Iterable[str | int] | str | int, costs: ArrayLike) -> list[str | int]:
        """Count one more episode of each stream named; a stream may be named repeatedly, and may be new.

        Names are text or whole numbers, one per cost. If a cost is invalid, none is counted. What is
        suspicious about `Episodes` is said as a Python warning; the certificate's own are refused. Return the
        streams that alarmed with these costs; ADVERSE after BENIGN counts again.
        """
        single = isinstance(ids, str | int)
        if isinstance(ids, str | int):
            ids = [ids]
        values = new_costs(costs, self.certificate, single=single)
        names = ids if isinstance(ids, np.ndarray) else list(ids)
        if len(names) != values.size:
            problem = f"has {len(names)} entries but costs has {values.size}"
            raise InvalidSetting(problem, name="ids", remedy="give one per cost")
        rows = self._find_rows(names)
        before = self._alarms["verdict"][rows]
        for part in _rounds(rows):
            for start in range(0, part.size, _CHUNK):
                chunk = part[start : start + _CHUNK]
                self._step(_block(rows[chunk]), values[chunk])
        alarmed = np.unique(rows[before != self._alarms["verdict"][rows]])
        known = self.ids if alarmed.size else []
        return [known[row] for row in alarmed.tolist()]

    def finding(self, stream: str | int) -> EvidenceFinding:
        """Return what is known about one stream."""
        row = self._row(stream)
        known = self._evidence.row(row)
        if known["n"] == 0:
            problem = "has no costs since its reset"
            raise InvalidSetting(problem, name="stream", value=stream, remedy="call update first")
        return EvidenceFinding.of(
            self._evidence,
            known,
            verdict=_VERDICTS[int(self._alarms["verdict"][row])],
            n=int(known["n"]),
            mean_cost=float(known["total"] / known["n"]),
            first_alarm=int(self._alarms["first_alarm"][row]) or None,
            false_positive_rate=min(self.alpha_adverse + self.certificate.delta_upper, 1.0),
            false_negative_rate=min(self.alpha_benign + self.certificate.delta_lower, 1.0),
            detector="fleet",
            tail=self._evidence.tail,
            binary=self.certificate.binary,
            margin=self.margin,
            no_worse=None if self.margin is None else bool(known["reached"][2]),
        )

    def discoveries(self, rate: float = DISCOVERY_RATE) -> list[str | int]:
        """Return the streams whose costs have risen, with the false discovery rate under control (e-BH).

        The first look deals out the rate: one half to the streams there are, equally, and the other half to
        tests that begin later: streams that appear after it or are reset. See the class for when the
        certificate's delta comes on top.
        """
        level, total, names = check_level(rate, "rate"), len(self._rows), self.ids
        if total == 0:
            return []
        # With an e-value below one over the rate nothing is listed, and it need not be computed.
        likely = self._evidence.highest(0, total) >= -math.log(level)
        logs = np.full(total, -math.inf)
        logs[likely] = self._log_e_values(0, np.flatnonzero(likely))
        return [names[row] for row in e_bh_rows(logs, self._shares.look(total), level).tolist()]

    def reset(self, stream: str | int) -> None:
        """Forget the costs and any alarm of one stream; what follows is a new test of it.

        `discoveries` lists it on the evidence since, with a smaller share of the rate, so that restarting
        streams until one alarms does not break the rate.
        """
        row = self._row(stream)
        if self._evidence.rows["n"][row]:
            self._shares.restart(row)
        for rows in (self._evidence.rows, self._alarms):
            rows.begin(slice(row, row + 1))

    def content(self) -> dict[str, Any]:
        """Return the state without what says whose it is."""
        used = len(self._rows)
        return {
            "settings": saving.settings(self),
            "ids": self.ids,
            "shares": dataclasses.asdict(self._shares),
            "alarms": saving.pack_rows(self._alarms, used),
            "evidence": self._evidence.state(used),
        }

    @classmethod
    def from_content(cls, state: Mapping[str, Any], certificate: Certificate) -> Self:
        """Return the fleet whose `content` that was."""
        known = saving.read(_Content, state)
        fleet = saving.remade(cls, certificate, known.settings)
        size = len(known.ids)
        if len(set(known.ids)) != size:
            raise SchemaMismatch("state['ids'] is not a list of different names; the state is damaged")
        if size:
            fleet._find_rows(known.ids)
        fleet._shares = DiscoveryShares.from_dict(known.shares, size)
        fleet._evidence.restore(known.evidence, size)
        saving.unpack_rows(fleet._alarms, known.alarms, size)
        if fleet._alarms["verdict"].max() >= len(_VERDICTS):
            raise SchemaMismatch("state['alarms'] has an unknown verdict; the state is damaged")
        return fleet

    def _row(self, stream: str | int) -> int:
        row = self._rows.get(_name(stream, "stream"))
        if row is None:
            remedy = "the streams are in .ids"
            raise InvalidSetting("has no costs yet", name="stream", value=stream, remedy=remedy)
        return row

    def _log_e_values(self, side: int, where: Where) -> Array:
        return self._evidence.log_e_values(side, self._evidence.row(where))

    def _e_values(self, side: int) -> Array:
        return np.exp(np.minimum(self._log_e_values(side, slice(len(self._rows))), 709.0))

    def _find_rows(self, ids: Sequence[str | int] | NDArray[Any]) -> NDArray[np.int64]:
        names: Sequence[str | int] = ids.tolist() if isinstance(ids, np.ndarray) else ids
        if not set(map(type, names)) <= {str, int}:  # as they are stored; the types alone are quick to see
            names = [_name(name, f"ids[{index}]") for index, name in enumerate(names)]
        if not all(map(self._rows.__contains__, names)):
            self._add(names)
        return np.fromiter(map(self._rows.__getitem__, names), dtype=np.int64, count=len(names))

    def _add(self, names: Sequence[str | int]) -> None:
        known = len(self._rows)
        for name in names:
            self._rows.setdefault(name, len(self._rows))
        self._shares.add(known, len(self._rows))
        if len(self._rows) > self._alarms.size:
            for rows in (self._evidence.rows, self._alarms):
                rows.grow(max(len(self._rows), 2 * rows.size))

    def _step(self, where: Where, costs: Array) -> None:
        """Count one cost for each of some different streams."""
        reached = self._evidence.count(where, costs)
        if not reached[:, :2].any():
            return
        # As in `AnytimeDetector`: alarms latch, but ADVERSE replaces BENIGN.
        verdict = self._alarms["verdict"][where]
        new = np.where(reached[:, 0], 1, np.where(reached[:, 1] & (verdict == 0), 2, verdict))
        n, first = self._evidence.rows["n"][where], self._alarms["first_alarm"][where]
        self._alarms["first_alarm"][where] = np.where(new != verdict, n, first)
        self._alarms["verdict"][where] = new


def _name(name: Any, argument: str) -> str | int:
    """Return a name as it is stored: plain text or a plain whole number."""
    if isinstance(name, str):
        return str(name)
    try:
        if isinstance(name, bool):
            raise TypeError
        return operator.index(name)
    except TypeError:
        remedy = "use text or whole numbers"
        raise InvalidSetting("is not a name", name=argument, value=name, remedy=remedy) from None


def _block(rows: NDArray[np.int64]) -> Where:
    """Return rows in their usual order as one block: no gather, no scatter."""
    first, size = int(rows[0]), rows.size
    if rows[-1] - first + 1 == size and (rows[1:] > rows[:-1]).all():
        return slice(first, first + size)
    return rows


def _rounds(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split positions into rounds in which no row occurs twice, each row's costs in their order."""
    if np.bincount(rows).max() == 1:
        return [np.arange(rows.size)]
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, rows.size])
    turn = np.arange(rows.size) - np.repeat(starts, lengths)
    by_turn = order[np.argsort(turn, kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])
