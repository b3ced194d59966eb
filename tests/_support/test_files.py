"""Files are written whole or not at all, and say in one line why they cannot be."""

from __future__ import annotations

import hashlib
import os
import stat

import pytest

from boundwatch._support import files
from boundwatch.errors import InvalidSetting


def test_round_trip_leaves_nothing_else(tmp_path):
    files.write_text(tmp_path / "a.txt", "β ≤ 1\n")
    assert files.read_bytes(tmp_path / "a.txt") == "β ≤ 1\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(OSError(28, "No space left on device"), InvalidSetting), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_failure_and_interruption_keep_the_old_content_and_clean_up(tmp_path, monkeypatch, failure, raised):
    target = tmp_path / "a.txt"
    files.write_text(target, "old")

    def fail(_descriptor):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(raised):
        files.write_text(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_new_file_obeys_the_umask_and_old_file_keeps_its_mode(tmp_path):
    previous = os.umask(0o027)
    try:
        files.write_text(tmp_path / "new", "")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    files.write_text(tmp_path / "new", "again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_link_is_followed(tmp_path):
    files.write_text(tmp_path / "target", "old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_device_and_pipe_are_written_not_replaced():
    files.write_text(os.devnull, "gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)  # noqa: PTH116 - the device itself, not a path
    reader, writer = os.pipe()
    files.write_text(f"/dev/fd/{writer}", "through")
    os.close(writer)
    assert os.read(reader, 99) == b"through"
    os.close(reader)


def test_dash_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidSetting):
        files.write_text("-", "")
    assert list(tmp_path.iterdir()) == []


def test_long_names_fit(tmp_path):
    files.write_text(tmp_path / ("x" * 255), "")
    assert (tmp_path / ("x" * 255)).exists()


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".", "is a folder"),
        ("no/a.txt", "no such file"),
        ("a\0b", "null"),
        ("file/a", "not a dir"),
        ("x" * 300, "too long"),
    ],
)
def test_unwritable_paths(tmp_path, monkeypatch, path, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidSetting, match=reason) as refused:
        files.write_text(path, "")
    assert refused.value.where.source == path
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("read", [files.read_bytes, files.sha256_file])
@pytest.mark.parametrize(
    ("path", "reason"), [(".", "is a folder"), ("missing", "no such file"), ("a\0b", "cannot be read")]
)
def test_unreadable_paths(tmp_path, monkeypatch, read, path, reason):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidSetting, match=reason):
        read(path)


def test_hash_of_a_file_longer_than_a_chunk(tmp_path):
    data = bytes(range(256)) * 8193
    files.write_bytes(tmp_path / "big", data)
    assert files.sha256_file(tmp_path / "big") == hashlib.sha256(data).hexdigest()
