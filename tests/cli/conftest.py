"""Costs and certificates to run the program with."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import boundwatch as bw


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with costs, and certificates made from them, that nobody changes."""
    path = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(20240901)
    bounded, binary = rng.beta(2, 6, 200).round(6), (rng.random(200) < 0.25).astype(int)
    (path / "costs.csv").write_text("cost\n" + "".join(f"{cost}\n" for cost in bounded))
    (path / "success.csv").write_text("success\n" + "".join(f"{1 - cost}\n" for cost in binary))
    (path / "same.csv").write_text("cost\n" + "".join(f"{cost}\n" for cost in rng.beta(2, 6, 30)))
    (path / "worse.csv").write_text("cost\n" + "".join(f"{cost}\n" for cost in rng.beta(6, 3, 30)))
    (path / "better.csv").write_text("cost\n" + "0.01\n" * 60)
    bw.Certificate.from_held_out(bounded).save(path / "certificate.json")
    bw.Certificate.from_held_out(binary, binary=True).save(path / "binary.json")
    return path


@pytest.fixture
def folder(tmp_path, made):
    """Return a test's own copy of it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path
