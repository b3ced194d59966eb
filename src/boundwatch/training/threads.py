"""One torch thread at a time, so that sums are added in the same order whatever the number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
