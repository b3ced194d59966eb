"""What a certificate keeps: its origin, and of its costs and tasks enough to derive its limits again."""

from __future__ import annotations

import hashlib
import math
import operator
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
import scipy
from msgspec import Meta, json
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.files import sha256_file
from boundwatch._support.schema import Digest, FrozenMapping, Probability
from boundwatch._version import __version__
from boundwatch.bounds.audit import Audited
from boundwatch.bounds.bets import STEPS, grid_points, split_on_grid
from boundwatch.bounds.predicted_mean import Luck
from boundwatch.bounds.strata import in_proportion
from boundwatch.errors import InvalidSetting, Place, SchemaMismatch

Array = NDArray[np.float64]
_Count = Annotated[int, Meta(ge=0, le=1 << 53)]

MOST_POINTS = STEPS + 1
_FIRST = 4096  # so many costs show whether there are more values than a record keeps
_HEAVIEST = 1e15  # costs of one value; their sum must stay a whole number that arithmetic can hold
_SIZE = Meta(min_length=1, max_length=MOST_POINTS)
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$", max_length=25)]
"""A time in ISO 8601 with its zone."""
Outcomes = Annotated[str, Meta(pattern="^[01]+$")] | Annotated[tuple[Probability, ...], Meta(min_length=1)]
"""Costs in their order: one character per trial if they are 0 and 1."""


def plain(value: object) -> Any:
    """Return plain JSON values: of a dataclass its fields, of a tuple a list."""
    return json.decode(json.encode(value))


@dataclass(frozen=True)
class CostRecord:
    """Costs without their order: their values, and how many there are of each.

    More than 257 different values are put on a grid of as many points that keeps their mean. A limit by
    betting can only widen through that, see `boundwatch.bounds.bets`.

    Attributes
    ----------
    values
        The different costs, in increasing order.
    weights
        How many there are of each; whole numbers unless the costs are on the grid.
    """

    values: Annotated[tuple[Probability, ...], _SIZE]
    weights: Annotated[tuple[Annotated[float, Meta(gt=0, le=_HEAVIEST)], ...], _SIZE]

    def __post_init__(self) -> None:
        # Tuples: a list could be changed, and not be hashed. Whole numbers have no decimal point in a file.
        weights = tuple(int(each) if float(each).is_integer() else each for each in self.weights)
        object.__setattr__(self, "values", tuple(self.values))
        object.__setattr__(self, "weights", weights)
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
        """Return the record of n costs of 0 and 1."""
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
        return np.array(self.values), np.array(self.weights, dtype=np.float64)


@dataclass(frozen=True)
class Trials:
    """How many trials are behind costs that are means over clusters, and how many of them failed.

    Attributes
    ----------
    n
        The number of trials.
    failures
        How many failed; None if a trial may cost something between 0 and 1.
    """

    n: _Count
    failures: _Count | None = None

    def __add__(self, other: Trials) -> Trials:
        known = None if self.failures is None or other.failures is None else self.failures + other.failures
        return Trials(self.n + other.n, known)

    def __str__(self) -> str:
        return f"{self.n} trials" + ("" if self.failures is None else f", {self.failures} failed")


