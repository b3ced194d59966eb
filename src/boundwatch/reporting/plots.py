"""Figures of costs, comparisons and plans (extra ``plot``). Readable in gray and by color-blind readers.

Every function returns a figure that is independent of pyplot; write it with `save_figure`.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.figures import new_figure
from boundwatch._support.figures import save_figure as save_figure  # beside what it writes
from boundwatch._support.validation import check_costs
from boundwatch.bounds import clopper_pearson_lower, clopper_pearson_upper
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparedTasks, ComparisonFinding, PolicyComparison, Ranking
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.planning import ComparisonPlan, Plan, TrialPlan
from boundwatch.reporting import wording
from boundwatch.reporting.compared import NAMES, Names, comparison_headline, ranking_headline
from boundwatch.reporting.report import new_interval
from boundwatch.reporting.svg import strip_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito; what stands together also differs in lightness, shape, dashes or width.
_BLUE, _SKY, _RED, _GREEN, _INK, _GRAY = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#333333", "#999999"
_SUCCEEDED, _FAINT = "#D9DEE3", "#dddddd"
_VERDICTS = {Verdict.ADVERSE: _RED, Verdict.BENIGN: _GREEN, Verdict.WITHIN: "#57606A"}
_DASHES = (0, (4, 2))
_BAND: dict[str, Any] = {"facecolor": _SKY, "alpha": 0.45, "edgecolor": "none", "zorder": 1}
_LIMIT: dict[str, Any] = {"color": _BLUE, "linewidth": 1, "linestyle": _DASHES, "zorder": 2}
_BELOW: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
_NEW_RATE: dict[str, Any] = {"fmt": "D", "color": _RED, "capsize": 5, "linewidth": 2, "zorder": 3}
_TAIL_STYLES: dict[str, dict[str, Any]] = {
    "hoeffding": {"color": _GRAY, "linestyle": "-"},
    "kl": {"color": "#E69F00", "linestyle": (0, (6, 2))},
    "exact": {"color": _GREEN, "linestyle": (0, (1, 1))},
    "betting": {"color": "#CC79A7", "linestyle": (0, (4, 1, 1, 1))},
    "mixture": {"color": _BLUE, "linestyle": "-", "linewidth": 2.6},
    "joint": {"color": _GREEN, "linestyle": (0, (1, 1))},
}
_TITLE: dict[str, Any] = {"loc": "left", "fontweight": "bold", "fontsize": 11}
_PERCENT = [0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20", "40", "60", "80", "100"]
_QUESTIONS = {"worse": "Noticing that it is worse", "better": "Showing that it is better"}


def plot_check(certificate: Certificate, finding: Finding, costs: ArrayLike) -> Figure:
    """Draw the costs that a finding is about, the certified interval, and that of the new expected cost."""
    values = certificate.check_costs(costs)
    n, mean, (low, high) = values.size, finding.mean_cost, new_interval(certificate, finding, values)
    arms = [[max(mean - low, 0)], [max(high - mean, 0)]]  # rounding may put a limit a hair past the mean
    rows = -(-n // strip_columns(n))
    tall = min(0.3 + 0.22 * rows, 3.0)
    figure = new_figure(7.2, 2.5 + tall if certificate.binary else 4.4)
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if certificate.binary:
        first, second = figure.subplots(2, 1, height_ratios=[tall, 0.8])
        _draw_strip(first, values, rows)
        band = second.axvspan(certificate.lower, certificate.upper, **_BAND)
        for limit in (certificate.lower, certificate.upper):
            second.axvline(limit, **_LIMIT)
        bar = second.errorbar([mean], [0], xerr=arms, **_NEW_RATE)
        second.set(xlim=(-0.01, 1.01), ylim=(-1, 1), yticks=[])
        _in_percent(second)
        _bare(second, "left")
        seen = f"{wording.failed(finding)} ({wording.percent(mean)})"
        marks = [Patch(color=_INK), Patch(color=_SUCCEEDED), band, bar]
        certified, new = wording.limits(certificate), wording.percents(low, high)
        names = ["failed", "succeeded", f"certified: {certified} fail", f"new: {new} fail"]
    else:
        first, second = figure.subplots(1, 2, sharey=True, width_ratios=[5, 1])
        for axes in (first, second):
            band = axes.axhspan(certificate.lower, certificate.upper, **_BAND)
            for limit in (certificate.lower, certificate.upper):
                axes.axhline(limit, **_LIMIT)
        _draw_dots(first, values)
        bar = second.errorbar([0], [mean], yerr=arms, **_NEW_RATE)
        second.set(xlabel="mean", xticks=[], xlim=(-1, 1))
        second.tick_params(left=False)
        _bare(first)
        _bare(second)
        seen = f"mean cost {mean:.3f} over {wording.count(n, 'episode')}"
        marks = [Line2D([], [], marker="o", linestyle="", color=_INK), band, bar]
        certified = f"certified expected cost\n{certificate.lower:.3f} to {certificate.upper:.3f}"
        new = f"new mean, and interval for the new\nexpected cost, {low:.3f} to {high:.3f}"
        names = ["one episode", certified, new]
    first.set_title(f"{fill(wording.headline(finding), 84)}\n{seen}", loc="left", fontsize=10)
    figure.legend(marks, names, ncols=len(names), **_BELOW)
    return figure


def _draw_dots(axes: Axes, costs: NDArray[np.float64]) -> None:
    from matplotlib.ticker import MaxNLocator

    n = costs.size
    size, alpha = np.clip(3000 / n, 6, 30), np.clip(300 / n, 0.35, 1)
    axes.scatter(np.arange(1, n + 1), costs, s=size, alpha=alpha, color=_INK, lw=0, zorder=3)
    axes.set(xlabel="episode", ylabel="cost", xlim=(0.5 - 0.02 * n, n + 0.5 + 0.02 * n), ylim=(-0.04, 1.04))
    axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def _draw_strip(strip: Axes, costs: NDArray[np.float64], rows: int) -> None:
    """Draw one cell per trial, dark where it failed."""
    from matplotlib.colors import ListedColormap

    columns = strip_columns(costs.size)
    cells = np.full((rows, columns), np.nan)
    cells.flat[: costs.size] = costs
    edge = 1.0 if columns <= 100 else 0.0  # where there is no room for gaps, cells touch
    colors = ListedColormap([_SUCCEEDED, _INK])
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
    axes.set_xticks(*_PERCENT)


def plot(subject: Certificate | Finding | ComparisonFinding | Ranking) -> Figure:
    """Draw a certificate's interval for the expected cost, a finding's for the shift, or a ranking's."""
    if isinstance(subject, Ranking):
        return plot_ranking(subject)
    if isinstance(subject, ComparisonFinding):
        return plot_difference(subject) if subject.method == "anytime" else plot_once(subject)
    title = fill(wording.headline(subject), 84)
    if isinstance(subject, Certificate):
        where: dict[str, Any] = {"xlabel": "expected cost of an episode", "xlim": (-0.01, 1.01)}
        limits = subject.lower, subject.upper
        figure, axes = _plot_interval(limits, subject.mean_cost, _BLUE, title, **where)
        if subject.binary:
            _in_percent(axes)
        return figure
    where = {"xlabel": "shift of the expected cost", "xlim": (-1.02, 1.02)}
    limits, color = (subject.shift_lower, subject.shift_upper), _VERDICTS[subject.verdict]
    title = f"{title}\n{wording.shift(subject)}"
    figure, axes = _plot_interval(limits, None, color, title, zero=_BLUE, **where)
    if subject.binary:
        axes.set(xlabel="change of the failure rate, in points")
        axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["-100", "-50", "0", "+50", "+100"])
    return figure


