"""From a file to episodes: open it, take its blocks, and say what they show."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, repeat
from pathlib import Path
from typing import Any, get_args

import numpy as np

from boundwatch._support.validation import check_choice, check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.asking import one_value
from boundwatch.episodes.compatibility import compared
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.design import Design, Reduction
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.episodes.notes import repeats, suspicions
from boundwatch.errors import Argument, InvalidSetting, Place
from boundwatch.readers import excel, inspect_robots, json_rows, lerobot, mcap, npy, parquet, sb3, vla_eval
from boundwatch.readers.block import MOST_LABELS, Block, Format, Table, empty, too_large
from boundwatch.readers.opening import check_archive, open_source, placed, recognize
from boundwatch.readers.steps import Gathered, filtered, joined_steps, labels, names, reduction
from boundwatch.readers.text import TextRows

_MOST_ROWS = 50_000_000
_SHOWN = 6
_DOCUMENTS: dict[str, Callable[[bytes, str, Declared], Table]] = {
    "json": json_rows.read_array,
    "lerobot-eval": lerobot.read_evaluation,
    "inspect-robots": inspect_robots.read,
    "vla-eval": vla_eval.read,
}
"""What reads a document that is kept as a whole."""
_ROLES = ("strata", "cluster", "by", "policy", "id")


def read_costs(  # noqa: PLR0913  (each is declared by itself)
    path: str | os.PathLike[str],
    *,
    success: str | None = None,
    cost: str | None = None,
    reward: str | None = None,
    cost_range: tuple[float, float] | None = None,
    success_values: Sequence[str] | str = (),
    strata: str | None = None,
    weights: Mapping[str, float] | None = None,
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
    strata, cluster, by, policy, pair_by
        Columns that say how episodes relate to each other, see `Design`.
    weights
        What each of the tasks in the column `strata` counts in their mean; left out, all count alike.
    episode, reduce
        The column that says which episode a row is a step of, and how steps become one value: ``any``,
        ``sum``, ``mean``, ``max`` or ``last``; left out, ``any`` for successes and ``sum`` for rewards.
    where
        Rows to read: those with these values in these columns.
    binary
        Promise that every cost is 0 or 1, or that there may be others; left out, see `Episodes`.
    certificate
        What will judge these episodes: they are read as its own were unless something else is declared, and
        compared with them. Which rows were certified says nothing about these: see `where`.
    allow_own
        Read them even if they are the certificate's own.
    answers
        For those who take rows as time, as `compare` and `watch` do: the arguments (``strata``, ``by``,
        ``where``) by which a column called ``task`` must then be declared if it has several values.
    as_is
        Ask nothing about columns that are not declared (a policy, a model, a method or a checkpoint with
        several values is otherwise refused).
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
    known = [] if certificate is None else _certificates(certificate)
    given: dict[str, Any] = {"strata": strata, "cluster": cluster, "by": by, "policy": policy}
    given |= {"pair_by": pair_by, "episode": episode, "reduce": reduce, "where": where, "weights": weights}
    declared = Declared.of(
        success=success,
        cost=cost,
        reward=reward,
        cost_range=cost_range,
        success_values=success_values,
        design=_design(given, known),
        certified=(known[0].measure or Measure("cost")) if known else None,  # of bare costs, say
    )
    declared = dataclasses.replace(
        declared,
        answers=tuple(answers),
        as_is=as_is,
        certified_where=known[0].design.where if known else {},
    )
    if binary is None and known:
        binary = all(one.binary for one in known) or None
    if not isinstance(path, str | os.PathLike):
        raise InvalidSetting("is not a path", name="path", value=path, remedy="give costs as they are")
    if file_format is not None:
        check_choice(file_format, "file_format", get_args(Format))
    named = "standard input" if path == "-" else os.fspath(path)
    with placed(named), ExitStack() as opened:
        table = _open(os.fspath(path), declared, file_format, sheet, evaluation, opened)
        for name, value, owner in (("evaluation", evaluation, "sb3-evaluations"), ("sheet", sheet, "xlsx")):
            if value is not None and table.file_format != owner:
                remedy = f"leave it out: this is {table.file_format}"
                raise InvalidSetting(f"goes with {owner}", name=name, value=value, remedy=remedy)
        located = declared.locate(table.names) if table.located is None else dict(table.located)
        own = table.strata if "strata" in declared.answers else None
        if own is not None and declared.design.strata is None and own in declared.asked(table.names):
            located[own] = own  # the tasks that the format names itself, where they are asked for
            declared = dataclasses.replace(declared, design=dataclasses.replace(declared.design, strata=own))
        episodes = _episodes(table, declared, located, binary, judged=bool(known))
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


def _open(
    path: str,
    declared: Declared,
    file_format: Format | None,
    sheet: str | None,
    evaluation: int | None,
    opened: ExitStack,
) -> Table:
    """Return the table of a file, a folder or standard input (``-``)."""
    if path != "-" and (file_format == "lerobot-dataset" or Path(path).is_dir()):
        return lerobot.read_dataset(Path(path), declared)
    source = opened.enter_context(open_source(path))
    found, name = file_format or recognize(source), source.name
    if file_format in ("xlsx", "sb3-evaluations"):
        check_archive(source)
    if found == "xlsx":
        return excel.read(source.seekable(), name, declared, sheet)
    if found == "sb3-evaluations":
        return sb3.read_evaluations(source.seekable(), name, declared, evaluation)
    if found in _DOCUMENTS:
        return _DOCUMENTS[found](source.whole(), name, declared)
    of_bytes = {"npy": npy.read, "parquet": parquet.read, "mcap": mcap.read}
    if found in of_bytes:
        return of_bytes[found](source.seekable(), name, declared)
    return _text(TextRows(declared, name), source.lines())


def _text(text: TextRows, parts: Iterator[bytes]) -> Table:
    blocks = chain.from_iterable(map(text.feed, parts))
    first, rows = next(blocks, None), text.rows
    if first is None or rows is None:
        text.end()  # may know more
        raise empty(text.source)
    listed = rows.names if rows.named or len(rows.names) > 1 or text.file_format == "jsonl" else ()
    table = Table(text.source, text.file_format, listed, rows.measure, iter(()))
    table.located, table.notation = rows.located, rows.notation

    def to_the_end() -> Iterator[Block]:
        yield first
        yield from blocks
        text.end()
        table.notes += text.notes

    table.blocks = to_the_end()
    return table


def _episodes(
    table: Table, declared: Declared, located: Mapping[str, str], binary: bool | None, *, judged: bool
) -> Episodes:
    """Take all blocks: an episode is a row, or several rows that are its steps."""
    design = declared.design
    roles = {role: located[column] for role in _ROLES if (column := getattr(design, role)) is not None}
    pair = {f"pair {place}": located[column] for place, column in enumerate(design.pair_by)}
    blocks = _kept(table, declared, located)
    episode = design.episode or table.episode
    if episode is None:
        found = _rows(blocks, table, roles | pair, binary=bool(binary))
    else:
        rule = reduction(design.reduce, table.measure, table.source)
        apart = roles.get("by") if design.episode is not None else None
        found = joined_steps(blocks, table, rule, located.get(episode, episode), apart, roles | pair)
        design = dataclasses.replace(design, reduce=rule, episode=episode)
    if not len(found.costs):
        raise empty(table.source)
    warnings = _misspelled(table, found, judged=judged) if found.others else []
    tasks = found.keys.get("by") or found.keys.get("strata") or ()
    looked_at = episode is None and design.cluster is None  # repeats of a scene may well be alike
    warnings += [*table.warnings, *(suspicions(found.costs, tasks) if looked_at else ())]
    found.labels.pop(located.get(design.cluster or "", ""), None)
    table.notes += repeats(found.labels, found.costs, list(found.keys.values()))
    keys: dict[Any, Sequence[str]] = {role: found.keys[role] for role in roles}
    if pair:
        keys["pair"] = [" | ".join(each) for each in zip(*(found.keys[part] for part in pair), strict=True)]
    return Episodes(
        found.costs,
        binary=binary,
        measure=table.measure,
        design=design,
        keys=keys,
        source=table.source,
        file_format=table.file_format,
        unit=found.unit,
        numbers=found.numbers,
        warnings=[f"{table.source}: {said}" for said in warnings],
        notes=[f"{table.source}: {note}" for note in table.notes],
    )


def _kept(table: Table, declared: Declared, located: Mapping[str, str]) -> Iterator[Block]:
    """Yield the rows to read; refuse too many, and a second value of a column that is asked about."""
    design, questions, rows = declared.design, declared.questions(table.names), 0
    known: dict[str, dict[str, str]] = {column: {} for column in questions}
    apart = [located[column] for column in (design.policy, design.by) if column is not None]
    for block in _meant(table, {located[column]: value for column, value in design.where.items()}):
        rows += len(block.numbers)
        if rows > _MOST_ROWS:
            raise too_large(table.source, f"more than {_MOST_ROWS:,} rows")
        groups = list(zip(*(labels(block.columns[name]) for name in apart), strict=True))
        for column, question in questions.items():
            values = zip(groups or repeat(()), labels(block.columns[column]), strict=False)
            place, offered = Place(table.source, column=column), declared.answers or ("where",)
            one_value(question, values, known[column], place, offered)
        yield block


def _meant(table: Table, where: Mapping[str, str]) -> Iterator[Block]:
    """Yield the rows with these values; refuse values that no row has, and show those that some have."""
    if not where:
        yield from table.blocks
        return
    found, seen = False, dict[str, None]()
    for block in table.blocks:
        kept = filtered(block, where, table.source)
        if len(kept.numbers):
            found = True
            yield kept
        elif not found and len(seen) < _SHOWN:
            seen |= dict.fromkeys(
                f"{column}={each}" for column in where for each in labels(block.columns[column])
            )
    if not found:
        remedy = f"give a value that the column has: {', '.join(list(seen)[:_SHOWN])}"
        raise InvalidSetting(
            "matches no row", where=Place(table.source), name="where", value=dict(where), remedy=remedy
        )


def _rows(blocks: Iterator[Block], table: Table, roles: Mapping[str, str], *, binary: bool) -> Gathered:
    """Take rows that are episodes."""
    found = Gathered(np.empty(0), keys={role: [] for role in roles})
    costs, numbers = [found.costs], list[Sequence[int]]()
    for block in blocks:
        converted = block.costs(table.measure, table.notation, table.source, binary=binary)
        found.unit = block.unit
        costs.append(converted.costs)
        numbers.append(block.numbers)
        for role, column in roles.items():
            found.keys[role] += names(block, column, table.source)
        found.others.update(converted.others)
        if sum(map(len, numbers)) <= MOST_LABELS:
            found.labels = {name: [*found.labels.get(name, ()), *each] for name, each in block.labels.items()}
    found.costs = np.concatenate(costs)
    first, last = (numbers[0][0], numbers[-1][-1]) if numbers else (0, -1)
    whole = last - first + 1 == found.costs.size  # then they need no memory
    found.numbers = range(first, last + 1) if whole else list(chain.from_iterable(numbers))
    return found


def _misspelled(table: Table, found: Gathered, *, judged: bool) -> list[str]:
    """Refuse words for success that a column does not have; only warn where costs are judged."""
    words = table.measure.success_values
    listed = ", ".join(f"{word!r} ({n})" for word, n in list(found.others.items())[:5])
    table.notes.append(f"words that became failures: {listed}")
    if not found.costs.all():
        return []
    problem = f"are words that column {table.column!r} has none of"
    if not judged:
        remedy = ("correct ", Argument("success_values"), " or, if every trial failed, write no there")
        value = ", ".join(words)
        raise InvalidSetting(problem, name="success_values", value=value, remedy=remedy)
    return [f"success_values = {', '.join(words)} {problem}, so every trial counts as a failure"]
