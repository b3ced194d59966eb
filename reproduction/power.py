"""Beyond the paper: how much every detector and tail sees at the same guaranteed error.

The comparison is between detectors with the same data: the paper's certificate and ours come from the same
training environments. A certificate from environments of its own is drawn as an extra, and labeled so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from boundwatch import Certificate
from boundwatch.detectors.verdicts import TailName, Verdict
from boundwatch.readers import read_costs
from reproduction import style
from reproduction.artifacts import Array, Artifact, Cache
from reproduction.certification import bounds_of, theorem_1
from reproduction.figure import Caption, Claim, Table
from reproduction.judging import Shift, Tallied, Tally, confidence_interval, counted, split, tally, where
from reproduction.navigation import QUICK_SWEEP_SETTINGS, Flights
from reproduction.rereading import sequential_test
from reproduction.sweep import SweepSettings
from reproduction.trials import trials_needed

NAME = "power"
TITLE = "Beyond the paper: the power of every detector and tail"
TAILS: tuple[TailName, ...] = ("hoeffding", "kl", "betting")
THEOREM_1, POINTWISE, HELD_OUT = "Theorem 1", "pointwise", "held out"


@dataclass(frozen=True)
class Settings(SweepSettings):
    """What is computed."""

    rate: float = 0.05
    """Guaranteed rate of either error, delta included, for all detectors."""
    held_out: int = 10_000
    """Environments of the held-out certificate, which the other certificates do not need."""
    held_out_seed: int = 1
    """Of its flights; they are neither the training's nor those that give the true shift."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return the flights over difficulty, and those of the held-out certificate."""
        return [*super().artifacts(), self.held_out_flights()]

    def held_out_flights(self) -> Flights:
        """Return the flights of the held-out certificate."""
        return Flights(self.sweep.policy, "training", self.held_out, self.held_out_seed)


@dataclass(frozen=True)
class Certain:
    """A certificate's limits."""

    lower: float
    upper: float
    delta_upper: float


@dataclass(frozen=True)
class Trials:
    """How many trials a detector needs in a setting for a power of 90 %."""

    certificate: str
    setting: str
    shift: float
    tail: str
    verdict: str
    trials: int | None
    """None if 1000 do not do."""
    mean_trials: float | None


@dataclass(frozen=True)
class Results(Tallied):
    """What came out."""

    rate: float
    certificates: dict[str, Certain]
    held_out: int
    trials: list[Trials]


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS, held_out=1000)


def run(settings: Settings, cache: Cache) -> Results:
    """Judge all datasets with every certificate and tail; plan how many trials each setting needs."""
    sweep = settings.sweep
    certificates = _certificates(settings, cache)
    reference = sweep.flights("training").costs(cache)
    tallies, trials = [], []
    for name in sweep.settings:
        costs = sweep.flights(name).costs(cache)
        shift = Shift.between(costs, reference)
        for label, certificate in certificates.items():
            found = []
            for n, tail in product(settings.sizes, TAILS):
                detector = confidence_interval(certificate, settings.rate, tail)
                found.append(tally(detector, split(costs, n, sweep.datasets), name, shift))
            streams = split(costs, max(settings.sizes), sweep.datasets)
            found += _sequential_tallies(certificate, settings, streams, name, shift)
            tallies += [replace(row, certificate=label) for row in found]
            trials += _trials(label, certificate, settings.rate, costs, name, shift)
    limits = {label: Certain(c.lower, c.upper, c.delta_upper) for label, c in certificates.items()}
    return Results(tallies, settings.rate, limits, settings.held_out, trials)


def _certificates(settings: Settings, cache: Cache) -> dict[str, Certificate]:
    """Certify the same policy three ways. Each is valid by itself; none is chosen by its value."""
    trained, folder = settings.policy.load(cache), cache.folder(settings.policy)
    costs, delta = read_costs(folder / "costs.csv").costs, trained.recipe.delta
    return {
        THEOREM_1: theorem_1(trained, folder),
        POINTWISE: Certificate.from_pointwise(costs, delta, log_ratio=bounds_of(trained)["log_ratio"]),
        HELD_OUT: Certificate.from_held_out(settings.held_out_flights().costs(cache), delta),
    }


def _sequential_tallies(
    certificate: Certificate, settings: Settings, streams: Array, name: str, shift: Shift
) -> list[Tally]:
    """Watch every dataset trial by trial; count the alarms within each number of trials."""
    test = sequential_test(certificate, settings.rate)
    alarms, verdicts = [], []
    for stream in streams:
        test.reset()
        test.update_many(stream)
        alarms.append(test.first_alarm or np.inf)
        verdicts.append(test.verdict)
    return [
        counted(
            np.where(np.array(alarms) <= n, np.array(verdicts), Verdict.WITHIN),
            setting=name,
            shift=shift,
            detector="sequential-test",
            tail="mixture",
            n=n,
            rates=(settings.rate, settings.rate),
        )
        for n in settings.sizes
    ]


