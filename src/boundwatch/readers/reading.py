"""From a file to episodes: open it, take its blocks, and say what they show."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import check_choice, check_flag, shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.cells import Converted, convert
from boundwatch.episodes.compatibility import compared
from boundwatch.episodes.counts import refuse_shares, refuse_total
from boundwatch.episodes.declared import Declared, one_value
from boundwatch.episodes.design import USUAL_REDUCTION, Design, Reduction
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.episodes.notes import gaps, repeats, rows_of, suspicions
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers import excel, inspect_robots, json_rows, lerobot, mcap, npy, parquet, sb3, vla_eval
from boundwatch.readers.opening import check_archive, open_source, placed, recognize, whole
from boundwatch.readers.table import MOST_LABELS, Block, Format, Table, empty, too_large
from boundwatch.readers.text import TextRows

_MOST_ROWS = 50_000_000
_SHOWN = 6
_FILES: dict[str, Callable[[IO[bytes], str, Declared], Table]] = {
    "npy": npy.read,
    "parquet": parquet.read,
    "mcap": mcap.read,
}
_DOCUMENTS: dict[str, Callable[[bytes, str, Declared], Table]] = {
    "json": json_rows.read_array,
    "lerobot-eval": lerobot.read_evaluation,
    "inspect-robots": inspect_robots.read,
    "vla-eval": vla_eval.read,
}
"""What reads a document that is kept as a whole."""
Steps = Mapping[tuple[str, ...], NDArray[np.int64]]
"""The rows of each episode, by its name."""
_ROLES = ("strata", "cluster", "by", "policy", "id")


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
    evaluation: int | None = None,
) -> Episodes:
    r"""Read the costs of episodes from a file.

    Parameters
    ----------
    path
        A table: CSV (commas, semicolons or tabs; UTF-8, UTF-16 with a mark or Windows-1252), XLSX or Parquet
        (extra ``io``), JSON (an array, or one object per line) or NPY. A log: lerobot-eval's
        ``eval_info.json`` or the folder of a LeRobotDataset v3 (extra ``io``); inspect-robots' JSON log; the
        results or the recording of vla-eval; Stable-Baselines3's ``*.monitor.csv`` or ``evaluations.npz``;
        MCAP (extra ``mcap``). Files may be gzipped; ``-`` is
        standard input.
    success, cost, reward
        The column that is read, by what it holds: whether an episode succeeded (cost = 1 - success); a cost,
        where more is worse; a reward, where more is better. Columns without names are numbered from 1; those
        of MCAP are ``/topic.field``.
    cost_range
        The range that a cost or a reward can have, known before the data; scaled to [0, 1].
    success_values
        The words that mean success, if they are others than the usual ones.
    successes, failures, trials
        The column that says how many trials of a row succeeded, or failed, and the one with their number;
        without it, cells are 9/10. A percentage, or a share in a `cost_range`, must be that of one number.
    count
        The column that says for how many trials like it a row stands: success, count.
    timeout_as, empty_as
        What the word timeout is worth, as a cost or a reward; what is read where a cell is empty.
    strata, cluster, by, policy, pair_by
        Columns that say how episodes relate to each other, see `Design`.
    weights
        What each of the tasks in the column `strata` counts in their mean; left out, all count alike.
    episode, reduce
        The column that says which episode a row is a step of, and how steps become one value: ``any``,
        ``sum``, ``mean``, ``max`` or ``last``; left out, ``any`` for successes and ``sum`` for rewards.
    where
        Rows to read: those with these values in these columns.
    fill_down
        Columns in which an empty cell means what the one above it does, as merged cells do.
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
    sheet, evaluation
        The sheet of a workbook, by name or number; which evaluation of ``evaluations.npz``, from 1.

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
    allow_own, as_is = check_flag(allow_own, "allow_own"), check_flag(as_is, "as_is")
    binary = None if binary is None else check_flag(binary, "binary")
    if not isinstance(path, str | os.PathLike):
        raise InvalidSetting("is not a path", name="path", value=path, remedy="give costs as they are")
    if file_format is not None:
        check_choice(file_format, "file_format", get_args(Format))
    known = [] if certificate is None else _certificates(certificate)
    given: dict[str, Any] = {"strata": strata, "cluster": cluster, "by": by, "policy": policy}
    given |= {"pair_by": pair_by, "episode": episode, "reduce": reduce, "where": where, "weights": weights}
    given["fill_down"] = fill_down
    declared = Declared.of(
        success=success,
        cost=cost,
        reward=reward,
        successes=successes,
        failures=failures,
        trials=trials,
        count=count,
        timeout_as=timeout_as,
        empty_as=empty_as if empty_as is None or isinstance(empty_as, str) else shortest(empty_as),
        cost_range=cost_range,
        success_values=success_values,
        design=_design(given, known),
        certified=(known[0].measure or Measure("cost")) if known else None,  # of bare costs, say
    )
    rows = known[0].design.where if known else {}
    declared = dataclasses.replace(declared, answers=tuple(answers), as_is=as_is, certified_where=rows)
    if binary is None and known:
        binary = all(one.binary for one in known) or None
    path = os.fspath(path)
    source = "standard input" if path == "-" else path
    with placed(source), ExitStack() as opened:
        if path != "-" and (file_format == "lerobot-dataset" or Path(path).is_dir()):
            table = lerobot.read_dataset(Path(path), declared)
        else:
            file = opened.enter_context(open_source(path, source))
            table = _table(file, source, declared, file_format, sheet, evaluation)
        for name, value, owner in (("evaluation", evaluation, "sb3-evaluations"), ("sheet", sheet, "xlsx")):
            if value is not None and table.file_format != owner:
                remedy = f"leave it out: this is {table.file_format}"
                raise InvalidSetting(f"goes with {owner}", name=name, value=value, remedy=remedy)
        own = table.strata if "strata" in declared.answers and declared.design.strata is None else None
        if own in table.questions:  # the tasks that the format names itself, where they are asked for
            table.located[own] = own
            del table.questions[own]
            declared = dataclasses.replace(declared, design=dataclasses.replace(declared.design, strata=own))
        episodes = _episodes(table, declared, binary, judged=bool(known))
    return episodes if certificate is None else compared(episodes, certificate, allow_own=allow_own)


