"""From a file to episodes: open it, take its blocks, and say what they show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import check_choice, check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.cells import Converted, convert
from boundwatch.episodes.compatibility import compared
from boundwatch.episodes.counts import refuse_shares, refuse_total
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import USUAL_REDUCTION, Design, Measure, Reduction
from boundwatch.episodes.notes import gaps, repeats, rows_of, suspicions, total
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers import excel, inspect_robots, lerobot, mcap, npy, parquet, sb3, vla_eval
from boundwatch.readers.opening import check_archive, open_source, placed, recognize, whole
from boundwatch.readers.table import MOST_LABELS, Block, Format, Table, too_large
from boundwatch.readers.text import TextRows, read_array

_MOST_ROWS = 50_000_000
_MOST_TASKS = 20_000  # a certificate of each takes some 8 kB
_ROLES = ("strata", "cluster", "by", "policy", "id", "episode")
_FILES: dict[str, Callable[[IO[bytes], str, Declared], Table]] = {
    "npy": npy.read,
    "parquet": parquet.read,
    "mcap": mcap.read,
    "sb3-evaluations": sb3.read_evaluations,
}
_DOCUMENTS: dict[str, Callable[[bytes, str, Declared], Table]] = {
    "json": read_array,
    "lerobot-eval": lerobot.read_evaluation,
    "inspect-robots": inspect_robots.read,
    "vla-eval": vla_eval.read,
}
"""What reads a document that is kept as a whole."""
Array = NDArray[np.float64]


def read_costs(  # noqa: PLR0913  (each is declared by itself)
    path: str | os.PathLike[str],
    *,
    success: str | None = None,
    cost: str | None = None,
    reward: str | None = None,
    cost_range: tuple[float, float] | None = None,
    success_values: Sequence[str] | str = (),
    successes: str | None = None,
    failures: str | None = None,
    trials: str | None = None,
    count: str | None = None,
    timeout_as: float | None = None,
    empty_as: str | float | None = None,
    strata: str | None = None,
    weights: Mapping[str, float] | None = None,
    cluster: str | None = None,
    by: str | None = None,
    policy: str | None = None,
    pair_by: Sequence[str] | str = (),
    episode: str | None = None,
    reduce: Reduction | None = None,
    where: Mapping[str, str] | None = None,
    fill_down: Sequence[str] | str = (),
    binary: bool | None = None,
    certificate: Certificate | Mapping[str, Certificate] | None = None,
    allow_own: bool = False,
    answers: Sequence[str] = (),
    as_is: bool = False,
    file_format: Format | None = None,
    sheet: str | None = None,
) -> Episodes:
    r"""Read the costs of episodes from a file.

    Parameters
    ----------
    path
        A table: CSV (commas, semicolons or tabs; UTF-8, UTF-16 with a mark or Windows-1252), XLSX or Parquet
        (extra ``io``), JSON (an array, or one object per line) or NPY. A log: lerobot-eval's
        ``eval_info.json`` or the folder of a LeRobotDataset v3 (extra ``io``); inspect-robots' JSON log; the
        results or the recording of vla-eval; Stable-Baselines3's ``*.monitor.csv`` or ``evaluations.npz``;
        MCAP (extra ``mcap``). Files may be gzipped; ``-`` is standard input.
    success, cost, reward, successes, failures
        The column that is read, by what it holds, see `Measure`. Columns without names are numbered from 1;
        those of MCAP are ``/topic.field``. `successes` and `failures` go together if they count all trials.
    cost_range, success_values, trials, count, timeout_as, empty_as
        What else must be known about its cells, see `Measure`.
    strata, weights, cluster, by, policy, pair_by, episode, reduce, where, fill_down
        Columns that say how rows relate to each other, see `Design`. Left out, `reduce` is ``any`` for
        successes and ``sum`` for rewards.
    binary
        Promise that every cost is 0 or 1, or that there may be others; left out, see `Episodes`.
    certificate
        What will judge these episodes: they are read as its own were unless something else is declared, and
        compared with them. Which rows were certified says nothing about these: see `where`.
    allow_own
        Read them even if they are the certificate's own.
    answers
        For those who take rows as time, as `compare` and `watch` do: the arguments (``strata``, ``by``,
        ``where``) by which a column called ``task`` must then be declared if it has several values. Counts
        are refused unless ``count`` is among them.
    as_is
        Ask and notice nothing about columns that are not declared (otherwise a policy, a model, a method or a
        checkpoint with several values is refused, and so is n, trials or count above 1).
    file_format
        Left out, the format is recognized by content.
    sheet
        The sheet of a workbook, by name or number.

    Raises
    ------
    Refusal
        With the place, the value, the problem and the remedy.

    Examples
    --------
    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = log.write_text("trial;grasped\n1;yes\n2;no\n3;yes\n")
    >>> read = read_costs(log, success="grasped")
    >>> read.costs, read.binary, str(read.measure)
    (array([0., 1., 0.]), True, 'cost = 1 - success, column grasped')
    """
    given = dict(locals())  # all that was declared, by its name
    others = {name: given.pop(name) for name in ("path", "certificate", "allow_own", "file_format", "sheet")}
    declared = Declared.of(certificate, **given)
    return read(others.pop("path"), declared, **others)


def read(
    path: str | os.PathLike[str],
    declared: Declared,
    *,
    certificate: Certificate | Mapping[str, Certificate] | None = None,
    allow_own: bool = False,
    file_format: Format | None = None,
    sheet: str | None = None,
) -> Episodes:
    """Read the costs of episodes from a file, as was declared; see `read_costs`."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidSetting("is not a path", name="path", value=path, remedy="give costs as they are")
    if file_format is not None:
        check_choice(file_format, "file_format", get_args(Format))
    allow_own = check_flag(allow_own, "allow_own")
    path = os.fspath(path)
    source = "standard input" if path == "-" else path
    with placed(source), ExitStack() as opened:
        if path != "-" and (file_format == "lerobot-dataset" or Path(path).is_dir()):
            table = lerobot.read_dataset(Path(path), declared)
        else:
            file = opened.enter_context(open_source(path, source))
            table = _table(file, source, declared, file_format, sheet)
        own = table.strata
        if own in table.layout.questions and "strata" in declared.answers and declared.design.strata is None:
            table.layout.roles["strata"] = [own]  # the tasks that the format names itself
            del table.layout.questions[own]
            table.declared = replace(declared, design=replace(declared.design, strata=own))
        episodes = _episodes(table)
    return episodes if certificate is None else compared(episodes, certificate, allow_own=allow_own)


