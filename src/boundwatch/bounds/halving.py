"""Where an answer changes: a range, or many at once, is halved until it is narrow enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


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
