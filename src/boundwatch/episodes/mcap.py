"""MCAP logs (extra ``mcap``): the messages of one topic, in JSON or as ROS 2 writes them (CDR)."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from boundwatch.episodes.table import DEFAULTS, Table
from boundwatch.episodes.words import normal
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from mcap.reader import McapReader

MAGIC = b"\x89MCAP0\r\n"
"""The bytes that an MCAP file begins with."""


def read_mcap(opener: Callable[[], IO[bytes]], source: str, column: str | None) -> Table:
    """Read one topic: one row per message, in the order of their log times.

    Parameters
    ----------
    opener
        Opens the log from its beginning; called more than once, so that large logs need not fit into memory.
    source
        The file, for errors.
    column
        ``/topic.field``, with further dots for nested fields; or a field alone that one topic has; or a topic
        that has a single field. Left out, the only field called cost, success, is_success or reward. The
        table's columns are the fields of the topic, and its preferred one is the field chosen.
    """
    with _reading(opener, source) as reader:
        topics = _topics(reader)
        first = {topic: next(_messages(reader, topic, source), {}) for topic in topics}
    fields = {topic: list(message) for topic, message in first.items() if message}
    if not fields:
        raise InvalidCost(f"{source}: {_unreadable(topics)}")
    topic, field = _choose(fields, topics, column, source)

    @functools.cache
    def messages() -> list[dict[str, Any]]:
        with _reading(opener, source) as reader:
            return list(_messages(reader, topic, source))

    def values(name: str) -> list[Any]:
        for row, message in enumerate(messages()):
            if name not in message:
                raise InvalidCost(
                    f"{source}: message {row + 1} of {topic} has no {name!r}; every message needs one"
                )
        return [message[name] for message in messages()]

    return Table(
        fields[topic],
        True,
        values,
        place=lambda row, name: f"message {row + 1} of {topic}, field {name!r}",
        preferred=field,
        context=topic,
        detail=f"topic {topic}, {len(messages())} messages",
    )


def _choose(
    fields: dict[str, list[str]], topics: dict[str, str], column: str | None, source: str
) -> tuple[str, str]:
    if column is None:
        found = [(topic, name) for topic in fields for name in fields[topic] if normal(name) in DEFAULTS]
        wish = f"field called {', '.join(list(DEFAULTS)[:-1])} or {list(DEFAULTS)[-1]}"
    elif column in fields and len(fields[column]) == 1:
        return column, fields[column][0]
    elif known := [topic for topic in topics if column.startswith(f"{topic}.")]:
        topic = max(known, key=len)
        if topic not in fields:
            raise InvalidSetting(f"{source}: {_unreadable({topic: topics[topic]})}")
        name = column.removeprefix(f"{topic}.")
        found = [(topic, name)] if name in fields[topic] else []
        wish = f"field {name!r} in {topic}"
    else:
        found = [
            (topic, name) for topic in fields for name in fields[topic] if normal(name) == normal(column)
        ]
        wish = f"field {column!r}"
    if len(found) == 1:
        return found[0]
    offered = [f"{topic}.{name}" for topic, name in found or [(t, n) for t in fields for n in fields[t]]]
    shown = ", ".join(offered[:8]) + (", ..." if len(offered) > 8 else "")
    raise InvalidSetting(
        f"{source}: has {'more than one' if found else 'no'} {wish}; choose one of {shown} and say what "
        f"it is: "
        "success=, cost= or reward= (--success, --cost, --reward)"
    )


def _unreadable(topics: dict[str, str]) -> str:
    listed = ", ".join(f"{topic} ({encoding})" for topic, encoding in list(topics.items())[:5])
    return (
        f"no field of {listed or 'any topic'} can be read; messages must be JSON objects or ROS 2 messages "
        "with numbers, so publish the cost on such a topic"
    )


@contextmanager
def _reading(opener: Callable[[], IO[bytes]], source: str) -> Iterator[McapReader]:
    try:
        from mcap.exceptions import McapError
        from mcap.reader import make_reader
        from zstandard import ZstdError
    except ImportError as error:
        raise MissingExtra("reading MCAP", "mcap") from error
    try:
        with opener() as stream:
            yield make_reader(stream, validate_crcs=True)
    except BoundwatchError:
        raise
    # The library trusts what it reads, so that a damaged file fails wherever the damage leads it.
    except (McapError, ZstdError, OSError, EOFError, ValueError, LookupError, RuntimeError) as error:
        raise _damaged(source) from error
    except (TypeError, AttributeError, OverflowError, MemoryError, AssertionError, struct.error) as error:
        raise _damaged(source) from error


def _damaged(source: str) -> InvalidCost:
    return InvalidCost(f"{source}: the MCAP data is damaged or cut short; repair it with: mcap recover")


def _topics(reader: McapReader) -> dict[str, str]:
    """Return the topics with their encodings, from the summary or, without one, from all messages."""
    summary = reader.get_summary()
    if summary is not None and summary.channels:
        channels = list(summary.channels.values())
    else:
        channels = [channel for _, channel, _ in reader.iter_messages()]
    return {channel.topic: channel.message_encoding for channel in channels}


def _messages(reader: McapReader, topic: str, source: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each message; nothing for an encoding that is not read."""
    from mcap_ros2.decoder import DecoderFactory

    ros2 = DecoderFactory()
    for row, (schema, channel, message) in enumerate(reader.iter_messages(topics=[topic])):
        decode: Callable[[bytes], Any] | None = ros2.decoder_for(channel.message_encoding, schema)
        if channel.message_encoding == "json":
            decode = json.loads
        if decode is None:
            return
        try:
            yield dict(_fields(decode(message.data)))
        except (ValueError, RecursionError, struct.error) as error:
            raise InvalidCost(
                f"{source}: message {row + 1} of {topic} is not valid {channel.message_encoding}; "
                "take it out, or record the log again"
            ) from error


def _fields(message: object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a message holds except lists, with nested names joined by dots."""
    if isinstance(message, dict):
        items = list(message.items())
    elif slots := getattr(type(message), "__slots__", None):  # a message of ROS 2
        items = [(name, getattr(message, name)) for name in slots]
    else:
        items = []
    for name, value in items:
        if value is None or isinstance(value, str | int | float):
            yield f"{prefix}{name}", value
        else:
            yield from _fields(value, f"{prefix}{name}.")
