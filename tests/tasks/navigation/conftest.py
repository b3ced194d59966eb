"""A training small enough for tests, made once."""

from __future__ import annotations

import pytest

from doctored.tiny import RECIPE


@pytest.fixture(scope="session")
def tiny():
    return RECIPE


@pytest.fixture(scope="session")
def run_folder(trained_drone):
    return trained_drone
