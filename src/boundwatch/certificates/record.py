"""What a certificate keeps of its costs: enough to derive its limits again, little enough for one page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.schema import Probability
from boundwatch.bounds.cost_grid import STEPS, grid_points, split_on_grid
from boundwatch.errors import SchemaMismatch

Array = NDArray[np.float64]
_Count = Annotated[int, Meta(ge=0, le=1 << 53)]

MOST_POINTS = STEPS + 1
# This many costs show whether there are more values than a record keeps, without sorting millions.
_FIRST = 4096
_HEAVIEST = 1e15  # costs of one value; their sum must stay a whole number that arithmetic can hold
_SIZE = Meta(min_length=1, max_length=MOST_POINTS)


@dataclass(frozen=True)
class CostRecord:
    """Costs without their order: their values, and how many there are of each.

    More than 257 different values are put on a grid of as many points that keeps their mean. A limit by
    betting can only widen through that, see `boundwatch.bounds.cost_grid`.

    Attributes
    ----------
    values
        The different costs, in increasing order.
    weights
        How many there are of each; whole numbers unless the costs are on the grid.

    Examples
    --------
    >>> CostRecord.of(np.array([0.5, 0.25, 0.5]))
    CostRecord(values=(0.25, 0.5), weights=(1, 2))
    """

    values: Annotated[tuple[Probability, ...], _SIZE]
    weights: Annotated[tuple[Annotated[float, Meta(gt=0, le=_HEAVIEST)], ...], _SIZE]

    def __post_init__(self) -> None:
        for name in ("values", "weights"):  # a list could be changed, and not be hashed
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.values) != len(self.weights):
            raise SchemaMismatch(f"{len(self.values)} values, but {len(self.weights)} weights")
        if list(self.values) != sorted(set(self.values)):
            raise SchemaMismatch("its values do not increase")

    @classmethod
    def of(cls, costs: Array) -> CostRecord:
        """Return the record of costs that a certificate keeps."""
        if np.unique(costs[:_FIRST]).size <= MOST_POINTS:
            values, counts = np.unique(costs, return_counts=True)
            if values.size <= MOST_POINTS:
                return cls._where_positive(values, counts)
        return cls._where_positive(grid_points(), split_on_grid(costs))

    @classmethod
    def of_failures(cls, n: int, failures: int) -> CostRecord:
        """Return the record of n costs of 0 and 1.

        Examples
        --------
        >>> CostRecord.of_failures(10, 3)
        CostRecord(values=(0, 1), weights=(7, 3))
        """
        return cls._where_positive(np.array([0.0, 1.0]), np.array([n - failures, failures]))

    @classmethod
    def _where_positive(cls, values: Array, weights: NDArray[Any]) -> CostRecord:
        kept = weights > 0
        return cls(tuple(values[kept].tolist()), tuple(weights[kept].astype(np.float64).tolist()))

    def __repr__(self) -> str:
        return one_line(self, {"values": self.values, "weights": self.weights})

    def __str__(self) -> str:
        return f"{self.n} costs of {len(self.values)} values, with a mean of {self.mean:.6g}"

    @property
    def n(self) -> int:
        """How many costs there are."""
        return round(sum(self.weights))

    @property
    def mean(self) -> float:
        """The mean of the costs."""
        values, weights = self.arrays()
        return float(values @ weights / weights.sum())

    def arrays(self) -> tuple[Array, Array]:
        """Return values and weights for arithmetic."""
        return np.array(self.values), np.array(self.weights)

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain JSON values; whole numbers without a decimal point."""
        weights = [int(weight) if weight.is_integer() else weight for weight in self.weights]
        return {"values": list(self.values), "weights": weights}


@dataclass(frozen=True)
class Trials:
    """How many trials are behind costs that are means over clusters, and how many of them failed.

    Attributes
    ----------
    n
        The number of trials.
    failures
        How many failed; None if a trial may cost something between 0 and 1.

    Examples
    --------
    >>> Trials(10, 3) + Trials(10, 0)
    Trials(n=20, failures=3)
    """

    n: _Count
    failures: _Count | None = None

    def __add__(self, other: Trials) -> Trials:
        known = None if self.failures is None or other.failures is None else self.failures + other.failures
        return Trials(self.n + other.n, known)

    def __str__(self) -> str:
        failed = "" if self.failures is None else f", {self.failures} failed"
        return f"{self.n} trials{failed}"

    def to_dict(self) -> dict[str, int | None]:
        """Return plain JSON values."""
        return dict(vars(self))
