"""What was declared about a file, which of its columns that is, and what must be asked.

The flag is the law: a name never decides what a cell means. It may ask: several values of a column that
matters to the guarantee, and that nobody declared, are refused. ``as_is`` silences all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.cells import normal, number
from boundwatch.episodes.measure import COUNTS, KINDS, Design, Kind, Measure, check_range
from boundwatch.errors import Argument, InvalidSetting, Place

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

Said = tuple[Kind, str | None]
"""What a format says about itself: what the column of the outcome holds, and its name."""

_TEXTS = (str, list, tuple)
_BESIDE = ("trials", "count", "timeout_as", "empty_as", "cost_range", "success_values")
_OF_DESIGN = Design.__dataclass_fields__
_SHOWN = 5
_MOST_COLUMNS = 8


class Question(NamedTuple):
    """Why several values of a column are asked about, what can be said, and what ``as_is`` then means."""

    why: str
    answers: tuple[str, ...]
    as_is: str
    in_order: bool = False  # only where rows are read as time
    known: str = ""  # the value that is not offered
    above_1: bool = False  # numbers above 1 are asked about, not several values


_SEVERAL = Question("and these may be several policies", ("policy", "where"), "they are one policy")
_TASKS = Question(
    "and the order of trials matters here",
    ("strata", "by", "where"),
    "they come in random order",
    in_order=True,
)
_COUNTS = Question("and may count trials", ("count", "trials"), "a row is one trial", above_1=True)
# The only names that are looked at: those that ask, those whose numbers should not have gaps, and both these
# and those of scenes should not repeat.
_ASKED = {
    "task": _TASKS,
    **dict.fromkeys(("policy", "model", "method", "checkpoint"), _SEVERAL),
    **dict.fromkeys(("n", "trials", "count"), _COUNTS),
}
NUMBERING = ("trial", "attempt", "run", "episode")
SCENES = ("scene", "scene_id", "seed")
_MEANINGS = {
    "strata": "the mean over them is meant",
    "by": "each is judged by itself",
    "policy": "they are compared",
    "where": "only this one is meant",
}


class Layout(NamedTuple):
    """Which columns of a file are read, and how: resolved once, when their names are known."""

    measure: Measure
    roles: dict[str, list[str]]
    """The names in the file of the columns of the design, by what they are declared as."""
    questions: dict[str, Question]
    """What is asked about other columns."""
    wanted: list[str]
    """The columns that every row must have."""
    numbering: list[str]
    """Others that may number rows, by their names."""
    scenes: list[str]
    """Others that may say which rows repeat a scene."""


@dataclass(frozen=True)
class Declared:
    """What somebody declared about a file; its columns are compared in any case and with any spaces."""

    measure: Measure | None = None
    design: Design = Design()  # noqa: RUF009  # it is frozen
    certified: Measure | None = None  # that of the certificate that will judge the episodes
    beside: Mapping[str, Any] = field(default_factory=FrozenMapping)  # what was said without naming a column
    answers: tuple[str, ...] = ()  # the arguments by which columns can be declared, if rows are time
    as_is: bool = False  # ask nothing
    certified_where: Mapping[str, str] = field(default_factory=FrozenMapping)  # the rows of the certificate
    binary: bool | None = None  # whether every cost was promised to be 0 or 1

    @classmethod
    def of(cls, certificate: object = None, *, by_line: bool = False, **given: Any) -> Declared:
        """Return what arguments of `read_costs` declare, `given` by their names.

        What was not declared is as certified (by one certificate, or one per task): ranges, words and the
        like, and how rows relate unless they are read `by_line`, but for the rows that are meant.
        """
        listed = list(certificate.values()) if isinstance(certificate, Mapping) else [certificate]
        certificates = [each for each in listed if isinstance(each, Certificate)]
        if certificate is not None and not 0 < len(listed) == len(certificates):
            problem, remedy = "is neither a certificate nor one per task", "load it with Certificate.load"
            raise InvalidSetting(problem, name="certificate", value=certificate, remedy=remedy)
        fields = {name: given[name] for name in _OF_DESIGN if given.get(name)}
        certified, design, known, binary = None, Design(), Design(), given.get("binary")
        if binary is not None:
            binary = check_flag(binary, "binary")
        if certificates:
            certified = certificates[0].measure or Measure("cost")  # of bare costs
            known = certificates[0].design
            design = design if by_line else replace(known, where={})
            if given.get("episode") is not None:  # then the certificate's rule is for other steps
                fields.setdefault("reduce", None)
            binary = all(one.binary for one in certificates) or None if binary is None else binary
        asks = tuple(given.get("answers", ())), bool(given.get("as_is"))
        found = cls(None, replace(design, **fields), certified, FrozenMapping(), *asks, known.where, binary)
        return found._measured(given)

    def _measured(self, given: Mapping[str, Any]) -> Declared:
        """Return the same with the column that was named, if any was, and what was said beside it."""
        said: dict[str, Any] = {name: given[name] for name in _BESIDE if given.get(name) is not None}
        said = {name: each for name, each in said.items() if not isinstance(each, _TEXTS) or each}
        if isinstance(said.get("empty_as"), float | int):
            said["empty_as"] = shortest(said["empty_as"])
        if "cost_range" in said:
            said["cost_range"] = check_range(said["cost_range"])
        named: list[Said] = [(kind, given[kind]) for kind in KINDS if given.get(kind) is not None]
        if [kind for kind, _ in named] == ["successes", "failures"] and "trials" not in said:
            said["failures"] = named.pop()[1]
        if len(named) > 1:
            several = " and ".join(f"{kind}={column!r}" for kind, column in named)
            raise InvalidSetting(f"{several} cannot both be read", remedy="name one column")
        found = replace(self, beside=FrozenMapping(said))
        return replace(self, measure=found._measure(*named[0])) if named else found

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that were named, each once."""
        beside = (self.beside.get("trials"), self.beside.get("count"))
        measured = beside if self.measure is None else self.measure.columns if self.measure.column else ()
        return tuple(dict.fromkeys(filter(None, [*measured, *map(itemgetter(1), self.design.named)])))

    def known(self, cells: Sequence[str]) -> tuple[int, int]:
        """Return how many columns these name that were declared or are customary, and how many are filled."""
        columns = {*map(normal, self.columns), *CUSTOMARY}
        return len(columns.intersection(map(normal, cells))), sum(map(bool, cells))

    def fitting(self, readings: Sequence[Sequence[str]]) -> tuple[Sequence[str], bool]:
        """Return the widest reading of a row that has all columns that were declared, or nothing.

        If none was declared to be read, it must have the certificate's or a customary one. Also return
        whether it may be a row already: if columns are numbered, or none is wanted and it is all numbers.
        """
        columns = set(map(normal, self.columns))
        is_numbered = self.measure is not None and (self.measure.column or "").isdigit()
        if is_numbered or not columns:
            for cells in readings:
                if all(map(number, cells)):
                    return (), True
        certified = None if self.certified is None else self.certified.column
        read = {*DEFAULTS, normal(certified or "cost")}
        found: Sequence[str] = ()
        for cells in readings:
            known = set(map(normal, cells))
            if len(cells) > len(found) and known >= columns and (self.measure is not None or known & read):
                found = cells
        return found, is_numbered

    def layout(self, names: Sequence[str], says: Said | None = None) -> Layout:
        """Return how costs are read from a file with these columns, and what is asked; a list has none.

        From the column that was declared; else the certificate's, if the file has it; else the one that the
        format names; else the only one with a customary name. A list says nothing about its values: without
        a declaration only a certificate of costs, or of such a list, can.
        """
        measure = self.measure or self._measure(*(self._as_certified(names, says) or says or _only(names)))
        if measure.column is not None and (names or measure.column != "1" or measure.counted):
            found: dict[str, Any] = {}
            for name in ("column", "trials", "failures", "count"):
                if (column := getattr(measure, name)) is not None:
                    found[name] = _find(names, column, measure.kind if name == "column" else name)
            measure = measure if found.items() <= vars(measure).items() else replace(measure, **found)
        if measure.counted and self.answers and "count" not in self.answers:
            problem = f"column {measure.column!r} counts trials, and their order matters here"
            remedy = "give a row per trial, in their order; certify, check and compare --once take counts"
            raise InvalidSetting(problem, remedy=remedy)
        if measure.counted and self.design.episode is not None:
            problem, remedy = "goes with rows that are steps, not with counts", "leave it out"
            raise InvalidSetting(problem, name="episode", value=self.design.episode, remedy=remedy)
        layout = Layout(measure, {}, {}, [], [], [])
        for argument, column in self.design.named:
            layout.roles.setdefault(argument, []).append(place := _find(names, column, argument))
            if argument not in ("where", "fill_down") and place in measure.columns:
                problem, remedy = "is a column that is measured", "name another, or leave it out"
                raise InvalidSetting(problem, name=argument, value=column, remedy=remedy)
        layout.wanted.extend(dict.fromkeys(chain(measure.columns, *layout.roles.values())))
        self._look(names, layout)
        return layout

    def _look(self, names: Sequence[str], layout: Layout) -> None:
        """Say what is asked about columns, and which others may number rows or repeat scenes."""
        known = {} if self.as_is else dict(_ASKED)
        for column, value in () if self.as_is else self.certified_where.items():
            why = f"and the certificate is of {value}"
            known[normal(column)] = Question(why, ("where",), "all are meant", known=value)
        measured = set(map(normal, layout.measure.columns))
        said = measured.union(map(normal, self.columns))
        if self.design.strata is not None and "strata" not in self.answers:
            said.discard(normal(self.design.strata))  # those of a certificate, where no strata are judged
        if self.answers and "count" not in self.answers:  # rows are time: sharing a task is no answer
            said -= {"task"} - measured.union(map(normal, replace(self.design, pair_by=()).columns))
        for name, times in Counter(names).items():
            key = normal(name)
            if key in known and key not in said and (self.answers or not known[key].in_order):
                layout.questions[name] = known[key]
            if name not in layout.wanted and times == 1:
                layout.numbering.extend([name] if key in NUMBERING else ())
                layout.scenes.extend([name] if key in SCENES and not self.as_is else ())

    def _as_certified(self, names: Sequence[str], says: Said | None) -> Said | None:
        """Return the column that the certificate means, if there is one."""
        if self.certified is None:
            return None
        kind, column = self.certified.kind, self.certified.column
        if column is not None and normal(column) in map(normal, names):
            return kind, _find(names, column, kind)
        if says is None and not names:
            return (kind, None) if kind == "cost" or column in (None, "1") else None
        # In a log its own column, if it holds the same.
        usual: list[Said] = [(kind, name) for name in names if CUSTOMARY.get(short(name)) == kind]
        fitting = usual if says is None else [says] if says[0] == kind else []
        return fitting[0] if len(fitting) == 1 and is_customary(self.certified) else None

    def _measure(self, kind: Kind, column: str | None) -> Measure:
        """Return the measure of a column, with what was declared or certified beside its name."""
        known: dict[str, Any] = dict(self.beside)
        if self.certified is not None and self.certified.kind == kind:
            same = normal(column or "") == normal(self.certified.column or "")
            # Trials go with their column.
            names = ("failures", *_BESIDE) if same else _BESIDE[2:]
            certified = {name: getattr(self.certified, name) for name in names}
            known = {name: value for name, value in certified.items() if value is not None} | known
        return Measure(kind, column, **known)


