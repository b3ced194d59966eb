"""Episodes: costs with what is known about each of them."""

import dataclasses
import pickle

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.episodes.episodes import Episodes, compatible
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch


def test_they_are_an_array_of_costs():
    episodes = Episodes([0.1, 0.2])
    assert np.asarray(episodes).tolist() == [0.1, 0.2]
    assert (len(episodes), episodes.binary, episodes.keys) == (2, False, {})
    assert bw.Certificate.from_held_out(episodes).measure == Measure("cost")


def test_what_is_known_of_each_episode_is_kept_by_its_role():
    episodes = Episodes([0.1, 0.2], strata=["mug", "can"], clusters=[7, 8], keys={"id": ["x", "y"]})
    assert episodes.keys == {"id": ("x", "y"), "strata": ("mug", "can"), "cluster": ("7", "8")}
    again = dataclasses.replace(episodes, notes=("read",))
    assert (again.keys, again.notes) == (episodes.keys, ("read",))
    assert pickle.loads(pickle.dumps(again)).keys == episodes.keys  # noqa: S301 - our own bytes


@pytest.mark.parametrize(("keys", "name"), [({"strata": ["a"]}, "strata"), ({"site": ["a", "b"]}, "keys")])
def test_keys_go_with_the_episodes(keys, name):
    with pytest.raises(InvalidSetting) as refused:
        Episodes([0.1, 0.2], keys=keys)
    assert refused.value.name == name


def test_parts_keep_what_belongs_to_them():
    whole = Episodes(
        [0.1, 0.2, 0.3],
        strata=["u", "v", "w"],
        keys={"by": ["b", "a", "b"]},
        design=Design(by="robot", strata="task"),
        numbers=[2, 3, 5],
        source="lab.csv",
    )
    parts = whole.split()
    assert list(parts) == ["b", "a"]
    assert parts["b"].costs.tolist() == [0.1, 0.3]
    assert (parts["b"].keys, parts["b"].numbers) == ({"strata": ("u", "w")}, [2, 5])
    assert (parts["a"].design, parts["a"].source) == (Design(strata="task"), "lab.csv")
    assert Episodes([0.1]).split() == {}


@pytest.mark.parametrize(
    ("costs", "measure", "binary", "noted"),
    [
        ([0, 1, 0], Measure("cost"), True, True),
        ([0, 0], Measure("cost"), False, False),
        ([0, 0.5, 1], Measure("cost"), False, False),
        ([0, 0], Measure("success"), True, False),
    ],
)
def test_costs_of_0_and_1_are_trials_that_failed_or_not(costs, measure, binary, noted):
    episodes = Episodes(costs, measure=measure)
    assert (episodes.binary, bool(episodes.notes)) == (binary, noted)
    assert not Episodes(costs, measure=measure, binary=False).binary


def test_what_is_no_cost_is_refused():
    for costs in ([0.1, 1.4], [], ["a"]):
        with pytest.raises(InvalidCost):
            Episodes(costs)
    with pytest.raises(InvalidCost):
        Episodes([0.5], binary=True)


def test_detectors_take_them_with_warnings():
    costs = [0.11, 0.52, 0.33, 0.24, 0.95]
    lab = bw.Certificate.from_held_out(costs, measure=Measure("cost", "force", (0, 50)))
    assert compatible(costs, lab) is costs
    with pytest.warns(UserWarning, match="measured"):
        assert compatible(Episodes([0.7, 0.6]), lab).tolist() == [0.7, 0.6]
    with pytest.raises(ProvenanceMismatch):
        compatible(Episodes(costs), lab)
