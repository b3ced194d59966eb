"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import load
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
)
from boundwatch.cli.options import CertificateFile, CostsFile, Key
from boundwatch.cli.reading import Reading, reads_costs
from boundwatch.cli.root import command
from boundwatch.errors import InvalidSetting
from boundwatch.reporting import wording


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
) -> None:
    """Write a report on new episodes that can be signed.

    One HTML file that needs nothing else: what was promised, what was seen, the verdict, its guarantee and
    assumptions, what would have been noticed, and hashes. The verdict is that of `boundwatch check`.
    """
    from boundwatch.reporting.report import render_report

    loaded = load(certificate, key=key)
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
    episodes = reading.compare(reading.read(costs, binary=loaded.binary), loaded)
    html = render_report(
        judge,
        episodes.costs,
        source=out.describe_source(episodes),
        warnings=episodes.warnings,
    )
    files.write_text(output, html)
    out.print_warnings(episodes)
    print(f"Wrote {output}\n{wording.HEADLINES[judge.decide(episodes.costs).verdict]}")
