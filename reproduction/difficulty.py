"""The two detectors over settings of varied difficulty (the paper's Figure 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boundwatch import ConfidenceInterval, HypothesisTest
from reproduction import style
from reproduction.artefacts import Artefact, Cache
from reproduction.figure import Caption, Claim, Results, Table, holds, percent
from reproduction.judging import (
    SIGNIFICANT,
    SURE,
    Shift,
    alike,
    certificate_note,
    contested,
    false_declarations,
    no_false_declaration,
    share_of,
    split,
    tally,
)
from reproduction.navigation import QUICK_SWEEP_SETTINGS, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "difficulty"
TITLE = "Drone: the detectors on settings of varied difficulty"
NOTHING = "Nothing to compare."
VISIBLE = 0.05
"""What a difference of mean shares of datasets must be at least, to be visible in a figure."""
IN_PART = "in part: one of the two"
DETECTORS = {"confidence-interval": "Confidence interval", "hypothesis-test": "Hypothesis test"}


@dataclass(frozen=True)
class Settings:
    """What is computed."""

    sweep: Sweep = field(default_factory=Sweep)
    """Policy and settings of difficulty."""
    sizes: tuple[int, ...] = (10, 50)
    """Trials in a dataset: what the paper says, and what its figure fits."""
    alpha: float = 0.05
    """Level of either side of the hypothesis test, delta not included."""
    rate: float = 0.05
    """False-positive and false-negative rate of the confidence interval, delta included."""


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS)


def artefacts(settings: Settings) -> Sequence[Artefact]:
    """Return what `run` takes from the cache."""
    return settings.sweep.artefacts()


def run(settings: Settings, cache: Cache) -> Results:
    """Judge all datasets with both detectors."""
    sweep = settings.sweep
    certificate = sweep.policy.load(cache).certificate
    detectors = (
        ConfidenceInterval(
            certificate,
            false_positive_rate=settings.rate,
            false_negative_rate=settings.rate,
            tail="hoeffding",
        ),
        HypothesisTest(
            certificate, alpha_adverse=settings.alpha, alpha_benign=settings.alpha, tail="hoeffding"
        ),
    )
    tallies = []
    for name in ("training", *sweep.settings):
        costs, shift = sweep.flights(name).costs(cache), true_shift(sweep, name, cache)
        for n in settings.sizes:
            datasets = split(costs, n, sweep.datasets)
            tallies += [tally(detector, datasets, name, shift) for detector in detectors]
    return {
        "certificate": certified(sweep, cache),
        "expected_cost": float(sweep.flights("training").costs(cache).mean()),
        "benign_margin": {str(n): _hoeffding_margin(detectors[0], n) for n in settings.sizes},
        "tallies": tallies,
    }


def certified(sweep: Sweep, cache: Cache) -> dict[str, float]:
    """Return the certificate's limits, and the upper limit that Theorem 1 as printed gives instead."""
    trained = sweep.policy.load(cache)
    return {
        "lower": trained.certificate.lower,
        "upper": trained.certificate.upper,
        "delta": trained.certificate.delta,
        "theorem_1": trained.summary["trained"]["upper_pinsker"],
    }


def true_shift(sweep: Sweep, distribution: str, cache: Cache) -> Shift:
    """Return how much more the policy pays than in training: in training nothing, by definition."""
    if distribution == "training":
        return Shift(0.0, 0.0)
    return Shift.between(*(sweep.flights(name).costs(cache) for name in (distribution, "training")))


def points(difference: float) -> str:
    """Return a difference of shares in words.

    Examples
    --------
    >>> points(0.05), points(0.01), points(-0.0126)
    ('5 points', '1 point', '-1.3 points')
    """
    number = percent(difference).removesuffix(" %")
    return f"{number} point" if number == "1" else f"{number} points"


def onset(reached: Mapping[float, bool]) -> float | None:
    """Return the smallest shift from which on all larger ones reach something; none if the largest does not.

    Parameters
    ----------
    reached
        Sizes of shifts, and whether each does.

    Examples
    --------
    >>> onset({0.1: True, 0.2: False, 0.3: True, 0.4: True}), onset({0.1: True, 0.2: False})
    (0.3, None)
    """
    smallest = None
    for size in sorted(reached, reverse=True):
        if not reached[size]:
            break
        smallest = size
    return smallest


def _hoeffding_margin(detector: ConfidenceInterval, n: int) -> float:
    """Return how far below the certified lower limit a mean must lie for BENIGN: more than it may be."""
    finding = detector.decide([0.0] * n)
    return finding.shift_upper + detector.certificate.lower


