"""Episodes in: cost files, and the logs of LeRobot, Stable-Baselines3 and MCAP.

`opening` finds out which format a file has; `formats`, `spreadsheet`, `lerobot`, `lerobot_dataset`,
`stable_baselines3` and `mcap` turn it into a `Table`, those of sheets by `sheet`; `steps` makes one row per
episode of it; `table` turns a column into costs, with `words` and `numbers` for its cells. `lines` does
the same for a table or a stream that is still being written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.text import shown
from boundwatch._support.validation import check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.damage import MOST_COLUMNS, refuses_damage
from boundwatch.episodes.declared import is_customary
from boundwatch.episodes.design import Design
from boundwatch.episodes.diagnostics import diagnose
from boundwatch.episodes.fit import fit
from boundwatch.episodes.measure import Measure
from boundwatch.episodes.opening import Format, holds_lines, open_table
from boundwatch.episodes.steps import (
    Reduction,
    in_blocks,
    reduction,
    repeated_episodes,
    task_columns,
    task_names,
    to_episodes,
)
from boundwatch.episodes.table import (
    CUSTOMARY,
    Meaning,
    Table,
    Wanted,
    as_certified,
    check_range,
    never_said,
    success_words,
    to_costs,
)
from boundwatch.episodes.words import normal, sense
from boundwatch.errors import InvalidCost, InvalidSetting

__all__ = ["Episodes", "Format", "Reduction", "holds_lines", "read_costs"]


@dataclass(frozen=True)
class Episodes:
    """The costs of some episodes, and where they came from.

    It can be used wherever an array of costs can.
    """

    costs: NDArray[np.float64]
    """One cost per episode, in [0, 1], higher is worse."""
    binary: bool
    """Whether every cost is 0 or 1, by promise, by what they mean, or by their looks (then a note says "
    "so)."""
    source: str
    """The path that was read, or ``standard input``."""
    column: str | None
    """The name of the column, or its position when there are several without names; else None."""
    meaning: Meaning
    """What the column held: a ``cost``, a ``success`` (cost = 1 - success) or a ``reward``."""
    file_format: Format = "csv"
    """The format that the file was read as."""
    cost_range: tuple[float, float] | None = None
    """The declared range of the column, where there was one."""
    by: str | None = None
    """The column that names the task (or robot) of each episode, where one was asked for."""
    tasks: tuple[str, ...] = ()
    """The task of each episode; empty unless asked for."""
    detail: str = ""
    """What else is worth knowing about what was read."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The task and the robot of each episode, where there is a ``task`` or a ``robot`` that is not `by`."""
    blocks_of: str | None = None
    """The column of tasks (or robots) that are taken together although they come one after the other."""
    warnings: tuple[str, ...] = ()
    """What may make the guarantees wrong, one sentence each."""
    notes: tuple[str, ...] = ()
    """What was done to read the file that somebody may want to know, one sentence each."""
    episode: str | None = None
    """The column that said which episode a row is a step of, where rows were not episodes."""
    reduce: Reduction | None = None
    """How the steps of an episode became one value, where rows were not episodes."""
    lines: Sequence[int] = ()
    """Where each episode is in its file: the line of a text, the row of a sheet, elsewhere its number."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.costs, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def measured(self) -> str:
        """One line on what the costs are, for a certificate to keep and new episodes to be compared with.

        Examples
        --------
        >>> Episodes(np.array([0.0, 1.0]), True, "x.csv", "grasped", "success").measured
        'cost = 1 - success, column grasped'
        """
        rule = measured(self.column, self.meaning, self.cost_range)
        if self.reduce is not None and (self.meaning, self.reduce) not in _CUSTOM:
            rule += f", {self.reduce} over the steps of an episode"
        return rule

    @property
    def measure(self) -> Measure:
        """How rows became costs."""
        return Measure(self.meaning, self.column, self.cost_range)

    @property
    def design(self) -> Design:
        """How rows relate to each other."""
        return Design(by=self.by, episode=self.episode, reduce=self.reduce)

    def against(
        self, certificate: Certificate | Mapping[str, Certificate], *, allow_own: bool = False
    ) -> Episodes:
        """Return the same with warnings if a certificate (or one per task) cannot judge them.

        They may be measured in another way than its own, or be largely the same.

        Raises
        ------
        ProvenanceMismatch
            If they are, or begin with, the very costs that the certificate was made from, unless `allow_own`.
        """
        return fit(self, certificate, allow_own=allow_own)

    def by_task(self) -> Mapping[str, NDArray[np.float64]]:
        """Return the costs of each task, in the order in which the tasks appear.

        Examples
        --------
        >>> read = Episodes(np.array([0.1, 0.2, 0.3]), False, "x", "cost", "cost", tasks=("a", "b", "a"))
        >>> read.by_task()
        {'a': array([0.1, 0.3]), 'b': array([0.2])}
        """
        number = {task: place for place, task in enumerate(dict.fromkeys(self.tasks))}
        groups = np.fromiter(map(number.__getitem__, self.tasks), np.int64, len(self.tasks))
        ordered = self.costs[np.argsort(groups, kind="stable")]
        ends = np.cumsum(np.bincount(groups, minlength=len(number))).tolist()
        return {task: ordered[start:end] for task, start, end in zip(number, [0, *ends], ends, strict=False)}

    def split(self) -> dict[str, Episodes]:
        """Return the episodes of each task by themselves, in the order in which the tasks appear.

        Examples
        --------
        >>> read = Episodes(np.array([0.1, 0.2, 0.3]), False, "x", "cost", "cost", tasks=("a", "b", "a"))
        >>> {task: part.costs.tolist() for task, part in read.split().items()}
        {'a': [0.1, 0.3], 'b': [0.2]}
        """
        rows: dict[str, list[int]] = {}
        for row, task in enumerate(self.tasks):
            rows.setdefault(task, []).append(row)
        return {
            task: replace(
                self,
                costs=self.costs[members],
                by=None,
                tasks=(),
                labels={
                    column: tuple(names[row] for row in members) for column, names in self.labels.items()
                },
                lines=[self.lines[row] for row in members] if self.lines else (),
            )
            for task, members in rows.items()
        }

    def __repr__(self) -> str:
        shown = {"n": self.costs.size, "mean_cost": float(self.costs.mean()), "binary": self.binary}
        names = ("source", "column", "meaning", "cost_range", "by", "warnings")
        return one_line(self, shown | {name: getattr(self, name) or None for name in names})

    def __str__(self) -> str:
        return f"{self.costs.size} episodes from {self.source}, with a mean cost of {self.costs.mean():.4g}"


def measured(column: str | None, meaning: Meaning, cost_range: tuple[float, float] | None) -> str:
    """Say in one line what the costs of a column are.

    Examples
    --------
    >>> measured("force", "cost", (0, 50))
    'cost = (reading - low)/(high - low), reading in [0, 50], column force'
    """
    if meaning == "success":
        rule = "cost = 1 - success"
    elif meaning == "cost" and cost_range in (None, (0.0, 1.0)):
        rule = "cost as given"
    else:
        low, high = map(shortest, cost_range or (0.0, 1.0))  # a reward has one
        above = "high - reward" if meaning == "reward" else "reading - low"
        name = "reward" if meaning == "reward" else "reading"
        rule = f"cost = ({above})/(high - low), {name} in [{low}, {high}]"
    # The customary columns of logs are alike, whatever they are called.
    name = "" if column is None else normal(column)
    customary = name.isdigit() or meaning in CUSTOMARY.get(name, ())
    return rule if not name or customary else f"{rule}, column {name}"


_CUSTOM = {("success", "any"), ("reward", "sum")}


@refuses_damage
def read_costs(
    path: str | os.PathLike[str],
    *,
    success: str | None = None,
    cost: str | None = None,
    reward: str | None = None,
    cost_range: tuple[float, float] | None = None,
    success_values: Sequence[str] | str = (),
    binary: bool | None = None,
    certificate: Certificate | Mapping[str, Certificate] | None = None,
    allow_own: bool = False,
    judged: bool = True,
    file_format: Format | None = None,
    sheet: str | None = None,
    by: str | None = None,
    episode: str | None = None,
    reduce: Reduction | None = None,
    evaluation: int | None = None,
) -> Episodes:
    r"""Read one cost per episode from a file.

    Say what to read with one of `success`, `cost` and `reward`; the direction is never guessed. Left out, a
    log's own success (or reward) is read, elsewhere the only column called ``cost``, ``success``,
    ``is_success`` or ``reward``, in any case.

    Parameters
    ----------
    path : path
        A table: CSV (commas, semicolons or tabs; UTF-8, UTF-16 or Windows-1252; titles and comments above
        the header are skipped), XLSX or Parquet (extra ``io``), JSON (an array, or one object per line) or
        NPY (no pickle). A log: lerobot-eval's ``eval_info.json`` or the folder of a LeRobotDataset v3 (extra
        ``io``); Stable-Baselines3's ``*.monitor.csv`` or ``evaluations.npz``; MCAP (extra ``mcap``). Files
        may be gzipped; ``-`` is standard input.
    success : str, optional
        The column that says whether an episode succeeded: yes/no, pass/fail, ok/nok, true/false, 1/0 and the
        like, in several languages and any case; cost = 1 - success. Columns without names are numbered from
        1; those of MCAP are ``/topic.field``.
    cost : str, optional
        The column of costs, where more is worse: numbers, or yes/no for what should not happen.
    reward : str, optional
        The column of rewards, where more is better; cost = (high - reward) / (high - low).
    cost_range : (low, high), optional
        The range that a cost or a reward can have, rescaled to [0, 1]; a reward needs it, and so do
        percentages. It must be known before the data: one read off the data is no bound.
    success_values : sequence of str, optional
        The words that mean success, if they are others; any other word is then a failure. If no word of a
        column is among them, that is refused, or a warning if there is a certificate to judge the failures.
    binary : bool, optional
        Promise that every cost is 0 or 1 (True), or that there may be others (False). Left out, successes
        are binary, and so are costs among which there are 0 and 1 and nothing else.
    certificate : Certificate or CertificateFamily, optional
        What will judge these episodes. They are read as its own were: from its column, if none is named and
        the file has it, with its range, unless another is given, and as 0 and 1 if it promised that; and
        compared with them, see `Episodes.against`.
    allow_own : bool
        Read them even if they are the certificate's own.
    judged : bool
        Whether a certificate is made from them or judges them, as from one sample. If not, they are not
        compared with those of the certificate, and nothing is said about tasks that make a mixture.
    file_format : str, optional
        One of `Format`; left out, it is recognized by content.
    sheet : str, optional
        The sheet of a workbook, by name or number; left out, the only one, or the only one that has the
        column.
    by : str, optional
        The column that names the task (or robot) of each episode.
    episode : str, optional
        The column that says which episode a row is a step of, where one row is not one episode. With `by`,
        each task or robot may number its own.
    reduce : str, optional
        How the values of an episode's steps become one: ``any``, ``sum``, ``mean``, ``max`` or ``last``; left
        out, ``any`` for successes, ``sum`` for rewards; costs need it.
    evaluation : int, optional
        Which evaluation of ``evaluations.npz``, counted from 1; left out, the last.

    Raises
    ------
    InvalidCost
        For a value that cannot be a cost (the message has file, place, value and remedy), or a file that is
        empty, damaged or in no known format.
    InvalidSetting
        For a path, column or range that does not fit, or if it was not said what to read.
    MissingExtra
        For Parquet without pyarrow, XLSX without openpyxl, or MCAP without mcap.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = log.write_text("trial;grasped\n1;yes\n2;no\n3;yes\n")
    >>> read = read_costs(log, success="grasped")
    >>> read.costs, read.binary, read.column
    (array([0., 1., 0.]), True, 'grasped')
    """
    columns = {"success": success, "cost": cost, "reward": reward, "by": by, "episode": episode}
    _refuse_mistakes(path, columns | {"sheet": sheet, "file_format": file_format, "reduce": reduce})
    wanted = Wanted.of(success=success, cost=cost, reward=reward)
    check_range(cost_range)
    each = _certificates(certificate)
    binary = None if binary is None else check_flag(binary, "binary")
    allow_own, judged = check_flag(allow_own, "allow_own"), check_flag(judged, "judged")
    if each:
        binary = all(one.binary for one in each) if binary is None else binary
    words = success_words(success_values)
    source = "standard input" if path == "-" else str(path)
    found, table = open_table(
        None if path == "-" else Path(path), source, file_format, wanted, evaluation, sheet
    )
    if found == "mcap" and wanted.column is not None:  # the reader took the topic off the column
        wanted = replace(wanted, column=table.preferred)
    if len(table.names) > MOST_COLUMNS:
        raise InvalidCost(f"{source}: has {len(table.names)} columns; at most {MOST_COLUMNS} are read")
    remembered = Wanted() if wanted.column is not None else table.as_certified(certified_column(each))
    name, meaning = table.choose(wanted if remembered.column is None else remembered, source)
    if table.named and len(table.names) == 1 and normal(name) in map(normal, words):
        raise InvalidSetting(
            f"{source}: {name!r} is the column's name and a word for success: each could be the header once "
            "more, or a trial; put another name above it, such as outcome, and read it with --success outcome"
        )
    if each and cost_range is None and meaning != "success":
        cost_range = remembered_range(each[0], meaning)
    rows = table
    if (episode := episode or table.episode) is not None:
        table = to_episodes(table, episode, reduce, source, meaning, words, by)
    elif reduce is not None:
        raise InvalidSetting(
            f"{source}: reduce needs episode, the column that tells episodes apart (--episode)"
        )
    costs, said = to_costs(
        table,
        name,
        meaning,
        cost_range,
        binary=bool(binary),
        source=source,
        success_values=words if table is rows else (),  # steps became 1 and 0
    )
    misspelled: tuple[str, ...] = ()
    if words and meaning == "success" and costs.all() and never_said(words, rows.values(name)):
        misspelled = _misspelled(f"{source}: column {name!r}", words, judged=certificate is not None)
    by = None if by is None else table.find(by, source, "by")
    tasks = () if by is None else tuple(task_names(table, by, source))
    labels = _labels(table, by, source)
    pooled = _pooled(labels, source) if by is None else {}
    repeated = () if episode is not None else repeated_episodes(table, by or pooled.get("column"), source)
    notes = (*table.notes, *said)
    if remembered.column is not None:
        notes += (as_certified(name, meaning),)
    if binary is None and meaning != "success" and (binary := looks_binary(costs)):
        notes += (binary_note(len(costs), ", which makes the limits narrower"),)
    if sense(name) == "end" and table.named:
        notes += (
            f"column {name!r} often says that an episode ended, not that it went well; is it the right one?",
        )
    suspicious = diagnose(table, costs, name, tasks) if episode is None else ()
    episodes = Episodes(
        costs=costs,
        binary=meaning == "success" if binary is None else binary,
        source=source,
        column=name if table.named or len(table.names) > 1 else None,
        meaning=meaning,
        file_format=found,
        cost_range=None if cost_range is None else check_range(cost_range),
        by=by,
        tasks=tasks,
        detail=table.detail,
        labels=labels,
        blocks_of=pooled.get("blocks_of"),
        warnings=(
            *misspelled,
            *table.warnings,
            *(pooled.get("warnings", ()) if judged else ()),
            *repeated,
            *(f"{source}: {warning}" for warning in suspicious),
        ),
        notes=tuple(f"{source}: {note}" for note in notes),
        episode=episode,
        reduce=None if episode is None else reduction(reduce, meaning),
        lines=table.lines or range(1, len(costs) + 1),
    )
    if certificate is None or not judged:
        return episodes
    return episodes.against(certificate, allow_own=allow_own)


def certified_column(certificates: Sequence[Certificate]) -> Wanted:
    """Return the column that certificates were made from and what it held, if they keep that and agree."""
    measures = {one.measure for one in certificates}
    measure = measures.pop() if len(measures) == 1 else None
    if measure is None:
        return Wanted()
    return Wanted(None if is_customary(measure) else measure.column, measure.kind)


def remembered_range(certificate: Certificate, meaning: Meaning) -> tuple[float, float] | None:
    """Return the range that a certificate was made with, if it was made from costs or rewards like these."""
    certified = certificate.measure
    return None if certified is None or certified.kind != meaning else certified.cost_range


def certified_ranges(certificates: Sequence[Certificate]) -> dict[Meaning, tuple[float, float]]:
    """Return the range that certificates were made with, for costs and for rewards."""
    meanings: tuple[Meaning, ...] = ("cost", "reward")
    found = {
        meaning: [ends for one in certificates if (ends := remembered_range(one, meaning)) is not None]
        for meaning in meanings
    }
    return {meaning: ends[0] for meaning, ends in found.items() if ends}


def _refuse_mistakes(path: object, texts: Mapping[str, object]) -> None:
    """Refuse what no file can be blamed for."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidSetting(
            f"path = {shown(path)} is not the path of a file; costs that are not in a file need no reading: "
            "give them to a certificate or a detector as they are"
        )
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise InvalidSetting(
                f"{name} = {shown(value)} is not a text; give a name, or a number as text such as '1'"
            )


