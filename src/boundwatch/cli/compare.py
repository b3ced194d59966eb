"""boundwatch compare: which of two or more policies is better."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from boundwatch._support import files
from boundwatch._support.describing import written
from boundwatch.certificates.record import AuditRecord
from boundwatch.cli import output as out
from boundwatch.cli.audit import Labeling
from boundwatch.cli.file_options import ANSWERS, Predictions, Reading, arriving
from boundwatch.cli.judging import EXIT_WORSE
from boundwatch.cli.options import WrongUsage, flag, refuse, refuse_if
from boundwatch.cli.root import command
from boundwatch.comparison import ComparedTasks, ComparisonFinding, PolicyComparison
from boundwatch.comparison.finding import Call
from boundwatch.comparison.following import Arrivals, Following
from boundwatch.comparison.matching import align, matched, refuse_apart, tasks_of
from boundwatch.comparison.once import compare_once
from boundwatch.comparison.ranking import rank
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, MissingFile, Place
from boundwatch.reporting import compared as words
from boundwatch.reporting.families import name_first

Named = dict[str, Episodes]
_ITSELF = "a policy equals itself"
_APART = {
    "against": "paired pair_by policy",
    "once": "follow finished horizon predicted",
    "pair_by": "paired follow predicted",
    "predicted": "finished strata horizon",
    "follow": "strata",
    "judge": "paired pair_by binary policy report against",
}
"""Options of which none goes with the one that is named first."""
_KEYS = ("seed", "scene")
"""Columns that show whether rows are partners: asked only with --paired, and only against it."""


@command(
    example="boundwatch compare old/eval_info.json new/eval_info.json --once --plot tasks.pdf\n"
    "boundwatch compare trials.csv --policy policy --plot compare.png\n"
    "boundwatch compare old.csv new.csv --margin 0.05 --exit-code\n"
    "boundwatch compare act.csv dp.csv --once --pair-by task,seed\n"
    "boundwatch compare my.csv --success grasped --against 47/50"
)
def compare(
    policies: list[str],
    *,
    paired: bool = False,
    pair_by: str | None = None,
    once: bool = False,
    alpha: float = 0.05,
    margin: float = 0.0,
    horizon: int | None = None,
    finished: bool = False,
    binary: bool = False,
    reading: Reading,
    predictions: Predictions,
    policy: str | None = None,
    against: str | None = None,
    judge: str | None = None,
    labels: list[Path] | None = None,
    follow: bool = False,
    table: Literal["markdown", "latex", "csv", "json"] | None = None,
    plot: Path | None = None,
    no_title: bool = False,
    report: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    exit_code: bool = False,
) -> None:
    """Say which policy is better, with a guaranteed error rate, after any trial.

    A_BETTER, B_BETTER or UNDECIDED; of several policies, those not told apart share a letter.

    Options
    -------
    policies A B [C ...]: A file per policy; or one with all, and --policy COL, or a --success (--cost, ...)
        or --sheet for each.
    paired: Trial i of every policy shared its seed, scene or task.
    pair_by COL,COL: Equal values here make pairs; other trials drop out.
    once: All trials are done, as many as planned, and this is the only look: a sharper test, overall and on
        each task.
    alpha P: Error rate: of two, per side; of more, of all.
    margin M: Also say whether B costs at most M more than A.
    horizon N: Most trials of each, if fixed in advance; 0/1 costs.
    finished: A's trials, in a planned number, all ran before B's first: all of them count; 0/1 costs.
    binary: Promise costs of 0 and 1, as successes always are.
    policy COL: Column that names the policy, if one file holds all.
    against K/N: Compare with K/N successes, or with a table of them.
    judge COL: With --once: column of a machine's judgments.
    labels FILE: With --judge: each policy's labeled sheet.
    follow: Two files: wait for more trials, until the verdict.
    table: With --once: the table alone.
    plot FILE: Draw it, with --once each task: .png, .svg or .pdf.
    report FILE: Two policies: write an HTML page to be signed.
    exit_code: Exit with 3 if A is better than B (with --once, on any task), if --margin is not shown, or if
        the last of several is worse than another.
    """
    given = locals() | vars(predictions) | {"strata": reading.strata, "once": once or against is not None}
    out.protect({"plot": plot, "report": report}, policies, force=force)
    out.require_html(report)
    refuse({"no_title": no_title and plot is None}, "goes with --plot; give it, or leave this out")
    once, is_whole = given["once"], policy is None and not reading.several
    _refuse_odd(policies, given, is_whole=is_whole)
    matching: dict[str, Any] = {"paired": paired or pair_by is not None}
    build = partial(PolicyComparison, alpha, horizon=horizon, margin=margin, finished=finished, **matching)
    compared: Any = None
    said = list[str]()
    if judge is not None:
        named, records, said = _audited(policies, reading, judge, labels or [])
        compared = compare_once(records, alpha=alpha, margin=margin)
    elif follow or predictions.check():
        build = partial(build, predictions=predictions.check())
        following = _follow(
            policies, reading, predictions, build, binary=binary, as_json=as_json, wait=follow
        )
        named = dict(zip(_names(policies), following.evaluations(), strict=True))
        compared = following.test.finding() if predictions.check() and following.test is not None else None
    else:
        answers = (*ANSWERS, "count") if once else ANSWERS
        read = partial(_read_policies, policies, reading, policy, binary=binary or None, answers=answers)
        named = _matched(read, paired, pair_by, in_order=not once)
        if against is not None:
            named = {against: _published(against, reading, *named.values())} | named
    draw = partial(out.draw, plot, title=not no_title)
    if len(named) > 2:
        others = {"horizon": horizon, "margin": margin or None, "report": report, "once": once or finished}
        refuse(others, "goes with two policies; leave it out")
        worse = _compare_many(named, alpha, matching["paired"], draw, as_json=as_json)
    else:
        if compared is None and once:
            named = _of_one_measure(named)
            rows = {name: range(len(each)) for name, each in named.items()}
            keys: Any = rows if paired else pair_by
            compared = compare_once(named, alpha=alpha, margin=margin, pair_by=keys)
        elif compared is None:
            a, b = named.values()
            test = build(binary=a.binary and b.binary, tasks=len(set(tasks_of(a))) or 1)
            compared = test.update_many(a.costs, b.costs)
        draw("plot_comparison", compared, tuple(named))
        worse = _print_two(compared, named, report, table, as_json=as_json, lines=follow)
    if said and not (as_json or table):
        out.print_section("Audits", said)
    if exit_code and worse:
        raise SystemExit(EXIT_WORSE)


def _refuse_odd(policies: list[str], given: dict[str, Any], *, is_whole: bool) -> None:
    """Refuse options that do not go together; `is_whole` if each file is of one policy."""
    one_file = len(policies) == 1
    for name, others in _APART.items():
        if given[name]:
            alone = f"does not go with {flag(name)}; leave it out"
            refuse({other: given[other] for other in others.split()}, alone)
    for name in ("follow", "predicted", "judge"):
        if given[name] and (len(policies) != 2 or not is_whole or "-" in policies):
            raise WrongUsage(f"{flag(name)} needs two files, one per policy")
    refuse_if(
        {
            "--policy, or a column or a sheet per policy, goes with one file; give one": not is_whole
            and (not one_file or (given["policy"] is not None and given["reading"].several)),
            "--against goes with one file, of one policy": given["against"] is not None
            and not (one_file and is_whole),
            "give a file per policy, at least two; or one that holds all, with --policy COL, or with a "
            "column (--success A --success B) or a sheet (--sheet A --sheet B) for each": one_file
            and is_whole
            and given["against"] is None,
            "--table is of one look at finished trials; add --once": given["table"] and not given["once"],
            "give either --table or --json, not both": given["table"] and given["as_json"],
            "--judge needs two files, --once, and --labels for each": (given["judge"] or given["labels"])
            and not (given["judge"] and given["once"] and len(given["labels"] or ()) == 2),
        }
    )


def _read_policies(
    paths: list[str], reading: Reading, policy: str | None, *, answers: tuple[str, ...], **others: Any
) -> Named:
    """Return the episodes of every policy by its name: a file, or a column, a sheet or rows of one file."""
    read: Any = partial(Reading.read, answers=answers, **others)
    if policy is not None:
        whole: Episodes = read(reading, paths[0], policy=policy, answers=("policy", *answers))
        found = whole.split("policy")
        if len(found) < 2:
            problem = f"names {len(found)} policy; two are needed"
            raise InvalidCost(problem, where=Place(whole.source, column=policy))
        return found
    if len(reading.columns) > 1:
        return {column: read(reading.only(column), paths[0]) for column in reading.columns}
    if reading.several:
        sheets = {name: read(replace(reading, sheet=[name]), paths[0]) for name in reading.sheet or ()}
        if len({each.source for each in sheets.values()}) < len(reading.sheet or ()):
            raise InvalidSetting("the same sheet was given twice", where=Place(paths[0]), remedy=_ITSELF)
        return sheets
    return dict(zip(_names(paths), [read(reading, path) for path in paths], strict=True))


def _audited(
    paths: list[str], reading: Reading, judge: str, labels: list[Path]
) -> tuple[Named, dict[str, AuditRecord], list[str]]:
    """Return the policies whose episodes a machine judged, their audits, and what these say."""
    named: Named = {}
    records, said = dict[str, AuditRecord](), list[str]()
    for name, path, labeled in zip(_names(paths), paths, labels, strict=True):
        audit, known, named[name] = Labeling(judge, labeled).read(path, reading)
        records[name] = audit.record(known)
        said += [f"{name}: {each}" for each in audit.finding(known).sentences()]
    return named, records, said


def _matched(read: Callable[..., Named], paired: bool, pair_by: str | None, *, in_order: bool) -> Named:
    """Read policies and match their trials; refuse partners that are none."""
    named = {name: each.as_promised() for name, each in read(pair_by=pair_by or ()).items()}
    for each in named.values() if paired or pair_by is not None else ():
        if each.measure.counted:
            problem, remedy = "counts trials, and nobody knows which are partners", "give a row per trial"
            raise InvalidSetting(problem, where=Place(each.source, column=each.measure.column), remedy=remedy)
    for column in _KEYS if paired and "stdin" not in named else ():
        with suppress(InvalidSetting):  # not all have it
            one, *others = read(pair_by=column).values()
            for other in others:
                refuse_apart(one, other)
    if pair_by is not None and not in_order:
        return named  # matched by `compare_once`
    named = named if pair_by is None else matched(named, pair_by)
    parts = list(_of_one_measure(named).values())
    aligned = zip(
        named.items(), align(parts, paired=paired or pair_by is not None, in_order=in_order), strict=True
    )
    return {name: replace(part, source=each.source, measure=each.measure) for (name, each), part in aligned}


def _published(text: str, reading: Reading, like: Episodes) -> Episodes:
    """Return 47/50, so many successes of so many trials, or a table of such counts, as episodes."""
    successes, slash, trials = text.partition("/")
    if not (slash and successes.isdecimal() and trials.isdecimal()):
        counts = Reading(successes=["result"], strata=reading.strata)
        try:
            found = counts.read(text)
        except MissingFile as error:
            remedy = "check the path, or write a count such as 47/50"
            raise MissingFile(error.problem, where=error.where, remedy=remedy) from None
        except InvalidSetting as error:
            if error.problem != "there is no column 'result'":
                raise
            try:
                found = replace(counts, successes=["successes"], trials=["trials"]).read(text)
            except InvalidSetting as other:
                if other.problem != "there is no column 'successes'":
                    raise
                problem = "has neither a column 'result', such as 47/50, nor 'successes' and 'trials'"
                raise InvalidSetting(problem, where=Place(text)) from None
        return replace(found, measure=like.measure, design=replace(found.design, where=like.design.where))
    if not 0 < int(trials) >= int(successes):
        problem, remedy = "does not say how many of the trials succeeded", "write 47/50"
        raise InvalidSetting(problem, name="against", value=text, remedy=remedy)
    if not like.binary:
        problem = "counts successes, but costs of the file need not be 0 or 1"
        said = ("say so, if they are, with ", Argument("binary", True))
        raise InvalidSetting(problem, name="against", value=text, where=Place(like.source), remedy=said)
    costs = np.repeat([0.0, 1.0], [int(successes), int(trials) - int(successes)])
    return Episodes(costs, binary=True, measure=like.measure, source=text)


def _of_one_measure(named: Named) -> Named:
    """Return policies of one file as of one measure, whatever their columns are called, with their names."""
    if len({each.source for each in named.values()}) > 1:
        return named
    return {
        name: replace(
            each, source=f"{each.source}, policy {name}", measure=replace(each.measure, column=None)
        )
        for name, each in named.items()
    }


def _names(paths: list[str]) -> list[str]:
    """Return short names that tell the files apart."""
    for name in (lambda path: path.stem, lambda path: f"{path.parent.name}/{path.stem}", str):
        names = ["stdin" if path == "-" else name(Path(path)) for path in paths]
        if len(set(names)) == len(names):
            return names
    problem = f"the same file was given twice: {', '.join(paths)}"
    raise InvalidSetting(problem, remedy=_ITSELF)


def _print_two(
    finding: ComparisonFinding | ComparedTasks,
    named: Named,
    report: Path | None,
    table: str | None,
    *,
    as_json: bool,
    lines: bool,
) -> bool:
    """Print the verdict on two policies; return whether the second is worse."""
    (one, a), (other, b) = named.items()
    overall = finding.overall
    out.print_warnings(a, b)
    sources = [out.describe_source(each) for each in (a, b)]
    if report is not None:
        said: Any = {"names": (one, other), "sources": sources, "warnings": (*a.warnings, *b.warnings)}
        files.write_text(report, words.render_comparison(finding, a.costs, b.costs, **said))
    if as_json and not lines:  # else every line was the finding
        read = {"a": {"name": one, **out.source_fields(a)}, "b": {"name": other, **out.source_fields(b)}}
        out.print_json(finding.to_dict() | words.summary(finding, (one, other)) | read)
    elif table is not None:
        head, body = name_first(words.task_table(finding))
        print(written([head, *body], table))
    elif not as_json:
        out.print_bold(words.comparison_headline(finding, (one, other)) + "\n")
        if isinstance(finding, ComparedTasks):
            out.print_table(*words.task_table(finding))
            print()
        labels = (f"costs of {one}", f"costs of {other}")
        out.print_rows(
            [*words.comparison_evidence(overall, (one, other)), *zip(labels, sources, strict=True)]
        )
        out.print_section("Note", words.comparison_notes(overall), bullet="- ")
    if overall.margin and not overall.no_worse:
        return True
    # A regression by less than a margin that was stated is none.
    return any(
        each.call is Call.REGRESSED and not (each.margin and each.no_worse) for each in finding.rows.values()
    )


def _compare_many(
    named: Named, alpha: float, paired: bool, draw: Callable[..., None], *, as_json: bool
) -> bool:
    """Print the ranking of several policies; return whether the last is worse than another."""
    exact = all(each.binary and not tasks_of(each) for each in named.values())
    ranking = rank({name: each.costs for name, each in named.items()}, alpha, paired=paired, binary=exact)
    out.print_warnings(*named.values())
    binary = all(each.binary for each in named.values())
    draw("plot_ranking", ranking, binary)
    if as_json:
        sources = {name: out.source_fields(each) for name, each in named.items()}
        out.print_json(ranking.to_dict() | {"sources": sources})
        return list(named)[-1] not in ranking.best
    out.print_bold(words.ranking_headline(ranking))
    print()
    out.print_table(*words.ranking_table(ranking, binary=binary))
    print()
    verbs = {True: "is better than", False: "against"}
    pairs = [
        (f"{each.adjusted_p:.3g}", str(each.pairs), f"{each.better} {verbs[each.decided]} {each.worse}")
        for each in ranking.pairs
    ]
    out.print_table(("adjusted p", "trials", "pair"), pairs)
    out.print_section("Note", words.ranking_notes(ranking), bullet="- ")
    return list(named)[-1] not in ranking.best


def _follow(
    paths: list[str],
    reading: Reading,
    predictions: Predictions,
    build: Callable[..., PolicyComparison],
    *,
    binary: bool,
    as_json: bool,
    wait: bool,
) -> Following:
    """Read both files; as they grow, print a line per look, until it is answered or stopped."""
    reading.arguments()
    a, b = (_arrivals(path, reading, predictions, binary=binary, wait=wait) for path in paths)
    following = Following(a, b, lambda binary: build(binary=binary))
    with suppress(KeyboardInterrupt):
        while not following.over:
            for finding in following.look():
                if wait:
                    _print_line(finding, as_json=as_json)
            if not wait:
                break
    return following


def _arrivals(path: str, reading: Reading, predictions: Predictions, *, binary: bool, wait: bool) -> Arrivals:
    """Return the trials of a file, with `wait` as its lines are written."""
    why = "--follow or --predicted"
    reader = reading.read_lines(path, why, answers=ANSWERS, binary=binary, **vars(predictions))
    found = Arrivals(path, iter(()), lambda: reader.layout.measure, binary)

    def came() -> Iterator[tuple[int, float] | None]:
        for each in arriving(path, reader, wait=wait):
            found.predictions += [] if each is None else [each.predictions or (None, ())]
            yield each and (each.number, each.cost)

    found.trials = came()
    return found


def _print_line(finding: ComparisonFinding, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(finding.to_dict(), allow_nan=False), flush=True)
        return
    better = f"A better: e {finding.e_a_better:<8.3g} B better: e {finding.e_b_better:<8.3g}"
    trials = f"pair {finding.pairs:>4}  trials {finding.n_a} and {finding.n_b}"
    print(f"{trials}  {better} {finding.verdict.name}", flush=True)
