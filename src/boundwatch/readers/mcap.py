"""MCAP logs (extra ``mcap``): the messages of one topic, in JSON or as ROS 2 writes them (CDR)."""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Callable, Iterator
from typing import IO, Any

from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import DEFAULTS, Declared
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingExtra, Place
from boundwatch.readers.block import Block, Table, damaged
from boundwatch.readers.rows import Row, Rows, in_blocks

_NEEDS = "publish the cost on a topic of JSON objects or ROS 2 messages"


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read one topic: one row per message, in the order of their log times.

    Columns are called ``/topic.field``, with further dots for nested fields; a field alone is enough where
    one topic has it.
    """
    topics = _topics(file, source)
    first = {topic: next(_messages(file, topic, source), {}) for topic in topics}
    fields = {topic: tuple(message) for topic, message in first.items() if message}
    if not fields:
        listed = ", ".join(f"{topic} ({encoding})" for topic, encoding in list(topics.items())[:5])
        problem = f"no field of {listed or 'any topic'} can be read"
        raise InvalidCost(problem, where=Place(source), remedy=_NEEDS)
    topic = _choose(fields, declared, source)
    names = tuple(f"{topic}.{field}" for field in fields[topic])
    given, declared = declared.design.columns, _named_fully(declared, topic, fields[topic])
    known = [name for name in fields[topic] if normal(name) in DEFAULTS]
    alias = {f"{topic}.{name}": name for name in known} if declared.measure is None else {}
    measure = declared.resolve([alias.get(name, name) for name in names])
    full = next((name for name, short in alias.items() if short == measure.column), measure.column)
    measure = dataclasses.replace(measure, column=full)
    rows = Rows(names, declared, measure, source, "message", named=False)
    table = Table(source, "mcap", names, measure, iter(()))
    table.located = dict(zip(given, declared.locate(names).values(), strict=True))

    def messages() -> Iterator[Row]:
        for number, message in enumerate(_messages(file, topic, source), start=1):
            cells = {f"{topic}.{name}": value for name, value in message.items()}
            if missing := [name for name in (*rows.wanted, *rows.asked) if name not in cells]:
                where = rows.place(number, missing[0])
                raise InvalidCost("is missing", where=where, remedy="every message needs it")
            yield number, [cells.get(name) for name in names]

    def blocks() -> Iterator[Block]:
        yield from in_blocks(messages(), rows.keep)
        table.notes.append(f"topic {topic}, {rows.counted} messages")

    table.blocks = blocks()
    return table


def _choose(fields: dict[str, tuple[str, ...]], declared: Declared, source: str) -> str:
    """Return the topic that has what is read."""
    column = None if declared.measure is None else declared.measure.column
    column = column or (None if declared.certified is None else declared.certified.column)
    full = {f"{topic}.{name}": topic for topic, names in fields.items() for name in names}
    if column in full:
        return full[column]
    wish = {normal(column)} if column and declared.measure else set(DEFAULTS)
    found = [topic for topic, names in fields.items() if wish & set(map(normal, names))]
    if len(found) == 1:
        return found[0]
    offered = ", ".join([name for name, topic in full.items() if not found or topic in found][:8])
    problem = f"has {'several topics' if found else 'no topic'} with {column or 'an outcome'}"
    remedy = f"name one of {offered}"
    raise InvalidSetting(problem, where=Place(source), remedy=remedy)


def _named_fully(declared: Declared, topic: str, fields: tuple[str, ...]) -> Declared:
    """Return what was declared with the full name of every field."""
    known = {normal(name): f"{topic}.{name}" for name in fields}
    design, measure = declared.design, declared.measure
    full = {column: known.get(normal(column), column) for column in declared.columns}
    renamed: dict[str, Any] = {argument: full[column] for argument, column in design.named}
    renamed["pair_by"] = tuple(full[column] for column in design.pair_by)
    renamed["where"] = {full[column]: value for column, value in design.where.items()}
    if measure is not None and measure.column is not None:
        measure = dataclasses.replace(measure, column=full[measure.column])
    return dataclasses.replace(declared, measure=measure, design=dataclasses.replace(design, **renamed))


def _reader(file: IO[bytes]) -> Any:
    try:
        from mcap.reader import make_reader
    except ImportError as error:
        raise MissingExtra("reading MCAP", "mcap") from error
    file.seek(0)
    return make_reader(file, validate_crcs=True)


def _topics(file: IO[bytes], source: str) -> dict[str, str]:
    """Return the topics with their encodings, from the summary or, without one, from all messages."""
    try:
        reader = _reader(file)
        summary = reader.get_summary()
        channels = list(summary.channels.values()) if summary is not None else []
        channels = channels or [channel for _, channel, _ in reader.iter_messages()]
        return {channel.topic: channel.message_encoding for channel in channels}
    except (BoundwatchError, ImportError):
        raise
    except Exception as error:  # the library trusts what it reads, and fails wherever damage leads it
        raise damaged(source, "MCAP", "repair it with: mcap recover") from error


def _messages(file: IO[bytes], topic: str, source: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each message; nothing for an encoding that is not read."""
    from mcap_ros2.decoder import DecoderFactory

    ros2 = DecoderFactory()
    number = 0
    try:
        for schema, channel, message in _reader(file).iter_messages(topics=[topic]):
            number += 1
            decode: Callable[[bytes], Any] | None = ros2.decoder_for(channel.message_encoding, schema)
            decode = json.loads if channel.message_encoding == "json" else decode
            if decode is None:
                return
            yield dict(_fields(decode(message.data)))
    except (BoundwatchError, GeneratorExit):
        raise
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError, struct.error) as error:
        where = Place(source, "message", number, topic)
        raise InvalidCost("is not valid", where=where, remedy="record the log again") from error
    except Exception as error:
        raise damaged(source, "MCAP", "repair it with: mcap recover") from error


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
