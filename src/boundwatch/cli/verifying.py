"""boundwatch show, verify and keygen: what a certificate promises, whether it follows, and who signed it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch._support.describing import printable
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.certificates.signing import generate_keys
from boundwatch.certificates.verification import Check
from boundwatch.cli import output as out
from boundwatch.cli.file_options import Reading
from boundwatch.cli.options import WrongUsage, refuse
from boundwatch.cli.root import command
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import Argument, CertificateError, InvalidSetting, Place
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
    rows = {
        "created": f"{made.created}, with {', '.join(map(' '.join, made.versions.items()))}",
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


@command(example="boundwatch verify certificate.json\nboundwatch verify certificate.json --costs costs.csv")
def verify(
    certificate: Path,
    *,
    costs: str | None = None,
    policy_file: Path | None = None,
    badge: Path | None = None,
    key: Path | None = None,
    reading: Reading,
    by: str | None = None,
    as_json: bool = False,
) -> None:
    """Derive every number of a certificate again.

    They follow from what the certificate keeps and, with --costs, from the data. With --key, its signature is
    checked, too. Exits with 1 if one differs.

    Options
    -------
    costs COSTS: The costs that it was made from, in their order; - reads standard input.
    policy_file FILE: The policy's file; its SHA-256 is compared.
    badge FILE: Badge that `boundwatch card` wrote; its words are compared with the certificate.
    """
    if costs is None:
        reading.refuse_without_costs(by=by)
    loaded = load(certificate, key=key)
    parts: Mapping[str, Episodes] = {}
    if isinstance(loaded, Certificate):
        refuse({"by": by}, "goes with certificates of several tasks; leave it out")
    if costs is not None:
        parts = reading.read_all(costs, by=by, certificates=loaded, allow_own=True).parts
    own: Any = (
        parts.get("")
        if isinstance(loaded, Certificate)
        else {name: part.costs for name, part in parts.items()} or None
    )
    checks = loaded.verify(own, policy=policy_file)
    if badge is not None:
        checks.append(_compare_badge(badge, loaded))
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


def _compare_badge(path: Path, certificate: Certificate | CertificateFamily) -> Check:
    from boundwatch.reporting import model_card  # which needs all comparisons

    if not isinstance(certificate, Certificate):
        raise WrongUsage("--badge goes with one certificate; `show --task NAME -o FILE` takes one out")
    same = files.read_bytes(path).decode("utf-8", "replace") == model_card.badge(certificate)
    said = model_card.badge_text(certificate)
    return Check(
        "badge", same, said if same else f"it is not the badge of this certificate, which says: {said}"
    )


@command(example="boundwatch keygen lab\nboundwatch certify costs.csv -o certificate.json --sign lab.key")
def keygen(name: str) -> None:
    """Make a key pair to sign certificates with (Ed25519).

    NAME.key signs: keep it to yourself. NAME.pub recognizes what it has signed: give it to everyone
    who checks. Neither file is ever replaced.

    Options
    -------
    name NAME: Writes NAME.key and NAME.pub.
    """
    private, public = generate_keys(name)
    print(f"Wrote {printable(str(private))} (private) and {printable(str(public))} (public)")
