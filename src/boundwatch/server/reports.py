"""What robots send: checked field by field before anything is counted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from boundwatch.errors import InvalidSetting

MOST_EPISODES = 1000
LONGEST_NAME = 100
LONGEST_EPISODE = 200
MOST_META = 4096
DEEPEST_META = 20
_NAME = re.compile(rf"\w[\w.:@+ -]{{0,{LONGEST_NAME - 1}}}")
_FIELDS = ("stream", "episode", "cost", "success", "time", "meta")


class Report(NamedTuple):
    """One episode as it was reported."""

    stream: str
    episode: str
    cost: float
    time: float | None
    meta: str | None


def check_stream(value: object, field: str = "stream") -> str:
    """Return the name of a stream, or say what is wrong with it.

    Examples
    --------
    >>> check_stream("arm-1")
    'arm-1'
    >>> check_stream("<b>")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: stream = '<b>' is not a valid name; use 1 to 100 letters, ...
    """
    if isinstance(value, str) and _NAME.fullmatch(value) and not value.endswith(" "):
        return value
    raise InvalidSetting(
        f"{field} = {shown(value)} is not a valid name; use 1 to {LONGEST_NAME} letters, digits, spaces or "
        "any of _ . : @ + -, and begin with a letter or digit"
    )


def parse_reports(content: object) -> list[Report]:
    """Return the reports of a request: one object, a list of them, or ``{"episodes": [...]}``.

    Raises
    ------
    InvalidSetting
        When one of them is not valid; none counts then.

    Examples
    --------
    >>> parse_reports({"stream": "arm-1", "episode": "7", "success": False})[0].cost
    1.0
    >>> parse_reports([{"stream": "arm-1", "episode": "7", "cost": 1.4}])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: episodes[0].cost = 1.4 is outside [0, 1]; rescale it: 0 is best, ...
    """
    if isinstance(content, Mapping) and "episodes" in content:
        if unknown := [name for name in content if name != "episodes"]:
            raise InvalidSetting(f"{shown(unknown[0])} is unknown beside 'episodes'; leave it out")
        content = content["episodes"]
        if not isinstance(content, list):
            raise InvalidSetting(f"episodes = {shown(content)} is not a list; send a list of episodes")
    if isinstance(content, Mapping):
        return [_report(content, "")]
    if not isinstance(content, list):
        raise InvalidSetting(
            f"the body = {shown(content)} is neither an episode nor a list; "
            'send {"stream": …, "episode": …, "cost": …} or a list of these'
        )
    if not 1 <= len(content) <= MOST_EPISODES:
        raise InvalidSetting(f"episodes has {len(content)} entries; send 1 to {MOST_EPISODES} per request")
    return [_report(entry, f"episodes[{index}].") for index, entry in enumerate(content)]


def shown(value: object) -> str:
    """Return a value for an error message, cut short."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _report(entry: object, where: str) -> Report:
    if not isinstance(entry, dict):
        raise InvalidSetting(f"{where.rstrip('.')} = {shown(entry)} is not an object; send one per episode")
    for name in entry:
        if name not in _FIELDS:
            raise InvalidSetting(
                f"{where}{str(name)[:40]} is unknown; known are {', '.join(_FIELDS)}; put the rest into meta"
            )
    episode = entry.get("episode")
    if isinstance(episode, int) and not isinstance(episode, bool):
        episode = str(episode)
    if not (isinstance(episode, str) and 1 <= len(episode) <= LONGEST_EPISODE and episode.isprintable()):
        raise InvalidSetting(
            f"{where}episode = {shown(episode)} is not a valid id; give each episode of a stream its own, of "
            f"1 to {LONGEST_EPISODE} printable characters, and repeat it when you send the episode again"
        )
    return Report(
        check_stream(entry.get("stream"), f"{where}stream"),
        episode,
        _cost(entry, where),
        _time(entry.get("time"), where),
        _meta(entry.get("meta"), where),
    )


def _cost(entry: Mapping[str, Any], where: str) -> float:
    if ("cost" in entry) == ("success" in entry):
        raise InvalidSetting(f"{where}cost and {where}success: send exactly one of the two")
    if "success" in entry:
        success = entry["success"]
        if not isinstance(success, bool):
            raise InvalidSetting(f"{where}success = {shown(success)} is not true or false; send either")
        return 0.0 if success else 1.0
    cost = entry["cost"]
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        remedy = "send success instead" if isinstance(cost, bool) else "send a number from 0 to 1"
        raise InvalidSetting(f"{where}cost = {shown(cost)} is not a number; {remedy}")
    if not 0 <= cost <= 1:
        raise InvalidSetting(
            f"{where}cost = {shown(cost)} is outside [0, 1]; rescale it: 0 is best, 1 is worst"
        )
    return float(cost) + 0.0  # -0.0 is 0


def _time(value: object, where: str) -> float | None:
    if value is None:
        return None
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11:
        seconds = float(value)
    elif isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            seconds = None
    if seconds is None or not 0 <= seconds < 1e11:
        raise InvalidSetting(
            f"{where}time = {shown(value)} is not a time; send 2026-11-16T08:30:00Z or seconds since 1970"
        )
    return seconds


def _meta(value: object, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidSetting(f"{where}meta = {shown(value)} is not an object; send one, or leave it out")
    try:
        if _is_deep(value):
            raise ValueError(f"it is nested deeper than {DEEPEST_META}")
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        reason = "half a character" if isinstance(error, UnicodeEncodeError) else error
        raise InvalidSetting(f"{where}meta cannot be kept as JSON, {reason}; send plain values") from error
    if len(text) > MOST_META or "\\u0000" in text:  # PostgreSQL keeps no zero characters
        raise InvalidSetting(
            f"{where}meta is longer than {MOST_META} characters or holds a zero character; keep it short"
        )
    return text


def _is_deep(value: object, left: int = DEEPEST_META) -> bool:
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return left == 0 or any(_is_deep(each, left - 1) for each in inner)
