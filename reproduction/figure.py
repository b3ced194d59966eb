"""What an experiment is: a module with settings, a run, a drawing, a caption and claims to check."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from matplotlib.figure import Figure

from reproduction.artifacts import Artifact, Cache

Holds = Literal["yes", "partly", "no", "not checkable here"]


@dataclass(frozen=True)
class BaseSettings:
    """What is computed."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return what a run with these settings takes from the cache: if nothing else is said, nothing."""
        return ()


@dataclass(frozen=True)
class Caption:
    """What stands under a figure."""

    see: str
    """What to see."""
    numbers: str
    """How many datasets, trials and environments."""
    paper: str
    """How it compares with the paper."""
    differs: str
    """What differs from the paper's experiment, and why."""


@dataclass(frozen=True)
class Table:
    """Numbers that belong beside the figure."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, title: str, rows: Sequence[Mapping[str, str]]) -> Table:
        """Return a table whose rows name their columns.

        Examples
        --------
        >>> Table.of("Rain", [{"day": "Monday", "mm": "1"}, {"day": "Tuesday", "mm": "0"}])
        Table(title='Rain', header=('day', 'mm'), rows=(('Monday', '1'), ('Tuesday', '0')))
        """
        return cls(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


@dataclass(frozen=True)
class Claim:
    """A claim of the paper's Section V, or one of ours beyond it; what we found, and whether it holds."""

    paper: str
    ours: str
    holds: Holds
    why: str = ""
    """Where it does not hold, or not entirely: why."""
    beyond: bool = False
    """Whether it is not the paper's: ours."""

    @classmethod
    def judged(
        cls,
        sentence: str,
        numbers: str,
        rule: str,
        failed: str,
        partly: bool = False,
        *,
        note: str = "",
        beyond: bool = False,
    ) -> Claim:
        """Judge a sentence by its rule, which is empty where the sentence is its own.

        It holds if nothing ``failed`` the rule, and otherwise perhaps in part. A ``note`` is said either way.

        Examples
        --------
        >>> Claim.judged("It rains.", "1 mm.", "at least 2 mm.", "1 mm is less.", partly=True).why
        'Compared as: at least 2 mm. 1 mm is less.'
        """
        holds: Holds = "yes" if not failed else "partly" if partly else "no"
        compared = f"Compared as: {rule}" if rule and failed else ""
        return cls(sentence, numbers, holds, " ".join(filter(None, (note, compared, failed))), beyond=beyond)

    @classmethod
    def unchecked(
        cls, sentence: str, why: str, numbers: str = "Nothing to compare.", *, beyond: bool = False
    ) -> Claim:
        """Say that a sentence cannot be checked, and why."""
        return cls(sentence, numbers, "not checkable here", why, beyond=beyond)


@dataclass(frozen=True)
class Judged:
    """A claim as one policy has it, and what it became for each policy and certificate."""

    claim: Claim
    votes: dict[str, list[Holds]]
    """By certificate, one for each policy; by an empty name where there is nothing to choose."""


def counted_as(votes: Sequence[Holds]) -> Holds:
    """Return what several verdicts amount to: all the same, or in part.

    Examples
    --------
    >>> counted_as(["yes", "yes"]), counted_as(["yes", "no"]), counted_as(["no", "no"])
    ('yes', 'partly', 'no')
    """
    return votes[0] if len(set(votes)) == 1 else "partly"


def told(votes: Sequence[Holds]) -> str:
    """Return several verdicts in words.

    Examples
    --------
    >>> told(["yes"]), told(["yes"] * 5), told(["yes", "yes", "no"]), told(["partly"] * 5), told([])
    ('yes', 'yes, 5 of 5', '2 of 3', 'partly, 5 of 5', '–')
    >>> told(["yes", "partly", "no"])
    '1 of 3, 1 in part'
    """
    if len(votes) < 2:
        return votes[0] if votes else "–"
    if len(set(votes)) == 1:
        return f"{votes[0]}, {len(votes)} of {len(votes)}"
    partly = votes.count("partly")
    return f"{votes.count('yes')} of {len(votes)}" + (f", {partly} in part" if partly else "")


def style_of(votes: Sequence[Holds]) -> str:
    """Return the CSS class of verdicts.

    Examples
    --------
    >>> style_of(["yes", "no"]), style_of(["not checkable here"]), style_of([])
    ('partly', 'not', 'not')
    """
    return counted_as(votes).split()[0] if votes else "not"


class Experiment(Protocol):
    """The contract of a module in this package that makes a figure."""

    __name__: str
    """The module's."""
    NAME: str
    """What the command line calls it, and its folder."""
    TITLE: str
    """Its heading."""
    FULL: Any
    """`Settings`, a frozen dataclass: the sizes of the paper."""
    QUICK: Any
    """The same at sizes that a test can wait for."""
    Results: Any
    """Every number, a frozen dataclass that JSON can hold: the type of what `run` returns."""

    def run(self, settings: Any, cache: Cache) -> Any:
        """Compute every number."""

    def draw(self, results: Any) -> Figure:
        """Draw the figure."""

    def caption(self, results: Any) -> Caption:
        """Say what it shows."""

    def tables(self, results: Any) -> list[Table]:
        """Return the tables beside it."""

    def claims(self, results: Any) -> list[Claim]:
        """Check what the paper says."""


def to_json(results: Any) -> str:
    r"""Return results as text: the same numbers give the same bytes.

    Examples
    --------
    >>> to_json({"b": 0.5, "a": [1, 2]})
    '{\n "a": [\n  1,\n  2\n ],\n "b": 0.5\n}\n'
    """
    return json.dumps(results, indent=1, sort_keys=True, allow_nan=False, default=_plain) + "\n"


def _plain(row: Any) -> dict[str, Any]:
    """Return a dataclass as an object of JSON, without what it need not say and does not."""
    values = ((field, getattr(row, field.name)) for field in dataclasses.fields(row))
    return {field.name: value for field, value in values if not (value is field.default is None)}


def from_json(kind: Any, content: Any) -> Any:
    """Return what JSON says as the type that it was computed as, the dataclasses inside it included.

    Examples
    --------
    >>> from_json(list[Table], [{"title": "T", "header": [], "rows": [["1"]]}])
    [Table(title='T', header=(), rows=(('1',),))]
    """
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        kinds = _kinds(kind)
        return kind(**{name: from_json(kinds[name], value) for name, value in content.items()})
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (list, tuple):
        return outer(from_json(inner[0], value) for value in content)
    if outer is dict:
        return {name: from_json(inner[1], value) for name, value in content.items()}
    return content


_kinds = cache(get_type_hints)  # every row of thousands asks


def percent(share: float) -> str:
    """Return a share in words; never 0 % for something that happened, nor 100 % for nearly always.

    Examples
    --------
    >>> percent(0.0), percent(0.0004), percent(1 / 42_000), percent(0.386), percent(1 - 3 / 500_000)
    ('0 %', '0.04 %', '0.002 %', '38.6 %', '99.999 %')
    >>> percent(2e-24)
    '2e-22 %'
    """
    if 0.0 < share < 1e-8:
        return f"{100.0 * share:.0e} %"
    digits = 2 if 0.0 < min(share, 1.0 - share) < 0.001 else 1
    while 0.0 < share < 1.0 and float(f"{100.0 * share:.{digits}f}") in (0.0, 100.0):
        digits += 1
    return f"{100.0 * share:.{digits}f}".rstrip("0").rstrip(".") + " %"
