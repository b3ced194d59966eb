"""The skeleton of an HTML page that stands alone: no scripts, no fonts, no files from elsewhere.

Light and dark as the reader prefers, narrow and wide, and on paper. Functions that take text escape it;
those that take ``Html`` trust it, so nothing from a file can become markup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import NewType

Html = NewType("Html", str)


def page(title: str, sections: Iterable[Html], *, images: bool = False) -> str:
    """Return the whole page; with `images`, it may hold some, as data in the page itself.

    Examples
    --------
    >>> page("1 < 2", [paragraph("a & b")]).count("1 &lt; 2")
    1
    """
    style = resources.files("boundwatch.reporting").joinpath("page.css").read_text(encoding="utf-8")
    # What the page may load: nothing, but for the style and images inside it.
    policy = "default-src 'none'; style-src 'unsafe-inline'" + ("; img-src data:" if images else "")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="boundwatch">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(sections)
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> Html:
    """Return a heading."""
    return Html(f"<h{level}>{escape(text)}</h{level}>")


def paragraph(text: str, kind: str | None = None) -> Html:
    """Return a paragraph, of a class that the style knows if one is named."""
    return Html(f"<p{_class(kind)}>{escape(text)}</p>")


def bullets(items: Iterable[str], kind: str | None = None) -> Html:
    """Return a list."""
    return Html(f"<ul{_class(kind)}>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>")


def rows(pairs: Iterable[tuple[str, str]], *, code: bool = False) -> Html:
    """Return labeled values, in a fixed-width font if they are code.

    Examples
    --------
    >>> rows([("seed", "7")], code=True)
    '<dl><dt>seed</dt><dd><code>7</code></dd></dl>'
    """
    tag = "<dd><code>{}</code></dd>" if code else "<dd>{}</dd>"
    lines = (f"<dt>{escape(label)}</dt>{tag.format(escape(text))}" for label, text in pairs)
    return Html(f"<dl>{''.join(lines)}</dl>")


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> Html:
    """Return a table whose lines begin with a name; on a narrow page it scrolls by itself."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in lines
    )
    return Html(
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def box(kind: str, parts: Iterable[Html]) -> Html:
    """Return parts together in a box of a class that the style knows."""
    return Html(f"<div{_class(kind)}>{''.join(parts)}</div>")


def verdict(kind: str, statement: str, sentences: Iterable[str] = ()) -> Html:
    """Return a box with a statement and what it rests on; its kind is a verdict, which has a color.

    Examples
    --------
    >>> verdict("adverse", "Worse", ["8 of 12 failed."])
    '<div class="verdict adverse"><p><strong>Worse</strong></p><p>8 of 12 failed.</p></div>'
    """
    strong = Html(f"<p><strong>{escape(statement)}</strong></p>")
    return box(f"verdict {kind}", [strong, *map(paragraph, sentences)])


def warnings(found: Collection[str]) -> Iterator[Html]:
    """Yield a box with what may make the guarantee wrong, if anything."""
    if found:
        yield box("verdict adverse", [paragraph("What may make the guarantee wrong:"), bullets(found)])


def facts(known: Mapping[str, str | None] | None) -> str:
    """Say what else is known, such as the robot and the site, to go on a sentence.

    Examples
    --------
    >>> facts({"robot": "arm 1", "site": None})
    '; robot arm 1'
    """
    return "".join(f"; {name} {value}" for name, value in (known or {}).items() if value)


def figure(drawing: Html, caption: str) -> Html:
    """Return a drawing with its caption."""
    return Html(f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>")


def _class(kind: str | None) -> str:
    return "" if kind is None else f' class="{escape(kind)}"'
