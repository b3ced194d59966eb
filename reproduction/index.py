"""The page: every figure, table, setting and seed, and what became of the paper's claims."""

from __future__ import annotations

import base64
import dataclasses
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

from boundwatch._support.files import read_bytes
from boundwatch.reporting import page
from boundwatch.reporting.page import Html
from reproduction.figure import Claim, Experiment, Results, Table, percent
from reproduction.judging import SIGNIFICANT, false_declarations, tallies_of
from reproduction.processor import instructions

PACKAGES = ("boundwatch", "numpy", "scipy", "torch", "mujoco-core", "matplotlib")
STYLE = """<style>
main { max-width: 68rem; }
table { border-collapse: collapse; font-size: 0.875rem; margin: 0.75rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.75rem 0.25rem 0; text-align: left;
  vertical-align: top; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
img { display: block; width: 100%; max-width: 62rem; height: auto; background: #fff; }
td.yes { color: var(--benign); font-weight: 600; } td.no { color: var(--adverse); font-weight: 600; }
td.partly { font-weight: 600; } details { margin: 0.5rem 0; } summary { cursor: pointer; }
pre { font: 0.8rem/1.4 ui-monospace, monospace; overflow-x: auto; background: var(--panel);
  padding: 0.75rem; }
.wide { overflow-x: auto; }
</style>"""


def render(
    experiments: Mapping[str, Experiment],
    results: Mapping[str, Results],
    settings: Mapping[str, Any],
    folder: Path,
) -> str:
    """Return the page.

    Parameters
    ----------
    experiments, results, settings
        By name, in the order of the page.
    folder
        Where the drawn figures are: ``NAME/figure.svg``.
    """
    sections = _sections(experiments, results, settings, folder)
    whole = page.page("The paper, reproduced", sections, images=True)
    return whole.replace(" %", "\N{NO-BREAK SPACE}%")  # no line begins with the sign of a number before it


def _sections(
    experiments: Mapping[str, Experiment],
    results: Mapping[str, Results],
    settings: Mapping[str, Any],
    folder: Path,
) -> Iterator[Html]:
    yield Html(STYLE)
    yield page.heading("The paper, reproduced", 1)
    yield page.paragraph(
        "Every figure and table of the paper's experiments that a simulation can check, with our numbers "
        "beside its claims. The rules by which a claim holds were drafted with the code, corrected, mostly "
        "made stricter, after draft runs with other seeds, and frozen before the policies and environments "
        "of the published run were drawn.",
        "lead",
    )
    changed = [name for name in experiments if _sizes(settings[name]) != experiments[name].FULL]
    if changed:
        yield page.paragraph(
            f"Not at the sizes of the full reproduction: {', '.join(changed)}. Small sizes give rough "
            "numbers, and certificates too loose for some claims."
        )
    everything = [(name, claim) for name in experiments for claim in experiments[name].claims(results[name])]
    claims = [(name, claim) for name, claim in everything if not claim.beyond]
    ours = [(name, claim) for name, claim in everything if claim.beyond]
    yield page.heading("The paper's claims, and what we found")
    counts = Counter(claim.holds for _, claim in claims)
    yield page.paragraph(
        f"Of the paper's {len(claims)} claims, {counts['yes']} hold, {counts['partly']} hold in part, "
        f"{counts['no']} do not, and {counts['not checkable here']} cannot be checked here."
    )
    yield _claims_table("The paper's claim", claims)
    if ours:
        yield page.heading("Beyond the paper")
        yield _claims_table("Claim", ours)
    yield from _guarantees(results)
    for number, (name, experiment) in enumerate(experiments.items(), 1):
        yield from _experiment(number, experiment, results[name], settings[name], folder / name)
    yield page.heading("Versions")
    made_with = [("python", platform.python_version()), ("machine", platform.machine())]
    yield page.rows([*made_with, ("instructions", instructions()), *_versions()])


def _sizes(settings: Any) -> Any:
    """Return settings without recorded costs, which are shown beside and change nothing else."""
    return dataclasses.replace(settings, recorded=()) if hasattr(settings, "recorded") else settings


