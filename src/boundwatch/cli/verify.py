"""boundwatch verify: derive every number of a certificate again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from boundwatch.certificates.family import CertificateFamily, load, no_certificate
from boundwatch.certificates.verification import Check
from boundwatch.cli import output as out
from boundwatch.cli.family import Tasks, read_tasks
from boundwatch.cli.options import By, CertificateFile, Json, Key
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.errors import CertificateError, InvalidSetting, Place, ProvenanceMismatch

_GIVE_OWN = "give the costs that the certificates were made from"


@command(example="boundwatch verify certificate.json\nboundwatch verify certificate.json --costs costs.csv")
def verify(
    certificate: CertificateFile,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="COSTS", help="The costs that it was made from, in their order; - reads standard input."
        ),
    ] = None,
    policy_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy's file; its SHA-256 is compared.")
    ] = None,
    by: By = None,
    key: Key = None,
    *,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Derive every number of a certificate again.

    They follow from what the certificate keeps and, with --costs, from the data. With --key, its signature is
    checked, too. Exits with 1 if one differs.
    """
    if costs is None:
        reading.refuse_without_costs(by=by)
    loaded = load(certificate, key=key)
    if isinstance(loaded, CertificateFamily):
        own = None if costs is None else read_tasks(loaded, costs, reading, by, judged=False)
        checks = _verify_tasks(loaded, own, policy_file)
    elif by is not None:
        raise typer.BadParameter("--by goes with certificates of several tasks; leave it out")
    else:
        read = None if costs is None else reading.read(costs, certificate=loaded, allow_own=True)
        checks = loaded.verify(None if read is None else read.costs, policy=policy_file)
    if key is not None:
        checks = [Check("signature", True, f"by the holder of {key}"), *checks]
    if as_json:
        ok = all(check.ok for check in checks)
        out.print_json({"ok": ok, "checks": [dataclasses.asdict(check) for check in checks]})
    else:
        out.print_rows(
            (f"{'ok' if check.ok else 'FAILED':6}  {check.name}", check.detail) for check in checks
        )
    if failed := [check.name for check in checks if not check.ok]:
        raise CertificateError(
            f"failed {', '.join(failed)}",
            where=Place(str(certificate)),
            remedy="give what it was made from, or certify again",
        )


def _verify_tasks(family: CertificateFamily, own: Tasks | None, policy: Path | None) -> list[Check]:
    costs = {} if own is None else own.costs
    if own is not None:
        for task in costs:
            if task not in family:
                source = Place(own.sources[0].source)
                raise InvalidSetting(no_certificate(task, family, _GIVE_OWN), where=source)
        if missing := [task for task in family if task not in costs]:
            problem = f"{family.by} {missing[0]!r} is certified, but is not in the costs"
            raise ProvenanceMismatch(problem, remedy=_GIVE_OWN)
    return [
        dataclasses.replace(check, name=f"{task}: {check.name}")
        for task, certificate in family.items()
        for check in certificate.verify(costs.get(task), policy=policy)
    ]
