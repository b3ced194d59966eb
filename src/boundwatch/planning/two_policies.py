"""How many trials until two policies can be told apart: exact for costs of 0 and 1."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_flag, check_level, shortest
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.late import Walk, late_line
from boundwatch.comparison.policy_comparison import check_horizon
from boundwatch.comparison.region import LAST_PAIR, Region, SignRegion, find_region
from boundwatch.comparison.walks import binomial
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.detectors.verdicts import LOOK_LEVEL
from boundwatch.errors import Argument, InvalidSetting
from boundwatch.planning.power import Array, check_rate, first_reaching, mean_wait

POWERS = (0.5, 0.8, 0.9)
MOST_PAIRS = 5000


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """The answer of `plan_comparison`.

    Attributes
    ----------
    cost_a, cost_b, alpha, paired, correlation, horizon
        What was asked.
    mean_pairs
        Mean number of pairs to the right verdict; runs without one count as `most_pairs`.
    trials
        Pairs after which the right verdict has been reached with each power; None if that takes more than
        `most_pairs`, which is how far was computed, or never happens.
    power
        The probability of the right verdict within n pairs, for n = 0, 1, ….
    """

    cost_a: float
    cost_b: float
    alpha: float
    paired: bool
    correlation: float
    horizon: int | None
    mean_pairs: float
    trials: dict[float, int | None]
    power: tuple[float, ...]
    most_pairs: int

    def __repr__(self) -> str:
        names = ("cost_a", "cost_b", "alpha", "paired", "correlation", "horizon", "mean_pairs", "trials")
        return one_line(self, {name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        return (
            f"Failure rates of {self.cost_a:g} and {self.cost_b:g} are told apart "
            f"after {self.mean_pairs:.1f} pairs on average"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values, without the curve."""
        content = dataclasses.asdict(self)
        del content["power"]
        return content


def plan_comparison(
    *,
    cost_a: float,
    cost_b: float,
    alpha: float = LOOK_LEVEL,
    paired: bool = False,
    correlation: float = 0.0,
    horizon: int | None = None,
) -> ComparisonPlan:
    """Return how many pairs of trials `boundwatch.PolicyComparison` needs to tell two failure rates apart.

    Parameters
    ----------
    cost_a, cost_b
        The suspected failure rates; costs of other kinds with these means usually need fewer trials.
    alpha
        Probability of a wrong verdict, per side.
    paired
        Whether trials will share seeds or scenes.
    correlation
        Of the two costs of a pair, if they do.
    horizon
        The largest number of pairs, if it is fixed in advance.

    Examples
    --------
    >>> import boundwatch as bw
    >>> plan = bw.plan_comparison(cost_a=0.1, cost_b=0.4)
    >>> round(plan.mean_pairs), plan.trials[0.5]
    (26, 21)
    """
    rates = check_rate(cost_a, "cost_a", inside=True), check_rate(cost_b, "cost_b", inside=True)
    level = check_level(alpha, "alpha")
    if rates[0] == rates[1]:
        problem = "is both costs, and equal policies cannot be told apart"
        raise InvalidSetting(problem, name="cost_b", value=rates[0], remedy="state two")
    low, high = min(rates), max(rates)
    paired, horizon = check_flag(paired, "paired"), check_horizon(horizon, binary=True)
    if not paired and correlation:
        problem, remedy = "goes with paired trials only", ("pass ", Argument("paired", True))
        raise InvalidSetting(problem, name="correlation", value=correlation, remedy=remedy)
    outcomes = _differing(low, high, correlation)
    if outcomes is None:
        problem = f"is not possible for failure rates of {shortest(low)} and {shortest(high)}"
        nearer = "choose one nearer to 0"
        raise InvalidSetting(problem, name="correlation", value=correlation, remedy=nearer)
    region = find_region(level, paired=paired, horizon=horizon)
    if isinstance(region, SignRegion):
        power = sign_power(region, *outcomes)
    else:
        power, ending = _table_power(region, _matched(*outcomes) if paired else _independent(low, high))
        if horizon is None and power[-1] < max(POWERS):
            power = _continued(level, power, ending, *outcomes)
    return ComparisonPlan(
        cost_a=rates[0],
        cost_b=rates[1],
        alpha=level,
        paired=paired,
        correlation=float(correlation),
        horizon=horizon,
        mean_pairs=mean_wait(power),
        trials=_trials(power),
        power=tuple(power.tolist()),
        most_pairs=power.size - 1,
    )


