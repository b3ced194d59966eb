"""MCAP logs written by the mcap library itself, with JSON and ROS 2 messages, and damaged ones."""

import json
import sys

import pytest
from mcap.writer import CompressionType, IndexType, Writer
from mcap_ros2.writer import Writer as Ros2Writer

from boundwatch.readers import read_costs
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra

RESULTS = [
    {"success": True, "task": "pick", "detail": {"clearance": 0.0}},
    {"success": False, "task": "place", "detail": {"clearance": 0.1}},
    {"success": True, "task": "pick", "detail": {"clearance": 0.2}},
    {"success": True, "task": "place", "detail": {"clearance": 0.3}},
]
# Two episodes, interleaved as two robots would.
STEPS = [
    {"episode": number % 2, "cost": cost, "reward": 1.0} for number, cost in enumerate([0.1, 0.6, 0.3, 0.2])
]


def write_log(path, topics, encoding="json", compression=CompressionType.ZSTD, **options):
    with path.open("wb") as file:
        writer = Writer(file, compression=compression, **options)
        writer.start()
        schema = writer.register_schema("episode", "jsonschema", b'{"type": "object"}')
        for topic, messages in topics.items():
            channel = writer.register_channel(topic, encoding, schema)
            for time, message in enumerate(messages):
                data = message if isinstance(message, bytes) else json.dumps(message).encode()
                writer.add_message(channel, log_time=time, publish_time=time, data=data)
        writer.finish()
    return path


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "log.mcap", {"/episode/result": RESULTS, "/camera/info": [{"fps": 30}]})


@pytest.mark.parametrize("column", [None, "success", "/episode/result.success"])
@pytest.mark.parametrize("forced", [None, "mcap"])
def test_one_message_an_episode(log, column, forced):
    episodes = read_costs(log, success=column, file_format=forced)
    assert episodes.costs.tolist() == [0, 1, 0, 0]
    assert (episodes.file_format, episodes.column, episodes.binary) == ("mcap", "success", True)
    assert episodes.detail == "topic /episode/result, 4 messages"


def test_nested_fields_and_tasks(log):
    episodes = read_costs(log, cost="/episode/result.detail.clearance", by="task")
    assert episodes.costs == pytest.approx([0, 0.1, 0.2, 0.3])
    assert episodes.tasks == ("pick", "place", "pick", "place")


@pytest.mark.parametrize(
    ("reduce", "costs"), [("mean", [0.2, 0.4]), ("max", [0.3, 0.6]), ("last", [0.3, 0.2])]
)
def test_many_messages_an_episode(tmp_path, reduce, costs):
    path = write_log(tmp_path / "log.mcap", {"/steps": STEPS})
    read = read_costs(path, cost="/steps.cost", episode="episode", reduce=reduce)
    assert read.costs == pytest.approx(costs)
    assert read_costs(path, reward="reward", episode="episode", cost_range=(0, 4)).costs.tolist() == [
        0.5,
        0.5,
    ]


@pytest.mark.parametrize("compression", CompressionType)
@pytest.mark.parametrize("index", [IndexType.ALL, IndexType.NONE], ids=["index", "no index"])
@pytest.mark.parametrize("chunks", [True, False], ids=["chunks", "no chunks"])
def test_every_way_to_write_a_log(tmp_path, compression, index, chunks):
    path = tmp_path / "log.mcap"
    write_log(path, {"/a": RESULTS}, compression=compression, index_types=index, use_chunking=chunks)
    assert read_costs(path).costs.tolist() == [0, 1, 0, 0]


def test_a_log_without_summary(tmp_path):
    path = tmp_path / "log.mcap"
    parts = ("use_statistics", "use_summary_offsets", "repeat_channels", "repeat_schemas")
    write_log(path, {"/a": RESULTS}, index_types=IndexType.NONE, **dict.fromkeys(parts, False))
    assert read_costs(path).costs.tolist() == [0, 1, 0, 0]


