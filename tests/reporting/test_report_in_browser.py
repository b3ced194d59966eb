"""The report as Chromium paints it: run with ``-m browser`` where Debian's ``chromium`` is installed.

What the text alone can tell (structure, escaping, contrast, nothing loaded) is in `test_report`, which
runs everywhere. Here are the colors that arrive on the screen, and that nothing runs off its edges.
"""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from matplotlib import image

import boundwatch as bw
from boundwatch.reporting.report import render_report

pytestmark = pytest.mark.browser

CERTIFICATE = bw.Certificate.from_held_out(1.0 * (np.arange(200) < 16), binary=True, seed=7)
COSTS = {"adverse": [1] * 8 + [0] * 4, "within": [0, 1, 0], "benign": [0] * 150}
PAPER = {"light": (255, 255, 255), "dark": (0x12, 0x16, 0x1C)}
ACCENT = {
    "light": {"adverse": (0xB3, 0x47, 0x00), "within": (0x57, 0x60, 0x6A), "benign": (0x00, 0x69, 0x4F)},
    "dark": {"adverse": (0xFF, 0x9B, 0x57), "within": (0x9A, 0xA4, 0xAF), "benign": (0x3F, 0xC7, 0x9A)},
}


def paint(html, folder, width, scheme="light"):
    """Return the picture of a page, and what Chromium complained about."""
    (folder / "report.html").write_text(html, encoding="utf-8")
    switches = ["headless", "no-sandbox", "disable-gpu", "hide-scrollbars", "enable-logging=stderr"]
    switches += [f"user-data-dir={folder / 'profile'}", f"window-size={width},5000"]
    switches += [f"screenshot={folder / 'report.png'}"]
    if scheme == "dark":
        switches += ["force-dark-mode", "blink-settings=preferredColorScheme=0"]
    command = ["chromium", *(f"--{switch}" for switch in switches), (folder / "report.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    picture = np.round(image.imread(folder / "report.png")[..., :3] * 255).astype(int)
    return picture, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [500, 1280])
@pytest.mark.parametrize("verdict", COSTS)
def test_colors_and_edges(tmp_path, verdict, width, scheme):
    test = bw.HypothesisTest(CERTIFICATE)
    assert test.decide(COSTS[verdict]).verdict == verdict
    html = render_report(test, COSTS[verdict], source="trials/" + "long" * 60 + ".csv")
    picture, complaints = paint(html, tmp_path, width, scheme)
    assert complaints == []
    assert picture.shape[1] == width
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):  # blank: nothing runs off
        assert (edge == PAPER[scheme]).all()
    assert (picture == ACCENT[scheme][verdict]).all(axis=-1).sum() > 500


def test_running_off_the_edge_would_be_noticed(tmp_path):
    html = render_report(bw.HypothesisTest(CERTIFICATE), COSTS["within"])
    wide = html.replace("<main>", '<main><div style="width: 3000px; background: red">.</div>')
    picture, _ = paint(wide, tmp_path, 500)
    assert not (picture[:, -1] == PAPER["light"]).all()


def test_complaints_would_be_noticed(tmp_path):
    html = render_report(bw.HypothesisTest(CERTIFICATE), COSTS["within"])
    _, complaints = paint(html.replace("<main>", "<main><script>1</script>"), tmp_path, 500)
    assert any("Content Security Policy" in line for line in complaints)
