"""Bets that values rank too high, too low or too far out among others that they are exchangeable with.

If they are, a value is equally likely to take any rank among the others, whatever the ranks before it. A bet
is a density on [0, 1], averaged over the place of that rank. A value that others equal takes, of all the
ranks that it could have among them, the one that is worst for each bet: what is won is never more than with
ties broken at random, and needs no random numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from boundwatch.bounds.bets import Array, Counts

_POWERS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
# Besides, a part of the capital on the ranks before a cut. Where only a few different values occur, the worst
# rank of a tie is its last one. A power wins most on the first ranks, a cut on all before it alike.
_CUTS, _SIZES = (grid.ravel() for grid in np.meshgrid(np.linspace(0.05, 0.95, 19), [0.2, 0.6]))
_SHARES = np.repeat([0.5 / _POWERS.size, 0.5 / _CUTS.size], [_POWERS.size, _CUTS.size])
LOOKS = 3
"""On high ranks, on low ranks and on both ends: the rows of what follows."""


def first_logs() -> Array:
    """Return the logarithms of the capitals before the first value, (looks, bets)."""
    return np.tile(np.log(_SHARES / LOOKS), (LOOKS, 1))


def log_gains(above: Counts, tied: Counts, places: Counts) -> Array:
    """Return by what values multiply each bet, (values, looks, bets), in logarithms.

    Each value has so many others above it and so many that equal it, of which there are one less than places.
    """
    last = above + tied  # for high ranks, counted from the top; for low ones the first, from the bottom
    nearest = np.clip((places - 1) // 2, above, last)  # to the middle
    areas = [_area(_first_ranks, last, places), _area(_first_ranks, places - 1 - above, places)]
    areas.append(_area(_both_ends, nearest, places))
    return np.asarray(np.log(np.stack(areas, axis=1) * places[:, None, None]))


def _area(distribution: Callable[[Array], Array], place: Counts, places: Counts) -> Array:
    return distribution(((place + 1) / places)[:, None]) - distribution((place / places)[:, None])


def _first_ranks(rank: Array) -> Array:
    """Return the distribution functions of the bets on the first ranks."""
    cut = _SIZES * np.minimum(rank / _CUTS, 1.0) + (1 - _SIZES) * rank
    return np.concatenate([rank**_POWERS, cut], axis=1)


def _both_ends(rank: Array) -> Array:
    """Return the distribution functions of the bets on both ends."""
    lower = 0.5 * _first_ranks(2 * np.minimum(rank, 1 - rank))
    return np.asarray(np.where(rank <= 0.5, lower, 1 - lower))
