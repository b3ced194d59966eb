"""Figures: an empty one, and how it is written. Matplotlib is imported when the first one is made."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from boundwatch._support import files
from boundwatch.errors import InvalidSetting, MissingExtra, Place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Without dates and random names inside, the same figure gives the same bytes.
_METADATA = {
    "png": {"Software": "boundwatch"},
    "svg": {"Date": None, "Creator": "boundwatch"},
    "pdf": {"CreationDate": None, "Creator": "boundwatch"},
}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches that notebooks show, without pyplot (extra ``plot``)."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("drawing a figure", "plot") from error

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:  # notebooks show by themselves only what pyplot has made
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=110)
            return buffer.getvalue()

    return NotebookFigure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | os.PathLike[str], *, title: bool = True) -> None:
    """Write a figure as PNG, SVG or PDF, by the end of its name, whole or not at all.

    What can be is drawn with vectors, letters included: PDF embeds its fonts, SVG has their outlines. Without
    its `title`, a figure can stand over a caption.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in _METADATA:
        remedy = "end the name in .png, .svg or .pdf"
        raise InvalidSetting("cannot tell the format", where=Place(str(path)), remedy=remedy)
    from matplotlib import rc_context

    if not title:
        figure.suptitle("").set_in_layout(False)
    buffer = io.BytesIO()
    # Type 42 are TrueType fonts, as publishers ask for; Type 3 is what matplotlib would write.
    with rc_context({"svg.hashsalt": "boundwatch", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=ending, dpi=150, metadata=_METADATA[ending])
    files.write_bytes(path, buffer.getvalue())
