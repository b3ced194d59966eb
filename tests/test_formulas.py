"""The site's formulas are typeset when it is built, and need no file from elsewhere."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from formulas import on_page_content, with_subscripts  # noqa: E402

PAGES = [ROOT / "docs" / name for name in ("theory.md", "comparison-theory.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_becomes_mathml(page):
    formulas = re.findall(r"^\$\$(.+)\$\$$", page.read_text(), flags=re.MULTILINE)
    assert len(formulas) >= 5
    assert page.read_text().count("$") == 4 * len(formulas)  # none was opened and not closed
    for formula in formulas:
        html = f'<div class="arithmatex">\\[{formula.replace("<", "&lt;")}\\]</div>'
        drawn = on_page_content(html, page=SimpleNamespace(file=SimpleNamespace(src_uri=page.name)))
        assert drawn.startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">')
        assert "\\" not in re.sub(r"<[^>]*>", "", drawn)  # a command that is not known stays as it was


def test_symbols_get_their_indices_and_names_keep_theirs():
    html = '<p>C_𝒟(π) ≤ x_i, <code>a_b</code> <a href="a_b">p_i</a> p_adverse two_words e^K</p>'
    drawn = with_subscripts(html)
    assert "C<sub>𝒟</sub>(π) ≤ x<sub>i</sub>, <code>a_b</code>" in drawn
    assert '<a href="a_b">p_i</a> p<sub>adverse</sub> two_words e<sup>K</sup>' in drawn
