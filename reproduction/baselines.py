"""MSP and MaxLogit beside the detectors, over difficulty (the paper's Figure 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from scipy.stats import binom

from reproduction import recorded, style
from reproduction.artifacts import Array, Cache
from reproduction.certification import Limits, certificate_of
from reproduction.confidence import MSP, MaxLogit
from reproduction.figure import Caption, Claim, Table, percent
from reproduction.judging import (
    PAPERS_N,
    SIGNIFICANT,
    Check,
    Shift,
    Tallied,
    Tally,
    confidence_interval,
    corrected,
    counted,
    hypothesis_test,
    no_false_declaration,
    split,
    tally,
    where,
)
from reproduction.navigation import QUICK_SWEEP_SETTINGS, Flights, in_words
from reproduction.sweep import IN_PART, VISIBLE, SweepSettings, points, true_shift

NAME = "baselines"
TITLE = "Drone: MSP and MaxLogit on settings of varied difficulty"
OURS = ("hypothesis-test", "confidence-interval")
THEIRS = ("msp", "max-logit")
TRUE_LOGIT = "MaxLogit uses the true maximum logit."
NO_RULE = (
    "Confidence is not cost: how a network's outputs react to fields that it has not seen depends on the "
    "network. Ours is a function of one image; the authors' normalized each batch by itself."
)


@dataclass(frozen=True)
class Settings(SweepSettings):
    """What is computed."""

    alpha: float = 0.05
    """Level of the test, rate of the interval, and the share of training data that the baselines reject."""


@dataclass(frozen=True)
class Results(Tallied):
    """What came out."""

    alpha: float
    certificate: Limits
    baselines: list[Tally]
    """Of those that promise nothing."""

    @property
    def everybody(self) -> list[Tally]:
        """The detectors' tallies, and then the baselines'."""
        return self.tallies + self.baselines

    def share(self, detector: str, **values: object) -> float:
        """Return the share of ADVERSE in the one tally of a detector or baseline that has these values."""
        (row,) = where(self.everybody, detector=detector, **values)
        return row.share()

    def listed(self, detectors: Sequence[str], **values: object) -> str:
        """Return the share of each at every number of trials in words, the paper's number first."""
        return "; ".join(
            f"n = {n}: {listed({name: self.share(name, n=n, **values) for name in detectors})}"
            for n in self.papers_first
        )


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS)


def run(settings: Settings, cache: Cache) -> Results:
    """Judge the datasets of all distributions with detectors and baselines."""
    sweep, watch = settings.sweep, Watch(settings, cache)
    found = [
        watch.judge(sweep.flights(name), cache, true_shift(sweep, name, cache), n, sweep.datasets)
        for name in settings.names
        for n in settings.sizes
    ]
    return Results(
        tallies=[row for ours, _ in found for row in ours],
        alpha=settings.alpha,
        certificate=Limits.of(settings, cache),
        baselines=[row for _, theirs in found for row in theirs],
    )


class Watch:
    """Both detectors and, from the network's outputs in training, both baselines, at the same level."""

    def __init__(self, settings: Any, cache: Cache) -> None:
        certificate, alpha = certificate_of(settings, cache), settings.alpha
        logits: Array = settings.policy.load(cache).logits.astype(float)
        self._detectors = hypothesis_test(certificate, alpha), confidence_interval(certificate, alpha)
        self._baselines = (MSP(logits, alpha=alpha), MaxLogit(logits, alpha=alpha))

    def judge(
        self, flights: Flights, cache: Cache, shift: Shift, n: int, datasets: int
    ) -> tuple[list[Tally], list[Tally]]:
        """Return the tallies of the detectors, and those of the baselines, which promise nothing."""
        rows, outputs = split(flights.costs(cache), n, datasets), split(flights.logits(cache), n, datasets)
        setting = flights.distribution
        ours = [tally(detector, rows, setting, shift) for detector in self._detectors]
        theirs = [
            counted(each.decide_many(outputs), setting=setting, shift=shift, detector=each.name, n=n)
            for each in self._baselines
        ]
        return ours, theirs


