"""Figures of costs, comparisons and plans (extra ``plot``). Readable in gray and by color-blind readers.

Every function returns a figure that is independent of pyplot; write it with `save_figure`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.figures import new_figure
from boundwatch._support.figures import save_figure as save_figure  # beside what it writes
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparedTasks, ComparisonFinding, Ranking
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.joint import counts_of
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.strata import by_task
from boundwatch.detectors.verdicts import Finding, Verdict
from boundwatch.planning import ComparisonPlan, Plan, TrialPlan
from boundwatch.reporting import wording
from boundwatch.reporting.compared import Names, comparison_headline, ranking_headline
from boundwatch.reporting.report import new_interval
from boundwatch.reporting.svg import strip_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito; what stands together also differs in lightness, shape, dashes or width.
_BLUE, _SKY, _RED, _GREEN, _INK, _GRAY = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#333333", "#999999"
_SUCCEEDED, _FAINT = "#D9DEE3", "#dddddd"
_VERDICTS = {Verdict.ADVERSE: _RED, Verdict.BENIGN: _GREEN, Verdict.WITHIN: "#57606A"}
_CALLS = {"REGRESSED": _RED, "SUSPECT": _RED, "IMPROVED": _GREEN}
_DASHES = (0, (4, 2))
_BAND: dict[str, Any] = {"facecolor": _SKY, "alpha": 0.45, "edgecolor": "none", "zorder": 1}
_LIMIT: dict[str, Any] = {"color": _BLUE, "linewidth": 1, "linestyle": _DASHES, "zorder": 2}
_BELOW: dict[str, Any] = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
_NEW_RATE: dict[str, Any] = {"fmt": "D", "color": _RED, "capsize": 4, "linewidth": 2, "zorder": 3}
_TITLE: dict[str, Any] = {"x": 0.01, "ha": "left", "fontweight": "bold", "fontsize": 10}
_POINTS = [-1, -0.5, 0, 0.5, 1], ["-100", "-50", "0", "+50", "+100"]
_PERCENT = [0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "20", "40", "60", "80", "100"]
_QUESTIONS = {"worse": "Noticing that it is worse", "better": "Showing that it is better"}


def plot_check(certificate: Certificate, finding: Finding, costs: ArrayLike) -> Figure:
    """Draw the costs that a finding is about, the certified interval, and that of the new expected cost."""
    values = certificate.check_costs(costs)
    mean, (low, high) = finding.mean_cost, new_interval(certificate, finding, values)
    rows = -(-values.size // strip_columns(values.size))
    tall = min(0.3 + 0.22 * rows, 3.0) if certificate.binary else 2.0
    figure = new_figure(7.2, 2.5 + tall)
    first, second = figure.subplots(2, 1, height_ratios=[tall, 0.8])
    if certificate.binary:
        _draw_strip(first, values, rows)
        said = f"{wording.limits(certificate)} fail", f"{wording.percents(low, high)} fail"
        seen = f"{wording.failed(finding)} ({wording.percent(mean)})"
    else:
        _draw_dots(first, certificate, values)
        said = f"{certificate.lower:.3f} to {certificate.upper:.3f}", f"{low:.3f} to {high:.3f}"
        seen = f"mean cost {mean:.3f} over {wording.count(values.size, 'episode')}"
    _draw_rates(second, [(certificate, mean, (low, high))], f"certified: {said[0]}", f"new: {said[1]}")
    second.set(ylim=(-0.6, 0.6), yticks=[])
    _bare(second, "left")
    figure.legend(ncols=4, **_BELOW)
    return _titled(figure, wording.headline(finding), seen)


def plot_tasks(
    test: FixedSampleDetector | FamilyTest, finding: Finding | FamilyFinding, costs: Mapping[str, ArrayLike]
) -> Figure:
    """Draw each task's certified interval, its new mean with an interval of its own, and its verdict."""
    family = test.family if isinstance(test, FamilyTest) else by_task(test.certificate)
    rows: dict[str, Rate] = {}
    called = [found.verdict for found in finding.tasks.values()]
    if isinstance(finding, Finding) and not isinstance(test, FamilyTest):
        rows["all together"] = test.certificate, finding.mean_cost, (finding.mean_cost,) * 2
        called.insert(0, finding.verdict)
    for task, found in finding.tasks.items():
        values = family[task].check_costs(costs[task])
        rows[task] = family[task], found.mean_cost, new_interval(family[task], found, values)
    figure, axes = _new(7.2, 1.5 + 0.36 * len(rows))
    _draw_rates(axes, rows.values(), "certified", "new; each task's 90 % interval is its own")
    for i, verdict in enumerate(called):
        _beside(axes, i, verdict.name, _VERDICTS[verdict])
    if Verdict.WITHIN in called:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{wording.says(Verdict.WITHIN)}")
    _name_rows(axes, rows)
    figure.legend(ncols=2, **_BELOW)
    return _titled(figure, wording.headline(finding))