def _certificates(certificate: object) -> list[Certificate]:
    each = list(certificate.values()) if isinstance(certificate, Mapping) else [certificate]
    if not each or not all(isinstance(one, Certificate) for one in each):
        problem, remedy = "is neither a certificate nor one per task", "load it first with Certificate.load"
        raise InvalidSetting(problem, name="certificate", value=certificate, remedy=remedy)
    return [one for one in each if isinstance(one, Certificate)]


def _design(given: Mapping[str, Any], certificates: Sequence[Certificate]) -> Design:
    """Return the design that was declared; what was not is as certified, but for the rows that are meant."""
    fields = {name: value for name, value in given.items() if value}
    if not certificates:
        return Design(**fields)
    if given["episode"] is not None:  # then the certificate's rule is for other steps
        fields.setdefault("reduce", None)
    return dataclasses.replace(certificates[0].design, **({"where": {}} | fields))


def _table(
    file: IO[bytes],
    source: str,
    declared: Declared,
    file_format: Format | None,
    sheet: str | None,
    evaluation: int | None,
) -> Table:
    found = file_format or recognize(file, source)
    if file_format in ("xlsx", "sb3-evaluations"):
        check_archive(file, source)
    if found == "xlsx":
        return excel.read(file, source, declared, sheet)
    if found == "sb3-evaluations":
        return sb3.read_evaluations(file, source, declared, evaluation)
    if found in _DOCUMENTS:
        return _DOCUMENTS[found](whole(file, source), source, declared)
    return _FILES[found](file, source, declared) if found in _FILES else TextRows(declared, source).read(file)


