"""The worlds in which a promise is hardest to keep, and what is claimed of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonVerdict
from boundwatch.detectors import Verdict

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Count = Callable[[np.random.Generator, int], int]
Levels = dict[Verdict, float]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Claim:
    """A promise to be tried: who may not declare what, where and how often, and how to count it."""

    detector: str
    verdict: Verdict | ComparisonVerdict
    world: str
    promised: float
    count: Count
    scale: float = 1.0
    """Simulations for each one that was asked for: the rarer an error may be, the more it takes."""


@dataclass(frozen=True)
class World:
    """New costs of two values, whose mean lies where declaring `verdict` is just wrong."""

    certificate: Certificate
    verdict: Verdict
    low: float
    high: float
    mean: float

    def describe(self, more: float = 0.0) -> str:
        """Return the world in words, with the mean of new costs if that is higher."""
        mean = f"{self.mean:.3g} to {self.mean + more:.3g}" if more else f"mean {self.mean:.3g}"
        return f"{self.low:.3g} or {self.high:.3g}, {mean}"

    @property
    def is_of_extremes(self) -> bool:
        """Whether costs are 0 and 1: there a fleet's streams are tried one by one, too, which takes long."""
        return self.low == 0 and self.high == 1

    @property
    def is_adverse(self) -> bool:
        """Whether the wrong verdict is ADVERSE."""
        return self.verdict is Verdict.ADVERSE

    @property
    def delta(self) -> float:
        """What comes on top of a level: nothing, as the certificate holds here."""
        return 0.0

    @property
    def shift_limit(self) -> str:
        """Which limit on the shift goes with the verdict."""
        return "lower shift limit" if self.is_adverse else "upper shift limit"

    def certify(self, rng: np.random.Generator, runs: int) -> Iterator[tuple[Certificate, int]]:  # noqa: ARG002
        """Yield certificates, and how many of the runs have each: here all have the one."""
        yield self.certificate, runs

    def true_shift(self, certificate: Certificate) -> float:
        """Return how far the mean is from what a certificate's detectors compare with."""
        return self.mean - (certificate.upper if self.is_adverse else certificate.lower)

    def chance(self, more: float = 0.0) -> float:
        """Return the chance of the high cost, rounded to where the verdict is wrong."""
        chance = (self.mean + more - self.low) / (self.high - self.low)
        return float(np.nextafter(chance, 0.0 if self.is_adverse else 1.0))

    def draw(self, rng: np.random.Generator, shape: Shape, more: float = 0.0) -> Array:
        """Return new costs, of a mean that is so much higher."""
        return np.where(rng.random(shape) < self.chance(more), self.high, self.low)

    def datasets(self, rng: np.random.Generator, shape: Shape, more: float = 0.0) -> tuple[Array, Counts]:
        """Return datasets of new costs, one per row, and how often each was drawn."""
        return self.draw(rng, shape, more), np.ones(shape[0], dtype=np.int64)


@dataclass(frozen=True)
class Lab(World):
    """A world from which both the trials of a certificate like this one and the new ones come."""

    def describe(self, more: float = 0.0) -> str:
        """Return the world in words, with the mean of new costs if that is higher."""
        return f"{super().describe(more)}, lab drawn, too"

    @property
    def delta(self) -> float:
        """The certificate's, of the side that the verdict is about."""
        return self.certificate.delta_upper if self.is_adverse else self.certificate.delta_lower

    def certify(self, rng: np.random.Generator, runs: int) -> Iterator[tuple[Certificate, int]]:
        """Yield certificates from trials drawn again, and how many of the runs have each."""
        size = self.certificate.n or 1
        # Labs with as many high costs have the same certificate.
        counts = rng.multinomial(runs, self.chances(size))
        for highs in np.flatnonzero(counts).tolist():
            yield self.redrawn(highs), int(counts[highs])

    def redrawn(self, highs: int) -> Certificate:
        """Return the certificate of a lab with so many high costs."""
        like = self.certificate
        return Certificate.from_held_out(
            self.costs(np.array([highs]), like.n or 1)[0],
            method=None if like.predictions else cast("Any", like.method),
            binary=like.binary,
            delta_upper=like.delta_upper,
            delta_lower=like.delta_lower,
        )

    def true_shift(self, certificate: Certificate) -> float:  # noqa: ARG002
        """Return zero: nothing changed."""
        return 0.0

    def chances(self, n: int) -> Array:
        """Return the chances of 0 to n high costs among n: as many runs as one likes take no memory."""
        chances = binom.pmf(np.arange(n + 1), n, self.chance())
        return np.asarray(chances / chances.sum())

    def datasets(self, rng: np.random.Generator, shape: Shape, more: float = 0.0) -> tuple[Array, Counts]:
        """Return different datasets only: the order of their costs does not matter."""
        highs, times = np.unique(rng.binomial(shape[1], self.chance(more), shape[0]), return_counts=True)
        return self.costs(highs, shape[1]), times

    def costs(self, highs: Counts, n: int) -> Array:
        """Return datasets of n costs, one per number of high ones."""
        return np.where(np.arange(n) < highs[:, None], self.high, self.low)


def two_costs(verdict: Verdict, mean: float, *, binary: bool) -> list[tuple[float, float]]:
    """Return pairs of costs with a mean between them, on which evidence for a verdict is won most easily.

    Besides 0 and 1, these are 0 and twice the mean, and 0 and just above it: there hardly a cost is 0, and
    the first ones decide, which is the hardest world known. For BENIGN they are mirrored.
    """
    pairs = [(0.0, 1.0)]
    for factor in () if binary else (2, 1.05):
        pair = (0.0, factor * mean) if verdict is Verdict.ADVERSE else (1 - factor * (1 - mean), 1.0)
        if 0 <= pair[0] < pair[1] <= 1 and pair not in pairs:
            pairs.append(pair)
    return pairs
