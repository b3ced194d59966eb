"""The report says what the library says, escapes what it is given, and needs nothing from elsewhere."""

from __future__ import annotations

import re
from importlib import resources

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.reporting import wording
from boundwatch.reporting.report import noticed_from, render_report
from pages import Page

RNG = np.random.default_rng(20240901)
BINARY = bw.Certificate.from_held_out(1.0 * (np.arange(200) < 16), binary=True, seed=7)
BOUNDED = bw.Certificate.from_held_out(RNG.beta(2, 6, 200))
STYLE = resources.files("boundwatch.reporting").joinpath("page.css").read_text()
CASES = {
    "adverse, binary": (bw.HypothesisTest(BINARY), np.repeat([1, 0], [8, 4])),
    "within, binary": (bw.HypothesisTest(BINARY), np.array([0])),
    "benign, binary": (bw.HypothesisTest(BINARY), np.zeros(150)),
    "adverse": (bw.ConfidenceInterval(BOUNDED), RNG.beta(6, 3, 30)),
    "within": (bw.ConfidenceInterval(BOUNDED, tail="kl"), RNG.beta(2, 6, 30)),
    "benign": (bw.ConfidenceInterval(BOUNDED), RNG.beta(1, 20, 2500)),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    detector, costs = CASES[request.param]
    finding = detector.decide(costs)
    assert request.param.startswith(finding.verdict)
    return detector, costs, finding, Page(render_report(detector, costs, source="kitchen.csv"))


def test_everything_the_library_says_is_there(case):
    detector, costs, finding, page = case
    certificate = detector.certificate
    for said in (
        wording.answer(finding),
        wording.comparison(certificate, finding),
        *wording.promise(certificate),
        *wording.basis(certificate),
        *(text for _, text in wording.evidence(certificate, finding)),
        *wording.caveats(detector, finding),
        *wording.assumptions(certificate),
        *wording.MISREADINGS,
        certificate.fingerprint,
        certificate.provenance.costs_sha256,
        "kitchen.csv",
        f"boundwatch {bw.__version__}",
    ):
        assert said in page.text
    if certificate.binary:
        assert f"{round(sum(costs))} of {len(costs)} failed" in page.text
        drawn = [value for name, value in page.attributes if name == "d" and "h-" in value]
        assert sum(strip.count("z") for strip in drawn) == len(costs)
    else:
        assert page.tags.count("circle") == min(len(costs), 1000)


def test_page_needs_nothing_from_elsewhere(case):
    *_, page = case
    assert not {"script", "link", "img", "iframe", "object", "a", "base", "form"} & set(page.tags)
    assert not {"src", "href", "style", "action", "data"} & {name for name, _ in page.attributes}
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    assert not any(loads in STYLE for loads in ("url(", "@import", "<"))


def test_drawings_stay_inside_their_frame(case):
    *_, page = case
    assert page.tags.count("svg") >= 1
    for name, value in page.attributes:
        if name in ("cx", "x", "width"):
            assert 0 <= float(value) <= 560, (name, value)
        if name in ("cy", "y", "height"):
            assert 0 <= float(value) <= 270, (name, value)


def test_hostile_names_stay_text():
    hostile = "</dd><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;.csv\""
    detector, costs = CASES["within"]
    page = Page(render_report(detector, costs, source=hostile))
    assert hostile in page.text
    assert not {"script", "img"} & set(page.tags)
    assert "onerror" not in {name for name, _ in page.attributes}


def test_warnings_of_the_reader_are_shown():
    detector, costs = CASES["within"]
    warning = "all episodes share one initial state <0>"
    assert warning in Page(render_report(detector, costs, warnings=[warning])).text


def test_the_parser_would_notice():
    with pytest.raises(AssertionError):
        Page("<p><b>text</p>")
    assert "script" in Page("<p><script></script></p>").tags


@pytest.mark.parametrize("tail", ["exact", "kl", "hoeffding", "betting", "joint"])
@pytest.mark.parametrize("n", [3, 12, 85])
def test_power_is_that_of_the_detector(tail, n):
    """Enumerate every number of failures: the power at the cost that is named is 90 %."""
    detector = bw.HypothesisTest(BINARY, tail=tail)
    counts = np.arange(n + 1)
    adverse = detector.decide_many(1.0 * (np.arange(n) < counts[:, None])).verdict == "adverse"
    assert adverse.any()
    rate = noticed_from(detector, n)
    certified, since = (BINARY.mean_cost, "above") if tail == "joint" else (BINARY.upper, "beyond")
    assert binom.pmf(counts, n, rate)[adverse].sum() == pytest.approx(0.9)
    text = Page(render_report(detector, np.zeros(n))).text
    assert f"a rise of failures to {wording.percent(rate, 'up')}" in text
    assert f"a shift of {wording.points(rate - certified, 'up')} {since}" in text


def test_power_is_not_claimed_where_there_is_none():
    detector = bw.HypothesisTest(BINARY, tail="hoeffding")
    assert noticed_from(detector, 1) is None
    text = Page(render_report(detector, [1])).text
    assert "could not have been ADVERSE" in text
    assert "a rise of failures" not in text


def luminance(color):
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_can_be_read_in_light_and_dark():
    """The Web Content Accessibility Guidelines ask for 4.5 to 1 for text and 3 to 1 for drawings."""
    schemes = re.findall(r":root \{[^}]*\}", STYLE)
    assert len(schemes) == 3
    for scheme in schemes:
        colors = dict(
            re.findall(r"--(\w+): (#[0-9a-f]{6});", re.sub(r"#(\w)(\w)(\w);", r"#\1\1\2\2\3\3;", scheme))
        )
        for ground in ("paper", "panel"):
            for text in ("ink", "muted"):
                assert contrast(colors[text], colors[ground]) >= 4.5
            for line in ("new", "certified", "adverse", "benign", "within"):
                assert contrast(colors[line], colors[ground]) >= 3
    assert contrast("#777777", "#888888") < 3
