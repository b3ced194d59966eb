"""Certificates and findings in notebooks: a table, a figure, a data frame."""

from __future__ import annotations

import sys
import types

import pandas
import pytest

import boundwatch as bw
from boundwatch._support.describing import one_line
from boundwatch.errors import MissingExtra
from pages import Page

CERTIFICATE = bw.Certificate.from_held_out([0, 0, 1, 0] * 50, binary=True, seed=7)
TAKEN_OVER = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
FAMILY = bw.CertificateFamily.shared(CERTIFICATE, ["<arm>-1", "arm-2"])
FAMILY_FINDING = bw.FamilyTest(FAMILY).decide({"<arm>-1": [1] * 10, "arm-2": [0, 1]})
SUBJECTS = {
    "certificate": CERTIFICATE,
    "certificate from elsewhere": TAKEN_OVER,
    "finding": bw.HypothesisTest(CERTIFICATE).decide([1] * 10),
    "sequential finding": bw.SequentialTest(TAKEN_OVER).update_many([0.4, 0.9]),
    "finding on a task": next(iter(FAMILY_FINDING.tasks.values())),
}


@pytest.fixture(params=SUBJECTS)
def subject(request):
    return SUBJECTS[request.param]


def test_html_has_every_value(subject):
    headline, *cells = Page(subject._repr_html_()).texts
    assert headline.startswith(("The expected cost", "It fails in", "ADVERSE", "WITHIN"))
    table = dict(zip(cells[::2], cells[1::2], strict=True))
    content = subject.to_dict()
    for name, value in content.items():
        if isinstance(value, float):
            assert float(table[name]) == pytest.approx(value, rel=1e-5)
        elif not isinstance(value, dict):
            assert table.get(name) == (None if value is None else str(value))


def test_a_line_has_six_digits_and_nothing_that_is_none():
    line = one_line("", {"n": 3, "mean_cost": 1 / 3, "first_alarm": None, "tail": "kl"})
    assert line == "str(n=3, mean_cost=0.333333, tail='kl')"


def test_html_is_escaped():
    hostile = "<script>alert(1)</script>"
    provenance = bw.Provenance(created=hostile, versions={hostile: hostile})
    fields = {name: getattr(TAKEN_OVER, name) for name in TAKEN_OVER.__dataclass_fields__}
    html = bw.Certificate(**fields | {"provenance": provenance})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_figure_has_the_interval_and_can_be_shown(subject):
    figure = subject.plot()
    names = ("lower", "upper") if isinstance(subject, bw.Certificate) else ("shift_lower", "shift_upper")
    ends = tuple(getattr(subject, name) for name in names)
    assert any(tuple(line.get_xdata()) == ends for line in figure.axes[0].lines)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_frame_of_pandas(subject):
    frame = subject.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 1
    for name, value in subject.to_dict().items():
        if not isinstance(value, dict) and value is not None:
            assert frame[name].item() == value
    if isinstance(subject, bw.Certificate):
        assert frame["provenance.created"].item() == subject.provenance.created


def test_certificates_of_several_tasks_are_a_table():
    html = FAMILY._repr_html_()
    headline, *cells = Page(html).texts
    assert headline == str(FAMILY)
    assert "<arm>" not in html
    limits = [f"{limit:.6g}" for limit in (CERTIFICATE.lower, CERTIFICATE.upper)]
    assert cells == ["task", "lower", "upper", "n", "mean_cost"] + [
        cell for task in ("<arm>-1", "arm-2") for cell in (task, *limits, "200", "0.25")
    ]


def test_several_tasks_are_a_table_and_a_frame_of_one_row_each():
    html = FAMILY_FINDING._repr_html_()
    headline, *cells = Page(html).texts
    assert headline == str(FAMILY_FINDING)
    assert "1 of 2 tasks" in headline
    assert "<arm>" not in html
    assert cells[cells.index("arm-2") + 1] == "within"
    assert cells[cells.index("false_positive_rate") + 1] == "0.055"
    table = FAMILY_FINDING.to_frame()
    assert table["task"].tolist() == ["<arm>-1", "arm-2"]
    assert table["p_adverse"].tolist() == [finding.p_adverse for finding in FAMILY_FINDING.tasks.values()]


def test_frame_of_polars_without_pandas(monkeypatch):
    polars = types.ModuleType("polars")
    polars.DataFrame = lambda rows: ("polars", rows)  # it takes a list of dictionaries, as pandas does
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", polars)
    name, (row,) = SUBJECTS["finding"].to_frame()
    assert name == "polars"
    assert row == SUBJECTS["finding"].to_dict()


def test_without_either_the_extra_is_named(monkeypatch):
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=r"boundwatch\[frame\]"):
        CERTIFICATE.to_frame()
