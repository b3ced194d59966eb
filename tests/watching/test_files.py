"""Files that grow, are rotated, and lose lines."""

import os
import threading
import time

import pytest

from batches import faults, texts
from boundwatch.errors import InvalidSetting
from boundwatch.watching import files
from boundwatch.watching.files import FileSource


def after(path, lines):
    """Return the position after so many lines of a file."""
    batch, *_ = FileSource(str(path)).batches()
    return batch.position(lines)


@pytest.fixture
def counted(tmp_path):
    """Return a function that writes a log, counts so many lines of it, and returns it and the position."""

    def write(text, lines):
        log = tmp_path / "log"
        log.write_text(text)
        return log, after(log, lines)

    return write


def take(source, count, found):
    for batch in source.batches():
        found += [line.raw.decode() for line in batch.lines]
        if len(found) >= count:
            return


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(files, "_POLL", 0.005)


def test_the_position_after_a_long_line_is_found_again(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"0.1\n" + b"x" * (3 << 20) + b"\n0.2\n0.3\n")
    batches = list(FileSource(str(log)).batches())
    last = batches[-1].position(1)
    assert last.lines == 3
    assert texts(FileSource(str(log), last).batches()) == ["0.3"]


def test_a_file_is_read_from_where_it_was_left(tmp_path):
    log = tmp_path / "log"
    log.write_text("0.1\n0.2\n0.3")
    assert texts(FileSource(str(log), once=True).batches()) == ["0.1", "0.2", "0.3"]
    assert texts(FileSource(str(log), after(log, 1), once=True).batches()) == ["0.2", "0.3"]
    kept = FileSource(str(log), after(log, 1))
    assert texts(kept.batches()) == ["0.2"]
    assert kept.unfinished == 3
    with pytest.raises(InvalidSetting, match="cannot be read"):
        list(FileSource(str(tmp_path / "none")).batches())


@pytest.mark.parametrize("text", ["0.9\n0.2\n0.3\n", "0.1\n", ""])
def test_a_file_that_was_rewritten_is_refused(counted, text):
    log, known = counted("0.1\n0.2\n", 2)
    log.write_text(text)
    with pytest.raises(InvalidSetting, match="2 lines that were counted are no longer"):
        list(FileSource(str(log), known).batches())


def test_a_copy_with_the_same_beginning_is_the_same_file(counted):
    log, known = counted("0.1\n0.2\n", 2)
    log.unlink()
    log.write_text("0.1\n0.2\n0.3\n")
    assert texts(FileSource(str(log), known).batches()) == ["0.3"]


def test_a_growing_file_is_followed_line_by_whole_line(tmp_path):
    log = tmp_path / "log"
    log.write_text("0.1\n0.")

    def grow():
        for text in ("25", "\n", "0.5\n"):
            time.sleep(0.02)
            with log.open("a") as file:
                file.write(text)

    writer = threading.Thread(target=grow)
    writer.start()
    found = []
    take(FileSource(str(log), follow=True), 3, found)
    writer.join()
    assert found == ["0.1", "0.25", "0.5"]


@pytest.mark.parametrize("suffix", [".1", "-20261116"])
def test_rotation_is_followed_to_the_last_line_of_the_old_file(tmp_path, suffix):
    log = tmp_path / "log"
    log.write_text("1\n")
    found = []
    reader = threading.Thread(target=take, args=(FileSource(str(log), follow=True), 5, found))
    reader.start()
    while found != ["1"]:
        time.sleep(0.002)
    with log.open("a") as writer:
        log.rename(tmp_path / f"log{suffix}")  # the writer has not noticed yet
        time.sleep(0.02)
        writer.write("2\n")
        writer.flush()
        log.touch()  # as logrotate's `create`
        time.sleep(0.02)
        writer.write("3\n")
    log.write_text("4\n5\n")
    reader.join()
    assert found == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("names", [["log.2", "log.1", "log"], ["log-1115", "log-1116", "log"]])
