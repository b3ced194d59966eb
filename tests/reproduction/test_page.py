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
    claims = [Claim("paper one", "1", "yes"), Claim("paper two", "2", "no", "because")]
    assert "Beyond the paper" not in render(tmp_path, Settings(), claims, [])
    text = render(tmp_path, Settings(), [*claims, Claim("ours", "3", "yes", beyond=True)], [])
    assert "<td>2</td><td>1</td><td>0</td><td>0</td><td>1</td><td>0</td>" in text  # not the third
    theirs, ours = text.split("Beyond the paper")
    assert all(claim.paper in theirs for claim in claims)
    assert ["<td>ours</td>" in part for part in (theirs, ours)] == [False, True]


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
    where = {"setting": "calm", "shift": Shift(-0.1, 0.01), "detector": "interval", "tail": "exact"}
    row = counted(verdicts, n=10, rates=(0.05, 0.05), **where)
    text = render(tmp_path, Settings(), [], [dataclasses.replace(row, certificate="held-out")])
    assert verdict in text
    assert "<td>exact</td><td>held-out</td><td>10</td>" in text


def test_a_claim_is_judged_over_policies_and_certificates():
    claims = {"a": "yes", "b": "no", "c": "partly"}
    toy = SimpleNamespace(claims=lambda results: [Claim("it rains", "1 mm", claims[results["policy"]])])

    def judged(policies: str, other: str) -> Judged:
        found = {"pointwise": [{"policy": name} for name in policies], "theorem-1": [{"policy": other}]}
        return runner.judge(toy, found)[0]

    mixed = judged("aab", "c")
    assert mixed.votes == {"pointwise": ["yes", "yes", "no"], "theorem-1": ["partly"]}
    # Of 1 claim: held, held for some policies, in part, not, not checkable.
    assert [row[1:] for row in index.counts([("toy", mixed)]).rows] == [tuple("101000"), tuple("100100")]
    cells = '<td class="{}">{}</td><td class="{}">{}</td>'
    assert cells.format("partly", "2 of 3", "partly", "partly") in index._claims_table("C", [("toy", mixed)])
    sure = index._claims_table("C", [("toy", judged("aaa", "a"))])
    assert cells.format("yes", "yes, 3 of 3", "yes", "yes") in sure


def test_what_was_not_judged_on_recorded_flights_does_not_count_there():
    votes = ({"pointwise": ["yes"] * 5, RECORDED: ["no"]}, {"pointwise": ["yes"] * 5}, {"": ["yes"]})
    claims = [("toy", Judged(Claim("it rains", "1 mm", "yes"), found)) for found in votes]
    assert [index.votes_of(judged, RECORDED) for _, judged in claims] == [["no"], [], []]
    assert [row[1:] for row in index.counts(claims).rows] == [tuple("330000"), tuple("100010")]
    assert '<td class="yes">yes, 5 of 5</td><td class="not">–</td>' in index._claims_table("C", claims)
