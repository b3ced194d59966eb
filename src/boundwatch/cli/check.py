"""boundwatch check: the verdict on new episodes, with its evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from boundwatch import wording
from boundwatch.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import CertificateFile, Column, CostRange, CostsFile, Json
from boundwatch.cli.root import command
from boundwatch.detectors import ConfidenceInterval, HypothesisTest, Verdict
from boundwatch.episodes import read_costs

EXIT_ADVERSE = 3


@command(
    example="boundwatch check certificate.json new.csv\n"
    "boundwatch check certificate.json - --json --exit-code < new.csv"
)
def check(
    certificate: CertificateFile,
    costs: CostsFile,
    detector: Annotated[
        Literal["hypothesis-test", "confidence-interval"],
        typer.Option(
            help="Algorithm 1 (levels of the tests) or Algorithm 2 (total error rates) of the paper."
        ),
    ] = "hypothesis-test",
    tail: Annotated[
        Literal["betting", "kl", "hoeffding", "exact"] | None,
        typer.Option(
            help="Bound on the mean of the new costs; hoeffding is the paper's, exact needs a binary "
            "certificate. [default: exact for binary costs, else betting]"
        ),
    ] = None,
    alpha_adverse: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="hypothesis-test: level of ADVERSE; delta comes on top. [default: 0.05]"
        ),
    ] = None,
    alpha_benign: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="hypothesis-test: level of BENIGN; delta comes on top. [default: 0.05]"
        ),
    ] = None,
    false_positive: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="confidence-interval: total rate of a wrong ADVERSE, delta included. [default: 0.05]",
        ),
    ] = None,
    false_negative: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="confidence-interval: total rate of a wrong BENIGN, delta included. [default: 0.05]",
        ),
    ] = None,
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
    levels = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign}
    rates = {"false_positive": false_positive, "false_negative": false_negative}
    given, refused = (levels, rates) if detector == HypothesisTest.name else (rates, levels)
    _refuse(refused, detector, instead=given)
    settings = {name: value for name, value in given.items() if value is not None}
    build = HypothesisTest if detector == HypothesisTest.name else ConfidenceInterval
    judge = build(loaded, tail=tail, **settings)
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


def _refuse(options: dict[str, float | None], detector: str, instead: dict[str, float | None]) -> None:
    for name, other in zip(options, instead, strict=True):
        if options[name] is not None:
            flag, remedy = (f"--{key.replace('_', '-')}" for key in (name, other))
            raise typer.BadParameter(f"{flag} does not go with --detector {detector}; use {remedy}")
