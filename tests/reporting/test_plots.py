"""The cost figure: everything on it is labeled, inside the canvas, and where the numbers say."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra
from boundwatch.reporting import plots, wording
from boundwatch.reporting.report import new_interval

RNG = np.random.default_rng(20240901)
CASES = {
    "adverse": (RNG.beta(3, 2, 50), False),
    "within": (RNG.beta(1, 3, 10), False),
    "benign": (RNG.beta(1, 20, 80), False),
    "adverse, binary": (np.repeat([1.0, 0.0], [16, 4]), True),
    "within, binary": (np.array([1.0]), True),
    "benign, binary": (np.repeat([1.0, 0.0], [1, 4999]), True),
}


def draw(costs, binary, lower=0.2, upper=0.34):
    certificate = bw.Certificate.from_bounds(lower=lower, upper=upper, delta=0.01, binary=binary)
    finding = bw.HypothesisTest(certificate).decide(costs)
    return certificate, finding, plots.plot_check(certificate, finding, costs)


def border_is_blank(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = np.asarray(canvas.buffer_rgba())[..., :3]
    return all((edge == 255).all() for edge in (image[0], image[-1], image[:, 0], image[:, -1]))


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_clipped(case):
    _, finding, figure = draw(*CASES[case])
    assert case.startswith(finding.verdict)
    assert border_is_blank(figure)


def test_clipping_would_be_noticed():
    figure = draw(*CASES["within"])[2]
    figure.text(0.9, 0.5, "a label that is too long for its place")
    assert not border_is_blank(figure)


@pytest.mark.parametrize("case", CASES)
def test_figure_shows_the_numbers(case):
    costs, binary = CASES[case]
    certificate, finding, figure = draw(costs, binary)
    first, second = figure.axes  # binary: the strip, and below it the rates; else costs, and their mean
    (drawn,) = first.collections
    if binary:
        cells = np.ma.getdata(drawn.get_array()).ravel()
        assert cells[~np.isnan(cells)].tolist() == costs.tolist()
    else:
        assert drawn.get_offsets()[:, 1].tolist() == costs.tolist()
    for axes in (second,) if binary else (first, second):
        (band,) = axes.patches
        extents = band.get_extents().transformed(axes.transData.inverted())
        assert (extents.intervalx if axes is second else extents.intervaly) == pytest.approx([0.2, 0.34])
    low, high = new_interval(certificate, finding, costs)
    (segments,) = second.containers[-1][2]
    assert segments.get_segments()[0][:, 0] == pytest.approx([low, high])
    legend = " ".join(text.get_text() for text in figure.legends[0].get_texts())
    for text in (
        ("20 to 34 %", wording.percents(low, high)) if binary else ("0.200", f"{low:.3f} to {high:.3f}")
    ):
        assert text in legend
    title = figure.get_suptitle()
    assert title.startswith(finding.verdict.upper())
    assert not binary or "cost" not in title + first.get_ylabel()


def test_interval_agrees_with_the_verdict():
    for costs, binary in CASES.values():
        certificate, finding, _ = draw(costs, binary)
        low, high = new_interval(certificate, finding, costs)
        assert low <= finding.mean_cost <= high
        verdict = "adverse" if low > certificate.upper else "benign" if high < certificate.lower else "within"
        assert finding.verdict == verdict


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
def test_same_figure_same_bytes(tmp_path, ending):
    for name in ("a", "b"):
        plots.save_figure(draw(*CASES["adverse"])[2], tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize("name", ["figure", "figure.txt", "figure.jpg"])
def test_unknown_format_is_refused(tmp_path, name):
    with pytest.raises(InvalidSetting):
        plots.save_figure(draw(*CASES["within"])[2], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_costs_of_another_kind_are_refused():
    certificate, finding, _ = draw(*CASES["within, binary"])
    with pytest.raises(InvalidCost):
        plots.plot_check(certificate, finding, [0.5])


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"boundwatch\[plot\]"):
        draw(*CASES["within"])


RANKED = {"v1": [0.0] * 20, "v2": [1.0] * 20}
LONG = "pick_up_the_black_bowl_between_the_plate_and_the_ramekin_and_place_it_on_the_plate"
WATCH = bw.SequentialTest(bw.Certificate.from_held_out([0] * 45 + [1] * 5, binary=True))
ELSEWHERE = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
COMPARISON, ONCE = bw.PolicyComparison(binary=True, paired=False), {"act": [0] * 9 + [1], "dp": [0, 1] * 5}
LABELED = {
    "expected cost of an episode": ELSEWHERE.plot,
    "shift of the expected cost": lambda: bw.HypothesisTest(ELSEWHERE).decide([0.5, 0.2]).plot(),
    "B minus A, in\xa0points\n(90\xa0%\xa0intervals)": lambda: COMPARISON.update_many(
        [0, 0, 1], [1] * 3
    ).plot(),
    "dp minus act, in\xa0points\n(90\xa0%\xa0intervals)": lambda: bw.compare_once(ONCE, binary=True).plot(),
    "trials at the new site": lambda: plots.plot_trials(bw.plan_trials(cost=0.1, new_cost=0.6, lab_trials=9)),
    "trials": lambda: plots.plot_plan(bw.plan(ELSEWHERE, cost=0.6)),
    "pairs of trials": lambda: plots.plot_comparison_plan(bw.plan_comparison(cost_a=0.1, cost_b=0.6)),
    "expected cost": lambda: bw.rank(RANKED).plot(),
    "success rate in %": lambda: plots.plot_ranking(bw.rank(RANKED), binary=True),
    "percent of trials that fail\nWITHIN: no evidence of a shift": lambda: drawn_tasks(),
    "trial": lambda: plots.plot_watch({LONG: WATCH}, [(LONG, WATCH.update(1.0)) for _ in range(9)]),
}


@pytest.mark.parametrize("label", LABELED)
def test_every_figure_says_what_it_shows(label):
    figure = LABELED[label]()
    assert figure.axes[-1].get_xlabel() == label
    assert border_is_blank(figure)


def of_tasks(*failures, n=20):
    """Return episodes of tasks with so many failures in each, the first under a long name."""
    costs = np.concatenate([np.repeat([1.0, 0.0], [k, n - k]) for k in failures])
    names = [LONG, *map(str, range(1, len(failures)))]
    return bw.Episodes(costs, strata=[name for name in names for _ in range(n)], binary=True)


def drawn_tasks():
    test = bw.HypothesisTest(bw.Certificate.from_held_out(of_tasks(1, 2)))
    new = {LONG: [1.0] * 12 + [0.0] * 3, "1": [0.0] * 15}
    return plots.plot_tasks(test, test.decide(new), new)


def test_each_task_has_its_row_with_what_it_was_called():
    compared = bw.compare_once({"outputs/train/" + "act_" * 12: of_tasks(1, 9, 3), "dp": of_tasks(12, 2, 3)})
    for figure, names in ((plots.plot_comparison(compared), 4), (drawn_tasks(), 3)):
        assert border_is_blank(figure)
        axes = figure.axes[-1]
        called = [text.get_text() for text in axes.texts]
        assert len(called) == len(figure.axes[0].get_yticklabels()) == names
    calls = [each.call.name for each in (compared.overall, *compared.tasks.values())]
    assert [text.get_text() for text in plots.plot_comparison(compared).axes[-1].texts] == calls
    assert calls[1] == "REGRESSED"
    assert called == ["ADVERSE", "ADVERSE", "WITHIN"]
    left, right = plots.plot_comparison(compared).axes  # in success rates, of A above those of B
    rates = [line.get_xdata()[0] for line in left.lines if line.get_marker() in "oD"]
    assert rates == pytest.approx([1 - 13 / 60, 1 - 17 / 60, 0.95, 0.4, 0.55, 0.9, 0.85, 0.85])
    found = compared.tasks[LONG]
    ends = next(line.get_xdata() for line in right.lines if line.get_ydata()[0] == 1)
    assert list(ends) == pytest.approx([-found.difference_upper, -found.difference_lower])


@pytest.mark.parametrize(
    "figure", [drawn_tasks, lambda: draw(*CASES["adverse, binary"])[2], *LABELED.values()]
)
def test_figures_for_papers_are_vectors_with_their_letters(tmp_path, figure):
    for ending in ("pdf", "svg"):
        plots.save_figure(figure(), tmp_path / f"figure.{ending}", title=False)
    pdf, svg = (tmp_path / "figure.pdf").read_bytes(), (tmp_path / "figure.svg").read_text()
    assert b"/Subtype /Image" not in pdf
    assert b"/FontFile2" in pdf  # a TrueType font, embedded; publishers refuse Type 3
    assert b"/Type3" not in pdf
    assert "<image" not in svg
    assert "<text" not in svg  # letters are outlines, whatever fonts the reader has


def test_without_its_title_a_figure_is_otherwise_whole(tmp_path):
    figure = LABELED["trials at the new site"]()
    assert figure.get_suptitle()
    plots.save_figure(figure, tmp_path / "bare.png", title=False)
    assert not figure.get_suptitle()
    assert border_is_blank(figure)


def test_the_alarm_line_is_where_the_test_alarms():
    test = bw.SequentialTest(bw.Certificate.from_held_out([0] * 45 + [1] * 5, binary=True), sharing=2)
    figure = plots.plot_watch({"": test}, [("", test.update(0.0)) for _ in range(40)])
    drawn = next(each for each in figure.axes[0].lines if each.get_linestyle() == "--")
    line = np.nan_to_num(np.append(np.inf, drawn.get_ydata()), nan=np.inf) * np.arange(41)
    test.reset()
    first = next(n for n in range(1, 40) if line[n] <= n)
    assert 2 <= first <= 6
    assert test.update_many([1.0] * (first - 1)).verdict == "within"
    assert test.update(1.0).first_alarm == first
