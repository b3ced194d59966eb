"""Everything that boundwatch refuses, as data first: where, which value, what is wrong, what to do.

Whoever raises one fills in fields; `sentence` makes the one line that people read. Remedies name arguments
(`Argument`), which the command line spells as its flags.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

NOTHING: Final = object()
"""The value of a refusal that is about no value."""


@dataclass(frozen=True)
class Place:
    """Where something is: a file, the line or row in it, a column."""

    source: str = ""
    unit: str = "row"
    number: int | None = None
    column: str | None = None
    last: int | None = None
    """The last of several lines or rows, if there is more than `number`."""

    def __str__(self) -> str:
        parts = [] if self.number is None else [f"{self.unit} {self.number}"]
        if self.last is not None and self.last != self.number:
            parts = [f"{self.unit}s {self.number}-{self.last}"]
        parts += [f"column {self.column!r}"] if self.column is not None else []
        return ": ".join(part for part in (self.source, ", ".join(parts)) if part)


@dataclass(frozen=True)
class Argument:
    """An argument to give, in a remedy: Python spells it ``name=value``, the command line ``--name``."""

    name: str
    value: Any = NOTHING

    def __str__(self) -> str:
        return f"{self.name}={'...' if self.value is NOTHING else repr(self.value)}"


Remedy = str | tuple[str | Argument, ...]


class BoundwatchError(Exception):
    """Base of every error that boundwatch raises on purpose."""


class Refusal(BoundwatchError, ValueError):
    """Something given cannot be used.

    Parameters
    ----------
    problem
        What is wrong, as what follows the value: ``is outside [0, 1]``. Without a value, a whole clause.
    where
        Where it is, if it is in a file.
    name, value
        The argument and the value received, where there is one.
    remedy
        What to do: text, or text and `Argument` in turn.

    Examples
    --------
    >>> refusal = InvalidCost(
    ...     "is outside [0, 1]",
    ...     where=Place("lab.csv", "line", 3, "time"),
    ...     value="7",
    ...     remedy=("pass ", Argument("cost_range", (0, 60)), ", known in advance"),
    ... )
    >>> print(refusal)
    lab.csv: line 3, column 'time' = 7 is outside [0, 1]; pass cost_range=(0, 60), known in advance
    """

    def __init__(
        self,
        problem: str,
        *,
        where: Place | None = None,
        name: str | None = None,
        value: object = NOTHING,
        remedy: Remedy = "",
    ) -> None:
        super().__init__(problem)
        self.problem, self.where, self.name, self.value = problem, where, name, value
        self.remedy = (remedy,) if isinstance(remedy, str) else remedy

    def at(self, where: Place) -> Self:
        """Return the same refusal with its place."""
        return self._with(where=where)

    def _with(self, **fields: Any) -> Self:
        changed = copy.copy(self)
        vars(changed).update(fields)
        return changed

    def inside(self, what: str) -> Self:
        """Return the same refusal with what it is a part of, such as a file, before its place."""
        where = self.where or Place()
        return self.at(replace(where, source=": ".join(filter(None, [what, where.source]))))

    def __str__(self) -> str:
        return sentence(self)

    def __reduce__(self) -> tuple[Any, ...]:  # else it would be made anew without its fields
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


@contextmanager
def part_of(what: str) -> Iterator[None]:
    """Say of what is refused inside the block in which file, or of which task, it is."""
    try:
        yield
    except Refusal as error:
        raise error.inside(what) from None


def sentence(refusal: Refusal, spell: Callable[[Argument], str] = str) -> str:
    """Return the one line that people read, with arguments spelled as their reader writes them."""
    place = "" if refusal.where is None else str(refusal.where)
    exact = refusal.where is not None and (refusal.where.number, refusal.where.column) != (None, None)
    value = "" if refusal.value is NOTHING else shown(refusal.value, in_a_file=exact)
    named = " = ".join(part for part in (refusal.name or "", value) if part)
    if place:
        place += ": " if not exact or refusal.name else " = " if value else " "
    remedy = "".join(part if isinstance(part, str) else spell(part) for part in refusal.remedy)
    return f"{place}{named}{' ' if named else ''}{refusal.problem}{'; ' if remedy else ''}{remedy}"


def shown(value: object, *, in_a_file: bool = False) -> str:
    """Return a value on one line, cut if it is long; a number that a file has as text without quotes."""
    if isinstance(value, str) and in_a_file:
        with suppress(ValueError):
            float(value)
            return value.strip()
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
        text = f"a {type(value).__name__}"
    text = " ".join(text.removesuffix(".0").splitlines() if isinstance(value, float) else text.splitlines())
    return text if len(text) <= 40 else f"{text[:37]}..."


class InvalidCost(Refusal):
    """A cost is missing, not a number, or outside its range.

    `cells` says which cells of those given are meant, the first if nobody says; whoever gave them completes
    the refusal by `at`.
    """

    cells: range = range(1)

    def of(self, first: int, last: int | None = None) -> Self:
        """Return the same refusal with the index of its cell, or of several in a row."""
        return self._with(cells=range(first, (first if last is None else last) + 1))


class InvalidLevel(Refusal):
    """A probability (delta, alpha, a rate) is outside its range."""


class InvalidSetting(Refusal):
    """An argument other than a cost or a probability is outside its range."""


class MissingFile(InvalidSetting, FileNotFoundError):
    """A file is not there."""


class CertificateError(Refusal):
    """A certificate cannot be trusted."""


class SchemaMismatch(CertificateError):
    """A file does not have the shape of a certificate."""


class ProvenanceMismatch(CertificateError):
    """A certificate does not belong to the costs, the policy or the state that it meets."""


class MissingExtra(BoundwatchError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs an optional dependency; install it with: pip install 'boundwatch[{extra}]'"
        )