def test_ros2_messages(tmp_path):
    path = tmp_path / "bag.mcap"
    definition = (
        "bool success\nstring task\nbench/Detail detail\n================\nMSG: bench/Detail\nfloat64 force"
    )
    with path.open("wb") as file:
        writer = Ros2Writer(file)
        schema = writer.register_msgdef("bench/msg/Result", definition)
        for time, success in enumerate([True, False, True]):
            message = {"success": success, "task": "pick", "detail": {"force": 0.25 * time}}
            writer.write_message("/result", schema, message, log_time=time, publish_time=time)
        writer.finish()
    assert read_costs(path, by="task").costs.tolist() == [0, 1, 0]
    assert read_costs(path, cost="/result.detail.force").costs.tolist() == [0, 0.25, 0.5]


def test_from_standard_input(log, monkeypatch):
    with log.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": file}))
        assert read_costs("-").costs.tolist() == [0, 1, 0, 0]


UNCLEAR = {
    "no such field": (
        {"success": "/episode/result.speed"},
        "has no field 'speed' in /episode/result; choose one of",
    ),
    "no such topic": (
        {"success": "/other.success"},
        "has no field '/other.success'; choose one of /episode/result",
    ),
    "no such task": ({"by": "robot"}, "has no column 'robot'; choose one with by=.*--by NAME.*success .True"),
    "reduce alone": ({"reduce": "max"}, "reduce needs episode"),
    "no such rule": (
        {"episode": "task", "reduce": "median"},
        "reduce = 'median' is unknown; choose one of any, sum",
    ),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_unclear_choices_are_refused(log, case):
    options, fault = UNCLEAR[case]
    with pytest.raises(InvalidSetting, match=fault):
        read_costs(log, **options)


def test_fields_of_two_topics_are_not_confused(tmp_path):
    path = write_log(tmp_path / "log.mcap", {"/left": RESULTS, "/right": RESULTS[:2]})
    with pytest.raises(
        InvalidSetting, match=r"more than one field called .* /left\.success, /right\.success"
    ):
        read_costs(path)
    assert read_costs(path, success="/right.success").costs.tolist() == [0, 1]


def test_messages_without_the_field_are_refused(tmp_path):
    path = write_log(tmp_path / "log.mcap", {"/a": [*RESULTS, {"task": "pick"}]})
    with pytest.raises(InvalidCost, match="message 5 of /a has no 'success'; every message needs one"):
        read_costs(path)
    path = write_log(tmp_path / "log.mcap", {"/a": [*RESULTS, {"success": "perhaps"}]})
    with pytest.raises(
        InvalidCost, match="message 5 of /a, field 'success' = 'perhaps' is not a word for success"
    ):
        read_costs(path)
    path = write_log(tmp_path / "log.mcap", {"/a": [*RESULTS, b'{"success": tr']})
    with pytest.raises(InvalidCost, match="message 5 of /a is not valid json"):
        read_costs(path)


def test_encodings_that_are_not_read(tmp_path):
    path = write_log(tmp_path / "log.mcap", {"/a": RESULTS}, encoding="protobuf")
    with pytest.raises(InvalidCost, match=r"no field of /a \(protobuf\) can be read; messages must be JSON"):
        read_costs(path)
    empty = write_log(tmp_path / "empty.mcap", {})
    with pytest.raises(InvalidCost, match="no field of any topic"):
        read_costs(empty)


def test_damaged_logs_are_refused(tmp_path, log):
    """Cut anywhere, or with any byte changed: never a traceback, never fewer episodes or other costs."""
    data, path = log.read_bytes(), tmp_path / "damaged.mcap"
    for end in range(8, len(data), 11):
        path.write_bytes(data[:end])
        with pytest.raises(InvalidCost, match=r"is damaged or cut short|can be read"):
            read_costs(path)
    outcomes = set()
    for place in range(8, len(data), 5):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            outcomes.add(tuple(read_costs(path).costs.tolist()))
        except (InvalidCost, InvalidSetting):
            outcomes.add("refused")
    assert outcomes <= {"refused", (0, 1, 0, 0)}
    assert "refused" in outcomes


def test_without_mcap_the_extra_is_named(log, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.reader", None)
    with pytest.raises(MissingExtra, match=r"pip install 'boundwatch\[mcap\]'"):
        read_costs(log)
