"""boundwatch check: the verdict on new episodes, with its evidence."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.family import Tasks, print_family_finding, read_tasks
from boundwatch.cli.judge import ExitCode, Judging, exit_if_worse, load_judge
from boundwatch.cli.options import AllowOwn, CertificateFile, CostsFile, Force, Json, Key
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.detectors import ConfidenceInterval, FamilyFinding, FamilyTest, Finding, HypothesisTest
from boundwatch.episodes.episodes import Episodes
from boundwatch.reporting import wording
from boundwatch.reporting.ledger import Look, add_look, earlier_looks, read_ledger


@command(
    example="boundwatch check certificate.json new.csv\n"
    "boundwatch check certificate.json new.csv --margin 0.05 --exit-code\n"
    "boundwatch check certificate.json - --json --exit-code < new.csv\n"
    "boundwatch check certificates.json new_eval_info.json --control e-bh"
)
def check(
    certificate: CertificateFile,
    costs: CostsFile,
    *,
    judging: Judging,
    reading: Reading,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw costs and intervals; .png, .svg or .pdf.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record every look here (time, episodes, hash of the costs, levels), and warn if there was "
            "an earlier one.",
        ),
    ] = None,
    allow_own: AllowOwn = False,
    force: Force = False,
    key: Key = None,
    as_json: Json = False,
    exit_code: ExitCode = False,
) -> None:
    """Compare the costs of new episodes with a certificate.

    The verdict is ADVERSE, BENIGN or WITHIN (no evidence of a shift; it does not mean "safe"). Its error
    rates hold for one look at a number of episodes that was fixed in advance. With the certificates of
    several tasks, or with --by, there is a verdict on each, corrected for their number.
    """
    if plot is not None:
        files.protect(plot, [certificate, costs], force=force)
    if ledger is not None:
        files.protect(ledger, [certificate, costs], force=True)  # another file is refused when it is read
    loaded = load_judge(certificate, costs, key)
    out.print_trust(loaded, key)
    if isinstance(loaded, CertificateFamily) or judging.by is not None:
        judging.refuse_with_tasks(plot=plot, ledger=ledger)
        tasks = read_tasks(loaded, costs, reading, judging.by, allow_own=allow_own)
        found: Finding | FamilyFinding = _check_tasks(judging.of_tasks(tasks.family), tasks, as_json)
    else:
        judge = judging.of_one(loaded)
        episodes = reading.read(costs, certificate=loaded, allow_own=allow_own)
        looks = [] if ledger is None else read_ledger(ledger)
        before = earlier_looks(looks, loaded.fingerprint, episodes.costs)
        episodes = dataclasses.replace(episodes, warnings=(*episodes.warnings, *before))
        found = finding = _check_one(judge, episodes, plot, as_json)
        if ledger is not None:
            add_look(ledger, Look.at(judge, finding, episodes.costs))
    if exit_code:
        exit_if_worse(found.verdict, found.no_worse)


def _check_one(
    judge: HypothesisTest | ConfidenceInterval, episodes: Episodes, plot: Path | None, as_json: bool
) -> Finding:
    certificate, finding = judge.certificate, judge.decide(episodes.costs)
    if plot is not None:
        from boundwatch.reporting import plots

        plots.save_figure(plots.plot_check(certificate, finding, episodes.costs), plot)
    out.print_warnings(episodes)
    if as_json:
        out.print_json(
            finding.to_dict() | out.source_fields(episodes) | {"certificate": _promise(certificate)}
        )
    else:
        typer.secho(wording.answer(finding), bold=True)
        print(f"{wording.comparison(certificate, finding)}\n")
        out.print_rows([*wording.evidence(certificate, finding), ("costs", out.describe_source(episodes))])
        out.print_section("Note", wording.caveats(judge, finding), bullet="- ")
    return finding


def _check_tasks(test: FamilyTest, tasks: Tasks, as_json: bool) -> FamilyFinding:
    finding = test.decide(tasks.costs)
    tasks = tasks.with_missing(finding)
    out.print_warnings(*tasks.sources)
    if as_json:
        promises = {task: _promise(certificate) for task, certificate in test.family.items()}
        out.print_json(finding.to_dict() | tasks.fields | {"certificates": promises})
    else:
        print_family_finding(test, finding, tasks)
    return finding


def _promise(certificate: Certificate) -> dict[str, Any]:
    return {name: getattr(certificate, name) for name in ("lower", "upper", "delta", "fingerprint")}
