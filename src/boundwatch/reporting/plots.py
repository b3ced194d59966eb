"""Figures of costs and of plans (extra ``plot``). Readable in gray and by color-blind readers.

Every function returns a figure that is independent of pyplot; write it with `save_figure`.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.figures import new_figure
from boundwatch._support.figures import save_figure as save_figure  # beside what it writes
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.planning import Plan, TrialPlan
from boundwatch.reporting.drawings import strip_columns
from boundwatch.reporting.sensitivity import new_interval
from boundwatch.reporting.wording import ceiling, count, failed, headline, percent, percents, rates, shift

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# From the palette of Okabe and Ito; the two also differ in lightness, shape and hatching.
_CERTIFIED = "#56B4E9"
_CERTIFIED_EDGE = "#0072B2"
_NEW = "#D55E00"
_VERDICTS = {Verdict.ADVERSE: _NEW, Verdict.BENIGN: "#009E73", Verdict.WITHIN: "#57606A"}
_EPISODE = "#333333"
_SUCCEEDED = "#D9DEE3"
_BAND: dict[str, Any] = {"facecolor": _CERTIFIED, "alpha": 0.45, "edgecolor": "none", "zorder": 1}
_LIMIT: dict[str, Any] = {"color": _CERTIFIED_EDGE, "linewidth": 1, "linestyle": (0, (4, 2)), "zorder": 2}
_BELOW: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
_NEW_RATE: dict[str, Any] = {"fmt": "D", "color": _NEW, "capsize": 5, "linewidth": 2, "zorder": 3}
# Dashes and widths tell these apart in gray.
_TAIL_STYLES: dict[str, dict[str, Any]] = {
    "hoeffding": {"color": "#999999", "linestyle": "-"},
    "kl": {"color": "#E69F00", "linestyle": (0, (6, 2))},
    "exact": {"color": "#009E73", "linestyle": (0, (1, 1))},
    "betting": {"color": "#CC79A7", "linestyle": (0, (4, 1, 1, 1))},
    "mixture": {"color": "#0072B2", "linestyle": "-", "linewidth": 2.6},
    "joint": {"color": "#009E73", "linestyle": (0, (1, 1))},
}


def plot_check(certificate: Certificate, finding: Finding, costs: ArrayLike) -> Figure:
    """Draw the costs that a finding is about, the certified interval, and that of the new expected cost.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> costs = [0.4, 0.9, 0.5, 0.7]
    >>> figure = plot_check(certificate, bw.HypothesisTest(certificate).decide(costs), costs)
    >>> [axes.get_xlabel() for axes in figure.axes]
    ['episode', 'mean']
    """
    values = certificate.check_costs(costs)
    interval = new_interval(certificate, finding, values)
    if certificate.binary:
        return _plot_outcomes(certificate, finding, values, interval)
    figure = new_figure(7.2, 4.4)
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
    n, mean, (low, high) = values.size, finding.mean_cost, interval
    for axes in (left, right):
        band = axes.axhspan(certificate.lower, certificate.upper, **_BAND)
        for limit in (certificate.lower, certificate.upper):
            axes.axhline(limit, **_LIMIT)
    size, alpha = np.clip(3000 / n, 6, 30), np.clip(300 / n, 0.35, 1)
    left.scatter(np.arange(1, n + 1), values, s=size, alpha=alpha, color=_EPISODE, lw=0, zorder=3)
    left.set(xlabel="episode", ylabel="cost", xlim=(0.5 - 0.02 * n, n + 0.5 + 0.02 * n), ylim=(-0.04, 1.04))
    left.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
    bar = right.errorbar([0], [mean], yerr=_arms(mean, interval), **_NEW_RATE)
    right.set(xlabel="mean", xticks=[], xlim=(-1, 1))
    right.tick_params(left=False)
    bare(left, right)
    _entitle(left, finding, f"mean cost {mean:.3f} over {count(n, 'episode')}")
    dot = Line2D([], [], marker="o", linestyle="", color=_EPISODE)
    certified = f"certified expected cost\n{certificate.lower:.3f} to {certificate.upper:.3f}"
    new = f"new mean, and interval for the new\nexpected cost, {low:.3f} to {high:.3f}"
    figure.legend([dot, band, bar], ["one episode", certified, new], ncols=3, **_BELOW)
    return figure


def _plot_outcomes(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], interval: tuple[float, float]
) -> Figure:
    """Draw a strip of one cell per trial, dark where it failed, above the rates of failures."""
    rows = -(-costs.size // strip_columns(costs.size))
    tall = min(0.3 + 0.22 * rows, 3.0)
    figure = new_figure(7.2, 2.5 + tall)
    from matplotlib.patches import Patch

    strip, scale = figure.subplots(2, 1, height_ratios=[tall, 0.8])
    _draw_strip(strip, costs, rows)
    band = scale.axvspan(certificate.lower, certificate.upper, **_BAND)
    for limit in (certificate.lower, certificate.upper):
        scale.axvline(limit, **_LIMIT)
    bar = scale.errorbar([finding.mean_cost], [0], xerr=_arms(finding.mean_cost, interval), **_NEW_RATE)
    scale.set(xlim=(-0.01, 1.01), ylim=(-1, 1), yticks=[])
    _in_percent(scale)
    bare(scale, "left")
    _entitle(strip, finding, f"{failed(finding)} ({percent(finding.mean_cost)})")
    names = [
        "failed",
        "succeeded",
        f"certified: {rates(certificate)} fail",
        f"new: {percents(*interval)} fail",
    ]
    figure.legend([Patch(color=_EPISODE), Patch(color=_SUCCEEDED), band, bar], names, ncols=4, **_BELOW)
    return figure


def _draw_strip(strip: Axes, costs: NDArray[np.float64], rows: int) -> None:
    from matplotlib.colors import ListedColormap

    columns = strip_columns(costs.size)
    cells = np.full((rows, columns), np.nan)
    cells.flat[: costs.size] = costs
    edge = 1.0 if columns <= 100 else 0.0  # where there is no room for gaps, cells touch
    colors = ListedColormap([_SUCCEEDED, _EPISODE])
    strip.pcolormesh(cells, cmap=colors, vmin=0, vmax=1, edgecolors="white", linewidth=edge)
    strip.invert_yaxis()
    strip.set(xlim=(0, max(columns, 20)), yticks=[])
    if rows == 1:
        ends = sorted({1, costs.size})
        strip.set_xlabel("trial", loc="left")
        strip.set_xticks([end - 0.5 for end in ends], [str(end) for end in ends])
    else:  # a row begins where the one above it ends
        shown = range(0, rows, max(1, rows // 5))
        strip.set_yticks([row + 0.5 for row in shown], [f"{row * columns + 1}" for row in shown])
        strip.set(xticks=[], ylabel="trial")
    strip.tick_params(length=0)
    strip.spines[:].set_visible(False)


def _in_percent(axes: Axes) -> None:
    axes.set(xlabel="percent of trials that fail")
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20", "40", "60", "80", "100"])


def _arms(mean: float, interval: tuple[float, float]) -> list[list[float]]:
    low, high = interval
    return [[max(mean - low, 0)], [max(high - mean, 0)]]  # rounding may put a limit a hair past the mean


def _entitle(axes: Axes, finding: Finding, seen: str) -> None:
    axes.set_title(f"{fill(headline(finding), 84)}\n{seen}", loc="left", fontsize=10)


def plot(subject: Certificate | Finding) -> Figure:
    """Draw a certificate's interval for the expected cost, or a finding's interval for the shift.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> certificate.plot().axes[0].get_xlabel()
    'expected cost of an episode'
    >>> bw.HypothesisTest(certificate).decide([0.5, 0.2]).plot().axes[0].get_xlabel()
    'shift of the expected cost'
    """
    title = fill(headline(subject), 84)
    if isinstance(subject, Certificate):
        figure = plot_interval((subject.lower, subject.upper), subject.mean_cost, _CERTIFIED_EDGE, title)
        figure.axes[0].set(xlabel="expected cost of an episode", xlim=(-0.01, 1.01))
        if subject.binary:
            _in_percent(figure.axes[0])
        return figure
    limits, color = (subject.shift_lower, subject.shift_upper), _VERDICTS[subject.verdict]
    figure = plot_interval(limits, None, color, f"{title}\n{shift(subject)}")
    axes = figure.axes[0]
    axes.set(xlabel="shift of the expected cost", xlim=(-1.02, 1.02))
    if subject.binary:
        axes.set(xlabel="change of the failure rate, in points")
        axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["-100", "-50", "0", "+50", "+100"])
    axes.axvline(0, color=_CERTIFIED_EDGE, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    return figure


def plot_interval(limits: tuple[float, float], mean: float | None, color: str, title: str) -> Figure:
    """Draw an interval, with the mean inside it if there is one, on a flat figure of its own."""
    figure = new_figure(6.4, 1.9)
    axes = figure.subplots()
    if mean is not None:
        axes.plot([mean], [0], "D", color=color)
    axes.plot(limits, [0, 0], color=color, linewidth=2, marker="|", markersize=16)
    axes.set(yticks=[], ylim=(-1, 1))
    bare(axes, "left")
    axes.set_title(title, loc="left", fontsize=9)
    return figure


def bare(*axes: Axes | str) -> None:
    """Take the lines away on top, on the right, and where else a name says so."""
    sides = ["top", "right", *(each for each in axes if isinstance(each, str))]
    for each in axes:
        if not isinstance(each, str):
            each.spines[sides].set_visible(False)


def plot_under_shift(certificate: Certificate, largest: float = 0.5) -> Figure:
    """Draw the worst expected cost against the distance of the new world from the certified one, up to one.

    Examples
    --------
    >>> import boundwatch as bw
    >>> figure = plot_under_shift(bw.Certificate.from_bounds(lower=0.0, upper=0.1, delta=0.01))
    >>> figure.axes[0].get_ylabel()
    'worst expected cost'
    """
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    distances = np.linspace(0, largest, 201)
    nats = [certificate.under_shift(kl=d) for d in distances]
    size = [certificate.under_shift(tv=min(d, 1.0)) for d in distances]
    axes.plot(distances, nats, color=_NEW, linewidth=2, label="within a relative entropy of that many nats")
    dashed: dict[str, Any] = {"color": _CERTIFIED_EDGE, "linewidth": 2, "linestyle": (0, (6, 2))}
    axes.plot(distances, size, label="within a total variation of that size", **dashed)
    axes.axhline(certificate.upper, color=_EPISODE, linewidth=1, linestyle=(0, (1, 2)))
    said = f"certified: at most {ceiling(certificate.upper)}"
    place = (largest, certificate.upper)
    axes.annotate(said, place, (0, 4), textcoords="offset points", ha="right", fontsize=9)
    axes.set(xlabel="distance from the certified world", ylabel="worst expected cost", xlim=(0, largest))
    axes.set_ylim(0, min(1.02, 1.1 * max(*nats, *size)))
    bare(axes)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def plot_trials(plan: TrialPlan) -> Figure:
    """Draw the power of one look against the trials at the new site, with the recommended number.

    Examples
    --------
    >>> import boundwatch as bw
    >>> plot_trials(bw.plan_trials(cost=0.1, new_cost=0.6, lab_trials=20)).axes[0].get_xlabel()
    'trials at the new site'
    """
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    lab, sites, power = plan.curve()
    axes.plot(sites, power, color=_CERTIFIED_EDGE, linewidth=2.4)
    for booking, color in ((plan.recommended, _NEW), (plan.asked, _EPISODE)):
        if booking is None:
            continue
        x, y = booking.site, booking.power
        axes.plot([x, x], [0, y], color=color, linewidth=1, linestyle=(0, (4, 2)))
        axes.plot([x], [y], "o", color=color, markersize=7)
        said = f"{x:,} trials: {100 * y:.0f} %"
        axes.annotate(said, (x, y), (8, -16), textcoords="offset points", fontsize=10, color=color)
    axes.set(xlabel="trials at the new site", ylabel="power", ylim=(0, 1.02), xlim=(0, sites[-1] * 1.08))
    bare(axes)
    change = f"failure rate {plan.cost:g} in the lab, {plan.new_cost:g} at the new site"
    title = {"worse": "Noticing that it is worse", "better": "Showing that it is better"}.get(
        plan.question, f"Showing that it is at most {plan.margin} worse"
    )
    axes.set_title(f"{title}: {lab:,} trials in the lab\n", loc="left", fontweight="bold", fontsize=11)
    axes.text(0, 1.03, f"{change}; wrong answers at most {plan.rate:g}", transform=axes.transAxes, fontsize=9)
    return figure


def plot_plan(plan: Plan) -> Figure:
    """Draw the power of the hypothesis test, and of the sequential test, against trials.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> figure = plot_plan(bw.plan(certificate, cost=0.6))
    >>> figure.axes[0].get_xlabel()
    'trials'
    """
    figure = new_figure(7.2, 4.4)
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    fixed = [power for power in plan.powers if power.detector == "hypothesis-test"]
    # The tail that a check takes by itself is the one to plan with; the others are in the table.
    usual = "joint" if plan.joint else "exact" if plan.exact else "betting"
    best = next((power for power in fixed if power.tail == usual), fixed[-1])
    drawn = [best, *(power for power in plan.powers if power.detector == "sequential-test")]
    for power in drawn:
        sequential = power.detector == "sequential-test"
        label = "watch: alarm within n trials" if sequential else "check: n trials, one look"
        style = _TAIL_STYLES["mixture" if sequential else power.tail]
        axes.plot(power.n, power.power, label=f"{label} (level {power.level:.3g})", **style)
    # It limits the mean of a sequential test's trials, not the trials at which a curve reaches some power.
    least = f"{plan.information_limit:.1f}"
    known = "certified rate known exactly" if plan.joint else "certified limit taken as true"
    limit = f"information limit on the mean trials of watch\n({known}): {least}"
    axes.axvline(plan.information_limit, color="#333333", linewidth=1, linestyle=(0, (2, 3)), label=limit)
    for level in (0.5, 0.8, 0.9, 0.95):
        axes.axhline(level, color="#dddddd", linewidth=0.8, zorder=0)
    axes.set(xlabel="trials", ylabel="power", ylim=(0, 1.02), xlim=(0, max(p.n[-1] for p in drawn)))
    source = "costs of 0 and 1, exact" if plan.exact else f"simulated, ± {2 * plan.standard_error:.2f}"
    axes.set_title(
        f"Expected cost {plan.cost:.3g} instead of the certified one ({source})", loc="left", fontsize=11
    )
    bare(axes)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return figure