def _claims_table(title: str, claims: list[tuple[str, Claim]]) -> Html:
    lines = [
        f"<tr><td>{escape(claim.paper)}</td><td>{escape(claim.ours)}{_why(claim)}</td>"
        f'<td class="{claim.holds.split()[0]}">{claim.holds}</td><td><a href="#{name}">{name}</a></td></tr>'
        for name, claim in claims
    ]
    header = f"<tr><th>{title}</th><th>What we found</th><th>Holds?</th><th>Figure</th></tr>"
    return Html(f'<div class="wide"><table>{header}{"".join(lines)}</table></div>')


def _why(claim: Claim) -> str:
    return f"<br><em>{escape(claim.why)}</em>" if claim.why else ""


def _guarantees(results: Mapping[str, Results]) -> Iterator[Html]:
    """Test "declared falsely at most as often as guaranteed" wherever something was declared."""
    found = [
        (name, check) for name, result in results.items() for check in false_declarations(tallies_of(result))
    ]
    checks = [check for _, check in found]
    yield page.heading("False declarations against the guaranteed rates")
    if not checks:
        yield page.paragraph("No detector with a guarantee was run.")
        return
    false, datasets = sum(c.false for c in checks), sum(c.tally.datasets for c in checks)
    worst = min(check.p_value for check in checks)
    corrected = min(worst * len(checks), 1.0)
    verdict = f"{'No' if corrected > SIGNIFICANT else 'Some'} rate is significantly above"
    yield page.paragraph(
        f"{verdict} its guarantee: in {len(checks)} combinations of setting, detector, tail, number of "
        f"trials and verdict, {false:,} of {datasets:,} datasets were declared falsely. The smallest "
        f"p-value of an exact binomial test against the guaranteed rate is {worst:.2g}, {corrected:.2g} "
        "after Bonferroni's correction. Where the sign of the shift is not certain, both verdicts count "
        "as false. All datasets of a policy share one certificate, which is true or not for all of them: the "
        "figure on certificates counts how often certificates fail."
    )
    closest = sorted(
        found, key=lambda pair: pair[1].promised * pair[1].tally.datasets / max(pair[1].false, 0.5)
    )[:8]
    lines = tuple(
        (
            name,
            c.tally.setting,
            c.tally.detector,
            c.tally.tail,
            c.tally.certified_by,
            str(c.tally.n),
            c.verdict,
            f"{c.false} of {c.tally.datasets}",
            percent(c.promised),
            f"{c.p_value:.2g}",
        )
        for name, c in closest
    )
    header = (
        "figure",
        "setting",
        "detector",
        "tail",
        "certificate",
        "n",
        "verdict",
        "false",
        "promised",
        "p-value",
    )
    yield _table(Table("The closest to their guarantee", header, lines))


def _experiment(
    number: int, experiment: Experiment, results: Results, settings: Any, folder: Path
) -> Iterator[Html]:
    drawing = base64.b64encode(read_bytes(folder / "figure.svg")).decode()
    caption = experiment.caption(results)
    yield Html(f'<h2 id="{experiment.NAME}">{number}. {escape(experiment.TITLE)}</h2>')
    yield Html(
        f'<figure><img alt="{escape(caption.see)}" src="data:image/svg+xml;base64,{drawing}">'
        f"<figcaption>{escape(caption.see)}</figcaption></figure>"
    )
    yield page.rows(
        [
            ("numbers", caption.numbers),
            ("seeds", _seeds(settings)),
            ("beside the paper", caption.paper),
            ("what differs, and why", caption.differs),
        ]
    )
    for table in experiment.tables(results):
        if len(table.rows) > 12:
            yield Html(f"<details><summary>{escape(table.title)}</summary>{_table(table)}</details>")
        else:
            yield _table(table)
    text = json.dumps(dataclasses.asdict(settings), indent=1)
    yield Html(f"<details><summary>Settings</summary><pre>{escape(text)}</pre></details>")


def _seeds(settings: Any) -> str:
    found: list[str] = []

    def visit(content: Mapping[str, Any], path: str) -> None:
        for name, value in content.items():
            if isinstance(value, Mapping):
                visit(value, f"{path}{name}.")
            elif name == "seed" or name.endswith("_seed"):
                found.append(f"{path}{name} = {value}")

    visit(dataclasses.asdict(settings), "")
    return ", ".join(found)


def _table(table: Table) -> Html:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    title = f"<caption>{escape(table.title)}</caption>"
    return Html(f'<div class="wide"><table>{title}<tr>{head}</tr>{body}</table></div>')


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"
