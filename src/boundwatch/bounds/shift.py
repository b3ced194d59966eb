"""How far the expected cost can move when the world moves, and the reverse.

A cost in [0, 1] is the bias of a coin that the world throws. Sending worlds through costs and coins cannot
raise their relative entropy (data processing), and leaves expected values alone, so
kl(new mean || old mean) <= KL(new world || old world). The same holds for the total variation, which between
two coins is the difference of their means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.bounds.kl import binary_kl

Array = NDArray[np.float64]
_BISECTIONS = 62
_EPS = float(np.finfo(np.float64).eps)
# Below this shift the smallest relative entropy is 2 shift² but for a part in 10^8, and rounding is larger.
_SMALL_SHIFT = 1e-4


def shifted_mean_upper(mean: ArrayLike, kl: ArrayLike) -> Array:
    """Return the largest q in [mean, 1] with kl(q || mean) <= `kl`.

    This inverts the relative entropy's *first* argument; `kl_inverse_upper` inverts the second.

    **Guarantee**: rounds outward, so the result is never below the true value, and within 1e-12 of it. No
    world within a relative entropy KL(new world || old world) of `kl` nats of one whose expected cost is at
    most `mean` has a higher one.

    Examples
    --------
    >>> float(shifted_mean_upper(0.1, 0.1).round(4))
    0.2569
    >>> float(shifted_mean_upper(0.9, 0.2))
    1.0
    """
    mean, kl = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(kl, dtype=np.float64))
    # Pinsker: kl >= 2 (q - mean)^2
    low, high = mean.copy(), np.minimum((mean + np.sqrt(kl / 2)) * (1 + 4 * _EPS), 1.0)
    everything = binary_kl(1.0, mean) <= kl
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        # The relative entropy is a sum of two terms of opposite sign, of which one is at most q - mean.
        inside = binary_kl(middle, mean) <= kl + 8 * _EPS * (kl + 2 * (middle - mean))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    # A mean of 0 says that no cost ever occurs, and no world at a finite relative entropy has any.
    result: Array = np.where(everything, 1.0, np.minimum(np.nextafter(high, 2.0), 1.0))
    return np.where((mean == 0) | (kl == 0), mean, result)


def shift_kl_lower(shift: ArrayLike) -> Array:
    """Return the smallest relative entropy between two worlds whose expected costs differ by `shift`.

    **Guarantee**: KL(new world || old world) is never below it, whatever the two expected costs are, if the
    new one is higher by at least `shift`. It is at least Pinsker's 2 shift², and more for large shifts, and 0
    for a shift of 0 or less.

    Examples
    --------
    >>> shift_kl_lower([-0.1, 0.25, 0.9]).round(4).tolist()
    [0.0, 0.1268, 2.3022]
    """
    shift = np.clip(np.asarray(shift, dtype=np.float64), 0.0, 1.0)
    # kl(p + shift || p) is convex in p: a ternary search finds its minimum, whose neighbors hardly differ.
    low, high = np.zeros_like(shift), 1.0 - shift
    for _ in range(100):
        third = (high - low) / 3
        left, right = low + third, high - third
        better = binary_kl(left + shift, left) <= binary_kl(right + shift, right)
        low, high = np.where(better, low, left), np.where(better, right, high)
    middle = 0.5 * (low + high)
    found = binary_kl(np.minimum(middle + shift, 1.0), middle) * (1 - 1e-9)
    return np.asarray(np.maximum(np.where(shift < _SMALL_SHIFT, 0.0, found), 2 * shift**2 * (1 - 4 * _EPS)))
