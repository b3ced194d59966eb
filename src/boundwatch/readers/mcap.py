"""MCAP logs (extra ``mcap``): the messages of one topic, in JSON or as ROS 2 writes them (CDR)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import DEFAULTS, Declared, short
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra, Place
from boundwatch.readers.table import Row, Rows, Table, in_parts
from boundwatch.readers.text import fields


def read(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read one topic: one row per message, in the order of their log times.

    Columns are called ``/topic.field``, with further dots for nested fields; a field alone is enough where
    one topic has it.
    """
    topics = _topics(file)
    first = {topic: tuple(next(_messages(file, topic), ())) for topic in topics}
    offered = {topic: names for topic, names in first.items() if names}
    if not offered:
        problem = f"no field of {', '.join(topics[:5]) or 'any topic'} can be read"
        needs = "publish the cost on a topic of JSON objects or ROS 2 messages"
        raise InvalidCost(problem, where=Place(source), remedy=needs)
    topic = _choose(offered, declared, source)
    rows = Rows(declared, source, "message")
    rows.open(offered[topic], named=False)

    def messages() -> Iterator[Row]:
        number = 0
        for number, cells in enumerate(_messages(file, topic), start=1):
            if missing := [name for name in (*rows.wanted, *rows.layout.questions) if name not in cells]:
                where = rows.place(number, missing[0])
                raise InvalidCost("is missing", where=where, remedy="every message needs it")
            yield number, list(map(cells.get, rows.names))
        rows.notes.append(f"topic {topic}, {number} messages")

    rows.file_format, rows.blocks = "mcap", filter(None, map(rows.keep, in_parts(messages())))
    return rows


def _choose(offered: dict[str, tuple[str, ...]], declared: Declared, source: str) -> str:
    """Return the topic that has what is read."""
    column = None if declared.measure is None else declared.measure.column
    wish = {normal(column)} if column else set(DEFAULTS)
    column = column or (None if declared.certified is None else declared.certified.column)
    found = [topic for topic, names in offered.items() if column in names or f"/{column}" in names]
    found = found or [topic for topic, names in offered.items() if wish & set(map(short, names))]
    if len(found) == 1:
        return found[0]
    listed = ", ".join([name for topic in found or offered for name in offered[topic]][:8])
    problem = f"has {'several topics' if found else 'no topic'} with {column or 'an outcome'}"
    raise InvalidSetting(problem, where=Place(source), remedy=f"name one of {listed}")


def _reader(file: IO[bytes]) -> Any:
    try:
        from mcap.reader import make_reader
    except ImportError as error:
        raise MissingExtra("reading MCAP", "mcap") from error
    file.seek(0)
    return make_reader(file, validate_crcs=True)


def _topics(file: IO[bytes]) -> list[str]:
    """Return the topics from the summary or, without one, from all messages."""
    summary = (reader := _reader(file)).get_summary()
    channels = list(summary.channels.values()) if summary is not None else []
    channels = channels or [channel for _, channel, _ in reader.iter_messages()]
    return list(dict.fromkeys(channel.topic for channel in channels))


def _messages(file: IO[bytes], topic: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of each message, called ``/topic.field``; nothing for an encoding that is not read."""
    from mcap_ros2.decoder import DecoderFactory

    ros2 = DecoderFactory()
    for schema, channel, message in _reader(file).iter_messages(topics=[topic]):
        encoding = channel.message_encoding
        decode: Any = json.loads if encoding == "json" else ros2.decoder_for(encoding, schema)
        if decode is None:
            return
        yield dict(fields(_plain(decode(message.data)), f"/{topic.removeprefix('/')}."))


def _plain(message: Any) -> dict[str, Any]:
    """Return the fields of an object or of a message of ROS 2 that are no lists."""
    if not isinstance(message, dict):
        message = {name: getattr(message, name) for name in getattr(type(message), "__slots__", ())}
    kinds = (str, int, float, type(None))
    plain = {name: value if isinstance(value, kinds) else _plain(value) for name, value in message.items()}
    return {name: value for name, value in plain.items() if value != {}}
