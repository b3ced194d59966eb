"""What makes a verdict on new costs doubtful."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.episodes.compatibility import by_chance, compared, measured_otherwise, own_costs
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import InvalidSetting, ProvenanceMismatch

RNG = np.random.default_rng(41)
COST = Measure("cost")
LAB = [0.11, 0.52, 0.33, 0.24, 0.95, 0.46, 0.77]
FAILED = [0.0, 1.0, 0.0, 0.0, 1.0]


def kinds(doubts):
    return [doubt.kind for doubt in doubts]


@pytest.mark.parametrize(("lab", "kind"), [(LAB, "own"), (FAILED, "chance"), ([0.0] * 30, "chance")])
def test_the_certificates_own_costs_are_noticed_wherever_others_follow(lab, kind):
    certificate = bw.Certificate.from_held_out(lab)
    for extra in (0, 1, 5):
        found = own_costs(certificate, COST, np.array([*lab, *RNG.random(extra)]))
        assert (found.kind, found.n) == (kind, len(lab))
    assert own_costs(certificate, COST, np.array(lab[:-1])) is None
    assert own_costs(certificate, COST, np.array([0.5, *lab])) is None


@pytest.mark.parametrize(
    ("certified", "new", "alike"),
    [
        (Measure("success", "grasped"), Measure("success", " Grasped "), True),
        (Measure("success", "success"), Measure("success", "next.success"), True),
        (Measure("success"), Measure("success", "1"), True),
        (COST, Measure("cost", "cost", (0, 1)), True),
        (Measure("success", "grasped"), Measure("success", "lifted"), False),
        (Measure("success", "grasped"), Measure("success", "success"), False),
        (Measure("success", "cost"), Measure("cost", "cost"), False),
        (Measure("cost", "t", (0, 60)), Measure("cost", "t", (0, 30)), False),
        (Measure("reward", "r", (0, 1)), Measure("cost", "r", (0, 1)), False),
        (Measure("success", "x", None, ("A",)), Measure("success", "x", None, ("a",)), True),
        (Measure("success", "x", None, ("a",)), Measure("success", "x", None, ("b",)), False),
    ],
)
def test_what_is_measured_otherwise(certified, new, alike):
    certificate = bw.Certificate.from_held_out([0, 1], binary=True, measure=certified)
    assert kinds(measured_otherwise(certificate, new)) == ([] if alike else ["measure"])
    assert measured_otherwise(bw.Certificate.from_held_out([0.1]), new) == []


def test_how_steps_became_one_value_is_part_of_the_measure():
    lab = bw.Certificate.from_held_out(Episodes([0, 1], design=Design(episode="e", reduce="mean")))
    assert kinds(measured_otherwise(lab, COST)) == ["measure"]
    assert measured_otherwise(lab, COST, Design(episode="e", reduce="mean")) == []
    for measure, usual in ((Measure("success"), "any"), (Measure("reward", "r", (0, 5)), "sum")):
        lab = bw.Certificate.from_held_out([0, 1], measure=measure)
        assert measured_otherwise(lab, measure, Design(episode="e", reduce=usual)) == []


def test_own_episodes_are_refused_unless_allowed():
    certificate = bw.Certificate.from_held_out(LAB, measure=COST)
    for new in (LAB, [*LAB, 0.4]):
        with pytest.raises(ProvenanceMismatch) as refused:
            Episodes(new, source="new.csv").against(certificate)
        assert refused.value.where.source == "new.csv"
        assert len(Episodes(new).against(certificate, allow_own=True).warnings) == 1
    assert Episodes([0.4, 0.6]).against(certificate).warnings == ()


def test_what_may_be_chance_is_a_warning_and_what_always_happens_a_note():
    failed = bw.Certificate.from_held_out(FAILED, binary=True, measure=COST)
    assert len(Episodes(FAILED).against(failed).warnings) == 1
    assert len(Episodes([*FAILED, 0]).against(failed).warnings) == 1
    good = bw.Certificate.from_held_out([0] * 30, binary=True, measure=COST)
    found = Episodes([0] * 40, binary=True).against(good)
    assert (found.warnings, len(found.notes)) == ((), 1)
    assert len(Episodes([0] * 30, binary=True).against(good).warnings) == 1


def test_every_task_is_compared_with_its_certificate():
    family = bw.CertificateFamily.from_held_out({"pick": LAB, "place": [0.2, 0.4]}, measure=COST)
    tasks = ["place"] * 2 + ["pick"] * len(LAB)
    new = Episodes([0.6, 0.7, *LAB], keys={"by": tasks}, source="new.csv")
    with pytest.raises(ProvenanceMismatch) as refused:
        new.against(family)
    assert refused.value.where.source == "new.csv: pick"
    unknown = Episodes([0.1, 0.2], keys={"by": ["pick", "pour"]}, design=Design(by="task"), numbers=[2, 3])
    with pytest.raises(InvalidSetting) as refused:
        unknown.against(family)
    where = refused.value.where
    assert (refused.value.value, where.number, where.column) == ("pour", 3, "task")


def test_what_is_true_of_all_robots_is_said_once():
    certificate = bw.Certificate.from_held_out([0] * 20, binary=True, measure=Measure("success", "grasped"))
    new = Episodes([0] * 60, binary=True, keys={"by": ["a", "b", "c"] * 20})
    found = new.against(certificate)
    assert len(found.warnings) == 1  # measured otherwise
    assert len(found.notes) == 1  # begins like the certificate's


def test_of_many_honest_robots_hardly_a_file_is_refused():
    """Five of ten failed: another robot repeats that order in 1 of 1,024 files, one of 1,000 robots often."""
    own = np.repeat([0.0, 1.0], 5)
    assert not by_chance(own)
    assert by_chance(own, among=2)
    certificate = bw.Certificate.from_held_out(own, binary=True)
    for robots, refused in ((1, True), (1000, False)):
        costs = np.tile(own, robots)
        names = [f"robot {number}" for number in range(robots) for _ in own]
        episodes = Episodes(costs, binary=True, keys={"by": names}, design=Design(by="robot"))
        if refused:
            with pytest.raises(ProvenanceMismatch, match="made from"):
                compared(episodes, certificate)
        else:
            assert "possibly by chance" in " ".join(compared(episodes, certificate).warnings)
