"""boundwatch verify: derive every number of a certificate again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from boundwatch.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import CertificateFile, Column, CostRange, Json
from boundwatch.cli.root import command
from boundwatch.episodes import read_costs
from boundwatch.errors import CertificateError


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
    as_json: Json = False,
) -> None:
    """Derive every number of a certificate again.

    They follow from what the certificate keeps and, with --costs, from the data. Exits with 1 if one differs.
    """
    if costs is None and (column is not None or cost_range is not None):
        raise typer.BadParameter("--column and --cost-range go with --costs")
    loaded = Certificate.load(certificate)
    values = None
    if costs is not None:
        values = read_costs(costs, column=column, cost_range=cost_range, binary=loaded.binary).costs
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
