"""Typeset the formulas of the site when it is built: LaTeX in, MathML out, which browsers draw by themselves.

mkdocs calls it (``hooks`` in mkdocs.yml) after `pymdownx.arithmatex` has found what stands between dollars.
On the pages of theory, short symbols such as x_i, which are plain text in the file, get their subscripts.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_KEPT = re.compile(r"(<(code|pre|math|a)\b.*?</\2>|<[^>]*>)", re.DOTALL)
_SYMBOL = re.compile(r"(?<![\w/])((?:Δ?[^\W\d_]|[XY]̄))_([^\W_]+)")
_POWER = re.compile(r"\^(\([^()]*\)|[^\W_]+)")


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    """Return a page with MathML in place of LaTeX."""
    html = _FOUND.sub(_typeset, html)
    return with_subscripts(html) if page.file.src_uri.endswith("theory.md") else html


def with_subscripts(html: str) -> str:
    """Return text with the indices of one-letter symbols lowered and powers raised, but not in code.

    >>> with_subscripts("<p>x_i ≤ δ_upper, <code>a_b</code>, (1 + s)^K</p>")
    '<p>x<sub>i</sub> ≤ δ<sub>upper</sub>, <code>a_b</code>, (1 + s)<sup>K</sup></p>'
    """
    parts = _KEPT.split(html)  # text, a tag or what is kept, the name of what is kept, text, ...
    for i in range(0, len(parts), 3):
        parts[i] = _POWER.sub(r"<sup>\1</sup>", _SYMBOL.sub(r"\1<sub>\2</sub>", parts[i]))
    return "".join(part for i, part in enumerate(parts) if i % 3 != 2)


def _typeset(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(unescape(found[2]).strip(), display=display)
