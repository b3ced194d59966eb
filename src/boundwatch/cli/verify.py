"""boundwatch verify: derive every number of a certificate again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from boundwatch.cli import output as out
from boundwatch.cli.options import (
    By,
    CertificateFile,
    Column,
    CostRange,
    Episode,
    Evaluation,
    FileFormat,
    Json,
    Reduce,
)
from boundwatch.cli.root import command
from boundwatch.episodes import Episodes, read_costs
from boundwatch.errors import CertificateError, ProvenanceMismatch
from boundwatch.family import CertificateFamily, load
from boundwatch.verification import Check


@command(example="boundwatch verify certificate.json\nboundwatch verify certificate.json --costs costs.csv")
def verify(
    certificate: CertificateFile,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS", help="The costs that it was made from, in their order; - reads standard input."
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy's file; its SHA-256 is compared.")
    ] = None,
    column: Column = None,
    cost_range: CostRange = None,
    by: By = None,
    file_format: FileFormat = None,
    episode: Episode = None,
    reduce: Reduce = None,
    evaluation: Evaluation = None,
    as_json: Json = False,
) -> None:
    """Derive every number of a certificate again.

    They follow from what the certificate keeps and, with --costs, from the data. Exits with 1 if one differs.
    """
    options: dict[str, Any] = {
        "column": column,
        "cost_range": cost_range,
        "by": by,
        "file_format": file_format,
        "episode": episode,
        "reduce": reduce,
        "evaluation": evaluation,
    }
    if costs is None and any(value is not None for value in options.values()):
        raise typer.BadParameter(
            "--column and --cost-range go with --costs, "
            "as do --by, --format, --episode, --reduce and --evaluation"
        )
    loaded = load(certificate)
    if isinstance(loaded, CertificateFamily):
        options |= {"by": by or loaded.by, "binary": all(each.binary for each in loaded.values())}
        checks = _verify_tasks(loaded, None if costs is None else read_costs(costs, **options), policy)
    elif by is not None:
        raise typer.BadParameter("--by goes with certificates of several tasks; leave it out")
    else:
        values = None if costs is None else read_costs(costs, binary=loaded.binary, **options).costs
        checks = loaded.verify(values, policy=policy)
    if as_json:
        ok = all(check.ok for check in checks)
        out.print_json({"ok": ok, "checks": [dataclasses.asdict(check) for check in checks]})
    else:
        out.print_rows(
            (f"{'ok' if check.ok else 'FAILED':6}  {check.name}", check.detail) for check in checks
        )
    if failed := [check.name for check in checks if not check.ok]:
        raise CertificateError(
            f"{certificate}: failed {', '.join(failed)}; give what it was made from, or certify again"
        )


def _verify_tasks(family: CertificateFamily, episodes: Episodes | None, policy: Path | None) -> list[Check]:
    costs = {} if episodes is None else episodes.by_task()
    for task in [*family, *costs] if episodes is not None else []:
        if (task in costs) != (task in family):
            fault = "is not certified" if task in costs else "is certified, but is not in the costs"
            raise ProvenanceMismatch(
                f"{family.by} {task!r} {fault}; give the costs that the certificates were made from"
            )
    return [
        dataclasses.replace(check, name=f"{task}: {check.name}")
        for task, certificate in family.items()
        for check in certificate.verify(costs.get(task), policy=policy)
    ]
