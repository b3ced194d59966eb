"""The skeleton of an HTML page that stands alone: no scripts, no fonts, no files from elsewhere.

Light and dark as the reader prefers, narrow and wide, and on paper. Functions that take text escape it;
those that take ``Html`` trust it, so nothing from a file can become markup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape
from importlib import resources
from typing import NewType

Html = NewType("Html", str)


def page(title: str, sections: Iterable[Html], *, images: bool = False) -> str:
    """Return the whole page; with `images`, it may hold some, as data in the page itself."""
    style = resources.files("boundwatch.reporting").joinpath("page.css").read_text(encoding="utf-8")
    # What the page may load: nothing, but for the style and images inside it.
    policy = "default-src 'none'; style-src 'unsafe-inline'" + ("; img-src data:" if images else "")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="boundwatch">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(filter(None, sections))
        + "\n</main>\n</body>\n</html>\n"
    )


def heading(text: str, level: int = 2) -> Html:
    """Return a heading."""
    return _element(f"h{level}", escape(text))


def paragraph(text: str, kind: str | None = None) -> Html:
    """Return a paragraph, of a class that the style knows if one is named."""
    return _element("p", escape(text), kind)


def bullets(items: Iterable[str], kind: str | None = None) -> Html:
    """Return a list."""
    return _element("ul", "".join(map("<li>{}</li>".format, map(escape, items))), kind)


def rows(pairs: Iterable[tuple[str, object]], *, code: bool = False) -> Html:
    """Return labeled values but for those that are None, in a fixed-width font if they are code."""
    line = "<dt>{}</dt><dd><code>{}</code></dd>" if code else "<dt>{}</dt><dd>{}</dd>"
    known = [line.format(escape(name), escape(str(value))) for name, value in pairs if value is not None]
    return _element("dl", "".join(known))


def table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> Html:
    """Return a table whose lines begin with a name; on a narrow page it scrolls by itself."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in lines
    )
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return _element("div", whole, "scroll")


def box(kind: str, parts: Iterable[Html]) -> Html:
    """Return parts together in a box of a class that the style knows."""
    return _element("div", "".join(parts), kind)


def verdict(kind: str, statement: str, sentences: Iterable[str] = ()) -> Html:
    """Return a box with a statement and what it rests on; its kind is a verdict, which has a color."""
    strong = Html(f"<p><strong>{escape(statement)}</strong></p>")
    return box(f"verdict {kind}", [strong, *map(paragraph, sentences)])


def warnings(found: Collection[str]) -> Html:
    """Return a box with what may make the guarantee wrong; nothing if nothing may."""
    parts = [paragraph("What may make the guarantee wrong:"), bullets(found)]
    return box("verdict adverse", parts) if found else Html("")


def figure(drawing: Html, caption: str) -> Html:
    """Return a drawing with its caption."""
    return Html(f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>")


def _element(name: str, content: str, kind: str | None = None) -> Html:
    named = "" if kind is None else f' class="{escape(kind)}"'
    return Html(f"<{name}{named}>{content}</{name}>")
