"""boundwatch show: a certificate in words."""

from __future__ import annotations

from boundwatch import wording
from boundwatch.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import CertificateFile, Json
from boundwatch.cli.root import command


@command(example="boundwatch show certificate.json")
def show(certificate: CertificateFile, as_json: Json = False) -> None:
    """Say in words what a certificate promises.

    Also when the promise holds, what it is not, and where the certificate comes from.
    """
    loaded = Certificate.load(certificate)
    if as_json:
        vacuous = {"vacuous_upper": loaded.upper >= 1, "vacuous_lower": loaded.lower <= 0}
        out.print_json(loaded.to_dict() | {"fingerprint": loaded.fingerprint} | vacuous)
        return
    made = loaded.provenance
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    rows = {
        "created": f"{made.created}, with {versions}",
        "seed": made.seed,
        "costs": made.costs_sha256,
        "policy": made.policy_sha256,
        "fingerprint": loaded.fingerprint,
    }
    print(f"Certificate {certificate}")
    out.print_section("Promise", wording.promise(loaded))
    out.print_section("Basis", wording.basis(loaded))
    out.print_section("It holds if", wording.assumptions(loaded), bullet="- ")
    out.print_section("It is not", wording.misreadings(), bullet="- ")
    print("\nProvenance (SHA-256 of costs, policy and certificate)")
    out.print_rows((label, str(value)) for label, value in rows.items() if value is not None)
