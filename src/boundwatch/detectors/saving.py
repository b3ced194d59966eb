"""How the anytime-valid detectors are stored: plain JSON that names its certificate."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.errors import ProvenanceMismatch, SchemaMismatch

Array = NDArray[np.float64]
VERSION = 2
"""Version of the states that this release writes; version 1 had no joint evidence and no margin."""

_MOST = 1 << 53  # episodes that can be counted in floats


def seal(kind: str, certificate: Certificate, content: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a detector with what is needed to recognize it."""
    return {
        "kind": kind,
        "version": VERSION,
        "fingerprint": certificate.fingerprint,
        "certificate": certificate.to_dict(),
        **content,
    }


def unseal(
    kind: str, state: Mapping[str, Any], certificate: Certificate | None, *, oldest: int = VERSION
) -> Certificate:
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
    version = state.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not oldest <= version <= VERSION:
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


def pack(values: Iterable[float]) -> list[float | None]:
    """Return floats as JSON keeps them exactly; minus infinity, which JSON does not know, becomes None."""
    return [None if value == -math.inf else float(value) for value in values]


def unpack(state: Mapping[str, Any], name: str, size: int) -> Array:
    """Return the numbers that `pack` stored under a name, `size` of them."""
    values = state.get(name)
    if not isinstance(values, list | np.ndarray) or len(values) != size:
        raise SchemaMismatch(f"state[{name!r}] is not a list of {size} numbers; the state is damaged")
    try:
        if isinstance(values, list):
            values = [-math.inf if value is None else value for value in values]
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatch(f"state[{name!r}] holds something that is not a number") from error
    if np.isnan(array).any() or np.isposinf(array).any():
        raise SchemaMismatch(f"state[{name!r}] holds a number that is not finite; the state is damaged")
    return array


def flags(state: Mapping[str, Any], name: str, size: int) -> list[bool]:
    """Return the yes-or-no answers stored under a name, `size` of them."""
    values = state.get(name)
    if not isinstance(values, list) or len(values) != size or not all(isinstance(v, bool) for v in values):
        raise SchemaMismatch(f"state[{name!r}] is not a list of {size} of true and false; it is damaged")
    return values


def table(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the table stored under a name."""
    content = state.get(name)
    if not isinstance(content, Mapping):
        raise SchemaMismatch(f"state[{name!r}] is not a table; the state is damaged")
    return content


def count(state: Mapping[str, Any], name: str, *, optional: bool = False) -> int | None:
    """Return a whole number from 0 to 2^53, or None where that is allowed."""
    value = state.get(name)
    if value is None and optional and name in state:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise SchemaMismatch(f"state[{name!r}] = {shown(value)} is not a whole number from 0 to 2^53")
    return value


def number(state: Mapping[str, Any], name: str) -> float:
    """Return a finite number."""
    value = state.get(name)
    # The comparison, not isfinite: that would overflow on integers larger than any float.
    largest = sys.float_info.max
    if isinstance(value, bool) or not isinstance(value, int | float) or not -largest <= value <= largest:
        raise SchemaMismatch(f"state[{name!r}] = {shown(value)} is not a number; the state is damaged")
    return float(value)


def levels(state: Mapping[str, Any]) -> dict[str, float]:
    """Return the levels of both sides by the names of their arguments."""
    return {name: number(state, name) for name in ("alpha_adverse", "alpha_benign")}


def margin(state: Mapping[str, Any]) -> float | None:
    """Return the margin, if there is one."""
    return None if state.get("margin") is None else number(state, "margin")


def alarm(state: Mapping[str, Any], n: int) -> tuple[Verdict, int | None]:
    """Return the stored verdict and the episode of its alarm, which must agree."""
    try:
        verdict = Verdict(str(state.get("verdict")))
    except ValueError as error:
        raise SchemaMismatch(f"state['verdict'] = {state.get('verdict')!r} is not a verdict") from error
    first = count(state, "first_alarm", optional=True)
    if (first is None) != (verdict is Verdict.WITHIN) or not (first is None or 1 <= first <= n):
        raise SchemaMismatch(
            f"state['first_alarm'] = {first} does not go with {verdict.value!r}; it is damaged"
        )
    return verdict, first
