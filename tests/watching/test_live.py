"""Streams: lines to costs, growing files, and states that belong to their source."""

import json
import threading
import time

import pytest

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.watching.live import Line, Watch, parse_line, read_lines, refuse_header

CERT = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


@pytest.mark.parametrize(
    ("text", "options", "cost"),
    [
        ("0.25\n", {}, 0.25),
        ("  1e-3 ", {}, 0.001),
        ('{"cost": 0.5, "id": "a"}', {}, 0.5),
        ('{"success": false}', {}, 1.0),
        ('{"gap": 3}', {"column": "gap", "cost_range": (0, 4)}, 0.75),
        ('{"reward": 3}', {"cost_range": (0, 4)}, 0.25),
    ],
)
def test_lines_that_hold_a_cost(text, options, cost):
    assert parse_line(text, **options) == cost
    assert parse_line(f"\ufeff{text}", **options) == cost


@pytest.mark.parametrize(
    "text",
    ["abc", "0.1,0.2", "1.5", "nan", "true", "[0.1]", '{"a": 1}', "{", '{"cost": null}', '"0.3"', "0x1"],
)
def test_lines_that_do_not(text):
    with pytest.raises(InvalidCost):
        parse_line(text)


def test_a_reward_without_its_range_is_a_wrong_setting():
    with pytest.raises(InvalidSetting, match="--cost-range"):
        parse_line('{"reward": 3}')
    with pytest.raises(InvalidSetting, match="may be better when it is higher"):
        parse_line('{"score": 1}', column="score")
    with pytest.raises(InvalidSetting, match="leave out cost_range"):
        parse_line('{"success": 1}', cost_range=(0, 1))


@pytest.mark.parametrize("text", ["success", "is_success", '"success"', "trial,success", "Episode Reward"])
def test_headers_are_refused_wherever_they_come(text):
    for first in (True, False):
        with pytest.raises(InvalidSetting, match=r"standard input: line 3 = .*; read a table .*--format csv"):
            refuse_header(Line(3, f"{text}\n", 9), "-", first=first)


def test_other_text_is_a_header_at_the_beginning_only():
    with pytest.raises(InvalidSetting, match="log: line 1 = 'abc' is neither"):
        refuse_header(Line(1, "abc\n", 4), "log", first=True)
    for text in ("abc\n", "error: no camera\n"):
        refuse_header(Line(2, text, 4), "log", first=False)
    for text in ("0.5", "1.4", "nan", '{"success": 1}', "\ufeff0.5"):
        refuse_header(Line(1, text, 4), "log", first=True)


def test_a_file_is_read_from_where_it_was_left(tmp_path):
    path = tmp_path / "log"
    path.write_text("0.1\n0.2\n0.3")
    lines = list(read_lines(str(path)))
    assert [(line.number, line.text.strip(), line.end) for line in lines] == [
        (1, "0.1", 4),
        (2, "0.2", 8),
        (3, "0.3", 11),
    ]
    assert [line.number for line in read_lines(str(path), start=4, number=1)] == [2, 3]
    with pytest.raises(InvalidSetting, match="shorter"):
        next(read_lines(str(path), start=50))
    with pytest.raises(InvalidSetting, match="cannot be read"):
        next(read_lines(str(tmp_path / "none")))


def test_a_growing_file_is_followed_line_by_whole_line(tmp_path):
    path = tmp_path / "log"
    path.write_text("0.1\n0.")

    def grow():
        for text in ("25", "\n", "0.5\n"):
            time.sleep(0.05)
            with path.open("a") as file:
                file.write(text)

    writer = threading.Thread(target=grow)
    writer.start()
    stream = read_lines(str(path), wait=True)
    assert [next(stream).text for _ in range(3)] == ["0.1\n", "0.25\n", "0.5\n"]
    writer.join()
    path.write_text("")
    with pytest.raises(InvalidSetting, match="became shorter"):
        next(stream)


def test_states_belong_to_a_certificate_and_a_source(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text("0.3\nx\n0.4\n")
    watch = Watch(bw.SequentialTest(CERT), str(log))
    watch.count(Line(1, "0.3\n", 4), 0.3)
    watch.skip(Line(2, "x\n", 6), malformed=True)
    watch.save(tmp_path / "s")
    again = Watch.load(tmp_path / "s", CERT, str(log))
    assert (again.lines, again.end, again.skipped, again.last_cost) == (2, 6, 1, 0.3)
    assert again.to_dict() == watch.to_dict()
    with pytest.raises(InvalidSetting, match="follows"):
        Watch.load(tmp_path / "s", CERT, "b.jsonl")
    other = bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01)
    with pytest.raises(ProvenanceMismatch, match=f"^{tmp_path / 's'}: the state belongs to certificate"):
        Watch.load(tmp_path / "s", other, str(log))
    for text in ("0.4\nx\n0.4\n", "0.3\ny\n0.4\n", "0.3\n", ""):
        log.write_text(text)
        with pytest.raises(
            InvalidSetting, match=f"^{tmp_path / 's'}: the 2 lines .* no longer .* new --state"
        ):
            Watch.load(tmp_path / "s", CERT, str(log))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "x"},
        {"version": 9},
        {"lines": -1},
        {"end": "4"},
        {"detector": {"kind": "Fleet"}},
        {"detector": 1},
    ],
)
def test_damaged_states(tmp_path, change):
    content = Watch(bw.SequentialTest(CERT), "-").to_dict() | change
    (tmp_path / "s").write_text(json.dumps(content))
    with pytest.raises(SchemaMismatch):
        Watch.load(tmp_path / "s", CERT, "-")


def test_a_state_that_is_not_json(tmp_path):
    (tmp_path / "s").write_text("{")
    with pytest.raises(SchemaMismatch, match="not JSON"):
        Watch.load(tmp_path / "s", CERT, "-")
