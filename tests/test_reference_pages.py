"""docs/cli.md says what --help says, and docs/api.md what docstrings say; nothing public is left out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import boundwatch as bw

ROOT = Path(__file__).parents[1]


def generator(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["generate_cli", "generate_api"])
def test_page_is_up_to_date(name):
    made = generator(name)
    assert made.PAGE.read_text(encoding="utf-8") == made.render(), f"run python tools/{name}.py"


def test_pages_have_every_command_and_public_name():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert {"certify", "verify", "show", "check"} <= set(re.findall(r"## boundwatch (\w+)\n", page))
    assert "\x1b" not in page
    modules = {"gym", "prediction", "testing", "training", "__version__"}  # listed by members, or a string
    assert set(bw.__all__) - modules <= generator("generate_api").listed() | {"read_costs", "Episodes"}
