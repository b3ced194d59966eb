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
from boundwatch.reporting.svg import strip_columns
from boundwatch.reporting.wording import (
    ceiling,
    count,
    failed,
    headline,
    new_interval,
    percent,
    rates,
    shift,
)

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
    """Draw the new costs, the certified interval, and the confidence interval of the new expected cost.

    Parameters
    ----------
    certificate : Certificate
        What was promised.
    finding : Finding
        What a fixed-sample detector decided about the costs.
    costs : array_like
        The costs it decided about.

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
    for axes in (left, right):
        band = axes.axhspan(
            certificate.lower, certificate.upper, facecolor=_CERTIFIED, alpha=0.45, edgecolor="none", zorder=1
        )
        for limit in (certificate.lower, certificate.upper):
            axes.axhline(limit, color=_CERTIFIED_EDGE, linewidth=1, linestyle=(0, (4, 2)), zorder=2)
        axes.spines[["top", "right"]].set_visible(False)

    n, mean = values.size, finding.mean_cost
    left.scatter(
        np.arange(1, n + 1),
        values,
        s=np.clip(3000 / n, 6, 30),
        alpha=np.clip(300 / n, 0.35, 1),
        color=_EPISODE,
        lw=0,
        zorder=3,
    )
    left.set(xlabel="episode", ylabel="cost", xlim=(0.5 - 0.02 * n, n + 0.5 + 0.02 * n), ylim=(-0.04, 1.04))
    left.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))

    bar = right.errorbar([0], [mean], yerr=_arms(mean, interval), **_NEW_RATE)
    right.set(xlabel="mean", xticks=[], xlim=(-1, 1))
    right.tick_params(left=False)
    _entitle(left, finding, f"mean cost {mean:.3f} over {count(n, 'episode')}")
    low, high = interval
    figure.legend(
        [Line2D([], [], marker="o", linestyle="", color=_EPISODE), band, bar],
        [
            "one episode",
            f"certified expected cost\n{certificate.lower:.3f} to {certificate.upper:.3f}",
            f"new mean, and interval for the new\nexpected cost, {low:.3f} to {high:.3f}",
        ],
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    return figure


def _plot_outcomes(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], interval: tuple[float, float]
) -> Figure:
    """Draw a strip of one cell per trial, dark where it failed, above the rates of failures."""
    columns = strip_columns(costs.size)
    rows = -(-costs.size // columns)
    tall = min(0.3 + 0.22 * rows, 3.0)
    figure = new_figure(7.2, 2.5 + tall)
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    strip, scale = figure.subplots(2, 1, height_ratios=[tall, 0.8])
    cells = np.full((rows, columns), np.nan)
    cells.flat[: costs.size] = costs
    edge = 1.0 if columns <= 100 else 0.0  # where there is no room for gaps, cells touch
    strip.pcolormesh(
        cells, cmap=ListedColormap([_SUCCEEDED, _EPISODE]), vmin=0, vmax=1, edgecolors="white", linewidth=edge
    )
    strip.invert_yaxis()
    last = min(columns, costs.size)
    strip.set(xlim=(0, max(columns, 20)), yticks=[])
    strip.set_xlabel("trial", loc="left")
    strip.set_xticks([0.5, last - 0.5] if last > 1 else [0.5], ["1", str(last)] if last > 1 else ["1"])
    if rows > 1:  # a row begins where the one above it ends
        shown = range(0, rows, max(1, rows // 5))
        strip.set_yticks([row + 0.5 for row in shown], [f"{row * columns + 1}" for row in shown])
        strip.set(xticks=[], xlabel="")
        strip.set_ylabel("trial")
    strip.tick_params(length=0)
    strip.spines[:].set_visible(False)

    low, high = certificate.lower, certificate.upper
    band = scale.axvspan(low, high, facecolor=_CERTIFIED, alpha=0.45, edgecolor="none", zorder=1)
    for limit in (low, high):
        scale.axvline(limit, color=_CERTIFIED_EDGE, linewidth=1, linestyle=(0, (4, 2)), zorder=2)
    bar = scale.errorbar([finding.mean_cost], [0], xerr=_arms(finding.mean_cost, interval), **_NEW_RATE)
    scale.set(xlim=(-0.01, 1.01), ylim=(-1, 1), yticks=[])
    _in_percent(scale)
    scale.spines[["top", "right", "left"]].set_visible(False)

    _entitle(strip, finding, f"{failed(finding)} ({percent(finding.mean_cost)})")
    figure.legend(
        [Patch(color=_EPISODE), Patch(color=_SUCCEEDED), band, bar],
        [
            "failed",
            "succeeded",
            f"certified: {rates(certificate)} fail",
            f"new: {percent(interval[0], 'down').removesuffix(' %')} to {percent(interval[1], 'up')} fail",
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    return figure


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

    Parameters
    ----------
    subject : Certificate or Finding
        What to draw; `plot_check` draws a finding with its costs.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> certificate.plot().axes[0].get_xlabel()
    'expected cost of an episode'
    >>> bw.HypothesisTest(certificate).decide([0.5, 0.2]).plot().axes[0].get_xlabel()
    'shift of the expected cost'
    """
    figure = new_figure(6.4, 1.9)
    axes = figure.subplots()
    title = fill(headline(subject), 84)
    if isinstance(subject, Certificate):
        low, high, color = subject.lower, subject.upper, _CERTIFIED_EDGE
        axes.set(xlabel="expected cost of an episode", xlim=(-0.01, 1.01))
        if subject.binary:
            _in_percent(axes)
        if subject.mean_cost is not None:
            axes.plot([subject.mean_cost], [0], "D", color=color)
    else:
        low, high, color = subject.shift_lower, subject.shift_upper, _VERDICTS[subject.verdict]
        axes.set(xlabel="shift of the expected cost", xlim=(-1.02, 1.02))
        if subject.binary:
            axes.set(xlabel="change of the failure rate, in points")
            axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["-100", "-50", "0", "+50", "+100"])
        axes.axvline(0, color=_CERTIFIED_EDGE, linewidth=1, linestyle=(0, (4, 2)))
        title += f"\n{shift(subject)}"
    axes.plot([low, high], [0, 0], color=color, linewidth=2, marker="|", markersize=16)
    axes.set(yticks=[], ylim=(-1, 1))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=9)
    return figure


