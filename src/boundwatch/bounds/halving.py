"""Where an answer changes, and limits from above from those from below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def halve(low: Any, high: Any, is_low: Callable[[Any], Any], times: int) -> tuple[Any, Any]:
    """Return the last place at which the answer is yes, and the first at which it is no, of every range.

    >>> low, high = halve(0.0, 2.0, lambda x: x**2 < 2, times=40)
    >>> float(low) < 2**0.5 < float(high), round(float(high), 9)
    (True, 1.414213562)
    """
    for _ in range(times):
        middle = (low + high) / 2
        below = is_low(middle)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low, high


def from_above(rest: ArrayLike) -> NDArray[np.float64]:
    """Return the upper limit on a mean that follows from the lower one on 1 less it, rounded outward."""
    return np.minimum(np.nextafter(1 - np.asarray(rest, dtype=np.float64), 2.0), 1.0)
