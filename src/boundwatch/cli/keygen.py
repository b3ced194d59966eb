"""boundwatch keygen: a key to sign certificates with."""

from __future__ import annotations

from boundwatch._support.describing import printable
from boundwatch.certificates.signing import generate_keys
from boundwatch.cli.root import command


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
