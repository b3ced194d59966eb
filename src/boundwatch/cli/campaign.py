"""How `certify` runs a campaign: a line per trial, and a certificate as soon as a rule says stop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_1, refuse_if
from boundwatch.cli.reading import ANSWERS, Reading, arriving
from boundwatch.episodes.design import Design
from boundwatch.episodes.episodes import binary_note, looks_binary
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidLevel, Place, Refusal
from boundwatch.reporting import wording
from boundwatch.watching.sources import is_pipe, name_of
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
    until_width W: Read trial by trial and stop once the interval is this narrow.
    until_upper C: The same, once the upper limit is this low (of both: once both hold).
    at_most N: The same, or after this many trials.
    follow: With a stopping rule: wait for the file to grow.
    tasks N: With --strata and --follow or a pipe: how many tasks.
    """

    until_width: float | None = None
    until_upper: float | None = None
    at_most: Annotated[int | None, AT_LEAST_1] = None
    follow: bool = False
    tasks: Annotated[int | None, AT_LEAST_1] = None

    @property
    def given(self) -> bool:
        """Whether there is any rule."""
        return not (self.until_width is None and self.until_upper is None and self.at_most is None)

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
    by_line = rule.follow or stream == "-" or is_pipe(stream)
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
    run = _Run(stream, deltas, binary, as_json)
    reason = ""
    try:
        for trial in run.lines(reading, rule) if by_line else run.whole(reading):
            run.count(trial)
            if reason := rule.met(run.campaign):
                break
    except KeyboardInterrupt:
        reason = "it was interrupted" if run.costs else ""
    return run.certificate(**provenance), reason or "the trials ended before the rule was met"


@dataclass
class _Run:
    """A campaign while trials come in, and whether their costs are 0 and 1, as far as they have shown."""

    stream: str
    deltas: Mapping[str, Any]
    binary: bool | None
    as_json: bool
    costs: list[float] = field(default_factory=list)
    strata: list[str] = field(default_factory=list)
    campaign: Campaign = field(init=False)
    design: Design = field(init=False)
    tasks: Mapping[str, float] | None = None  # with their weights, if the mean over them is meant
    measured: Callable[[], tuple[Measure, bool]] = field(init=False)
    """How, and whether nothing is between success and failure, once there is a trial."""
    recognizes: bool = False

    def lines(self, reading: Reading, rule: Stopping) -> Iterator[Trial]:
        """Yield trials as their lines come; of several tasks, once each of them has come."""
        reading.refuse_several()
        self.design = reading.design()
        reader = reading.read_lines(self.stream, self.design, "--follow or a pipe", ANSWERS)
        self.measured = lambda: (reader.measure, reader.says_yes_or_no)
        arrived: Iterator[Trial] = filter(None, arriving(self.stream, reader, wait=rule.follow))
        self.tasks = self.design.weights or None
        if self.design.strata is not None and self.tasks is None:
            first: list[Trial] = []
            while len(seen := {trial.stratum for trial in first}) < (rule.tasks or 1):
                if (trial := next(arrived, None)) is None:
                    problem = f"only {len(seen)} of {rule.tasks} tasks came, so no round is complete"
                    raise self._refusal(problem, "send at least one trial of each")
                first.append(trial)
            self.tasks = dict.fromkeys((trial.stratum for trial in first), 1.0)
            yield from first
        yield from arrived

    def whole(self, reading: Reading) -> Iterator[Trial]:
        """Yield the trials of a whole file; of several tasks, the first of each, then the second of each."""
        # Only the trials up to the last one may show that costs are 0 or 1.
        episodes = reading.read(self.stream, binary=False, answers=ANSWERS)
        out.print_warnings(episodes)
        self.design = episodes.design
        self.measured = lambda: (episodes.measure, episodes.measure.kind == "success")
        trials = trials_of(episodes)
        if names := episodes.keys.get("strata"):
            self.tasks = self.design.weights or dict.fromkeys(names, 1.0)
            rounds = Counter[str]()
            turns = [rounds.update([name]) or rounds[name] for name in names]
            trials = [trials[place] for place in sorted(range(len(trials)), key=turns.__getitem__)]
        yield from trials

    def count(self, trial: Trial) -> None:
        """Count a trial and print what is known."""
        cost, source = trial.cost, name_of(self.stream)
        if not self.costs:
            yes_or_no = self.measured()[1]
            self.recognizes = self.binary is None and not yes_or_no
            self.campaign = self._begun(yes_or_no if self.binary is None else self.binary)
        if self.campaign.binary and self.recognizes and cost not in (0, 1):
            note = f"line {trial.number}: cost {cost:g} is neither 0 nor 1"
            out.warn(f"note: {source}: {note}: from here on, limits for costs in between")
            self.campaign, self.recognizes = self._begun(False), False
        rounds = self.campaign.rounds
        try:
            self.campaign.update(cost, trial.stratum if self.tasks is not None else None)
        except Refusal as error:
            raise error.at(Place(source, "line", trial.number)) from error
        self.costs.append(cost)
        self.strata.append(trial.stratum)
        if self.recognizes and not self.campaign.binary and looks_binary(np.array(self.costs)):
            out.warn(f"note: {source}: {binary_note(len(self.costs))}")
            self.campaign = self._begun(True)
        if self.campaign.rounds > rounds:
            _print_trial(self.campaign, cost, self.as_json)

    def _begun(self, binary: bool) -> Campaign:
        """Return a campaign that has counted all trials so far."""
        campaign = Campaign(binary=binary, strata=self.tasks, **self.deltas)
        if self.costs:
            campaign.update_many(self.costs, None if self.tasks is None else self.strata)
        return campaign

    def certificate(self, **provenance: Any) -> Certificate:
        """Return the certificate; say which trials complete no round."""
        if not self.costs:
            raise self._refusal("no trial was counted, so nothing was certified", "send at least one")
        waiting = ", ".join(f"{number} of {name}" for name, number in self.campaign.waiting.items())
        if not self.campaign.n:
            missing = ", ".join(set(self.tasks or ()) - set(self.strata))
            problem = f"has no trial of {missing}, so no round is complete and nothing was certified"
            raise self._refusal(problem, "run each task at least once")
        if waiting:
            used = f"limits are from {wording.count(self.campaign.rounds, 'complete round')}"
            unused = f"{used}; these trials complete none and are not used: {waiting}"
            out.warn(f"note: {name_of(self.stream)}: {unused}")
        return self.campaign.certificate(measure=self.measured()[0], design=self.design, **provenance)

    def _refusal(self, problem: str, remedy: str) -> InvalidCost:
        return InvalidCost(problem, where=Place(name_of(self.stream)), remedy=remedy)


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
