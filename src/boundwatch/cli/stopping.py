"""How `certify` runs a campaign: a line per trial, and a certificate as soon as a rule says stop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.file_options import ANSWERS, Predictions, Reading, arriving
from boundwatch.cli.options import AT_LEAST_1, refuse, refuse_if
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import InvalidCost, InvalidLevel, Place, Refusal
from boundwatch.reporting import wording
from boundwatch.watching.sources import is_pipe, name_of, terminable
from boundwatch.watching.trials import Trial, trials_of


@dataclass(frozen=True)
class Stopping:
    """When to stop, if trials are read one by one: at a width and an upper limit, or after so many trials.

    Examples
    --------
    >>> rule = Stopping(until_width=0.9, at_most=2)
    >>> campaign = Campaign(binary=True)
    >>> [rule.met(campaign.update(cost)) for cost in (0, 0)]
    ['', 'after 2 trials, the most allowed']

    Options
    -------
    until_width W: Read until the interval is this narrow, and stop.
    until_upper C: Or until the upper limit is this low (of both: both).
    at_most N: Or after this many trials.
    follow: With a stopping rule: wait for the file to grow.
    tasks N: With --strata and --follow or a pipe: how many tasks.
    """

    until_width: float | None = None
    until_upper: float | None = None
    at_most: Annotated[int | None, AT_LEAST_1] = None
    follow: bool = False
    tasks: Annotated[int | None, AT_LEAST_1] = None

    def refuse_without_rule(self) -> None:
        """Refuse what goes with a rule, if there is none."""
        if self.until_width is None and self.until_upper is None and self.at_most is None:
            refuse(vars(self), "goes with --until-width, --until-upper or --at-most")

    def met(self, campaign: Campaign) -> str:
        """Return why to stop, or nothing."""
        met: dict[str, bool] = {}
        if self.until_width is not None:
            met[f"the width is at most {self.until_width:g}"] = campaign.width <= self.until_width
        if self.until_upper is not None:
            met[f"the upper limit is at most {self.until_upper:g}"] = campaign.upper <= self.until_upper
        if met and all(met.values()):
            return " and ".join(met)
        trials = campaign.n + sum(campaign.waiting.values())
        if self.at_most is not None and trials >= self.at_most:
            return f"after {wording.count(trials, 'trial')}, the most allowed"
        return ""


def run_campaign(
    stream: str,
    rule: Stopping,
    reading: Reading,
    predictions: Predictions,
    deltas: Mapping[str, Any],
    binary: bool | None,
    provenance: Mapping[str, Any],
    *,
    as_json: bool,
) -> tuple[Certificate, str]:
    """Count trials until the rule is met or the stream ends; return the certificate, and why it is done."""
    for name in ("until_width", "until_upper"):
        if (value := getattr(rule, name)) is not None and not 0 < value < 1:
            raise InvalidLevel("is outside (0, 1)", name=name, value=value, remedy="give 0.1, say")
    helped = predictions.check()
    by_line = rule.follow or stream == "-" or is_pipe(stream) or helped
    asks = by_line and reading.strata is not None and reading.weights is None
    whole = "--tasks goes with --strata and --follow or a pipe; those of whole files are counted"
    one_by_one = "trials come one by one: say how many tasks there are (--tasks N), or name them (--weights)"
    refuse_if(
        {
            "--follow is for files; standard input is always waited for": rule.follow and stream == "-",
            whole: rule.tasks is not None and not asks,
            one_by_one: asks and rule.tasks is None,
        }
    )
    source = _lines(stream, reading, rule, predictions) if by_line else _whole(stream, reading, binary)
    campaign, reason, between, name = None, "", False, name_of(stream)
    try:
        with terminable():
            for trial in source.trials:
                if campaign is None:
                    kind = source.measured()[1] if binary is None else binary
                    campaign = Campaign(binary=kind, strata=source.tasks, predictions=helped, **deltas)
                cost, rounds = trial.cost, campaign.rounds
                try:
                    task = None if source.tasks is None else trial.stratum
                    predicted, unlabeled = trial.predictions or (None, ())
                    campaign.update(cost, task, predicted=predicted, unlabeled=unlabeled)
                except Refusal as error:
                    raise error.at(Place(name, "line", trial.number)) from error
                between |= cost not in (0, 1)
                if campaign.rounds > rounds:
                    _print_trial(campaign, cost, as_json)
                if reason := rule.met(campaign):
                    break
    except KeyboardInterrupt:
        reason = "it was interrupted"
    campaign = _refuse_none(campaign, name)
    if not (campaign.binary or between or binary is False):
        out.warn(f"note: {name}: all costs are 0 or 1; if they always are, --binary needs fewer trials")
    measure, design = source.measured()[0], source.design
    made = campaign.certificate(measure=measure, design=design, **provenance)
    return made, reason or "the trials ended before the rule was met"


@dataclass(frozen=True)
class _Source:
    """Trials in the order in which they count, and what is declared about them."""

    trials: Iterable[Trial]
    design: Design
    measured: Callable[[], tuple[Measure, bool]]
    """How, and whether nothing is between success and failure, once there is a trial."""
    tasks: Mapping[str, float] | None
    """Their weights, if the mean over them is meant."""


def certify_once(
    stream: str, reading: Reading, predictions: Predictions, binary: bool | None, settings: Mapping[str, Any]
) -> tuple[Certificate, Episodes]:
    """Return a certificate of all trials of a file with their predictions, and what was read."""
    predictions.check()
    refuse({"strata": reading.strata}, "does not go with --predicted: limits are on the mean of one task")
    source = _lines(stream, reading, Stopping(), predictions)
    trials = list(source.trials)
    if not trials:
        raise InvalidCost("no trial was found", where=Place(stream), remedy="at least one is needed")
    measure, kind = source.measured()
    numbers, costs = zip(*((each.number, each.cost) for each in trials), strict=True)
    given: dict[str, Any] = {"measure": measure, "design": source.design, "source": name_of(stream)}
    given["file_format"] = "read by line"
    read = Episodes(costs, binary=(kind or None) if binary is None else binary, numbers=numbers, **given)
    both = zip(*(each.predictions or (None, ()) for each in trials), strict=True)
    given = dict(zip(("predicted", "unlabeled"), both, strict=True))
    return Certificate.from_held_out(read, **settings, **given), read


def _lines(stream: str, reading: Reading, rule: Stopping, predictions: Predictions) -> _Source:
    """Return trials as their lines come; of several tasks, once each of them has come."""
    options = "--follow, --predicted or a pipe"
    reader = reading.read_lines(stream, options, answers=ANSWERS, **vars(predictions))
    design = replace(reader.declared.design, predicted=None, unlabeled=None)
    come: Iterator[Trial] = filter(None, arriving(stream, reader, wait=rule.follow))
    tasks, first = design.weights or None, list[Trial]()
    if design.strata is not None and tasks is None:
        while len(seen := dict.fromkeys((trial.stratum for trial in first), 1.0)) < (rule.tasks or 1):
            if (trial := next(come, None)) is None:
                problem = f"only {len(seen)} of {rule.tasks} tasks came, so no round is complete"
                raise InvalidCost(problem, where=Place(stream), remedy="send at least one trial of each")
            first.append(trial)
        tasks = seen
    return _Source(chain(first, come), design, lambda: (reader.layout.measure, reader.says_yes_or_no), tasks)


def _whole(stream: str, reading: Reading, binary: bool | None) -> _Source:
    """Return the trials of a whole file; of several tasks, the first of each, then the second of each."""
    episodes = reading.read(stream, binary=binary, answers=ANSWERS)
    out.print_warnings(episodes)
    trials, tasks = trials_of(episodes), None
    if names := episodes.keys.get("strata"):
        tasks = episodes.design.weights or dict.fromkeys(names, 1.0)
        rounds = Counter[str]()
        turns = [rounds.update([name]) or rounds[name] for name in names]
        trials = [trials[place] for place in sorted(range(len(trials)), key=turns.__getitem__)]
    return _Source(trials, episodes.design, lambda: (episodes.measure, episodes.binary), tasks)


def _refuse_none(campaign: Campaign | None, name: str) -> Campaign:
    """Return what can be certified; refuse no trial or no round, and say which trials complete none."""
    if campaign is None:
        problem = "no trial was counted, so nothing was certified"
        raise InvalidCost(problem, where=Place(name), remedy="send at least one")
    if not campaign.n:
        missing = ", ".join(set(campaign.strata or ()) - set(campaign.waiting))
        problem = f"has no trial of {missing}, so no round is complete and nothing was certified"
        raise InvalidCost(problem, where=Place(name), remedy="run each task at least once")
    if waiting := ", ".join(f"{number} of {task}" for task, number in campaign.waiting.items()):
        used = f"limits are from {wording.count(campaign.rounds, 'complete round')}"
        out.warn(f"note: {name}: {used}; these trials complete none and are not used: {waiting}")
    return campaign


def _print_trial(campaign: Campaign, cost: float, as_json: bool) -> None:
    """Print what is known after a trial or, of several tasks, after a round."""
    in_rounds = campaign.strata is not None
    if as_json:
        head = {} if in_rounds else {"cost": cost}
        print(json.dumps(head | campaign.to_dict(), allow_nan=False), flush=True)
        return
    if campaign.binary:
        known, width = f"fails in {wording.limits(campaign)} of trials", wording.points(campaign.width, "up")
        seen = f"{wording.failed(campaign):<18}"
    else:
        known, width = f"expected cost {wording.limits(campaign)}", wording.ceiling(campaign.width)
        seen = f"mean {campaign.mean_cost:<7.4f}"
    unit = "round" if in_rounds else "trial"
    seen = seen if in_rounds else out.seen(campaign, cost)
    print(f"{unit} {campaign.rounds:>5}  {seen} {known}  width {width}", flush=True)
