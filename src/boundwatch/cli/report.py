"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
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
from boundwatch.cli.options import AllowOwn, CertificateFile, CostsFile, Force, Key
from boundwatch.cli.reading import Reading, reads_costs
from boundwatch.cli.root import command
from boundwatch.errors import InvalidSetting
from boundwatch.reporting import wording
from boundwatch.reporting.ledger import earlier_looks, read_ledger


@command(example="boundwatch report certificate.json new.csv -o report.html")
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
    """
    from boundwatch.reporting.report import render_report

    files.protect(output, [certificate, costs], force=force)
    loaded = load_judge(certificate, costs, key)
    if not isinstance(loaded, Certificate):
        raise InvalidSetting(
            f"{certificate}: holds the certificates of several tasks, but a report is on one; "
            "take it out with: boundwatch show FILE --task NAME -o OTHER_FILE"
        )
    out.print_trust(loaded, key)
    judge = build_detector(
        loaded,
        detector,
        tail,
        levels={"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign},
        rates={"false_positive_rate": false_positive_rate, "false_negative_rate": false_negative_rate},
        margin=margin,
    )
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
        facts={"robot": robot, "site": site},
        looks=[look.describe() for look in looks],
    )
    files.write_text(output, html)
    out.print_warnings(episodes)
    finding = judge.decide(episodes.costs)
    print(f"Wrote {output}\n{wording.answer(loaded, finding)}\n{wording.comparison(loaded, finding)}")
