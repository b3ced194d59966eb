"""How objects describe themselves, on one line and in notebooks, and how text from files is shown."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from boundwatch.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Control characters, direction overrides and other invisible ones, halves of a pair, ends of lines.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def one_line(subject: object, fields: Mapping[str, Any]) -> str:
    """Return the class and some fields on one line, numbers to six digits and what is None left out."""
    parts = [f"{name}={_brief(value)}" for name, value in fields.items() if value is not None]
    return f"{type(subject).__name__}({', '.join(parts)})"


def arguments(subject: object) -> dict[str, Any]:
    """Return what an object was made with, for one that keeps its arguments under their names."""
    names = list(inspect.signature(type(subject).__init__).parameters)
    return {name: getattr(subject, name) for name in names if hasattr(subject, name)}


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"<{len(value)} of {type(value[0]).__name__}>"
    if isinstance(value, tuple) and all(isinstance(item, float) for item in value):
        return f"({', '.join(map(_brief, value))})"
    text = repr(getattr(value, "value", value))  # of a verdict, its name
    if "\n" not in text and len(text) <= 300:
        return text
    return f"<{type(value).__name__}{' of shape ' + str(value.shape) if hasattr(value, 'shape') else ''}>"


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text with everything escaped that a terminal would act upon rather than show, but for `keep`.

    Examples
    --------
    >>> print(printable("arm\x1b[2J\nverdict: \ud800WITHIN"))
    arm\x1b[2J\nverdict: \ud800WITHIN
    >>> printable("größer"), printable("a\nb", keep="\n")
    ('größer', 'a\nb')
    """
    if text.isascii() and text.isprintable():  # the usual case
        return text
    return "".join(
        letter
        if letter in keep or unicodedata.category(letter) not in _UNPRINTABLE
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def _view() -> Any:
    # By its name and when it is needed: nothing that is shown may import what shows it.
    return import_module("boundwatch.reporting.compared")


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

    def to_metrics(self, prefix: str = "boundwatch/") -> dict[str, float]:
        """Return its numbers by name, as experiment trackers take them; a verdict is 1 and the others 0.

        Parameters
        ----------
        prefix
            What every name begins with.

        Examples
        --------
        >>> import boundwatch as bw
        >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
        >>> found = bw.HypothesisTest(certificate).decide([0.9] * 10).to_metrics()
        >>> found["boundwatch/verdict.adverse"], found["boundwatch/mean_cost"]
        (1.0, 0.9)
        """
        found: dict[str, float] = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), Enum):
                found |= {f"{prefix}{field.name}.{each.value}": float(each is value) for each in type(value)}
            elif isinstance(value, bool | int | float):
                found[f"{prefix}{field.name}"] = float(value)
        return found

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


def written(lines: Sequence[Sequence[Any]], kind: str) -> str:
    """Return a table, header first, as markdown, latex, csv or json: an object per row."""
    if kind == "json":
        return json.dumps([dict(zip(lines[0], each, strict=True)) for each in lines[1:]], indent=2)
    if kind == "csv":
        csv.writer(text := io.StringIO(), lineterminator="\n").writerows(lines)
        return text.getvalue().rstrip("\n")
    if kind == "latex":
        rows = [" & ".join(re.sub("[&%$#_{}]", r"\\\g<0>", cell) for cell in each) + r" \\" for each in lines]
        return "\n".join([rf"\begin{{tabular}}{{{'l' * len(lines[0])}}}", *rows, r"\end{tabular}"])
    cells = [[cell.replace("|", r"\|").replace("\n", " ") for cell in each] for each in lines]
    marked = [f"| {' | '.join(each)} |" for each in cells]
    return "\n".join([marked[0], "|---" * len(lines[0]) + "|", *marked[1:]])


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
