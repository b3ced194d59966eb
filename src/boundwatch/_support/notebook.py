"""What notebooks make of certificates and findings: a table, a figure, a data frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from enum import Enum
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boundwatch._support.describing import one_line
from boundwatch.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _view() -> Any:
    # By its name and when it is needed: nothing that is shown may import what shows it.
    return import_module("boundwatch.reporting.views")


class InTable:
    """Gives a dataclass `to_dict`, a line for `repr`, a sentence for `str`, a table and a data frame."""

    def __init_subclass__(cls) -> None:
        # Here, because a dataclass keeps only a `__repr__` that its own class has.
        cls.__repr__ = cls.__dict__.get("__repr__", InTable.__repr__)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        known = vars(self)  # what is computed when it is first read need not be computed for this
        names = [field.name for field in dataclasses.fields(self) if field.name in known]  # type: ignore[arg-type]
        return one_line(self, {name: known[name] for name in names})

    def __str__(self) -> str:
        return str(_view().headline(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {name: value.value if isinstance(value, Enum) else value for name, value in content.items()}

    def _row(self) -> dict[str, Any]:
        """Return what fits into a row of a table."""
        return flatten(self.to_dict())

    def _repr_html_(self) -> str:
        rows: Iterable[Sequence[object]] | None = _view().rows(self)
        if rows is None:
            rows = [item for item in self._row().items() if item[1] is not None]
        return html(self, table(rows))

    def to_frame(self) -> Any:
        """Return a data frame of one row, of pandas or, without it, of polars (extra ``frame``).

        Fields of fields are named with dots: ``provenance.created``.
        """
        return frame([self._row()])


class InNotebook(InTable):
    """The same and a figure, for what has an interval."""

    def plot(self) -> Figure:
        """Draw its interval (extra ``plot``); write it with `boundwatch.reporting.plots.save_figure`."""
        figure: Figure = _view().plot(self)
        return figure


def html(subject: object, *tables: str) -> str:
    """Return what a certificate or a finding says of itself in a sentence, above tables."""
    return f"<p><strong>{escape(str(subject))}</strong></p>{''.join(tables)}"


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Return a table in HTML whose rows begin with a name."""
    lines = [_cells("th", header)] if header else []
    lines += [_cells("th", row[:1]) + _cells("td", row[1:]) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def frame(rows: list[dict[str, Any]]) -> Any:
    """Return a data frame of pandas or, if only that is installed, of polars."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(rows)
        except ModuleNotFoundError:
            continue
    raise MissingExtra("to_frame", "frame")


def flatten(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table of tables as one, with dots in the names."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _cells(tag: str, values: Iterable[object]) -> str:
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
    return "".join(f"<{tag} style='text-align: left'>{escape(text)}</{tag}>" for text in texts)
