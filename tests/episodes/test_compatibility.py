"""What makes a verdict on new costs doubtful: the same for a whole file as cost by cost."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.certificates.record import MOST_POINTS
from boundwatch.episodes.compatibility import (
    Likeness,
    by_chance,
    compared,
    is_time_to_look,
    measured_otherwise,
)
from boundwatch.episodes.design import Design
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidSetting, ProvenanceMismatch

RNG = np.random.default_rng(41)
COST = Measure("cost")
LAB = [0.11, 0.52, 0.33, 0.24, 0.95, 0.46, 0.77]
FAILED = [0.0, 1.0, 0.0, 0.0, 1.0]


def kinds(doubts):
    return [doubt.kind for doubt in doubts]


@pytest.mark.parametrize(("lab", "kind"), [(LAB, "own"), (FAILED, "chance"), ([0.0] * 30, "chance")])
def test_the_certificates_own_costs_are_noticed_at_the_last_of_them(lab, kind):
    certificate = bw.Certificate.from_held_out(lab)
    for extra in (0, 1, 5):
        new = [*lab, *RNG.random(extra)]
        likeness = Likeness(certificate, COST)
        said = [kinds(likeness.take([cost], look=False)) for cost in new]
        assert said == [[]] * (len(lab) - 1) + [[kind]] + [[]] * extra
        whole = [doubt for doubt in Likeness(certificate, COST).take(new) if doubt.kind != "shared"]
        assert [(doubt.kind, doubt.n) for doubt in whole] == [(kind, len(lab))]
    assert Likeness(certificate, COST).take(lab[:-1], look=False) == []
    assert Likeness(certificate, COST).take([*lab[1:], lab[0], 0.5], look=False) == [] or lab[0] == lab[-1]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 30), st.booleans())
def test_a_stream_says_what_its_file_says_wherever_it_is_cut_or_continued(digits, cut, own):
    lab = [0.1, 0.3, 0.5, 0.7, 0.2, 0.9]
    certificate = bw.Certificate.from_held_out(lab)
    new = [*(lab if own else []), *(digit / 10 for digit in digits)]
    first = Likeness(certificate, COST)
    said = first.take(new[:cut], look=False)
    again = Likeness(certificate, COST, json.loads(json.dumps(first.state, allow_nan=False)))
    assert again.state == first.state
    said += again.take(new[cut:], look=False)
    whole = Likeness(certificate, COST).take(new, look=False)
    assert [(doubt.kind, doubt.n) for doubt in said] == [(doubt.kind, doubt.n) for doubt in whole]
    assert ("own" in kinds(said)) == (new[:6] == lab)


def share(certificate, costs):
    """Return the share of costs that were certified, however many there are; 0 where that may be chance."""
    if len(costs) < 5 or len(set(costs)) < 0.9 * len(costs):
        return 0.0
    return len([cost for cost in costs if cost in certificate.record.values]) / len(costs)


@pytest.mark.parametrize("known", [0.2, 0.45, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("again", [0.0, 0.1, 0.3])
def test_most_costs_were_certified_is_said_at_the_first_cost_that_makes_it_true(known, again):
    moments = set()
    for n in (4, 5, 20, 60):
        lab = RNG.random(n).tolist()
        certificate = bw.Certificate.from_held_out(lab)
        for _ in range(5):
            new = []
            for _ in range(4 * n):
                draw, rest = RNG.random(2)
                new.append(new[0] if new and draw < again else RNG.choice(lab) if rest < known else draw)
            expected = [i for i in range(len(new)) if share(certificate, new[: i + 1]) >= 0.5][:1]
            likeness = Likeness(certificate, COST)
            said = [likeness.take([cost]) for cost in new]
            assert [i for i, each in enumerate(said) if each] == expected
            whole = Likeness(certificate, COST).take(np.array(new))
            assert kinds(whole) == ["shared"] * (share(certificate, new) >= 0.5)
            moments.update(expected)
    assert moments or known < 0.5 or again == 0.3


def test_few_costs_are_kept_however_many_come():
    certificate = bw.Certificate.from_held_out(RNG.random(MOST_POINTS))
    likeness, kept = Likeness(certificate, COST), 0
    for cost in RNG.random(1000):
        assert likeness.take([cost]) == []
        kept = max(kept, len(likeness.state["costs"]))
    assert (kept, likeness.is_settled) == (642, True)
    for costs in (RNG.random(MOST_POINTS + 100), np.repeat([0.1, 0.4], 10)):  # on a grid; of two values
        likeness = Likeness(bw.Certificate.from_held_out(costs), COST)
        assert likeness.take(costs[::-1]) == []
        assert likeness.is_settled


def percent(meaning):
    return Measure(meaning, "x", (0, 100))


@pytest.mark.parametrize("meaning", ["cost", "reward"])
def test_another_unit_is_said_at_the_first_value_that_shows_it(meaning):
    lab, new = np.array([20, 35, 0, 50, 80]), [0.0, 0.0, 0.4, 0.7, 0.0, 30.0]
    certificate = bw.Certificate.from_held_out(percent(meaning).costs(lab), measure=percent(meaning))
    likeness = Likeness(certificate, percent(meaning))
    said = [likeness.take([cost]) for cost in percent(meaning).costs(new)]
    assert [i for i, each in enumerate(said) if each] == [2]
    for place in range(1, len(new) + 1):
        whole = Likeness(certificate, percent(meaning)).take(percent(meaning).costs(new[:place]))
        assert kinds(whole) == ["unit"] * (3 <= place <= 5)
    # One value that is too high for fractions settles it; so does another range.
    for first, measure in ((30.0, percent(meaning)), (0.4, Measure(meaning, "x", (0, 200)))):
        likeness = Likeness(certificate, measure)
        assert likeness.take(percent(meaning).costs([first])) == []
        assert likeness.take(percent(meaning).costs([0.4])) == []


@pytest.mark.parametrize(("mean", "doubtful"), [(0.0, True), (0.5, True), (0.995, False)])
def test_the_unit_of_rewards_is_compared_with_the_certified_reward(mean, doubtful):
    certificate = bw.Certificate.from_held_out(np.full(20, mean), measure=percent("reward"))
    said = Likeness(certificate, percent("reward")).take(1 - np.array([0.5, 0.7]) / 100)
    assert kinds(said) == ["unit"] * doubtful


def test_honest_streams_seldom_look_doubtful():
    """The control, a look after every cost, takes many of them for certified costs or another unit."""
    rng = np.random.default_rng(0)

    def doubted(certificate, costs, is_looked_at):
        likeness = Likeness(certificate, certificate.measure)
        return any(
            likeness.take([cost], look=is_looked_at(n, certificate.n))
            for n, cost in enumerate(costs, start=1)
        )

    found = {"seldom": np.zeros(2), "always": np.zeros(2)}
    for _ in range(200):
        digits = rng.integers(0, 100, 30) / 100, rng.integers(0, 100, 60) / 100
        low = np.minimum(rng.exponential(0.06, 80), 1)
        lab = bw.Certificate.from_held_out(digits[0], measure=COST)
        unit = bw.Certificate.from_held_out(low[:60], measure=percent("cost"))
        for name, rule in (("seldom", is_time_to_look), ("always", lambda *_: True)):
            found[name] += doubted(lab, digits[1], rule), doubted(unit, low[60:], rule)
    assert (found["seldom"] <= 4).all()
    assert (found["always"] >= 10).all()


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
