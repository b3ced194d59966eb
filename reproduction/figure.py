"""What an experiment is: a module with settings, a run, a drawing, a caption and claims to check."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from matplotlib.figure import Figure

from reproduction.artifacts import Artifact, Cache

Results = dict[str, Any]
"""Every number of an experiment, as plain JSON values."""
Row = TypeVar("Row")
Holds = Literal["yes", "partly", "no", "not checkable here"]


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
        *,
        partly: bool = False,
        beyond: bool = False,
    ) -> Claim:
        """Judge a sentence by its rule, which is empty where the sentence is its own.

        It holds if nothing ``failed`` the rule, and otherwise perhaps in part.

        Examples
        --------
        >>> Claim.judged("It rains.", "1 mm.", "at least 2 mm.", "1 mm is less.", partly=True).why
        'Compared as: at least 2 mm. 1 mm is less.'
        """
        if not failed:
            return cls(sentence, numbers, "yes", beyond=beyond)
        why = f"Compared as: {rule} {failed}" if rule else failed
        return cls(sentence, numbers, "partly" if partly else "no", why, beyond=beyond)

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
    """Settings, a frozen dataclass: the sizes of the paper."""
    QUICK: Any
    """The same at sizes that a test can wait for."""

    def artifacts(self, settings: Any) -> Sequence[Artifact]:
        """Return what `run` takes from the cache."""
        ...

    def run(self, settings: Any, cache: Cache) -> Results:
        """Compute every number."""
        ...

    def draw(self, results: Results) -> Figure:
        """Draw the figure."""
        ...

    def caption(self, results: Results) -> Caption:
        """Say what it shows."""
        ...

    def tables(self, results: Results) -> list[Table]:
        """Return the tables beside it."""
        ...

    def claims(self, results: Results) -> list[Claim]:
        """Check what the paper says."""
        ...


def to_json(results: Results) -> str:
    r"""Return results as text: the same numbers give the same bytes.

    Examples
    --------
    >>> to_json({"b": 0.5, "a": [1, 2]})
    '{\n "a": [\n  1,\n  2\n ],\n "b": 0.5\n}\n'
    """
    return json.dumps(results, indent=1, sort_keys=True, allow_nan=False, default=_plain) + "\n"


def _plain(row: Any) -> dict[str, Any]:
    """Return a row, a dataclass, as an object of JSON, without what it does not say."""
    return {name: value for name, value in dataclasses.asdict(row).items() if value is not None}


def rows_of(results: Results, name: str, kind: type[Row]) -> list[Row]:
    """Return rows of results as the dataclass that they were computed as, before JSON or after it.

    Examples
    --------
    >>> rows_of({"tables": [{"title": "T", "header": (), "rows": ()}]}, "tables", Table)[0].title
    'T'
    """
    return [row if isinstance(row, kind) else kind(**row) for row in results.get(name, ())]


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