def _certificates(certificate: object) -> list[Certificate]:
    if certificate is None or isinstance(certificate, Certificate):
        return [] if certificate is None else [certificate]
    if isinstance(certificate, Mapping) and all(isinstance(one, Certificate) for one in certificate.values()):
        return list(certificate.values())
    raise InvalidSetting(
        f"certificate = {shown(certificate)} is neither a certificate nor one per task; load it first with "
        "Certificate.load"
    )


def _misspelled(column: str, words: Sequence[str], *, judged: bool) -> tuple[str, ...]:
    """Refuse words for success that a column does not have; only warn where costs are judged.

    There, failures throughout are what a certificate must speak of.
    """
    fault = f"{column} has none of the words that mean success ({', '.join(words)})"
    if not judged:
        raise InvalidSetting(
            f"{fault}; correct them (--success-values) or, if every trial failed, write no in that column"
        )
    return (f"{fault}, so every trial counts as a failure; is one misspelled (--success-values)?",)


def looks_binary(costs: NDArray[np.float64]) -> bool:
    """Return whether there are failures and successes and nothing else; all of one kind tell nothing.

    Examples
    --------
    >>> looks_binary(np.array([0.0, 1.0, 0.0])), looks_binary(np.zeros(3))
    (True, False)
    """
    if costs[0] not in (0, 1):
        return False
    failed, passed = costs == 1, costs == 0
    return bool(failed.any() and passed.any() and (failed | passed).all())


