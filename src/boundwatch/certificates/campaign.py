"""Certification while trials come in: look after every trial, stop by any rule, and hold a certificate."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from boundwatch._support.describing import InTable
from boundwatch._support.schema import Level, Probability, convert
from boundwatch._support.validation import check_costs, check_flag
from boundwatch.bounds.predicted_mean import Luck, MeanBets, luck_of
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.limits import PLAIN, fields_of, split_delta, with_predictions
from boundwatch.certificates.record import Rounds, mean_over, refuse_unknown, tasks_of
from boundwatch.episodes.measure import Design, Measure, check_weights
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Refusal, SchemaMismatch

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LEVELS = ("delta", "delta_upper", "delta_lower")
_ALONE = {"": 1.0}  # without strata, all trials are of one task


@dataclass(frozen=True)
class _State:
    """What `Campaign.state_dict` returns."""

    kind: Literal["Campaign"]
    version: Literal[1]
    delta_upper: Level
    delta_lower: Level
    binary: bool
    costs: list[Probability] | dict[str, list[Probability]]
    weights: dict[str, float] | None = None
    lucks: list[tuple[float, float, float]] | None = None


class Campaign(InTable):
    """Bounds a finished policy's expected cost after every trial, and certifies it whenever you stop.

    **Guarantee**: with probability at least 1 - `delta` over the draw of the trials, the expected cost lies
    between `lower` and `upper` after *every* trial. So the certificate made when you stop holds with at least
    that probability, whatever made you stop: the width, the upper limit, the end of the day.
    **Assumes**: costs in [0, 1] (0 or 1 if `binary`) whose expected value, given all earlier trials, is the
    same (i.i.d. trials are a special case); a policy that was final before the first one; every trial counts.

    The limits are those of the trials so far, in whatever order they came: the interval may widen after a
    surprise. Keeping the narrowest limits seen would be valid, too, but nobody could derive them again from
    what a certificate keeps.

    With `strata`, the weighted mean over a fixed set of tasks is meant, and the limits hold after every
    round, in which each task is run once; the r-th trial of each task makes the r-th round, whatever their
    order. Trials that complete no round wait. How much tasks differ does not widen the limits. As the
    certificate keeps all rounds in their order, these limits are the narrowest so far. **Assumes** then: each
    task has an expected cost of its own, the same given all that came before.

    Parameters
    ----------
    delta
        Probability with which either limit may ever fail; each side gets half of it.
    binary
        Promise that costs are 0 or 1: narrower limits.
    delta_upper, delta_lower
        Give each side its own failure probability; both or neither. `delta` is then ignored.
    strata
        Names of the tasks whose mean is meant, or their weights in it by name.
    predictions
        Whether trials come with predicted costs: narrower limits if these are good, and valid ones whatever
        they are. They hold at all times, and are the narrowest so far. **Assumes** then: what `PredictedTest`
        does about scenes and predictions; one task.

    Examples
    --------
    >>> import boundwatch as bw
    >>> campaign = bw.Campaign(delta=0.01, binary=True)
    >>> for cost in [0, 0, 1, 0] * 30:
    ...     if campaign.update(cost).width < 0.3:
    ...         break
    >>> campaign
    Campaign(n=108, failures=27, lower=0.1217, upper=0.4213, delta=0.01)
    >>> campaign.certificate().method
    'anytime'
    >>> tasks = bw.Campaign(delta=0.1, binary=True, strata=["mug", "bowl"])
    >>> _ = tasks.update_many([0, 1] * 30, ["mug", "bowl"] * 30).update(0, "mug")
    >>> tasks
    Campaign(n=60, failures=30, lower=0.4414, upper=0.5586, delta=0.1, rounds=30, waiting={'mug': 1})
    """

    def __init__(
        self,
        delta: float = 0.01,
        *,
        binary: bool = False,
        delta_upper: float | None = None,
        delta_lower: float | None = None,
        strata: Iterable[str] | Mapping[str, float] | None = None,
        predictions: bool = False,
    ) -> None:
        deltas = split_delta("held-out", delta, delta_upper, delta_lower)
        self.delta, self.delta_upper, self.delta_lower = deltas
        self.binary = check_flag(binary, "binary")
        self.strata = None if strata is None else _weights(strata)
        """The tasks whose mean is meant, with their weights; None if there are none."""
        self._rounds = Rounds(_ALONE if self.strata is None else self.strata)
        self.predictions = check_flag(predictions, "predictions")
        if self.predictions and self.strata is not None:
            problem = "go with one task"
            raise InvalidSetting(problem, name="predictions", remedy=("leave out ", Argument("strata")))
        self._bets = MeanBets.anytime(self.delta_lower, self.delta_upper)
        self._lucks: list[Luck] = []
        self._limits: tuple[float, float] | None = (0.0, 1.0)

    @property
    def n(self) -> int:
        """How many trials there were; of several tasks, how many are in complete rounds."""
        return self.rounds * len(self._rounds.costs)

    @property
    def rounds(self) -> int:
        """How many rounds are complete; without strata each trial is one."""
        return self._rounds.complete

    @property
    def waiting(self) -> dict[str, int]:
        """How many trials of each task complete no round yet; the others are not named."""
        return self._rounds.waiting

    @property
    def lower(self) -> float:
        """The lower limit on the expected cost; 0 before the first trial."""
        return self._derived()[0]

    @property
    def upper(self) -> float:
        """The upper limit on the expected cost; 1 before the first trial."""
        return self._derived()[1]

    @property
    def width(self) -> float:
        """How far the limits are apart."""
        return self.upper - self.lower

    @property
    def failures(self) -> int | None:
        """How many of the `n` trials failed, if costs are 0 or 1."""
        return round(self._rounds.array().sum()) if self.binary else None

    @property
    def mean_cost(self) -> float | None:
        """The mean of the costs so far, over tasks by weight; None before the first trial or round."""
        return mean_over(self._rounds.strata(binary=self.binary)) if self.n else None

    def update(
        self,
        cost: float,
        stratum: str | None = None,
        *,
        predicted: float | None = None,
        unlabeled: ArrayLike = (),
    ) -> Campaign:
        """Count one more trial; returns the campaign itself.

        Parameters
        ----------
        cost
            Its cost. One that is not allowed raises `InvalidCost` and is not counted.
        stratum
            Its task, if there are several.
        predicted, unlabeled
            As in `PredictedTest.update`, if there are predictions; a trial without any is one of costs alone.
        """
        luck = luck_of(predicted, unlabeled)
        if predicted is not None and not self.predictions:
            problem = "goes with a campaign that was made for predictions"
            raise InvalidSetting(problem, name="predicted", remedy=("say ", Argument("predictions", True)))
        return self._count([cost], None if stratum is None else [stratum], [luck])

    def update_many(self, costs: ArrayLike, strata: Sequence[str] | None = None) -> Campaign:
        """Count several trials, in their order; returns the campaign itself.

        Parameters
        ----------
        costs
            At least one cost. If one of them is invalid, none is counted.
        strata
            The task of each, if there are several. `Episodes` bring their own.
        """
        return self._count(costs, strata, None)

    def _count(
        self, costs: ArrayLike, strata: Sequence[str] | None, lucks: Sequence[Luck] | None
    ) -> Campaign:
        values = check_costs(costs, binary=self.binary).tolist()
        if strata is None and self.strata is not None:
            strata = tasks_of(costs)
        if (strata is None) != (self.strata is None):
            problem = "goes with a campaign that was made with strata"
            if self.strata is not None:
                problem = "is missing: the campaign is about the mean over tasks"
            remedy = ("give both, or neither, ", Argument("strata"))
            raise InvalidSetting(problem, name="stratum", remedy=remedy)
        names = [*_ALONE] * len(values) if strata is None else strata
        for name in names:
            refuse_unknown(name, self._rounds.costs)
        before = self.n
        for cost, name in zip(values, names, strict=True):
            self._rounds.add(cost, name)
        if self.predictions:
            for cost, luck in zip(values, lucks or [Luck()] * len(values), strict=True):
                self._lucks.append(luck)
                self._bets.add(cost, luck)
        if self.n > before:
            self._limits = None
        return self

    def certificate(
        self,
        *,
        seed: int | None = None,
        policy: str | os.PathLike[str] | None = None,
        measure: Measure | None = None,
        design: Design | None = None,
    ) -> Certificate:
        """Return a certificate from the trials so far; it is valid at any time, whatever made you stop.

        Parameters
        ----------
        seed, policy, measure
            As in `Certificate.from_held_out`.
        design
            How trials relate to each other, to be kept.
        """
        if not self.n:
            what = "trial has been counted" if self.strata is None else "round is complete"
            raise InvalidCost(f"no {what}; call update(cost) first")
        given: dict[str, Any] = {"binary": self.binary, "seed": seed, "policy": policy, "measure": measure}
        given |= {"design": design or PLAIN, "method": "anytime" if self.strata is None else "rounds"}
        given |= {name: getattr(self, name) for name in _LEVELS}
        costs = self._rounds.array().ravel()
        if self.predictions:
            given["method"] = "predicted-anytime"
            return Certificate._of(with_predictions(costs, self._lucks, **given))
        strata = () if self.strata is None else self._rounds.strata(binary=self.binary)
        return Certificate._of(fields_of("held-out", costs, strata=strata, **given))

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain JSON values."""
        names = ["n", "mean_cost", "lower", "upper", "width", *_LEVELS, "binary"]
        names += [] if self.strata is None else ["rounds", "waiting", "strata"]
        names += ["saved_trials"] if self.predictions else []
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values; `from_state_dict` continues exactly where this stands.

        Examples
        --------
        >>> campaign = Campaign(binary=True).update_many([0, 1, 0])
        >>> Campaign.from_state_dict(campaign.state_dict()).upper == campaign.upper
        True
        """
        levels = {"delta_upper": self.delta_upper, "delta_lower": self.delta_lower}
        costs = {name: list(each) for name, each in self._rounds.costs.items()}
        kept: dict[str, Any] = {"costs": costs, "weights": self.strata}
        if self.strata is None:
            kept = {"costs": costs[""]}
        if self.predictions:
            kept["lucks"] = [[each.value, each.most, each.least] for each in self._lucks]
        return {"kind": "Campaign", "version": 1, **levels, "binary": self.binary, **kept}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Campaign:
        """Return the campaign that `state_dict` described.

        Parameters
        ----------
        state
            What `state_dict` returned, possibly through a JSON file.
        """
        found = convert(_State, state, "state")
        try:
            levels = {"delta_upper": found.delta_upper, "delta_lower": found.delta_lower}
            predictions = found.lucks is not None
            campaign = cls(binary=found.binary, **levels, strata=found.weights, predictions=predictions)
            if found.lucks is not None and isinstance(found.costs, list) and found.costs:
                return campaign._count(found.costs, None, [Luck(*each) for each in found.lucks])
            given = {None: found.costs} if isinstance(found.costs, list) else found.costs
            for name, costs in given.items():
                campaign = campaign.update_many(costs, name and [name] * len(costs)) if costs else campaign
            return campaign
        except Refusal as error:
            raise SchemaMismatch(f"the state is damaged: {error}") from error

    def plot(self) -> Figure:
        """Draw the interval (extra ``plot``)."""
        return self.certificate().plot()

    @property
    def saved_trials(self) -> int | None:
        """About how many more trials without predictions give limits as narrow; below 0 if fewer do."""
        return self.certificate().saved_trials if self.n else None

    def _derived(self) -> tuple[float, float]:
        if self.predictions:
            lower, upper = self._bets.lower, self._bets.upper
            return min(lower, upper), max(lower, upper)
        if self._limits is None:
            made = self.certificate()
            self._limits = made.lower, made.upper
        return self._limits

    def __repr__(self) -> str:
        failed = f", failures={self.failures}" if self.binary else ""
        tasks = "" if self.strata is None else f", rounds={self.rounds}, waiting={self.waiting}"
        return (
            f"Campaign(n={self.n}{failed}, lower={self.lower:.4g}, upper={self.upper:.4g}, "
            f"delta={self.delta:g}{tasks})"
        )


def _weights(strata: Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    """Return the weights of tasks, alike if only their names are given."""
    if isinstance(strata, Mapping):
        return check_weights(strata)
    names = [strata] if isinstance(strata, str) else list(strata)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        raise InvalidSetting("do not name each task once", name="strata", value=names, remedy="give names")
    return dict.fromkeys(names, 1.0)
