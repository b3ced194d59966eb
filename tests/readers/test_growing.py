"""Files that grow: each line once through renames and rotations, or a refusal that says what happened."""

import gzip
import os
import threading
import time

import pytest

from boundwatch._support.schema import convert
from boundwatch.errors import InvalidCost, InvalidSetting, MissingFile, SchemaMismatch
from boundwatch.readers import GrowingFile, Position, pipe_lines
from boundwatch.readers import lines as module
from program import LIMIT


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "POLL", 0.001)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"cost\n1\n2\n")
    return path


class Follower:
    """Follows a file, look by look."""

    def __init__(self, path, position=None):
        self.batches = iter(GrowingFile(path, position, follow=True))
        self.position = position
        self.notes = []

    def look(self):
        """Return the lines until nothing more comes."""
        seen = []
        for batch in self.batches:
            self.notes += [batch.note] if batch.note else []
            if not batch.lines and not batch.note:
                return seen
            seen += [line.raw.decode() for line in batch.lines]
            self.position = batch.position() if batch.lines else self.position
        return seen


def read(path, position=None):
    """Return all lines that a file holds now, and the position after them."""
    seen = []
    for batch in GrowingFile(path, position, follow=False):
        seen += [line.raw.decode() for line in batch.lines]
        position = batch.position() if batch.lines else position
    return seen, position


def append(path, text):
    with path.open("a") as file:
        file.write(text)


def replace(path, text):
    other = path.with_name("tmp")
    other.write_text(text)
    other.replace(path)


def test_lines_are_numbered_and_come_once(log):
    batches = [batch for batch in GrowingFile(log, follow=False) if batch.lines]
    assert [(line.number, line.raw) for line in batches[0].lines] == [(1, b"cost"), (2, b"1"), (3, b"2")]
    assert not batches[0].torn
    position = batches[0].position(2)
    assert (position.offset, position.lines) == (7, 2)
    assert read(log, position)[0] == ["2"]


@pytest.mark.parametrize("content", [{"offset": -1}, {"offset": "1"}, {"digest": 3}, {"line": 1}])
def test_what_is_no_position_is_refused(content):
    with pytest.raises(SchemaMismatch) as refused:
        convert(Position, content, "position")
    assert refused.value.name == f"position.{next(iter(content))}"


def test_a_line_without_newline_waits_under_follow_and_is_torn_else(log):
    append(log, "0.")
    follower = Follower(log)
    assert follower.look() == ["cost", "1", "2"]
    append(log, "5\n")
    assert follower.look() == ["0.5"]
    append(log, "7")
    last = list(GrowingFile(log, follower.position, follow=False))[-1]
    assert last.torn
    assert [line.raw for line in last.lines] == [b"7"]


def test_a_file_that_is_rewritten_by_rename_goes_on_after_what_was_counted(log):
    follower = Follower(log)
    follower.look()
    for rows in range(3, 9):
        replace(log, "cost\n" + "".join(f"{n}\n" for n in range(1, rows + 1)))
        assert follower.look() == [str(rows)]
    assert read(log, follower.position)[0] == []


def test_a_rotation_is_followed_when_the_old_file_still_has_a_name(log):
    follower = Follower(log)
    follower.look()
    append(log, "3\n")
    log.rename(f"{log}.1")
    append(log.with_name("log.csv.1"), "4\n")  # its writer has not moved on yet
    assert follower.look() == ["3", "4"]
    append(log.with_name("log.csv.1"), "5\n")
    log.write_text("cost\n6\n")
    assert follower.look() == ["5", "cost", "6"]


@pytest.mark.parametrize("name", ["log.csv.1", "log.csv.20261115", "log-2026-11-15.csv"])
def test_a_rotation_whose_next_file_begins_alike_is_followed(log, name):
    """Two good days have the same outcomes."""
    follower = Follower(log)
    follower.look()
    log.rename(log.with_name(name))
    log.write_text("cost\n1\n2\n3\n")
    assert follower.look() == ["cost", "1", "2", "3"]


def test_an_editor_that_keeps_a_backup_has_written_the_same_file_anew(log):
    follower = Follower(log)
    follower.look()
    log.rename(f"{log}~")
    log.write_text("cost\n1\n2\n3\n")
    assert follower.look() == ["3"]
    assert "written anew" in follower.notes[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv~", "cost\n1\n0\n"),  # an edited row
        ("log.csv.bak", "cost\n1\n0\n3\n"),
        ("log.csv.bak", "cost\n1\n2\n3\n"),  # a row more, or another day?
        ("elsewhere", "cost\n1\n2\n3\n"),
    ],
)
def test_an_edited_file_is_not_taken_for_the_next_one(log, name, text):
    follower = Follower(log)
    follower.look()
    log.rename(log.with_name(name))
    log.write_text(text)
    with pytest.raises(InvalidSetting, match="whether the new file has other trials cannot be told"):
        follower.look()


def test_a_file_that_was_rotated_and_packed_is_not_the_one_that_begins_alike(log):
    _, position = read(log)
    log.with_name("log.csv.1.gz").write_bytes(gzip.compress(log.read_bytes() + b"3\n"))
    replace(log, "cost\n1\n2\n")
    with pytest.raises(InvalidSetting, match=r"and so does log\.csv\.1\.gz"):
        read(log, position)


CHANGES = {
    "replaced by another": (lambda log: replace(log, "cost\n7\n8\n9\n"), "does not begin with the 3 lines"),
    "replaced by a shorter one": (lambda log: replace(log, "cost\n"), "shorter file"),
    "deleted": (lambda log: log.unlink(), "deleted"),
    "cut": (lambda log: log.write_text("cost\n1\n"), "shorter or was overwritten"),  # keeps the inode
    "overwritten": (lambda log: log.write_text("cost\n9\n9\n"), "shorter or was overwritten"),
    "overwritten and grown": (lambda log: log.write_text("cost\n9\n9\n9\n"), "shorter or was overwritten"),
}


