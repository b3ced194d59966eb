"""How the anytime-valid detectors are stored: plain JSON that names its certificate."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boundwatch._support.describing import arguments
from boundwatch._support.text import shown
from boundwatch.bounds.rows import Rows
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.errors import BoundwatchError, ProvenanceMismatch, SchemaMismatch

Made = TypeVar("Made")
VERSION = 1
_MOST = 1 << 53  # episodes that can be counted in floats
_PLAIN: dict[str, set[type]] = {"b": {bool}, "i": {int}, "f": {int, float, type(None)}}
"""What JSON may hold for the kinds of arrays."""


def seal(kind: str, certificate: Certificate, content: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a detector with what is needed to recognize it."""
    return {
        "kind": kind,
        "version": VERSION,
        "fingerprint": certificate.fingerprint,
        "certificate": certificate.to_dict(),
        **content,
    }


def unseal(kind: str, state: Mapping[str, Any], certificate: Certificate | None) -> Certificate:
    """Check that a state is of this kind and belongs to the certificate; return the certificate.

    Raises
    ------
    SchemaMismatch
        When it is something else, or of another version.
    ProvenanceMismatch
        When it was made with another certificate.
    """
    if not isinstance(state, Mapping) or state.get("kind") != kind:
        found = state.get("kind") if isinstance(state, Mapping) else type(state).__name__
        raise SchemaMismatch(f"state is of kind {found!r}; {kind!r} is needed, as made by its state_dict()")
    if state.get("version") is True or state.get("version") != VERSION:
        raise SchemaMismatch(
            f"state has version {state.get('version')!r}; this boundwatch reads version {VERSION}: "
            "start over, or use the version of boundwatch that wrote it"
        )
    stored = Certificate.from_dict(state.get("certificate"))
    if stored.fingerprint != state.get("fingerprint"):
        raise ProvenanceMismatch("the state's certificate does not match its fingerprint; it was altered")
    if certificate is not None and certificate.fingerprint != stored.fingerprint:
        raise ProvenanceMismatch(
            f"the state belongs to certificate {stored.fingerprint[:12]}, "
            f"not to {certificate.fingerprint[:12]}; use that certificate, or start a new state"
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
    """Return an array as JSON keeps it exactly: minus infinity becomes None, of a sparse one zeros go.

    Examples
    --------
    >>> pack([[0.5, -np.inf]]), pack([0.0, 0.0, 3.5], sparse=True)
    ([0.5, None], {'2': 3.5})
    """
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
        for key in (content := table(state, name)):
            if not (isinstance(key, str) and key.isdecimal() and int(key) < array.size):
                raise SchemaMismatch(f"state[{name!r}] has the unknown key {key!r}; the state is damaged")
            array[int(key)] = number(content, key)
        return array.reshape(shape)
    values = state.get(name)
    if not isinstance(values, list) or len(values) != array.size:
        raise SchemaMismatch(f"state[{name!r}] is not a list of {array.size} values; the state is damaged")
    whole = array.dtype.kind == "i"
    if not set(map(type, values)) <= _PLAIN[array.dtype.kind] or (whole and not _are_counts(values)):
        raise SchemaMismatch(f"state[{name!r}] holds something that cannot be; the state is damaged")
    try:
        array[:] = [-math.inf if value is None else value for value in values]
    except OverflowError as error:
        raise SchemaMismatch(f"state[{name!r}] holds a number that is no float") from error
    if array.dtype.kind == "f" and (np.isnan(array).any() or np.isposinf(array).any()):
        raise SchemaMismatch(f"state[{name!r}] holds a number that is not finite; the state is damaged")
    return array.reshape(shape)


def _are_counts(values: list[int]) -> bool:
    return not values or (min(values) >= 0 and max(values) <= _MOST)


def table(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the table stored under a name."""
    content = state.get(name)
    if not isinstance(content, Mapping):
        raise SchemaMismatch(f"state[{name!r}] is not a table; the state is damaged")
    return content


def count(state: Mapping[str, Any], name: str) -> int:
    """Return a whole number of at least 0."""
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise SchemaMismatch(f"state[{name!r}] = {shown(value)} is not a whole number from 0 to 2^53")
    return value


def optional_count(state: Mapping[str, Any], name: str) -> int | None:
    """Return the same, or None where there is none."""
    return None if state.get(name, "") is None else count(state, name)


def number(state: Mapping[str, Any], name: str) -> float:
    """Return a finite number."""
    value = state.get(name)
    # The comparison, not isfinite: that would overflow on integers larger than any float.
    largest = sys.float_info.max
    if isinstance(value, bool) or not isinstance(value, int | float) or not -largest <= value <= largest:
        raise SchemaMismatch(f"state[{name!r}] = {shown(value)} is not a number; the state is damaged")
    return float(value)


def alarm(state: Mapping[str, Any], n: int) -> tuple[Verdict, int | None]:
    """Return the stored verdict and the episode of its alarm, which must agree."""
    try:
        verdict = Verdict(str(state.get("verdict")))
    except ValueError as error:
        raise SchemaMismatch(f"state['verdict'] = {state.get('verdict')!r} is not a verdict") from error
    first = optional_count(state, "first_alarm")
    if (first is None) != (verdict is Verdict.WITHIN) or not (first is None or 1 <= first <= n):
        raise SchemaMismatch(
            f"state['first_alarm'] = {first} does not go with {verdict.value!r}; it is damaged"
        )
    return verdict, first
