"""What was declared about a file, and which of its columns that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from boundwatch.episodes.cells import normal
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import KINDS, Kind, Measure
from boundwatch.errors import Argument, InvalidSetting, Remedy

DEFAULTS: Mapping[str, Kind] = {
    "cost": "cost",
    "success": "success",
    "is_success": "success",
    "reward": "reward",
}
"""The columns that are read without being asked for, in any case, and what they hold."""

CUSTOMARY: Mapping[str, tuple[Kind, ...]] = {
    "cost": ("cost",),
    **dict.fromkeys(("success", "is_success", "next.success", "successes"), ("success",)),
    **dict.fromkeys(("reward", "next.reward", "sum_reward", "results", "r"), ("reward",)),
    "data": ("cost", "success", "reward"),
}
"""The names under which logs keep their outcomes, and what they hold: one is as good as the other."""

_MOST_COLUMNS = 8


class Said(NamedTuple):
    """What a format says about itself: which column holds the outcome, and what that is."""

    kind: Kind
    column: str | None


@dataclass(frozen=True)
class Declared:
    """What somebody declared about a file; its columns are compared in any case and with any spaces.

    Attributes
    ----------
    measure
        The column to read, if one was named.
    design
        How rows relate to each other.
    certified
        The measure of the certificate that will judge the episodes.
    cost_range, success_values
        What was declared without naming a column.
    answers
        The arguments by which the meaning of `asked.ASKED` can be declared, where rows are read as time.

    Examples
    --------
    >>> declared = Declared.of(success="Grasped", design=Design(by="robot"))
    >>> declared.fits(["trial", "robot", "grasped"]), declared.fits(["trial", "grasped"])
    (True, False)
    >>> declared.resolve(["robot", "grasped"]).column
    'grasped'
    """

    measure: Measure | None = None
    design: Design = Design()  # noqa: RUF009  # it is frozen
    certified: Measure | None = None
    cost_range: tuple[float, float] | None = None
    success_values: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        success: str | None = None,
        cost: str | None = None,
        reward: str | None = None,
        cost_range: tuple[float, float] | None = None,
        success_values: Sequence[str] | str = (),
        design: Design = Design(),  # noqa: B008  # it is frozen
        certified: Measure | None = None,
    ) -> Declared:
        """Return what arguments declare; ranges and words are the certificate's unless others are given."""
        words = Measure("success", success_values=success_values).success_values  # type: ignore[arg-type]
        named: dict[Kind, str | None] = {"success": success, "cost": cost, "reward": reward}
        kinds = [kind for kind, column in named.items() if column is not None]
        if len(kinds) != 1:
            measure = Measure.declared(success=success, cost=cost, reward=reward)  # refuses several
            return cls(measure, design, certified, cost_range, words)
        if certified is not None and certified.kind == kinds[0]:
            cost_range, words = cost_range or certified.cost_range, words or certified.success_values
        measure = Measure.declared(
            success=success, cost=cost, reward=reward, cost_range=cost_range, success_values=words
        )
        return cls(measure, design, certified)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that were named, each once."""
        column = None if self.measure is None else self.measure.column
        return tuple(dict.fromkeys(filter(None, [column, *self.design.columns])))

    @property
    def is_numbered(self) -> bool:
        """Whether the column to read was named by its number."""
        return self.measure is not None and (self.measure.column or "").isdigit()

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether a row of names has all columns that were declared.

        If none was declared to be read, it must have the certificate's or a customary one.
        """
        known = set(map(normal, names))
        if not {normal(column) for column in self.columns} <= known:
            return False
        if self.measure is not None:
            return True
        certified = None if self.certified is None else self.certified.column
        return not known.isdisjoint(DEFAULTS) or (certified is not None and normal(certified) in known)

    def locate(self, names: Sequence[str]) -> dict[str, str]:
        """Return the name in the file of every column of the design, by its name as declared.

        Raises
        ------
        InvalidSetting
            If one is not there, or twice.
        """
        return {column: self._find(names, column, self._role(column)) for column in self.design.columns}

    def resolve(self, names: Sequence[str], says: Said | None = None) -> Measure:
        """Return how costs are read from a file with these columns.

        From the column that was declared; else the certificate's, if the file has it; else the one that the
        format names; else the only one with a customary name. A list says nothing about its values: without
        a declaration only a certificate of costs, or of such a list, can.

        Parameters
        ----------
        names
            The columns; none if the file is a list of values.
        says
            What the format says about itself.

        Raises
        ------
        InvalidSetting
            If the column is not there, or twice, or if none or several could be meant.
        """
        if self.measure is not None:
            return self._declared(names, self.measure)
        if (found := self._as_certified(names, says)) is not None:
            return found
        if says is not None:
            return self._measure(*says)
        known = [name for name in names if normal(name) in DEFAULTS]
        if len(known) != 1:
            raise self._ask(names, known)
        return self._measure(DEFAULTS[normal(known[0])], known[0])

    def _declared(self, names: Sequence[str], measure: Measure) -> Measure:
        if measure.column is None or (not names and measure.column == "1"):
            return measure
        return replace(measure, column=self._find(names, measure.column, measure.kind))

    def _as_certified(self, names: Sequence[str], says: Said | None) -> Measure | None:
        """Return the certificate's measure of the column that it means, if there is one."""
        certified = self.certified
        if certified is None:
            return None
        column = certified.column
        if column is not None and (found := [name for name in names if normal(name) == normal(column)]):
            return self._measure(certified.kind, self._find(names, found[0], certified.kind))
        if says is None and not names:
            same = certified.kind == "cost" or column in (None, "1")
            return self._measure(certified.kind, None) if same else None
        if not is_customary(certified):
            return None
        if says is not None:  # a log: its own column, if it holds the same
            return self._measure(*says) if says.kind == certified.kind else None
        fitting = [name for name in names if certified.kind in CUSTOMARY.get(normal(name), ())]
        return self._measure(certified.kind, fitting[0]) if len(fitting) == 1 else None

    def _measure(self, kind: Kind, column: str | None) -> Measure:
        """Return the measure of a column, with what was declared or certified beside its name."""
        cost_range, words = self.cost_range, self.success_values
        if self.certified is not None and self.certified.kind == kind:
            cost_range = cost_range or self.certified.cost_range
            words = words or self.certified.success_values
        return Measure(kind, column, cost_range, words)

    def _find(self, names: Sequence[str], column: str, argument: str) -> str:
        found = [name for name in names if name == column]
        found = found or [name for name in names if normal(name) == normal(column)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidSetting(f"there are {len(found)} columns {column!r}", remedy="rename all but one")
        remedy: Remedy = ("name another with ", Argument(argument), f"; {_listed(names)}")
        raise InvalidSetting(f"there is no column {column!r}", remedy=remedy)

    def _role(self, column: str) -> str:
        """Return the argument that named a column of the design."""
        single = ("strata", "cluster", "by", "policy", "episode", "id")
        named = [role for role in single if getattr(self.design, role) == column]
        return [*named, "pair_by" if column in self.design.pair_by else "where"][0]

    def _ask(self, names: Sequence[str], known: Sequence[str]) -> InvalidSetting:
        if known and len(set(map(normal, known))) == 1:
            return InvalidSetting(f"there are {len(known)} columns {known[0]!r}", remedy="rename all but one")
        problem = "it was not said what to read"
        if known:
            problem = f"columns {', '.join(known)} could all be meant"
        elif not names:
            problem = "is a list, and it was not said what its values are"
        remedy: list[str | Argument] = ["name the column with "]
        for kind, meaning in zip(KINDS, ("yes or no", "more is worse", "more is better"), strict=True):
            joint = "" if kind == KINDS[0] else ", " if kind != KINDS[-1] else " or "
            remedy += [joint, Argument(kind) if names else Argument(kind, "1"), f" ({meaning})"]
        unnamed = "; if that is a value, the column is called 1" if len(names) == 1 else ""
        return InvalidSetting(problem, remedy=(*remedy, f"; {_listed(names)}{unnamed}" if names else ""))


def is_customary(measure: Measure) -> bool:
    """Return whether a column says nothing by its name: it has none, or the usual one for what it holds."""
    name = normal(measure.column or "")
    return not name or name.isdigit() or measure.kind in CUSTOMARY.get(name, ())


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "it is a list, whose only column is 1"
    more = ", ..." if len(names) > _MOST_COLUMNS else ""
    return f"columns: {', '.join(name[:24] for name in names[:_MOST_COLUMNS])}{more}"