@pytest.mark.parametrize(("change", "problem"), CHANGES.values(), ids=CHANGES)
def test_a_file_in_which_lines_may_be_lost_is_refused(log, change, problem):
    follower = Follower(log)
    follower.look()
    change(log)
    with pytest.raises(InvalidSetting, match=problem) as refused:
        follower.look()
    assert refused.value.where.source == str(log)


def test_a_file_that_is_emptied_after_all_was_read_begins_again_with_a_note(log):
    follower = Follower(log)
    follower.look()
    log.write_text("")
    assert follower.look() == []
    assert len(follower.notes) == 1
    append(log, "cost\n5\n")
    assert follower.look() == ["cost", "5"]


def test_a_file_that_is_emptied_in_the_middle_of_a_line_is_refused(log):
    append(log, "0.")
    follower = Follower(log)
    follower.look()
    log.write_text("")
    with pytest.raises(InvalidSetting):
        follower.look()


@pytest.mark.parametrize(
    "name", ["log.csv.1", "log.csv.20261115", "log.csv.1763164800", "log.csv.bak", "log-1.csv"]
)
def test_after_a_restart_the_rest_of_the_rotated_file_comes_first(log, name):
    _, position = read(log)
    append(log, "3\n")
    log.rename(log.with_name(name))
    log.write_text("cost\n4\n")
    assert read(log, position)[0] == ["3", "cost", "4"]


@pytest.mark.parametrize("name", ["log.csv.1", "log.csv.1.gz"])
def test_after_a_restart_a_copy_is_not_taken_for_what_was_counted(log, name):
    _, position = read(log)
    log.with_name(name).write_bytes(log.read_bytes() + b"3\n")
    replace(log, "cost\n4\n")
    with pytest.raises(InvalidSetting, match=f"not beside it: {name} is"):
        read(log, position)


def test_after_a_restart_a_rewritten_file_goes_on_and_another_is_refused(log):
    _, position = read(log)
    replace(log, "cost\n1\n2\n3\n")
    assert read(log, position)[0] == ["3"]
    replace(log, "cost\n7\n8\n")
    with pytest.raises(InvalidSetting) as refused:
        read(log, position)
    assert "2" in refused.value.problem or "3 lines" in refused.value.problem


def test_a_header_alone_does_not_make_two_files_one(log):
    """Only the header was counted: the next file begins with it, too, but rows were written before that."""
    position = next(iter(GrowingFile(log, follow=False))).position(1)
    log.rename(f"{log}.1")
    log.write_text("cost\n4\n")
    assert read(log, position)[0] == ["1", "2", "cost", "4"]


@pytest.mark.parametrize(
    "names",
    [
        ("log.csv.2", "log.csv.1"),
        ("log.csv.20261114", "log.csv.20261115"),
        ("log-1.csv", "log-2.csv"),
        ("log.2026-11-14.csv", "log.2026-11-15.csv.gz"),
    ],
)
def test_files_between_are_named(log, names):
    _, position = read(log)
    log.rename(log.with_name(names[0]))
    log.with_name(names[1]).write_text("cost\n5\n")
    log.write_text("cost\n6\n")
    with pytest.raises(InvalidSetting) as refused:
        read(log, position)
    assert names[1] in refused.value.problem


def test_other_files_beside_a_log_do_not_matter(log):
    follower = Follower(log)
    follower.look()
    log.rename(f"{log}.1")
    log.with_name("log.csv.state").write_text("{}")
    log.with_name("log.csv.lock").write_text("1")
    log.write_text("cost\n6\n")
    assert follower.look() == ["cost", "6"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MissingFile):
        read(tmp_path / "log.csv")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    path = tmp_path / "log.csv"
    path.write_bytes(b"cost\n" + b"0" * 2000)
    with pytest.raises(InvalidCost) as refused:
        read(path)
    assert refused.value.where.number == 2


def test_a_named_pipe_is_read_and_senders_are_not_joined(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    batches = iter(GrowingFile(fifo, follow=True))
    seen = []
    ends = time.monotonic() + LIMIT
    for text in (b"cost\n0.", b"1\n"):
        sender = threading.Thread(target=fifo.write_bytes, args=(text,), daemon=True)
        sender.start()
        expected = len(seen) + text.count(b"\n") + (not text.endswith(b"\n"))
        while len(seen) < expected and time.monotonic() < ends:
            batch = next(batches)
            seen += [(line.raw, batch.torn) for line in batch.lines]
        sender.join(LIMIT)
    assert seen == [(b"cost", False), (b"0.", True), (b"1", False)]


def test_a_pipe_gives_whole_lines_and_says_what_is_torn():
    out, into = os.pipe()
    os.write(into, b"cost\n1\n0.")
    os.close(into)
    batches = [batch for batch in pipe_lines(out, "pipe") if batch.lines]
    os.close(out)
    lines = [(line.number, line.raw) for batch in batches for line in batch.lines]
    assert lines == [(1, b"cost"), (2, b"1"), (3, b"0.")]
    assert [batch.torn for batch in batches] == [False, True]
    assert batches[-1].position().offset == 9


def test_a_restart_waits_for_a_name_that_is_gone_while_a_log_is_rotated(log, monkeypatch):
    monkeypatch.setattr(module, "POLL", 0.1)
    _, position = read(log)
    log.rename(log.with_name("log.csv.1"))
    later = threading.Timer(0.2, log.write_text, ["9\n"])
    later.start()
    assert read(log, position)[0] == ["9"]
    later.join()
