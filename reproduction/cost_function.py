"""What the cost function does: five thresholds, a policy trained and certified for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reproduction import recorded, style
from reproduction.artifacts import Artifact, Cache
from reproduction.certification import LABELS, CertificateName, Certified, bounds_of, certificate_of
from reproduction.figure import Caption, Claim, Table, percent
from reproduction.judging import (
    PAPERS_N,
    Shift,
    Tallied,
    confidence_interval,
    corrected,
    hypothesis_test,
    margin,
    no_false_declaration,
    split,
    tally,
    where,
)
from reproduction.navigation import QUICK_RECIPE, QUICK_SWEEP, SWEEP, Flights, NavigationPolicy
from reproduction.sweep import onset

NAME = "cost-function"
TITLE = "Drone: the effect of the cost function"
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "linestyle": (0, (5, 2)), "marker": "s"},
    {"color": "#D55E00", "linestyle": "-", "marker": "o"},
)
SIDES = {"adverse": 1.0, "benign": -1.0}
THEIR_LOOK: dict[str, Any] = {"color": "#000000", "linestyle": (0, (1, 1)), "linewidth": 1.2}


@dataclass(frozen=True)
class Settings(Certified):
    """What is computed."""

    policy: NavigationPolicy = field(default_factory=NavigationPolicy)
    """How each policy is trained; its threshold is replaced."""
    thresholds: tuple[float, ...] = recorded.THRESHOLDS
    """Clearances, meters, from which a flight costs nothing."""
    settings: tuple[str, ...] = SWEEP
    """The distributions, in order of difficulty."""
    environments: int = 10_000
    """Flights in each: 1000 datasets of 10, or 200 of 50."""
    truth: int = 100_000
    """Flights in the training distribution, for the expected cost."""
    sizes: tuple[int, ...] = (10, 50)
    """Trials in a dataset."""
    rate: float = 0.05
    """Rates of the confidence interval, delta included; level of the test."""
    seed: int = 0
    """Of the flights."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return the flights of every policy."""
        names = ("training", *self.settings)
        return [self.flights(threshold, name) for threshold in self.thresholds for name in names]

    def flights(self, threshold: float, name: str) -> Flights:
        """Return those of the policy for a threshold in a distribution."""
        n = self.truth if name == "training" else self.environments
        return Flights(self.policy.with_threshold(threshold), name, n, self.seed)


@dataclass(frozen=True)
class Threshold:
    """The certificate of one policy."""

    d_thresh: float
    lower: float
    upper: float
    training_cost: float | None
    expected_cost: float
    standard_error: float
    """Of the expected cost."""
    bounds: dict[str, float]
    """What the training says of its policy."""

    @property
    def millimeters(self) -> str:
        """The threshold in words."""
        return f"{1000 * self.d_thresh:.0f}"


@dataclass(frozen=True)
class Results(Tallied):
    """What came out."""

    kind: CertificateName
    rate: float
    delta: float
    certificates: list[Threshold]

    @property
    def inside(self) -> int:
        """In how many certified intervals the true expected cost lies."""
        return sum(row.lower <= row.expected_cost <= row.upper for row in self.certificates)


FULL = Settings()
QUICK = Settings(NavigationPolicy(QUICK_RECIPE), (0.3, 0.5), QUICK_SWEEP, environments=512, truth=2048)


