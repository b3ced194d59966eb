"""Fingerprints of environments, and the refusal to choose a prior with the training environments."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from boundwatch.errors import InvalidSetting


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def environment_hash(environment: Any) -> str:
    """Return the SHA-256 of an environment's content.

    Takes numbers, text, bytes, arrays, tensors, and lists, tuples, dictionaries, dataclasses and plain
    objects made of them. The type of a number or an array counts: 1 and 1.0 differ.

    Examples
    --------
    >>> environment_hash({"x": np.arange(3), "friction": 0.5})[:8]
    '19ab86db'
    >>> environment_hash([1, 2]) == environment_hash([1, 3])
    False
    """
    digest = hashlib.sha256()
    _update(digest, environment)
    return digest.hexdigest()


def check_disjoint(prior_environments: Iterable[Any], training_environments: Iterable[Any]) -> None:
    """Refuse a prior set and a training set S that share an environment.

    The theorem needs a prior that was chosen without S. Rows of an array or a tensor count as environments.

    Examples
    --------
    >>> check_disjoint([1, 2, 3], [4, 5])
    >>> check_disjoint([1, 2, 3], [4, 3])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: 1 of the 2 training environments is in the prior set too, the first ...
    """
    known = {environment_hash(environment): i for i, environment in enumerate(prior_environments)}
    hashes = [environment_hash(environment) for environment in training_environments]
    shared = [(i, known[digest]) for i, digest in enumerate(hashes) if digest in known]
    if shared:
        number, first = len(shared), shared[0]
        raise InvalidSetting(
            f"{number} of the {len(hashes)} training environments {'is' if number == 1 else 'are'} in the "
            f"prior set too, the first being training[{first[0]}] = prior[{first[1]}]; the bound needs a "
            "prior chosen without them: draw the two sets with different seeds"
        )


def _update(digest: _Hash, value: Any) -> None:
    """Feed a value to the digest with its type and length, so that different values give different bytes."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if value is None or isinstance(value, bool | int | float | complex | str):
        _feed(digest, type(value).__name__, repr(value).encode())
    elif isinstance(value, bytes):
        _feed(digest, "bytes", value)
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        _feed(digest, f"{value.dtype.str}{value.shape}", np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _feed(digest, "mapping", str(len(value)).encode())
        for key in sorted(value, key=repr):
            _update(digest, key)
            _update(digest, value[key])
    elif isinstance(value, Sequence):
        _feed(digest, "sequence", str(len(value)).encode())
        for item in value:
            _update(digest, item)
    elif dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        _feed(digest, type(value).__qualname__, b"")
        _update(digest, {field.name: getattr(value, field.name) for field in fields} or vars(value))
    else:
        raise InvalidSetting(
            f"an environment of type {type(value).__name__} cannot be told from another; "
            "describe it by numbers, text, arrays, or a dataclass of them"
        )


def _feed(digest: _Hash, kind: str, data: bytes) -> None:
    digest.update(f"{kind}:{len(data)}:".encode())
    digest.update(data)
