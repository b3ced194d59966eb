"""One look for all figures: colors that color-blind readers tell apart, hatches and dashes for gray."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from boundwatch._support.figures import new_figure as new_figure  # part of the look
from boundwatch.detectors.verdicts import Verdict
from reproduction.judging import Tally
from reproduction.recorded import Published

# The palette of Okabe and Ito; hatches tell the verdicts apart in gray.
VERDICTS: dict[Verdict, dict[str, Any]] = {
    Verdict.ADVERSE: {"facecolor": "#D55E00", "hatch": "////", "label": "ADVERSE"},
    Verdict.WITHIN: {"facecolor": "#E6E6E6", "hatch": "", "label": "WITHIN"},
    Verdict.BENIGN: {"facecolor": "#009E73", "hatch": "....", "label": "BENIGN"},
}
LINES: dict[str, dict[str, Any]] = {
    "hypothesis-test": {"color": "#0072B2", "linestyle": "-", "marker": "o", "label": "hypothesis test"},
    "confidence-interval": {
        "color": "#D55E00",
        "linestyle": (0, (5, 2)),
        "marker": "s",
        "label": "confidence interval",
    },
    "msp": {"color": "#CC79A7", "linestyle": (0, (1, 1)), "marker": "^", "label": "MSP"},
    "max-logit": {"color": "#E69F00", "linestyle": (0, (4, 1, 1, 1)), "marker": "v", "label": "MaxLogit"},
    "sequential-test": {"color": "#000000", "linestyle": "-", "linewidth": 2.4, "marker": "D"},
    "hoeffding": {"color": "#777777", "linestyle": "-", "marker": "o"},
    "kl": {"color": "#E69F00", "linestyle": (0, (6, 2)), "marker": "s"},
    "betting": {"color": "#CC79A7", "linestyle": (0, (4, 1, 1, 1)), "marker": "^"},
    "mixture": {"color": "#0072B2", "linestyle": "-", "linewidth": 2.4, "marker": "D"},
}
THEIRS: dict[str, Any] = {
    "color": "#000000",
    "linestyle": "",
    "marker": "_",
    "markersize": 9,
    "markeredgewidth": 2,
}
"""For what the authors published."""
PROMISE: dict[str, Any] = {"color": "#333333", "linestyle": (0, (2, 2)), "linewidth": 1.2}
"""For what was guaranteed: levels, thresholds, bounds."""


def line(name: str, **changes: Any) -> dict[str, Any]:
    """Return how a detector or a tail is drawn.

    Examples
    --------
    >>> line("kl", label="Chernoff")["label"]
    'Chernoff'
    """
    return {"markersize": 4.5, "linewidth": 1.5, **LINES[name], **changes}


def curve(axes: Axes, points: Iterable[tuple[float, float]], **look: Any) -> None:
    """Join points, if there are any, from left to right."""
    if ordered := sorted(points):
        axes.plot(*zip(*ordered, strict=True), **look)


def bare(axes: Axes, title: str = "") -> None:
    """Take away what carries no information; put a title, if there is one, above the left edge."""
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, loc="left", fontsize=10)


def write(axes: Axes, text: str, at: tuple[float, float], above: float, **look: Any) -> None:
    """Write a text so many points above a place, to which it is centered if nothing else is said."""
    axes.annotate(text, at, xytext=(0, above), textcoords="offset points", **{"ha": "center"} | look)


def level(axes: Axes, height: float, text: str, above: float) -> None:
    """Draw a promised level, with a text so many points above its right end."""
    axes.axhline(height, **PROMISE)
    axes.annotate(
        text,
        (1, height),
        xycoords=("axes fraction", "data"),
        xytext=(-2, above),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )


def shift_panel(axes: Axes, title: str, label: str | None = "share of ADVERSE") -> None:
    """Label shares of datasets that are drawn against the true shift, and mark where it is none."""
    axes.axvline(0, **PROMISE)
    axes.set(xlabel="true shift of the expected cost", ylabel=label, ylim=(-0.02, 1.02))
    bare(axes, title)


def legend_below(figure: Figure, axes: Axes, columns: int, **look: Any) -> None:
    """Explain below a figure what is drawn in one of its panels, and alike in the others."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, **look)


def verdict_bars(axes: Axes, rows: Sequence[Tally], title: str, theirs: Mapping[str, Published]) -> None:
    """Draw shares of verdicts as stacked bars, one per setting, in the order of the true shift.

    The bars stand at equal distances, because the paper's settings crowd at large shifts; their labels give
    the shift, and a line marks where it turns from benign to adverse. Black bars across are ``theirs``: what
    the authors published of the same setting, shares of ADVERSE and of BENIGN.
    """
    ordered = sorted(rows, key=lambda row: row.shift)
    places = range(len(ordered))
    bottom = [0.0] * len(ordered)
    for verdict, look in VERDICTS.items():
        shares = [row.share(verdict.value) for row in ordered]
        axes.bar(places, shares, bottom=bottom, width=0.86, edgecolor="white", linewidth=0.0, **look)
        bottom = [low + share for low, share in zip(bottom, shares, strict=True)]
    for place, row in enumerate(ordered):
        if point := theirs.get(row.setting):
            adverse, benign = point.share(row.detector), point.share(row.detector, "benign")
            ends = [adverse] * (adverse > 0) + [1 - benign] * (benign > 0)
            if ends:  # an empty line that is not clipped would confuse the layout
                axes.plot([place] * len(ends), ends, clip_on=False, **THEIRS)
    unchanged = min(places, key=lambda place: abs(ordered[place].shift))
    labels = [_signed(row.shift) for row in ordered]
    axes.set_xticks(list(places), labels, rotation=90, fontsize=8)
    axes.get_xticklabels()[unchanged].set_fontweight("bold")
    axes.set(ylim=(0, 1), xlim=(-0.6, len(ordered) - 0.4))
    axes.axvline(unchanged - 0.5, **PROMISE)
    axes.axvline(unchanged + 0.5, **PROMISE)
    bare(axes, title)


def verdict_legend(figure: Figure) -> None:
    """Put the verdicts' legend below a figure of stacked bars."""
    handles: list[Any] = [Patch(edgecolor="white", linewidth=0.0, **look) for look in VERDICTS.values()]
    handles.append(Line2D([], [], **THEIRS, label="the authors' curves, n = 50"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, handlelength=3, handleheight=1.2
    )


def _signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")
