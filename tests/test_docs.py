"""The theory page names real code and real tests; the errata name real tests."""

import importlib
import re
from pathlib import Path

import pytest

import boundwatch as bw
from boundwatch.planning.promises import _claims

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


def test_every_statement_has_a_line_in_selftest_or_a_reason_why_not():
    table = (ROOT / "docs" / "theory.md").read_text().partition("## The table")[2].partition("##")[0]
    cells = [row.split("|")[4].strip() for row in table.splitlines() if "`tests/" in row]
    levels = {bw.Verdict.ADVERSE: 0.04, bw.Verdict.BENIGN: 0.04}
    trials = [0, 0, 0, 1] * 10
    names = {
        claim.detector
        for certificate in (
            bw.Certificate.from_held_out(trials, binary=True),
            bw.Certificate.from_held_out(trials),
            bw.Campaign(binary=True).update_many(trials).certificate(),
        )
        for claim in _claims(certificate, None, None, levels)
    }
    lines = {cell: re.findall(r"^`([^`]+)`(?:, if .+)?$", cell) for cell in cells}
    tried = {name for found in lines.values() for name in found}
    for cell, found in lines.items():
        assert cell.startswith("none: ") or found, cell
    for name in tried:
        assert any(claim.startswith(name) for claim in names), name
    # And the other way round: no line is about nothing that is stated.
    kinds = {name.partition(",")[0].split(" in ")[0] for name in names}
    assert kinds <= {name.partition(",")[0].split(" in ")[0] for name in tried}
