"""The parts of drawings: SVG that takes its colors from the page's style, light and dark alike, no library.

Functions return markup and escape the text that they are given; `Frame` is the area between the axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from boundwatch.reporting.page import Html


def svg(label: str | None, width: float, height: float, parts: Iterable[str], kind: str = "") -> Html:
    """Return a drawing of so many units, with a label for those who cannot see it, or hidden from them."""
    said = (
        'aria-hidden="true" focusable="false"'
        if label is None
        else f'role="img" aria-label="{escape(label)}"'
    )
    named = f'class="{kind}" ' if kind else ""
    return Html(f'<svg {named}viewBox="0 0 {width:g} {height:g}" {said}>{"".join(parts)}</svg>')


def text(
    x: float, y: float, content: str, anchor: str = "middle", *, style: str = "", upright: bool = False
) -> str:
    """Return a text that has its middle, start or end at a place; an upright one reads from the bottom up."""
    more = f' transform="rotate(-90 {_n(x)} {_n(y)})"' if upright else ""
    more += f' style="{style}"' if style else ""
    return f'<text x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"{more}>{escape(content)}</text>'


def path(kind: str, *steps: str | float, opacity: float = 1) -> str:
    """Return a path of letters and numbers."""
    way = " ".join(step if isinstance(step, str) else _n(step) for step in steps)
    faint = "" if opacity == 1 else f' opacity="{opacity:.2f}"'
    return f'<path class="{kind}"{faint} d="{way}"/>'


def diamond(x: float, y: float) -> str:
    """Return the mark of a mean."""
    return path("mean", "M", x, y - 6, "l6 6l-6 6l-6 -6z")


def circle(kind: str, x: float, y: float, radius: float) -> str:
    """Return a dot."""
    return f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'


def rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    """Return an area."""
    return f'<rect class="{kind}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"/>'


def polyline(kind: str, points: Iterable[tuple[float, float]], *, style: str = "") -> str:
    """Return a line through points."""
    styled = f' style="{style}"' if style else ""
    places = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return f'<polyline class="{kind}"{styled} points="{places}"/>'


@dataclass(frozen=True)
class Frame:
    """The area between the axes of a drawing, which shares of 0 to 1 are drawn in."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    @property
    def end(self) -> float:
        """Where the area ends on the right."""
        return self.width - self.right

    def x(self, share: float) -> float:
        """Return the place of a share from left to right."""
        return self.left + share * (self.end - self.left)

    def y(self, share: float) -> float:
        """Return the place of a share from the bottom up."""
        return self.top + (1 - share) * (self.height - self.top - self.bottom)

    def level(self, kind: str, share: float) -> str:
        """Return a horizontal line."""
        return path(kind, "M", self.left, self.y(share), "H", self.end)

    def band(self, low: float, high: float) -> str:
        """Return a horizontal band, the certified one, with its limits."""
        tall = max(self.y(low) - self.y(high), 1)
        area = rect("band", self.left, self.y(high), self.end - self.left, tall)
        return area + "".join(self.level("limit", share) for share in (low, high))

    def axis(self, ticks: Iterable[tuple[str, float]], label: str = "") -> str:
        """Return the vertical axis: a line and a name for each share, and what they are of."""
        marks = [
            self.level("grid", share) + text(self.left - 8, self.y(share) + 4, name, "end")
            for name, share in ticks
        ]
        return "".join(marks) + (text(12, self.y(0.5), label, upright=True) if label else "")

    def draw(self, label: str, parts: Iterable[str]) -> Html:
        """Return the whole drawing."""
        return svg(label, self.width, self.height, parts)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
