"""One parallel map: the same results, in order, whatever the workers; a bar for whoever watches."""

import os
import sys

import pytest

from boundwatch._support.parallel import in_parallel
from boundwatch.errors import InvalidSetting, MissingExtra


def product(x, y):
    return x * y, os.getpid()


CALLS = [(x, 3) for x in range(41)]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("watched", [False, True])
def test_results_are_in_order_and_a_terminal_has_a_bar(jobs, watched, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR" if watched else "NO_COLOR", "1")  # the first makes it a terminal
    results = in_parallel(product, CALLS, jobs=jobs, label="products")
    assert [value for value, _ in results] == [x * y for x, y in CALLS]
    assert all((process == os.getpid()) == (jobs == 1) for _, process in results)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("products" in shown.err and "41/41" in shown.err) if watched else shown.err == ""


def test_no_label_no_bar(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    in_parallel(product, CALLS, jobs=1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 100])
def test_any_number_of_calls(n):
    assert in_parallel(pow, [(i, 2) for i in range(n)], jobs=2, label="squares") == [i**2 for i in range(n)]


def test_an_error_in_a_worker_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        in_parallel(divmod, [(1, 1), (1, 0)], jobs=2)


def test_bad_settings_are_explained(monkeypatch):
    with pytest.raises(InvalidSetting, match="jobs = 0 is below 1"):
        in_parallel(pow, [], jobs=0)
    with pytest.raises(InvalidSetting, match="choose loky or ray"):
        in_parallel(pow, [], jobs=1, backend="dask")
    monkeypatch.setitem(sys.modules, "ray.util.joblib", None)
    with pytest.raises(MissingExtra, match=r"boundwatch\[ray\]"):
        in_parallel(pow, [], jobs=2, backend="ray")
