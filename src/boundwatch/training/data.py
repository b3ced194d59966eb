"""Environments as rows of tensors, and minibatches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from boundwatch.errors import InvalidSetting
from boundwatch.training.determinism import Stream, generator


def as_tensors(data: Sequence[Tensor | NDArray[Any]]) -> tuple[list[Tensor], int]:
    """Return the parts of the data as tensors, and the number of their rows, the same in each."""
    tensors = [torch.as_tensor(part) for part in data]
    sizes = {len(part) for part in tensors}
    if len(sizes) != 1:
        raise InvalidSetting(f"data has parts of {sorted(sizes)} rows; give one row per environment in each")
    return tensors, sizes.pop()


def minibatch(n: int, batch_size: int, seed: int, step: int) -> Tensor:
    """Return the rows of a step: epochs of shuffled environments, the incomplete last batch left out.

    Examples
    --------
    >>> sorted([*minibatch(4, 2, 0, 0).tolist(), *minibatch(4, 2, 0, 1).tolist()])
    [0, 1, 2, 3]
    """
    per_epoch = n // batch_size
    order = generator(seed, Stream.BATCHES, step // per_epoch).permutation(n)
    start = step % per_epoch * batch_size
    return torch.from_numpy(order[start : start + batch_size])
