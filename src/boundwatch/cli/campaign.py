"""How `certify` runs a campaign: a line per trial, and a certificate as soon as a rule says stop."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from boundwatch.certificates.campaign import Campaign
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_1
from boundwatch.cli.reading import Reading, arriving
from boundwatch.episodes.episodes import binary_note, looks_binary
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidLevel, Place
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
    until_upper C: The same, once the upper limit is this low (with both options: once both hold).
    at_most N: The same, or after this many trials.
    follow: With a stopping rule: wait for the file to grow.
    """

    until_width: float | None = None
    until_upper: float | None = None
    at_most: Annotated[int | None, AT_LEAST_1] = None
    follow: bool = False

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
        if self.at_most is not None and campaign.n >= self.at_most:
            return f"after {wording.count(campaign.n, 'trial')}, the most allowed"
        return ""


def run_campaign(
    stream: str,
    output: Path,
    rule: Stopping,
    reading: Reading,
    *,
    deltas: dict[str, Any],
    binary: bool | None,
    provenance: dict[str, Any],
    sign: Path | None,
    as_json: bool,
) -> None:
    """Count trials until the rule is met or the stream ends, then write the certificate."""
    for name in ("until_width", "until_upper"):
        if (value := getattr(rule, name)) is not None and not 0 < value < 1:
            raise InvalidLevel("is outside (0, 1)", name=name, value=value, remedy="give 0.1, say")
    if rule.follow and stream == "-":
        raise typer.BadParameter("--follow is for files; standard input is always waited for")
    if reading.strata is not None:
        raise typer.BadParameter(
            "a stopping rule certifies one mixture, or one task: leave --strata out, or use --where"
        )
    by_line = rule.follow or stream == "-" or is_pipe(stream)
    trials = _read_lines(stream, reading, rule.follow) if by_line else _read_whole(stream, reading)
    run = _Run(name_of(stream), deltas, binary, as_json)
    reason = ""
    try:
        for trial, measure, yes_or_no in trials:
            run.count(trial, measure, yes_or_no=yes_or_no)
            if reason := rule.met(run.campaign):
                break
    except KeyboardInterrupt:
        reason = "it was interrupted" if run.costs else ""
    if not run.costs:
        problem = "no trial was counted, so nothing was certified"
        raise InvalidCost(problem, where=Place(run.source), remedy="send at least one")
    certificate = run.campaign.certificate(measure=run.measure, design=reading.design(), **provenance)
    written = out.save(certificate, output, sign)
    reason = reason or "the trials ended before the rule was met"
    if as_json:
        print(json.dumps({"stopped": reason, "output": str(output), "certificate": certificate.to_dict()}))
        return
    print(f"\nStopped: {reason}\n{written}")
    out.print_promise(certificate)


Read = Iterator[tuple[Trial, Measure, bool]]
"""Trials, how they are measured, and whether nothing is between success and failure."""


def _read_lines(stream: str, reading: Reading, wait: bool) -> Read:
    reading.refuse_several()
    reader = reading.read_lines(stream, reading.design(), "--follow or a pipe", "where")
    for trial in arriving(stream, reader, wait=wait):
        if trial is not None:
            yield trial, reader.measures[""], reader.says_yes_or_no


def _read_whole(stream: str, reading: Reading) -> Read:
    # Only the trials up to the last one may show that costs are 0 or 1.
    episodes = reading.read(stream, binary=False, answers=["where"])
    out.print_warnings(episodes)
    for trial in trials_of(episodes):
        yield trial, episodes.measure, episodes.measure.kind == "success"


@dataclass
class _Run:
    """A campaign while trials come in, and whether their costs are 0 and 1, as far as they have shown."""

    source: str
    deltas: dict[str, Any]
    binary: bool | None
    as_json: bool
    costs: list[float] = dataclasses.field(default_factory=list)
    campaign: Campaign = dataclasses.field(init=False)
    measure: Measure | None = None
    recognizes: bool = False

    def count(self, trial: Trial, measure: Measure, *, yes_or_no: bool) -> None:
        """Count a trial and print what is known."""
        (cost,), self.measure = trial.costs, measure
        if not self.costs:
            self.recognizes = self.binary is None and not yes_or_no
            binary = yes_or_no if self.binary is None else self.binary
            self.campaign = Campaign(binary=binary, **self.deltas)
        if self.campaign.binary and self.recognizes and cost not in (0, 1):
            note = f"line {trial.number}: cost {cost:g} is neither 0 nor 1"
            out.warn(f"note: {self.source}: {note}: from here on, limits for costs in between")
            self.campaign, self.recognizes = Campaign(**self.deltas).update_many(self.costs), False
        try:
            self.campaign.update(cost)
        except InvalidCost as error:
            raise error.at(Place(self.source, "line", trial.number)) from error
        self.costs.append(cost)
        if self.recognizes and not self.campaign.binary and looks_binary(np.array(self.costs)):
            out.warn(f"note: {self.source}: {binary_note(len(self.costs))}")
            self.campaign = Campaign(binary=True, **self.deltas).update_many(self.costs)
        _print_trial(self.campaign, cost, self.as_json)


def _print_trial(campaign: Campaign, cost: float, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"cost": cost} | campaign.to_dict(), allow_nan=False), flush=True)
        return
    if campaign.binary:
        limits = (
            f"fails in {wording.limits(campaign)} of trials  width {wording.points(campaign.width, 'up')}"
        )
    else:
        limits = (
            f"expected cost {wording.floor(campaign.lower)} to {wording.ceiling(campaign.upper)}  "
            f"width {wording.ceiling(campaign.width)}"
        )
    print(f"trial {campaign.n:>5}  {out.seen(campaign, cost)} {limits}", flush=True)