def _episodes(table: Table, declared: Declared, binary: bool | None, *, judged: bool) -> Episodes:
    """Take all blocks: an episode is a row, or several rows that are its steps."""
    design, located = declared.design, table.located
    roles = {role: located[column] for role in _ROLES if (column := getattr(design, role)) is not None}
    roles |= {f"pair {place}": located[column] for place, column in enumerate(design.pair_by)}
    if (episode := design.episode or table.episode) is not None:
        roles["episode"] = located.get(episode, episode)
        design = dataclasses.replace(design, reduce=_reduction(design, table), episode=episode)
    values, numbers, unit = [np.empty(0)], list[Sequence[int]](), "row"
    keys: dict[str, Any] = {role: [] for role in roles}
    others, labels, totals = Counter[str](), dict[str, list[str]](), _Totals()
    for part in _kept(table, declared):
        found = part.costs(table.measure, table.notation, binary=bool(binary), scaled=episode is None)
        block = totals.take(part, found, table.measure)
        values.append(found.costs)
        numbers.append(block.numbers)
        unit = block.unit
        others.update(found.others)
        for role, column in roles.items():
            keys[role] += block.names(column)
        if sum(map(len, numbers)) <= MOST_LABELS:
            labels = {name: [*labels.get(name, ()), *each] for name, each in block.labels.items()}
    totals.refuse(table.measure, declared)
    costs, places = np.concatenate(values), _joined_ranges(numbers)
    if not costs.size:
        raise empty(table.source)
    if episode is not None:
        # Told apart by the column that was declared, and by the robot or task that numbers its own.
        apart = bool(declared.design.episode)
        steps = _steps(
            keys, lambda role, row: Place(table.source, unit, places[row], roles[role]), apart=apart
        )
        costs = _joined(costs, steps, table, design)
        places, labels = [places[int(rows[0])] for rows in steps.values()], {}
    if others:
        table.warnings[:0] = _misspelled(table, others, judged=judged, all_failed=bool(costs.all()))
    if not table.measure.counted:  # their order, and that of the trials of a row, says nothing
        _notice(table, declared, costs, labels, keys)
    _join_keys(keys, declared)
    return Episodes(
        costs,
        binary=binary,
        measure=table.measure,
        design=design,
        keys=keys,  # type: ignore[arg-type]  # by now all are roles
        source=table.source,
        file_format=table.file_format,
        unit=unit,
        numbers=places,
        warnings=[f"{table.source}: {said}" for said in table.warnings],
        notes=[f"{table.source}: {note}" for note in table.notes],
    )


def _notice(
    table: Table, declared: Declared, costs: NDArray[np.float64], labels: Any, keys: Mapping[str, Any]
) -> None:
    """Say what the costs and the numbers of rows show about the assumptions."""
    design = declared.design
    if (design.episode or table.episode) is None and design.cluster is None:  # repeats may well be alike
        table.warnings += suspicions(costs, keys.get("by") or keys.get("strata") or ())
    if not declared.as_is:
        table.notes += repeats(labels, costs, list(keys.values()))
        table.notes += () if design.where else gaps(labels)


@dataclasses.dataclass
class _Totals:
    """Takes rows that count trials, once for each of their trials, and knows what they count."""

    rows: list[tuple[int, float]] = dataclasses.field(default_factory=list)
    places: list[Place] = dataclasses.field(default_factory=list)
    cells: list[Any] = dataclasses.field(default_factory=list)

    def take(self, block: Block, found: Converted, measure: Measure) -> Block:
        """Return the block with a row per trial."""
        if (times := found.times) is None:
            return block
        ends, sums = np.cumsum(times), np.append(0, np.cumsum(found.costs))
        self.rows += zip(times.tolist(), (sums[ends] - sums[ends - times]).tolist(), strict=True)
        self.cells += list(block.columns[measure.columns[0]])
        self.places += [block.place(None, row) for row in range(len(block))]
        return block.take(np.repeat(np.arange(len(block)), times).tolist())

    def refuse(self, measure: Measure, declared: Declared) -> None:
        """Refuse a row that is the total of others, and what may be a count or a share."""
        if self.rows and not declared.as_is:
            if measure.trials is not None and measure.cost_range is None:
                refuse_shares(self.cells, np.array(self.rows), self.places)
            refuse_total(np.array(self.rows), self.places, alike=measure.count is not None)


