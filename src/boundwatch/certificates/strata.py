"""What a certificate keeps of each task, if the mean over a fixed set of tasks is meant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from boundwatch._support.schema import Probability
from boundwatch.errors import InvalidSetting, SchemaMismatch

Array = NDArray[np.float64]

Outcomes = Annotated[str, Meta(pattern="^[01]+$")] | Annotated[tuple[Probability, ...], Meta(min_length=1)]
"""Costs in their order: one character per trial if they are 0 and 1."""


@dataclass(frozen=True)
class Stratum:
    """One of the tasks or conditions whose mean is certified, and what is kept of its costs.

    Attributes
    ----------
    name, weight
        The task, and its weight in the mean; the weights of all add up to 1.
    n, mean_cost
        Number and mean of its costs.
    outcomes
        Its costs in their order, on which the limits depend: ``"0100"`` or ``(0.1, 0.4)``.

    Examples
    --------
    >>> Stratum("mug", 0.5, 4, 0.25, "0100").costs
    array([0., 1., 0., 0.])
    """

    name: Annotated[str, Meta(min_length=1)]
    weight: Annotated[float, Meta(gt=0, le=1)]
    n: Annotated[int, Meta(ge=1, le=1 << 53)]
    mean_cost: Probability
    outcomes: Outcomes

    def __post_init__(self) -> None:
        if len(self.outcomes) != self.n:
            raise SchemaMismatch(f"{len(self.outcomes)} outcomes of {self.name!r}, but n = {self.n}")

    @classmethod
    def in_order(cls, name: str, weight: float, costs: Array, *, binary: bool) -> Stratum:
        """Return the stratum of costs that are kept in their order."""
        kept: str | tuple[float, ...] = tuple(costs.tolist())
        if binary:
            kept = "".join("1" if cost else "0" for cost in costs)
        return cls(name, weight, costs.size, float(costs.mean()), kept)

    @property
    def costs(self) -> Array:
        """The costs in their order."""
        return np.array([float(each) for each in self.outcomes])

    @property
    def failures(self) -> int:
        """How many of the trials failed, if costs are 0 and 1."""
        return round(self.n * self.mean_cost)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return vars(self) | ({} if isinstance(self.outcomes, str) else {"outcomes": list(self.outcomes)})


def check_strata(strata: Sequence[Stratum]) -> None:
    """Refuse strata that are named twice, or whose weights are not shares of one mean."""
    names = [each.name for each in strata]
    if len(set(names)) < len(names):
        raise SchemaMismatch("names one twice", name="strata", value=names)
    if strata and not math.isclose(total := math.fsum(each.weight for each in strata), 1, abs_tol=1e-9):
        raise SchemaMismatch(f"have weights that add up to {total:.10g}, not 1", name="strata")


def mean_over(strata: Sequence[Stratum]) -> float:
    """Return the weighted mean of the costs over strata."""
    return math.fsum(each.weight * each.mean_cost for each in strata)


class Rounds:
    """Trials of a fixed set of tasks in rounds, in which each task is run once; what completes none waits.

    The r-th round has the r-th trial of each task, in whatever order they come.

    Examples
    --------
    >>> rounds = Rounds({"mug": 2.0, "bowl": 1.0})
    >>> for task, cost in [("mug", 0.0), ("mug", 1.0), ("bowl", 0.5)]:
    ...     rounds.add(cost, task)
    >>> rounds.complete, rounds.waiting
    (1, {'mug': 1, 'bowl': 0})
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = dict(weights)
        self.costs: dict[str, list[float]] = {name: [] for name in weights}

    def add(self, cost: float, name: str) -> None:
        """Count one trial."""
        self.costs[name].append(cost)

    @property
    def complete(self) -> int:
        """How many rounds are complete."""
        return min(map(len, self.costs.values()))

    @property
    def waiting(self) -> dict[str, int]:
        """How many trials of each task complete no round yet."""
        return {name: len(costs) - self.complete for name, costs in self.costs.items()}

    def array(self) -> Array:
        """Return the costs of the complete rounds, (rounds, tasks)."""
        return np.array([costs[: self.complete] for costs in self.costs.values()]).T

    def strata(self, *, binary: bool) -> tuple[Stratum, ...]:
        """Return what a certificate keeps of the complete rounds."""
        total = math.fsum(self.weights.values())
        each = zip(self.weights.items(), self.array().T, strict=True)
        return tuple(
            Stratum.in_order(name, weight / total, costs, binary=binary) for (name, weight), costs in each
        )


def rounds_of(strata: Sequence[Stratum]) -> Array:
    """Return the costs of strata that are kept in their order, (rounds, tasks)."""
    if len({each.n for each in strata}) != 1:
        raise SchemaMismatch("do not keep equally many outcomes each, in their order", name="strata")
    return np.array([each.costs for each in strata]).T


def refuse_unknown(name: str, known: Iterable[str]) -> None:
    """Refuse a task that is none of those whose mean is meant."""
    if name not in known:
        remedy = f"give one of {', '.join(map(repr, known))}"
        raise InvalidSetting("is not a task whose mean is meant", name="stratum", value=name, remedy=remedy)
