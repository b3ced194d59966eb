"""One parallel map: the same results, in order, whatever the workers; a bar for whoever watches."""

import os
import subprocess
import sys

import pytest

from boundwatch._support import parallel
from boundwatch._support.parallel import in_parallel
from boundwatch.errors import InvalidSetting, MissingExtra


def product(x, y):
    return x * y, os.getpid()


CALLS = [(x, 3) for x in range(41)]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("terminal", "label"), [(False, "products"), (True, "products"), (True, None)])
def test_results_are_in_order_and_a_terminal_has_a_bar(jobs, terminal, label, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")  # the first makes it a terminal
    results = in_parallel(product, CALLS, jobs=jobs, label=label)
    assert [value for value, _ in results] == [x * y for x, y in CALLS]
    assert all((process == os.getpid()) == (jobs == 1) for _, process in results)
    shown = capsys.readouterr()
    assert shown.out == ""
    bar = "products" in shown.err and "41/41" in shown.err
    assert bar if terminal and label else shown.err == ""


@pytest.mark.parametrize("n", [0, 1, 2, 8, 9, 100])
def test_any_number_of_calls(n):
    assert in_parallel(pow, [(i, 2) for i in range(n)], jobs=2, label="squares") == [i**2 for i in range(n)]


def test_an_error_in_a_worker_is_raised_here():
    with pytest.raises(ZeroDivisionError):
        in_parallel(divmod, [(1, 1), (1, 0)], jobs=2)


def test_bad_settings_are_explained(monkeypatch):
    for settings, name in (({"jobs": 0}, "jobs"), ({"jobs": 1, "backend": "dask"}, "backend")):
        with pytest.raises(InvalidSetting) as refused:
            in_parallel(pow, [], **settings)
        assert (refused.value.name, refused.value.value) == (name, settings[name])
    monkeypatch.setitem(sys.modules, "ray.util.joblib", None)
    with pytest.raises(MissingExtra, match="ray"):
        in_parallel(pow, [], jobs=2, backend="ray")


REPLACED = """
import os
from joblib import Parallel, delayed
from joblib.externals.loky import process_executor
from boundwatch._support.parallel import workers

def grow(number):  # looks to loky like a process that leaks memory, and that it had better replace
    process_executor._USE_PSUTIL = True
    process_executor._MEMORY_LEAK_CHECK_DELAY = -1
    process_executor._get_memory_usage = lambda *_arguments, **_options: number * 10**10
    return number, os.getpid()

with POOL(2) as pool:
    results = pool(delayed(grow)(number) for number in range(7))
print(*[number for number, _ in results], len({process for _, process in results}) > 2)
"""


def test_a_worker_that_is_replaced_does_not_keep_the_others_waiting():
    # In processes that can be stopped: the control, joblib by itself, waits forever.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    strict = [sys.executable, "-W", "error::UserWarning", "-c"]
    ours, control = (
        subprocess.Popen([*strict, REPLACED.replace("POOL", pool)], **pipes)
        for pool in ("workers", "Parallel")
    )
    with ours, control:
        try:
            assert ours.communicate(timeout=120) == ("0 1 2 3 4 5 6 True\n", "")
            assert any("UserWarning: A worker stopped" in line for line in control.stderr)
        finally:
            ours.kill()
            control.kill()


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    with parallel.progress_bar("flying") as progress:
        task = progress.add_task("", total=None, note="a minute each")
        progress.update(task, total=3)  # how much there is to do is said at once
        progress.update(task, advance=1, stage=False)
        progress.update(task, advance=0, note="every drone is there", stage=True)
        monkeypatch.setattr(parallel, "LINE_EVERY", 0.0)
        progress.update(task, advance=1, note="the second drone")
    said = capsys.readouterr().err
    told = ("0 of 3, 0.0 minutes a minute each", "1 of 3, 0.0 minutes every drone is there")
    assert said.splitlines() == [
        f"flying: {line}" for line in (*told, "2 of 3, 0.0 minutes the second drone")
    ]
    with parallel.progress_bar(None) as progress:
        progress.update(progress.add_task("", total=3, note=""), advance=1)
    assert capsys.readouterr().err == ""
