"""What happens when a watch alarms: a command of the user's, told everything and trusted with nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from boundwatch.errors import InvalidSetting

_SECRET = ("BOUNDWATCH_WEBHOOK_SECRET", "BOUNDWATCH_TOKEN", "BOUNDWATCH_INTERNAL_SETTINGS")
LONGEST_COMMAND = 60.0  # seconds; what needs longer is to be started in the background
_LONGEST_WAIT = 300.0

OnAlarm = Callable[[dict[str, Any]], None]
"""Called with an alarm; raises `InvalidSetting` if it could not be delivered."""


def check_command(command: str) -> list[str]:
    """Return the program and its arguments; refuse a program that is not there."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _unusable(command, f"cannot be split into words, {error}", "close its quotes") from error
    if not words:
        raise _unusable(command, "is empty", "give a program and its arguments")
    if shutil.which(words[0]) is None:
        problem = f"cannot be started, {words[0]!r} is not a program that can be run"
        raise _unusable(command, problem, "check its name and that it is executable")
    return words


def run_command(command: str, alarm: Mapping[str, Any]) -> None:
    """Run a command with an alarm as JSON on its standard input; raise `InvalidSetting` if that fails.

    No shell is involved, so nothing in the alarm can become a command. Plain values are in the environment,
    too: ``ALARM_STREAM``, ``ALARM_VERDICT``, …. What it prints goes to standard error: standard
    output is for findings. It must end within a minute, with code 0.
    """
    words = check_command(command)
    plain = {name: value for name, value in alarm.items() if isinstance(value, str | int | float)}
    # Not BOUNDWATCH_CERTIFICATE and the like: a `serve` or `token` that the command runs has such settings.
    variables = {f"ALARM_{name.upper()}": str(value) for name, value in plain.items()}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command, without a shell
            words,
            input=json.dumps(alarm, allow_nan=False) + "\n",
            text=True,
            stdout=2,
            env={name: value for name, value in os.environ.items() if name not in _SECRET} | variables,
            timeout=LONGEST_COMMAND,
            check=False,
        )
    except (OSError, ValueError) as error:
        raise _undelivered(command, f"cannot be started, {error}", "check the command") from error
    except subprocess.TimeoutExpired as error:
        problem = f"did not end within {LONGEST_COMMAND:g} s"
        raise _undelivered(command, problem, "let it start what takes longer") from error
    if done.returncode:
        raise _undelivered(command, f"ended with code {done.returncode}", "it must exit with 0 on success")


def _unusable(command: str, problem: str, remedy: str) -> InvalidSetting:
    return InvalidSetting(problem, name="on_alarm", value=command, remedy=remedy)


def _undelivered(command: str, problem: str, remedy: str) -> InvalidSetting:
    return InvalidSetting(f"the alarm command {command!r} {problem}", remedy=remedy)


class Alarms:
    """Tells a program of every verdict that changes, until it was told; without a program, nobody."""

    def __init__(self, tell: OnAlarm | None) -> None:
        self.tell = tell
        self.told: dict[str, str] = {}
        """The verdict of each stream that was told before."""
        self.undelivered: dict[str, str] = {}
        """Why the program could not be told of a stream, if it could not."""
        self.waits: dict[str, tuple[float, float]] = {}  # seconds, and until when: it may hang, or page

    def due(self, verdicts: Mapping[str, str], *, at_once: bool) -> list[str]:
        """Return the streams whose verdict is to be told now: not again right after it failed."""
        if self.tell is None:
            return []
        now = float("inf") if at_once else time.monotonic()
        untold = [stream for stream, verdict in verdicts.items() if self.told.get(stream) != verdict]
        return [stream for stream in untold if self.waits.get(stream, (0.0, 0.0))[1] <= now]

    def deliver(self, stream: str, verdict: str, alarm: dict[str, Any]) -> str:
        """Tell it; return what to say if that failed, and was not said before."""
        assert self.tell is not None  # noqa: S101  (nothing is due otherwise)
        try:
            self.tell(alarm)
        except InvalidSetting as error:
            before, self.undelivered[stream] = self.undelivered.get(stream), str(error)
            seconds = min(2 * self.waits.get(stream, (0.5, 0.0))[0], _LONGEST_WAIT)
            self.waits[stream] = seconds, time.monotonic() + seconds
            return "" if before == str(error) else f"{error}; the alarm is not delivered yet"
        self.undelivered.pop(stream, None)
        self.waits.pop(stream, None)
        self.told[stream] = verdict
        return ""