def draw(results: Results) -> Figure:
    """Draw stacked bars: detectors beside each other, numbers of trials below each other."""
    sizes = sorted({row["n"] for row in results["tallies"]})
    figure = style.new_figure(10, 0.8 + 3.1 * len(sizes))
    for above, n in zip(figure.subplots(len(sizes), 2, sharey=True, squeeze=False), sizes, strict=True):
        for axes, (detector, name) in zip(above, DETECTORS.items(), strict=True):
            rows = [row for row in results["tallies"] if row["n"] == n and row["detector"] == detector]
            style.verdict_bars(axes, rows, f"{name}, n = {n} trials")
        above[0].set_ylabel("share of datasets")
        if n == sizes[-1]:
            for axes in above:
                axes.set_xlabel("true shift of the expected cost (bold: the training distribution)")
    style.verdict_legend(figure)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    false = sum(check["false"] for check in false_declarations(results["tallies"]))
    first = results["tallies"][0]
    settings = len({row["setting"] for row in results["tallies"]} - {"training"})
    interval = results["certificate"]
    unsure = {row["setting"] for row in results["tallies"] if abs(row["shift"]) <= SURE * row["shift_error"]}
    sign = (
        f" In {', '.join(sorted(unsure - {'training'}))} the sign of the shift is unsure: either would be."
        if unsure - {"training"}
        else ""
    )
    return Caption(
        see="Between the dashed lines new environments of the training distribution; left of them settings "
        "with lower costs, right of them with higher ones. A green (dotted) bar right of them, or an orange "
        f"(hatched) bar between or left of them, would be a false declaration.{sign} "
        f"There are {false} false declarations in {len(results['tallies'])} bars.",
        numbers=f"The training distribution and {settings} settings, {first['datasets']:,} datasets each, n "
        f"as in the titles; delta = {interval['delta']}, true expected cost {results['expected_cost']:.3f}; "
        "guaranteed rates as in the paper: 5 % for the confidence interval, 5 % plus delta for the "
        "hypothesis test.",
        paper="The paper's Figure 4 shows WITHIN near zero, ADVERSE far above it, BENIGN far below, and no "
        "false declarations. Its text says n = 10; its bars fit n = 50.",
        differs=certificate_note(interval)
        + " Even a cost of 0 in every trial need not be evidence enough for BENIGN: Hoeffding's margin is "
        + ", ".join(f"{margin:.3f} with n = {n}" for n, margin in results["benign_margin"].items())
        + f", and must be below the certified lower limit, {interval['lower']:.3f}. The drone is a "
        "calibrated model, not the authors' recordings. Bars stand at equal distances, not to scale.",
    )