@dataclass(frozen=True)
class AuditRecord:
    """What is kept of a judge and of the labels that audit it.

    Attributes
    ----------
    counts
        Of binary costs: how many were judged, drawn and found to have failed, by what the judge said.
    costs
        Of others: the judge's costs, the labels, and (label - judge + 1)/2 of each labeled episode.
    units
        How many independent units all judged episodes are worth, of several tasks or with repeats of scenes.
    """

    counts: Audited | None = None
    costs: tuple[CostRecord, CostRecord, CostRecord] | None = None
    units: Annotated[int, Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        sizes = np.array([*(self.counts or ((1, 0), (1, 0))), (0, 0)])
        if (self.counts is None) == (self.costs is None) or (np.diff(sizes, axis=0) > 0).any():
            raise SchemaMismatch("has counts that are not of one draw", name="audit")

    @property
    def n(self) -> int:
        """How many labels there are."""
        return sum(self.counts.drawn) if self.counts else self.costs[1].n if self.costs else 0

    @property
    def failures(self) -> Audited:
        """The counts; refused for costs that are not 0 or 1, tasks and repeats of scenes."""
        if self.counts is None or self.units is not None:
            problem = "is of costs that are not 0 or 1" if self.units is None else "is of tasks or repeats"
            raise InvalidSetting(problem, name="audit", remedy="certify it, and compare the limits")
        return self.counts

    @property
    def mean(self) -> float:
        """The mean over all judged episodes, as the labels have it: where there is none, as judged."""
        if self.costs:
            return min(max(self.costs[0].mean + 2 * self.costs[2].mean - 1, 0.0), 1.0)
        sizes, drawn, failures = np.array(self.counts)
        return float(sizes @ np.where(drawn, failures / np.maximum(drawn, 1), (0, 1)) / sizes.sum())

    def __str__(self) -> str:
        judged = sum(self.counts.judged) if self.counts else self.costs[0].n if self.costs else 0
        return f"{self.n} label{'' if self.n == 1 else 's'} of {judged:,} judged episodes"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: what there is."""
        return {name: each for name, each in plain(vars(self)).items() if each is not None}


_Lucks = tuple[float, ...]


@dataclass(frozen=True)
class PredictionRecord:
    """What is kept of trials and their predictions, in their order; see `boundwatch.bounds.predicted_mean`.

    Attributes
    ----------
    outcomes
        The costs.
    luck, most, least
        How much higher predictions were than those for scenes that were not run, and could have been.
    """

    outcomes: tuple[Probability, ...]
    luck: _Lucks
    most: _Lucks
    least: _Lucks

    def __post_init__(self) -> None:
        if {len(self.luck), len(self.most), len(self.least)} != {len(self.outcomes)}:
            raise SchemaMismatch("does not have one of each per trial", name="predictions")
        rows = zip(self.least, self.luck, self.most, strict=True)
        if not all(-1 <= low <= luck <= high <= 1 for low, luck, high in rows):
            raise SchemaMismatch("has luck that no scene of its round could have had", name="predictions")

    @classmethod
    def of(cls, costs: Sequence[float], lucks: Sequence[Luck]) -> PredictionRecord:
        """Return the record of trials."""
        columns = zip(*((luck.value, luck.most, luck.least) for luck in lucks), strict=True)
        return cls(tuple(costs), *map(tuple, columns))

    @property
    def trials(self) -> list[tuple[float, Luck]]:
        """The cost and the luck of each trial."""
        lucks = zip(self.luck, self.most, self.least, strict=True)
        return [(cost, Luck(*luck)) for cost, luck in zip(self.outcomes, lucks, strict=True)]

    def __str__(self) -> str:
        return f"{len(self.luck)} trials with their predictions"


@dataclass(frozen=True)
class Provenance:
    """When, with what and from what a certificate was made.

    Attributes
    ----------
    created
        UTC time in ISO 8601.
    versions
        Versions of boundwatch, Python and the numerical libraries.
    seed
        The seed behind the episodes or the policy drawn, where one was given.
    costs_sha256
        SHA-256 of the costs as little-endian float64 in their order; None without costs.
    policy_sha256
        SHA-256 of the policy's file, where one was given.
    """

    created: Moment
    versions: Mapping[str, str]
    seed: int | None = None
    costs_sha256: Digest | None = None
    policy_sha256: Digest | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", FrozenMapping(self.versions))

    def __str__(self) -> str:
        made_with = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return f"made {self.created} with {made_with}"


_VERSIONS = FrozenMapping(
    boundwatch=__version__,
    python=platform.python_version(),
    numpy=np.__version__,
    scipy=scipy.__version__,
)


def provenance_of(
    costs: NDArray[np.float64] | None, seed: int | None, policy: str | os.PathLike[str] | None
) -> Provenance:
    """Return the provenance of a certificate that is made now, from these costs and this policy's file."""
    try:
        seed = None if seed is None else int(operator.index(seed))
    except TypeError:
        problem, remedy = "is not a whole number", "give one, or leave it out"
        raise InvalidSetting(problem, name="seed", value=seed, remedy=remedy) from None
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_VERSIONS,
        seed=seed,
        costs_sha256=None if costs is None else costs_digest(costs),
        policy_sha256=None if policy is None else sha256_file(policy),
    )


