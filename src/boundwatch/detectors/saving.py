"""How the anytime-valid detectors are stored: plain JSON that names its certificate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boundwatch._support.describing import arguments
from boundwatch._support.schema import convert
from boundwatch.bounds.rows import Rows
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.errors import BoundwatchError, ProvenanceMismatch, SchemaMismatch

if TYPE_CHECKING:
    from boundwatch.detectors.anytime import AnytimeDetector
    from boundwatch.detectors.fleet import Fleet

Made = TypeVar("Made")
VERSION = 1
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # episodes that can be counted in floats
_LISTS: dict[str, Any] = {"b": list[bool], "i": list[Count], "f": list[float | None]}
"""What JSON may hold for the kinds of arrays."""
DAMAGED = "the state is damaged"


@dataclass(frozen=True)
class Content:
    """What is kept of one stream: how its detector was made, and what it has seen."""

    settings: dict[str, Any]
    n: Count
    total: float
    verdict: Verdict
    first_alarm: Count | None
    evidence: dict[str, Any]


def read(kind: type[Made], state: Mapping[str, Any]) -> Made:
    """Return the part of a state that a dataclass describes."""
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    return convert(kind, {name: state[name] for name in names if name in state}, "state")


def seal(detector: Fleet | AnytimeDetector[Any], content: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a detector with what is needed to recognize it."""
    certificate = detector.certificate
    made_with = {"fingerprint": certificate.fingerprint, "certificate": certificate.to_dict()}
    return {"kind": type(detector).__name__, "version": VERSION, **made_with, **content}


def unseal(kind: str, state: Mapping[str, Any], certificate: Certificate | None) -> Certificate:
    """Check that a state is of this kind and version and belongs to the certificate, which is returned."""
    found = state.get("kind") if isinstance(state, Mapping) else type(state).__name__
    if not isinstance(state, Mapping) or found != kind:
        remedy = f"{kind!r} is needed, as made by its state_dict()"
        raise SchemaMismatch(f"state is of kind {found!r}", remedy=remedy)
    version = state.get("version")
    if version is True or version != VERSION:
        remedy = f"this boundwatch reads version {VERSION}: start over, or use the one that wrote it"
        raise SchemaMismatch(f"state has version {version!r}", remedy=remedy)
    stored = Certificate.from_dict(state.get("certificate"))
    if stored.fingerprint != state.get("fingerprint"):
        raise ProvenanceMismatch(
            "the state's certificate does not match its fingerprint", remedy="it was altered"
        )
    if certificate is not None and certificate.fingerprint != stored.fingerprint:
        whose = f"certificate {stored.fingerprint[:12]}, not to {certificate.fingerprint[:12]}"
        remedy = "use that certificate, or start a new state"
        raise ProvenanceMismatch(f"the state belongs to {whose}", remedy=remedy)
    return stored


def settings(detector: object) -> dict[str, Any]:
    """Return what a detector was made with besides its certificate."""
    return {name: value for name, value in arguments(detector).items() if name != "certificate"}


def remade(kind: type[Made], certificate: Certificate, settings: Mapping[str, Any]) -> Made:
    """Return a detector that is made with the settings of a state."""
    try:
        return kind(certificate, **settings)  # type: ignore[call-arg]
    except (BoundwatchError, TypeError) as error:  # TypeError: another argument
        raise SchemaMismatch(f"state['settings'] are not those of a {kind.__name__}: {error}") from error


def pack_rows(rows: Rows, streams: int, derived: Collection[str] = ()) -> dict[str, Any]:
    """Return what is known of the first streams; what is derived from the rest is left out."""
    kept = {name: array[:streams] for name, array in rows.items() if name not in derived}
    return {name: pack(array, sparse=name == "grid") for name, array in kept.items()}


def unpack_rows(rows: Rows, state: Mapping[str, Any], streams: int, derived: Collection[str] = ()) -> None:
    """Continue with the streams that `pack_rows` stored."""
    for name in rows.keys() - derived:
        known = rows[name][:streams]
        known[:] = unpack(state, name, *known.shape, dtype=known.dtype, sparse=name == "grid")


def pack(values: ArrayLike, *, sparse: bool = False) -> list[Any] | dict[str, float]:
    """Return an array as JSON keeps it exactly: minus infinity becomes None, of a sparse one zeros go."""
    array = np.ravel(values)
    if sparse:
        places = np.flatnonzero(array)
        return dict(zip(map(str, places.tolist()), array[places].tolist(), strict=True))
    plain: list[Any] = array.tolist()
    return [None if value == -math.inf else value for value in plain] if array.dtype.kind == "f" else plain


def unpack(
    state: Mapping[str, Any], name: str, *shape: int, dtype: DTypeLike = np.float64, sparse: bool = False
) -> NDArray[Any]:
    """Return the array of a shape that `pack` stored under a name."""
    array = np.zeros(math.prod(shape), dtype=dtype)
    if sparse:
        for key, value in convert(dict[str, float], state.get(name), f"state.{name}").items():
            if not (key.isdecimal() and int(key) < array.size):
                raise SchemaMismatch(f"has the unknown key {key!r}", name=f"state.{name}", remedy=DAMAGED)
            array[int(key)] = value
        return array.reshape(shape)
    values = convert(_LISTS[array.dtype.kind], state.get(name, "nothing"), f"state.{name}")
    if len(values) != array.size:
        raise SchemaMismatch(f"does not have {array.size} values", name=f"state.{name}", remedy=DAMAGED)
    array[:] = [-math.inf if value is None else value for value in values]
    return array.reshape(shape)
