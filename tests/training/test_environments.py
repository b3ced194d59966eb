"""Fingerprints of environments, and priors that have not seen the training environments."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from boundwatch.errors import InvalidSetting
from boundwatch.training import check_disjoint, environment_hash, train_prior


@dataclass
class Mug:
    radius: float
    points: np.ndarray


class Scene:
    def __init__(self, seed):
        self.seed = seed


DIFFERENT = [
    0, 1, 1.0, True, None, "1", b"1", [1], [1, 2], [[1], 2], (1, [2]), {"a": 1}, {"a": 2}, {"b": 1}, {},
    np.arange(3), np.arange(3.0), np.arange(4), np.arange(4).reshape(2, 2), np.float64(1), torch.zeros(2),
    Mug(0.1, np.zeros(2)), Mug(0.2, np.zeros(2)), Mug(0.1, np.ones(2)), Scene(1), Scene(2),
]  # fmt: skip


def test_different_environments_have_different_hashes():
    assert len({environment_hash(e) for e in DIFFERENT}) == len(DIFFERENT)


def test_equal_environments_have_equal_hashes():
    assert environment_hash({"a": 1, "b": [2]}) == environment_hash({"b": [2], "a": 1})
    assert environment_hash(Mug(0.1, np.zeros(2))) == environment_hash(Mug(0.1, np.zeros(2)))
    assert environment_hash(torch.arange(3)) == environment_hash(np.arange(3))
    assert environment_hash(np.arange(6)[::2]) == environment_hash(np.array([0, 2, 4]))
    assert environment_hash(Scene(1)) == environment_hash(Scene(1))


def test_what_cannot_be_told_apart_is_refused():
    circle = Scene(1)
    circle.seed = [circle]
    for environment, named in (
        ((i for i in range(3)), "generator"),
        (np.array([object()]), "told"),
        (circle, "Scene"),
    ):
        with pytest.raises(InvalidSetting, match=named):
            environment_hash(environment)


def test_overlapping_sets_are_refused():
    images = np.random.default_rng(0).random((30, 5, 5))
    check_disjoint(images[:20], images[20:])
    with pytest.raises(InvalidSetting, match=r"3 of the 13 .*\[0\] = prior\[17\]"):
        check_disjoint(images[:20], torch.from_numpy(images[17:]))


ROWS = np.random.default_rng(1).random((20, 2, 3))


@pytest.mark.parametrize(
    "same",
    [
        ROWS.astype(np.float32),
        ROWS.tolist(),
        ROWS.reshape(20, 6),
        [tuple(row) for row in ROWS],
        torch.from_numpy(ROWS).float(),
        [torch.from_numpy(row).half() for row in ROWS],
        iter(ROWS),
    ],
    ids=["float32", "lists", "shape", "tuples of arrays", "tensor", "float16", "iterator"],
)
def test_the_same_numbers_are_found_in_another_form(same):
    with pytest.raises(InvalidSetting, match="20 of the 20"):
        check_disjoint(ROWS, same)


def test_the_same_numbers_are_found_inside_of_objects():
    prior = [{"mug": Mug(0.25, row), "name": "a", "seed": 1} for row in ROWS]
    same = [{"mug": Mug(np.float32(0.25), row.tolist()), "name": "a", "seed": 1.0} for row in ROWS]
    with pytest.raises(InvalidSetting, match="20 of the 20"):
        check_disjoint(prior, same)
    check_disjoint(prior, [{**environment, "name": "b"} for environment in same])
    check_disjoint(prior, [{**environment, "seed": 2} for environment in same])


def test_what_differs_is_not_taken_for_the_same():
    check_disjoint([0.5], [0.5 + 1e-12])  # rounded only where the other set is
    check_disjoint([2**60], [2**60 + 1])  # seeds beyond what floats can tell apart
    check_disjoint([1e300, 2**70], np.zeros((1, 1), np.float32))
    check_disjoint(["1"], [1])
    check_disjoint([{"a": 1}], [{"b": 1}])
    with pytest.raises(InvalidSetting, match="1 of the 1"):
        check_disjoint([[2**60, 1]], np.array([[2**60, 1]]))


@pytest.mark.parametrize("empty", [[], np.empty((0, 3)), torch.empty(0, 3), iter(())])
def test_an_empty_set_is_refused(empty):
    with pytest.raises(InvalidSetting, match="training_environments"):
        check_disjoint(ROWS, empty)
    with pytest.raises(InvalidSetting, match="prior_environments"):
        check_disjoint([], ROWS)


def squared(policy, x, y):
    return (policy(x) - y) ** 2


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(1, 1)


def test_the_prior_is_trained_on_other_environments_only():
    x = torch.linspace(-1, 1, 100)[:, None]
    net = network()
    with pytest.raises(InvalidSetting, match="1 of the 1"):
        train_prior(net, squared, (x, 2 * x), disjoint_from=x[40:41], steps=1)
    assert torch.equal(net.weight, network().weight)
    losses = train_prior(net, squared, (x, 2 * x), disjoint_from=x + 5, steps=400, learning_rate=0.05)
    assert losses[-1] < 1e-3 < losses[0]
    assert float(net.weight.detach()) == pytest.approx(2, abs=0.05)


def test_bad_settings_of_the_prior():
    x = torch.zeros(4, 1)
    for change, message in (({"steps": 0}, "steps = 0"), ({"disjoint_from": x[:0]}, "training_environments")):
        with pytest.raises(InvalidSetting, match=message):
            train_prior(network(), squared, (x, x), **{"disjoint_from": (), "steps": 1} | change)