def costs_digest(costs: NDArray[np.float64]) -> str:
    """Return the SHA-256 of the costs in their order, the same whatever file they were read from."""
    return hashlib.sha256(np.ascontiguousarray(costs, dtype="<f8").data).hexdigest()


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
    """

    name: Annotated[str, Meta(min_length=1)]
    weight: Annotated[float, Meta(gt=0, le=1)]
    n: Annotated[int, Meta(ge=1, le=1 << 53)]
    mean_cost: Probability
    outcomes: Outcomes

    def __post_init__(self) -> None:
        if len(self.outcomes) != self.n:
            raise SchemaMismatch(f"{len(self.outcomes)} outcomes of {self.name!r}, but n = {self.n}")

    @property
    def costs(self) -> Array:
        """The costs in their order."""
        return np.array([float(each) for each in self.outcomes])

    @property
    def failures(self) -> int:
        """How many of the trials failed, if costs are 0 and 1."""
        return round(self.n * self.mean_cost)


def check_strata(strata: Sequence[Stratum], method: str) -> None:
    """Refuse strata that are named twice, are no shares of one mean, or need another method."""
    names = [each.name for each in strata]
    if len(set(names)) < len(names):
        raise SchemaMismatch("names one twice", name="strata", value=names)
    if strata and not math.isclose(total := math.fsum(each.weight for each in strata), 1, abs_tol=1e-9):
        raise SchemaMismatch(f"have weights that add up to {total:.10g}, not 1", name="strata")
    of_strata = method in ("weighted", "rounds") or (strata and method in ("exact", "betting"))
    if bool(strata) != bool(of_strata):
        problem = f"{'does not go with' if strata else 'needs'} strata"
        raise SchemaMismatch(problem, name="method", value=method)
    if method == "rounds":
        rounds_of(strata)
    elif method != "weighted" and strata and not is_balanced(strata):
        raise SchemaMismatch("needs trials in proportion to the weights", name="method", value=method)


def strata_of(
    costs: Array, names: Sequence[str], weights: Mapping[str, float], *, binary: bool
) -> tuple[Stratum, ...]:
    """Return what a certificate keeps of each task, from the costs of all and the task of each.

    Tasks count as `weights` says, all that occur alike if it is empty.
    """
    rows: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        rows.setdefault(name, []).append(place)
    known = dict(weights) or dict.fromkeys(rows, 1.0)
    refuse_other_tasks(rows, known)
    return _in_order({name: costs[rows[name]] for name in known}, known, binary=binary)


def _in_order(
    costs: Mapping[str, Array], weights: Mapping[str, float], *, binary: bool
) -> tuple[Stratum, ...]:
    total, found = math.fsum(weights.values()), []
    for name, weight in weights.items():
        each = costs[name]
        kept = "".join("1" if cost else "0" for cost in each) if binary else tuple(each.tolist())
        found.append(Stratum(name, weight / total, each.size, float(each.mean()), kept))
    return tuple(found)


def tasks_of(costs: object) -> Sequence[str] | None:
    """Return the task of each cost, where costs come with their tasks, as `Episodes` do."""
    keys = getattr(costs, "keys", None)
    return keys.get("strata") if isinstance(keys, Mapping) else None


def is_balanced(strata: Sequence[Stratum]) -> bool:
    """Return whether the numbers of trials are in proportion to the weights."""
    return in_proportion([each.n for each in strata], [each.weight for each in strata])


def refuse_other_tasks(found: Iterable[str], known: Iterable[str]) -> None:
    """Refuse trials of a task whose mean is not meant, or none of one whose mean is."""
    given, meant = list(found), list(known)
    for name in given:
        refuse_unknown(name, meant)
    if missing := [name for name in meant if name not in given]:
        problem = f"there are no trials of {', '.join(missing)}, and the mean over all tasks is meant"
        raise InvalidSetting(problem, remedy="run them, or certify without")


def mean_over(strata: Sequence[Stratum]) -> float:
    """Return the weighted mean of the costs over strata."""
    return math.fsum(each.weight * each.mean_cost for each in strata)


class Rounds:
    """Trials of a fixed set of tasks in rounds, in which each task is run once; what completes none waits.

    The r-th round has the r-th trial of each task, in whatever order they come.
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
        """How many trials of each task complete no round yet; the others are not named."""
        done = self.complete
        return {name: len(costs) - done for name, costs in self.costs.items() if len(costs) > done}

    def array(self) -> Array:
        """Return the costs of the complete rounds, (rounds, tasks)."""
        return np.array([costs[: self.complete] for costs in self.costs.values()]).T

    def strata(self, *, binary: bool) -> tuple[Stratum, ...]:
        """Return what a certificate keeps of the complete rounds."""
        complete = {name: np.array(costs[: self.complete]) for name, costs in self.costs.items()}
        return _in_order(complete, self.weights, binary=binary)


def rounds_of(strata: Sequence[Stratum]) -> Array:
    """Return the costs of strata that are kept in their order, (rounds, tasks)."""
    if len({each.n for each in strata}) != 1:
        raise SchemaMismatch("do not keep equally many outcomes each, in their order", name="strata")
    return np.array([each.costs for each in strata]).T


def refuse_unknown(name: str, known: Iterable[str], where: Place | None = None) -> None:
    """Refuse a task that is none of those whose mean is meant."""
    if name not in known:
        problem, remedy = "is not a task whose mean is meant", f"give one of {', '.join(map(repr, known))}"
        raise InvalidSetting(problem, where=where, name="stratum", value=name, remedy=remedy)
