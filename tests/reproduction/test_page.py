"""The page counts the paper's claims, shows ours apart, and says which sizes are not the full ones."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.certification import RECORDED
from reproduction.figure import Caption, Claim, Judged
from reproduction.judging import Shift, Tallied, Tally, counted

from reproduction import index, runner, wind


@dataclass(frozen=True)
class Settings:
    seed: int = 3
    datasets: int = 10
    recorded: tuple[float, ...] = ()


def render(tmp_path, settings: Settings, claims: list[Claim], tallies: list[Tally]) -> str:
    (tmp_path / "toy").mkdir(exist_ok=True)
    (tmp_path / "toy" / "figure.svg").write_text("<svg/>")
    toy = SimpleNamespace(
        NAME="toy",
        TITLE="Toy",
        FULL=Settings(),
        claims=lambda _: claims,
        caption=lambda _: Caption("see", "numbers", "paper", "differs"),
        tables=lambda _: [],
    )
    judged = runner.judge(toy, {"": [{}]})
    return index.render([index.Shown(toy, settings, Tallied(tallies), judged)], tmp_path)


def test_claims_of_ours_are_shown_apart_and_not_counted(tmp_path):
    claims = [
        Claim("paper one", "1", "yes"),
        Claim("paper two", "2", "no", "because"),
        Claim("ours", "3", "yes", beyond=True),
    ]
    text = render(tmp_path, Settings(), claims, [])
    assert "<td>2</td><td>1</td><td>0</td><td>0</td><td>1</td><td>0</td>" in text  # not the third
    theirs, ours = text.split("Beyond the paper")
    assert "paper one" in theirs
    assert "paper two" in theirs
    assert "<td>ours</td>" in ours
    assert "<td>ours</td>" not in theirs
    assert "Beyond the paper" not in render(tmp_path, Settings(), claims[:2], [])


def test_recorded_costs_do_not_make_a_run_small(tmp_path):
    note = "Not at the sizes of the full reproduction: toy"
    assert note not in render(tmp_path, Settings(recorded=(1.0,)), [], [])
    assert note in render(tmp_path, Settings(datasets=5, recorded=(1.0,)), [], [])
    full = runner.all_settings(quick=False)["wind"]
    recorded = dataclasses.replace(full, recorded=(wind.Recorded("windy:5", (1.0,)),))
    assert index._sizes(recorded) == wind.FULL
    assert index._sizes(dataclasses.replace(full, certificate="theorem-1")) == wind.FULL
    assert index._sizes(runner.all_settings(quick=True)["wind"]) != wind.FULL


@pytest.mark.parametrize(("false", "verdict"), [(5, "No rate is significantly"), (40, "Some rate is sig")])
def test_exceeded_guarantees_are_said_with_their_certificate(tmp_path, false, verdict):
    verdicts = np.array(["adverse"] * false + ["within"] * (100 - false))
    row = counted(
        verdicts,
        setting="calm",
        shift=Shift(-0.1, 0.01),
        detector="interval",
        tail="exact",
        n=10,
        rates=(0.05, 0.05),
    )
    text = render(tmp_path, Settings(), [], [dataclasses.replace(row, certificate="held-out")])
    assert verdict in text
    assert "<td>exact</td><td>held-out</td><td>10</td>" in text


def test_a_claim_is_judged_over_policies_and_certificates():
    claims = {"a": "yes", "b": "no", "c": "partly"}
    toy = SimpleNamespace(claims=lambda results: [Claim("it rains", "1 mm", claims[results["policy"]])])

    def judged(*policies: str, other: str) -> list:
        found = {"pointwise": [{"policy": name} for name in policies], "theorem-1": [{"policy": other}]}
        return runner.judge(toy, found)

    (mixed,) = judged("a", "a", "b", other="c")
    assert mixed.votes == {"pointwise": ["yes", "yes", "no"], "theorem-1": ["partly"]}
    table = index.counts([("toy", mixed)])
    assert table.title == "The paper's claims, judged for up to 3 policies"
    assert table.header == (
        "with",
        "claims",
        "hold",
        "hold for some policies",
        "hold in part",
        "do not hold",
        "not checkable here",
    )
    assert table.rows == (
        ("the pointwise certificate", "1", "0", "1", "0", "0", "0"),
        ("the Theorem 1 certificate", "1", "0", "0", "1", "0", "0"),
    )
    table = index._claims_table("Claim", [("toy", mixed)])
    assert '<td class="partly">2 of 3</td><td class="partly">partly</td>' in table
    (sure,) = judged("a", "a", "a", other="a")
    assert '<td class="yes">yes, 3 of 3</td><td class="yes">yes</td>' in index._claims_table(
        "C", [("toy", sure)]
    )


def test_what_was_not_judged_on_recorded_flights_does_not_count_there():
    claim = Claim("it rains", "1 mm", "yes")
    both = Judged(claim, {"pointwise": ["yes"] * 5, RECORDED: ["no"]})
    claims = [
        ("both", both),
        ("model", Judged(claim, {"pointwise": ["yes"] * 5})),
        ("any", Judged(claim, {"": ["yes"]})),
    ]
    assert [index.votes_of(judged, RECORDED) for _, judged in claims] == [["no"], [], []]
    assert index.counts(claims).rows == (
        ("the pointwise certificate", "3", "3", "0", "0", "0", "0"),
        ("the pointwise certificate, on recorded flights", "1", "0", "0", "0", "1", "0"),
    )
    assert '<td class="yes">yes, 5 of 5</td><td class="not">–</td>' in index._claims_table("C", claims)