Rate = tuple[Certificate, float, tuple[float, float]]
"""What was certified, the new mean, and its interval."""


def _draw_rates(axes: Axes, rates: Iterable[Rate], certified: str, new: str) -> None:
    """Draw certified intervals and, on them, new means with theirs, a row each."""
    band, bar = {**_BAND, "edgecolor": _BLUE, "label": certified}, {**_NEW_RATE, "label": new}
    binary = True
    for i, (certificate, mean, (low, high)) in enumerate(rates):
        axes.barh(i, certificate.upper - certificate.lower, 0.62, certificate.lower, **band)
        arms = [[max(mean - low, 0)], [max(high - mean, 0)]]  # rounding may put a limit a hair past the mean
        axes.errorbar([mean], [i], xerr=arms, **bar)
        band["label"] = bar["label"] = None
        binary &= certificate.binary
    axes.set(xlabel="expected cost", xlim=(-0.01, 1.01))
    if binary:
        _in_percent(axes)


def _name_rows(axes: Axes, names: Iterable[str]) -> None:
    """Give each row its name, the first on top; long ones are broken where words or underscores end."""
    known = [fill(name.replace("_", "_ "), 30, max_lines=2, placeholder="…") for name in names]
    axes.set_yticks(range(len(known)), [name.replace("_ ", "_") for name in known], fontsize=9)
    axes.set_ylim(len(known) - 0.4, -0.6)
    axes.tick_params("y", length=0)


def _beside(axes: Axes, row: float, said: str, color: str) -> None:
    """Write something on the right of a row."""
    style: dict[str, Any] = {"color": color, "va": "center", "fontsize": 8.5, "fontweight": "bold"}
    axes.text(1.03, row, said, transform=axes.get_yaxis_transform(), **style)


def plot_watch(detectors: Mapping[str, AnytimeDetector[Any]], found: Iterable[tuple[str, Finding]]) -> Figure:
    """Draw what was found after each episode of every stream: mean, certified interval, where it alarms."""
    by_stream: dict[str, list[Finding]] = {}
    for stream, finding in found:
        by_stream.setdefault(stream, []).append(finding)
    streams = [name for name in detectors if name in by_stream]
    figure = new_figure(7.2, 0.9 + (2.6 if len(streams) == 1 else 1.5) * len(streams))
    for axes, name in zip(figure.subplots(len(streams), 1, squeeze=False)[:, 0], streams, strict=True):
        detector, seen, certificate = detectors[name], by_stream[name], detectors[name].certificate
        n = np.array([each.n for each in seen])
        axes.axhspan(certificate.lower, certificate.upper, **_BAND, label="certified")
        axes.plot(n, [each.mean_cost for each in seen], color=_INK, linewidth=2, label="mean so far")
        if isinstance(detector, SequentialTest) and detector.thresholds is None and not certificate.strata:
            level, most = seen[-1].false_positive_rate, int(n[-1])
            needed = alarm_line(*counts_of(certificate, 0), level).needed(most)
            line = np.where(needed[n] <= n, needed[n] / n, np.nan)
            axes.plot(n, line, color=_RED, linewidth=1.5, linestyle=_DASHES, label="alarms from here on")
        _bare(axes)
        axes.set(ylabel="failed, in %" if certificate.binary else "mean cost", ylim=(-0.03, 1.03))
        axes.set_xlim(0, n[-1] * 1.02)
        if certificate.binary:
            axes.set_yticks(*_PERCENT)
        one = "trial" if certificate.binary else "episode"
        said = wording.says(Verdict.WITHIN) if detector.first_alarm is None else detector.verdict.name
        if detector.first_alarm is not None:
            said += f" at {one} {detector.first_alarm}"
            axes.axvline(detector.first_alarm, color=_VERDICTS[detector.verdict], linewidth=1.5)
        axes.set_title(f"{wording.shortened(name, 60)}: {said}" if name else said, loc="left", fontsize=10)
    axes.set(xlabel=one)
    figure.legend(*axes.get_legend_handles_labels(), ncols=3, **_BELOW)
    return figure


def _draw_dots(axes: Axes, certificate: Certificate, costs: NDArray[np.float64]) -> None:
    from matplotlib.ticker import MaxNLocator

    n = costs.size
    axes.axhspan(certificate.lower, certificate.upper, **_BAND)
    _bare(axes)
    style = {"s": np.clip(3000 / n, 6, 30), "alpha": np.clip(300 / n, 0.35, 1), "color": _INK, "lw": 0}
    axes.scatter(np.arange(1, n + 1), costs, zorder=3, label="one episode", **style)
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
    for color, name in ((_INK, "failed"), (_SUCCEEDED, "succeeded")):
        strip.bar([0], [0], color=color, label=name)
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


