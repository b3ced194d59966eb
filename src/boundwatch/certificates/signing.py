"""Signatures: a certificate that was altered by anybody but the holder of a key is refused.

An Ed25519 signature over the certificate's canonical JSON lies beside it, in ``FILE.sig``. The certificate
itself, and its fingerprint, are the same with and without.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from boundwatch._support.files import canonical, read_bytes, write_new, write_text
from boundwatch._support.schema import convert, decode
from boundwatch.errors import CertificateError, InvalidSetting, MissingExtra, Place, SchemaMismatch

_PURPOSE = b"boundwatch certificate\n"  # a signature made for anything else never fits
_PathLike = str | os.PathLike[str]


def generate_keys(path: _PathLike) -> tuple[Path, Path]:
    """Write a new key pair to new files: ``PATH.key``, for its owner only, and ``PATH.pub``."""
    ed25519, serialization = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    private, public = Path(f"{os.fspath(path)}.key"), Path(f"{os.fspath(path)}.pub")
    for target in (private, public):
        if target.exists():
            problem = "exists, and a key is never replaced"
            raise InvalidSetting(problem, where=Place(str(target)), remedy="choose another name")
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_new(private, secret, mode=0o600)
    write_new(public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def sign(path: _PathLike, content: dict[str, Any], key: _PathLike) -> Path:
    """Write the signature of a certificate, or of a family, beside its file, and return the signature's path.

    `content` is what is, or will be, in the file: `to_dict()`; `key` the file of the private key.
    """
    private = load_key(key, private=True)
    _, serialization = _cryptography()
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    target, signature = signature_path(path), private.sign(_PURPOSE + canonical(content)).hex()
    signed = _Signature("boundwatch-signature", "Ed25519", public.hex(), signature)
    write_text(target, json.dumps(vars(signed), indent=2) + "\n")
    return target


def check_signature(path: _PathLike, content: object, key: _PathLike) -> None:
    """Refuse a certificate that the holder of a public key did not sign in exactly this form."""
    public = load_key(key, private=False)
    from cryptography.exceptions import InvalidSignature

    signature = _read_signature(path)
    _, serialization = _cryptography()
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    if signature.key != raw.hex():
        problem = f"is signed with another key ({signature.key[:16]}) than {key} ({raw.hex()[:16]})"
        raise CertificateError(problem, remedy="get it from the holder of that key")
    try:
        public.verify(bytes.fromhex(signature.signature), _PURPOSE + canonical(content))
    except (InvalidSignature, ValueError):  # it may hold 1e400, which nobody signs
        problem = "was altered after it was signed, its signature does not fit"
        raise CertificateError(problem, remedy="get it from its signer") from None


def signature_path(path: _PathLike) -> Path:
    """Return where the signature of a certificate's file is."""
    return Path(f"{os.fspath(path)}.sig")


def load_key(path: _PathLike, *, private: bool) -> Any:
    """Read an Ed25519 key of one kind; nothing else passes for one."""
    ed25519, serialization = _cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm

    data, where, found = read_bytes(path), Place(str(path)), None
    wanted, kind, remedy = ed25519.Ed25519PublicKey, "public key", "give the .pub of: boundwatch keygen"
    if private:
        wanted, kind = ed25519.Ed25519PrivateKey, "private key without password"
        remedy = "make one with: boundwatch keygen NAME"
    elif b"PRIVATE KEY" in data:
        remedy = "give the public one, and keep this to yourself"
        raise InvalidSetting("is a private key", where=where, remedy=remedy)
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        load_private, load_public = serialization.load_pem_private_key, serialization.load_pem_public_key
        found = load_private(data, password=None) if private else load_public(data)
    if not isinstance(found, wanted):
        raise InvalidSetting(f"is not an Ed25519 {kind}", where=where, remedy=remedy)
    return found


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
        problem = f"is not signed, there is no {target.name} beside it"
        remedy = "sign it with certify --sign, or leave out --key"
        raise CertificateError(problem, remedy=remedy)
    try:
        return convert(_Signature, decode(read_bytes(target), "signature"))
    except SchemaMismatch as error:
        problem = f"{target.name} beside it is not a signature ({error})"
        raise CertificateError(problem, remedy="get it from its signer") from None


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtra("signing", "sign") from error
    return ed25519, serialization
