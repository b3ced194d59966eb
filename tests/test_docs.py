"""The theory page names real code and real tests; the errata name real tests."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / name for name in ("theory.md", "errata.md")]


def test_every_name_in_the_theory_table_exists():
    names = re.findall(r"`(boundwatch(?:\.\w+)+)`", (ROOT / "docs" / "theory.md").read_text())
    assert len(names) > 20
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_named_in_the_docs_exists(page):
    references = re.findall(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`", page.read_text())
    assert references
    for path, function in references:
        assert (ROOT / path).exists(), path
        if function:
            assert f"def {function}(" in (ROOT / path).read_text(), function