def one_value(
    question: Question,
    cells: Iterable[tuple[Sequence[str], str]],
    known: dict[str, str],
    where: Place,
    offered: Sequence[str],
) -> None:
    """Take further cells of a column, each with what its rows are taken apart by (a policy, a robot).

    Refuse a second value, empty cells aside. `known` has the value of each part so far. `offered` are the
    arguments that can be given here.
    """
    if question.above_1:
        _refuse_counts(question, [value for _, value in cells], known, where, offered)
        return
    pairs = [("/".join(part), value) for part, value in dict.fromkeys(cells) if value]
    for group, value in pairs:
        if normal(known.setdefault(group, value)) == normal(value):
            continue
        several = list(dict.fromkeys([known[group], *(each for of, each in pairs if of == group)]))
        other = next((each for each in several if normal(each) != normal(question.known)), several[0])
        remedy: list[str | Argument] = ["declare it: "]
        for answer in filter(offered.__contains__, question.answers):
            chosen: object = {where.column: other} if answer == "where" else where.column
            remedy += [Argument(answer, chosen), f" ({_MEANINGS[answer]}), or "]
        remedy += [Argument("as_is", True), f" ({question.as_is})"]
        listed = ", ".join(several[:_SHOWN]) + (", ..." if len(several) > _SHOWN else "")
        finished = question.in_order and "count" in offered
        why = "and the mean over them, or one of them, may be meant" if finished else question.why
        raise InvalidSetting(f"has several values ({listed}), {why}", where=where, remedy=tuple(remedy))


