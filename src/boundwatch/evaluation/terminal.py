"""The trial sheet in a terminal: a page per trial and a key per outcome; plain lines if keys are piped."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from boundwatch._support.describing import printable
from boundwatch._support.validation import shortest
from boundwatch.errors import Refusal
from boundwatch.evaluation.evaluation import STATION, Evaluation
from boundwatch.evaluation.replay import Trial
from boundwatch.reporting.wording import count

_GLYPHS = (  # of A to Z: five rows of five dots each, as digits to the base 32
    "ehvhhuhuhufgggfuhhhuvgugvvguggfgjhfhhvhhe444e711hehisihggggvhrlhh"
    "hpljhehhheuhuggehljfuhuihfge1uv4444hhhhehhha4hhlrhha4ahha444v248v"
)
_ACTIONS = {"a": "abort", "d": "discard", "o": "note", "u": "undo", "s": "stop", "q": "quit"}
_MILESTONES = "123456789bcfghijklmprtvwxz"
_PAUSE = 0.3  # seconds in which keys are ignored after an outcome: nobody runs a trial in less
_PATIENCE = 2.0  # seconds between looks while other stations are busy


class _Ended(Exception):
    """There are no more keys."""


class _Keys:
    """Keys as they are pressed, or the characters of a pipe."""

    def __init__(self, file: int) -> None:
        self._file, self.pressed = file, os.isatty(file)

    @contextmanager
    def raw(self) -> Iterator[None]:
        """Let keys come without Enter and unseen, where there are any."""
        if not self.pressed:
            yield
            return
        import termios
        import tty

        usual = termios.tcgetattr(self._file)
        try:
            tty.setcbreak(self._file)
            yield
        finally:
            termios.tcsetattr(self._file, termios.TCSADRAIN, usual)

    def settle(self) -> None:
        """Forget what was pressed while an outcome was kept: a key that was held down is no second one."""
        if self.pressed:
            import termios

            time.sleep(_PAUSE)
            termios.tcflush(self._file, termios.TCIFLUSH)

    def one(self, patience: float | None = None) -> str:
        """Return the next key in lower case; nothing if none came in so many seconds."""
        with self.raw():
            if patience is not None and not select.select([self._file], [], [], patience)[0]:
                return ""
            found = os.read(self._file, 1)
            if found == b"\x1b":  # an arrow or the like sends more
                while select.select([self._file], [], [], 0.05)[0] and os.read(self._file, 1):
                    pass
        if not found or found == b"\x04":
            raise _Ended
        return found.decode("latin-1").lower()

    def line(self) -> str:
        """Return what is typed up to Enter."""
        found = bytearray()
        while (each := os.read(self._file, 1)) not in (b"", b"\n"):
            found += each
        return found.decode("utf-8", "replace").strip()


class Terminal:
    """Shows the trials of one station and keeps their outcomes, until the end or until somebody quits.

    Parameters
    ----------
    evaluation
        What to run.
    station
        Who runs it.
    load
        Command to run before each trial, with the policy's name in its environment.
    """

    def __init__(self, evaluation: Evaluation, station: str = STATION, *, load: str | None = None) -> None:
        self._evaluation, self._station, self._load = evaluation, station, load
        self._keys = _Keys(sys.stdin.fileno())
        self._is_page = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._said, self._loaded = "", 0
        self._reached: dict[str, bool] = {}
        self._marks = dict(zip(_MILESTONES, evaluation.protocol.milestones or (), strict=False))

    def run(self) -> None:
        """Go on until the end."""
        try:
            while not self._evaluation.finished:
                trial = self._evaluation.next(self._station)
                if trial is None:
                    self._wait()
                    continue
                self._prepare(trial)
                _print("\x1b[2J\x1b[H" + "\n".join(self._page(trial)) if self._is_page else str(trial))
                try:
                    self._act(trial, self._keys.one())
                except Refusal as error:
                    self._tell(f"Not kept: {error}")
        except (_Ended, KeyboardInterrupt):
            trials = count(self._evaluation.status["trials"], "trial")
            _print(f"\nLeft after {trials}; the next run goes on at the same one.")
        else:
            status = self._evaluation.status
            rounds, trials = count(status["rounds"], "round"), count(status["trials"], "trial")
            _print(f"\nDone ({status['state']}) after {rounds}, {trials}.")
        rows, head = (self._evaluation.status[name] for name in ("rows", "head"))
        _print(f"Send this line to somebody: {count(rows, 'row')}, the last hash is {head}")

    def _wait(self) -> None:
        if not self._keys.pressed:
            raise _Ended
        _print("\rNothing to run here until other stations are done; q quits. ", end="")
        if self._keys.one(_PATIENCE) == "q":
            raise _Ended

    def _prepare(self, trial: Trial) -> None:
        """Have the policy loaded, unseen."""
        if self._load is None or trial.number == self._loaded:
            return
        about = {"POLICY": self._evaluation.policy_of(trial), "TASK": trial.task, "SCENE": trial.scene}
        known = os.environ | {f"BOUNDWATCH_{name}": value for name, value in about.items()}
        _print("loading the policy ...")
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        try:
            code = subprocess.run(shlex.split(self._load), env=known, check=False, **quiet).returncode  # noqa: S603
        except (OSError, ValueError):
            code = 127
        self._loaded = trial.number
        if code:
            self._tell(f"The command that loads the policy failed (exit {code}).")

    def _act(self, trial: Trial, key: str) -> None:
        """Do what a key stands for."""
        protocol = self._evaluation.protocol
        if key in _ACTIONS:
            self._do(_ACTIONS[key], trial)
        elif key in self._marks:
            name = self._marks[key]
            self._reached[name] = not self._reached.get(name)
        elif protocol.measure == "rubric" and key in "\r\n":
            self._keep(trial, milestones=[name for name, reached in self._reached.items() if reached])
        elif protocol.measure == "success" and key in "yn":
            self._keep(trial, success=key == "y")
        elif key in self._digits:
            self._keep(trial, score=float(key))
        elif protocol.measure == "score" and key == "e":
            self._keep(trial, score=self._ask("score"))

    @property
    def _digits(self) -> str:
        """The keys that are scores; none if some score is no digit."""
        low, high = self._evaluation.protocol.score_range or (0.5, 0.5)
        whole = low == int(low) and high == int(high) and 0 <= low < high <= 9
        return "".join(str(each) for each in range(int(low), int(high) + 1)) if whole else ""

    def _keep(self, trial: Trial, **outcome: Any) -> None:
        if isinstance(outcome.get("score"), str):
            try:
                outcome["score"] = float(outcome["score"])
            except ValueError:
                self._tell(f"Not kept: {outcome['score']!r} is not a number.")
                return
        self._evaluation.record(trial, **outcome)
        self._reached = {}
        ((kind, value),) = outcome.items()
        said = f"{kind} ({value})" if isinstance(value, str) else f"{kind} {value}"
        if kind == "success":
            said = "success" if value else "failure"
        elif kind == "milestones":
            said = f"reached {', '.join(value) or 'nothing'}"
        self._tell(
            f"Kept: trial {trial.number}, {said}.{'' if self._evaluation.finished else ' u takes it back.'}"
        )
        self._keys.settle()

    def _do(self, action: str, trial: Trial) -> None:
        if action == "quit":
            raise _Ended
        if action == "stop" and self._ask("type stop to end the evaluation for good").lower() != "stop":
            self._tell("Nothing done: the evaluation goes on.")
            return
        what = "note" if action == "note" else f"why {action}"
        text = self._ask(what) or self._ask(f"{what}; Enter again leaves it")
        if not text:
            self._tell(f"Nothing done: {action} needs a text.")
        elif action in ("abort", "discard"):
            self._keep(trial, **{f"{action}ed": text})
        elif action == "undo":
            self._tell(f"Took back trial {self._evaluation.undo(text, self._station)}; run it again.")
        elif action == "note":
            self._evaluation.note(f"at trial {trial.number}: {text}")
            self._tell("The note is kept.")
        else:
            self._evaluation.stop(text)

    def _ask(self, what: str) -> str:
        _print(f"\n  {what} (Enter ends): ", end="")
        return self._keys.line()

    def _page(self, trial: Trial) -> Iterator[str]:
        """Yield the lines of a page, at most 24 of at most 79 columns."""
        rounds, head = self._evaluation.status["rounds"], "boundwatch evaluate"
        head = f"station {self._station}" if self._station != STATION else head
        yield f" {head:<40}{f'round {trial.round} of at most {trial.most_rounds}':>37}"
        yield f" {'-' * 77}\n {_bold(f'Trial {trial.number}')} of at most {trial.most_trials}\n"
        about = [("policy", trial.policy), *trial.where]
        beside = [f"{what:<8}{_bold(printable(name)[:44])}" for what, name in about]
        yield from _beside(trial.policy, beside)
        done = round(48 * rounds / trial.most_rounds)
        yield f"\n complete [{'#' * done}{'.' * (48 - done)}] {count(rounds, 'round')}\n"
        yield from self._choices()
        yield "   " + "   ".join(f"{key} {action}" for key, action in _ACTIONS.items())
        yield f"\n {printable(self._said)[:77]}"

    def _choices(self) -> Iterator[str]:
        """Yield the keys that are outcomes."""
        protocol = self._evaluation.protocol
        if protocol.measure == "success":
            yield f"   {_bold('y')} success   {_bold('n')} failure"
        elif protocol.measure == "score":
            low, high = map(shortest, protocol.score_range or ())
            keys = f"{_bold(low)} to {_bold(high)} the score   " if self._digits else ""
            yield f"   {keys}{_bold('e')} enter a score from {low} to {high}"
        else:
            for key, name in self._marks.items():
                mark = "x" if self._reached.get(name) else " "
                yield f"   {_bold(key)} [{mark}] {printable(name)[:60]}"
            yield f"   {_bold('Enter')} keeps what is marked"

    def _tell(self, text: str) -> None:
        """Say something: on the next page, or at once where there are none."""
        self._said = text
        if not self._is_page:
            _print(text)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"


def _print(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def _beside(letter: str, texts: list[str]) -> Iterator[str]:
    """Yield rows of a large letter with texts beside it; nothing is large if it is a name."""
    dot = "\u2588\u2588" if sys.stdout.encoding.lower().startswith("utf") else "##"
    if len(letter) > 1 or not "A" <= letter <= "Z":
        yield from (f"    {text}" for text in texts)
        return
    first = 5 * (ord(letter) - ord("A"))
    for row, code in enumerate(_GLYPHS[first : first + 5], -1):
        drawn = "".join(dot if bit == "1" else "  " for bit in f"{int(code, 32):05b}")
        yield f"    {drawn}    {texts[row] if 0 <= row < len(texts) else ''}"
