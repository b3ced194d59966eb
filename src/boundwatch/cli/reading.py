"""The options by which commands read costs, and the one way in which they do."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load, no_certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import refuse
from boundwatch.cli.spelling import flag
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.design import Design, Reduction
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import COUNTS, KINDS, Kind, Measure
from boundwatch.episodes.words import normal
from boundwatch.errors import (
    Argument,
    BoundwatchError,
    InvalidCost,
    InvalidSetting,
    Place,
    ProvenanceMismatch,
)
from boundwatch.readers import Format, read_costs
from boundwatch.readers.opening import MAGIC
from boundwatch.readers.table import Line
from boundwatch.readers.text import LONGEST_LINE
from boundwatch.watching.sources import is_pipe, name_of, open_lines
from boundwatch.watching.trials import Trial, TrialReader, read_on

METRIC = "metric"
"""What the certificates of several columns are of: a family whose members are metrics."""
ANSWERS = ("strata", "where")
"""How people say what a column of tasks means where somebody chose their order."""
_NUMBERS = ("cost_range", "timeout_as", "empty_as", "count")
_BESIDE: dict[Kind, tuple[str, ...]] = {
    "success": ("success_values", "empty_as", "count"),
    **dict.fromkeys(("cost", "reward"), _NUMBERS),
    **dict.fromkeys(COUNTS, ("trials", "cost_range")),
}
"""What goes with each kind of column: of several, the others have none of it."""
Loaded = Certificate | CertificateFamily
"""What a file of certificates holds."""


@dataclass(frozen=True)
class Read:
    """What was read: once for each column, and by the names of what is judged separately.

    The only part has no name; `by` is what the parts are of, as in `CertificateFamily`.
    """

    sources: tuple[Episodes, ...]
    parts: Mapping[str, Episodes]
    by: str | None


@dataclass(frozen=True)
class Reading:
    """How to read the file; a command that takes one has an option for each field.

    Options
    -------
    success COL: Column that says whether a trial succeeded (yes/no, 1/0, ...).
    cost COL: Or: column of costs (higher is worse).
    reward COL: Or: column of rewards (higher is better); needs --cost-range.
    cost_range LOW HIGH: Range of costs or rewards, known in advance; it becomes [0, 1].
    success_values WORD,WORD: Words that mean success, if not the usual ones; others are failures.
    successes COL: Or: column of counts: 9/10, or how many (85%) of --trials.
    failures COL: too
    trials COL: of counts
    count COL: per row
    timeout_as X: its value
    empty_as X: empty cells
    where COL=VALUE: Read only the rows with this value in this column; repeatable.
    fill_down COL: merged cells
    strata COL: Column of the fixed set of tasks whose mean is meant.
    weights TASK=W,...: of strata
    cluster COL: Column of scenes, seeds or days, whose repeats are not independent.
    episode COL: Column that names the episode, if each row is one of its steps.
    reduce any|sum|mean|max|last: steps
    as_is: Ask nothing about columns that are not declared.
    file_format F: input
    sheet NAME: Sheet of a workbook. [default: the one with the column]
    """

    panel: ClassVar[str] = "The file"
    success: list[str] | None = None
    cost: list[str] | None = None
    reward: list[str] | None = None
    cost_range: tuple[float, float] | None = None
    success_values: list[str] | None = None
    successes: list[str] | None = None
    failures: list[str] | None = None
    trials: list[str] | None = None
    count: str | None = None
    timeout_as: float | None = None
    empty_as: str | None = None
    where: list[str] | None = None
    fill_down: list[str] | None = None
    strata: str | None = None
    weights: list[str] | None = None
    cluster: str | None = None
    episode: str | None = None
    reduce: Reduction | None = None
    as_is: bool = False
    file_format: Format | None = None
    sheet: list[str] | None = None

    @property
    def columns(self) -> dict[str, Kind]:
        """What each column holds that was named; refuse one that was named twice."""
        named = [(column, kind) for kind in KINDS for column in getattr(self, kind) or ()]
        if [kind for _, kind in named] == ["successes", "failures"] and not self.trials:
            named.pop()  # both are counts of the same trials
        if len(named) > 1 and len({normal(column) for column, _ in named}) < len(named):
            listed = ", ".join(f"{flag(kind)} {column}" for column, kind in named)
            raise typer.BadParameter(f"{listed}: name each column once")
        return dict(named)

    @property
    def several(self) -> bool:
        """Whether several columns or sheets were named."""
        return len(self.columns) > 1 or len(self.sheet or ()) > 1

    def only(self, column: str) -> Reading:
        """Return the same for one of the columns, with the range or the words that go with it."""
        kind, kinds = self.columns[column], set(self.columns.values())
        dropped = (*KINDS, *(set(sum(_BESIDE.values(), ())) - {*_BESIDE[kind]} if len(kinds) > 1 else ()))
        changes: dict[str, Any] = {**dict.fromkeys(dropped), kind: [column]}
        if len(self.trials or ()) > 1:
            counted = [each for each, its in self.columns.items() if its in COUNTS]
            if len(counted) != len(self.trials or ()):
                raise typer.BadParameter("--trials: give one for all columns, or one for each")
            changes["trials"] = dict(zip(counted, ([each] for each in self.trials or ()), strict=True))[
                column
            ]
        return dataclasses.replace(self, **changes)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `read_costs` that these options are."""
        self.refuse_several()
        firsts = {name: next(iter(getattr(self, name) or ()), None) for name in (*KINDS, "trials", "sheet")}
        words, where = self.success_values or (), conditions(self.where)
        weights, filled = parse_weights(self.weights), self.fill_down or ()
        lists = {"success_values": words, "where": where, "weights": weights, "fill_down": filled}
        return vars(self) | firsts | lists

    def design(self, kind: type[Design] = Design, **others: Any) -> Design:
        """Return how rows relate, as far as options say so; `others` are further fields."""
        own = {name: getattr(self, name) for name in ("strata", "cluster", "episode", "reduce")}
        parsed = {"where": conditions(self.where) or {}, "weights": parse_weights(self.weights) or {}}
        return kind(**own | parsed | others)

    def read(
        self,
        path: str,
        *,
        certificate: Certificate | Mapping[str, Certificate] | None = None,
        allow_own: bool | None = None,
        **others: Any,
    ) -> Episodes:
        """Read costs, for a certificate to judge them if there is one; its own with `allow_own`.

        That is None for a command without the option. `others` are further arguments of `read_costs`.
        """
        settings = self.arguments() | others
        try:
            episodes = read_costs(path, certificate=certificate, allow_own=bool(allow_own), **settings)
        except ProvenanceMismatch as error:
            if allow_own is not None:
                error.remedy += (" (", Argument("allow_own", True), " shows what it would say)")
            raise
        except (InvalidCost, InvalidSetting):
            if path == "-" or not is_certificate(path):
                raise
            problem, remedy = "is a certificate, not costs", "give the file of the episodes"
            raise InvalidSetting(problem, where=Place(path), remedy=remedy) from None
        return episodes

    def read_all(
        self, path: str, *, by: str | None = None, certificates: Loaded | None = None, **others: Any
    ) -> Read:
        """Read each column that was named, or that certificates are of, and take tasks apart.

        The costs of a metric are named by its column, those of a task by task and column; so are the
        certificates that judge them, if there are any. `others` are arguments of `read`.
        """
        by, metrics = tasks_of(certificates, by), metrics_of(certificates)
        reading = self.of_metrics(metrics) if metrics else self
        columns = reading.columns
        if len(columns) < 2 or (certificates is not None and not metrics):
            episodes = reading.read(path, certificate=certificates, by=by, **others)
            return Read((episodes,), {"": episodes} if by is None else episodes.split(), by)
        if path == "-":
            raise typer.BadParameter("several columns are read one after the other; give a file, not -")
        sources: list[Episodes] = []
        parts: dict[str, Episodes] = {}
        for column in columns:
            judge: Any = metrics.get(normal(column))
            judge = judge if judge is None or by is not None else judge[""]
            sources.append(episodes := reading.only(column).read(path, certificate=judge, by=by, **others))
            for task, part in ({"": episodes} if by is None else episodes.split()).items():
                parts[f"{task}/{column}" if by is not None else column] = part
        if isinstance(certificates, CertificateFamily):
            for name in parts.keys() - certificates.keys():
                problem, remedy = no_certificate(name, certificates)
                raise InvalidSetting(problem, where=Place(path), remedy=remedy)
        return Read(tuple(sources), parts, METRIC if by is None else f"{by}/{METRIC}")

    def read_lines(
        self,
        stream: str,
        design: Design,
        options: str,
        answers: tuple[str, ...],
        *,
        certificates: Loaded | None = None,
        binary: bool = False,
    ) -> TrialReader:
        """Return what reads trials line by line, as these options want it; refuse what is read as a whole.

        `answers` are the arguments by which a column of tasks can be declared.
        """
        names = ["sheet", "episode", "reduce", "fill_down"]
        names += [] if self.file_format in (None, "csv", "jsonl") else ["file_format"]
        why = f"does not go with {options}, where trials are read line by line"
        refuse({name: getattr(self, name) for name in names}, why)
        everyone, one = out.each_of(certificates), self.arguments()
        judge = next(iter(everyone), None)
        certified = None if judge is None else judge.measure or Measure("cost")
        beside = ("cost_range", "success_values", "trials", "count", "timeout_as", "empty_as")
        said = {name: one[name] for name in (*KINDS, *beside)}
        declared = dataclasses.replace(
            Declared.of(**said, design=design, certified=certified),
            answers=answers,
            as_is=self.as_is,
            certified_where=judge.design.where if judge else {},
        )
        binary = binary or (bool(everyone) and all(each.binary for each in everyone))
        reader = TrialReader(declared, name_of(stream), binary=binary)
        _refuse_whole(stream, reader, options)
        return reader

    def of_metrics(self, metrics: Mapping[str, Mapping[str, Certificate]]) -> Reading:
        """Return the same with the columns of the certificates of several, unless they are given.

        Without such certificates, only one may be named.
        """
        if not metrics:
            self.refuse_several()
            return self
        firsts = [next(iter(tasks.values())).measure for tasks in metrics.values()]
        known = [measure for measure in firsts if measure is not None]
        if 0 < len(self.columns) < len(known):
            remedy: list[str | Argument] = ["name none, or the same ones:"]
            for measure in known:
                remedy += [" ", Argument(measure.kind, measure.column)]
            raise InvalidSetting("these are certificates of several columns", remedy=tuple(remedy))
        if self.columns:
            return self
        columns: Any = {kind: [each.column for each in known if each.kind == kind] for kind in KINDS}
        return dataclasses.replace(self, **columns)

    def refuse_several(self) -> None:
        """Refuse several columns or sheets where one is read."""
        if len(self.columns) > 1:
            listed = " and ".join(f"{flag(kind)} {column}" for column, kind in self.columns.items())
            raise typer.BadParameter(
                f"{listed} go together with the certificates of several columns (certify with both first), "
                "or in compare with one file that has a column per policy; name one column"
            )
        for name in ("sheet", "trials"):
            if len(getattr(self, name) or ()) > 1:
                several = "compare and one workbook" if name == "sheet" else "a column of counts for each"
                raise typer.BadParameter(f"several --{name} go with {several}; name one")

    def refuse_without_costs(self, **others: object) -> None:
        """Refuse options of reading where nothing is read: they would be ignored."""
        refuse(vars(self) | others, "goes with --costs; give them, or leave it out")


def arriving(stream: str, reader: TrialReader, *, wait: bool) -> Iterator[Trial | None]:
    """Yield the trials of a stream, None whenever there is nothing new; say what is noticed about lines."""
    for found in read_on(open_lines(stream, follow=wait), reader):
        if isinstance(found, str):
            out.warn(f"note: {reader.source}: {found}")
        else:
            yield found


def metrics_of(loaded: Loaded | None) -> dict[str, dict[str, Certificate]]:
    """Return the certificates of each metric, by its column, for each task; nothing if they are of none.

    Without tasks, the only one has no name.
    """
    found: dict[str, dict[str, Certificate]] = {}
    if isinstance(loaded, CertificateFamily) and loaded.by.split("/")[-1] == METRIC:
        for name, one in loaded.items():
            column = "" if one.measure is None else one.measure.column or ""
            found.setdefault(normal(column), {})[name.removesuffix(column).removesuffix("/")] = one
    return found


def tasks_of(loaded: Loaded | None, by: str | None) -> str | None:
    """Return the column of what is judged separately; with the certificates of several, theirs."""
    if not isinstance(loaded, CertificateFamily):
        return by
    return loaded.by.removesuffix(METRIC).rstrip("/") or None if metrics_of(loaded) else by or loaded.by


def is_certificate(path: str) -> bool:
    """Return whether a file holds certificates."""
    try:
        load(path)
    except (BoundwatchError, OSError):
        return False
    return True


def _refuse_whole(path: str, reader: TrialReader, options: str) -> None:
    """Refuse what has no lines: a folder, an archive, JSON without a newline that is no episode."""
    if path == "-" or is_pipe(path) or not Path(path).exists():  # the last is said when it is opened
        return
    is_folder, head = Path(path).is_dir(), b""
    if not is_folder:
        with files.open_binary(path) as file:
            head = file.read(LONGEST_LINE + 1)
    if is_folder or head.startswith((b"\x1f\x8b", *MAGIC)):
        per_line = "one number, JSON object or CSV row per line"
        raise typer.BadParameter(f"{options} is for {per_line}, not {path}; leave it out")
    first = head.lstrip()[:1]
    if b"\n" in head or not first or first not in b"[{":
        return
    if first == b"{":
        try:
            json.loads(head)
        except ValueError:  # it is still being written
            return
    before = reader.state
    fault = reader.read([Line(1, head)]).fault
    reader.restore(before)
    if fault is not None:
        raise fault


def parse_weights(given: Sequence[str] | None) -> dict[str, float] | None:
    """Return ``TASK=WEIGHT,TASK``, possibly given several times, as a mapping; None if it was not given.

    Examples
    --------
    >>> parse_weights(["mug=2,bowl", "cup=0.5"])
    {'mug': 2.0, 'bowl': 1.0, 'cup': 0.5}
    """
    found: dict[str, float] = {}
    for each in (part.strip() for one in given or () for part in one.split(",")):
        task, equals, weight = each.rpartition("=")
        task = task.strip() if equals else each
        if not task or task in found:
            raise typer.BadParameter(f"--weights {each}: give each task once, as TASK=NUMBER")
        try:
            found[task] = float(weight) if equals else 1.0
        except ValueError:
            raise typer.BadParameter(f"--weights {each}: write TASK=NUMBER") from None
    return found or None


def conditions(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return ``COL=VALUE``, given several times, as a mapping; None if it was not given.

    Examples
    --------
    >>> conditions(["site=lab", "day=2"])
    {'site': 'lab', 'day': '2'}
    """
    found: dict[str, str] = {}
    for each in given or ():
        column, equals, value = each.partition("=")
        if not column or not equals:
            raise typer.BadParameter(f"--where {each}: write COL=VALUE")
        if column in found:
            raise typer.BadParameter(f"--where {column} is given twice; no row can have both values")
        found[column] = value
    return found or None
