"""Bytes become lines, and some are none."""

from batches import faults, texts
from boundwatch.watching.lines import LONGEST_LINE, LineSplitter


def test_bytes_become_lines_however_they_come():
    text = b"0.1\n\n0.25\r\n{}\n0.5"
    for size in range(1, len(text) + 1):
        splitter = LineSplitter((0, 0))
        batches = [b for i in range(0, len(text), size) for b in splitter.feed(text[i : i + size])]
        assert texts(batches) == ["0.1", "", "0.25\r", "{}"]
        assert splitter.unfinished
        assert texts(splitter.finish()) == ["0.5"]
        assert [line.number for batch in batches for line in batch.lines] == [1, 2, 3, 4]


def test_a_line_without_end_is_one_line_and_takes_no_memory():
    splitter = LineSplitter((0, 0))
    batches = list(splitter.feed(b"0.1\n"))
    for _ in range(40):
        batches += splitter.feed(b"x" * (1 << 16))
        assert len(splitter._rest) <= LONGEST_LINE + (1 << 16)
    batches += splitter.feed(b"\n0.2\n")
    assert faults(batches) == [(2, "is longer than 1 MiB")]
    assert texts(batches) == ["0.1", "", "0.2"]
