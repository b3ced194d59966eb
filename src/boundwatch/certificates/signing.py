"""Signatures: a certificate that was altered by anybody but the holder of a key is refused.

An Ed25519 signature over the certificate's canonical JSON lies beside it, in ``FILE.sig``. The certificate
itself, and its fingerprint, are the same with and without.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from boundwatch._support.files import read_bytes, write_new, write_text
from boundwatch._support.schema import convert, decode
from boundwatch.errors import CertificateError, InvalidSetting, MissingExtra, SchemaMismatch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_PURPOSE = b"boundwatch certificate\n"  # a signature made for anything else never fits
_PathLike = str | os.PathLike[str]


def generate_keys(path: _PathLike) -> tuple[Path, Path]:
    """Write a new key pair: ``PATH.key``, readable by its owner only, and ``PATH.pub``; return both paths.

    Neither file may exist.

    Examples
    --------
    >>> import tempfile
    >>> private, public = generate_keys(Path(tempfile.mkdtemp()) / "lab")
    >>> private.name, public.name
    ('lab.key', 'lab.pub')
    """
    ed25519, serialization = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private, public = Path(f"{os.fspath(path)}.key"), Path(f"{os.fspath(path)}.pub")
    for target in (private, public):
        if target.exists():
            raise InvalidSetting(f"{target}: exists, and a key is never replaced; choose another name")
    write_new(
        private,
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        mode=0o600,
    )
    write_new(public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def sign(path: _PathLike, content: dict[str, Any], key: _PathLike) -> Path:
    """Write the signature of a certificate, or of a family, beside its file, and return the signature's path.

    Parameters
    ----------
    path
        The file that the certificate is, or will be, saved to.
    content
        What is in it: its `to_dict()`.
    key
        The file of the private key, as `generate_keys` writes it.

    Examples
    --------
    >>> import tempfile
    >>> from boundwatch import Certificate
    >>> folder = Path(tempfile.mkdtemp())
    >>> private, public = generate_keys(folder / "lab")
    >>> certificate = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> certificate.save(folder / "certificate.json")
    >>> sign(folder / "certificate.json", certificate.to_dict(), private).name
    'certificate.json.sig'
    >>> check_signature(folder / "certificate.json", certificate.to_dict(), public)
    """
    private = load_private_key(key)
    _, serialization = _cryptography()
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    target = signature_path(path)
    signed = {
        "kind": "boundwatch-signature",
        "algorithm": "Ed25519",
        "key": public.hex(),
        "signature": private.sign(_message(content)).hex(),
    }
    write_text(target, json.dumps(signed, indent=2) + "\n")
    return target


def check_signature(path: _PathLike, content: object, key: _PathLike) -> None:
    """Refuse a certificate that the holder of a key did not sign in exactly this form.

    Parameters
    ----------
    path
        The certificate's file; its signature is beside it.
    content
        What was read from it.
    key
        The file of the public key.

    Raises
    ------
    CertificateError
        When it is not signed, signed by somebody else, or altered since.
    """
    public = load_public_key(key)
    from cryptography.exceptions import InvalidSignature

    signature = _read_signature(path)
    _, serialization = _cryptography()
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    if signature.key != raw.hex():
        raise CertificateError(
            f"{path}: is signed with another key ({signature.key[:16]}) than {key} ({raw.hex()[:16]}); "
            "get it from the holder of that key"
        )
    try:
        public.verify(bytes.fromhex(signature.signature), _message(content))
    except InvalidSignature:
        raise CertificateError(
            f"{path}: was altered after it was signed, its signature does not fit; get it from its signer"
        ) from None


def signature_path(path: _PathLike) -> Path:
    """Return where the signature of a certificate's file is."""
    return Path(f"{os.fspath(path)}.sig")


def load_private_key(path: _PathLike) -> Ed25519PrivateKey:
    """Read a private key; nothing else passes for one."""
    ed25519, serialization = _cryptography()
    data, remedy = read_bytes(path), "make one with: boundwatch keygen NAME"
    load, kind = serialization.load_pem_private_key, "private key without password"
    wanted = ed25519.Ed25519PrivateKey
    key: Ed25519PrivateKey = _key(path, lambda: load(data, password=None), wanted, kind, remedy)
    return key


def load_public_key(path: _PathLike) -> Ed25519PublicKey:
    """Read a public key; nothing else passes for one."""
    ed25519, serialization = _cryptography()
    data, remedy = read_bytes(path), "give the .pub of: boundwatch keygen"
    if b"PRIVATE KEY" in data:
        raise InvalidSetting(f"{path}: is a private key; give the public one, and keep this to yourself")
    load = serialization.load_pem_public_key
    key: Ed25519PublicKey = _key(path, lambda: load(data), ed25519.Ed25519PublicKey, "public key", remedy)
    return key


def _key(path: _PathLike, load: Callable[[], Any], wanted: type, kind: str, remedy: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        found = load()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidSetting(f"{path}: is not a {kind}; {remedy}") from error
    if not isinstance(found, wanted):
        raise InvalidSetting(f"{path}: is not an Ed25519 key; {remedy}")
    return found


def _message(content: object) -> bytes:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _PURPOSE + canonical.encode()


@dataclass(frozen=True)
class _Signature:
    """What the file of a signature holds."""

    kind: Literal["boundwatch-signature"]
    algorithm: Literal["Ed25519"]
    key: Annotated[str, Meta(pattern="^([0-9a-f]{2}){32}$", max_length=64)]
    signature: Annotated[str, Meta(pattern="^([0-9a-f]{2}){64}$", max_length=128)]


def _read_signature(path: _PathLike) -> _Signature:
    target = signature_path(path)
    if not target.exists():
        raise CertificateError(
            f"{path}: is not signed, there is no {target.name} beside it; sign it with certify --sign, or "
            "leave out --key"
        )
    try:
        return convert(_Signature, decode(read_bytes(target), "signature"))
    except SchemaMismatch as error:
        raise CertificateError(f"{target}: is not a signature ({error}); get it from its signer") from None


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra("signing", "sign") from error
    return ed25519, serialization
