"""Several policies at once: who is better than whom, with one error rate for all statements together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.describing import InNotebook, frame, html, one_line, table
from boundwatch._support.validation import check_costs, check_flag, check_level
from boundwatch.bounds.bets import Bets, CostGrid
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.finding import ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.detectors.evidence import bounded_exp
from boundwatch.errors import InvalidCost, InvalidSetting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RankedPolicy:
    """One policy of a `Ranking`.

    Attributes
    ----------
    name, n, mean_cost
        Its name, and the number and mean of its costs.
    letters
        Its groups. Two policies that share a letter cannot be told apart.
    lower, upper
        Limits on its expected cost. Those of all policies hold at once, at all times, with probability at
        least 1 - `alpha`.
    """

    name: str
    n: int
    mean_cost: float
    letters: str
    lower: float
    upper: float

    @property
    def row(self) -> tuple[str, str, str, str, str]:
        """Its name, letters, number of trials, mean cost and limits, as tables show them."""
        limits = f"{self.lower:.4f} to {self.upper:.4f}"
        return self.name, self.letters, str(self.n), f"{self.mean_cost:.4f}", limits

    def __str__(self) -> str:
        name, letters, n, mean, limits = self.row
        return f"{name} (group {letters}): mean cost {mean} in {n} trials, expected {limits}"


@dataclass(frozen=True)
class RankedPair:
    """What is known about two policies of a `Ranking`.

    Attributes
    ----------
    better, worse
        The policy with the lower mean cost over their common trials, and the other.
    decided
        Whether it is shown that `better` has the lower expected cost.
    pairs
        How many trials of each were compared.
    e_value
        The e-value against "it does not".
    adjusted_p
        The smallest family-wise error rate at which it is shown.
    """

    better: str
    worse: str
    decided: bool
    pairs: int
    e_value: float
    adjusted_p: float

    def __str__(self) -> str:
        shown = "is shown to be" if self.decided else "is not shown to be"
        return f"{self.better} {shown} better than {self.worse} after {self.pairs} pairs"


@dataclass(frozen=True)
class Ranking(InNotebook):
    """The answer of `rank`.

    Attributes
    ----------
    policies
        Every policy, the lowest mean cost first.
    pairs
        Every pair of them.
    alpha, paired
        How they were compared.
    next_pair
        The two policies that are worth testing next; None if all pairs are decided.
    """

    policies: tuple[RankedPolicy, ...]
    pairs: tuple[RankedPair, ...]
    alpha: float
    paired: bool
    next_pair: tuple[str, str] | None

    @property
    def best(self) -> tuple[str, ...]:
        """The policies of which none is shown to be worse than another."""
        beaten = {pair.worse for pair in self.pairs if pair.decided}
        return tuple(policy.name for policy in self.policies if policy.name not in beaten)

    def __repr__(self) -> str:
        shown = {"policies": len(self.policies), "best": self.best, "alpha": self.alpha}
        return one_line(self, shown | {"paired": self.paired, "next_pair": self.next_pair})

    def _repr_html_(self) -> str:
        head = ("policy", "group", "trials", "mean cost", "expected cost")
        return html(self, table([each.row for each in self.policies], head))

    def to_dict(self) -> dict[str, Any]:
        """Return the ranking as plain JSON values."""
        return dataclasses.asdict(self) | {"best": self.best}

    def to_frame(self) -> Any:
        """Return a data frame with one row per policy (extra ``frame``)."""
        return frame([dataclasses.asdict(policy) for policy in self.policies])


def rank(
    costs: Mapping[str, ArrayLike],
    alpha: float = 0.05,
    *,
    paired: bool = False,
    binary: bool = False,
) -> Ranking:
    """Compare several policies with each other, with one error rate for all statements together.

    **Guarantee**: with probability at least 1 - `alpha`, no pair is called decided wrongly, at all times at
    once: run it again after every round of trials. **Assumes**: costs in [0, 1]; unpaired: i.i.d. trials
    of each policy, independent of the others'; paired: i.i.d. rounds, one trial of each policy per round.
    All policies are listed, also those that did badly: leaving some out after a look voids the guarantee.

    Each ordered pair has an e-value from bets on the differences. By closed testing, a pair is decided when
    the average of its e-value and any others is at least 1/alpha. Costs of 0 and 1 are decided by the exact
    tables of `PolicyComparison` instead, with alpha shared by all ordered pairs until one is decided, and
    then by as many as can still be wrong. Unequal numbers of trials are allowed: the i-th cost of one is
    compared with the i-th of the other.

    Parameters
    ----------
    costs
        The costs of each policy by its name, at least two policies.
    alpha
        Probability of any wrong statement.
    paired
        Whether the i-th trials of all policies share their seed or scene.
    binary
        Promise that every cost is always 0 or 1, which takes fewer rounds. That all are so far is no promise.
        Tasks that take turns are not i.i.d. trials: leave it out, and look after complete turns.

    Examples
    --------
    >>> import boundwatch as bw
    >>> costs = {"v1": [1, 0, 1, 1] * 15, "v2": [0, 1, 0, 0] * 15, "v3": [0, 0, 0, 1] * 15}
    >>> ranking = bw.rank(costs, binary=True)
    >>> [(policy.name, policy.letters) for policy in ranking.policies]
    [('v2', 'a'), ('v3', 'a'), ('v1', 'b')]
    >>> ranking.best, ranking.next_pair
    (('v2', 'v3'), ('v2', 'v3'))
    """
    alpha, paired = check_level(alpha, "alpha"), check_flag(paired, "paired")
    checked = _check_policies(costs, paired=paired)
    names = sorted(checked, key=lambda name: float(checked[name].mean()))  # stable: ties stay in their order
    logs = {(a, b): _log_e_value(checked[a], checked[b]) for a, b in permutations(names, 2)}
    adjusted = dict(zip(logs, close(np.array(list(logs.values()))), strict=True))
    if check_flag(binary, "binary") and not all(np.isin(each, (0.0, 1.0)).all() for each in checked.values()):
        raise InvalidCost("not all costs are 0 or 1", remedy="binary costs were promised")
    shown = _shown(checked, alpha, paired=paired) if binary else set()
    pairs = []
    for a, b in combinations(names, 2):
        better, worse = (a, b) if logs[a, b] >= logs[b, a] else (b, a)
        better, worse = next((pair for pair in ((a, b), (b, a)) if pair in shown), (better, worse))
        p_value = min(1.0, math.exp(-adjusted[better, worse]))
        decided = p_value <= alpha
        if binary:  # as in `joint_p_value`: the verdict is another event than that of the e-values
            decided = (better, worse) in shown
            p_value = min(p_value, alpha) if decided else min(p_value + alpha, 1.0)
        n, e_value = min(checked[a].size, checked[b].size), bounded_exp(logs[better, worse])
        pairs.append(RankedPair(better, worse, decided, n, e_value, p_value))
    letters = letter_display(names, [(pair.better, pair.worse) for pair in pairs if pair.decided])
    policies = [
        RankedPolicy(
            name, each.size, float(each.mean()), letters[name], *_limits(each, alpha / (2 * len(names)))
        )
        for name, each in ((name, checked[name]) for name in names)
    ]
    return Ranking(tuple(policies), tuple(pairs), alpha, paired, _next_pair(pairs, names[0]))


def _shown(costs: Mapping[str, Array], alpha: float, *, paired: bool) -> set[tuple[str, str]]:
    """Return who is shown to be better than whom by exact tables; a cost is always 0 or 1.

    If all k policies are equally good, each of the k (k - 1) statements is wrong, and has its share of alpha
    by that number. If not, at most (k - 1)^2 are wrong: two for each pair of k - 1 that may be equally good,
    and one for each other pair. So each has that larger share once any statement has been made at both.
    """
    made = []
    for statements in (len(costs) * (len(costs) - 1), (len(costs) - 1) ** 2):
        test, each = PolicyComparison(alpha / statements, binary=True, paired=paired), set()
        for a, b in combinations(costs, 2):
            test.reset()
            verdict = test.update_many(costs[a], costs[b]).verdict
            if verdict is not ComparisonVerdict.UNDECIDED:
                each.add((a, b) if verdict is ComparisonVerdict.A_BETTER else (b, a))
        made.append(each)
    first, then = made
    return then if first & then else set()


def close(logs: Array) -> Array:
    """Return the logarithms of e-values that were adjusted by closed testing.

    An intersection of hypotheses is refuted by the average of their e-values, and a hypothesis once all
    intersections that it belongs to are. The smallest average adds the smallest of the others, one by one.
    """
    adjusted = np.empty_like(logs)
    order = np.argsort(logs, kind="stable")
    for index in range(logs.size):
        others = logs[order[order != index]]
        sums = np.logaddexp.accumulate(np.append(logs[index], others))
        adjusted[index] = (sums - np.log(np.arange(1, logs.size + 1))).min()
    return adjusted


def letter_display(names: Iterable[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return letters such that two names share one exactly if they are not different."""
    order = list(names)
    groups = [frozenset(order)]
    for pair in different:  # split every group that holds both, and keep what no other group holds
        split = [part for group in groups for part in _without(group, pair)]
        groups = [
            part
            for i, part in enumerate(split)
            if not any(part < other or (part == other and j < i) for j, other in enumerate(split))
        ]
    groups.sort(key=lambda group: [name not in group for name in order])
    return {name: "".join(_letter(i) for i, group in enumerate(groups) if name in group) for name in order}


