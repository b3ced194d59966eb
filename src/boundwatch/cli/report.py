"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.family import (
    ControlName,
    build_family_test,
    name_missing,
    read_tasks,
    refuse_with_tasks,
    refuse_without_tasks,
)
from boundwatch.cli.judge import (
    AlphaAdverse,
    AlphaBenign,
    DetectorName,
    FalseNegative,
    FalsePositive,
    Margin,
    Tail,
    build_detector,
    load_judge,
)
from boundwatch.cli.options import AllowOwn, By, CertificateFile, CostsFile, Force, Key
from boundwatch.cli.reading import Reading, reads_costs
from boundwatch.cli.root import command
from boundwatch.reporting import wording
from boundwatch.reporting.ledger import earlier_looks, read_ledger


@command(
    example="boundwatch report certificate.json new.csv -o report.html\n"
    "boundwatch report certificates.json new_eval_info.json --by task -o report.html"
)
@reads_costs
def report(
    certificate: CertificateFile,
    costs: CostsFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the HTML page.")
    ],
    detector: DetectorName = "hypothesis-test",
    tail: Tail = None,
    alpha_adverse: AlphaAdverse = None,
    alpha_benign: AlphaBenign = None,
    false_positive_rate: FalsePositive = None,
    false_negative_rate: FalseNegative = None,
    margin: Margin = None,
    control: ControlName = None,
    by: By = None,
    key: Key = None,
    *,
    reading: Reading,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    robot: Annotated[str | None, typer.Option(metavar="TEXT", help="Which robot, for the page.")] = None,
    site: Annotated[str | None, typer.Option(metavar="TEXT", help="Where it ran, for the page.")] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ledger of `check --ledger`; its looks are put into the page."),
    ] = None,
    allow_own: AllowOwn = False,
    force: Force = False,
) -> None:
    """Write a report on new episodes that can be signed.

    One self-contained HTML file: what was promised, what was seen, the verdict, its guarantee and
    assumptions, what would have been noticed, and hashes. The verdict is that of `boundwatch check`.
    With the certificates of several tasks, or with --by, the page has a verdict on each, corrected for their
    number.
    """
    from boundwatch.reporting.family import member, render_family_report
    from boundwatch.reporting.report import render_report

    files.protect(output, [certificate, costs], force=force)
    loaded = load_judge(certificate, costs, key)
    out.print_trust(loaded, key)
    levels = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign}
    rates = {"false_positive_rate": false_positive_rate, "false_negative_rate": false_negative_rate}
    facts = {"robot": robot, "site": site}
    if not isinstance(loaded, Certificate) or by is not None:
        refuse_with_tasks(detector, ledger=ledger, **rates)
        family, episodes = read_tasks(loaded, costs, reading, by, allow_own=allow_own)
        test = build_family_test(family, control, tail, levels, margin)
        found = test.decide(episodes.by_task())
        episodes = name_missing(family, found, episodes)
        html = render_family_report(
            test,
            episodes.by_task(),
            source=out.describe_source(episodes),
            warnings=episodes.warnings,
            title=title,
            facts=facts,
        )
        files.write_text(output, html)
        out.print_warnings(episodes)
        print(f"Wrote {output}\n{wording.headline(found, member(family))}")
        return
    refuse_without_tasks(control)
    judge = build_detector(loaded, detector, tail, levels=levels, rates=rates, margin=margin)
    episodes = reading.read(costs, certificate=loaded, allow_own=allow_own)
    looks = [] if ledger is None else read_ledger(ledger)
    looks = [look for look in looks if look.certificate == loaded.fingerprint]
    earlier = [
        one for one in earlier_looks(looks, loaded.fingerprint, episodes.costs) if "one look" not in one
    ]
    html = render_report(
        judge,
        episodes.costs,
        source=out.describe_source(episodes),
        warnings=(*episodes.warnings, *earlier),
        title=title,
        facts=facts,
        looks=[look.describe() for look in looks],
    )
    files.write_text(output, html)
    out.print_warnings(episodes)
    finding = judge.decide(episodes.costs)
    print(f"Wrote {output}\n{wording.answer(finding)}\n{wording.comparison(loaded, finding)}")