def draw(results: Results) -> Figure:
    """Draw the share of datasets that each calls shifted (ADVERSE) against the true shift."""
    sizes = results.sizes
    published = recorded.published("figure_6_baselines").values()
    figure = style.new_figure(4.3 * len(sizes) + 4.3, 4)
    panels = figure.subplots(1, len(sizes) + 1, sharey=True, squeeze=False)[0]
    for axes, n in zip(panels, (*sizes, None), strict=True):
        for detector in (*OURS, *THEIRS):
            mine = [row.point for row in where(results.everybody, n=n, detector=detector)]
            theirs = [(point.shift, point.share(detector)) for point in published]
            style.curve(axes, mine if n else theirs, **style.line(detector))
        style.level(axes, results.alpha, f"{100 * results.alpha:.0f} %", above=3)
        style.shift_panel(axes, f"n = {n} trials" if n else f"The authors' curves, n = {PAPERS_N}", None)
    figure.axes[0].set_ylabel("share of datasets called shifted (ADVERSE)")
    style.legend_below(figure, figure.axes[0], 4)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    return Caption(
        see="Left of zero the policy pays less than in training: an alarm there is about nothing that hurts. "
        "Right of zero, a curve that is higher notices smaller adverse shifts.",
        numbers=f"{results.datasets:,} datasets per setting, n as in the titles; level {results.alpha}.",
        paper="In the paper's Figure 6 both baselines alarm at easier settings, and at small adverse shifts "
        "more often than the detectors: the panel on the right, for the authors' policy and its shifts. See "
        "the table for the training distribution itself.",
        differs=results.certificate.note
        + " The paper's text says n = 10, the code that drew its figure has n = 50: its claims are judged "
        f"there, the detectors' guarantees at every n. {TRUE_LOGIT} Our network has no batch statistics, so "
        "it treats an environment alike whichever others come with it; the baselines' thresholds come from "
        "its outputs on the training environments, as in the paper.",
    )


def tables(results: Results) -> list[Table]:
    """Return how often each alarms in the training distribution."""
    lines = []
    for row in where(results.everybody, setting="training"):
        p_value = f"{_p_value(row, results.alpha):.2g}"
        lines.append((str(row.n), style.LINES[row.detector]["label"], percent(row.share()), p_value))
    title = (
        "New environments of the training distribution: alarms, and the p-value of alarming more often than "
        + percent(results.alpha)
    )
    return [Table(title, ("n", "detector", "alarms", "p-value"), tuple(lines))]


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its Figure 6, at its number of trials; guarantees at every number."""
    benign = results.checks("adverse")
    judges = (_in_training_too, _easier, _easiest, _small_shifts, _relevant_shifts)
    return [
        _below_level(benign, results.alpha),
        _only_adverse(results, benign),
        *(judge(results, results.n) for judge in judges),
    ]


def _below_level(benign: list[Check], alpha: float) -> Claim:
    worst = max(benign, key=lambda check: check.rate)
    most = worst.rate
    where = (
        f"{in_words(worst.tally.setting)}, {style.LINES[worst.tally.detector]['label']}, n = {worst.tally.n}"
    )
    return Claim.judged(
        "The detectors call benign environments adverse less than 5 % of the time.",
        f"{f'At most {percent(most)} ({where})' if most else 'Never'} in the training distribution and in "
        f"all {len({check.tally.setting for check in benign}) - 1} settings that are not surely adverse.",
        "",
        ""
        if most < alpha
        else f"{percent(most)} is not. The test's guarantee is 5 % plus delta, over certificates too.",
    )


def _only_adverse(results: Results, benign: list[Check]) -> Claim:
    """Nothing may be declared without need, and something must be declared at all."""
    said = "The detectors call only environments with higher expected costs adverse."
    false, verdicts = sum(check.false for check in benign), sum(check.tally.datasets for check in benign)
    hits = sum(row.adverse for row in results.tallies) - false
    if not hits:
        return Claim.unchecked(said, "ADVERSE is not declared in any setting that is surely adverse.")
    return Claim.judged(
        said,
        f"{false:,} of {verdicts:,} verdicts in settings that are not surely adverse ({len(OURS)} detectors, "
        f"{verdicts // len(OURS):,} datasets each) are ADVERSE, and {hits:,} verdicts in the others.",
        "",
        *no_false_declaration(false, corrected(benign)),
    )


def _in_training_too(results: Results, n: int) -> Claim:
    """Look for baselines that are significantly above their level on new training environments."""
    rows = {(row.detector, row.n): row for row in where(results.baselines, setting="training")}
    # Corrected for the number of rates that are looked at.
    above = [key for key, row in rows.items() if len(rows) * _p_value(row, results.alpha) <= SIGNIFICANT]
    loud = ", ".join(f"{style.LINES[name]['label']} with n = {size}" for name, size in above)
    short = [name for name in THEIRS if (name, n) not in above]
    return Claim.judged(
        "The baselines violate their false-positive rate of 5 % even on new training environments.",
        f"{results.listed(THEIRS, setting='training')}; significantly above {percent(results.alpha)} "
        f"(corrected p at most {SIGNIFICANT}): {loud or 'none'}.",
        f"both significantly above with n = {n} (in part: one of them, with any n).",
        f"{_not(short)} How far new environments exceed thresholds from the training environments "
        "depends on the network."
        if short
        else "",
        partly=bool(above),
    )


def _easier(results: Results, n: int) -> Claim:
    said = "The baselines declare easier environments shifted; the detectors do not."
    largest = {
        size: {name: max(shares, default=0.0) for name, shares in _shares(results, size, -1.0, -0.05).items()}
        for size in results.papers_first
    }
    if not _shares(results, n, -1.0, -0.05)["msp"]:
        return Claim.unchecked(said, "No setting has a shift below -0.05.")
    fires = [name for name in THEIRS if largest[n][name] > 0.5]
    loud = [name for name in OURS if largest[n][name] >= results.alpha]
    wrong = [name for name in THEIRS if name not in fires] + loud
    return Claim.judged(
        said,
        "Largest share at a shift below -0.05: "
        + "; ".join(f"n = {size}: {listed(shares)}" for size, shares in largest.items())
        + ".",
        f"the baselines more than half of the datasets of some setting, and the detectors less "
        f"than {percent(results.alpha)} of each, with n = {n} (in part: one of the baselines).",
        f"{_not(wrong)} {NO_RULE}" if wrong else "",
        partly=bool(fires) and not loud,
    )


def _easiest(results: Results, n: int) -> Claim:
    """Look at the setting nearest to the paper's example."""
    said = "The baselines are triggered at a shift of -0.3, where the policy pays less than in training."
    rows = where(results.baselines, n=n)
    shift = min((row.shift for row in rows), key=lambda shift: abs(shift + 0.3))
    if abs(shift + 0.3) > 0.1:
        return Claim.unchecked(said, f"The nearest setting has a shift of {shift:+.3f}.")
    shares = {row.detector: row.share() for row in where(rows, shift=shift)}
    silent = [name for name, share in shares.items() if share <= 0.5]
    return Claim.judged(
        said,
        f"At a shift of {shift:+.3f} with n = {n}: {listed(shares)}.",
        f"more than half of the datasets ({IN_PART}).",
        f"{_not(silent)} {NO_RULE}" if silent else "",
        partly=len(silent) == 1,
    )


