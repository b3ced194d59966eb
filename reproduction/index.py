"""The page: every figure, table, setting and seed, and what became of the paper's claims."""

from __future__ import annotations

import base64
import dataclasses
import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

from boundwatch._support.files import read_bytes
from boundwatch.reporting import page
from boundwatch.reporting.page import Html
from reproduction.certification import AUTHORS, LABELS, RECORDED
from reproduction.figure import Experiment, Holds, Judged, Table, counted_as, percent, style_of, told
from reproduction.judging import SIGNIFICANT, Tallied, corrected
from reproduction.navigation import in_words
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
td.partly { color: #b35c00; font-weight: 600; } td.not { color: #777; }
details { margin: 0.5rem 0; } summary { cursor: pointer; }
pre { font: 0.8rem/1.4 ui-monospace, monospace; overflow-x: auto; background: var(--panel);
  padding: 0.75rem; }
.wide { overflow-x: auto; }
</style>"""
PRINTED = "figure-theorem-1"
"""The file of a figure drawn once more, with Theorem 1 as printed."""
OUTCOMES = ("hold", "hold for some policies", "hold in part", "do not hold", "not checkable here")


@dataclass(frozen=True)
class Shown:
    """An experiment on the page."""

    experiment: Experiment
    settings: Any
    results: Any
    judged: Sequence[Judged]
    printed: Any = None
    """The results with Theorem 1 as printed, of the same flights and grasps; None where that is not shown."""


def render(shown: Sequence[Shown], folder: Path) -> str:
    """Return the page, with the figures that are drawn in a folder as ``NAME/figure.svg``."""
    whole = page.page("The paper, reproduced", _sections(shown, folder), images=True)
    return whole.replace(" %", "\N{NO-BREAK SPACE}%")  # no line begins with the sign of a number before it


def _sections(shown: Sequence[Shown], folder: Path) -> Iterator[Html]:
    yield Html(STYLE)
    yield page.heading("The paper, reproduced", 1)
    yield page.paragraph(
        "Every figure and table of the paper's experiments, with our numbers beside its claims. The rules by "
        "which a claim holds were drafted with the code, corrected, mostly made stricter, after draft runs "
        "with other seeds, and frozen before the policies and environments of the published run were drawn.",
        "lead",
    )
    changed = [one.experiment.NAME for one in shown if _sizes(one.settings) != one.experiment.FULL]
    if changed:
        yield page.paragraph(
            f"Not at the sizes of the full reproduction: {', '.join(changed)}. Small sizes give rough "
            "numbers, and certificates too loose for some claims."
        )
    everything = [(one.experiment.NAME, judged) for one in shown for judged in one.judged]
    claims = [(name, judged) for name, judged in everything if not judged.claim.beyond]
    ours = [(name, judged) for name, judged in everything if judged.claim.beyond]
    yield _table(counts(claims))
    for number, one in enumerate(shown, 1):
        yield from _figure(number, one, folder)
    yield page.heading("The paper's claims, and what we found")
    yield _claims_table("The paper's claim", claims)
    if ours:
        yield page.heading("Beyond the paper")
        yield _claims_table("Claim", ours)
    yield from _guarantees({one.experiment.NAME: one.results for one in shown})
    for number, one in enumerate(shown, 1):
        yield from _numbers(number, one)
    yield page.heading("Versions")
    made_with = [("python", platform.python_version()), ("machine", platform.machine())]
    yield page.rows([*made_with, ("instructions", instructions()), *_versions()])


def counts(claims: Sequence[tuple[str, Judged]]) -> Table:
    """Count the claims that hold, for every policy, with each certificate."""
    kinds = list(dict.fromkeys(kind for _, judged in claims for kind in judged.votes if kind)) or [""]
    votes = {kind: [found for _, judged in claims if (found := votes_of(judged, kind))] for kind in kinds}
    lines = []
    for kind, each in votes.items():
        number = Counter(map(_outcome, each))
        lines.append((_certificate(kind), str(len(each)), *(str(number[outcome]) for outcome in OUTCOMES)))
    policies = max((len(found) for each in votes.values() for found in each), default=1)
    title = "The paper's claims" + (f", judged for up to {policies} policies" if policies > 1 else "")
    return Table(title, ("with", "claims", *OUTCOMES), tuple(lines))


def _outcome(votes: Sequence[Holds]) -> str:
    """Return the column in which a claim is counted."""
    amount = counted_as(votes)
    if amount == "partly" and "yes" in votes:
        return "hold for some policies"
    return {"yes": "hold", "partly": "hold in part", "no": "do not hold"}.get(amount, "not checkable here")


def votes_of(judged: Judged, kind: str) -> list[Holds]:
    """Return a claim's verdicts with a certificate; none if it was not judged so.

    What no certificate changes was judged once, and counts with each; recorded flights and the authors' data
    are other policies.
    """
    if kind in judged.votes or kind in (RECORDED, AUTHORS):
        return judged.votes.get(kind, [])
    return next(iter(judged.votes.values()))


def _certificate(kind: str) -> str:
    if kind == RECORDED:
        return "the pointwise certificate, on recorded flights"
    if kind == AUTHORS:
        return LABELS[kind]
    return f"the {LABELS[kind]} certificate" if kind in LABELS else "any certificate"


def _sizes(settings: Any) -> Any:
    """Return settings without what changes no size: recorded costs, which are shown beside, certificates."""
    changes = {"recorded": (), "certificate": "pointwise"}
    names = {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{name: v for name, v in changes.items() if name in names})


def _claims_table(title: str, claims: list[tuple[str, Judged]]) -> Html:
    kinds = list(dict.fromkeys(kind for _, judged in claims for kind in judged.votes if kind)) or [""]
    lines = []
    for name, judged in claims:
        claim = judged.claim
        why = f"<br><em>{escape(claim.why)}</em>" if claim.why else ""
        verdicts = [votes_of(judged, kind) for kind in kinds]
        cells = "".join(f'<td class="{style_of(v)}">{told(v)}</td>' for v in verdicts)
        lines.append(
            f"<tr><td>{escape(claim.paper)}</td><td>{escape(claim.ours)}{why}</td>{cells}"
            f'<td><a href="#{name}">{name}</a></td></tr>'
        )
    heads = "".join(f"<th>Holds?{f' ({LABELS[kind]})' if kind in LABELS else ''}</th>" for kind in kinds)
    header = f"<tr><th>{title}</th><th>What we found</th>{heads}<th>Figure</th></tr>"
    return Html(f'<div class="wide"><table>{header}{"".join(lines)}</table></div>')


def _guarantees(results: Mapping[str, Any]) -> Iterator[Html]:
    """Test "declared falsely at most as often as guaranteed" wherever something was declared."""
    tallied = {name: found for name, found in results.items() if isinstance(found, Tallied)}
    found = [(name, check) for name, one in tallied.items() for check in one.checks()]
    checks = [check for _, check in found]
    yield page.heading("False declarations against the guaranteed rates")
    if not checks:
        yield page.paragraph("No detector with a guarantee was run.")
        return
    false, datasets = sum(c.false for c in checks), sum(c.tally.datasets for c in checks)
    worst = min(check.p_value for check in checks)
    p_value = min(corrected(checks), 1.0)
    verdict = f"{'No' if p_value > SIGNIFICANT else 'Some'} rate is significantly above"
    yield page.paragraph(
        f"{verdict} its guarantee: in {len(checks)} combinations of setting, detector, tail, number of "
        f"trials and verdict, {false:,} of {datasets:,} datasets were declared falsely. The smallest "
        f"p-value of an exact binomial test against the guaranteed rate is {worst:.2g}, {p_value:.2g} "
        "after Bonferroni's correction. Where the sign of the shift is not certain, both verdicts count "
        "as false. All datasets of a policy share one certificate, which is true or not for all of them: the "
        "figure on certificates counts how often certificates fail."
    )
    closest = sorted(
        found, key=lambda pair: pair[1].promised * pair[1].tally.datasets / max(pair[1].false, 0.5)
    )[:8]
    lines = [
        {
            "figure": name,
            "setting": in_words(c.tally.setting),
            "detector": c.tally.detector,
            "tail": c.tally.tail,
            "certificate": c.tally.certified_by,
            "n": str(c.tally.n),
            "verdict": c.verdict,
            "false": f"{c.false} of {c.tally.datasets}",
            "promised": percent(c.promised),
            "p-value": f"{c.p_value:.2g}",
        }
        for name, c in closest
    ]
    yield _table(Table.of("The closest to their guarantee", lines))


def _figure(number: int, shown: Shown, folder: Path) -> Iterator[Html]:
    experiment = shown.experiment
    drawing = base64.b64encode(read_bytes(folder / experiment.NAME / "figure.svg")).decode()
    see = escape(experiment.caption(shown.results).see)
    yield Html(f'<h2 id="{experiment.NAME}">{number}. {escape(experiment.TITLE)}</h2>')
    yield Html(
        f'<figure><img alt="{see}" src="data:image/svg+xml;base64,{drawing}"><figcaption>{see} '
        f'<a href="#{experiment.NAME}-numbers">Numbers</a></figcaption></figure>'
    )
    if shown.printed:
        drawing = base64.b64encode(read_bytes(folder / experiment.NAME / f"{PRINTED}.svg")).decode()
        see = "The same with the paper's certificate, Theorem 1 as printed"
        yield Html(
            f'<details><summary>{see}</summary><figure><img alt="{see}" '
            f'src="data:image/svg+xml;base64,{drawing}"></figure></details>'
        )


def _numbers(number: int, shown: Shown) -> Iterator[Html]:
    experiment, results, settings = shown.experiment, shown.results, shown.settings
    caption = experiment.caption(results)
    title = f"Numbers of {number}. {escape(experiment.TITLE)}"
    yield Html(f'<h2 id="{experiment.NAME}-numbers">{title}</h2>')
    yield page.rows(
        [
            ("numbers", caption.numbers),
            ("seeds", _seeds(settings) or "none: nothing is drawn"),
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