def sign_power(region: SignRegion, only_a: float, only_b: float) -> Array:
    """Return P[verdict within n matched pairs] for n = 0, 1, …, from the rates of pairs that differ.

    The verdict depends on the pairs that differ alone, and they come independently of how they differ.
    """
    differing = only_a + only_b
    most = min(MOST_PAIRS, math.ceil(MOST_PAIRS * differing) + 200)
    within = np.cumsum(alarm_distribution(np.array(_extend(region, most)), only_b / differing)[0])
    if (sure := first_reaching(within, 1 - 1e-9)) is not None:
        within[sure:] = within[sure]  # nobody plans for the rest
    return _over_pairs(within, differing)


def _over_pairs(within: Array, differing: float, start: float = 0.0, most: int = MOST_PAIRS) -> Array:
    """Return the power within n pairs from that within d that differ, a share of which do."""
    # Every n at first, then in steps of one percent with straight lines between.
    sizes, power = [0], [start]
    while sizes[-1] < most and power[-1] < 0.9995:
        n = min(sizes[-1] + max(1, sizes[-1] // 100), most)
        chances = binomial(n, np.array([differing]))[:, 0]
        sizes.append(n)
        power.append(start + float(chances @ within[np.minimum(np.arange(n + 1), within.size - 1)]))
    return np.asarray(np.interp(np.arange(sizes[-1] + 1), sizes, power))


def _extend(region: SignRegion, most: int) -> list[int]:
    needed, bets = list(region.needed), DifferenceBets()
    won, lost = bets.log_factors(0.0, 1.0), bets.log_factors(1.0, 0.0)
    for d in range(len(needed), most + 1):
        b = needed[-1]  # it stays, or grows by one
        wealth = np.logaddexp.reduce(b * won + (d - b) * lost + bets.log_shares)
        needed.append(b if wealth >= math.log(region.threshold) else b + 1)
    return needed


def _table_power(region: Region, outcomes: dict[tuple[int, int], float]) -> tuple[Array, Array]:
    """Run the exact dynamic program over the counts of both policies; return what has no alarm, too."""
    alive, power = np.ones((1, 1)), np.zeros(len(region.needed))
    for n in range(1, power.size):
        moved = np.zeros((n + 1, n + 1))
        for (a, b), chance in outcomes.items():
            moved[a : a + n, b : b + n] += chance * alive
        stops = np.arange(n + 1) >= np.array(region.needed[n])[:, None]
        power[n] = power[n - 1] + moved[stops].sum()
        alive = np.where(stops, 0.0, moved)
    return power, alive


def _continued(alpha: float, power: Array, ending: Array, only_a: float, only_b: float) -> Array:
    """Continue a power curve after the table, where pairs that differ decide."""
    differing = only_a + only_b
    most = math.ceil(MOST_PAIRS * differing) + 200
    within = late_power(alpha, ending, only_b / differing, most)
    later = _over_pairs(within, differing, float(power[-1]), MOST_PAIRS - LAST_PAIR)
    return np.append(power, later[1:])


def late_power(alpha: float, ending: Array, against_b: float, most: int) -> Array:
    """Return P[alarm after the table within d pairs that differ], for d = 0, 1, …, `most`.

    `ending` has the chances of (a, b) after the table without an alarm.
    """
    total = np.zeros(most + 1)
    for pooled in range(2 * LAST_PAIR + 1):
        walk = Walk.starting(ending, pooled)
        if walk.chances.sum() < 1e-9:
            continue
        line = late_line(alpha, pooled)
        for look, lead in zip(line.looks.tolist(), line.leads.tolist(), strict=True):
            if look > most or not walk.chances.size:
                break
            walk.toss(look - walk.tosses, against_b)
            total[look] += walk.stop(lead)
    return np.cumsum(total)


def _independent(low: float, high: float) -> dict[tuple[int, int], float]:
    only_a, only_b = low * (1 - high), (1 - low) * high
    return {(0, 0): (1 - low) * (1 - high), (1, 0): only_a, (0, 1): only_b, (1, 1): low * high}


def _matched(only_a: float, only_b: float) -> dict[tuple[int, int], float]:
    return {(0, 0): 1 - only_a - only_b, (1, 0): only_a, (0, 1): only_b}


def _differing(low: float, high: float, correlation: float) -> tuple[float, float] | None:
    """Return the rates of "only A failed" and "only B failed", None if the correlation is impossible."""
    both = low * high + correlation * math.sqrt(low * (1 - low) * high * (1 - high))
    if not max(0.0, low + high - 1) <= both <= low:
        return None
    return low - both, high - both


def _trials(power: Array) -> dict[float, int | None]:
    return {target: first_reaching(power, target) for target in POWERS}
