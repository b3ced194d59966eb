"""boundwatch show: a certificate in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.root import command
from boundwatch.errors import Argument, InvalidSetting, Place
from boundwatch.reporting import wording


@command(example="boundwatch show certificate.json")
def show(
    certificate: Path,
    *,
    task: str | None = None,
    output: Path | None = None,
    force: bool = False,
    key: Path | None = None,
    as_json: bool = False,
) -> None:
    """Say in words what a certificate promises.

    It also says when the promise holds, what it does not cover, and where the certificate comes from.

    Options
    -------
    task NAME: Which certificate to show, if the file holds several tasks.
    output FILE: Also write it to a file of its own.
    """
    out.protect({"output": output}, [certificate], force=force)
    loaded = out.load_trusted(certificate, key)
    if task is not None:
        if not isinstance(loaded, CertificateFamily) or task not in loaded:
            held = ", ".join(map(repr, loaded)) if isinstance(loaded, CertificateFamily) else "a single one"
            remedy = ("name one of its tasks with ", Argument("task"), ", or leave it out")
            raise InvalidSetting(f"holds {held}", where=Place(str(certificate)), remedy=remedy)
        loaded = loaded[task]
    if output is not None:
        loaded.save(output)
    if isinstance(loaded, Certificate):
        _show_one(loaded, f"{certificate}{'' if task is None else f', {task}'}", as_json=as_json)
    elif as_json:
        out.print_json(loaded.to_dict())
    else:
        print(f"Certificates {certificate}")
        measured = filter(None, dict.fromkeys(each.measure for each in loaded.values()))
        out.print_promise(loaded, map("How costs were measured: {}.".format, measured))
        _print_limits(next(iter(loaded.values())), "They hold if", "They are not")


def _show_one(loaded: Certificate, name: str, *, as_json: bool) -> None:
    if as_json:
        content: dict[str, Any] = {"fingerprint": loaded.fingerprint}
        content |= {"vacuous_upper": loaded.upper >= 1, "vacuous_lower": loaded.lower <= 0}
        out.print_json(loaded.to_dict() | content)
        return
    print(f"Certificate {name}")
    out.print_promise(loaded)
    _print_limits(loaded, "It holds if", "It is not")
    made = loaded.provenance
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    rows = {
        "created": f"{made.created}, with {versions}",
        "seed": made.seed,
        "costs": made.costs_sha256,
        "policy": made.policy_sha256,
        "fingerprint": loaded.fingerprint,
    }
    print("\nProvenance (SHA-256 of costs, policy and certificate)")
    out.print_rows((label, str(value)) for label, value in rows.items() if value is not None)


def _print_limits(loaded: Certificate, holds: str, is_not: str) -> None:
    out.print_section(holds, wording.assumptions(loaded), bullet="- ")
    out.print_section(is_not, wording.MISREADINGS, bullet="- ")
