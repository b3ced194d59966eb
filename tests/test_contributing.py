"""The walks in CONTRIBUTING.md: every file is there, and none comes twice."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = re.findall(r"^\*\*(A .*?)\*\*.*?\n\n((?:\d\..*\n(?:   .*\n)*)+)", TEXT, flags=re.MULTILINE)


def find(name):
    places = (ROOT, ROOT / "src" / "boundwatch")
    return next((place / name for place in places if (place / name).exists()), None)


def test_there_are_four_walks():
    assert len(WALKS) == 4


@pytest.mark.parametrize(("title", "steps"), WALKS, ids=[title for title, _ in WALKS])
def test_a_walk_goes_through_real_files_and_never_back(title, steps):
    files = re.findall(r"`([\w/]+\.py)`", steps)
    assert len(files) >= 8, title
    assert [name for name in files if find(name) is None] == []
    assert len(files) == len(set(files))


def test_every_path_is_there():
    paths = re.findall(r"`((?:\w+/)+[\w.]*|\w+\.(?:py|md|toml))`", TEXT)
    assert [name for name in paths if find(name) is None] == []