def _trials(
    label: str, certificate: Certificate, rate: float, costs: Array, setting: str, shift: Shift
) -> list[Trials]:
    """Return the trials that each detector needs for a power of 90 %; nothing inside the interval."""
    if certificate.lower <= costs.mean() <= certificate.upper:
        return []
    verdict = Verdict.ADVERSE if costs.mean() > certificate.upper else Verdict.BENIGN
    return [
        Trials(label, setting, shift.difference, tail, verdict.value, trials, mean)
        for tail, trials, mean in trials_needed(certificate, costs, rate - certificate.delta_upper)
    ]


def _powers(results: Results, label: str, tail: str, n: int) -> list[tuple[float, float]]:
    """Return true shifts and the shares of ADVERSE there, in order."""
    return sorted(row.point for row in where(results.tallies, certificate=label, tail=tail, n=n))


def smallest_shift(results: Results, label: str, tail: str, n: int) -> float | None:
    """Return the smallest shift from which the power is 90 %, between settings by a straight line."""
    points = [(shift, share) for shift, share in _powers(results, label, tail, n) if shift > -0.02]
    if not points or points[-1][1] < 0.9:
        return None
    # From the right, so that a dip on the way counts against it.
    for (low, before), (high, after) in reversed(list(pairwise(points))):
        if before < 0.9 <= after:
            return float(low + (high - low) * (0.9 - before) / (after - before))
    return float(points[0][0])


def draw(results: Results) -> Figure:
    """Draw power against shift at each number of trials, and trials against shift."""
    sizes = results.sizes
    figure = style.new_figure(12, 4.6)
    *powers, right = figure.subplots(1, len(sizes) + 1)
    curves = _curves(results)
    for axes, n in zip(powers, sizes, strict=True):
        for label, tail, look in curves:
            style.curve(axes, _powers(results, label, tail, n), **look)
        axes.axhline(0.9, color="#bbbbbb", linewidth=0.8, zorder=0)
        style.shift_panel(axes, f"n = {n} trials")
    for label, tail, look in curves:
        needed = _adverse_trials(results, label, tail)
        style.curve(right, [(shift, trials) for shift, trials in needed.values() if trials], **look)
    right.set(xlabel="true shift of the expected cost", ylabel="trials for a power of 90 %", yscale="log")
    style.bare(right, "trials needed")
    style.legend_below(figure, powers[0], 2)
    return figure


def _curves(results: Results) -> list[tuple[str, str, dict[str, Any]]]:
    """Return certificate, tail and look: one more step from the paper's method with each."""
    same = "pointwise certificate (same data)"
    extra = f"held-out certificate ({results.held_out:,} additional environments)"
    look = {"color": "#009E73", "linestyle": (0, (1, 1.5)), "marker": "x", "linewidth": 1.2}
    return [
        (THEOREM_1, "hoeffding", style.line("hoeffding", label="the paper: Theorem 1, Hoeffding")),
        (POINTWISE, "hoeffding", style.line("kl", label=f"{same}, Hoeffding")),
        (POINTWISE, "betting", style.line("betting", label=f"{same}, betting")),
        (POINTWISE, "mixture", style.line("mixture", label=f"{same}, sequential test")),
        (HELD_OUT, "betting", style.line("betting", **look, label=f"{extra}, betting")),
    ]


def _adverse_trials(results: Results, label: str, tail: str) -> dict[str, tuple[float, int | None]]:
    """Return, by adverse setting, its shift and the trials for a power of 90 %; none if 1000 do not do."""
    return {
        row.setting: (row.shift, row.trials)
        for row in results.trials
        if (row.certificate, row.tail, row.verdict) == (label, tail, "adverse")
    }


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    return Caption(
        see="All curves have the same guaranteed error. Left and middle: a curve further to the left sees "
        "smaller shifts with the same trials. Right: a lower curve needs fewer trials. The sequential test "
        "(thick) may in addition be read after every trial, and stops when it alarms.",
        numbers=f"{results.datasets:,} datasets per setting; total error {100 * results.rate:.0f} %, delta "
        "included; trials from datasets drawn from each setting's costs. For the sequential test: the share "
        "of alarms within n trials.",
        paper="The paper has no such figure; the gray curve is its method.",
        differs="The paper's certificate and the pointwise one are of the same policy, from the same "
        "training environments. The dotted curve is an extra, not a fair comparison: its certificate took "
        f"{results.held_out:,} additional environments. At equal total error the hypothesis test and the "
        "confidence interval are the same detector, so one curve stands for both. The exact tail needs "
        "binary costs; see grasping.",
    )


