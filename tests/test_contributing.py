"""The walks in CONTRIBUTING.md: every file is there, none comes twice, commands call them in that order."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tools.mutate import harmless

import boundwatch as bw

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WALKS = re.findall(r"^\*\*(A .*?)\*\*.*?\n\n((?:\d+\..*\n(?:   .*\n)*)+)", TEXT, flags=re.MULTILINE)
COMMANDS = dict(re.findall(r"^\*\*(A .*?)\*\* \(`boundwatch (.*?)`\)", TEXT, flags=re.MULTILINE))

# Prints the files of the package in the order in which their functions are first called. Modules are imported
# before, or their bodies would count as calls.
TRACE = """
import contextlib, importlib, json, pkgutil, sys
import boundwatch
for name in ("_support", "bounds", "certificates", "cli", "detectors", "episodes", "reporting", "watching"):
    package = importlib.import_module(f"boundwatch.{name}")
    for module in pkgutil.iter_modules(package.__path__, f"boundwatch.{name}."):
        with contextlib.suppress(ImportError):  # an extra
            importlib.import_module(module.name)
from boundwatch.cli import main
root, called = boundwatch.__path__[0] + "/", {}
def see(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        called.setdefault(frame.f_code.co_filename)
sys.setprofile(see)
try:
    main()
finally:
    sys.setprofile(None)
    files = [file.removeprefix(root) for file in called if file.startswith(root)]
    print(json.dumps(files), file=sys.stderr)
"""


def find(name):
    places = (ROOT, ROOT / "src" / "boundwatch")
    return next((place / name for place in places if (place / name).exists()), None)


def test_there_are_four_walks():
    assert len(WALKS) == 4


@pytest.mark.parametrize(("title", "steps"), WALKS, ids=[title for title, _ in WALKS])
def test_a_walk_goes_through_real_files_and_never_back(title, steps):
    files = re.findall(r"`([\w/]+\.py)`", steps)
    assert len(files) >= 5, title
    assert [name for name in files if find(name) is None] == []
    assert len(files) == len(set(files))


def test_both_commands_are_traced():
    assert sorted(COMMANDS) == ["A CSV file becomes a report", "A stream becomes an alarm"]


@pytest.mark.parametrize("title", COMMANDS)
def test_a_command_calls_the_files_of_its_walk_in_that_order(title, tmp_path):
    failed = np.random.default_rng(1).random(50) < 0.1
    lab = bw.Certificate.from_held_out(
        failed.astype(float), binary=True, measure=bw.Measure("success", "grasped")
    )
    lab.save(tmp_path / "certificate.json")
    (tmp_path / "kitchen.csv").write_text("trial,grasped\n" + "".join(f"{i},no\n" for i in range(20)))
    (tmp_path / "call-somebody").write_text("#!/bin/sh\ncat > called\n")
    (tmp_path / "call-somebody").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", TRACE, *shlex.split(COMMANDS[title])],
        input="".join(f'{{"trial": {i}, "success": false}}\n' for i in range(20)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = "report.html" if "report" in title else "called"
    assert (tmp_path / made).stat().st_size > 0
    named = re.findall(r"`([\w/]+\.py)`", dict(WALKS)[title])
    called = json.loads(done.stderr.splitlines()[-1])
    assert [name for name in called if name in named] == named


def test_every_path_is_there():
    paths = re.findall(r"`((?:\w+/)+[\w.]*|\w+\.(?:py|md|toml))`", TEXT)
    assert [name for name in paths if find(name) is None] == []


def test_every_mutant_that_is_called_harmless_can_still_be_made():
    reasons = harmless()  # exits, and names the entries, if a line or a change is gone
    assert reasons
    assert all(len(why) > 15 for why in reasons.values())