def test_what_was_rotated_while_nobody_looked_is_read_first(tmp_path, counted, names):
    old, known = counted("1\n2\n3\n", 1)
    old.rename(tmp_path / names[0])
    (tmp_path / names[1]).write_text("4\n")
    (tmp_path / names[2]).write_text("5\n6\n")
    (tmp_path / "log.bak").write_text("9\n")
    assert texts(FileSource(str(old), known).batches()) == ["2", "3", "4", "5", "6"]


def _rotate(folder):
    (folder / "log.1").rename(folder / "log.2")
    (folder / "log").rename(folder / "log.1")


@pytest.fixture
def rotated_late(tmp_path, counted, monkeypatch):
    """Return a log and a position in it; what was rotated is rotated again when its successor is found."""
    log, known = counted("1\n2\n0.", 1)
    log.rename(tmp_path / "log.1")
    log.write_text("3\n")
    find, calls = FileSource._successor, []

    def successor(source, identity):
        found = find(source, identity)
        calls.append(found)
        if len(calls) == 1:
            _rotate(tmp_path)
        return found

    monkeypatch.setattr(FileSource, "_successor", successor)
    return log, known


def test_a_successor_that_is_rotated_before_it_is_opened_is_read_the_next_time(rotated_late):
    log, known = rotated_late
    source = FileSource(str(log), known)
    assert texts(source.batches()) == ["2"]
    assert source.unfinished == 3
    log.write_text("4\n")
    assert texts(FileSource(str(log), known).batches()) == ["2", "0.", "3", "4"]


def test_a_successor_that_is_rotated_before_it_is_opened_is_waited_for(rotated_late):
    log, known = rotated_late
    threading.Timer(0.05, log.write_text, ("4\n",)).start()
    found = []
    take(FileSource(str(log), known, follow=True), 4, found)
    assert found == ["2", "0.", "3", "4"]


def test_no_file_is_passed_over_when_one_is_rotated_and_begun_in_between(rotated_late, monkeypatch):
    log, known = rotated_late
    opened = files._open_file

    def begun(path):
        if not log.exists():
            log.write_text("4\n")
        return opened(path)

    monkeypatch.setattr(files, "_open_file", begun)
    assert texts(FileSource(str(log), known).batches()) == ["2", "0.", "3", "4"]


def test_a_successor_that_may_not_be_read_is_said(counted, tmp_path, monkeypatch):
    log, known = counted("1\n2\n", 1)
    log.rename(tmp_path / "log.1")
    log.write_text("3\n")
    opened, calls = files._open_file, []

    def refuse(path):
        calls.append(path)
        if len(calls) > 2:
            raise PermissionError(13, "Permission denied")
        return opened(path)

    monkeypatch.setattr(files, "_open_file", refuse)
    with pytest.raises(InvalidSetting, match="log: cannot be read, Permission denied"):
        list(FileSource(str(log), known).batches())


def test_a_file_that_was_rotated_away_and_removed_is_refused(counted):
    log, known = counted("1\n2\n3\n", 2)
    log.unlink()
    log.write_text("7\n")
    with pytest.raises(InvalidSetting, match="restore it, or start a new --state"):
        list(FileSource(str(log), known).batches())


def test_the_unfinished_line_of_a_rotated_file_is_malformed(tmp_path, counted):
    log, known = counted("0.1\n0.9", 1)
    log.rename(tmp_path / "log.1")
    log.write_text("0.2\n")
    assert faults(FileSource(str(log), known).batches()) == [(2, "has no newline, and its file was rotated")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log: os.truncate(log, 0), "became shorter"),
        (lambda log: log.write_text("0.9\n0.9\n0.9\n0.9\n"), "was overwritten"),
        (lambda log: log.unlink(), "was deleted while it was watched"),
    ],
)
def test_a_file_that_loses_lines_ends_the_watch(tmp_path, change, message):
    log = tmp_path / "log"
    log.write_text("0.1\n0.2\n0.3\n")
    threading.Timer(0.05, change, (log,)).start()
    with pytest.raises(InvalidSetting, match=message):
        take(FileSource(str(log), follow=True), 9, [])
    log.write_text("0.1\n0.2\n0.3\n")
    threading.Timer(0.05, change, (log,)).start()
    with pytest.raises(InvalidSetting, match=r"start again$"):  # nobody has a state
        take(FileSource(str(log), follow=True, once=True), 9, [])
