"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch import files, wording
from boundwatch.cli import output as out
from boundwatch.cli.judge import (
    AlphaAdverse,
    AlphaBenign,
    DetectorName,
    FalseNegative,
    FalsePositive,
    Tail,
    build_detector,
)
from boundwatch.cli.options import (
    CertificateFile,
    Column,
    CostRange,
    CostsFile,
    Episode,
    Evaluation,
    FileFormat,
    Reduce,
)
from boundwatch.cli.root import command
from boundwatch.episodes import read_costs
from boundwatch.errors import InvalidSetting
from boundwatch.family import CertificateFamily, load


@command(example="boundwatch report certificate.json new.csv -o report.html")
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
    false_positive: FalsePositive = None,
    false_negative: FalseNegative = None,
    column: Column = None,
    cost_range: CostRange = None,
    file_format: FileFormat = None,
    episode: Episode = None,
    reduce: Reduce = None,
    evaluation: Evaluation = None,
) -> None:
    """Write a report on new episodes that can be read, printed and signed.

    One HTML file that needs nothing else: what was promised, what was seen, the verdict, its guarantee and
    assumptions, what would have been noticed, and hashes. The verdict is that of `boundwatch check`.
    """
    from boundwatch.report import render_report

    loaded = load(certificate)
    if isinstance(loaded, CertificateFamily):
        raise InvalidSetting(
            f"{certificate}: holds the certificates of {len(loaded)} tasks, and a report is on one; "
            "certify its costs alone, or use boundwatch check"
        )
    judge = build_detector(
        loaded,
        detector,
        tail,
        levels={"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign},
        rates={"false_positive": false_positive, "false_negative": false_negative},
    )
    episodes = read_costs(
        costs,
        column=column,
        cost_range=cost_range,
        binary=loaded.binary,
        file_format=file_format,
        episode=episode,
        reduce=reduce,
        evaluation=evaluation,
    )
    html = render_report(
        judge,
        episodes.costs,
        source=out.describe_source(episodes),
        source_sha256=files.sha256_file(costs) if Path(costs).is_file() else None,
        warnings=episodes.warnings,
    )
    files.write_text(output, html)
    out.print_warnings(episodes)
    print(f"Wrote {output}\n{wording.HEADLINES[judge.decide(episodes.costs).verdict]}")
