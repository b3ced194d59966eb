"""What was declared about a file, which of its columns that is, and what must be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from boundwatch._support.schema import FrozenMapping
from boundwatch.episodes.asking import ASKED, Question, certified
from boundwatch.episodes.cells import normal
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import KINDS, Kind, Measure, check_range, split_words
from boundwatch.errors import Argument, InvalidSetting

DEFAULTS: Mapping[str, Kind] = {
    "cost": "cost",
    "success": "success",
    "is_success": "success",
    "reward": "reward",
}
"""The columns that are read without being asked for, in any case, and what they hold."""

CUSTOMARY: Mapping[str, Kind] = {
    **DEFAULTS,
    **dict.fromkeys(("next.success", "successes"), "success"),
    **dict.fromkeys(("next.reward", "sum_reward", "results", "r"), "reward"),
}
"""The names under which logs keep their outcomes, and what they hold: one is as good as the other."""

_MOST_COLUMNS = 8


class Said(NamedTuple):
    """What a format says about itself: which column holds the outcome, and what that is."""

    kind: Kind
    column: str | None


@dataclass(frozen=True)
class Declared:
    """What somebody declared about a file; its columns are compared in any case and with any spaces."""

    measure: Measure | None = None
    design: Design = Design()  # noqa: RUF009  # it is frozen
    certified: Measure | None = None  # that of the certificate that will judge the episodes
    cost_range: tuple[float, float] | None = None  # without a column, like these words
    success_values: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()  # the arguments by which `ASKED` can be declared, if rows are time
    as_is: bool = False  # ask nothing
    certified_where: Mapping[str, str] = field(default_factory=FrozenMapping)  # the rows of the certificate

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
        ends = None if cost_range is None else check_range(cost_range)
        beside = cls(None, design, certified, ends, split_words(success_values) if success_values else ())
        named: list[tuple[Kind, str | None]] = [("success", success), ("cost", cost), ("reward", reward)]
        given = [each for each in named if each[1] is not None]
        if not given:
            return beside
        if len(given) > 1:
            several = " and ".join(f"{kind}={column!r}" for kind, column in given)
            raise InvalidSetting(f"{several} cannot both be read", remedy="name one column")
        return cls(beside._measure(*given[0]), design, certified)

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
        if not known.issuperset(map(normal, self.columns)):
            return False
        certified = () if self.certified is None or not self.certified.column else (self.certified.column,)
        return self.measure is not None or not known.isdisjoint([*DEFAULTS, *map(normal, certified)])

    def locate(self, names: Sequence[str]) -> dict[str, str]:
        """Return the name in the file of every column of the design, by its name as declared."""
        found: dict[str, str] = {}
        for argument, column in self.design.named:
            found[column] = found.get(column) or _find(names, column, argument)
        return found

    def resolve(self, names: Sequence[str], says: Said | None = None) -> Measure:
        """Return how costs are read from a file with these columns; a list of values has none.

        From the column that was declared; else the certificate's, if the file has it; else the one that the
        format names; else the only one with a customary name. A list says nothing about its values: without
        a declaration only a certificate of costs, or of such a list, can.
        """
        measure = self.measure
        if measure is None:
            return self._measure(*(self._as_certified(names, says) or says or _only(names)))
        if measure.column is None or (not names and measure.column == "1"):
            return measure
        column = _find(names, measure.column, measure.kind)
        return measure if column == measure.column else replace(measure, column=column)

    def asked(self, names: Sequence[str]) -> list[str]:
        """Return the columns of a file that are asked about."""
        return list(self.questions(names))

    def questions(self, names: Sequence[str]) -> dict[str, Question]:
        """Return what is asked about columns of a file, unless they are declared."""
        if self.as_is:
            return {}
        # Strata that came with a certificate answer nothing where no strata are judged.
        said = [each for each in self.columns if each != self.design.strata or "strata" in self.answers]
        known = {name: one for name, one in ASKED.items() if self.answers or not one.in_order}
        known |= {normal(column): certified(value) for column, value in self.certified_where.items()}
        wanted = known.keys() - set(map(normal, said))
        return {name: known[normal(name)] for name in names if normal(name) in wanted}

    def _as_certified(self, names: Sequence[str], says: Said | None) -> Said | None:
        """Return the column that the certificate means, if there is one."""
        if self.certified is None:
            return None
        kind, column = self.certified.kind, self.certified.column
        if column is not None and normal(column) in map(normal, names):
            return Said(kind, _find(names, column, kind))
        if says is None and not names:
            return Said(kind, None) if kind == "cost" or column in (None, "1") else None
        if not is_customary(self.certified):
            return None
        # In a log its own column, if it holds the same.
        usual = [Said(kind, name) for name in names if CUSTOMARY.get(normal(name)) == kind]
        fitting = usual if says is None else [says] if says.kind == kind else []
        return fitting[0] if len(fitting) == 1 else None

    def _measure(self, kind: Kind, column: str | None) -> Measure:
        """Return the measure of a column, with what was declared or certified beside its name."""
        cost_range, words = self.cost_range, self.success_values
        if self.certified is not None and self.certified.kind == kind:
            cost_range = cost_range or self.certified.cost_range
            words = words or self.certified.success_values
        return Measure(kind, column, cost_range, words)


def is_customary(measure: Measure) -> bool:
    """Return whether a column says nothing by its name: it has none, or the usual one for what it holds."""
    name = normal(measure.column or "")
    return not name or name.isdigit() or CUSTOMARY.get(name) == measure.kind


def _find(names: Sequence[str], column: str, argument: str) -> str:
    """Return the name of a column in the file; refuse one that is not there, or twice."""
    found = [column] * names.count(column) or [each for each in names if normal(each) == normal(column)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidSetting(f"there are {len(found)} columns {column!r}", remedy="rename all but one")
    remedy = ("name another with ", Argument(argument), f"; {_listed(names)}")
    raise InvalidSetting(f"there is no column {column!r}", remedy=remedy)


def _only(names: Sequence[str]) -> Said:
    """Return the only column with a customary name; ask if there is none, or several."""
    known = [name for name in names if normal(name) in DEFAULTS]
    if len(known) == 1:
        return Said(DEFAULTS[normal(known[0])], known[0])
    if len(set(map(normal, known))) == 1:
        raise InvalidSetting(f"there are {len(known)} columns {known[0]!r}", remedy="rename all but one")
    problem = "it was not said what to read"
    if known:
        problem = f"columns {', '.join(known)} could all be meant"
    elif not names:
        problem = "is a list, and it was not said what its values are"
    remedy: list[str | Argument] = ["name the column with "]
    for kind, meaning in zip(KINDS, ("yes or no), ", "more is worse) or ", "more is better)"), strict=True):
        remedy += [Argument(kind) if names else Argument(kind, "1"), f" ({meaning}"]
    unnamed = "; if that is a value, the column is called 1" if len(names) == 1 else ""
    raise InvalidSetting(problem, remedy=(*remedy, f"; {_listed(names)}{unnamed}" if names else ""))


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "it is a list, whose only column is 1"
    names = [
        name for name in names if normal(name).rpartition(".")[2] != "status"
    ]  # of a run, not of a trial
    more = ", ..." if len(names) > _MOST_COLUMNS else ""
    return f"columns: {', '.join(name[:24] for name in names[:_MOST_COLUMNS])}{more}"
