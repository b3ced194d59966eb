"""Episodes: their costs, where they came from, and what is known about them."""

from __future__ import annotations

import inspect
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import one_line
from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import check_costs, check_flag
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import Trials
from boundwatch.episodes.compatibility import compared
from boundwatch.episodes.measure import Design, Measure
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch, Remedy

Role = Literal["strata", "cluster", "by", "policy", "id", "pair"]
ROLES: tuple[Role, ...] = get_args(Role)
Keys = Mapping[Role, tuple[str, ...]]
_IN_BETWEEN = "if a trial can cost something in between, say so: --no-binary (binary=False)"
_NO_KEYS: Keys = FrozenMapping()


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Episodes:
    """The costs of some episodes, and where they came from.

    It can be used wherever an array of costs can. Trials of one cluster are not independent: they become one
    cost, their mean (within each stratum, task and policy), and are no longer binary unless each is alone.

    Parameters
    ----------
    costs
        One cost per episode, in [0, 1], higher is worse.
    strata, clusters
        The stratum (task, condition) and the cluster (scene, seed, day) of each trial.
    binary
        Whether every cost is 0 or 1; left out, successes are, and costs among which there are 0 and 1 and
        nothing else.
    inferred
        Whether nothing but these looks says so.
    measure, design
        How rows became costs, and how they relate to each other.
    keys
        What else is known of each episode, by its role in the design.
    source, file_format, unit, numbers
        Where they were read, and where each one is there: ``unit`` and its number.
    repeats
        The trials behind each cost, if these are means over clusters; left out, `costs` are trials.
    warnings, notes
        What may make the guarantees wrong, and what was done to read them; one sentence each.

    Examples
    --------
    >>> episodes = Episodes([0.1, 0.2, 0.3], strata=["mug", "can", "mug"])
    >>> episodes.keys
    {'strata': ('mug', 'can', 'mug')}
    >>> scenes = Episodes([0, 1, 1, 1], clusters=["a", "a", "b", "b"])
    >>> scenes.costs, scenes.binary, str(scenes.trials)
    (array([0.5, 1. ]), False, '4 trials, 3 failed')
    """

    costs: NDArray[np.float64]
    binary: bool
    inferred: bool
    measure: Measure
    design: Design
    keys: Keys
    source: str
    file_format: str
    unit: str
    numbers: Sequence[int]
    repeats: tuple[Trials, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    def __init__(  # noqa: PLR0913  (each is a field that a file fills in; people give two or three)
        self,
        costs: ArrayLike,
        *,
        strata: Sequence[Any] | None = None,
        clusters: Sequence[Any] | None = None,
        binary: bool | None = None,
        inferred: bool = False,
        measure: Measure | None = None,
        design: Design | None = None,
        keys: Mapping[Role, Sequence[Any]] | None = None,
        source: str = "",
        file_format: str = "",
        unit: str = "episode",
        numbers: Sequence[int] = (),
        repeats: Sequence[Trials] = (),
        warnings: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        binary = None if binary is None else check_flag(binary, "binary")
        values, measure = check_costs(costs, binary=bool(binary)), measure or Measure("cost")
        if binary is None:
            inferred = not measure.succeeds and looks_binary(values)
            binary = measure.succeeds or inferred
            notes = (*notes, binary_note(values.size)) if inferred else notes
        design = design or Design()
        named = _keys({"strata": strata, "cluster": clusters, **(keys or {})}, values.size)
        if "cluster" in named:
            design = design if design.cluster else replace(design, cluster="cluster")
            if not repeats:
                values, rows, repeats = _clustered(values, named, binary=binary)
                named, numbers = _of_rows(named, rows), [numbers[row] for row in rows] if len(numbers) else ()
                binary = binary and all(each.n == 1 for each in repeats)
        fields = {"costs": values, "binary": binary, "inferred": inferred, "measure": measure}
        fields |= {"design": design, "keys": named, "source": source, "file_format": file_format}
        fields |= {"unit": unit, "numbers": numbers, "repeats": tuple(repeats)}
        fields |= {"warnings": tuple(warnings), "notes": tuple(notes)}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.costs, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def trials(self) -> Trials | None:
        """How many trials there are behind costs that are means over clusters; None elsewhere."""
        return reduce(add, self.repeats) if self.repeats else None

    def take(self, rows: Sequence[int] | NDArray[np.int64], **changes: Any) -> Episodes:
        """Return some of the episodes, in the order of `rows`, with further fields changed."""
        places = np.asarray(rows, dtype=np.int64)
        listed = places.tolist() if self.keys or len(self.numbers) or self.repeats else []
        fields: dict[str, Any] = {"costs": self.costs[places], "keys": _of_rows(self.keys, listed)}
        fields["numbers"] = [self.numbers[row] for row in listed] if len(self.numbers) else ()
        fields["repeats"] = [self.repeats[row] for row in listed] if self.repeats else ()
        return replace(self, **fields | changes)

    def as_promised(self) -> Episodes:
        """Return the same, binary if that was said or their measure says so, not if they look so by now.

        Where trials are counted as they come, or policies compared, a later cost may be in between.
        """
        if not self.inferred:
            return self
        looks = f"{self.source}: " if self.source else ""
        looks += "all costs are 0 or 1; if they always are, say that they are binary: fewer trials will do"
        notes = (looks, *(note for note in self.notes if not note.endswith(_IN_BETWEEN)))
        return replace(self, binary=False, inferred=False, notes=notes)

    def against(
        self, certificate: Certificate | Mapping[str, Certificate], *, allow_own: bool = False
    ) -> Episodes:
        """Return the same with warnings if a certificate (or one per task) cannot judge them.

        They may be measured in another way than its own, or be largely the same.

        Raises
        ------
        ProvenanceMismatch
            If they are, or begin with, the very costs that the certificate was made from, unless `allow_own`.
        """
        return compared(self, certificate, allow_own=allow_own)

    def split(self, role: Literal["by", "policy"] = "by") -> dict[str, Episodes]:
        """Return the episodes of each robot or task (the column `by`) or policy, in the order of appearance.

        Examples
        --------
        >>> read = Episodes([0.1, 0.2, 0.3], keys={"by": ("a", "b", "a")})
        >>> {task: part.costs.tolist() for task, part in read.split().items()}
        {'a': [0.1, 0.3], 'b': [0.2]}
        """
        design = replace(self.design, by=None) if role == "by" else replace(self.design, policy=None)
        keys = {name: self.keys[name] for name in self.keys if name != role}
        others = replace(self, design=design, keys=keys)
        return {task: others.take(rows) for task, rows in rows_of(self.keys.get(role, ())).items()}

    def __repr__(self) -> str:
        facts: dict[str, Any] = {"n": self.costs.size, "mean_cost": float(self.costs.mean())}
        facts |= {"binary": self.binary, "source": self.source or None, "measure": str(self.measure)}
        return one_line(self, facts | {"by": self.design.by, "warnings": self.warnings or None})

    def __str__(self) -> str:
        origin = f" from {self.source}" if self.source else ""
        return f"{self.costs.size} episodes{origin}, with a mean cost of {self.costs.mean():.4g}"


def _of_rows(keys: Keys, rows: Sequence[int]) -> Keys:
    return FrozenMapping({role: tuple(names[row] for row in rows) for role, names in keys.items()})


def _keys(given: Mapping[Role, Sequence[Any] | None], n: int) -> Keys:
    found: dict[Role, tuple[str, ...]] = {}
    for role, names in given.items():
        if role not in ROLES:
            remedy = f"choose from {ROLES}"
            raise InvalidSetting("is not a role of a column", name="keys", value=role, remedy=remedy)
        if names is not None:
            if len(names) != n:
                problem = f"has {len(names)} values for {n} episodes"
                raise InvalidSetting(problem, name=role, remedy="give one per episode")
            found[role] = tuple(map(str, names))
    return FrozenMapping(found)


def _clustered(
    costs: NDArray[np.float64], keys: Keys, *, binary: bool
) -> tuple[NDArray[np.float64], list[int], tuple[Trials, ...]]:
    """Return the mean cost of each cluster, in the order of appearance, its first row and its trials.

    Trials of one cluster that are of different tasks or policies are different clusters. One that occurs in
    several strata is refused: a day that they share makes them alike, and their mean needs independent ones.
    """
    tasks: dict[str, str] = {}
    for name, task in dict.fromkeys(zip(keys["cluster"], keys.get("strata", ()), strict=False)):
        if (other := tasks.setdefault(name, task)) != task:
            problem = f"occurs in {other!r} and in {task!r}, so it may be one, or two with the same name"
            one = "if it is one, such as a day, it makes their trials alike: leave out "
            two = "; if they are two, rename them, or say "
            remedy: Remedy = (one, Argument("strata"), two, Argument("as_is", True))
            raise InvalidSetting(problem, name="cluster", value=name, remedy=remedy)
    parts = [keys[role] for role in keys if role in ("cluster", "strata", "by", "policy")]
    groups = list(rows_of(list(zip(*parts, strict=True))).values())
    pairs = keys.get("pair", ())
    for rows in groups if pairs else ():
        if len({pairs[row] for row in rows}) > 1:
            remedy = ("give the same columns as ", Argument("cluster"), ": clusters are matched, not trials")
            several = f"tells trials of {keys['cluster'][rows[0]]!r} apart, which are one unit"
            raise InvalidSetting(several, name="pair_by", remedy=remedy)
    found = np.array([costs[rows].mean() for rows in groups])
    sums = [int(costs[rows].sum()) if binary else None for rows in groups]
    repeats = tuple(Trials(rows.size, failed) for rows, failed in zip(groups, sums, strict=True))
    return found, [int(rows[0]) for rows in groups], repeats


def describe(repeats: Sequence[Trials], unit: str) -> str:
    """Say how many clusters there are and what is in them: 20 scenes x 10 repeats, 200 trials, 43 failed."""
    sizes = sorted({each.n for each in repeats})
    each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    times = "" if sizes == [1] else f" x {each} repeats"
    several = unit if len(repeats) == 1 or unit.endswith("s") else f"{unit}s"
    return f"{len(repeats)} {several}{times}: {sum(repeats, Trials(0, 0))}"


def looks_binary(costs: NDArray[np.float64]) -> bool:
    """Return whether there are failures and successes and nothing else; all of one kind tell nothing."""
    if costs[0] not in (0, 1):
        return False
    failed, passed = costs == 1, costs == 0
    return bool(failed.any() and passed.any() and (failed | passed).all())


def binary_note(n: int) -> str:
    """Say that costs were taken for failures and successes by their looks."""
    return f"all {n} costs are 0 or 1, so each is read as a trial that failed (1) or not; {_IN_BETWEEN}"


def compatible(costs: ArrayLike, certificate: Certificate) -> ArrayLike:
    """Return costs as they are; of `Episodes`, warn in Python of what makes a verdict doubtful."""
    if not isinstance(costs, Episodes):
        return costs
    if certificate.design.cluster is not None and not costs.repeats:
        problem = f"the certificate counts each {certificate.design.cluster} once, but these are trials"
        remedy = ("say which trial is of which with ", Argument("clusters"))
        raise InvalidSetting(problem, where=Place(costs.source) if costs.source else None, remedy=remedy)
    try:
        warnings = costs.against(certificate).warnings
    except ProvenanceMismatch as error:
        error.remedy += (" (their .costs show what it would say)",)
        raise
    for warning in warnings:
        python_warnings.warn(warning, stacklevel=_level_of_caller())
    return costs.costs


def _level_of_caller() -> int:
    """Return the `stacklevel` at which the caller of this function warns whoever called boundwatch."""
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "boundwatch":
        level, frame = level + 1, frame.f_back
    return level