def tables(results: Results) -> list[Table]:
    """Return the smallest shift seen, and trials."""
    sizes = results.sizes
    names = {"hoeffding": "Hoeffding", "kl": "kl", "betting": "betting", "mixture": "sequential test"}
    data = {HELD_OUT: f" ({results.held_out:,} additional environments)"}
    lines = []
    for label, certificate in results.certificates.items():
        for tail, name in names.items():
            seen = [smallest_shift(results, label, tail, n) for n in sizes]
            lines.append(
                (
                    label + data.get(label, ""),
                    f"{certificate.upper:.4f}",
                    name,
                    *("none" if shift is None else f"{shift:+.3f}" for shift in seen),
                )
            )
    header = ("certificate", "upper limit", "tail", *(f"smallest shift, n = {n}" for n in sizes))
    found = [Table("The smallest adverse shift that is seen with a power of 90 %", header, tuple(lines))]
    columns = [_adverse_trials(results, label, tail) for label, tail, _ in _curves(results)]
    shifts = {setting: shift for column in columns for setting, (shift, _) in column.items()}
    lines = []
    for setting, shift in sorted(shifts.items(), key=lambda item: item[1]):
        cells = ["–" if setting not in column else str(column[setting][1] or "> 1,000") for column in columns]
        lines.append((f"{shift:+.3f}", *cells))
    header = ("shift", *(look["label"] for _, _, look in _curves(results)))
    title = "Trials for a power of 90 % (–: inside the certified interval)"
    return [*found, Table(title, header, tuple(lines))]


def claims(results: Results) -> list[Claim]:
    """State what is ours; there is nothing of the paper's to check."""
    return [_smaller_shifts(results), _fewer_trials(results)]


def _smaller_shifts(results: Results) -> Claim:
    parts, worse = [], []
    for n in results.sizes:
        paper = smallest_shift(results, THEOREM_1, "hoeffding", n)
        ours = smallest_shift(results, POINTWISE, "betting", n)
        extra = smallest_shift(results, HELD_OUT, "betting", n)
        seen = ["none" if shift is None else f"{shift:+.3f}" for shift in (ours, paper, extra)]
        parts.append(f"n = {n}: {seen[0]} instead of {seen[1]} ({seen[2]})")
        if ours is None or (paper is not None and ours >= paper):
            worse.append(f"n = {n}")
    return Claim.judged(
        "With the same data and the same guaranteed error, the pointwise certificate and the betting tail "
        "see smaller shifts than Theorem 1 and Hoeffding.",
        f"The smallest shift seen with a power of 90 %, and in brackets with {results.held_out:,} "
        f"additional environments: {'; '.join(parts)}.",
        "smaller with each n (in part: with one).",
        f"Not so with {', '.join(worse)}." if worse else "",
        partly=len(worse) < len(parts),
        beyond=True,
    )


def _fewer_trials(results: Results) -> Claim:
    theirs = _adverse_trials(results, THEOREM_1, "hoeffding")
    parts: list[str] = []
    ratios: list[float] = []
    for tail, name in (("betting", "the betting tail"), ("mixture", "the sequential test")):
        ours = _adverse_trials(results, POINTWISE, tail)
        # Where the paper's method reaches the power and ours does not, ours is infinitely worse.
        found = [
            trials / needed if (needed := ours.get(setting, (0.0, None))[1]) else 0.0
            for setting, (_, trials) in theirs.items()
            if trials
        ]
        if found:
            parts.append(f"{min(found):.2f} to {max(found):.2f} times those of {name}")
            ratios += found
    said = (
        "With the same data and the same guaranteed error, the pointwise certificate and the betting tail "
        "need fewer trials than Theorem 1 and Hoeffding, and so does the sequential test."
    )
    if not ratios:
        return Claim.unchecked(said, "The paper's method reaches a power of 90 % in no setting.", beyond=True)
    fewer = min(ratios) > 1
    return Claim.judged(
        said,
        f"For a power of 90 %, the paper's method needs {' and '.join(parts)}, in "
        f"{sum(trials is not None for _, trials in theirs.values())} settings.",
        "fewer in every setting (in part: in one).",
        ""
        if fewer
        else f"Not so in {sum(ratio <= 1 for ratio in ratios)} of {len(ratios)} comparisons. The sequential "
        "test pays for the right to be read after every trial.",
        partly=max(ratios) > 1,
        beyond=True,
    )
