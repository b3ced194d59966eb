"""Same inputs, same bytes: random streams that are found by name, and one torch thread at a time.

A step's randomness does not depend on what was drawn before it. So a training that resumes from a checkpoint,
or a rollout on another worker, draws what it would have drawn anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

from boundwatch.errors import InvalidSetting, shown


class Stream(IntEnum):
    """What randomness is for. Different purposes are independent even under the same seed.

    Had training seen the numbers of the certified policy, it would not be a fresh draw from the posterior.
    """

    TRAINING = 0
    BATCHES = 1
    ENVIRONMENTS = 2
    CERTIFIED_POLICY = 3
    SCENES = 4


def generator(seed: int, stream: Stream, *index: int) -> np.random.Generator:
    """Return the generator of a stream that is found under ``index``: one number >= 0, or several."""
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidSetting(f"seed = {shown(seed)} is not a whole number >= 0; choose one, such as 0")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *(index or (0,)))))


def minibatch(n: int, batch_size: int, seed: int, step: int) -> torch.Tensor:
    """Return the rows of a step: epochs of shuffled environments, the incomplete last batch left out."""
    per_epoch = n // batch_size
    order = generator(seed, Stream.BATCHES, step // per_epoch).permutation(n)
    start = step % per_epoch * batch_size
    return torch.from_numpy(order[start : start + batch_size])


@contextmanager
def single_thread() -> Iterator[None]:
    """Let torch use one thread inside the block, and what it used before afterward.

    Sums split over threads are rounded differently. Another kind of processor may still round differently.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
