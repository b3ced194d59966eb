"""Where a certificate comes from: time, versions, seed, hashes."""

from __future__ import annotations

import hashlib
import operator
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
import scipy
from msgspec import Meta
from numpy.typing import NDArray

from boundwatch._support.files import sha256_file
from boundwatch._support.schema import Digest, FrozenMapping
from boundwatch._version import __version__
from boundwatch.errors import InvalidSetting

Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$", max_length=25)]
"""A time in ISO 8601 with its zone."""


@dataclass(frozen=True)
class Provenance:
    """When, with what and from what a certificate was made.

    Attributes
    ----------
    created
        UTC time in ISO 8601.
    versions
        Versions of boundwatch, Python and the numerical libraries.
    seed
        The seed behind the episodes or the policy drawn, where one was given.
    costs_sha256
        SHA-256 of the costs as little-endian float64 in their order; None without costs.
    policy_sha256
        SHA-256 of the policy's file, where one was given.
    """

    created: Moment
    versions: Mapping[str, str]
    seed: int | None = None
    costs_sha256: Digest | None = None
    policy_sha256: Digest | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", FrozenMapping(self.versions))

    def __str__(self) -> str:
        made_with = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"made {self.created} with {made_with}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return vars(self) | {"versions": dict(self.versions)}


_VERSIONS = FrozenMapping(
    boundwatch=__version__,
    python=platform.python_version(),
    numpy=np.__version__,
    scipy=scipy.__version__,
)


def provenance_of(
    costs: NDArray[np.float64] | None, seed: int | None, policy: str | os.PathLike[str] | None
) -> Provenance:
    """Return the provenance of a certificate that is made now, from these costs and this policy's file."""
    try:
        seed = None if seed is None else int(operator.index(seed))
    except TypeError:
        problem, remedy = "is not a whole number", "give one, or leave it out"
        raise InvalidSetting(problem, name="seed", value=seed, remedy=remedy) from None
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_VERSIONS,
        seed=seed,
        costs_sha256=None if costs is None else costs_digest(costs),
        policy_sha256=None if policy is None else sha256_file(policy),
    )


def costs_digest(costs: NDArray[np.float64]) -> str:
    """Return the SHA-256 of the costs in their order, the same whatever file they were read from."""
    return hashlib.sha256(np.ascontiguousarray(costs, dtype="<f8").data).hexdigest()