def _table(
    file: IO[bytes], source: str, declared: Declared, file_format: Format | None, sheet: str | None
) -> Table:
    found = file_format or recognize(file, source)
    if sheet is not None and found != "xlsx":
        remedy = f"leave it out: this is {found}"
        raise InvalidSetting("goes with xlsx", name="sheet", value=sheet, remedy=remedy)
    if file_format in ("xlsx", "sb3-evaluations"):
        check_archive(file, source)
    if found == "xlsx":
        return excel.read(file, source, declared, sheet)
    if found in _DOCUMENTS:
        return _DOCUMENTS[found](whole(file, source), source, declared)
    return _FILES[found](file, source, declared) if found in _FILES else TextRows(declared, source).read(file)


def _episodes(table: Table) -> Episodes:
    """Take all blocks: an episode is a row, or several rows that are its steps."""
    declared, layout, taken = table.declared, table.layout, _Taken(table)
    for block in table.blocks:
        if len(kept := table.chosen(block)):
            taken.add(kept, table.costs(kept, scaled=not taken.steps))
    if not taken.rows:
        raise table.empty()
    if taken.counted and not declared.as_is:
        _refuse_totals(taken.counted, layout.measure)
    costs, places = np.concatenate(taken.values), taken.places()
    design, keys = taken.design, taken.keys
    if taken.steps:
        costs, places = _of_steps(taken, costs, places)
    if taken.others:
        _say_others(table, taken.others, all_failed=bool(costs.all()))
    _notice(table, costs, taken)
    if pair_by := layout.roles.get("pair_by"):  # several columns that match trials are one key
        parts = [keys.pop(f"pair {place}") for place in range(len(pair_by))]
        keys["pair"] = list(map(" | ".join, zip(*parts, strict=True)))
    if declared.as_is and "cluster" in keys and "strata" in keys:  # a name that two tasks have is of two
        keys["cluster"] = list(map("/".join, zip(keys["strata"], keys["cluster"], strict=True)))
    return Episodes(
        costs,
        binary=declared.binary,
        measure=layout.measure,
        design=design,
        keys=keys,
        source=table.source,
        file_format=table.file_format,
        unit=taken.unit,
        numbers=places,
        warnings=[f"{table.source}: {said}" for said in table.warnings],
        notes=[f"{table.source}: {note}" for note in table.said],
    )


