"""What the pages say is there is there: names, tests, links with their anchors, extras, fields of JSON."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import boundwatch as bw
from boundwatch.selftest.simulation import all_claims

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
        for claim in all_claims(certificate, levels)
    }
    form = re.compile(r"`[^`]+`(, `[^`]+`)*(, if .+)?")
    lines = {cell: re.findall(r"`([^`]+)`", cell) if form.fullmatch(cell) else [] for cell in cells}
    tried = {name for found in lines.values() for name in found}
    for cell, found in lines.items():
        assert cell.startswith("none: ") or found, cell
    for name in tried:
        assert any(claim.startswith(name) for claim in names), name
    # And the other way round: no line is about nothing that is stated.
    for claim in names:
        assert any(claim.startswith(name) for name in tried), claim


def _anchors(page):
    """Return the anchors of a page, as the documentation site and GitHub name its headings."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    words = [re.sub(r"[^\w\s-]", "", re.sub(r"\]\([^)]*\)", "", each)).strip().lower() for each in headings]
    on_site = {re.sub(r"[-\s]+", "-", each) for each in words}
    chosen = re.findall(r"^::: (\S+)", text, flags=re.M) + re.findall(r"\{ *#([\w-]+)", text)
    return on_site | {each.replace(" ", "-") for each in words} | set(chosen)


def test_every_link_leads_to_a_page_and_a_heading_that_exist():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    anchors = {page: _anchors(page) for page in pages}
    links = [
        (page, target, anchor)
        for page in pages
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)(?:#([^)\s]+))?\)", page.read_text())
    ]
    assert sum(bool(anchor) for _, _, anchor in links) > 10
    for page, target, anchor in links:
        leads_to = (page.parent / target).resolve() if target else page
        assert leads_to.exists(), f"{page.name}: {target}"
        if anchor and leads_to.suffix == ".md":
            assert anchor in anchors[leads_to], f"{page.name}: {target}#{anchor}"


def test_pages_install_from_an_index_or_a_clone_and_list_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        installed = re.findall(r"pip install\s+([^\s`,]+(?:,[^\s`]+)?)", page.read_text())
        for what in installed:
            form = r"'?(boundwatch|\.(/boundwatch)?)(\[[\w,]+\]')?"
            assert re.fullmatch(form, what), f"{page.name}: {what}"
            wanted = re.findall(r"\w+", what.partition("[")[2])
            assert set(wanted) <= set(extras), f"{page.name}: {what}"
        # It is on no index yet: whoever reads only this page must find the other way.
        assert not installed or re.search(r"\bclone\b|\./boundwatch", page.read_text()), page.name
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        assert re.search(r"pip install '?boundwatch", page.read_text()), page.name
    for page in pages[0], ROOT / "docs" / "index.md":
        listed = page.read_text().partition("Extras")[2].partition("\n\n")[0]
        assert set(extras) <= set(re.findall(r"`(\w+)`", listed)), page.name
