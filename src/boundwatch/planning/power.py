"""What one detector achieves, and the searches that every plan shares."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc

from boundwatch._support.validation import check_number
from boundwatch.detectors.verdicts import EvidenceName
from boundwatch.errors import InvalidSetting, shown

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

MOST_TRIALS = 5000
"""Beyond so many the answer is "more than", not a number."""
DELTA = 0.01
POWERS = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True, kw_only=True)
class Power:
    """What one detector achieves.

    Attributes
    ----------
    detector, tail
        Which one. ``sequential-test`` may be read after every trial, ``hypothesis-test`` once.
    level
        What it may spend on a false alarm: in all if the tail is ``joint``, else without the certificate's
        delta.
    trials
        Power to about the fewest trials that reach it, None if 5,000 do not suffice; a few more may have
        slightly less, as failures are whole. For the sequential test: the number within which the alarm
        comes with this probability, None if 32,000 do not suffice.
    mean_trials, median_trials
        Trials to the alarm; of the sequential test only. None if too many streams outlast the computation.
    n, power
        The curve: numbers of trials, and the power at each.
    """

    detector: str
    tail: EvidenceName
    level: float
    trials: dict[float, int | None]
    mean_trials: float | None = None
    median_trials: int | None = None
    n: Array = dataclasses.field(repr=False)
    power: Array = dataclasses.field(repr=False)

    def __str__(self) -> str:
        needed = ", ".join(
            f"{'more than were computed' if trials is None else trials} for a power of {100 * power:g} %"
            for power, trials in self.trials.items()
        )
        return f"{self.detector} with {self.tail} evidence at level {self.level:g} needs trials: {needed}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the curve is left out."""
        content = dataclasses.asdict(self) | {"trials": {str(k): v for k, v in self.trials.items()}}
        return {name: value for name, value in content.items() if name not in ("n", "power")}


def chance_of(needed: ArrayLike, n: ArrayLike, rate: float) -> Array:
    """Return P[at least so many failures among n]."""
    least, trials = np.asarray(needed), np.asarray(n)
    chances = np.where(least <= 0, 1.0, bdtrc(np.maximum(least - 1, 0), trials, rate))
    return np.where(least > trials, 0.0, chances)


def first_reaching(curve: Array, power: float) -> int | None:
    """Return the first place of a curve with at least this power."""
    return int(np.argmax(curve >= power)) if curve.max() >= power else None


def fewest(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """Halve the range between a number that does not suffice and one that does.

    Powers go up and down by a little, as failures are whole: the number found suffices and the one before
    it does not, but fewer may, and a few more may not.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def mean_wait(reached: Array) -> float:
    """Return the mean number of trials, from P[done within 0, 1, …]; who is not done counts as at the end."""
    return float((1 - reached[:-1]).sum())


def check_rate(value: object, name: str, *, inside: bool = False) -> float:
    """Return an expected cost in [0, 1], or in (0, 1) if neither end has a plan, or raise an error."""
    what = f"an expected cost in {'(0, 1)' if inside else '[0, 1]'}"
    least, most = (math.nextafter(0, 1), math.nextafter(1, 0)) if inside else (0, 1)
    return check_number(value, name, what, least, most, remedy="give one such as 0.1")


def check_size(size: object, name: str) -> int:
    """Return a number of trials, or raise an error."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise InvalidSetting(f"{name} {shown(size)}; give whole numbers of trials, of at least 1")
    return int(size)