def _refuse_counts(
    question: Question, cells: Sequence[str], known: dict[str, str], where: Place, offered: Sequence[str]
) -> None:
    """Refuse numbers above 1 in a column that is called so, unless each is one more than the one above it."""
    for cell in cells:
        written, above = number(cell), number(known.get("", "0"))
        known[""] = cell
        if written is None or written.value <= 1 or (above and written.value == above.value + 1):
            continue
        remedy: list[str | Argument] = [
            "give a row per trial (compare --once, certify and check take counts), or "
        ]
        if "count" in offered:
            remedy = ["declare it: "]
            for kind in COUNTS:
                remedy += [Argument(kind), " ", Argument("trials", where.column), ", "]
            remedy += [Argument("count", where.column), " (so many trials like this row), or "]
        remedy += [Argument("as_is", True), f" ({question.as_is})"]
        raise InvalidSetting(f"is not used, {question.why}", where=where, value=cell, remedy=tuple(remedy))


def is_customary(measure: Measure) -> bool:
    """Return whether a column says nothing by its name: it has none, or the usual one for what it holds."""
    name = normal(measure.column or "")
    return not name or name.isdigit() or CUSTOMARY.get(name) == measure.kind


def short(name: str) -> str:
    """Return a name as it is compared, without the topic of a message (/topic.field)."""
    return normal(name.partition(".")[2] if name.startswith("/") else name)