def plot_difference(finding: ComparisonFinding, names: Names = NAMES) -> Figure:
    """Draw the limits on the difference of the expected costs of two policies."""
    low, high, mean = finding.difference_lower, finding.difference_upper, None
    if finding.mean_cost_a is not None and finding.mean_cost_b is not None:
        mean = finding.mean_cost_b - finding.mean_cost_a
    said = f"between {wording.floor(low, '+')} and {wording.ceiling(high, '+')}"
    title = f"{fill(comparison_headline(finding, names), 84)}\n{said}"
    what = f"expected cost of {names[1]} minus that of {names[0]}"
    return _plot_interval((low, high), mean, _INK, title, zero=_GRAY, xlabel=what, xlim=(-1.02, 1.02))[0]


def plot_once(finding: ComparisonFinding | ComparedTasks) -> Figure:
    """Draw the success rates of two finished policies, on each task; of other costs, the limits."""
    overall = finding.overall if isinstance(finding, ComparedTasks) else finding
    if not overall.binary:
        return plot_difference(overall, overall.names)
    rows = dict(finding.tasks) if isinstance(finding, ComparedTasks) else {"": overall}
    sure = f"success rate in %, each with a {100 * (1 - 2 * overall.alpha):g} % interval of its own"
    figure, axes = _new(7.2, 1.9 + 0.5 * len(rows), comparison_headline(finding), xlabel=sure)
    for i, each in enumerate(rows.values()):
        counts = (each.n_a, each.mean_cost_a), (each.n_b, each.mean_cost_b)
        styles = zip(counts, overall.names, (_BLUE, _RED), ("o", "D"), (-0.15, 0.15), strict=True)
        for (n, mean), name, color, marker, up in styles:
            successes = n - round(n * (mean or 0.0))
            ends = [of(successes, n, each.alpha) for of in (clopper_pearson_lower, clopper_pearson_upper)]
            axes.plot(ends, [i + up] * 2, color=color, linewidth=2, marker="|", markersize=10)
            axes.plot([successes / n], [i + up], marker, color=color, label=name if i == 0 else None)
    axes.set(xlim=(-0.01, 1.01), ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_xticks(*_PERCENT)
    figure.legend(**_BELOW, ncols=2)
    return figure


def _plot_interval(
    limits: tuple[float, float], mean: float | None, color: str, title: str, zero: str = "", **where: Any
) -> tuple[Figure, Axes]:
    """Draw an interval, with the mean inside it and a line at zero if there are, on a flat figure."""
    figure, axes = _new(6.4, 1.9, yticks=[], ylim=(-1, 1), **where)
    if mean is not None:
        axes.plot([mean], [0], "D", color=color)
    axes.plot(limits, [0, 0], color=color, linewidth=2, marker="|", markersize=16)
    if zero:
        axes.axvline(0, color=zero, linewidth=1, linestyle=_DASHES, zorder=1)
    _bare(axes, "left")
    axes.set_title(title, loc="left", fontsize=9)
    return figure, axes


def _new(width: float, height: float, title: str = "", **where: Any) -> tuple[Figure, Axes]:
    """Return a figure with one frame, its title, labels and limits."""
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.set(**where)
    axes.set_title(fill(title, 72), **_TITLE)
    _bare(axes)
    return figure, axes


def _bare(axes: Axes, *sides: str) -> None:
    """Take the lines away on top, on the right, and where else a name says so."""
    axes.spines[["top", "right", *sides]].set_visible(False)


def plot_trials(plan: TrialPlan) -> Figure:
    """Draw the power of one look against the trials at the new site, with the recommended number."""
    lab, sites, power = plan.curve()
    shown: dict[str, Any] = {"ylim": (0, 1.02), "xlim": (0, sites[-1] * 1.08)}
    figure, axes = _new(6.4, 4.0, xlabel="trials at the new site", ylabel="power", **shown)
    axes.plot(sites, power, color=_BLUE, linewidth=2.4)
    for booking, color in ((plan.recommended, _RED), (plan.asked, _INK)):
        if booking is None:
            continue
        x, y = booking.site, booking.power
        axes.plot([x, x], [0, y], color=color, linewidth=1, linestyle=_DASHES)
        axes.plot([x], [y], "o", color=color, markersize=7)
        said = f"{x:,} trials: {100 * y:.0f} %"
        axes.annotate(said, (x, y), (8, -16), textcoords="offset points", fontsize=10, color=color)
    change = f"failure rate {plan.cost:g} in the lab, {plan.new_cost:g} at the new site"
    title = _QUESTIONS.get(plan.question, f"Showing that it is at most {plan.margin} worse")
    axes.set_title(f"{title}: {lab:,} trials in the lab\n", **_TITLE)
    axes.text(0, 1.03, f"{change}; wrong answers at most {plan.rate:g}", transform=axes.transAxes, fontsize=9)
    return figure


def plot_plan(plan: Plan) -> Figure:
    """Draw the power of the hypothesis test, and of the sequential test, against trials."""
    fixed = [power for power in plan.powers if power.detector == "hypothesis-test"]
    # The tail that a check takes by itself is the one to plan with; the others are in the table.
    usual = "joint" if plan.joint else "exact" if plan.exact else "betting"
    best = next((power for power in fixed if power.tail == usual), fixed[-1])
    watch = plan.powers[-1]
    figure, axes = _plot_powers((0.5, 0.8, 0.9, 0.95), max(best.n[-1], watch.n[-1]), "trials")
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    drawn = {"check: n trials, one look": best, "watch: alarm within n trials": watch}
    for label, power in drawn.items():
        style = _TAIL_STYLES["mixture" if power is watch else power.tail]
        axes.plot(power.n, power.power, label=f"{label} (level {power.level:.3g})", **style)
    # It limits the mean of a sequential test's trials, not the trials at which a curve reaches some power.
    known = "certified rate known exactly" if plan.joint else "certified limit taken as true"
    limit = f"information limit on the mean trials of watch\n({known}): {plan.information_limit:.1f}"
    axes.axvline(plan.information_limit, color=_INK, linewidth=1, linestyle=(0, (2, 3)), label=limit)
    source = "costs of 0 and 1, exact" if plan.exact else f"simulated, ± {2 * plan.standard_error:.2f}"
    title = f"Expected cost {plan.cost:.3g} instead of the certified one ({source})"
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return figure


def plot_comparison_plan(plan: ComparisonPlan) -> Figure:
    """Draw the power of a comparison against the number of pairs."""
    figure, axes = _plot_powers((0.5, 0.8, 0.9), len(plan.power) - 1, "pairs of trials")
    axes.plot(np.arange(len(plan.power)), plan.power, color=_BLUE, linewidth=2.6)
    kind = "matched" if plan.paired else "independent"
    title = f"Failure rates {plan.cost_a:g} and {plan.cost_b:g}, {kind} trials, level {plan.alpha:g} per side"
    axes.set_title(title, loc="left", fontsize=11)
    return figure


def _plot_powers(levels: tuple[float, ...], most: float, of: str) -> tuple[Figure, Axes]:
    """Return a figure for powers against numbers, with lines at some levels."""
    figure, axes = _new(7.2, 4.4, xlabel=of, ylabel="power", ylim=(0, 1.02), xlim=(0, most))
    for level in levels:
        axes.axhline(level, color=_FAINT, linewidth=0.8, zorder=0)
    return figure, axes


def plot_comparison(
    test: PolicyComparison, costs_a: ArrayLike, costs_b: ArrayLike, names: Names = NAMES
) -> Figure:
    """Draw the mean costs as trials come in, and the limits on their difference."""
    values = [check_costs(costs) for costs in (costs_a, costs_b)]
    pairs = min(len(each) for each in values)
    # As many looks as the eye can tell apart: each takes a few milliseconds.
    looks = np.unique(np.linspace(1, pairs, min(pairs, 80)).round().astype(int))
    limits, last = [], 0
    for look in looks:
        finding = test.update_many(*(each[last:look] for each in values))
        limits.append((finding.difference_lower, finding.difference_upper))
        last = int(look)
    for name, each in zip(("costs_a", "costs_b"), values, strict=True):
        if each.size > pairs:
            finding = test.update_many(**{name: each[pairs:]})
    figure = new_figure(7.2, 5.0)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for each, name, color, style in zip(values, names, (_BLUE, _RED), ("-", (0, (5, 2))), strict=True):
        n = np.arange(1, each.size + 1)
        top.plot(n, np.cumsum(each) / n, color=color, linestyle=style, linewidth=2, label=name)
    top.set(ylabel="mean cost", ylim=(-0.02, 1.02))
    top.legend(frameon=False, loc="upper right")
    lower, upper = np.array(limits).T
    bottom.fill_between(looks, lower, upper, color=_GRAY, alpha=0.35, linewidth=0)
    bottom.plot(looks, limits, color=_INK, linewidth=1)
    bottom.axhline(0, color=_INK, linewidth=1, linestyle=_DASHES)
    bottom.set(xlabel="trials of each policy", ylabel=f"{names[1]}\nminus {names[0]}", ylim=(-1.05, 1.05))
    if finding.first_alarm is not None:
        for axes in (top, bottom):
            axes.axvline(finding.first_alarm, color=_INK, linewidth=1, linestyle=(0, (1, 2)))
        beside = finding.first_alarm + 0.01 * max(map(len, values))
        bottom.text(beside, -0.98, f"verdict at pair {finding.first_alarm}", fontsize=9)
    top.set_title(fill(comparison_headline(finding, names), 72), **_TITLE)
    _bare(top)
    _bare(bottom)
    return figure


def plot_ranking(ranking: Ranking) -> Figure:
    """Draw every policy's mean and interval, the best on top, with the letters of its groups."""
    where: dict[str, Any] = {"xlim": (-0.01, 1.01), "ylim": (len(ranking.policies) - 0.4, -0.6)}
    tall = 1.6 + 0.42 * len(ranking.policies)
    figure, axes = _new(7.2, tall, ranking_headline(ranking), xlabel="expected cost", **where)
    for i, policy in enumerate(ranking.policies):
        color = _BLUE if policy.name in ranking.best else _INK
        axes.plot([policy.lower, policy.upper], [i, i], color=color, linewidth=2, marker="|", markersize=12)
        axes.plot([policy.mean_cost], [i], "D", color=color)
        axes.text(1.03, i, policy.letters, va="center", family="monospace", fontsize=11)
    axes.set_yticks(range(len(ranking.policies)), [policy.name for policy in ranking.policies])
    confidence = f"intervals hold at once with probability {1 - ranking.alpha:g}"
    figure.supxlabel(f"{confidence}; policies with a common letter cannot be told apart", fontsize=9)
    return figure
