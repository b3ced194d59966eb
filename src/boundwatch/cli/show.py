"""boundwatch show: a certificate in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli import output as out
from boundwatch.cli.family import print_family
from boundwatch.cli.options import CertificateFile, Force, Json, Key
from boundwatch.cli.root import command
from boundwatch.errors import Argument, InvalidSetting, Place
from boundwatch.reporting import wording


@command(example="boundwatch show certificate.json\nboundwatch show certificate.json --under-shift 0.1")
def show(
    certificate: CertificateFile,
    task: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which certificate to show, if the file holds several tasks."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write it to a file of its own."),
    ] = None,
    under_shift: Annotated[
        float | None,
        typer.Option(
            metavar="D",
            help="Also say the worst expected cost in a world that differs by D: in relative entropy (nats), "
            "and in total variation.",
        ),
    ] = None,
    force: Force = False,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Say in words what a certificate promises.

    It also says when the promise holds, what it does not cover, and where the certificate comes from.
    """
    if output is not None:
        files.protect(output, [certificate], force=force)
    loaded = load(certificate, key=key)
    out.print_trust(loaded, key)
    if task is not None:
        if not isinstance(loaded, CertificateFamily) or task not in loaded:
            held = ", ".join(map(repr, loaded)) if isinstance(loaded, CertificateFamily) else "a single one"
            remedy = ("name one of its tasks with ", Argument("task"), ", or leave it out")
            raise InvalidSetting(f"holds {held}", where=Place(str(certificate)), remedy=remedy)
        loaded = loaded[task]
    if under_shift is not None and isinstance(loaded, CertificateFamily):
        raise InvalidSetting(
            "holds several tasks",
            where=Place(str(certificate)),
            remedy=("name one with ", Argument("task"), " for ", Argument("under_shift")),
        )
    if output is not None:
        loaded.save(output)
    if as_json:
        out.print_json(loaded.to_dict() | _derived(loaded, under_shift))
    elif isinstance(loaded, CertificateFamily):
        _print_family(loaded, certificate)
    else:
        print(f"Certificate {certificate}{'' if task is None else f', {task}'}")
        _print_one(loaded, under_shift)


def _derived(loaded: Certificate | CertificateFamily, under_shift: float | None) -> dict[str, Any]:
    """Return what follows from a certificate, for JSON."""
    if isinstance(loaded, CertificateFamily):
        return {}
    vacuous = {"vacuous_upper": loaded.upper >= 1, "vacuous_lower": loaded.lower <= 0}
    content: dict[str, Any] = {"fingerprint": loaded.fingerprint} | vacuous
    if under_shift is not None:
        worst = {"kl": loaded.under_shift(kl=under_shift), "tv": loaded.under_shift(tv=min(under_shift, 1))}
        content |= {"under_shift": {"distance": under_shift} | worst}
    return content


def _print_family(family: CertificateFamily, path: Path) -> None:
    print(f"Certificates {path}")
    print_family(family)
    measured = dict.fromkeys(each.measure for each in family.values())
    if sentences := [f"How costs were measured: {line}." for line in measured if line is not None]:
        out.print_section("Basis", sentences)
    out.print_section("They hold if", wording.assumptions(next(iter(family.values()))), bullet="- ")
    out.print_section("They are not", wording.misreadings(), bullet="- ")


def _print_one(loaded: Certificate, under_shift: float | None) -> None:
    made = loaded.provenance
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    rows = {
        "created": f"{made.created}, with {versions}",
        "seed": made.seed,
        "costs": made.costs_sha256,
        "policy": made.policy_sha256,
        "fingerprint": loaded.fingerprint,
    }
    out.print_section("Promise", wording.promise(loaded))
    out.print_section("Basis", wording.basis(loaded))
    if under_shift is not None:
        out.print_section("If the world shifts", wording.under_shift(loaded, under_shift))
    out.print_section("It holds if", wording.assumptions(loaded), bullet="- ")
    out.print_section("It is not", wording.misreadings(), bullet="- ")
    print("\nProvenance (SHA-256 of costs, policy and certificate)")
    out.print_rows((label, str(value)) for label, value in rows.items() if value is not None)
