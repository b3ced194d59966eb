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
        assert (extents.intervalx if binary else extents.intervaly) == pytest.approx([0.2, 0.34])
    low, high = new_interval(certificate, finding, costs)
    (segments,) = second.containers[0][2]
    assert segments.get_segments()[0][:, 0 if binary else 1] == pytest.approx([low, high])
    legend = " ".join(text.get_text() for text in figure.legends[0].get_texts())
    for text in (
        ("20 to 34 %", wording.percents(low, high)) if binary else ("0.200", f"{low:.3f} to {high:.3f}")
    ):
        assert text in legend
    title = first.get_title(loc="left")
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


ELSEWHERE = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
COMPARISON, ONCE = bw.PolicyComparison(binary=True, paired=False), {"act": [0] * 9 + [1], "dp": [0, 1] * 5}
LABELED = {
    "expected cost of an episode": ELSEWHERE.plot,
    "shift of the expected cost": lambda: bw.HypothesisTest(ELSEWHERE).decide([0.5, 0.2]).plot(),
    "expected cost of B minus that of A": lambda: COMPARISON.update_many([0, 0, 1], [1, 1, 1]).plot(),
    "success rate in %, each with a 90 % interval of its own": lambda: bw.compare_once(ONCE).plot(),
    "trials at the new site": lambda: plots.plot_trials(bw.plan_trials(cost=0.1, new_cost=0.6, lab_trials=9)),
    "trials": lambda: plots.plot_plan(bw.plan(ELSEWHERE, cost=0.6)),
    "pairs of trials": lambda: plots.plot_comparison_plan(bw.plan_comparison(cost_a=0.1, cost_b=0.6)),
    "expected cost": lambda: bw.rank({"v1": [0.0] * 20, "v2": [1.0] * 20}).plot(),
    "trials of each policy": lambda: plots.plot_comparison(COMPARISON, [0, 0, 0, 0, 0, 1], [1] * 6),
}


@pytest.mark.parametrize("label", LABELED)
def test_every_figure_says_what_it_shows(label):
    figure = LABELED[label]()
    assert figure.axes[-1].get_xlabel() == label
    assert border_is_blank(figure)
