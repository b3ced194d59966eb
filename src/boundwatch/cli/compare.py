"""boundwatch compare: which of two or more policies is better."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from boundwatch._support import files
from boundwatch.cli import output as out
from boundwatch.cli.judge import EXIT_WORSE
from boundwatch.cli.options import Force, Json
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison, Ranking, rank
from boundwatch.episodes import Episodes, looks_binary
from boundwatch.episodes.alignment import most_apart, of_one_measure, take_in_turn
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.opening import is_log, refuse_document
from boundwatch.episodes.steps import in_blocks, surely_in_blocks, task_columns
from boundwatch.episodes.table import Wanted
from boundwatch.episodes.text import decode_line
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.reporting import comparison as words
from boundwatch.watching.files import is_text
from boundwatch.watching.lines import awaited

POLL_SECONDS = 0.5


@command(
    example="boundwatch compare old/eval_info.json new/eval_info.json\n"
    "boundwatch compare trials.csv --by policy --paired --plot compare.png\n"
    "boundwatch compare old.csv new.csv --margin 0.05 --exit-code"
)
def compare(
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="A B [C ...]",
            help="One file of costs per policy, in any format that `check` reads; or one file, with --by.",
        ),
    ],
    paired: Annotated[
        bool,
        typer.Option(
            "--paired",
            help="Trial i of every policy shared its seed, scene or task. It saves trials, and such trials "
            "need it: without it the error rate may be wrong. Leave it out for independent trials.",
        ),
    ] = False,
    binary: Annotated[
        bool, typer.Option("--binary", help="Promise that every cost is 0 or 1; successes are anyway.")
    ] = False,
    alpha: Annotated[
        float,
        typer.Option(
            metavar="P", help="Error rate: per side for two policies, of the whole ranking for more."
        ),
    ] = 0.05,
    horizon: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest number of trials of each, if fixed in advance; 0/1 costs."),
    ] = None,
    margin: Annotated[
        float, typer.Option(metavar="M", help="Also say whether B costs at most M more than A.")
    ] = 0.0,
    by: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column that names the policy, if one file holds all."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Two policies: wait for the files (a CSV row, JSON object or number per line) to grow, "
            "until the verdict or the horizon.",
        ),
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it; .png, .svg or .pdf.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Two policies: write an HTML page to be signed.")
    ] = None,
    *,
    reading: Reading,
    force: Force = False,
    as_json: Json = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 3 if A is better than B or, with --margin, until B is shown to be no worse; of "
            "several, if the last named is shown to be worse than another.",
        ),
    ] = False,
) -> None:
    """Say which policy is better, with a guaranteed error rate, after every trial if you like.

    Two policies: the verdict is A_BETTER, B_BETTER or UNDECIDED, and stays valid however often you look.
    More: all are compared with each other, and those that cannot be told apart share a letter.
    """
    for path in (plot, report):
        if path is not None:
            files.protect(path, policies, force=force)
    question = _Question(alpha, paired, binary or None, horizon, margin)
    two = len(policies) == 2 and by is None
    if follow:
        if not two or "-" in policies:
            raise typer.BadParameter("--follow needs two files, one per policy")
        named = _follow(policies, reading, question, as_json=as_json)
    else:
        named = _read(policies, reading, by, binary=question.binary, paired=question.paired)
    for episodes in named.values():
        out.print_warnings(episodes)
    if len(named) == 2:
        worse = _compare_two(named, question, plot, report, as_json=as_json, lines=follow)
    else:
        if horizon is not None or margin or report is not None:
            raise typer.BadParameter("--horizon, --margin and --report go with two policies; leave them out")
        worse = _compare_many(named, alpha, paired, plot, as_json=as_json)
    if exit_code and worse:
        raise typer.Exit(EXIT_WORSE)


@dataclass(frozen=True)
class _Question:
    """How two policies are to be compared."""

    alpha: float
    paired: bool
    binary: bool | None  # left open, it is up to the column
    horizon: int | None
    margin: float

    def test(self, named: dict[str, Episodes]) -> PolicyComparison:
        """Return a comparison for costs of the kind that was read."""
        return PolicyComparison(
            self.alpha,
            binary=all(each.binary for each in named.values()),
            paired=self.paired,
            horizon=self.horizon,
            margin=self.margin,
        )

    def is_over(self, test: PolicyComparison) -> bool:
        """Return whether no more trials count."""
        return self.horizon is not None and test.pairs >= self.horizon

    def answered(self, test: PolicyComparison) -> bool:
        """Return whether more trials cannot change the answer."""
        return test.no_worse if self.margin else test.verdict is not ComparisonVerdict.UNDECIDED


def _read(
    policies: list[str], reading: Reading, by: str | None, *, binary: bool | None, paired: bool
) -> dict[str, Episodes]:
    """Return the episodes of every policy by its name."""
    if by is not None:
        if len(policies) != 1:
            raise typer.BadParameter("--by goes with one file that holds all policies")
        whole = reading.read(policies[0], by=by, binary=binary)
        found = whole.split()
        if len(found) < 2:
            raise InvalidCost(f"{whole.source}: column {by} names {len(found)} policy; two are needed")
        parts = [
            dataclasses.replace(part, source=f"{whole.source}, {by} {name}") for name, part in found.items()
        ]
        aligned = [dataclasses.replace(part, source=whole.source) for part in _of_one_task(parts, paired)]
        return dict(zip(found, aligned, strict=True))
    if len(policies) < 2:
        raise typer.BadParameter("give a file per policy, at least two; or one file with --by COLUMN")
    if policies.count("-") > 1:
        raise typer.BadParameter("- can be given once: there is one standard input")
    read = _of_one_task([reading.read(path, binary=binary) for path in policies], paired)
    return dict(zip(_names(policies), of_one_measure(read), strict=True))


def _of_one_task(read: list[Episodes], paired: bool) -> list[Episodes]:
    """Return episodes such that those of a pair are of one task, if a policy ran one task after the other."""
    blocks = (column for each in read for column, tasks in each.labels.items() if in_blocks(tasks))
    if (column := next(blocks, None)) is None:
        return read
    for each in read:
        if column not in each.labels:
            raise InvalidCost(
                f"{each.source}: has no column {column!r}, and another policy ran one {column} after the "
                "other; add it, so that both trials of a pair can be of the same"
            )
    if paired:
        if len({len(each.costs) for each in read}) > 1:
            return read  # which is refused by whoever compares them
        _refuse_other_partners(read, column)  # of the same tasks, both take turns alike and stay together
    return take_in_turn(
        [
            dataclasses.replace(
                each,
                by=column,
                tasks=each.labels[column],
                warnings=tuple(said for said in each.warnings if "taken for one mixture" not in said),
            )
            for each in read
        ]
    )


def _refuse_other_partners(read: list[Episodes], column: str) -> None:
    first = read[0]
    for each in read[1:]:
        if (apart := _first_apart(first.labels[column], each.labels[column])) is not None:
            place, one, other = apart
            raise InvalidCost(
                f"{each.source}: trial {place + 1} is of {column} {other}, but its partner in "
                f"{first.source} of {one}; match the rows by seed, or compare without --paired"
            )


def _first_apart(ones: Sequence[str], others: Sequence[str]) -> tuple[int, str, str] | None:
    """Return the place of the first pair of different tasks, and these; None if there is none."""
    pairs = enumerate(zip(ones, others, strict=False))
    return next(((place, one, other) for place, (one, other) in pairs if one != other), None)


def _names(paths: list[str]) -> list[str]:
    """Return short names that tell the files apart."""
    for name in (lambda path: path.stem, lambda path: f"{path.parent.name}/{path.stem}", str):
        names = ["stdin" if path == "-" else name(Path(path)) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise InvalidSetting(f"the same file was given twice: {', '.join(paths)}; a policy equals itself")


def _compare_two(
    named: dict[str, Episodes],
    question: _Question,
    plot: Path | None,
    report: Path | None,
    *,
    as_json: bool,
    lines: bool,
) -> bool:
    one, other = named
    a, b = named.values()
    if question.paired and len(a.costs) != len(b.costs) and not lines:
        raise InvalidCost(
            f"paired trials must be equal in number, but {one} has {len(a.costs)} and {other} "
            f"{len(b.costs)}; match them by seed"
        )
    test = question.test(named)
    finding = test.update_many(a.costs, b.costs)
    sources = [out.describe_source(each) for each in (a, b)]
    if plot is not None:
        from boundwatch.reporting import comparison_plots, plots

        test.reset()
        figure = comparison_plots.plot_comparison(test, a.costs, b.costs, (one, other))
        plots.save_figure(figure, plot)
    if report is not None:
        test.reset()
        html = words.render_comparison(
            test,
            a.costs,
            b.costs,
            names=(one, other),
            sources=sources,
            warnings=(*a.warnings, *b.warnings),
        )
        files.write_text(report, html)
    if as_json and not lines:  # else every line was the finding
        out.print_json(
            finding.to_dict()
            | {"a": {"name": one, **out.source_fields(a)}, "b": {"name": other, **out.source_fields(b)}}
        )
    elif not as_json:
        typer.secho(words.comparison_headline(finding, (one, other)), bold=True)
        print()
        labeled = [(f"costs of {name}", source) for name, source in zip(named, sources, strict=True)]
        out.print_rows([*words.comparison_evidence(finding, (one, other)), *labeled])
        out.print_section("Note", words.comparison_notes(finding), bullet="- ")
    return not finding.no_worse if question.margin else finding.verdict is ComparisonVerdict.A_BETTER


def _compare_many(
    named: dict[str, Episodes], alpha: float, paired: bool, plot: Path | None, *, as_json: bool
) -> bool:
    ranking = rank({name: each.costs for name, each in named.items()}, alpha, paired=paired)
    if plot is not None:
        from boundwatch.reporting import plots

        plots.save_figure(ranking.plot(), plot)
    if as_json:
        out.print_json(
            ranking.to_dict() | {"sources": {name: out.source_fields(each) for name, each in named.items()}}
        )
    else:
        _print_ranking(ranking)
    return list(named)[-1] not in ranking.best


def _print_ranking(ranking: Ranking) -> None:
    typer.secho(words.ranking_headline(ranking), bold=True)
    print()
    out.print_table(
        ("group", "trials", "mean cost", "expected cost", "policy"),
        [
            (
                each.letters,
                str(each.n),
                f"{each.mean_cost:.4f}",
                f"{each.lower:.4f} to {each.upper:.4f}",
                each.name,
            )
            for each in ranking.policies
        ],
    )
    print()
    out.print_table(
        ("adjusted p", "trials", "pair"),
        [
            (
                f"{pair.adjusted_p:.3g}",
                str(pair.pairs),
                f"{pair.better} {'is better than' if pair.decided else 'against'} {pair.worse}",
            )
            for pair in ranking.pairs
        ],
    )
    out.print_section("Note", words.ranking_notes(ranking), bullet="- ")


@dataclass
class _Growing:
    """A file that somebody writes to, and the trials in its whole lines."""

    path: str
    lines: LineReader
    costs: list[float] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    _read: bytes = b""
    _rest: bytes = b""
    _awaited: int = 0

    def look(self) -> None:
        """Take in the lines that were finished since the last look."""
        data = files.read_bytes(self.path)
        if not data.startswith(self._read):
            raise InvalidCost(
                f"{self.path}: lines that were counted have changed or gone; only add lines to a file that "
                "is followed"
            )
        whole = data[: data.rfind(b"\n") + 1]
        new = whole[len(self._read) :].split(b"\n")[:-1]
        for number, raw in enumerate(new, start=self._read.count(b"\n") + 1):
            try:
                self._take(number, decode_line(raw)[0])
            except (InvalidCost, InvalidSetting) as error:
                raise type(error)(f"{self.path}: line {number}: {error}") from error
        if not self.costs and self.lines.header is None and self._read.count(b"\n") < 2 <= whole.count(b"\n"):
            self._note("no trial and no column to read so far; name it with --success, --cost or --reward")
        self._read = whole
        rest, last = data[len(whole) :], whole.count(b"\n") + 1
        if rest and rest == self._rest and last != self._awaited:  # nobody is writing it right now
            self._note(awaited(last))
            self._awaited = last
        self._rest = rest

    def _take(self, number: int, text: str) -> None:
        found = self.lines.read(text)
        if self.lines.noticed:
            self._note(f"line {number} {self.lines.noticed}")
        if found is None:
            return
        self.costs.append(found.cost)
        named = (str(found.fields[column]).strip() for column in task_columns(found.fields))
        self.tasks.append(" ".join(filter(None, named)))
        self.numbers.append(number)

    def _note(self, said: str) -> None:
        print(f"boundwatch: note: {self.path}: {said}", file=sys.stderr)

    def episodes(self, n: int | None = None) -> Episodes:
        """Return the trials so far, or the first n of them, with a warning."""
        column, meaning = self.lines.chosen
        costs = np.array(self.costs[:n])
        binary = meaning == "success" or self.lines.binary
        warnings: tuple[str, ...] = ()
        if left := len(self.costs) - len(costs):
            warnings = (
                f"{self.path}: its last {left} trials are left out: when they came to a verdict, the two "
                "policies had run different tasks; compare the finished files without --follow",
            )
        notes: tuple[str, ...] = ()
        if not binary and looks_binary(costs):  # what comes later may be in between
            notes = (f"{self.path}: all costs are 0 or 1; with --binary, it takes fewer trials to tell",)
        return Episodes(
            costs,
            binary,
            self.path,
            column,
            meaning,
            file_format="csv" if self.lines.header or self.lines.values_only else "jsonl",
            cost_range=self.lines.cost_range,
            notes=notes,
            warnings=warnings,
            lines=self.numbers[:n],
        )


def _follow(paths: list[str], reading: Reading, question: _Question, *, as_json: bool) -> dict[str, Episodes]:
    """Read both files as they grow, print a line per trial, and return them once answered or stopped."""
    _refuse_whole_files(paths, reading)
    wanted = Wanted.of(success=reading.success, cost=reading.cost, reward=reading.reward)
    rule = reading.cost_range, bool(question.binary), tuple(reading.success_values or ())
    both = [_Growing(path, LineReader(wanted, *rule)) for path in paths]
    names = _names(paths)

    def read(counted: tuple[int | None, int | None] = (None, None)) -> dict[str, Episodes]:
        found = [each.episodes(n) for each, n in zip(both, counted, strict=True)]
        return dict(zip(names, of_one_measure(found), strict=True))

    a, b = both
    test: PolicyComparison | None = None
    answered = False
    before_held: tuple[int, int] | None = None
    with suppress(KeyboardInterrupt):
        while True:
            a.look()
            b.look()
            if a.costs and b.costs:
                _refuse_other_tasks(a, b)
                test = test or question.test(read())
                for pair in zip_longest(a.costs[test.n_a :], b.costs[test.n_b :]):
                    before = test.n_a, test.n_b
                    finding = test.update(*pair)
                    if not answered and _is_held(finding, a, b, already=before_held is not None):
                        before_held = before_held or before
                        continue
                    before_held = None
                    _print_line(finding, as_json=as_json)
                    answered = answered or question.answered(test)
                if answered or question.is_over(test):
                    break
            time.sleep(POLL_SECONDS)
    if test is None:
        empty = next(each.path for each in both if not each.costs)
        raise InvalidCost(f"{empty}: no trial was counted, so nothing was compared; at least one is needed")
    return read() if before_held is None else read(before_held)


def _refuse_whole_files(paths: list[str], reading: Reading) -> None:
    reading.refuse_whole_files("--follow")
    for path in paths:
        if not is_text(path) or is_log(path):
            raise typer.BadParameter(
                f"{path}: --follow is for one number, JSON object or CSV row per line; leave it out"
            )
        refuse_document(path, reading.columns.values())


def _refuse_other_tasks(a: _Growing, b: _Growing) -> None:
    """Refuse trials that only a whole file would put in order: those that were counted keep their places."""
    if not surely_in_blocks(a.tasks) and not surely_in_blocks(b.tasks):
        return
    if (apart := _first_apart(a.tasks, b.tasks)) is not None:
        place, one, other = apart
        raise InvalidCost(
            f"{b.path}: line {b.numbers[place]} is of {other or 'no task'}, but its partner, line "
            f"{a.numbers[place]} of {a.path}, is of {one or 'no task'}; list tasks in the same order, or "
            "compare without --follow, which takes them in turn"
        )


def _is_held(finding: ComparisonFinding, a: _Growing, b: _Growing, *, already: bool) -> bool:
    """Return whether there is a verdict that may be about the tasks: so far, one policy had easier ones.

    It is always valid to wait. But a comparison keeps its verdict: one that waited must also be borne out by
    all pairs once their tasks are alike, for those that made it may have been outweighed.
    """
    if finding.verdict is ComparisonVerdict.UNDECIDED and not finding.no_worse:
        return False
    one, other = a.tasks[: finding.pairs], b.tasks[: finding.pairs]
    task = most_apart(one, other)
    if task is not None and not already:
        print(
            f"boundwatch: note: of {finding.pairs} trials each, {a.path} has {one.count(task)} of "
            f"{task or 'no task'}, {b.path} has {other.count(task)}, so a verdict may be about the tasks; it "
            "waits until both have run about the same ones",
            file=sys.stderr,
        )
    return task is not None or (already and not _is_borne_out(finding))


def _is_borne_out(finding: ComparisonFinding) -> bool:
    lower, upper = finding.difference_lower, finding.difference_upper
    return (
        (finding.verdict is not ComparisonVerdict.A_BETTER or lower > 0)
        and (finding.verdict is not ComparisonVerdict.B_BETTER or upper < 0)
        and (not finding.no_worse or upper < finding.margin)
    )


def _print_line(finding: ComparisonFinding, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(finding.to_dict(), allow_nan=False), flush=True)
        return
    better = f"A better: e {finding.e_a_better:<8.3g} B better: e {finding.e_b_better:<8.3g}"
    trials = f"pair {finding.pairs:>4}  trials {finding.n_a} and {finding.n_b}"
    print(f"{trials}  {better} {finding.verdict.name}", flush=True)