def _find(names: Sequence[str], column: str, argument: str) -> str:
    """Return the name of a column in the file; refuse one that is not there, or twice."""
    found = [column] * names.count(column) or [each for each in names if normal(each) == normal(column)]
    found = found or [each for each in names if short(each) == normal(column) or each == f"/{column}"]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidSetting(f"there are {len(found)} columns {column!r}", remedy="rename all but one")
    foreign = "" if "".join(names).isascii() else "; if the file shows others, save it as UTF-8"
    remedy = ("name another with ", Argument(argument), f"; {_listed(names)}{foreign}")
    raise InvalidSetting(f"there is no column {column!r}", remedy=remedy)


def _only(names: Sequence[str]) -> Said:
    """Return the only column with a customary name; ask if there is none, or several."""
    known = [name for name in names if short(name) in DEFAULTS]
    if len(known) == 1:
        return DEFAULTS[short(known[0])], known[0]
    if len(set(map(normal, known))) == 1:
        raise InvalidSetting(f"there are {len(known)} columns {known[0]!r}", remedy="rename all but one")
    problem = "it was not said what to read"
    if known:
        problem = f"columns {', '.join(known)} could all be meant"
    elif not names:
        problem = "is a list, and it was not said what its values are"
    remedy: list[str | Argument] = ["name the column with "]
    for kind, meaning in zip(KINDS[:3], ("yes or no), ", "more is worse), ", "more is better)"), strict=True):
        remedy += [Argument(kind) if names else Argument(kind, "1"), f" ({meaning}"]
    if len(names) > 1:
        remedy += [" or ", Argument("successes"), " (counts, with ", Argument("trials"), ")"]
    if len({re.sub(r"\d+$", "", name) for name in names}) <= len(names) - 2:  # T1, T2, T3
        remedy += ["; if its columns are trials, transpose it: a row per trial"]
    raise InvalidSetting(problem, remedy=(*remedy, f"; {_listed(names)}" if names else ""))


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "it is a list, whose only column is 1"
    offered = [name for name in names if not normal(name).endswith("status")]  # of a run, not of a trial
    more = ", ..." if len(offered) > _MOST_COLUMNS else ""
    return f"columns: {', '.join(name[:24] for name in offered[:_MOST_COLUMNS])}{more}"
