"""python -m reproduction, as somebody types it."""

from __future__ import annotations

import re
import shutil
import sys

import pytest
from reproduction.__main__ import NAME, app
from typer.testing import CliRunner

from boundwatch.cli import main
from doctored.tiny import tiny_settings
from reproduction import runner


def test_help_names_every_figure():
    text = "".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    assert f"Figures:{','.join(runner.EXPERIMENTS)}." in text


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
    result = CliRunner().invoke(app, [*arguments, "--costs", f"windy:5={tmp_path / 'fan.csv'}"])
    assert result.exit_code == 0, result.output
    assert re.fullmatch(
        rf"Wrote {re.escape(str(tmp_path / 'out' / 'index.html'))} after \d+\.\d minutes\n", result.stdout
    )
    assert "Recorded costs" in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "policies"), [([], 5), (["--quick"], 2), (["--quick", "--policies", "3"], 3)]
)
def test_claims_are_judged_over_several_policies(tmp_path, monkeypatch, arguments, policies):
    asked: list[int] = []
    monkeypatch.setattr(
        runner, "reproduce", lambda _, output, *__, policies, **___: asked.append(policies) or output
    )
    result = CliRunner().invoke(app, ["wind", "-o", str(tmp_path), *arguments])
    assert result.exit_code == 0, result.output
    assert asked == [policies]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [([], []), (["all"], runner.EXPERIMENTS), (["wind", "all"], runner.EXPERIMENTS), (["wind"], ["wind"])],
)
def test_all_is_understood_wherever_it_stands(tmp_path, monkeypatch, arguments, expected):
    asked: list[str] = []
    monkeypatch.setattr(runner, "reproduce", lambda names, output, *_, **__: asked.extend(names) or output)
    result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert set(asked) == set(expected)  # none named means all, too


@pytest.mark.slow
def test_quick_reproduces_everything(tmp_path):
    result = CliRunner().invoke(app, ["all", "-o", str(tmp_path / "out"), "--quick"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "index.html").read_text().count("<img") == len(runner.EXPERIMENTS)
