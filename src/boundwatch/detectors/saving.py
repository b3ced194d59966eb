"""How the anytime-valid detectors are stored: plain JSON that names its certificate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boundwatch._support.describing import arguments
from boundwatch._support.schema import convert
from boundwatch.bounds.rows import Rows
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.errors import BoundwatchError, ProvenanceMismatch, SchemaMismatch

Made = TypeVar("Made")
VERSION = 1
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # episodes that can be counted in floats
_LISTS: dict[str, Any] = {"b": list[bool], "i": list[Count], "f": list[float | None]}
"""What JSON may hold for the kinds of arrays."""
_DAMAGED = "the state is damaged"


def seal(kind: str, certificate: Certificate, content: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a detector with what is needed to recognize it."""
    made_with = {"fingerprint": certificate.fingerprint, "certificate": certificate.to_dict()}
    return {"kind": kind, "version": VERSION, **made_with, **content}


def unseal(kind: str, state: Mapping[str, Any], certificate: Certificate | None) -> Certificate:
    """Check that a state is of this kind and belongs to the certificate; return the certificate.

    Raises
    ------
    SchemaMismatch
        When it is something else, or of another version.
    ProvenanceMismatch
        When it was made with another certificate.
    """
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
        names = stored.fingerprint[:12], certificate.fingerprint[:12]
        raise ProvenanceMismatch(
            "the state belongs to certificate {}, not to {}".format(*names),
            remedy="use that certificate, or start a new state",
        )
    return stored


def settings(detector: object) -> dict[str, Any]:
    """Return what a detector was made with besides its certificate."""
    return {name: value for name, value in arguments(detector).items() if name != "certificate"}


def remade(kind: type[Made], certificate: Certificate, state: Mapping[str, Any]) -> Made:
    """Return a detector that is made with the settings of a state."""
    try:
        return kind(certificate, **table(state, "settings"))  # type: ignore[call-arg]
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
        for key, value in _read(dict[str, float], state, name).items():
            if not (key.isdecimal() and int(key) < array.size):
                raise SchemaMismatch(f"has the unknown key {key!r}", name=f"state.{name}", remedy=_DAMAGED)
            array[int(key)] = value
        return array.reshape(shape)
    values = _read(_LISTS[array.dtype.kind], state, name)
    if len(values) != array.size:
        raise SchemaMismatch(f"does not have {array.size} values", name=f"state.{name}", remedy=_DAMAGED)
    array[:] = [-math.inf if value is None else value for value in values]
    return array.reshape(shape)


def table(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the table stored under a name."""
    content: Mapping[str, Any] = _read(dict[str, Any], state, name)
    return content


def count(state: Mapping[str, Any], name: str) -> int:
    """Return a whole number of at least 0."""
    return int(_read(Count, state, name))


def optional_count(state: Mapping[str, Any], name: str) -> int | None:
    """Return the same, or None where there is none."""
    return None if state.get(name, "") is None else count(state, name)


def number(state: Mapping[str, Any], name: str) -> float:
    """Return a finite number."""
    return float(_read(float, state, name))


def alarm(state: Mapping[str, Any], n: int) -> tuple[Verdict, int | None]:
    """Return the stored verdict and the episode of its alarm, which must agree."""
    verdict: Verdict = _read(Verdict, state, "verdict")
    first = optional_count(state, "first_alarm")
    if (first is None) != (verdict is Verdict.WITHIN) or not (first is None or 1 <= first <= n):
        problem = f"does not go with {verdict.value!r}"
        raise SchemaMismatch(problem, name="state.first_alarm", value=first, remedy=_DAMAGED)
    return verdict, first


def _read(kind: Any, state: Mapping[str, Any], name: str) -> Any:
    return convert(kind, state.get(name, "nothing"), f"state.{name}")