def _of_steps(taken: _Taken, values: Array, places: Sequence[int]) -> tuple[Array, list[int]]:
    """Return the costs of episodes whose rows are steps, and where each begins."""
    table, keys = taken.table, taken.keys
    # Told apart by the column that was declared, and by the robot or task that numbers its own.
    own = [keys["by"]] if table.declared.design.episode and "by" in keys else []
    steps = rows_of(list(zip(keys.pop("episode"), *own, strict=True)))
    for role, names in keys.items():
        where = Place(table.source, taken.unit, column=taken.roles[role])
        keys[role] = _shared(names, steps, where, places)
    taken.labels = {}
    return _joined(values, steps, table, taken.design), [places[int(rows[0])] for rows in steps.values()]


class _Taken:
    """What blocks hold, one after the other, with a row per trial."""

    def __init__(self, table: Table) -> None:
        self.table, self.design, roles = table, table.declared.design, table.layout.roles
        self.roles = {role: roles[role][0] for role in _ROLES if role in roles}
        self.roles |= {f"pair {place}": each for place, each in enumerate(roles.get("pair_by", ()))}
        self.steps = (episode := self.design.episode or table.episode) is not None
        if episode is not None:
            self.roles.setdefault("episode", episode)
            self.design = replace(self.design, reduce=_reduction(table), episode=episode)
        self.keys: dict[Any, list[str]] = {role: [] for role in self.roles}
        self.values: list[Array] = []
        self.numbers: list[Sequence[int]] = []
        self.others = Counter[str]()
        self.labels: dict[str, list[str]] = {}
        self.counted: list[tuple[Block, Converted]] = []
        self.first: dict[str, list[str]] = {}
        self.unit, self.rows = "row", 0

    def add(self, block: Block, found: Converted) -> None:
        """Take the costs of a block, and its keys by their roles."""
        self.values.append(found.costs)
        self.others.update(found.others)
        if found.times is not None:
            self.counted.append((block, found))
            block = block.take(np.repeat(np.arange(len(block)), found.times).tolist())
        self.unit = block.unit
        self.numbers.append(block.numbers)
        self.rows += len(block)
        if self.rows > _MOST_ROWS:
            raise too_large(self.table.source, f"more than {_MOST_ROWS:,} rows")
        for role, column in self.roles.items():
            self.keys[role] += block.names(column)
        if block.first is not None:
            self.first.setdefault(block.first, []).extend(block.labelled(block.first))
        if self.rows <= MOST_LABELS:
            self.labels = {name: [*self.labels.get(name, ()), *block.labelled(name)] for name in block.labels}

    def places(self) -> Sequence[int]:
        """Return all numbers; a range, which needs no memory, where none is missing."""
        every = range(self.numbers[0][0], self.numbers[-1][-1] + 1) if self.rows else range(0)
        return every if len(every) == self.rows else list(chain.from_iterable(self.numbers))


def _notice(table: Table, costs: Array, taken: _Taken) -> None:
    """Say what the costs and the numbers of rows show about the assumptions; refuse a total."""
    declared = table.declared
    design, keys, measure, named = declared.design, taken.keys, table.layout.measure, dict(taken.first)
    for role in ("strata", "by", "policy"):
        if role in keys:
            column = taken.roles[role]
            named[column] = keys[role]
            if (values := len(set(keys[role]))) > _MOST_TASKS:
                problem = f"has {values:,} values, more than {_MOST_TASKS:,} tasks, robots or policies"
                where = Place(table.source, column=column)
                raise InvalidSetting(problem, where=where, remedy="name theirs; numbers of trials are none")
    if measure.counted:  # their order, and that of the trials of a row, says nothing
        return
    if not taken.steps and design.cluster is None:  # repeats may well be alike
        table.warnings += suspicions(costs, keys.get("by") or keys.get("strata") or ())
    if declared.as_is:
        return
    if not taken.steps and (found := total(named, costs if measure.kind == "cost" else 1 - costs)):
        column, row = found
        where = Place(table.source, taken.unit, taken.places()[row], column)
        problem = "occurs once, and its row has the total or the mean of those above it"
        trial = ("; if it is a trial, pass ", Argument("as_is", True))
        remedy = ("if it is a total or a mean, delete the row", *trial)
        raise InvalidCost(problem, where=where, value=named[column][row], remedy=remedy)
    table.notes += repeats(taken.labels, costs, list(keys.values()))
    table.notes += () if design.where else gaps(taken.labels)


