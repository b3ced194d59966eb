"""From a file to episodes: open it, take its blocks, and say what they show."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.compatibility import compared
from boundwatch.episodes.declared import Declared, one_value
from boundwatch.episodes.design import Design, Reduction
from boundwatch.episodes.episodes import Episodes, Role
from boundwatch.episodes.measure import Measure
from boundwatch.episodes.notes import repeats, suspicions
from boundwatch.errors import Argument, InvalidSetting, Place
from boundwatch.readers import excel, json_rows, lerobot, mcap, npy, parquet, sb3
from boundwatch.readers.block import MOST_LABELS, Block, Format, Table, empty, too_large
from boundwatch.readers.opening import Source, check_archive, placed, recognize
from boundwatch.readers.steps import Steps, filtered, labels, names, reduction
from boundwatch.readers.text import TextRows

_MOST_ROWS = 50_000_000
_ROLES: tuple[Role, ...] = ("strata", "cluster", "by", "policy", "id")


def open_rows(
    source: str | os.PathLike[str],
    declared: Declared,
    *,
    file_format: Format | None = None,
    sheet: str | None = None,
    evaluation: int | None = None,
) -> Table:
    """Open a file, a folder or standard input (``-``) and find what was declared; see `read_costs`."""
    if not isinstance(source, str | os.PathLike):
        raise InvalidSetting("is not a path", name="path", value=source, remedy="give costs as they are")
    if file_format is not None and file_format not in get_args(Format):
        remedy = f"choose one of {', '.join(get_args(Format))}"
        raise InvalidSetting("is no format", name="file_format", value=file_format, remedy=remedy)
    path = os.fspath(source)
    named = "standard input" if path == "-" else path
    with ExitStack() as opened:
        with placed(named):
            table = _open(path, declared, file_format, sheet, evaluation, opened)
            table.located = table.located or declared.locate(table.names)
        _check_options(table, named, sheet, evaluation)
        table.blocks = _guarded(table.blocks, named)
        table.opened = opened.pop_all()
    return table


def _check_options(table: Table, named: str, sheet: str | None, evaluation: int | None) -> None:
    for name, value, owner in (("evaluation", evaluation, "sb3-evaluations"), ("sheet", sheet, "xlsx")):
        if value is not None and table.file_format != owner:
            remedy = f"leave it out: this is {table.file_format}"
            problem, where = f"goes with {owner}", Place(named)
            raise InvalidSetting(problem, where=where, name=name, value=value, remedy=remedy)


def _guarded(blocks: Iterator[Block], source: str) -> Iterator[Block]:
    with placed(source):
        yield from blocks


def _open(
    path: str,
    declared: Declared,
    file_format: Format | None,
    sheet: str | None,
    evaluation: int | None,
    opened: ExitStack,
) -> Table:
    folder = Path(path)
    if path != "-" and (file_format == "lerobot-dataset" or folder.is_dir()):
        return lerobot.read_dataset(folder, declared)
    source = opened.enter_context(closing(Source(path)))
    found, name = file_format or recognize(source), source.name
    if found in ("xlsx", "sb3-evaluations"):
        check_archive(source)
    if found == "xlsx":
        return excel.read(source.seekable(), name, declared, sheet)
    if found == "sb3-evaluations":
        return sb3.read_evaluations(source.seekable(), name, declared, evaluation)
    if found in ("json", "lerobot-eval"):
        of_text = json_rows.read_array if found == "json" else lerobot.read_evaluation
        return of_text(source.whole(), name, declared)
    of_bytes = {"npy": npy.read, "parquet": parquet.read, "mcap": mcap.read}
    if found in of_bytes:
        return of_bytes[found](source.seekable(), name, declared)
    return _text(source, declared)


def _text(source: Source, declared: Declared) -> Table:
    text = TextRows(declared, source.name)
    parts = source.lines()
    first: list[Block] = []
    while text.rows is None and (part := next(parts, None)) is not None:
        first += text.feed(part)
    if text.rows is None:
        text.end()
        raise empty(source.name)
    rows = text.rows
    listed = rows.names if rows.named or len(rows.names) > 1 or text.file_format == "jsonl" else ()
    table = Table(source.name, text.file_format, listed, rows.measure, iter(()), notation=rows.notation)

    def blocks() -> Iterator[Block]:
        yield from first
        for part in parts:
            yield from text.feed(part)
        text.end()
        table.notes += text.notes

    table.blocks = blocks()
    return table


@dataclass
class _Gathered:
    """What the blocks of a file hold: an episode per row, or per group of rows that are its steps."""

    costs: NDArray[np.float64]
    numbers: Sequence[int]
    keys: dict[str, Sequence[str]]
    unit: str = "row"
    rule: Reduction | None = None
    others: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)


def read_costs(  # noqa: PLR0913  (each is declared by itself)
    path: str | os.PathLike[str],
    *,
    success: str | None = None,
    cost: str | None = None,
    reward: str | None = None,
    cost_range: tuple[float, float] | None = None,
    success_values: Sequence[str] | str = (),
    strata: str | None = None,
    cluster: str | None = None,
    by: str | None = None,
    policy: str | None = None,
    pair_by: Sequence[str] | str = (),
    episode: str | None = None,
    reduce: Reduction | None = None,
    where: Mapping[str, str] | None = None,
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
        ``eval_info.json`` or the folder of a LeRobotDataset v3 (extra ``io``); Stable-Baselines3's
        ``*.monitor.csv`` or ``evaluations.npz``; MCAP (extra ``mcap``). Files may be gzipped; ``-`` is
        standard input.
    success, cost, reward
        The column that is read, by what it holds: whether an episode succeeded (cost = 1 - success); a cost,
        where more is worse; a reward, where more is better. Columns without names are numbered from 1; those
        of MCAP are ``/topic.field``.
    cost_range
        The range that a cost or a reward can have, known before the data; scaled to [0, 1].
    success_values
        The words that mean success, if they are others than the usual ones.
    strata, cluster, by, policy, pair_by
        Columns that say how episodes relate to each other, see `Design`.
    episode, reduce
        The column that says which episode a row is a step of, and how steps become one value: ``any``,
        ``sum``, ``mean``, ``max`` or ``last``; left out, ``any`` for successes and ``sum`` for rewards.
    where
        Rows to read: those with these values in these columns.
    binary
        Promise that every cost is 0 or 1, or that there may be others; left out, see `Episodes`.
    certificate
        What will judge these episodes: they are read as its own were unless something else is declared, and
        compared with them.
    allow_own
        Read them even if they are the certificate's own.
    answers
        For those who take rows as time, as `compare` and `watch` do: the arguments (``strata``, ``by``,
        ``where``) by which a column called ``task`` must then be declared if it has several values.
    as_is
        Tasks come in random order: ask nothing about their column.
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
    known = _certificates(certificate)
    given: dict[str, Any] = {"strata": strata, "cluster": cluster, "by": by, "policy": policy}
    given |= {"pair_by": pair_by, "episode": episode, "reduce": reduce, "where": where}
    declared = Declared.of(
        success=success,
        cost=cost,
        reward=reward,
        cost_range=cost_range,
        success_values=success_values,
        design=_design(given, known),
        certified=(known[0].measure or Measure("cost")) if known else None,  # of bare costs, say
    )
    declared = dataclasses.replace(declared, answers=() if as_is else tuple(answers))
    if binary is None and known:
        binary = all(one.binary for one in known) or None
    opened = open_rows(path, declared, file_format=file_format, sheet=sheet, evaluation=evaluation)
    with opened as table, placed(table.source):
        declared = _with_own_strata(table, declared)
        found = _gather(table, declared, binary=bool(binary))
    told = _misspelled(table, found, judged=bool(known))
    design = dataclasses.replace(declared.design, reduce=found.rule, episode=_episode(table, declared))
    tasks = found.keys.get("by") or found.keys.get("strata", ())
    doubts = suspicions(found.costs, tasks) if found.rule is None else ()
    table.notes += repeats(found.labels, found.costs, list(found.keys.values()))
    episodes = Episodes(
        found.costs,
        binary=binary,
        measure=table.measure,
        design=design,
        keys=found.keys,  # type: ignore[arg-type]  # roles, as Episodes checks
        source=table.source,
        file_format=table.file_format,
        unit=found.unit,
        numbers=found.numbers,
        warnings=[f"{table.source}: {said}" for said in (*told, *table.warnings, *doubts)],
        notes=[f"{table.source}: {note}" for note in table.notes],
    )
    return episodes if certificate is None else compared(episodes, certificate, allow_own=allow_own)


def _certificates(certificate: object) -> list[Certificate]:
    each = list(certificate.values()) if isinstance(certificate, Mapping) else [certificate]
    if certificate is None:
        return []
    if not each or not all(isinstance(one, Certificate) for one in each):
        problem, remedy = "is neither a certificate nor one per task", "load it first with Certificate.load"
        raise InvalidSetting(problem, name="certificate", value=certificate, remedy=remedy)
    return [one for one in each if isinstance(one, Certificate)]


def _design(given: Mapping[str, Any], certificates: Sequence[Certificate]) -> Design:
    """Return the design that was declared; what was not is as certified."""
    fields = {name: value for name, value in given.items() if value}
    if not certificates:
        return Design(**fields)
    if given["episode"] is not None:  # then the certificate's rule is for other steps
        fields.setdefault("reduce", None)
    return dataclasses.replace(certificates[0].design, **fields)


def _episode(table: Table, declared: Declared) -> str | None:
    return declared.design.episode or table.episode


def _gather(table: Table, declared: Declared, *, binary: bool) -> _Gathered:
    """Take all blocks."""
    located = table.located
    where = {located[column]: value for column, value in declared.design.where.items()}
    roles: dict[str, str] = {r: located[c] for r in _ROLES if (c := getattr(declared.design, r)) is not None}
    pair = [located[column] for column in declared.design.pair_by]
    roles |= {f"pair {place}": column for place, column in enumerate(pair)}
    kept = (filtered(block, where) if where else block for block in _counted(table))
    blocks = _of_one_value(kept, table, declared)
    episode = _episode(table, declared)
    if episode is None:
        found = _rows(blocks, table, roles, binary=binary)
    else:
        rule = reduction(declared.design.reduce, table.measure, table.source)
        apart = roles.get("by") if declared.design.episode is not None else None
        column = located.get(episode, episode)
        steps = Steps(table.measure, rule, table.notation, column, apart, roles, table.source)
        for block in blocks:
            steps.take(block)
        columns = zip(*steps.keys, strict=True) if steps.keys and roles else [()] * len(roles)
        keys: dict[str, Sequence[str]] = dict(zip(roles, columns, strict=True))
        found = _Gathered(steps.costs() if steps.values else np.empty(0), steps.numbers, keys, "row", rule)
    if not len(found.costs):
        if where:
            place, remedy = Place(table.source), "give a value that the column has"
            raise InvalidSetting(
                "matches no row", where=place, name="where", value=dict(where), remedy=remedy
            )
        raise empty(table.source)
    parts = [found.keys.pop(name) for name in list(found.keys) if name.startswith("pair ")]
    if parts:
        found.keys["pair"] = [" | ".join(each) for each in zip(*parts, strict=True)]
    return found


def _with_own_strata(table: Table, declared: Declared) -> Declared:
    """Return what was declared with the tasks that the format names itself, where they are asked for."""
    own = table.strata
    if own is None or own not in declared.asked(table.names) or "strata" not in declared.answers:
        return declared
    if declared.design.strata is not None:
        return declared
    table.located = {**table.located, own: own}
    return dataclasses.replace(declared, design=dataclasses.replace(declared.design, strata=own))


def _of_one_value(blocks: Iterable[Block], table: Table, declared: Declared) -> Iterator[Block]:
    """Pass on blocks; refuse a second value of a column that is asked about."""
    known = dict.fromkeys(declared.asked(table.names), "")
    for block in blocks:
        for column, value in known.items():
            where = Place(table.source, column=column)
            known[column] = one_value(labels(block.columns[column]), where, declared.answers, value)
        yield block


def _counted(table: Table) -> Iterator[Block]:
    rows = 0
    for block in table.blocks:
        rows += len(block)
        if rows > _MOST_ROWS:
            raise too_large(table.source, f"more than {_MOST_ROWS:,} rows")
        yield block


def _rows(blocks: Iterator[Block], table: Table, roles: Mapping[str, str], *, binary: bool) -> _Gathered:
    """Take rows that are episodes."""
    costs: list[NDArray[np.float64]] = []
    numbers: list[Sequence[int]] = []
    keys: dict[str, list[str]] = {role: [] for role in roles}
    labels: list[Mapping[str, Sequence[str]]] = []
    others: dict[str, int] = {}
    unit = "row"
    for block in blocks:
        if not len(block):
            continue
        converted = block.costs(table.measure, table.notation, table.source, binary=binary)
        unit = block.unit
        costs.append(converted.costs)
        numbers.append(block.numbers)
        for role, column in roles.items():
            keys[role] += names(block, column, table.source)
        for word, count in converted.others.items():
            others[word] = others.get(word, 0) + count
        labels += [block.labels] if sum(map(len, numbers)) <= MOST_LABELS else []
    joined = np.concatenate([np.empty(0), *costs])
    numbered = {n: [cell for part in labels for cell in part.get(n, ())] for n in (labels or [{}])[-1]}
    return _Gathered(joined, _joined(numbers), dict(keys), unit, None, others, numbered)


def _joined(parts: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return numbers of rows as one range, if they are."""
    if not parts:
        return ()
    first, last = parts[0][0], parts[-1][-1]
    if last - first + 1 == sum(map(len, parts)):
        return range(first, last + 1)
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts]).tolist()  # type: ignore[no-any-return]


def _misspelled(table: Table, found: _Gathered, *, judged: bool) -> list[str]:
    """Refuse words for success that a column does not have; only warn where costs are judged."""
    words = table.measure.success_values
    if not words or not found.others:
        return []
    listed = ", ".join(f"{word!r} ({n})" for word, n in list(found.others.items())[:5])
    table.notes.append(f"words that became failures: {listed}")
    if not found.costs.all():
        return []
    problem = f"are words that column {table.column!r} has none of"
    if not judged:
        remedy = ("correct ", Argument("success_values"), " or, if every trial failed, write no there")
        where, value = Place(table.source), ", ".join(words)
        raise InvalidSetting(problem, where=where, name="success_values", value=value, remedy=remedy)
    return [f"success_values = {', '.join(words)} {problem}, so every trial counts as a failure"]