def _without(group: frozenset[str], pair: tuple[str, str]) -> list[frozenset[str]]:
    return [group - {name} for name in pair] if group.issuperset(pair) else [group]


def _letter(index: int) -> str:
    size = len(ascii_lowercase)
    return ascii_lowercase[index % size] + ("" if index < size else str(index // size))


def _check_policies(costs: Mapping[str, ArrayLike], *, paired: bool) -> dict[str, Array]:
    if not isinstance(costs, Mapping) or len(costs) < 2:
        remedy = "give {'v1': costs, 'v2': costs, ...}"
        raise InvalidSetting("is not a table of at least two policies", name="costs", remedy=remedy)
    checked = {}
    for name, values in costs.items():
        if not isinstance(name, str) or not name:
            problem, remedy = "has a key that is not a policy's name", f"use non-empty strings, not {name!r}"
            raise InvalidSetting(problem, name="costs", remedy=remedy)
        checked[name] = check_costs(values, name=f"costs[{name!r}]")
    sizes = {name: values.size for name, values in checked.items()}
    if paired and len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        problem = f"paired trials are not equal in number ({listed})"
        raise InvalidCost(problem, remedy="match them by seed")
    return checked


def _log_e_value(better: Array, worse: Array) -> float:
    """Return the log e-value that the first costs less."""
    pairs, bets = min(better.size, worse.size), DifferenceBets()
    capitals = bets.log_factors(better[:pairs, None], worse[:pairs, None]).sum(axis=0) + bets.log_shares
    return float(np.logaddexp.reduce(capitals))


def _limits(costs: Array, alpha: float) -> tuple[float, float]:
    memory, bets = CostGrid(), Bets.for_costs(binary=False)
    for cost in costs.tolist():
        memory.add(cost)
    return memory.mean_lower(bets, alpha), memory.mean_upper(bets, alpha)


def _next_pair(pairs: list[RankedPair], leader: str) -> tuple[str, str] | None:
    """Return the undecided pair with the most evidence, of the leader's if it has any."""
    undecided = [pair for pair in pairs if not pair.decided]
    near = [pair for pair in undecided if leader in (pair.better, pair.worse)] or undecided
    best = max(near, key=lambda pair: pair.e_value, default=None)
    return None if best is None else (best.better, best.worse)
