"""Draw the flow of data, light and dark, as SVG: ``python tools/flow_figure.py``."""

from __future__ import annotations

from pathlib import Path

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
WIDTH, HEIGHT = 640, 352
COLORS = {
    "light": {"ink": "#1c1e26", "box": "#eef0fb", "edge": "#3f51b5", "word": "#4a4e5c"},
    "dark": {"ink": "#f2f3f8", "box": "#2b2f45", "edge": "#9fa8ff", "word": "#c3c7d6"},
}
# Name, left, top, width; all boxes are equally high.
BOXES = [
    ("environments", 8, 10, 150),
    ("posterior", 244, 10, 150),
    ("policy", 482, 10, 150),
    ("files, logs, streams", 8, 120, 170),
    ("episodes", 244, 120, 150),
    ("certificate", 482, 120, 150),
    ("detector", 244, 230, 150),
    ("finding", 482, 230, 150),
]
TALL = 46
# Word, from, to, and where the word stands relative to the middle of the arrow.
ARROWS = [
    ("train", (158, 33), (244, 33), (0, -9)),
    ("draw", (394, 33), (482, 33), (0, -9)),
    ("roll out", (510, 56), (372, 120), (30, 16)),
    ("read", (178, 143), (244, 143), (0, -9)),
    ("certify", (394, 143), (482, 143), (0, -9)),
    ("new ones", (319, 166), (319, 230), (-44, 5)),
    ("compare", (510, 166), (384, 230), (38, 12)),
    ("decide", (394, 253), (482, 253), (0, -9)),
]
TITLE = (
    "Train on environments, draw a policy, roll it out. Episodes, rolled out or read from files, are "
    "certified. "
    "A detector compares new episodes with the certificate and gives a finding."
)
ENDS = "text · report · page · exit code · alarm"


def draw(colors: dict[str, str]) -> str:
    """Return the diagram."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif" text-anchor="middle">',
        f"<title>{TITLE}</title>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 10 5 0 10Z" fill="{colors["edge"]}"/></marker></defs>',
    ]
    for word, (x1, y1), (x2, y2), (dx, dy) in ARROWS:
        parts.append(
            f'<path d="M{x1} {y1}L{x2} {y2}" stroke="{colors["edge"]}" stroke-width="2" '
            'marker-end="url(#head)"/>'
            f'<text x="{(x1 + x2) / 2 + dx:g}" y="{(y1 + y2) / 2 + dy:g}" font-size="15" '
            f'fill="{colors["word"]}">{word}</text>'
        )
    for name, left, top, wide in BOXES:
        strong = ' font-weight="600"' if name in ("certificate", "finding") else ""
        parts.append(
            f'<rect x="{left}" y="{top}" width="{wide}" height="{TALL}" rx="9" fill="{colors["box"]}" '
            f'stroke="{colors["edge"]}" stroke-width="1.5"/>'
            f'<text x="{left + wide / 2:g}" y="{top + 29}" font-size="17"{strong} '
            f'fill="{colors["ink"]}">{name}</text>'
        )
    parts.append(
        f'<path d="M557 276L557 312" stroke="{colors["edge"]}" stroke-width="2" marker-end="url(#head)"/>'
        f'<text x="632" y="340" font-size="17" text-anchor="end" fill="{colors["ink"]}">{ENDS}</text></svg>\n'
    )
    return "\n".join(parts)


if __name__ == "__main__":
    for name, colors in COLORS.items():
        (ASSETS / f"flow-{name}.svg").write_text(draw(colors), encoding="utf-8")
        print(f"wrote docs/assets/flow-{name}.svg")
