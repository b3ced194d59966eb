"""A training small enough for tests, made once."""

from __future__ import annotations

import pytest

from boundwatch.tasks.navigation.recipe import Recipe
from boundwatch.tasks.navigation.train import train

TINY = Recipe(environments=300, prior_environments=300, prior_steps=30, prior_batch=64, steps=6, samples=2)


@pytest.fixture(scope="session")
def tiny():
    return TINY


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("navigation") / "run"
    train(TINY, folder)
    return folder
