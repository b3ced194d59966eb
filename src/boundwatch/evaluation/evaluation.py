"""An evaluation: trials handed out one by one, outcomes kept once, an answer when the rule says so."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from boundwatch._support.describing import one_line as described
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting, Place, Refusal, SchemaMismatch, part_of
from boundwatch.evaluation.log import Log, is_log
from boundwatch.evaluation.protocol import Protocol
from boundwatch.evaluation.replay import Replay, Trial, one_line, row_of
from boundwatch.evaluation.results import Results
from boundwatch.evaluation.schedule import Schedule, new_secret
from boundwatch.reporting.wording import count

STATION = "1"
"""Where there is one."""
_AnyPath = str | os.PathLike[str]


class Evaluation:
    """Hands out the trials of a sealed protocol, blinded and in random order, and answers its question.

    **Guarantee**: if the policies are equal in every task (or, for certify and check, as the campaign and the
    test promise), a wrong answer is ever given with probability at most the protocol's: `alpha` per side to
    compare, `alpha` for all statements to rank, however the conditions drift over the day, whatever stations
    differ in, and whenever somebody looks or stops. Every acknowledged outcome is in the log once.
    **Assumes**: the policies were final before the start; operators do not know which letter is which policy;
    the chance of a trial's outcome depends on its own policy, and on anything else that does not depend on
    how the order was drawn. Certify and check: the expected cost stays the same over the trials.

    Use `start` or `open`. Each call reads what other stations have written since.

    Examples
    --------
    >>> import boundwatch as bw
    >>> protocol = bw.Protocol(question="compare", policies=["act", "dp"], most_rounds=60, seed=7)
    >>> evaluation = bw.Evaluation.start(None, protocol)  # None keeps it in memory
    >>> while (trial := evaluation.next()) is not None:
    ...     evaluation.record(trial, success=evaluation.policy_of(trial) == "dp")
    >>> evaluation.status["rounds"], evaluation.finding().verdict.value
    (7, 'b-better')
    """

    def __init__(self, log: Log) -> None:
        self._log, self._lock = log, threading.RLock()
        self._replay = self._refresh()

    @classmethod
    def start(cls, path: _AnyPath | None, protocol: Protocol) -> Evaluation:
        """Seal a protocol in a new file, or in memory; nothing about it can be changed from then on."""
        content = None if protocol.certificate is None else _certified(protocol, protocol.certificate)
        secret = new_secret(protocol)
        others = [] if path is None else _started_before(Path(path), protocol)
        log = Log(path, new=True)
        with log.writing():
            log.seal(secret)
            seal: dict[str, Any] = {"protocol": protocol.to_dict(), "fingerprint": protocol.fingerprint}
            seal |= {"certificate": content, "others": others}
            log.append("protocol", seal | {"commitment": Schedule(protocol, secret).commitment})
        log.rewind()
        return cls(log)

    @classmethod
    def open(cls, path: _AnyPath) -> Evaluation:
        """Go on with an evaluation; a log that was altered is refused."""
        log = Log(path)
        try:
            with part_of(os.fspath(path)):
                return cls(log)
        except BaseException:
            log.close()
            raise

    def close(self) -> None:
        """Let go of the file; all that was acknowledged is in it."""
        self._log.close()

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return described(self, {"question": self.protocol.question, **self.status})

    def __str__(self) -> str:
        status = self.status
        return f"{self.protocol}: {status['state']} after {count(status['rounds'], 'round')}"

    @property
    def protocol(self) -> Protocol:
        """What was sealed."""
        return self._replay.protocol

    @property
    def finished(self) -> bool:
        """Whether the question is answered, the most rounds are run, or somebody stopped."""
        return bool(self._refresh().ended)

    @property
    def status(self) -> dict[str, Any]:
        """How far it is, without naming a side."""
        known = self._refresh()
        return {
            "state": known.ended or "go on",
            "rounds": known.rounds,
            "most_rounds": known.protocol.most_rounds,
            "trials": sum(1 for _ in known.recorded),
            "policies_in": len(known.evidence.policies),
            "rows": self._log.length,
            "head": self._log.head,
        }

    def next(self, station: str = STATION) -> Trial | None:
        """Return the trial to run now: the same until it is recorded; None if there is none.

        Each station has its own trials, and the policies of a pair run at the same one.
        """
        known = self._refresh()
        found = known.current(station)
        if found is not None or known.ended:
            return found
        with self._writing() as known:
            row = None if known.ended or known.current(station) else known.next_block(station)
            if row is not None:
                self._write(*row)
        return known.current(station)

    def record(
        self,
        trial: Trial | int,
        *,
        success: bool | None = None,
        score: float | None = None,
        milestones: Iterable[str] | None = None,
        aborted: str | None = None,
        discarded: str | None = None,
        note: str | None = None,
    ) -> None:
        """Keep the outcome of a trial; it is on the disk when this returns. Twice the same counts once.

        Parameters
        ----------
        trial
            What `next` returned, or its number.
        success, score, milestones
            The outcome, as the protocol measures it.
        aborted, discarded
            Instead: why it has none. It stays in the log and counts as the protocol says.
        note
            Anything worth reading in the report.
        """
        said = row_of(trial.number if isinstance(trial, Trial) else trial, locals())
        self._replay.cost_of(said)
        with self._writing() as known:
            before = known.outcome_of(said["trial"])
            if before is None or before.said != said:
                self._write("outcome", said)

    def undo(self, reason: str, station: str = STATION) -> int:
        """Take back the latest outcome of a station, and return its trial, which is to be recorded again."""
        with self._writing() as known:
            number = known.undoable(station)
            self._write("undo", {"trial": number, "station": station, "reason": one_line(reason)})
        return int(number or 0)

    def note(self, text: str) -> None:
        """Add a note to the log and to the report."""
        self._add("note", {"text": one_line(text)})

    def release(self, station: str, reason: str) -> None:
        """Let other stations have what a station that does not come back has not finished."""
        self._add("release", {"station": station, "reason": one_line(reason)})

    def stop(self, reason: str) -> None:
        """End before the rule does; what can be said holds whatever the reason."""
        with self._writing() as known:
            if not known.ended:
                self._write("stop", {"reason": one_line(reason)})

    def finding(self) -> Any:
        """Return the answer, or what is known before: that names a side, so it is logged if blind.

        A `ComparisonFinding` (the first policy is A), a `Ranking`, a `Certificate` or a `Finding`.
        """
        self.unblind("finding")
        return self._replay.evidence.finding()

    def results(self, what: str = "results") -> Results:
        """Return all that is known by policy, which is logged like `finding`."""
        self.unblind(what)
        return Results(self._replay)

    def policy_of(self, trial: Trial) -> str:
        """Return the name behind the letter of a trial, for the program that loads the policy."""
        letters = self._replay.schedule.letters(trial.round)
        return next(name for name, letter in letters.items() if letter == trial.policy)

    def unblind(self, what: str) -> None:
        """Log that somebody saw results by policy before the end of a blind evaluation."""
        if self.protocol.blind and not self.finished:
            self._add("look", {"what": what})

    def unblind_once(self, what: str) -> None:
        """Log it the first time only, of what happens at every trial."""
        if not any(said.endswith(f"({what})") for *_, said in self._refresh().events):
            self.unblind(what)

    @property
    def seal(self) -> dict[str, str]:
        """What was fixed before the first trial, to be signed or sent to somebody."""
        known = self._replay
        return {
            "protocol": known.protocol.fingerprint,
            "commitment": known.schedule.commitment,
            "first row": known.sealed,
        }

    def replay(self) -> Replay:
        """Return everything that follows from the log, for reports."""
        return self._refresh()

    def verify(self) -> list[str]:
        """Derive everything again from the log; return what must be named, or refuse what does not follow."""
        self._log.rewind()
        known = self._refresh()
        self._log.check_end()
        if known.ended and not known.closed:
            raise InvalidSetting("the row that ends it is missing", remedy="use an untouched copy")
        return [f"row {number}, {time}: {said}" for number, time, said in known.events]

    @contextmanager
    def _writing(self) -> Iterator[Replay]:
        """Yield the latest state while nobody else writes."""
        with self._lock, self._log.writing():
            yield self._refresh()

    def _refresh(self) -> Replay:
        with self._lock:
            if not self._log.length:  # new, or something failed: what was taken in may not be on the disk
                self._replay = Replay(self._log.secret)
            for row in self._log.rows():
                try:
                    self._replay.apply(row)
                except (Refusal, KeyError, TypeError, IndexError, AttributeError) as error:
                    problem = getattr(error, "problem", f"is not a valid {row.kind} row")
                    where, remedy = Place(number=row.number), "it was not written by boundwatch"
                    raise SchemaMismatch(problem, where=where, remedy=remedy) from None
            return self._replay

    def _write(self, kind: str, content: Mapping[str, Any]) -> None:
        """Add a row, and the one that ends it if it does; inside `_writing`."""
        known = self._replay
        known.apply(self._log.append(kind, dict(content)))
        if known.ended and not known.closed:
            known.apply(self._log.append("end", known.end))

    def _add(self, kind: str, content: Mapping[str, Any]) -> None:
        with self._writing():
            self._write(kind, content)


def _certified(protocol: Protocol, path: str) -> dict[str, Any]:
    """Return the certificate to check against, as the log keeps it; refuse one of something else."""
    loaded, own, where = Certificate.load(path), protocol.measured, Place(path)
    other, tasks = loaded.measure, [each.name for each in loaded.strata or ()]
    alike = other is None or other.column is None or own.cost_range == other.cost_range
    if loaded.binary != (own.kind == "success") or not (alike or loaded.binary):
        problem = f"is of {'successes' if loaded.binary else other or 'costs'}"
        problem += f", and the protocol measures a {protocol.measure} ({own})"
        raise InvalidSetting(problem, where=where, remedy="measure the same")
    if sorted(tasks or [""]) != sorted(protocol.weights if tasks or protocol.slots > 1 else [""]):
        problem = f"is of the mean over {', '.join(tasks)}" if tasks else "is of one task"
        raise InvalidSetting(problem, where=where, remedy="name its tasks")
    return loaded.to_dict()


def _started_before(path: Path, protocol: Protocol) -> list[str]:
    """Return the evaluations in the same folder that asked the same of the same policies, by any settings."""
    found, asked = [], (protocol.question, set(protocol.policies))
    for other in sorted(path.absolute().parent.glob("*")):
        try:
            if other.name != path.name and is_log(other):
                with closing(Log(other)) as log:
                    first = next(log.rows())
                before = first.content["protocol"]
                if (before["question"], set(before["policies"])) == asked:
                    same = "" if first.content["fingerprint"] == protocol.fingerprint else ", other settings"
                    found.append(f"{other.name} ({first.time[:16]}{same})")
        except (Refusal, OSError, LookupError, TypeError, StopIteration):  # nothing that can be read
            continue
    return found
