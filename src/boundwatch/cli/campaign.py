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

from boundwatch._support.text import shown
from boundwatch.certificates import signing
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.reading import Reading
from boundwatch.episodes import Episodes, binary_note, looks_binary
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.opening import refuse_document
from boundwatch.episodes.steps import Order
from boundwatch.episodes.table import Wanted
from boundwatch.episodes.text import decode_line
from boundwatch.episodes.words import affirmed
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.reporting import wording
from boundwatch.watching.files import FileSource
from boundwatch.watching.pipes import PipeSource, is_pipe
from boundwatch.watching.sources import name_of


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
    _refuse(reading, rule, stream, follow)
    lines = LineReader(
        Wanted.of(success=reading.success, cost=reading.cost, reward=reading.reward),
        reading.cost_range,
        bool(binary),
        tuple(reading.success_values or ()),
        order=Order(mixture=True),
    )
    costs: list[float] = []
    campaign, reason, recognizes = None, "", False
    try:
        for number, cost, value in _trials(stream, lines, follow=follow):
            if campaign is None:
                _, meaning = lines.chosen
                if binary is None:  # yes or no leaves nothing in between
                    binary = (
                        meaning == "success" or isinstance(value, bool) or affirmed(str(value)) is not None
                    )
                    recognizes = not binary
                campaign = Campaign(binary=binary, **deltas)
            if campaign.binary and recognizes and cost not in (0, 1):
                note = f"cost {cost:g} is neither 0 nor 1: from here on, limits for costs in between"
                print(f"boundwatch: note: {name_of(stream)}: line {number}: {note}", file=sys.stderr)
                campaign, recognizes = Campaign(**deltas).update_many(costs), False
            try:
                campaign.update(cost)
            except InvalidCost as error:
                raise InvalidCost(f"{name_of(stream)}: line {number}: {error}") from error
            costs.append(cost)
            if recognizes and not campaign.binary and looks_binary(np.array(costs)):
                print(f"boundwatch: note: {name_of(stream)}: {binary_note(len(costs))}", file=sys.stderr)
                campaign = Campaign(binary=True, **deltas).update_many(costs)
            _print_trial(campaign, cost, as_json)
            if reason := rule.met(campaign):
                break
    except KeyboardInterrupt:
        reason = "it was interrupted" if campaign is not None else ""
    if campaign is None:
        raise InvalidCost(
            f"{name_of(stream)}: no trial was counted, so nothing was certified; send at least one"
        )
    tasks = [next(iter(rows)) for rows in lines.order.blocks.values() if rows is not None and len(rows) == 1]
    if tasks:
        of = " and ".join(map(shown, tasks))
        note = f"all trials are from {of}; the certificate says nothing about other tasks or robots"
        print(f"boundwatch: note: {name_of(stream)}: {note}", file=sys.stderr)
    column, meaning = lines.chosen
    episodes = Episodes(
        np.array(costs), campaign.binary, name_of(stream), column, meaning, cost_range=reading.cost_range
    )
    certificate = campaign.certificate(
        measured=episodes.measured, cost_range=reading.cost_range, **provenance
    )
    if sign is not None:
        signing.sign(output, certificate.to_dict(), sign)
    certificate.save(output)
    written = f"{output}{out.signed(output, sign)}"
    _print_end(certificate, output, written, reason or "the trials ended before the rule was met", as_json)


def _refuse(reading: Reading, rule: StoppingRule, stream: str, follow: bool) -> None:
    reading.refuse_whole_files("a stopping rule")
    for name in ("until_width", "until_upper"):
        value = getattr(rule, name)
        if value is not None and not 0 < value < 1:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidSetting(f"{flag} = {value:g} is outside (0, 1); give a limit such as 0.1")
    if follow and stream == "-":
        raise typer.BadParameter("--follow is for files; standard input is always waited for")
    refuse_document(stream, reading.columns.values())


def _trials(stream: str, lines: LineReader, *, follow: bool) -> Iterator[tuple[int, float, object]]:
    source: PipeSource | FileSource
    if is_pipe(stream):
        source = PipeSource(stream, once=True)
    else:
        source = FileSource(stream, follow=follow, once=not follow)
    for batch in source.batches():
        if batch.said:
            print(f"boundwatch: note: {name_of(stream)}: {batch.said}", file=sys.stderr)
        for line in batch.lines:
            try:
                if line.fault:
                    raise InvalidCost(line.fault)
                found = lines.read(decode_line(line.raw)[0])
            except InvalidCost as error:
                # A trial left out would void the promise.
                raise InvalidCost(f"{name_of(stream)}: line {line.number}: {error}") from error
            except InvalidSetting as error:
                raise InvalidSetting(f"{name_of(stream)}: line {line.number}: {error}") from error
            if lines.noticed:
                note = f"{name_of(stream)}: line {line.number} {lines.noticed}"
                print(f"boundwatch: note: {note}", file=sys.stderr)
            if found is not None:
                yield line.number, found.cost, found.fields[lines.chosen[0] or "1"]


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
