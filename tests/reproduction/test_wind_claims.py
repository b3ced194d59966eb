"""What is said of wind must follow from the numbers: each rule can say yes, and no."""

from __future__ import annotations

import dataclasses

import pytest
from reproduction.baselines import OURS, THEIRS
from reproduction.certification import Limits
from reproduction.judging import Tally

from boundwatch import Certificate
from boundwatch.errors import InvalidSetting
from doctored.made_up import change, filled, indicated, tallied
from reproduction import wind

SETTINGS = ("windy:0", "windy:2.5", "windy:5", "easier", "harder")
NAMES = ("rises", "full wind", "quiet", "harder")


def doctored() -> wind.Results:
    """Return results in which everything is as in the paper."""
    alarms = dict(zip(SETTINGS, (0, 20, 90, 0, 10), strict=True))
    means = ((0.1, -0.4), (0.5, -0.2), (0.99, 0.1), (0.0, -0.5), (0.85, -0.1))

    def tallies(names: tuple[str, ...], counts: dict[str, int]) -> list[Tally]:
        rows = [(setting, name) for setting in SETTINGS for name in names]
        return [
            tallied(setting=s, detector=name, datasets=100, adverse=counts.get(s, 10)) for s, name in rows
        ]

    return filled(
        wind.Results,
        tallies=tallies(OURS, alarms),
        alpha=0.05,
        certificate=Limits("pointwise", 0.2, 0.3, 0.01, theorem_1=0.33, pointwise=0.3),
        baselines=tallies(THEIRS, {}),
        indicators=[indicated(s, b + 0.4, a, b, 0.1) for s, (a, b) in zip(SETTINGS, means, strict=True)],
    )


def alarm(results: wind.Results, setting: str, detector: str, alarms: int) -> wind.Results:
    change(results.tallies, to={"adverse": alarms}, setting=setting, detector=detector)
    return results


def indicate(results: wind.Results, setting: str, **means: float) -> wind.Results:
    for row in results.indicators:
        if row.setting == setting:
            for name, mean in means.items():
                row.mean[name.replace("_", "-")] = mean
    return results


def test_everything_holds_where_it_should():
    claims = wind.claims(doctored())
    assert [claim.holds for claim in claims] == ["yes"] * 4 + ["not checkable here"]
    assert claims[4].why.startswith("True by construction")
    assert not any(claim.beyond for claim in claims)


def test_benign_is_called_impossible_where_it_is():
    results = doctored()
    assert "BENIGN is impossible" in wind.caption(results).numbers
    sure = dataclasses.replace(results, certificate=dataclasses.replace(results.certificate, lower=0.9))
    assert "BENIGN" not in wind.caption(sure).numbers


@pytest.mark.parametrize(
    ("change", "claim", "holds"),
    [
        (lambda r: indicate(r, "windy:2.5", hypothesis_test=0.05), "rises", "no"),
        (lambda r: indicate(r, "windy:2.5", confidence_interval=0.2), "rises", "no"),
        (lambda r: alarm(r, "windy:5", OURS[0], 50), "full wind", "partly"),
        (lambda r: alarm(alarm(r, "windy:5", OURS[0], 50), "windy:5", OURS[1], 50), "full wind", "no"),
        (lambda r: alarm(r, "easier", OURS[1], 6), "quiet", "no"),
        (
            lambda r: indicate(r, "windy:2.5", hypothesis_test=0.98, confidence_interval=0.11),
            "rises",
            "partly",
        ),
        (lambda r: indicate(r, "harder", hypothesis_test=0.6), "harder", "partly"),
        (lambda r: indicate(r, "harder", confidence_interval=0.1), "harder", "partly"),
        (lambda r: alarm(r, "harder", OURS[0], 11), "harder", "partly"),
        (lambda r: alarm(r, "harder", OURS[0], 51), "harder", "no"),
        (lambda r: indicate(r, "harder", hypothesis_test=0.1, confidence_interval=-0.6), "harder", "no"),
    ],
)
def test_each_rule_can_fail_and_says_why(change, claim, holds):
    found = wind.claims(change(doctored()))[NAMES.index(claim)]
    assert found.holds == holds
    assert "Not so" in found.why or found.why != wind.claims(doctored())[NAMES.index(claim)].why


def test_indicators_that_never_move_do_not_rise():
    results = doctored()
    for setting in ("windy:0", "windy:2.5", "windy:5"):
        indicate(results, setting, hypothesis_test=0.5)
    assert wind.claims(results)[0].holds == "no"


def test_detectors_that_never_alarm_are_not_called_quiet():
    results = doctored()
    change(results.tallies, to={"adverse": 0})
    assert wind.claims(results)[2].holds == "not checkable here"


def test_recorded_costs_are_read_and_judged(tmp_path):
    file = tmp_path / "flights.csv"
    file.write_text("cost\n" + "0.9\n" * 10)
    settings = wind.with_recorded(wind.FULL, [f"windy:5={file}"])
    assert settings.recorded == (wind.Recorded("windy:5", (0.9,) * 10),)
    certificate = Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01, binary=True)
    (failed,) = (dataclasses.replace(each, costs=(1.0,) * 10) for each in settings.recorded)
    assert wind._judge_recorded(certificate, 0.05, failed)["verdict"] == "adverse"
    for wrong in ("storm=x.csv", "windy:5"):
        with pytest.raises(InvalidSetting, match="write SETTING=FILE with one of windy:0"):
            wind.with_recorded(wind.FULL, [wrong])


def test_where_the_fan_stands_is_in_a_table_and_not_in_the_figure():
    results = doctored()
    assert [table.title for table in wind.tables(results)] == ["Evidence, and shares of alarms"]
    results.indicators.append(indicated("windy:5@5.5", 0.1, 0.3, -0.3, 0.1))
    for rows, names in ((results.tallies, OURS), (results.baselines, THEIRS)):
        rows += [tallied(setting="windy:5@5.5", detector=name, datasets=100, adverse=7) for name in names]
    table = wind.tables(results)[1]
    assert [row[0] for row in table.rows] == ["3 m (the figure's)", "5.5 m"]
    assert table.rows[1][4] == "7 %"
    assert wind.claims(results) == wind.claims(doctored())