def _refuse_totals(counted: Sequence[tuple[Block, Converted]], measure: Measure) -> None:
    """Refuse a row that is the total of others, and what may be a count or a share."""
    rows, places, cells = [np.empty((0, 2))], list[Place](), list[Any]()
    for block, found in counted:
        times = np.asarray(found.times)
        ends, sums = np.cumsum(times), np.append(0, np.cumsum(found.costs))
        rows.append(np.stack([times, sums[ends] - sums[ends - times]], axis=1))
        places += [block.place(None, row) for row in range(len(block))]
        cells += list(block.columns[measure.columns[0]])
    if measure.trials is not None and measure.cost_range is None:
        refuse_shares(cells, np.concatenate(rows), places)
    refuse_total(np.concatenate(rows), places, alike=measure.count is not None)


def _say_others(table: Table, others: Counter[str], *, all_failed: bool) -> None:
    """Refuse words for success that a column does not have; only warn where costs are judged."""
    words, column = ", ".join(table.layout.measure.success_values), table.layout.measure.columns[0]
    listed = ", ".join(f"{word!r} ({n})" for word, n in list(others.items())[:5])
    table.notes.append(f"words that became failures: {listed}")
    problem = f"are words that column {column!r} has none of"
    if words and all_failed and table.declared.certified is None:
        remedy = ("correct ", Argument("success_values"), " or, if every trial failed, write no there")
        raise InvalidSetting(problem, name="success_values", value=words, remedy=remedy)
    if words and all_failed:
        table.warnings.insert(0, f"success_values = {words} {problem}, so every trial counts as a failure")


def _reduction(table: Table) -> Reduction:
    """Return the rule that makes steps one value, the customary one if none is asked for."""
    rule = table.declared.design.reduce or USUAL_REDUCTION.get(table.layout.measure.kind)
    if rule is None:
        where = Place(table.source, column=table.layout.measure.column)
        remedy = ("choose what makes them one with ", Argument("reduce"), ": mean, max, last or sum")
        raise InvalidSetting("has a cost for every step of an episode", where=where, remedy=remedy)
    return rule


def _shared(
    names: list[str], steps: Mapping[Any, NDArray[np.int64]], where: Place, places: Sequence[int]
) -> list[str]:
    """Return the key of each episode, which all of its steps must have."""
    for (episode, *_), rows in steps.items():
        first = names[rows[0]]
        for row in rows.tolist():
            if names[row] != first:
                problem = f"but steps of episode {episode} above have {first!r}: several would become one"
                remedy = ("keep them apart with ", Argument("by"), ", or name a column that no two share")
                at = replace(where, number=places[row])
                raise InvalidSetting(problem, where=at, value=names[row], remedy=remedy)
    return [names[rows[0]] for rows in steps.values()]


def _joined(values: Array, steps: Mapping[Any, NDArray[np.int64]], table: Table, design: Design) -> Array:
    """Return the costs of episodes whose steps have these values; they may interleave."""
    places, joined = np.empty(values.size, dtype=np.int64), np.full(len(steps), -np.inf)
    for place, rows in enumerate(steps.values()):
        places[rows] = place
    if design.reduce in ("sum", "mean"):
        joined = np.bincount(places, values).astype(np.float64)
        joined /= np.bincount(places) if design.reduce == "mean" else 1
    elif design.reduce == "last":
        joined[places] = values
    else:
        np.maximum.at(joined, places, values)
    measure = replace(table.layout.measure, success_values=())
    try:
        return convert(measure, joined).costs
    except InvalidCost as error:
        name = list(steps)[error.cells.start][0]
        raise error.at(Place(f"{table.source}: episode {name}", column=measure.columns[0])) from None