def plot_under_shift(certificate: Certificate, largest: float = 0.5) -> Figure:
    """Draw the worst expected cost against the distance between the new world and the certified one.

    Parameters
    ----------
    certificate
        What was promised in the certified world.
    largest
        The largest distance to draw.

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
    curves = {
        "relative entropy of that many nats": ([certificate.under_shift(kl=d) for d in distances], "-"),
        "total variation of that size": (
            [certificate.under_shift(tv=min(d, 1.0)) for d in distances],
            (0, (6, 2)),
        ),
    }
    for (label, (values, dashes)), color in zip(curves.items(), (_NEW, _CERTIFIED_EDGE), strict=True):
        axes.plot(distances, values, color=color, linestyle=dashes, linewidth=2, label=f"within a {label}")
    axes.axhline(certificate.upper, color=_EPISODE, linewidth=1, linestyle=(0, (1, 2)))
    axes.annotate(
        f"certified: at most {ceiling(certificate.upper)}",
        (largest, certificate.upper),
        (0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
    axes.set(xlabel="distance from the certified world", ylabel="worst expected cost", xlim=(0, largest))
    axes.set_ylim(0, min(1.02, 1.1 * max(max(values) for values, _ in curves.values())))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def plot_trials(plan: TrialPlan) -> Figure:
    """Draw the power of one look against the trials at the new site, with the recommended number.

    Parameters
    ----------
    plan
        What `boundwatch.plan` returned without a certificate.

    Examples
    --------
    >>> import boundwatch as bw
    >>> plot_trials(bw.plan(cost=0.1, new_cost=0.6, lab_trials=20)).axes[0].get_xlabel()
    'trials at the new site'
    """
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    lab, sites, power = plan.curve()
    axes.plot(sites, power, color=_CERTIFIED_EDGE, linewidth=2.4)
    marked = [(booking, _NEW) for booking in (plan.recommended,) if booking is not None]
    marked += [(booking, _EPISODE) for booking in (plan.asked,) if booking is not None]
    for booking, color in marked:
        axes.plot(
            [booking.site, booking.site], [0, booking.power], color=color, linewidth=1, linestyle=(0, (4, 2))
        )
        axes.plot([booking.site], [booking.power], "o", color=color, markersize=7)
        axes.annotate(
            f"{booking.site:,} trials: {100 * booking.power:.0f} %",
            (booking.site, booking.power),
            (8, -16),
            textcoords="offset points",
            fontsize=10,
            color=color,
        )
    axes.set(xlabel="trials at the new site", ylabel="power", ylim=(0, 1.02), xlim=(0, sites[-1] * 1.08))
    axes.spines[["top", "right"]].set_visible(False)
    change = f"failure rate {plan.cost:g} in the lab, {plan.new_cost:g} at the new site"
    title = {"worse": "Noticing that it is worse", "better": "Showing that it is better"}.get(
        plan.question, f"Showing that it is at most {plan.margin} worse"
    )
    axes.set_title(f"{title}: {lab:,} trials in the lab\n", loc="left", fontweight="bold", fontsize=11)
    axes.text(0, 1.03, f"{change}; wrong answers at most {plan.rate:g}", transform=axes.transAxes, fontsize=9)
    return figure


def plot_plan(plan: Plan) -> Figure:
    """Draw the power of the hypothesis test with each tail, and of the sequential test, against trials.

    Parameters
    ----------
    plan
        What `boundwatch.plan` returned.

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
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return figure
