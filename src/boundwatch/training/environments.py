"""Environments as tensors, their fingerprints, and the refusal to choose a prior with those of training."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from boundwatch.errors import InvalidSetting


def as_tensors(data: Sequence[torch.Tensor | NDArray[Any]]) -> tuple[list[torch.Tensor], int]:
    """Return the parts of the data as tensors, and the number of their rows, the same in each."""
    tensors = [torch.as_tensor(part) for part in data]
    sizes = {len(part) for part in tensors}
    if len(sizes) != 1:
        raise InvalidSetting(f"data has parts of {sorted(sizes)} rows; give one row per environment in each")
    return tensors, sizes.pop()


def environment_hash(environment: Any) -> str:
    """Return the SHA-256 of an environment's content.

    Takes numbers, text, bytes, arrays, tensors, and lists, tuples, dictionaries, dataclasses and plain
    objects made of them. The type of a number or an array counts: 1 and 1.0 differ.

    Examples
    --------
    >>> environment_hash({"x": np.arange(3), "friction": 0.5})[:8]
    '19ab86db'
    """
    digest = hashlib.sha256()
    try:
        _update(digest, environment)
    except RecursionError as error:
        raise _not_content(environment, "refers to itself and has no end") from error
    return digest.hexdigest()


def check_disjoint(prior_environments: Iterable[Any], training_environments: Iterable[Any]) -> None:
    """Refuse a prior set and a training set S that share an environment.

    The theorem needs a prior that was chosen without S. Rows of an array or a tensor count as environments.
    Numbers are compared by value, whether they come in lists, arrays or tensors of any type and shape, and
    rounded to the least precise floats in the two sets.

    Examples
    --------
    >>> check_disjoint([1, 2, 3], [4, 3])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: the prior set shares 1 of the 2 training environments, the first ...
    """
    prior = [list(_pieces(environment)) for environment in prior_environments]
    training = [list(_pieces(environment)) for environment in training_environments]
    for name, environments in (("prior", prior), ("training", training)):
        if not environments:
            raise InvalidSetting(f"{name}_environments is empty, so nothing is compared; give the whole set")
    numbers = (piece for pieces in (*prior, *training) for piece in pieces if isinstance(piece, np.ndarray))
    floats = {piece.dtype for piece in numbers if piece.dtype.kind == "f"}
    precision = min(floats, key=lambda dtype: dtype.itemsize, default=np.dtype(np.float64))
    known = {_hash_by_value(pieces, precision): i for i, pieces in enumerate(prior)}
    hashes = [_hash_by_value(pieces, precision) for pieces in training]
    shared = [(i, known[digest]) for i, digest in enumerate(hashes) if digest in known]
    if shared:
        i, j = shared[0]
        raise InvalidSetting(
            f"the prior set shares {len(shared)} of the {len(hashes)} training environments, the first being "
            f"training[{i}] = prior[{j}]; the bound needs a prior chosen without them: draw the two sets "
            "with different seeds"
        )


def _pieces(value: Any) -> Iterator[NDArray[Any] | str]:
    """Yield what an environment is made of: numbers as flat arrays, all else as text."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    plain = isinstance(value, bool | int | float | np.ndarray | np.generic)
    if plain and np.asarray(value).dtype.kind in "biuf":
        yield np.asarray(value).ravel()
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key)
            yield from _pieces(value[key])
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from _pieces(item)
    elif (fields := _fields(value)) is not None:
        yield type(value).__qualname__
        yield from _pieces(fields)
    else:
        yield environment_hash(value)


def _hash_by_value(pieces: Iterable[NDArray[Any] | str], precision: np.dtype[Any]) -> str:
    """Return a hash that does not depend on how numbers in a row were kept."""
    parts: list[NDArray[Any] | str] = []
    for numeric, run in itertools.groupby(pieces, key=lambda piece: isinstance(piece, np.ndarray)):
        if not numeric:
            parts += run
            continue
        numbers = np.concatenate(list(run))
        with np.errstate(over="ignore"):
            rounded = numbers.astype(precision) + 0  # -0.0 becomes 0.0
        # Whole numbers that floats cannot tell apart, such as large seeds, stay as they are.
        large = numbers.dtype.kind != "f" and bool((np.abs(rounded) > 2.0 ** np.finfo(precision).nmant).any())
        parts.append(numbers.astype(np.int64) if large else rounded)
    return environment_hash(parts)


def _update(digest: hashlib._Hash, value: Any) -> None:
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
    elif (fields := _fields(value)) is not None:
        _feed(digest, type(value).__qualname__, b"")
        _update(digest, fields)
    else:
        raise _not_content(value, "cannot be told from another")


def _not_content(value: Any, problem: str) -> InvalidSetting:
    return InvalidSetting(
        f"an environment of type {type(value).__name__} {problem}; "
        "describe it by numbers, text, arrays, or a dataclass of them"
    )


def _fields(value: Any) -> dict[str, Any] | None:
    """Return what a dataclass or a plain object holds; None if it is neither."""
    if dataclasses.is_dataclass(value) and dataclasses.fields(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return vars(value) if hasattr(value, "__dict__") else None


def _feed(digest: hashlib._Hash, kind: str, data: bytes) -> None:
    digest.update(f"{kind}:{len(data)}:".encode())
    digest.update(data)
