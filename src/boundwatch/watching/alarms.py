"""What happens when a watch alarms: a command of the user's, told everything and trusted with nothing."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boundwatch.errors import InvalidSetting

_SECRET = ("BOUNDWATCH_WEBHOOK_SECRET", "BOUNDWATCH_TOKEN", "BOUNDWATCH_INTERNAL_SETTINGS")
LONGEST_COMMAND = 60.0  # seconds; what needs longer is to be started in the background

OnAlarm = Callable[[dict[str, Any]], None]
"""Called with an alarm; raises `InvalidSetting` if it could not be delivered."""


def parse_command(command: str) -> list[str]:
    """Return the program and its arguments, or say why they are none.

    Examples
    --------
    >>> parse_command("notify-send 'Robot 3' worse")
    ['notify-send', 'Robot 3', 'worse']
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidSetting(f"on_alarm = {command!r} cannot be split into words, {error}") from error
    if not words:
        raise InvalidSetting("on_alarm is empty; give a program and its arguments")
    return words


def check_command(command: str) -> None:
    """Refuse a command whose program is not there, before anything depends on it.

    Examples
    --------
    >>> check_command("grep -q adverse")
    >>> check_command("gerp -q adverse")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: on_alarm = 'gerp -q adverse' cannot be started, 'gerp' is not ...
    """
    program = parse_command(command)[0]
    if shutil.which(program) is None:
        raise InvalidSetting(
            f"on_alarm = {command!r} cannot be started, {program!r} is not a program that can be run; check "
            "its name and that it is executable"
        )


def run_command(command: str, alarm: Mapping[str, Any]) -> None:
    """Run a command with an alarm as JSON on its standard input.

    No shell is involved, so nothing in the alarm can become a command. Plain values are in the environment,
    too: ``ALARM_STREAM``, ``ALARM_VERDICT``, …. What it prints goes to standard error: standard
    output is for findings.

    Parameters
    ----------
    command
        The program and its arguments, quoted as in a shell.
    alarm
        What to tell it; JSON values.

    Raises
    ------
    InvalidSetting
        When it cannot be started, does not end within a minute, or ends with another code than 0.

    Examples
    --------
    >>> run_command("grep -q adverse", {"stream": "arm-1", "verdict": "adverse"})
    >>> run_command("grep -q adverse", {"stream": "arm-1", "verdict": "within"})
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: on_alarm = 'grep -q adverse' ended with code 1; ...
    """
    words = parse_command(command)
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
        raise InvalidSetting(
            f"on_alarm = {command!r} cannot be started, {error}; check the command"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InvalidSetting(
            f"on_alarm = {command!r} did not end within {LONGEST_COMMAND:g} s; let it start what takes longer"
        ) from error
    if done.returncode:
        raise InvalidSetting(
            f"on_alarm = {command!r} ended with code {done.returncode}; it must exit with 0 on success"
        )


class Alarms:
    """Tells a program of every verdict that changes, until it was told.

    Parameters
    ----------
    tell
        Called with an alarm; None tells nobody.
    told
        The verdict of each stream that was told before.
    """

    def __init__(self, tell: OnAlarm | None, told: Mapping[str, str] | None = None) -> None:
        self.tell = tell
        self.told = dict(told or {})
        self.undelivered: dict[str, str] = {}
        """Why the program could not be told of a stream, if it could not."""
        self.waits: dict[str, Wait] = {}

    def due(self, verdicts: Mapping[str, str], *, at_once: bool) -> list[str]:
        """Return the streams whose verdict is to be told now: not again right after it failed."""
        if self.tell is None:
            return []
        untold = [stream for stream, verdict in verdicts.items() if self.told.get(stream) != verdict]
        waits = [self.waits.setdefault(stream, Wait()) for stream in untold]
        return [one for one, wait in zip(untold, waits, strict=True) if at_once or not wait.is_too_early()]

    def deliver(self, stream: str, verdict: str, alarm: dict[str, Any]) -> str:
        """Tell it; return what to say if that failed, and was not said before."""
        assert self.tell is not None  # noqa: S101  (nothing is due otherwise)
        try:
            self.tell(alarm)
        except InvalidSetting as error:
            before, self.undelivered[stream] = self.undelivered.get(stream), str(error)
            self.waits[stream].prolong()
            return "" if before == str(error) else f"{error}; the alarm is not delivered yet"
        self.undelivered.pop(stream, None)
        del self.waits[stream]
        self.told[stream] = verdict
        return ""


@dataclass
class Wait:
    """How long to leave a program alone that could not be told of an alarm: it may hang, or page somebody."""

    seconds: float = 1.0
    until: float = 0.0

    def is_too_early(self) -> bool:
        """Return whether to pass over it for now."""
        return time.monotonic() < self.until

    def prolong(self) -> None:
        """Wait, and the next time twice as long, for at most five minutes."""
        self.until = time.monotonic() + self.seconds
        self.seconds = min(2 * self.seconds, 300.0)