def plot(subject: Certificate | Finding | ComparisonFinding | ComparedTasks | Ranking) -> Figure:
    """Draw a certificate's interval for the expected cost, a finding's for the shift, or a ranking's."""
    if isinstance(subject, Ranking):
        return plot_ranking(subject)
    if isinstance(subject, ComparisonFinding | ComparedTasks):
        return plot_comparison(subject)
    figure, axes = _new(6.4, 1.9, yticks=[], ylim=(-1, 1), xlim=(-0.01, 1.01))
    _bare(axes, "left")
    if isinstance(subject, Certificate):
        axes.set(xlabel="expected cost of an episode")
        _bar(axes, 0, (subject.lower, subject.upper), subject.mean_cost, color=_BLUE)
        if subject.binary:
            _in_percent(axes)
        return _titled(figure, wording.headline(subject))
    axes.set(xlabel="shift of the expected cost", xlim=(-1.02, 1.02))
    _bar(axes, 0, (subject.shift_lower, subject.shift_upper), None, color=_VERDICTS[subject.verdict])
    axes.axvline(0, **_LIMIT)
    if subject.binary:
        axes.set(xlabel="change of the failure rate, in points")
        axes.set_xticks(*_POINTS)
    return _titled(figure, wording.headline(subject), wording.shift(subject))