def tables(results: Results) -> list[Table]:
    """Return the shares behind the bars."""
    tables = []
    for n in sorted({row["n"] for row in results["tallies"]}):
        rows = sorted((row for row in results["tallies"] if row["n"] == n), key=lambda row: row["shift"])
        lines = []
        for left in rows:
            if left["detector"] == "confidence-interval":
                (right,) = (
                    row
                    for row in rows
                    if row["setting"] == left["setting"] and row["detector"] == "hypothesis-test"
                )
                shares = [
                    percent(row[v] / row["datasets"])
                    for row in (left, right)
                    for v in ("adverse", "benign", "within")
                ]
                lines.append((left["setting"], f"{left['shift']:+.3f}", *shares))
        header = (
            "setting",
            "shift",
            "interval: adverse",
            "benign",
            "within",
            "test: adverse",
            "benign",
            "within",
        )
        tables.append(Table(f"Verdicts with n = {n}", header, tuple(lines)))
    return tables


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its Figure 4."""
    tallies = results["tallies"]
    found = []
    for detector, name in DETECTORS.items():
        checks = [check for check in false_declarations(tallies) if check["detector"] == detector]
        false, worst = sum(c["false"] for c in checks), min(c["p_value"] for c in checks)
        # Where the sign of the shift is unsure, the same datasets are checked on both sides.
        datasets = sum({(c["setting"], c["n"]): c["datasets"] for c in checks}.values())
        found.append(
            Claim(
                f"The {name.lower()} detector declares no adverse environments as benign or vice versa.",
                f"{false:,} false declarations in {datasets:,} datasets ({len(checks)} checks); smallest "
                f"p-value of exceeding the promise {worst:.2g}.",
                *no_false_declaration(false, worst * len(checks)),
            )
        )
        if detector == "confidence-interval":
            found.append(_keeps_its_rates(checks))
    found.append(_similar(tallies))
    for n in sorted({row["n"] for row in tallies}):
        found.append(_confident(results, n))
    return [*found, _within(tallies)]


def _keeps_its_rates(checks: list[Results]) -> Claim:
    """Compare the closest to its guarantee, corrected for having looked for it."""
    worst = max(checks, key=lambda check: check["false"] / check["datasets"] / check["promised"])
    rate = worst["false"] / worst["datasets"]
    p_value = min(min(check["p_value"] for check in checks) * len(checks), 1.0)
    kept = p_value > SIGNIFICANT
    where = f"{worst['verdict'].upper()}, {worst['setting']}, n = {worst['n']}"
    found = f"The closest of {len(checks)} rates to its guarantee of {percent(worst['promised'])} is "
    found += f"{percent(rate)} ({where})"
    if not worst["false"]:
        found = f"All {len(checks)} rates are 0 %; the guarantee is {percent(worst['promised'])}"
    return Claim(
        "The confidence interval maintains its false-positive and its false-negative rate.",
        f"{found}; corrected p-value of exceeding it {p_value:.2g}.",
        holds(kept),
        "" if kept else f"{percent(rate)} are significantly more than {percent(worst['promised'])}.",
    )


def _within(tallies: list[Results]) -> Claim:
    said = "Both detectors output WITHIN where the shift is small."
    near = [row for row in tallies if abs(row["shift"]) < 0.05]
    if not near:
        return Claim(said, NOTHING, "not checkable here", "No setting has a shift below 0.05 in size.")
    least = min(near, key=lambda row: row["within"] / row["datasets"])
    share = least["within"] / least["datasets"]
    where = f"{DETECTORS[least['detector']].lower()}, n = {least['n']}, shift {least['shift']:+.3f}"
    found = "all datasets are WITHIN"
    if share < 1.0:
        found = f"at least {percent(share)} of the datasets are WITHIN ({where})"
    return Claim(
        said,
        f"For shifts below 0.05 in size {found}.",
        holds(share > 0.5),
        "" if share > 0.5 else f"Compared as: most datasets. There, only {percent(share)} are.",
    )


def _similar(tallies: list[Results]) -> Claim:
    """Compare the shares of ADVERSE, and of BENIGN, except where both detectors are as good as sure."""
    said = "The two detectors perform very similarly."
    pairs: dict[tuple[str, int, str], list[float]] = {}
    for row in tallies:
        for verdict in ("adverse", "benign"):
            pairs.setdefault((row["setting"], row["n"], verdict), []).append(share_of(row, verdict))
    # Most settings are plain to both: they would make any two detectors similar in the mean.
    gaps = [max(pair) - min(pair) for pair in pairs.values() if contested(*pair)]
    if not gaps:
        why = "No verdict's share is between 2 % and 98 % in any setting."
        return Claim(said, NOTHING, "not checkable here", why)
    mean = sum(gaps) / len(gaps)
    return Claim(
        said,
        f"Where the share of ADVERSE, or of BENIGN, is not below 2 % for both, nor above 98 % for both "
        f"({len(gaps)} of {len(pairs)} comparisons), it differs by {points(max(gaps))} at most, "
        f"{points(mean)} in the mean.",
        alike(gaps),
        ""
        if max(gaps) <= 0.1
        else "Compared as: at most 10 points (in part: in the mean); "
        f"{sum(gap > 0.1 for gap in gaps)} of {len(gaps)} differ by more. The test at alpha = 0.05 may "
        "err by delta more than the interval at 5 %, which includes delta; where the power is steep, that is "
        "visible.",
    )


def _confident(results: Results, n: int) -> Claim:
    """Look for shifts from which on both detectors declare the right verdict in 90 % of the datasets."""
    parts, missing = [], []
    for verdict, sign in (("adverse", 1), ("benign", -1)):
        shares: dict[float, float] = {}
        for row in results["tallies"]:
            if row["n"] == n and sign * row["shift"] > 0:
                share = share_of(row, verdict)
                shares[abs(row["shift"])] = min(share, shares.get(abs(row["shift"]), 1.0))
        smallest = onset({size: share >= 0.9 for size, share in shares.items()})
        if smallest is not None:
            parts.append(f"{verdict.upper()} from a shift of {sign * smallest:+.2f} on")
            continue
        parts.append(f"{verdict.upper()} from no shift on")
        if any(shares.values()):
            furthest = max(shares)
            missing.append(
                f"{verdict.upper()} is declared in {percent(shares[furthest])} of the datasets at the "
                f"largest shift, {sign * furthest:+.2f}."
            )
        else:
            missing.append(f"In no setting do both declare {verdict.upper()}.")
    margin, lower = results["benign_margin"][str(n)], results["certificate"]["lower"]
    impossible = (
        f" BENIGN is impossible with n = {n}: even {n} costs of 0 leave a margin of {margin:.3f}, above the "
        f"certified lower limit of {lower:.3f}."
    )
    return Claim(
        f"When costs differ significantly, ADVERSE and BENIGN are declared with high confidence (n = {n}).",
        f"By both detectors in 90 % of the datasets or more: {', '.join(parts)}.",
        holds(not missing, otherwise="partly" if len(missing) == 1 else "no"),
        f"Compared as: both ({IN_PART}). {' '.join(missing)}{impossible if margin > lower else ''}"
        if missing
        else "",
    )
