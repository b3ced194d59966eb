"""The whole reproduction at the smallest sizes, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock
from reproduction.runner import reproduce

from conftest import made_once
from doctored.tiny import tiny_settings


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, with_policies) -> Path:
    """Return its folder. Copy what a test changes."""
    out, lock = made_once(tmp_path_factory, "reproduction")
    with FileLock(lock):
        if not out.exists():
            reproduce([], with_policies(out), tiny_settings(), jobs=1)
    return out
