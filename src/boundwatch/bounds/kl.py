"""The binary relative entropy kl(q || p), its inverses, and how far costs can move when the world moves.

A cost in [0, 1] is the bias of a coin that the world throws. Sending worlds through costs and coins cannot
raise their relative entropy (data processing), and leaves expected values alone, so
kl(new mean || old mean) <= KL(new world || old world). The same holds for the total variation, which between
two coins is the difference of their means.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.bounds.halving import halve

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
# The bracket starts no wider than 1 and halves each time: 62 steps reach the spacing of doubles near 1.
_BISECTIONS = 62
# Below this shift the smallest relative entropy is 2 shift² but for a part in 10^8, and rounding is larger.
_SMALL_SHIFT = 1e-4


def binary_kl(q: ArrayLike, p: ArrayLike) -> Array:
    """Return kl(q || p), the relative entropy in nats between coins of bias q and p; they broadcast.

    It is 0 where q = p, ``inf`` where p excludes what q allows.

    >>> float(binary_kl(0.5, 0.25).round(6)), float(binary_kl(0.5, 1.0))
    (0.143841, inf)
    """
    q, p = _floats(q, p)
    return np.maximum(_term(q, p, p - q) + _term(1 - q, 1 - p, q - p), 0.0)


def kl_inverse_upper(q: ArrayLike, c: ArrayLike) -> Array:
    """Return the largest p in [q, 1] with kl(q || p) <= c.

    **Guarantee**: rounds outward, so the result is never below the true value, and within 1e-12 of it.

    >>> float(kl_inverse_upper(0.3, 0.001).round(6)), float(kl_inverse_lower(0.3, 0.001).round(6))
    (0.320751, 0.279782)
    """
    q, c = _floats(q, c)
    shifted = np.minimum(np.nextafter(q + _largest_shift(q, 1 - q, c), 2.0), 1.0)
    # At q = 0 the inverse has a closed form, at q = 1 there is nowhere to go.
    result: Array = np.where(q == 0, np.minimum(np.nextafter(-np.expm1(-c), 2.0), 1.0), shifted)
    return np.where(c == 0, q, result)


def kl_inverse_lower(q: ArrayLike, c: ArrayLike) -> Array:
    """Return the smallest p in [0, q] with kl(q || p) <= c, with the same guarantee from below."""
    q, c = _floats(q, c)
    shifted = np.maximum(np.nextafter(q - _largest_shift(1 - q, q, c), -1.0), 0.0)
    result: Array = np.where(q == 1, np.maximum(np.nextafter(np.exp(-c), -1.0), 0.0), shifted)
    return np.where(c == 0, q, result)


def _floats(*values: ArrayLike) -> tuple[Array, ...]:
    return np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in values))


def _term(a: Array, moved: Array, t: Array) -> Array:
    """Return a ln(a / moved) for moved = a + t.

    For small t it is computed from t, so that nothing cancels in a sum of two such terms: the error is of
    the order eps * t, which moves an inverse by no more than a rounding error.
    """
    close = np.abs(t) < 0.5 * a
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = -a * np.log1p(t / a)
        if close.all():
            return near
        # The ratio first: logarithms of tiny numbers are large, and their rounding errors with them.
        ratio = a / moved
        far = a * np.where(np.isfinite(ratio), np.log(ratio), np.log(a) - np.log(moved))
    return np.where(a == 0, 0.0, np.where(close, near, far))


def _largest_shift(a: Array, b: Array, c: Array) -> Array:
    """Return, rounded up, the largest t in [0, b] with kl((a, b) || (a + t, b - t)) <= c."""
    pair, moves = np.stack([a, b]), np.empty((2, *np.shape(c)))

    def inside(t: Array) -> NDArray[np.bool_]:
        moves[0], moves[1] = t, -t
        grown, shrunk = _term(pair, pair + moves, moves)
        # What rounding may have added to the two terms, which nearly cancel, and to b - t; where a term is
        # infinite the point lies outside whatever the rounding, hence the cap.
        rounding = np.abs(grown) + np.abs(shrunk) + np.where(t > 0, t * b / (b - t), 0.0)
        return np.asarray(grown + shrunk <= c + 4 * _EPS * np.minimum(rounding, 1e15))

    high = np.minimum(b, np.sqrt(c / 2) * (1 + 4 * _EPS))  # Pinsker: kl >= 2 t^2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(halve(np.zeros_like(c), high, inside, _BISECTIONS)[1])


def shifted_mean_upper(mean: ArrayLike, kl: ArrayLike) -> Array:
    """Return the largest q in [mean, 1] with kl(q || mean) <= `kl`: the other argument is inverted here.

    **Guarantee**: rounds outward, so the result is never below the true value, and within 1e-12 of it. No
    world within a relative entropy KL(new world || old world) of `kl` nats of one whose expected cost is at
    most `mean` has a higher one.

    >>> float(shifted_mean_upper(0.1, 0.1).round(4)), float(shifted_mean_upper(0.9, 0.2))
    (0.2569, 1.0)
    """
    mean, kl = _floats(mean, kl)
    # Pinsker: kl >= 2 (q - mean)^2
    low, high = mean.copy(), np.minimum((mean + np.sqrt(kl / 2)) * (1 + 4 * _EPS), 1.0)
    everything = binary_kl(1.0, mean) <= kl

    def inside(q: Array) -> NDArray[np.bool_]:
        # The relative entropy is a sum of two terms of opposite sign, of which one is at most q - mean.
        return np.asarray(binary_kl(q, mean) <= kl + 8 * _EPS * (kl + 2 * (q - mean)))

    _, high = halve(low, high, inside, _BISECTIONS)
    # A mean of 0 says that no cost ever occurs, and no world at a finite relative entropy has any.
    result: Array = np.where(everything, 1.0, np.minimum(np.nextafter(high, 2.0), 1.0))
    return np.where((mean == 0) | (kl == 0), mean, result)


def shift_kl_lower(shift: ArrayLike) -> Array:
    """Return the smallest relative entropy between two worlds whose expected costs differ by `shift`.

    **Guarantee**: KL(new world || old world) is never below it, whatever the two expected costs are, if the
    new one is higher by at least `shift`. It is never below Pinsker's 2 shift², and 0 for a shift below 0.

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