def plot_comparison(compared: ComparisonFinding | ComparedTasks, names: Names | None = None) -> Figure:
    """Draw two policies, overall and on each task: their success rates or mean costs, and the difference."""
    overall, rows, several = compared.overall, compared.rows, len(compared.rows) > 1
    names = names or overall.names
    figure = new_figure(7.2, 1.9 + 0.42 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    styles = list(zip(names, (_BLUE, _RED), ("o", "D"), (-0.15, 0.15), strict=True))
    for i, each in enumerate(rows.values()):
        for (mean, ends), (name, color, marker, up) in zip(each.outcomes, styles, strict=True):
            _bar(left, i + up, ends, mean, marker, color=color, label=None if i else wording.shortened(name))
        limits, more = each.gain
        _bar(right, i, limits, more, "s", color=_INK)
        if several:
            _beside(right, i, each.call.name, _CALLS.get(each.call.name, _VERDICTS[Verdict.WITHIN]))
    a, b = (wording.shortened(name, 18) for name in names)
    own = f"{100 * (1 - 2 * overall.alpha):g}\xa0%\xa0intervals"
    own, alone = f"({own})", "" if overall.method == "anytime" else f"\n({own}, each its own)"
    far = max(0.1, *(abs(end) for each in rows.values() for end in each.gain[0])) * 1.05
    left.set(xlabel="mean cost", xlim=(-0.02, 1.02))
    right.set(xlabel=fill(f"{b} minus {a} {own}", 28), xlim=(-far, far))
    if overall.binary:
        left.set(xlabel=f"success rate in %{alone}")
        left.set_xticks(*_PERCENT)
        right.set(xlabel=fill(f"{b} minus {a}, in\xa0points {own}", 28))
        right.xaxis.set_major_formatter(lambda value, _: f"{round(100 * value):+d}".replace("+0", "0"))
    right.axvline(0, color=_GRAY, linewidth=1, linestyle=_DASHES, zorder=1)
    _name_rows(left, rows if several else [""])
    for axes in (left, right) if several else ():
        axes.axhline(0.5, color=_FAINT, linewidth=1, zorder=0)
    _bare(left)
    _bare(right, "left")
    right.tick_params("y", length=0)
    figure.legend(*left.get_legend_handles_labels(), ncols=2, **_BELOW)
    return _titled(figure, comparison_headline(compared, names))


def _bar(
    axes: Axes, row: float, ends: Sequence[float], mean: float | None, marker: str = "D", **style: Any
) -> None:
    """Draw an interval with its mean, where there are, in a row."""
    axes.plot(ends, [row] * len(ends), color=style["color"], linewidth=1.8, marker="|", markersize=9)
    axes.plot([] if mean is None else [mean], [] if mean is None else [row], marker, **style)


def _titled(figure: Figure, *lines: str) -> Figure:
    """Put a title over a figure, each of its lines broken where the figure ends; return the figure."""
    title = figure.suptitle("", **_TITLE)
    for width in range(110, 10, -2):
        title.set_text("\n".join(fill(line, width) for line in lines))
        if title.get_window_extent().width <= 0.96 * figure.bbox.width:
            break
    return figure


def _new(width: float, height: float, **where: Any) -> tuple[Figure, Axes]:
    """Return a figure with one frame, its labels and limits."""
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.set(**where)
    _bare(axes)
    return figure, axes


def _bare(axes: Axes, *sides: str) -> None:
    """Take the lines away on top, on the right, and where else a name says so."""
    axes.spines[["top", "right", *sides]].set_visible(False)


def plot_trials(plan: TrialPlan) -> Figure:
    """Draw the power of one look against the trials at the new site, with the recommended number."""
    lab, sites, power = plan.curve()
    figure, axes = _plot_powers((), sites[-1] * 1.08, "trials at the new site")
    axes.plot(sites, power, color=_BLUE, linewidth=2.4)
    for booking, color in ((plan.recommended, _RED), (plan.asked, _INK)):
        if booking is not None:
            x, y = booking.site, booking.power
            axes.plot([x, x], [0, y], color=color, linewidth=1, linestyle=_DASHES)
            axes.plot([x], [y], "o", color=color, markersize=7)
            said = f"{x:,} trials: {100 * y:.0f} %"
            axes.annotate(said, (x, y), (8, -16), textcoords="offset points", fontsize=10, color=color)
    change = f"failure rate {plan.cost:g} in the lab, {plan.new_cost:g} at the new site"
    title = _QUESTIONS.get(plan.question, f"Showing that it is at most {plan.margin} worse")
    more = f"{change}; wrong answers at most {plan.rate:g}"
    return _titled(figure, f"{title}: {lab:,} trials in the lab", more)


def plot_plan(plan: Plan) -> Figure:
    """Draw the power of the hypothesis test, and of the sequential test, against trials."""
    check, watch = plan.powers
    figure, axes = _plot_powers((0.5, 0.8, 0.9, 0.95), max(check.n[-1], watch.n[-1]), "trials")
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    once: dict[str, Any] = {"color": _GREEN, "linestyle": (0, (1, 1))}
    axes.plot(check.n, check.power, label=f"check: n trials, one look (level {check.level:.3g})", **once)
    said = f"watch: alarm within n trials (level {watch.level:.3g})"
    axes.plot(watch.n, watch.power, color=_BLUE, linewidth=2.6, label=said)
    title = f"If {wording.percent(plan.cost)} of trials fail (exact)"
    if plan.caveat is not None:
        title = f"Expected cost {plan.cost:.3g} instead of the certified one (costs of 0 and 1, exact)"
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return _titled(figure, title)


def plot_comparison_plan(plan: ComparisonPlan) -> Figure:
    """Draw the power of a comparison against the number of pairs."""
    figure, axes = _plot_powers((0.5, 0.8, 0.9), len(plan.power) - 1, "pairs of trials")
    axes.plot(np.arange(len(plan.power)), plan.power, color=_BLUE, linewidth=2.6)
    kind = "matched" if plan.paired else "independent"
    title = f"Failure rates {plan.cost_a:g} and {plan.cost_b:g}, {kind} trials, level {plan.alpha:g} per side"
    return _titled(figure, title)


def _plot_powers(levels: tuple[float, ...], most: float, of: str) -> tuple[Figure, Axes]:
    """Return a figure for powers against numbers, with lines at some levels."""
    figure, axes = _new(7.2, 4.4, xlabel=of, ylabel="power", ylim=(0, 1.02), xlim=(0, most))
    for level in levels:
        axes.axhline(level, color=_FAINT, linewidth=0.8, zorder=0)
    return figure, axes


def plot_ranking(ranking: Ranking, binary: bool = False) -> Figure:
    """Draw every policy's mean and interval, the best on top, with its groups; binary: as success rates."""
    figure, axes = _new(7.2, 1.6 + 0.42 * len(ranking.policies), xlim=(-0.01, 1.01), xlabel="expected cost")
    for i, policy in enumerate(ranking.policies):
        color, places = _BLUE if policy.name in ranking.best else _INK, (policy.lower, policy.upper)
        mean, *ends = [1 - each if binary else each for each in (policy.mean_cost, *places)]
        _bar(axes, i, ends, mean, color=color)
        _beside(axes, i, policy.letters, color)
    if binary:
        axes.set_xlabel("success rate in %")
        axes.set_xticks(*_PERCENT)
    _name_rows(axes, [policy.name for policy in ranking.policies])
    confidence = f"intervals hold at once with probability {1 - ranking.alpha:g}"
    figure.supxlabel(f"{confidence}; policies with a common letter cannot be told apart", fontsize=9)
    return _titled(figure, ranking_headline(ranking))