def _small_shifts(results: Results, n: int) -> Claim:
    said = "For small adverse shifts the baselines detect a higher proportion of datasets."
    means = _mean_shares(results, n, 0.05, 0.25)
    if not means:
        return Claim.unchecked(said, "No shift is between +0.05 and +0.25.")
    gains = {name: means[name] - max(means[ours] for ours in OURS) for name in THEIRS}
    weak = [name for name, gain in gains.items() if gain < VISIBLE]
    return Claim.judged(
        said,
        f"Mean share at shifts between +0.05 and +0.25 with n = {n}: {listed(means)}.",
        f"both at least {points(VISIBLE)} more than either detector (in part: one of them more at all).",
        f"{_not(weak)} {NO_RULE}" if weak else "",
        partly=max(gains.values()) > 0,
    )


def _relevant_shifts(results: Results, n: int) -> Claim:
    said = "For task-relevant shifts the detectors perform similarly to the baselines."
    means = _mean_shares(results, n, 0.25, 1.0)
    if not means:
        return Claim.unchecked(said, "No shift is above +0.25.")
    gaps = [abs(means[ours] - means[theirs]) for ours in OURS for theirs in THEIRS]
    return Claim.judged(
        said,
        f"Mean share at shifts above +0.25 with n = {n}: {listed(means)}.",
        "no detector and baseline more than 15 points apart (in part: some are not);",
        "" if max(gaps) <= 0.15 else f"here up to {points(max(gaps))}. {NO_RULE}",
        partly=min(gaps) <= 0.15,
    )


def _mean_shares(results: Results, n: int, low: float, high: float) -> dict[str, float]:
    """Return each one's mean share of alarms at shifts in a range; nothing if there are none."""
    found = _shares(results, n, low, high)
    return {name: sum(shares) / len(shares) for name, shares in found.items() if shares}


def _shares(results: Results, n: int, low: float, high: float) -> dict[str, list[float]]:
    shares: dict[str, list[float]] = {name: [] for name in (*OURS, *THEIRS)}
    for row in where(results.everybody, n=n):
        if low < row.shift <= high:
            shares[row.detector].append(row.share())
    return shares


def _p_value(row: Tally, alpha: float) -> float:
    """Return that of "alarms at most at the level"."""
    return float(binom.sf(row.adverse - 1, row.datasets, alpha))


def listed(shares: Mapping[str, float]) -> str:
    """Return the share of each detector in words."""
    return ", ".join(f"{style.LINES[name]['label']} {percent(share)}" for name, share in shares.items())


def _not(names: list[str]) -> str:
    return f"Not so: {', '.join(style.LINES[name]['label'] for name in names)}."
