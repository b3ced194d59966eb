"""python -m reproduction, as somebody types it."""

from __future__ import annotations

import shutil
import sys
from unittest.mock import Mock

import pytest
from reproduction.__main__ import NAME, app

from boundwatch.cli import main
from doctored.tiny import tiny_settings
from invoking import invoke
from reproduction import runner


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure-4"], "figure = 'figure-4' is unknown; choose all or difficulty, rates,"),
        (["wind", "--costs", "storm=x.csv"], "'storm' is not a setting of the figure wind"),
        (["wind", "--costs", "easier=no.csv"], "no.csv: no such file"),
        (["all", "figure-4"], "figure = 'figure-4' is unknown"),
        (["rates", "--costs", "windy:5=x.csv"], "--costs windy:5=x.csv: only the figure wind shows recorded"),
        (["wind", "--jobs", "0"], "jobs = 0 is below 1"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["reproduction", *arguments])
    with pytest.raises(SystemExit) as ended:
        main(app, NAME)
    error = capsys.readouterr().err
    assert ended.value.code == 1
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_command_makes_figures_with_recorded_costs(tmp_path, monkeypatch, folder):
    settings = tiny_settings()
    monkeypatch.setattr(runner, "all_settings", lambda **_: settings)
    monkeypatch.setattr(runner, "EXPERIMENTS", {"wind": runner.EXPERIMENTS["wind"]})  # others take long
    (tmp_path / "fan.csv").write_text("cost\n" + "1\n" * 10)
    shutil.copytree(folder / "cache", tmp_path / "out" / "cache")  # with all flights of one policy
    arguments = ["wind", "-o", str(tmp_path / "out"), "--quick", "--jobs", "1", "--policies", "1"]
    result = invoke([*arguments, "--costs", f"windy:5={tmp_path / 'fan.csv'}"], app)
    assert result.exit_code == 0, result.output
    assert "Recorded costs" in (tmp_path / "out" / "index.html").read_text()


ALL = list(runner.EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "figures", "policies"),
    [
        ([], [], 5),  # none named means all, too
        (["all", "--quick"], ALL, 2),
        (["wind", "all", "--quick", "--policies", "3"], ALL, 3),
        (["wind"], ["wind"], 5),
    ],
)
def test_figures_and_policies_that_are_asked_for(tmp_path, monkeypatch, arguments, figures, policies):
    reproduce = Mock(return_value=tmp_path)
    monkeypatch.setattr(runner, "reproduce", reproduce)
    result = invoke([*arguments, "-o", str(tmp_path)], app)
    assert result.exit_code == 0, result.output
    assert set(reproduce.call_args.args[0]) == set(figures)
    assert reproduce.call_args.kwargs["policies"] == policies


@pytest.mark.slow
def test_quick_reproduces_everything(tmp_path):
    result = invoke(["all", "-o", str(tmp_path / "out"), "--quick"], app)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "index.html").read_text().count("<img") == len(runner.EXPERIMENTS)
