"""How many trials until a failure rate is known well enough, over tasks and on repeated scenes, too."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from boundwatch import bounds
from boundwatch._support.validation import check_level, check_number
from boundwatch.bounds import strata
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import InvalidSetting
from boundwatch.planning.power import DELTA, Array, check_rate, check_size, fewest

SURE = 0.9  # with what probability limits will be as close as asked for
_MOST = 100_000
_REPEATS = (1, 2, 5, 10)
_STREAMS, _LABS = 40, 100
_WORST = 0.5  # no other rate needs more trials


@dataclass(frozen=True, kw_only=True)
class WidthPlan:
    """The answer of `plan_width`; for costs of 0 and 1.

    Attributes
    ----------
    within, delta, cost
        How far limits may be from the middle between them, how often they may fail, and the failure rate
        that was supposed or seen; None if trials suffice whatever it is.
    trials, had
        How many trials in all, and how many of them there are already; scenes are of a new series.
    counted
        Whether those were given as counts, which have no order.
    tasks, each_task
        How many tasks share the trials, and how many trials of each show each task's own rate.
    scenes, repeats, correlation
        Scenes needed by the number of trials on each; that number, and how alike repeats are.
    seed
        Of the simulation; None if numbers are exact.
    """

    within: float
    delta: float
    cost: float | None
    trials: int
    had: int = 0
    counted: bool = False
    tasks: int = 1
    each_task: int | None = None
    scenes: dict[int, int] = field(default_factory=dict)
    repeats: int = 1
    correlation: float = 0.0
    seed: int | None = None

    def __str__(self) -> str:
        sure = f"with a probability of {100 * SURE:.0f} % if it fails in {100 * (self.cost or 0):.3g} %"
        world = "whatever the rate is" if self.cost is None else f"{sure} of trials"
        rate = "failure rate" if self.tasks == 1 else f"mean failure rate of {self.tasks} tasks"
        sure = f"{100 * (1 - self.delta):g} % confidence"
        known = f"the {rate} is then known within ± {100 * self.within:g} points ({sure}), {world}."
        if self.repeats in self.scenes:
            scenes, most = self.scenes[self.repeats], max(self.scenes)
            new = f"{scenes} scenes with {self.repeats} trials on each ({scenes * self.repeats:,} in all)"
            once = f"{self.scenes[1]} scenes suffice with one trial on each"
            often = f"{self.scenes[most]} with {most}, which are {most * self.scenes[most]:,} trials"
            return f"Run {new}: {known} More scenes, not more repeats: {once}, and it takes {often}."
        each = "" if self.tasks == 1 else f", {self.trials // self.tasks} of each task"
        if self.had:
            more = max(self.trials - self.had, 0)
            return f"Run about {more:,} more trials ({self.trials:,} in all{each}): {known}"
        return f"Run {self.trials:,} trials{each}: {known}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        scenes = {str(repeats): number for repeats, number in self.scenes.items()}
        return dataclasses.asdict(self) | {"scenes": scenes, "recommendation": str(self)}


def plan_width(
    within: float,
    *,
    cost: float | None = None,
    delta: float = DELTA,
    tasks: int = 1,
    repeats: int = 1,
    correlation: float = 0.0,
    after: Episodes | None = None,
    seed: int = 0,
) -> WidthPlan:
    """Compute how many trials show a failure rate within so much, as `certify` bounds it.

    Parameters
    ----------
    within
        How far the limits may be from the middle between them.
    cost
        The failure rate that is supposed; left out, the number suffices for all.
    delta
        Probability with which either limit may fail.
    tasks
        How many tasks share the trials; their mean is meant.
    repeats, correlation
        Trials on each scene, and the correlation of two of them: scenes are then counted (simulated).
    after
        Trials that there are already: how many more? As they were seen, limits must be those of a `Campaign`.
        Of several tasks, rounds are simulated; with clusters, the plan is for a new series.
    seed
        Of the simulation.

    Examples
    --------
    >>> plan_width(0.1, cost=0.2).trials, plan_width(0.1).trials
    (130, 172)
    """
    inside = math.nextafter(0, 1), math.nextafter(1, 0)
    within = check_number(within, "within", "a width in (0, 1)", *inside, remedy="give one such as 0.1")
    tasks, repeats = check_size(tasks, "tasks"), check_size(repeats, "repeats")
    delta = check_level(delta, "delta")
    correlation = check_number(correlation, "correlation", "in [0, 1]", 0, 1, remedy="give one such as 0.1")
    if (repeats == 1 and correlation) or min(tasks, repeats) > 1:
        problem = "goes with several repeats of a scene, and not with tasks"
        raise InvalidSetting(problem, name="correlation", value=correlation, remedy="leave one out")
    known: dict[str, Any] = {"within": within, "delta": delta}
    if after is not None:
        known |= {
            "had": len(after) if after.trials is None else after.trials.n,
            "counted": after.measure.counted,
        }
        if not after.repeats:
            return _after(after, known, seed)
        repeats, correlation = likeness(after)
        cost = float(after.costs.mean())
    elif cost is not None:
        cost = check_rate(cost, "cost", inside=True)
    if repeats > 1 or after is not None:
        scenes = _scenes(cost or _WORST, repeats, correlation, within, delta, seed)
        known |= {"scenes": scenes, "repeats": repeats, "correlation": correlation, "seed": seed}
        return WidthPlan(**known, cost=cost or _WORST, trials=repeats * scenes[repeats])
    needed = partial(_fixed, cost, within)
    trials = tasks * math.ceil(needed(delta, pooled=tasks > 1) / tasks)
    each = needed(delta / tasks) if tasks > 1 else None
    return WidthPlan(**known, cost=cost, trials=trials, tasks=tasks, each_task=each)


def _fixed(cost: float | None, within: float, delta: float, *, pooled: bool = False) -> int:
    """Return the fewest trials, exactly, of a number that is fixed in advance."""
    lower, upper = bounds.clopper_pearson_lower, bounds.clopper_pearson_upper
    if pooled:
        lower, upper = strata.pooled_lower, strata.pooled_upper

    def suffices(n: int) -> bool:
        failures, chances = _likely(0, n, cost)
        width = upper(failures, n, delta / 2) - lower(failures, n, delta / 2)
        return bool(chances @ (width <= 2 * within) >= (SURE if cost is not None else 1))

    return fewest(suffices, 0, _MOST)


def _likely(had: int, more: int, rate: float | None) -> tuple[Array, Array]:
    """Return numbers of failures, and the chance of each; without a rate, the worst number."""
    if rate is None:
        return np.array([more // 2]), np.ones(1)
    from scipy import stats  # slow to import, and few commands plan

    low, high = stats.binom.interval(1 - 1e-9, more, rate) if more else (0, 0)
    failures = np.arange(low, high + 1)
    return had + failures, stats.binom.pmf(failures, more, rate)


def _after(after: Episodes, known: dict[str, Any], seed: int) -> WidthPlan:
    """Return how many trials in all make the limits of a campaign so narrow, at the rates so far."""
    if not after.binary:
        raise InvalidSetting("has costs that are not 0 or 1", name="after", remedy="give outcomes")
    n, width, side = len(after), 2 * known["within"], known["delta"] / 2
    if (names := after.keys.get("strata")) is None:
        failures = int(after.costs.sum())
        rate = (failures + 0.5) / (n + 1)

        def suffices(total: int) -> bool:
            found, chances = _likely(failures, total - n, rate)
            limits = bounds.anytime_upper(found, total, side) - bounds.anytime_lower(found, total, side)
            return bool(chances @ (limits <= width) >= SURE - 1e-9)

        return WidthPlan(**known, cost=rate, trials=fewest(suffices, n - 1, _MOST))
    rng = np.random.default_rng(seed)
    by_task = [after.costs[np.array(names) == name] for name in dict.fromkeys(names)]
    if known["counted"]:  # their order is not known
        by_task = [rng.permutation(each) for each in by_task]
    first = min(each.size for each in by_task)
    rates = np.array([(each.sum() + 0.5) / (each.size + 1) for each in by_task])
    lab = np.stack([each[:first] for each in by_task], axis=1)
    most = first + max(16, math.ceil(4 * 7 / (width / 2) ** 2 / rates.size))
    drawn = rng.random((_STREAMS, most - first, rates.size)) < rates
    streams = np.concatenate([np.broadcast_to(lab, (_STREAMS, *lab.shape)), drawn], axis=1).astype(np.float64)

    def is_narrow(rounds: int) -> bool:
        cut = streams[:, :rounds]
        widths = [bounds.rounds_upper(each, side) - bounds.rounds_lower(each, side) for each in cut]
        return bool(np.mean(np.array(widths) <= width) >= SURE)

    total = rates.size * fewest(is_narrow, max(first - 1, 0), most)
    return WidthPlan(**known, cost=float(rates.mean()), trials=total, tasks=rates.size, seed=seed)


def _scenes(
    cost: float, repeats: int, correlation: float, within: float, delta: float, seed: int
) -> dict[int, int]:
    """Return how many scenes are needed with so many trials on each: limits from each scene's share."""

    def suffices(trials: int, scenes: int) -> bool:
        rng, size = np.random.default_rng(seed), (_LABS, scenes)
        more = 1 / max(correlation, 1e-6) - 1  # rates of scenes have a beta distribution
        rates = rng.beta(cost * more, (1 - cost) * more, size)
        shares = rng.binomial(trials, rates) / trials
        width = bounds.tuned_upper(shares, delta / 2) - bounds.tuned_lower(shares, delta / 2)
        return bool(np.mean(width <= 2 * within) >= SURE)

    once, found = _fixed(cost, within, delta), {}
    for trials in sorted({*_REPEATS, repeats}):
        about = max(round(once * (1 + (trials - 1) * correlation) / trials), 4)
        found[trials] = fewest(partial(suffices, trials), about // 3, 4 * about) if trials > 1 else once
    return found


def likeness(episodes: Episodes) -> tuple[int, float]:
    """Return how many trials a scene has on average, and about how correlated two of its trials are."""
    sizes, shares = np.array([each.n for each in episodes.repeats]), episodes.costs
    spread = float((sizes * shares * (1 - shares)).sum()) / max(sizes.sum() - sizes.size, 1)
    mean = float(sizes @ shares) / float(sizes.sum())
    alike = 1 - spread / (mean * (1 - mean)) if 0 < mean < 1 else 0.0
    return max(round(float(sizes.mean())), 1), float(np.clip(alike, 0.0, 0.95))