def run(settings: Settings, cache: Cache) -> Results:
    """Judge all datasets with the certificate of their own cost."""
    tallies, certificates = [], []
    for threshold in settings.thresholds:
        policy = settings.policy.with_threshold(threshold)
        certificate = certificate_of(replace(settings, policy=policy), cache)
        reference = settings.flights(threshold, "training").costs(cache)
        certificates.append(
            Threshold(
                d_thresh=threshold,
                lower=certificate.lower,
                upper=certificate.upper,
                training_cost=certificate.mean_cost,
                expected_cost=float(reference.mean()),
                standard_error=float(reference.std() / reference.size**0.5),
                bounds=bounds_of(policy.load(cache)),
            )
        )
        detectors = [judge(certificate, settings.rate) for judge in (confidence_interval, hypothesis_test)]
        for name in settings.settings:
            costs = settings.flights(threshold, name).costs(cache)
            shift = Shift.between(costs, reference)
            for n in settings.sizes:
                rows = split(costs, n, settings.environments // n)
                judged = [tally(detector, rows, name, shift) for detector in detectors]
                tallies += [replace(row, d_thresh=threshold) for row in judged]
    delta = settings.policy.recipe.delta
    return Results(tallies, settings.certificate, settings.rate, delta, certificates)


def draw(results: Results) -> Figure:
    """Draw certificates with the truth, and for each threshold the interval's verdicts against the shift."""
    count = 1 + len(results.certificates)
    columns = min(3, count)
    rows = -(-count // columns)
    figure = style.new_figure(11, 0.8 + 3.1 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    _draw_certificates(panels[0], results)
    for axes, row in zip(panels[1:], results.certificates, strict=False):
        for n, look in zip(results.sizes, LOOKS, strict=False):
            mine = where(results.tallies, n=n, d_thresh=row.d_thresh, detector="confidence-interval")
            for verdict in SIDES:
                points = [(each.shift, each.share(verdict)) for each in mine]
                filled = {"fillstyle": "full", "label": f"n = {n}: ADVERSE"}
                side = filled if verdict == "adverse" else {"fillstyle": "none", "label": f"n = {n}: BENIGN"}
                style.curve(axes, points, markersize=4, linewidth=1.4, **side, **look)
        published = recorded.published("figure_4_difficulty", row.millimeters).values()
        for verdict in SIDES:
            theirs = [(point.shift, point.share("confidence-interval", verdict)) for point in published]
            label = f"the authors' curves, n = {PAPERS_N}" if verdict == "adverse" else None
            style.curve(axes, theirs, label=label, **THEIR_LOOK)
        style.shift_panel(axes, f"d_thresh = {row.millimeters} mm", "share of datasets")
    for axes in panels[count:]:
        axes.set_axis_off()
    handles = [handle for axes in panels[:2] for handle in axes.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_certificates(axes: Axes, results: Results) -> None:
    limits: dict[str, Any] = {"color": "#0072B2", "linewidth": 7, "alpha": 0.5, "solid_capstyle": "butt"}
    truth: dict[str, Any] = {"markersize": 14, "markeredgewidth": 2}
    printed: dict[str, Any] = {"color": "#D55E00", "markersize": 7}
    theirs: dict[str, Any] = {"color": "#000000", "linewidth": 1.2, "marker": "_", "markersize": 7}
    names = ("certified", "true expected cost", "Theorem 1 as printed", "the authors' certificates")
    labels: Sequence[str | None] = names
    for place, row in enumerate(results.certificates):
        axes.plot([place] * 2, [row.lower, row.upper], label=labels[0], **limits)
        axes.plot(place, row.expected_cost, "k_", label=labels[1], **truth)
        axes.plot(place, row.bounds["upper_pinsker"], "v", label=labels[2], **printed)
        their = recorded.thresholds()[row.millimeters]
        axes.plot([place + 0.32] * 2, [their["lower"], their["upper"]], label=labels[3], **theirs)
        labels = (None,) * len(names)  # the legend names each once
    thresholds = [row.millimeters for row in results.certificates]
    axes.set_xticks(range(len(thresholds)), thresholds)
    axes.set(xlabel="d_thresh, mm", ylabel="expected cost in training", xlim=(-0.6, len(thresholds) - 0.4))
    axes.set_ylim(0, None)
    style.bare(axes, "certificates")


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    counts = {row.n: row.datasets for row in results.tallies}
    return Caption(
        see="First panel: each threshold has its own cost in training; the true expected cost lies in "
        f"{results.inside} of {len(results.certificates)} certified intervals. The others: the share of "
        "ADVERSE and of BENIGN (hollow) against the shift in the policy's own cost, beside the authors' "
        "curves.",
        numbers=f"{len(results.certificates)} policies, each trained and certified for its cost; "
        + ", ".join(f"{datasets:,} datasets of {n}" for n, datasets in sorted(counts.items()))
        + f" per setting; confidence interval at {percent(results.rate)}, and the test in the table; "
        "Hoeffding.",
        paper="The paper trains policies for the five thresholds and uses 500 mm in simulation and 300 mm on "
        "hardware; it prints no figure over thresholds, but its authors published the curves. Its only "
        "expected cost in training is 0.149, for a threshold that it does not name.",
        differs=f"Certificates are {LABELS[results.kind]}; Theorem 1 as printed is drawn for comparison. "
        "All policies were trained in the same environments, so their certificates are not independent.",
    )


def tables(results: Results) -> list[Table]:
    """Return the certificates."""
    lines = [
        {
            "d_thresh": f"{row.millimeters} mm",
            "training cost": f"{row.training_cost:.4f}",
            "lower": f"{row.lower:.4f}",
            "upper (pointwise)": f"{row.upper:.4f}",
            "upper (Theorem 1, kl)": f"{row.bounds['upper_kl']:.4f}",
            "upper (Theorem 1)": f"{row.bounds['upper_pinsker']:.4f}",
            "true expected cost": f"{row.expected_cost:.4f} ± {row.standard_error:.4f}",
            **_theirs(row.millimeters),
        }
        for row in results.certificates
    ]
    return [Table.of(f"Certificates, delta = {results.delta}", lines), _onsets(results)]


def _theirs(millimeters: str) -> dict[str, str]:
    """Return the authors' certificate, and the true cost that their curve implies."""
    theirs = recorded.thresholds()[millimeters]
    cells = {f"the authors': {name.replace('_', ' ')}": f"{value:.4f}" for name, value in theirs.items()}
    return cells | {"their true cost, implied": f"{authors_cost(millimeters):.4f}"}


def authors_cost(millimeters: str = "500") -> float:
    """Return the expected cost in training that the authors' curve implies; they did not publish it.

    Without obstacles a flight costs nothing, so the shift there is that cost below zero.

    Examples
    --------
    >>> {name: round(authors_cost(name), 3) for name in recorded.thresholds()}
    {'100': 0.082, '300': 0.204, '500': 0.323, '750': 0.475, '1000': 0.579}
    """
    return -recorded.published("figure_4_difficulty", millimeters)["difficulty:-9"].shift


def _onsets(results: Results) -> Table:
    """Say from which shift on either verdict is declared, by either detector; and where it never can be."""
    levels = {"confidence-interval": results.rate - results.delta, "hypothesis-test": results.rate}
    lines = []
    for certificate in results.certificates:
        published = recorded.published("figure_4_difficulty", certificate.millimeters)
        for detector, level in levels.items():
            cells = []
            for n in results.sizes:
                for verdict, sign in SIDES.items():
                    rows = where(results.tallies, n=n, d_thresh=certificate.d_thresh, detector=detector)
                    start = _start([(row.shift, row.share(verdict)) for row in rows], sign)
                    possible = verdict == "adverse" or margin(n, level) < certificate.lower
                    cells.append(start if possible else "impossible")
            for verdict, sign in SIDES.items():
                theirs = [(point.shift, point.share(detector, verdict)) for point in published.values()]
                cells.append(_start(theirs, sign))
            lines.append((certificate.millimeters, style.LINES[detector]["label"], *cells))
    sizes = [f"{verdict.upper()}, n = {n}" for n in results.sizes for verdict in SIDES]
    theirs_too = [f"the authors': {verdict.upper()}, n = {PAPERS_N}" for verdict in SIDES]
    header = ("d_thresh, mm", "detector", *sizes, *theirs_too)
    return Table("The shift from which on 90 % of the datasets are declared", header, tuple(lines))


def _start(points: Sequence[tuple[float, float]], sign: float) -> str:
    first = onset({sign * shift: share >= 0.9 for shift, share in points if sign * shift > 0})
    return "none" if first is None else f"{sign * first:+.2f}"


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its certificates."""
    return [_strong_bound(results), _only_adverse(results)]


def _strong_bound(results: Results) -> Claim:
    rows = results.certificates
    wrong = len(rows) - results.inside
    gap = max(row.upper - row.expected_cost for row in rows)
    printed = max(row.bounds["upper_pinsker"] - row.expected_cost for row in rows)
    costs = ", ".join(f"{row.expected_cost:.3f} at {row.millimeters} mm" for row in rows)
    reasons = [f"{wrong} of {len(rows)} intervals are wrong."] if wrong else []
    reasons += [f"The certified limit is {gap:.3f} above."] if gap >= 0.05 else []
    reasons += [f"Theorem 1 as printed is {printed:.3f} above."] if printed >= 0.05 else []
    return Claim.judged(
        "PAC-Bayes provides a strong bound on the expected cost (estimated as 0.149 over 50,000 held-out "
        "environments).",
        f"Expected costs: {costs}; the truth is inside {results.inside} of {len(rows)} intervals; the upper "
        f"limit is at most {gap:.3f} above it, Theorem 1 as printed {printed:.3f}.",
        "true, and less than 0.05 above the expected cost (in part: all but Theorem 1 as printed).",
        " ".join(reasons),
        partly=not wrong and gap < 0.05,
    )


def _only_adverse(results: Results) -> Claim:
    checks = results.checks("adverse")
    false, datasets = sum(c.false for c in checks), sum(c.tally.datasets for c in checks)
    hits = sum(row.adverse for row in results.tallies) - false
    said = "Only higher expected costs are declared ADVERSE, whichever the cost function."
    numbers = (
        f"{false:,} of {datasets:,} datasets in settings that are not surely adverse, and {hits:,} datasets "
        "in the others."
    )
    if not hits:
        return Claim.unchecked(said, "ADVERSE is not declared in any adverse setting.", numbers, beyond=True)
    return Claim.judged(said, numbers, "", *no_false_declaration(false, corrected(checks)), beyond=True)
