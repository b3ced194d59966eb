"""docs/cli.md says what --help says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "tools" / "generate_cli.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == generator.render(), (
        "run python tools/generate_cli.py"
    )


def test_page_has_every_command():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for command in ("certify", "verify", "show", "check"):
        assert f"## boundwatch {command}\n" in page
    assert "\x1b" not in page
