"""What `compare` does with policies that are finished (--once, --against) or matched by a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from boundwatch._support import files
from boundwatch.cli import output as out
from boundwatch.comparison import ComparedTasks, ComparisonFinding, ComparisonVerdict, compare_once
from boundwatch.comparison.turns import refuse_apart
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import InvalidSetting, Place
from boundwatch.reporting import compared as words

_COUNTS = re.compile(r"\s*(\d+)\s*/\s*(\d+)\s*")
_KEYS = ("seed", "scene")
"""Columns that show whether rows are partners: asked only with --paired, and only against it."""


def counted(text: str, like: Episodes) -> Episodes | None:
    """Return 47/50, so many successes of so many trials, as episodes; None if it is something else."""
    found = _COUNTS.fullmatch(text)
    if found is None:
        return None
    successes, trials = map(int, found.groups())
    if trials < 1 or successes > trials:
        problem, remedy = "is no number of successes in trials", "write 47/50"
        raise InvalidSetting(problem, name="against", value=text, remedy=remedy)
    if not like.binary:
        problem = "counts successes, but the costs of the file are not 0 and 1"
        raise InvalidSetting(problem, name="against", value=text, where=Place(like.source))
    costs = np.repeat([0.0, 1.0], [successes, trials - successes])
    return Episodes(costs, binary=True, measure=like.measure, source=text)


def refuse_other_rows(paths: list[str], read: Callable[..., Episodes], pair_by: str | None) -> None:
    """Refuse --paired if a column seed or scene that both files have says that rows are not partners."""
    for column in _KEYS if pair_by is None and len(paths) > 1 and "-" not in paths else ():
        try:
            one, *others = [read(path, pair_by=column) for path in paths]
        except InvalidSetting:
            continue  # not all have it
        for other in others:
            refuse_apart(one, other)


def judge_once(
    named: Mapping[str, Episodes],
    settings: Mapping[str, Any],
    plot: Path | None,
    report: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Print what one look at two finished policies says; return whether the second is worse."""
    finding = compare_once(named, **settings)
    overall = finding.overall if isinstance(finding, ComparedTasks) else finding
    both = list(named.values())
    sources = [out.describe_source(each) for each in both]
    out.print_warnings(*both)
    if plot is not None:
        from boundwatch.reporting import plots

        plots.save_figure(plots.plot_once(finding), plot)
    if report is not None:
        said = [warning for each in both for warning in each.warnings]
        costs = [each.costs for each in both]
        files.write_text(report, words.render_comparison(finding, *costs, sources=sources, warnings=said))
    if as_json:
        read = {
            side: {"name": name, **out.source_fields(each)}
            for side, (name, each) in zip("ab", named.items(), strict=True)
        }
        out.print_json(finding.to_dict() | read)
    else:
        _print(finding, overall, dict(zip(named, sources, strict=True)))
    return not overall.no_worse if overall.margin else overall.verdict is ComparisonVerdict.A_BETTER


def _print(
    finding: ComparisonFinding | ComparedTasks, overall: ComparisonFinding, sources: Mapping[str, str]
) -> None:
    typer.secho(words.comparison_headline(finding), bold=True)
    print()
    if isinstance(finding, ComparedTasks):
        out.print_table(words.task_header(finding), words.task_rows(finding))
        print()
    labeled = [(f"costs of {name}", source) for name, source in sources.items()]
    out.print_rows([*words.comparison_evidence(overall), *labeled])
    out.print_section("Note", words.comparison_notes(overall), bullet="- ")


def without_column(named: Mapping[str, Episodes]) -> dict[str, Episodes]:
    """Return policies of one file as of one measure, whatever their columns are called, with their names."""
    if len({each.source for each in named.values()}) > 1:
        return dict(named)
    return {
        name: replace(
            each, source=f"{each.source}, policy {name}", measure=replace(each.measure, column=None)
        )
        for name, each in named.items()
    }