def _joined_ranges(numbers: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return all numbers; a range, which needs no memory, where none is missing."""
    numbers = list(filter(len, numbers))
    whole = range(numbers[0][0], numbers[-1][-1] + 1) if numbers else range(0)
    return whole if len(whole) == sum(map(len, numbers)) else list(chain.from_iterable(numbers))


def _kept(table: Table, declared: Declared) -> Iterator[Block]:
    """Yield the rows to read; refuse too many, and a second value of a column that is asked about."""
    design, located, questions, rows = declared.design, table.located, table.questions, 0
    known: dict[str, dict[str, str]] = {column: {} for column in questions}
    apart = [located[column] for column in (design.policy, design.by) if column is not None]
    where = {located[column]: value for column, value in design.where.items()}
    above: dict[str, Any] = {located[column]: None for column in design.fill_down}
    if above:
        table.blocks = (block.filled_down(above) for block in table.blocks)
    for block in _meant(table, where) if where else table.blocks:
        rows += len(block.numbers)
        if rows > _MOST_ROWS:
            raise too_large(table.source, f"more than {_MOST_ROWS:,} rows")
        for column, question in questions.items():
            groups = zip(*map(block.labelled, apart), strict=True) if apart else repeat(())
            values = zip(groups, block.labelled(column), strict=False)
            place, offered = Place(table.source, column=column), declared.answers or ("where", "count")
            one_value(question, values, known[column], place, offered)
        yield block


def _meant(table: Table, where: Mapping[str, str]) -> Iterator[Block]:
    """Yield the rows with these values; refuse values that no row has, and show those that some have."""
    found, seen = False, dict[str, None]()
    for block in table.blocks:
        kept = block.where(where)
        if len(kept):
            found = True
            yield kept
        elif not found and len(seen) < _SHOWN:
            seen |= dict.fromkeys(f"{column}={each}" for column in where for each in block.labelled(column))
    if not found:
        remedy = f"give a value that the column has: {', '.join(list(seen)[:_SHOWN])}"
        place = Place(table.source)
        raise InvalidSetting("matches no row", where=place, name="where", value=dict(where), remedy=remedy)


def _misspelled(table: Table, others: Counter[str], *, judged: bool, all_failed: bool) -> list[str]:
    """Refuse words for success that a column does not have; only warn where costs are judged."""
    words = ", ".join(table.measure.success_values)
    listed = ", ".join(f"{word!r} ({n})" for word, n in list(others.items())[:5])
    table.notes.append(f"words that became failures: {listed}")
    if not all_failed or not words:
        return []
    problem = f"are words that column {table.measure.columns[0]!r} has none of"
    if not judged:
        remedy = ("correct ", Argument("success_values"), " or, if every trial failed, write no there")
        raise InvalidSetting(problem, name="success_values", value=words, remedy=remedy)
    return [f"success_values = {words} {problem}, so every trial counts as a failure"]


def _reduction(design: Design, table: Table) -> Reduction:
    """Return the rule that makes steps one value, the customary one if none is asked for."""
    rule = design.reduce or USUAL_REDUCTION.get(table.measure.kind)
    if rule is None:
        where, problem = (
            Place(table.source, column=table.measure.column),
            "has a cost for every step of an episode",
        )
        remedy = ("choose what makes them one with ", Argument("reduce"), ": mean, max, last or sum")
        raise InvalidSetting(problem, where=where, remedy=remedy)
    return rule


def _join_keys(keys: dict[str, Any], declared: Declared) -> None:
    """Make one key of several columns that match trials, and two clusters of a name that two tasks have."""
    if pair_by := declared.design.pair_by:
        parts = [keys.pop(f"pair {place}") for place in range(len(pair_by))]
        keys["pair"] = list(map(" | ".join, zip(*parts, strict=True)))
    if declared.as_is and "cluster" in keys and "strata" in keys:
        keys["cluster"] = list(map("/".join, zip(keys["strata"], keys["cluster"], strict=True)))


def _steps(keys: dict[str, Any], place: Callable[[str, int], Place], *, apart: bool) -> Steps:
    """Return the rows of each episode, whose keys must be alike, and keep one of each key."""
    own = [keys["by"]] if apart and "by" in keys else []
    steps: Steps = rows_of(list(zip(keys.pop("episode"), *own, strict=True)))
    for role, names in keys.items():
        for (episode, *_), rows in steps.items():
            first = names[rows[0]]
            for row in rows.tolist():
                if names[row] != first:
                    problem = f"but steps of episode {episode} above have {first!r}: several would become one"
                    remedy = ("keep them apart with ", Argument("by"), ", or name a column that no two share")
                    raise InvalidSetting(problem, where=place(role, row), value=names[row], remedy=remedy)
        keys[role] = [names[rows[0]] for rows in steps.values()]
    return steps


def _joined(values: NDArray[np.float64], steps: Steps, table: Table, design: Design) -> NDArray[np.float64]:
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
    try:
        return convert(dataclasses.replace(table.measure, success_values=()), joined).costs
    except InvalidCost as error:
        name = list(steps)[error.cells.start][0]
        where = Place(f"{table.source}: episode {name}", column=table.measure.columns[0])
        raise error.at(where) from None
