"""What is sent to the server and what it answers: types by which requests are checked and OpenAPI is made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from boundwatch._support import schema
from boundwatch.errors import InvalidSetting

MOST_EPISODES = 1000
LONGEST_NAME = 100
LONGEST_EPISODE = 200
MOST_META = 4096
DEEPEST_META = 20
_UNSEEN = r"\x7f-\x9f\u2028-\u202e\u2066-\u2069"  # signs of control, among them those that turn a text round
PRINTABLE = rf"^[^\x00-\x1f{_UNSEEN}]*$"

Kind = TypeVar("Kind")
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=r"^\w[\w.:@+ -]*(?<! )$(?!\n)")]
_LINES = rf"[^\x00-\x09\x0b-\x1f{_UNSEEN}]*$"
Reason = Annotated[str, Meta(max_length=500, pattern=f"^{_LINES}")]
Needed = Annotated[str, Meta(min_length=1, max_length=500, pattern=rf"^(?=\s*\S){_LINES}")]
Count = Annotated[int, Meta(ge=0)]
Detector = Literal["sequential-test", "change-detector", "judged-test"]

_NAMED = (
    "is not a valid name",
    f"use 1 to {LONGEST_NAME} letters, digits, spaces or any of _ . : @ + -; begin with a letter or digit",
)
_TEXT = "is not valid", "give 1 to 500 printable characters"
_LEVEL = "is not a level", "give a number above 0 and below 1"
_RULES = {
    "stream": _NAMED,
    "streams": _NAMED,
    "name": _NAMED,
    "episode": (
        "is not a valid id",
        f"give each episode of a stream its own, of 1 to {LONGEST_EPISODE} printable characters, and repeat "
        "it when you send the episode again",
    ),
    "cost": (
        "is not a number from 0 to 1",
        "rescale it: 0 is best, 1 is worst; for true or false send success",
    ),
    "success": ("is not true or false", "send either"),
    "time": ("is not a time", "send 2026-11-16T08:30:00Z or seconds since 1970"),
    "meta": ("is not an object", "send one, or leave it out"),
    "certificate": ("is not valid", "name a certificate, or send its JSON object to upload it"),
    "reason": _TEXT,
    "alpha_adverse": _LEVEL,
    "alpha_benign": _LEVEL,
    "public_url": ("is not an address", "give https://name"),
}
"""What is wrong with a value that its type does not allow, and what to do, by the name of the field."""


_Whole = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Episode(Struct, frozen=True, forbid_unknown_fields=True):
    """One episode, as robots report it: with its cost, or whether it succeeded."""

    stream: Name
    episode: Annotated[str, Meta(min_length=1, max_length=LONGEST_EPISODE)] | _Whole
    cost: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    success: bool | UnsetType = UNSET
    time: Annotated[float, Meta(ge=0, lt=1e11)] | str | None = None
    meta: dict[str, Any] | None = None


Episodes = Annotated[list[Episode], Meta(min_length=1, max_length=MOST_EPISODES)]


class Upload(Struct, frozen=True, forbid_unknown_fields=True):
    """A certificate, and how it is to be called."""

    name: Name
    certificate: dict[str, Any]


class Bind(Struct, frozen=True, forbid_unknown_fields=True):
    """Streams, and what they are to be watched with."""

    streams: Annotated[list[Name], Meta(min_length=1, max_length=1000)]
    certificate: Needed
    detector: Detector = "sequential-test"
    alpha_adverse: schema.Level | None = None
    alpha_benign: schema.Level | None = None
    reason: Reason = ""
    new_generation: bool = False


class Label(Struct, frozen=True, forbid_unknown_fields=True):
    """What people say of an episode that a machine judged."""

    episode: Annotated[str, Meta(min_length=1, max_length=LONGEST_EPISODE)] | _Whole
    cost: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    success: bool | UnsetType = UNSET


class Acknowledge(Struct, frozen=True, forbid_unknown_fields=True):
    """Why an alarm needs nobody any more."""

    reason: Needed


class Problem(Struct):
    """What is said of what is refused (RFC 9457); `detail` says what is wrong, where, and what to do."""

    type: str
    title: str
    status: int
    detail: str


class Refused(InvalidSetting):
    """A request that cannot be taken, with its HTTP status; any other refusal has 422."""

    def __init__(self, status: int, problem: str, **fields: Any) -> None:
        super().__init__(problem, **fields)
        self.status = status


class Report(NamedTuple):
    """One episode as it is counted."""

    stream: str
    episode: str
    cost: float
    time: float | None
    meta: str | None
    labels: tuple[int, int] | None = None
    """Of which watch and episode it is the label, if it is one."""


def check(
    kind: type[Kind], content: object, where: str = "", *, field: str = "", strict: bool = True
) -> Kind:
    """Return plain values as an instance of a type, or refuse by path, value and what to send instead.

    `where` is what the content is called, `field` by which name to look up what is allowed, if not by the
    last in the path. Unless `strict`, numbers and truth values are made of text.
    """
    try:
        return msgspec.convert(content, kind, strict=strict)
    except msgspec.ValidationError as error:
        found = schema.mismatch(str(error), content, where)
    name = found.name or "the body"
    problem, remedy = _RULES.get(field or re.sub(r".*[. ]|\[\d+\]", "", name), (found.problem, ""))
    if found.problem in ("is missing", "is not known"):
        problem = found.problem
        known = kind if isinstance(kind, type) and issubclass(kind, Struct) else Episode  # or a list of them
        if problem == "is not known":
            remedy = f"known are {', '.join(known.__struct_fields__)}"
    raise InvalidSetting(problem, name=name, value=found.value, remedy=remedy)


def parse_reports(content: object) -> list[Report]:
    """Return the reports of a request, one episode or a list of them; if one is not valid, none counts."""
    if isinstance(content, list):
        listed = check(Episodes, content, "episodes")
        return [_report(each, f"episodes[{index}].") for index, each in enumerate(listed)]
    return [_report(check(Episode, content), "")]


def _report(sent: Episode, where: str) -> Report:
    episode = str(sent.episode)
    if not episode.isprintable():
        problem, remedy = _RULES["episode"]
        raise InvalidSetting(problem, name=f"{where}episode", value=episode, remedy=remedy)
    time = sent.time if sent.time is None else _seconds(sent.time, where)
    meta = None if sent.meta is None else _meta(sent.meta, where)
    return Report(sent.stream, episode, cost_of(sent, where), time, meta)


def cost_of(sent: Episode | Label, where: str = "") -> float:
    """Return the cost that somebody gave as one, or as success."""
    if (sent.cost is UNSET) == (sent.success is UNSET):
        raise InvalidSetting(f"{where}cost and {where}success: send exactly one of the two")
    return float(not sent.success) if isinstance(sent.cost, UnsetType) else sent.cost + 0.0  # -0.0 is 0


def _seconds(value: float | str, where: str) -> float:
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = -1.0
    if not 0 <= seconds < 1e11:
        problem, remedy = _RULES["time"]
        raise InvalidSetting(problem, name=f"{where}time", value=value, remedy=remedy)
    return seconds


def _meta(value: Mapping[str, Any], where: str) -> str:
    try:
        if _is_deep(value):
            raise ValueError(f"it is nested deeper than {DEEPEST_META}")
        text = json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        reason = "half a character" if isinstance(error, UnicodeEncodeError) else error
        problem, remedy = f"cannot be kept as JSON, {reason}", "send plain values"
        raise InvalidSetting(problem, name=f"{where}meta", remedy=remedy) from error
    if len(text) > MOST_META or "\\u0000" in text:  # PostgreSQL keeps no zero characters
        problem = f"is longer than {MOST_META} characters or holds a zero character"
        raise InvalidSetting(problem, name=f"{where}meta", remedy="keep it short")
    return text


def _is_deep(value: object, left: int = DEEPEST_META) -> bool:
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return left == 0 or any(_is_deep(each, left - 1) for each in inner)


def is_address(text: str) -> bool:
    """Return whether a text is the whole address of something that speaks HTTP."""
    try:
        parts = urlsplit(text)
        is_complete = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its port is not a number, or it has half the brackets of an IPv6 address
        return False
    return is_complete and text.isascii() and text.isprintable() and " " not in text
