"""boundwatch verify: derive every number of a certificate again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.certificates.verification import Check
from boundwatch.cli import output as out
from boundwatch.cli.file_options import Reading
from boundwatch.cli.options import WrongUsage, refuse
from boundwatch.cli.root import command
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import CertificateError, Place


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
    if isinstance(loaded, Certificate):
        refuse({"by": by}, "goes with certificates of several tasks; leave it out")
    parts: Mapping[str, Episodes] = {}
    if costs is not None:
        parts = reading.read_all(costs, by=by, certificates=loaded, allow_own=True).parts
    if isinstance(loaded, Certificate):
        checks = loaded.verify(parts.get(""), policy=policy_file)
    else:
        own = {name: part.costs for name, part in parts.items()}
        checks = loaded.verify(own or None, policy=policy_file)
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
