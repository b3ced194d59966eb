"""How the anytime-valid detectors are stored: plain JSON that names its certificate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self, TypeVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from boundwatch._support.describing import arguments
from boundwatch._support.schema import convert
from boundwatch.bounds.bets import Rows, Wealth
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.verdicts import Verdict
from boundwatch.errors import BoundwatchError, ProvenanceMismatch, SchemaMismatch

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


class Kept(ABC):
    """A detector that can be stored as JSON, and goes on where it stood."""

    certificate: Certificate

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> import json
        >>> import boundwatch as bw
        >>> test = bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
        >>> _ = test.update_many([0.3, 0.1, 0.4])
        >>> again = bw.SequentialTest.from_state_dict(json.loads(json.dumps(test.state_dict())))
        >>> again.update(0.2).e_adverse == test.update(0.2).e_adverse
        True
        """
        made_with = {"fingerprint": self.certificate.fingerprint, "certificate": self.certificate.to_dict()}
        return {"kind": type(self).__name__, "version": VERSION, **made_with, **self.content()}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], certificate: Certificate | None = None) -> Self:
        """Return the detector that `state_dict` described, possibly through a JSON file.

        If a certificate is given, the state must belong to it, or `ProvenanceMismatch` is raised.
        """
        return cls.from_content(state, unseal(cls.__name__, state, certificate))

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return the state without what says whose it is, for those who keep that themselves."""

    @classmethod
    @abstractmethod
    def from_content(cls, state: Mapping[str, Any], certificate: Certificate) -> Self:
        """Return the detector whose `content` that was."""


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


def pack_rows(rows: Rows, streams: int) -> dict[str, Any]:
    """Return what is known of the first streams; what follows from the rest is left out."""
    kept = {name: array[:streams] for name, array in rows.items() if name not in Wealth.DERIVED}
    return {name: pack(array, sparse=name == "grid") for name, array in kept.items()}


def unpack_rows(rows: Rows, state: Mapping[str, Any], streams: int) -> None:
    """Continue with the streams that `pack_rows` stored."""
    for name in rows.keys() - Wealth.DERIVED:
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
