"""Figures of comparisons, rankings and their plans (extra ``plot``)."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.figures import new_figure
from boundwatch._support.validation import check_costs
from boundwatch.comparison import ComparisonFinding, PolicyComparison, Ranking
from boundwatch.planning import ComparisonPlan
from boundwatch.reporting.comparison import NAMES, Names, comparison_headline, ranking_headline
from boundwatch.reporting.plots import bare, plot_interval
from boundwatch.reporting.wording import ceiling, floor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito; they also differ in lightness, shape and dashes.
_A, _B, _DIFFERENCE, _GRAY = "#0072B2", "#D55E00", "#333333", "#999999"


def plot_difference(finding: ComparisonFinding, names: Names = NAMES) -> Figure:
    """Draw the limits on the difference of the expected costs.

    Examples
    --------
    >>> finding = PolicyComparison(binary=True, paired=False).update_many([0, 0, 1], [1, 1, 1])
    >>> plot_difference(finding).axes[0].get_xlabel()
    'expected cost of B minus that of A'
    """
    low, high, mean = finding.difference_lower, finding.difference_upper, None
    if finding.mean_cost_a is not None and finding.mean_cost_b is not None:
        mean = finding.mean_cost_b - finding.mean_cost_a
    said = (
        f"{fill(comparison_headline(finding, names), 84)}\nbetween {floor(low, '+')} and {ceiling(high, '+')}"
    )
    figure = plot_interval((low, high), mean, _DIFFERENCE, said)
    figure.axes[0].axvline(0, color=_GRAY, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    figure.axes[0].set(xlabel=f"expected cost of {names[1]} minus that of {names[0]}", xlim=(-1.02, 1.02))
    return figure


def plot_comparison(
    test: PolicyComparison, costs_a: ArrayLike, costs_b: ArrayLike, names: Names = NAMES
) -> Figure:
    r"""Draw the mean costs as trials come in, and the limits on their difference.

    Examples
    --------
    >>> test = PolicyComparison(binary=True, paired=False)
    >>> [axes.get_ylabel() for axes in plot_comparison(test, [0, 0, 0, 0, 0, 1], [1] * 6).axes]
    ['mean cost', 'B\nminus A']
    """
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
    for each, name, color, style in zip(values, names, (_A, _B), ("-", (0, (5, 2))), strict=True):
        n = np.arange(1, each.size + 1)
        top.plot(n, np.cumsum(each) / n, color=color, linestyle=style, linewidth=2, label=name)
    top.set(ylabel="mean cost", ylim=(-0.02, 1.02))
    top.legend(frameon=False, loc="upper right")
    lower, upper = np.array(limits).T
    bottom.fill_between(looks, lower, upper, color=_GRAY, alpha=0.35, linewidth=0)
    bottom.plot(looks, limits, color=_DIFFERENCE, linewidth=1)
    bottom.axhline(0, color=_DIFFERENCE, linewidth=1, linestyle=(0, (4, 2)))
    bottom.set(xlabel="trials of each policy", ylabel=f"{names[1]}\nminus {names[0]}", ylim=(-1.05, 1.05))
    if finding.first_alarm is not None:
        for axes in (top, bottom):
            axes.axvline(finding.first_alarm, color=_DIFFERENCE, linewidth=1, linestyle=(0, (1, 2)))
        beside = finding.first_alarm + 0.01 * max(map(len, values))
        bottom.text(beside, -0.98, f"verdict at pair {finding.first_alarm}", fontsize=9)
    top.set_title(fill(comparison_headline(finding, names), 72), loc="left", fontweight="bold", fontsize=11)
    bare(top, bottom)
    return figure


def plot_ranking(ranking: Ranking) -> Figure:
    """Draw every policy's mean and interval, the best on top, with the letters of its groups.

    Examples
    --------
    >>> import boundwatch as bw
    >>> figure = plot_ranking(bw.rank({"v1": [0.0] * 20, "v2": [1.0] * 20}))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['v1', 'v2']
    """
    figure = new_figure(7.2, 1.6 + 0.42 * len(ranking.policies))
    axes = figure.subplots()
    for i, policy in enumerate(ranking.policies):
        color = _A if policy.name in ranking.best else _DIFFERENCE
        ends = [policy.lower, policy.upper]
        axes.plot(ends, [i, i], color=color, linewidth=2, marker="|", markersize=12)
        axes.plot([policy.mean_cost], [i], "D", color=color)
        axes.text(1.03, i, policy.letters, va="center", family="monospace", fontsize=11)
    axes.set(xlabel="expected cost", xlim=(-0.01, 1.01), ylim=(len(ranking.policies) - 0.4, -0.6))
    axes.set_yticks(range(len(ranking.policies)), [policy.name for policy in ranking.policies])
    axes.set_title(fill(ranking_headline(ranking), 72), loc="left", fontweight="bold", fontsize=11)
    confidence = f"intervals hold at once with probability {1 - ranking.alpha:g}"
    figure.supxlabel(f"{confidence}; policies with a common letter cannot be told apart", fontsize=9)
    bare(axes)
    return figure


def plot_comparison_plan(plan: ComparisonPlan) -> Figure:
    """Draw the power of a comparison against the number of pairs.

    Examples
    --------
    >>> import boundwatch as bw
    >>> plot_comparison_plan(bw.plan_comparison(cost_a=0.1, cost_b=0.6)).axes[0].get_ylabel()
    'power'
    """
    figure = new_figure(7.2, 4.4)
    axes = figure.subplots()
    for level in (0.5, 0.8, 0.9):
        axes.axhline(level, color="#dddddd", linewidth=0.8, zorder=0)
    axes.plot(np.arange(len(plan.power)), plan.power, color=_A, linewidth=2.6)
    axes.set(xlabel="pairs of trials", ylabel="power", ylim=(0, 1.02), xlim=(0, len(plan.power) - 1))
    kind = "matched" if plan.paired else "independent"
    title = f"Failure rates {plan.cost_a:g} and {plan.cost_b:g}, {kind} trials, level {plan.alpha:g} per side"
    axes.set_title(title, loc="left", fontsize=11)
    bare(axes)
    return figure
