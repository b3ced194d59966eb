"""Figures: an empty one, and how it is written. Matplotlib is imported when the first one is made."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from boundwatch._support import files
from boundwatch.errors import InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
"""The formats that `save_figure` writes."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches that notebooks show, independent of pyplot (extra ``plot``).

    Examples
    --------
    >>> new_figure(3, 2).get_size_inches().tolist()
    [3.0, 2.0]
    """
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


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, by the end of its name, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "empty.png"
    >>> save_figure(new_figure(1, 1), path)
    >>> path.read_bytes()[1:4]
    b'PNG'
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise InvalidSetting(f"{path}: cannot tell the format; end the name in .png, .svg or .pdf")
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # Without dates and random names inside, the same figure gives the same bytes.
    dateless = {
        "png": {"Software": "boundwatch"},
        "svg": {"Date": None, "Creator": "boundwatch"},
        "pdf": {"CreationDate": None, "Creator": "boundwatch"},
    }[ending]
    with rc_context({"svg.hashsalt": "boundwatch"}):
        figure.savefig(buffer, format=ending, dpi=150, metadata=dateless)
    files.write_bytes(path, buffer.getvalue())