def binary_note(n: int, gain: str = "") -> str:
    """Say that costs were taken for failures and successes by their looks.

    Examples
    --------
    >>> binary_note(20)[:50]
    'all 20 costs are 0 or 1, so each is read as a tria'
    """
    return (
        f"all {n} costs are 0 or 1, so each is read as a trial that failed (1) or not{gain}; if a trial can "
        "cost something in between, say so with --no-binary (binary=False)"
    )


def _labels(table: Table, by: str | None, source: str) -> dict[str, tuple[str, ...]]:
    """Return the names in every column of tasks or robots, except the one that keeps them apart."""
    found: dict[str, tuple[str, ...]] = {}
    for column in dict.fromkeys([*filter(None, [table.task]), *task_columns(table.names)]):
        if column != by:
            with suppress(InvalidCost):  # it only looked like names of tasks
                found.setdefault(column.strip().lower(), tuple(task_names(table, column, source)))
    return found


def _pooled(labels: Mapping[str, Sequence[str]], source: str) -> dict[str, Any]:
    """Warn when episodes of several tasks are about to be taken for draws from one distribution."""
    mixed = {column: names for column, names in labels.items() if len(set(names)) > 1}
    if not mixed:
        return {}
    blocks_of = next((column for column, names in mixed.items() if in_blocks(names)), None)
    column = blocks_of or next(iter(mixed))
    warning = (
        f"{source}: {len(set(mixed[column]))} different values of {column}{' in a row' if blocks_of else ''} "
        f"are taken for one mixture; certify and check keep them apart with --by {column}"
    )
    return {"column": column, "blocks_of": blocks_of, "warnings": (warning,)}
