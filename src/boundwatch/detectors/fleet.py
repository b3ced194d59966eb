"""Many streams at once: a sequential test for each robot or task, and one answer for the fleet."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import arguments, one_line
from boundwatch._support.validation import check_level, check_margin
from boundwatch.bounds.bets import Array
from boundwatch.bounds.multiple import e_bh_rows
from boundwatch.bounds.rows import Rows, Where
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors import saving
from boundwatch.detectors.base import ANYTIME_LEVEL, DISCOVERY_RATE, Verdict, new_costs, refuse_tasks
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.detectors.evidence import EvidenceFinding, evidence_for
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


@dataclass(frozen=True, kw_only=True, repr=False)
class StreamFinding(EvidenceFinding):
    """What a `Fleet` knows about one stream, by itself."""

    stream: str | int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, its name first."""
        return {"stream": self.stream} | super().to_dict()


class Fleet:
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
        self._numbered = np.empty(0, dtype=np.int64)

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

    def finding(self, stream: str | int) -> StreamFinding:
        """Return what is known about one stream."""
        name = _name(stream, "stream")
        row = self._row(name)
        known = self._evidence.row(row)
        if known["n"] == 0:
            problem = "has no costs since its reset"
            raise InvalidSetting(problem, name="stream", value=stream, remedy="call update first")
        return StreamFinding.of(
            self._evidence,
            known,
            stream=name,
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

    def discoveries(self, rate: float = DISCOVERY_RATE, *, streams: int | None = None) -> list[str | int]:
        """Return the streams whose costs have risen, with the false discovery rate under control (e-BH).

        The first look deals out the rate: one half to the streams there are, equally, and the other half to
        tests that begin later: streams that appear after it or are reset. A declared number needs no such
        reserve.

        Parameters
        ----------
        rate
            The false discovery rate to keep; see the class for when the certificate's delta comes on top.
        streams
            How many streams there will be at most, counting one more for every reset; declared at the first
            look and kept from then on.
        """
        level = check_level(rate, "rate")
        total = len(self._rows)
        if streams is not None:
            whole = isinstance(streams, int | np.integer) and not isinstance(streams, bool)
            if not whole or streams < total:
                problem = f"is below the {total} already seen" if whole else "is not a whole number"
                remedy = "say how many, or leave it out"
                raise InvalidSetting(problem, name="streams", value=streams, remedy=remedy)
        if total == 0:
            return []
        shares = self._shares.look(total, None if streams is None else int(streams))
        names = self.ids
        # Nothing is listed with an e-value below one over the rate.
        evidence = self._log_e_values(0, math.log(1 / level))
        return [names[row] for row in e_bh_rows(evidence, shares, level).tolist()]

    def reset(self, stream: str | int) -> None:
        """Forget the costs and any alarm of one stream; what follows is a new test of it.

        `discoveries` lists it on the evidence since, with a smaller share of the rate, so that restarting
        streams until one alarms does not break the rate.
        """
        row = self._row(_name(stream, "stream"))
        if self._evidence.rows["n"][row]:
            self._shares.restart(row)
        for rows in (self._evidence.rows, self._alarms):
            rows.begin(slice(row, row + 1))

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> import boundwatch as bw
        >>> fleet = bw.Fleet(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = fleet.update([7, 8, 7], [0.3, 0.1, 0.4])
        >>> bw.Fleet.from_state_dict(fleet.state_dict()).finding(7) == fleet.finding(7)
        True
        """
        used = len(self._rows)
        content = {
            "settings": saving.settings(self),
            "ids": self.ids,
            "shares": dataclasses.asdict(self._shares),
            "alarms": saving.pack_rows(self._alarms, used),
            "evidence": self._evidence.state(used),
        }
        return saving.seal(self, content)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], certificate: Certificate | None = None) -> Fleet:
        """Return the fleet that `state_dict` described; parameters as in `SequentialTest.from_state_dict`."""
        certificate = saving.unseal(cls.__name__, state, certificate)
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
        row = self._rows.get(stream)
        if row is None:
            remedy = "the streams are in .ids"
            raise InvalidSetting("has no costs yet", name="stream", value=stream, remedy=remedy)
        return row

    def _log_e_values(self, side: int, at_least: float = -math.inf) -> Array:
        return self._evidence.log_e_values_of(side, np.arange(len(self._rows)), at_least)

    def _e_values(self, side: int) -> Array:
        return np.exp(np.minimum(self._log_e_values(side), 709.0))

    def _find_rows(self, ids: Sequence[str | int] | NDArray[Any]) -> NDArray[np.int64]:
        numbered = isinstance(ids, np.ndarray) and ids.dtype.kind in "iu"
        if numbered and np.min(ids) >= 0 and np.max(ids) < self._numbered.size:
            rows: NDArray[np.int64] = self._numbered[np.asarray(ids)]
            if rows.min() >= 0:
                return rows
        names: Sequence[str | int] = ids.tolist() if isinstance(ids, np.ndarray) else ids
        if not _are_names(names):
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
        # Streams numbered from 0 are found without a dictionary, which is quicker.
        numbers = [name for name in self._rows if isinstance(name, int) and 0 <= name < 1 << 20]
        self._numbered = np.full(max(numbers, default=-1) + 1, -1)
        self._numbered[numbers] = [self._rows[name] for name in numbers]

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


def _are_names(names: Sequence[Any]) -> bool:
    """Return whether all names are as they are stored; the types alone are quick to see."""
    return set(map(type, names)) <= {str, int}


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
    order = np.argsort(_narrow(rows), kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, rows.size])
    turn = np.arange(rows.size) - np.repeat(starts, lengths)
    by_turn = order[np.argsort(_narrow(turn), kind="stable")]
    return np.split(by_turn, np.cumsum(np.bincount(turn))[:-1])


def _narrow(numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Return 16-bit numbers where they suffice: they are sorted ten times quicker."""
    return numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers
