"""The options by which commands read costs, and the one way in which they do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load, no_certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import refuse
from boundwatch.cli.spelling import flag
from boundwatch.episodes.cells import normal
from boundwatch.episodes.design import Design, Reduction
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import KINDS, Kind
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
from boundwatch.watching.sources import is_pipe, name_of, open_lines
from boundwatch.watching.trials import Trial, TrialReader, declare, read_on, refuse_document

METRIC = "metric"
"""What the certificates of several columns are of: a family whose members are metrics."""
LINE_FORMATS = (None, "csv", "jsonl")
"""The formats that can be named where lines are read one by one; None if none is."""


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
    success COL: Column that says whether a trial succeeded (yes/no, pass/fail, 1/0, ...). Columns without
        names are numbered from 1; /topic.field in MCAP. Given several times, as --cost and --reward can be:
        several metrics or, in compare, policies.
    cost COL: Or: column of costs (higher is worse).
    reward COL: Or: column of rewards (higher is better); needs --cost-range. If you name no column, the one
        called cost, success, is_success or reward is read, or a log's own success column.
    cost_range LOW HIGH: Range that costs or rewards can have, known in advance (0 100 for percent); it is
        rescaled to [0, 1].
    success_values WORD,WORD: Words that mean success, if boundwatch does not know them; all others are then
        failures.
    where COL=VALUE: Read only the rows with this value in this column; repeatable.
    strata COL: Column of the fixed set of tasks or conditions whose mean is meant; kept.
    weights TASK=W,...: What each task counts in that mean; 1 if only its name is given. Where trials come one
        by one, it also says which tasks there are. [default: all tasks of the file count alike]
    cluster COL: Column of scenes, seeds or days whose repeats are not independent: each counts once, with the
        mean of its trials; kept.
    episode COL: Column that names the episode, if each row is one step of an episode.
    reduce: How an episode's steps become one value. [default: any for successes, sum for rewards; required
        for costs]
    as_is: Ask nothing about columns that are not declared: tasks come in random order, there is one policy,
        numbers that repeat or are missing mean nothing.
    file_format: Format of the file. [default: recognized by content]
    sheet NAME: Sheet of a workbook; in compare, one for each policy. [default: the one with the column]
    evaluation K: Which evaluation in evaluations.npz, counted from 1. [default: the last]
    """

    success: list[str] | None = None
    cost: list[str] | None = None
    reward: list[str] | None = None
    cost_range: tuple[float, float] | None = None
    success_values: list[str] | None = None
    where: list[str] | None = None
    strata: str | None = None
    weights: list[str] | None = None
    cluster: str | None = None
    episode: str | None = None
    reduce: Reduction | None = None
    as_is: bool = False
    file_format: Format | None = None
    sheet: list[str] | None = None
    evaluation: int | None = None

    @property
    def columns(self) -> dict[str, Kind]:
        """What each column holds that was named; refuse one that was named twice."""
        named = [(column, kind) for kind in KINDS for column in getattr(self, kind) or ()]
        if len({normal(column) for column, _ in named}) < len(named):
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
        other = "cost_range" if kind == "success" else "success_values"
        dropped = (*KINDS, other) if len(kinds) > 1 else KINDS
        changes: dict[str, Any] = {**dict.fromkeys(dropped), kind: [column]}
        return dataclasses.replace(self, **changes)

    def design(self, **others: Any) -> Design:
        """Return how rows relate, as far as options say so; `others` are further fields."""
        names = ("strata", "cluster", "episode", "reduce")
        own = {name: getattr(self, name) for name in names}
        return Design(
            **own, where=conditions(self.where) or {}, weights=parse_weights(self.weights) or {}, **others
        )

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
        self.refuse_several()
        settings: dict[str, Any] = {**vars(self), "where": conditions(self.where), **others}
        settings |= {name: next(iter(getattr(self, name) or ()), None) for name in (*KINDS, "sheet")}
        settings["success_values"] = self.success_values or ()
        settings["weights"] = parse_weights(self.weights)
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
        if "strata" in others.get("answers", ()) or episodes.design.strata is None:
            return episodes
        note = f"{episodes.source}: strata are kept, but all trials are judged as one sample"
        return dataclasses.replace(episodes, notes=(*episodes.notes, note))

    def read_all(
        self,
        path: str,
        *,
        by: str | None = None,
        certificates: Certificate | CertificateFamily | None = None,
        **others: Any,
    ) -> Read:
        """Read each column that was named, or that certificates are of, and take tasks apart.

        The costs of a metric are named by its column, those of a task by task and column; so are the
        certificates that judge them, if there are any. `others` are arguments of `read`.
        """
        reading, metrics = self, None
        if isinstance(certificates, CertificateFamily):
            if is_of_metrics(certificates):
                metrics, reading, by = (
                    certificates,
                    self.of_metrics(certificates),
                    tasks_of_metrics(certificates),
                )
            else:
                by = by or certificates.by
        columns = reading.columns
        if len(columns) < 2 or (metrics is None and certificates is not None):
            episodes = reading.read(path, certificate=certificates, by=by, **others)
            return Read((episodes,), {"": episodes} if by is None else episodes.split(), by)
        if path == "-":
            raise typer.BadParameter("several columns are read one after the other; give a file, not -")
        sources: list[Episodes] = []
        parts: dict[str, Episodes] = {}
        for column in columns:
            judge: Any = None if metrics is None else _metrics(metrics).get(normal(column))
            judge = judge if judge is None or by is not None else judge[""]
            sources.append(episodes := reading.only(column).read(path, certificate=judge, by=by, **others))
            for task, part in ({"": episodes} if by is None else episodes.split()).items():
                parts[f"{task}/{column}" if by is not None else column] = part
        for name in parts if metrics is not None else ():
            if name not in (metrics or ()):
                raise InvalidSetting(no_certificate(name, metrics or ()), where=Place(path))
        return Read(tuple(sources), parts, METRIC if by is None else f"{by}/{METRIC}")

    def read_lines(
        self, stream: str, design: Design, options: str, *answers: str, **others: Any
    ) -> TrialReader:
        """Return what reads trials line by line, as these options want it; refuse what is read as a whole.

        `answers` are the arguments by which a column of tasks can be declared. `others` are arguments of
        `declare` and `TrialReader`.
        """
        names = ["sheet", "episode", "reduce", "evaluation"]
        names += [] if self.file_format in LINE_FORMATS else ["file_format"]
        why = f"does not go with {options}, where trials are read line by line"
        refuse({name: getattr(self, name) for name in names}, why)
        if stream != "-" and not is_pipe(stream) and (Path(stream).is_dir() or _is_no_text(stream)):
            per_line = "one number, JSON object or CSV row per line"
            raise typer.BadParameter(f"{options} is for {per_line}, not {stream}; leave it out")
        declared = declare(
            self.columns,
            design,
            cost_range=self.cost_range,
            success_values=tuple(self.success_values or ()),
            certified=others.pop("certified", None),
            certified_where=others.pop("certified_where", None),
        )
        reader = TrialReader(declared, name_of(stream), answers=answers, as_is=self.as_is, **others)
        refuse_document(stream, reader)
        return reader

    def of_metrics(self, family: CertificateFamily) -> Reading:
        """Return the same with the columns, range and words of certificates of several, unless given."""
        firsts = [next(iter(tasks.values())) for tasks in _metrics(family).values()]
        known = [first.measure for first in firsts if first.measure is not None]
        if 0 < len(self.columns) < len(known):
            remedy: list[str | Argument] = ["name none, or the same ones:"]
            for measure in known:
                remedy += [" ", Argument(measure.kind, measure.column)]
            raise InvalidSetting("these are certificates of several columns", remedy=tuple(remedy))
        columns: dict[str, Any] = {kind: [] for kind in KINDS}
        for each in known:
            columns[each.kind].append(each.column)
        ranges = [each.cost_range for each in known if each.cost_range is not None]
        words = [list(each.success_values) for each in known if each.success_values]
        return dataclasses.replace(
            self,
            **({} if self.columns else columns),
            cost_range=self.cost_range or next(iter(ranges), None),
            success_values=self.success_values or next(iter(words), None),
        )

    def refuse_several(self) -> None:
        """Refuse several columns or sheets where one is read."""
        if len(self.columns) > 1:
            listed = " and ".join(f"{flag(kind)} {column}" for column, kind in self.columns.items())
            raise typer.BadParameter(
                f"{listed} go together with the certificates of several columns (certify with both first), "
                "or in compare with one file that has a column per policy; name one column"
            )
        if len(self.sheet or ()) > 1:
            raise typer.BadParameter("several --sheet go with compare and one workbook; name one")

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


def is_of_metrics(family: CertificateFamily) -> bool:
    """Return whether the members are metrics, or the metrics of tasks, instead of tasks."""
    return family.by.split("/")[-1] == METRIC


def tasks_of_metrics(family: CertificateFamily) -> str | None:
    """Return the column of the tasks whose metrics these are, if there is one."""
    return family.by.removesuffix(METRIC).rstrip("/") or None


def _metrics(family: CertificateFamily) -> dict[str, dict[str, Certificate]]:
    """Return the certificates of each metric, by its column, for each task; without tasks it has no name."""
    found: dict[str, dict[str, Certificate]] = {}
    for name, one in family.items():
        column = "" if one.measure is None else one.measure.column or ""
        found.setdefault(normal(column), {})[name.removesuffix(column).removesuffix("/")] = one
    return found


def is_certificate(path: str) -> bool:
    """Return whether a file holds certificates."""
    try:
        load(path)
    except (BoundwatchError, OSError):
        return False
    return True


def _is_no_text(path: str) -> bool:
    if not Path(path).exists():  # said when it is opened
        return False
    with files.open_binary(path) as file:
        return file.read(8).startswith((b"\x1f\x8b", *MAGIC))


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
        try:
            task, number = (task.strip(), float(weight)) if equals else (each, 1.0)
        except ValueError:
            raise typer.BadParameter(f"--weights {each}: write TASK=NUMBER") from None
        if not task or task in found:
            raise typer.BadParameter(f"--weights {each}: give each task once, as TASK=NUMBER")
        found[task] = number
    return found or None


def conditions(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return ``COL=VALUE``, given several times, as a mapping; None if it was not given.

    Examples
    --------
    >>> conditions(["site=lab", "day=2"])
    {'site': 'lab', 'day': '2'}
    """
    if given is None:
        return None
    found: dict[str, str] = {}
    for each in given:
        column, equals, value = each.partition("=")
        if not column or not equals:
            raise typer.BadParameter(f"--where {each}: write COL=VALUE")
        if column in found:
            raise typer.BadParameter(f"--where {column} is given twice; no row can have both values")
        found[column] = value
    return found
