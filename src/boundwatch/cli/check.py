"""boundwatch check: the verdict on new episodes, with its evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch import wording
from boundwatch.certificate import Certificate
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
from boundwatch.cli.options import CertificateFile, Column, CostRange, CostsFile, Json
from boundwatch.cli.root import command
from boundwatch.detectors import Verdict
from boundwatch.episodes import read_costs

EXIT_ADVERSE = 3


@command(
    example="boundwatch check certificate.json new.csv\n"
    "boundwatch check certificate.json - --json --exit-code < new.csv"
)
def check(
    certificate: CertificateFile,
    costs: CostsFile,
    detector: DetectorName = "hypothesis-test",
    tail: Tail = None,
    alpha_adverse: AlphaAdverse = None,
    alpha_benign: AlphaBenign = None,
    false_positive: FalsePositive = None,
    false_negative: FalseNegative = None,
    column: Column = None,
    cost_range: CostRange = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw costs and intervals; .png, .svg or .pdf.")
    ] = None,
    as_json: Json = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if the verdict is ADVERSE.")
    ] = False,
) -> None:
    """Compare the costs of new episodes with a certificate.

    The verdict is ADVERSE, BENIGN or WITHIN (no evidence of a shift; it does not mean "safe"). Its error
    rates hold for one look at a number of episodes that was fixed beforehand.
    """
    loaded = Certificate.load(certificate)
    judge = build_detector(
        loaded,
        detector,
        tail,
        levels={"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign},
        rates={"false_positive": false_positive, "false_negative": false_negative},
    )
    episodes = read_costs(costs, column=column, cost_range=cost_range, binary=loaded.binary)
    finding = judge.decide(episodes.costs)
    if plot is not None:
        from boundwatch import plots

        plots.save_figure(plots.plot_check(loaded, finding, episodes.costs), plot)
    if as_json:
        promise = {name: getattr(loaded, name) for name in ("lower", "upper", "delta", "fingerprint")}
        out.print_json(finding.to_dict() | out.source_fields(episodes) | {"certificate": promise})
    else:
        typer.secho(wording.HEADLINES[finding.verdict], bold=True)
        print()
        out.print_rows([*wording.evidence(loaded, finding), ("costs", out.describe_source(episodes))])
        out.print_section("Note", wording.caveats(loaded, finding), bullet="- ")
    if exit_code and finding.verdict is Verdict.ADVERSE:
        raise typer.Exit(EXIT_ADVERSE)
