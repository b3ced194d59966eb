"""MCAP logs (extra ``mcap``): the messages of one topic, in JSON or as ROS 2 writes them (CDR)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from boundwatch.episodes.declared import DEFAULTS, Declared, short
from boundwatch.episodes.words import normal
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingExtra, Place
from boundwatch.readers.table import Row, Rows, Table, damaged, in_parts

_NEEDS = "publish the cost on a topic of JSON objects or ROS 2 messages"


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read one topic: one row per message, in the order of their log times.

    Columns are called ``/topic.field``, with further dots for nested fields; a field alone is enough where
    one topic has it.
    """
    topics = _topics(file, source)
    first = {topic: tuple(next(_messages(file, topic, source), ())) for topic in topics}
    fields = {topic: names for topic, names in first.items() if names}
    if not fields:
        listed = ", ".join(f"{topic} ({encoding})" for topic, encoding in list(topics.items())[:5])
        problem = f"no field of {listed or 'any topic'} can be read"
        raise InvalidCost(problem, where=Place(source), remedy=_NEEDS)
    topic = _choose(fields, declared, source)
    names = fields[topic]
    rows = Rows(declared, source, "message")
    rows.open(names, named=False)

    def messages() -> Iterator[Row]:
        number = 0
        for number, cells in enumerate(_messages(file, topic, source), start=1):
            if missing := [name for name in (*rows.wanted, *rows.questions) if name not in cells]:
                where = rows.place(number, missing[0])
                raise InvalidCost("is missing", where=where, remedy="every message needs it")
            yield number, list(map(cells.get, names))
        table.notes.append(f"topic {topic}, {number} messages")

    table = rows.table("mcap", map(rows.keep, in_parts(messages())))
    return table


def _choose(fields: dict[str, tuple[str, ...]], declared: Declared, source: str) -> str:
    """Return the topic that has what is read."""
    column = None if declared.measure is None else declared.measure.column
    wish = {normal(column)} if column else set(DEFAULTS)
    column = column or (None if declared.certified is None else declared.certified.column)
    found = [topic for topic, names in fields.items() if column in names or f"/{column}" in names]
    for topic, names in fields.items() if not found else ():
        found += [topic] if wish & set(map(short, names)) else []
    if len(found) == 1:
        return found[0]
    offered = ", ".join([name for topic in found or fields for name in fields[topic]][:8])
    problem = f"has {'several topics' if found else 'no topic'} with {column or 'an outcome'}"
    raise InvalidSetting(problem, where=Place(source), remedy=f"name one of {offered}")


def _reader(file: IO[bytes], source: str) -> Any:
    try:
        from mcap.reader import make_reader
    except ImportError as error:
        raise MissingExtra("reading MCAP", "mcap") from error
    file.seek(0)
    try:
        return make_reader(file, validate_crcs=True)
    except Exception as error:  # the library trusts what it reads, and fails wherever damage leads it
        raise damaged(source, "MCAP", "fetch or record it again") from error


def _topics(file: IO[bytes], source: str) -> dict[str, str]:
    """Return the topics with their encodings, from the summary or, without one, from all messages."""
    reader = _reader(file, source)
    try:
        summary = reader.get_summary()
        channels = list(summary.channels.values()) if summary is not None else []
        channels = channels or [channel for _, channel, _ in reader.iter_messages()]
        return {channel.topic: channel.message_encoding for channel in channels}
    except Exception as error:
        raise damaged(source, "MCAP", "repair it with: mcap recover") from error


def _messages(file: IO[bytes], topic: str, source: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each message, called ``/topic.field``; nothing for an encoding that is not read."""
    from mcap_ros2.decoder import DecoderFactory

    ros2 = DecoderFactory()
    try:
        for schema, channel, message in _reader(file, source).iter_messages(topics=[topic]):
            encoding = channel.message_encoding
            decode: Any = json.loads if encoding == "json" else ros2.decoder_for(encoding, schema)
            if decode is None:
                return
            yield dict(_fields(decode(message.data), f"/{topic.removeprefix('/')}."))
    except (BoundwatchError, GeneratorExit):
        raise
    except Exception as error:
        raise damaged(source, "MCAP", "repair it with mcap recover, or record it again") from error


def _fields(message: object, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield what a message holds except lists, with nested names joined by dots."""
    items: Any = message.items() if isinstance(message, dict) else ()
    if slots := getattr(type(message), "__slots__", None):  # a message of ROS 2
        items = [(name, getattr(message, name)) for name in slots]
    for name, value in items:
        if value is None or isinstance(value, str | int | float):
            yield f"{prefix}{name}", value
        else:
            yield from _fields(value, f"{prefix}{name}.")
