"""How `certify` runs a campaign: a line per trial, and a certificate as soon as a rule says stop."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from boundwatch.certificates import signing
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.reading import Reading
from boundwatch.episodes.episodes import binary_note, looks_binary
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidLevel, Place
from boundwatch.reporting import wording
from boundwatch.watching.sources import is_pipe, name_of, open_lines
from boundwatch.watching.trials import Trial, TrialReader, declare, read_on, refuse_document, trials_of


@dataclass(frozen=True)
class StoppingRule:
    """When to stop: at a width and an upper limit, both if both are given, or after so many trials.

    Examples
    --------
    >>> rule = StoppingRule(until_width=0.9, at_most=2)
    >>> campaign = Campaign(binary=True)
    >>> [rule.met(campaign.update(cost)) for cost in (0, 0)]
    ['', 'after 2 trials, the most allowed']
    """

    until_width: float | None = None
    until_upper: float | None = None
    at_most: int | None = None

    @property
    def given(self) -> bool:
        """Whether there is any."""
        return any(value is not None for value in dataclasses.astuple(self))

    def met(self, campaign: Campaign) -> str:
        """Return why to stop, or nothing."""
        wanted = []
        if self.until_width is not None:
            wanted.append((campaign.width <= self.until_width, f"the width is at most {self.until_width:g}"))
        if self.until_upper is not None:
            wanted.append(
                (campaign.upper <= self.until_upper, f"the upper limit is at most {self.until_upper:g}")
            )
        if wanted and all(met for met, _ in wanted):
            return " and ".join(reason for _, reason in wanted)
        if self.at_most is not None and campaign.n >= self.at_most:
            return f"after {wording.count(campaign.n, 'trial')}, the most allowed"
        return ""


def run_campaign(
    stream: str,
    output: Path,
    rule: StoppingRule,
    reading: Reading,
    *,
    deltas: dict[str, Any],
    binary: bool | None,
    follow: bool,
    sign: Path | None,
    provenance: dict[str, Any],
    as_json: bool,
) -> None:
    """Count trials until the rule is met or the stream ends, then write the certificate."""
    _refuse(rule, stream, follow)
    reading.refuse_strata(
        "a stopping rule certifies one mixture, or one task: leave --strata out, or use --where"
    )
    read = _read_lines if follow or stream == "-" or is_pipe(stream) else _read_whole
    run = _Run(name_of(stream), deltas, binary, as_json)
    reason = ""
    try:
        for trial, measure, yes_or_no in read(stream, reading, follow):
            run.count(trial, measure, yes_or_no=yes_or_no)
            if reason := rule.met(run.campaign):
                break
    except KeyboardInterrupt:
        reason = "it was interrupted" if run.costs else ""
    if not run.costs:
        raise InvalidCost(
            "no trial was counted, so nothing was certified",
            where=Place(name_of(stream)),
            remedy="send at least one",
        )
    certificate = run.campaign.certificate(measure=run.measure, design=reading.design(), **provenance)
    if sign is not None:
        signing.sign(output, certificate.to_dict(), sign)
    certificate.save(output)
    written = f"{output}{out.signed(output, sign)}"
    _print_end(certificate, output, written, reason or "the trials ended before the rule was met", as_json)


Read = Iterator[tuple[Trial, Measure, bool]]
"""Trials, how they are measured, and whether nothing is between success and failure."""


def _refuse(rule: StoppingRule, stream: str, follow: bool) -> None:
    for name in ("until_width", "until_upper"):
        value = getattr(rule, name)
        if value is not None and not 0 < value < 1:
            raise InvalidLevel("is outside (0, 1)", name=name, value=value, remedy="give 0.1, say")
    if follow and stream == "-":
        raise typer.BadParameter("--follow is for files; standard input is always waited for")


def _read_lines(stream: str, reading: Reading, follow: bool) -> Read:
    reading.refuse_whole_files("--follow or a pipe")
    words = tuple(reading.success_values or ())
    declared = declare(reading.columns, reading.design(), cost_range=reading.cost_range, success_values=words)
    reader = TrialReader(declared, name_of(stream), answers=reading.answers("where"))
    refuse_document(stream, reader)
    for found in read_on(open_lines(stream, follow=follow), reader):
        if isinstance(found, str):
            _note(name_of(stream), found)
        elif found is not None:
            yield found, reader.measures[""], reader.says_yes_or_no


def _read_whole(stream: str, reading: Reading, follow: bool) -> Read:  # noqa: ARG001  (it has ended)
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
            _note(self.source, f"{note}: from here on, limits for costs in between")
            self.campaign, self.recognizes = Campaign(**self.deltas).update_many(self.costs), False
        try:
            self.campaign.update(cost)
        except InvalidCost as error:
            raise error.at(Place(self.source, "line", trial.number)) from error
        self.costs.append(cost)
        if self.recognizes and not self.campaign.binary and looks_binary(np.array(self.costs)):
            _note(self.source, binary_note(len(self.costs)))
            self.campaign = Campaign(binary=True, **self.deltas).update_many(self.costs)
        _print_trial(self.campaign, cost, self.as_json)


def _note(source: str, note: str) -> None:
    print(f"boundwatch: note: {source}: {note}", file=sys.stderr)


def _print_trial(campaign: Campaign, cost: float, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"cost": cost} | campaign.to_dict(), allow_nan=False), flush=True)
        return
    if campaign.binary:
        seen = f"{'failed' if cost else 'succeeded':<9}  {wording.failed(campaign):<16}"
        limits = f"fails in {wording.rates(campaign)} of trials  width {wording.points(campaign.width, 'up')}"
    else:
        seen = f"cost {cost:<6.4g} mean {campaign.mean_cost:<7.4f}"
        limits = (
            f"expected cost {wording.floor(campaign.lower)} to {wording.ceiling(campaign.upper)}  "
            f"width {wording.ceiling(campaign.width)}"
        )
    print(f"trial {campaign.n:>5}  {seen} {limits}", flush=True)


def _print_end(certificate: Certificate, output: Path, written: str, reason: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"stopped": reason, "output": str(output), "certificate": certificate.to_dict()}))
        return
    print(f"\nStopped: {reason}\nWrote {written}")
    out.print_section("Promise", wording.promise(certificate))
    out.print_section("Basis", wording.basis(certificate))
