"""The notice about scenes: its level exactly and by simulation, its power, and what happens without care."""

from __future__ import annotations

import bisect
import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from boundwatch.prediction import SceneWatch
from boundwatch.prediction.likeness import NOT_A_VERDICT
from rates import assert_rate_at_most, min_trials

ALPHA = 0.05


def wealth(watch):
    return float(np.exp(np.logaddexp.reduce(watch._logs, axis=None)))


class Frozen(SceneWatch):
    """Compares every new scene with the same few reference scenes, as if their ranks were independent."""

    def _place(self, prediction):
        known = list(self._sorted)
        places = super()._place(prediction)
        self._sorted = known
        return places


class Labeled(SceneWatch):
    """Breaks ties by labels: valid if they are random, but these are the same for everybody."""

    def __init__(self, reference, labels=None, **settings):
        super().__init__(reference, **settings)
        random = np.random.default_rng(np.random.SeedSequence(0, spawn_key=tuple(b"labels"))).random
        self._draw = random if labels is None else iter(labels).__next__
        self._known = sorted((value, self._draw()) for value in np.asarray(reference).tolist())

    def _place(self, prediction):
        labeled = prediction, self._draw()
        below = bisect.bisect(self._known, labeled)
        self._known.insert(below, labeled)
        return len(self._known) - 1 - below, 0, len(self._known)


def capitals_of(watch, predictions):
    found = []
    for prediction in predictions:
        watch.update(prediction)
        found.append(np.exp(watch._logs))
    return np.array(found)


def worlds_of(chances, scenes):
    """Yield the chance of every draw of scenes, and their predictions."""
    values = np.linspace(0.1, 0.9, len(chances)).tolist()
    for draw in itertools.product(range(len(values)), repeat=scenes):
        yield math.prod(chances[place] for place in draw), [values[place] for place in draw]


@pytest.mark.parametrize("chances", [(1.0,), (0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5), (0.01, 0.01, 0.98)])
def test_the_expected_capital_is_at_most_one_in_any_unchanged_world(chances):
    """Whatever the labels, ties broken by them win at least as much at any time; random ones win nothing."""
    expected = {SceneWatch: 0.0, Frozen: 0.0, Labeled: 0.0}
    for chance, predictions in worlds_of(chances, 4):
        ours = capitals_of(SceneWatch(predictions[:2]), predictions[2:])
        orders = list(itertools.permutations(range(4)))
        for labels in orders:
            fair = capitals_of(Labeled(predictions[:2], labels), predictions[2:])
            assert (ours <= fair * (1 + 1e-12)).all()
            expected[Labeled] += chance * fair[-1].sum() / len(orders)
        expected[SceneWatch] += chance * ours[-1].sum()
        # Different predictions have one order, whatever labels say.
        for order in orders if len(chances) == 1 else ():
            different = np.array(order) / 4
            frozen = capitals_of(Frozen(different[:2]), different[2:])
            expected[Frozen] += chance * frozen[-1].sum() / len(orders)
    assert expected[SceneWatch] < 1
    assert expected[Labeled] == pytest.approx(1, abs=1e-12)
    assert expected[Frozen] == 0 or expected[Frozen] > 1.01  # a broken twin


def test_p_values_of_two_predictions_hold_at_every_level_and_share():
    """Exactly: 20 certified scenes and every order of ten new ones, of which any number look hard."""
    orders = np.array(list(itertools.product((0.1, 0.9), repeat=10)))
    p_values = np.array(
        [[SceneWatch([0.9] * k + [0.1] * (20 - k)).update(new).p_value for new in orders] for k in range(21)]
    )
    hard = (orders > 0.5).sum(axis=1)
    for share in np.linspace(0.05, 0.95, 19):
        chances = np.outer(binom.pmf(np.arange(21), 20, share), share**hard * (1 - share) ** (10 - hard))
        for level in np.unique(p_values[p_values < 1]).tolist():
            assert chances[p_values <= level].sum() <= level
    assert p_values.min() < 0.06  # so that there are levels to try


def test_scenes_that_all_look_alike_are_never_noticed():
    """With labels that are the same for everybody, 120 certified and 8 new ones are, for certain."""
    assert SceneWatch([0.0] * 120).update([0.0] * 8).p_value == 1
    assert Labeled([0.0] * 120).update([0.0] * 8).look == "easier"
    for n in (1, 2, 3, 10, 50, 333, 1000):
        assert SceneWatch([0.0] * n).update([0.0] * 200).p_value == 1


def test_no_order_of_different_predictions_is_favored():
    """All orders of six predictions are equally likely; the first two are the reference."""
    capitals = {SceneWatch: [], Frozen: []}
    for order in itertools.permutations(np.linspace(0.1, 0.9, 6).tolist()):
        for kind, found in capitals.items():
            watch = kind(order[:2])
            watch.update(order[2:])
            found.append(wealth(watch))
    assert np.mean(capitals[SceneWatch]) == pytest.approx(1, abs=1e-12)
    assert np.mean(capitals[Frozen]) > 1.1


def notices(kind, rng, runs, reference, new, draw):
    watches = (kind(draw(rng, reference), alpha=ALPHA) for _ in range(runs))
    return sum(watch.update(draw(rng, new)).look is not None for watch in watches)


def rare(rng, n):
    """All scenes look alike but one in 200."""
    return np.where(rng.random(n) < 0.005, 0.9, 0.1)


@pytest.mark.parametrize(
    "draw",
    [lambda rng, n: rng.beta(2, 6, n), lambda rng, n: rng.beta(2, 6, n).round(1), rare],
    ids=["smooth", "tenths", "rare"],
)
def test_unchanged_scenes_are_noticed_at_most_as_often_as_promised(draw):
    runs = min_trials(limit=ALPHA, broken=0.15)
    assert_rate_at_most(notices(SceneWatch, np.random.default_rng(3), runs, 20, 60, draw), runs, ALPHA)


def test_twins_that_are_not_careful_are_found_out():
    """One compares with the certified scenes alone, the other breaks ties by labels that everybody has."""
    rng, runs = np.random.default_rng(3), min_trials(limit=ALPHA, broken=0.3)
    for kind, reference, new, draw in (
        (Frozen, 20, 200, lambda rng, n: rng.beta(2, 6, n)),
        (Labeled, 120, 8, rare),
    ):
        broken = notices(kind, rng, runs, reference, new, draw)
        with pytest.raises(AssertionError, match="against a promise"):
            assert_rate_at_most(broken, runs, ALPHA)


def test_tied_scenes_give_the_same_notice_in_one_update_or_many():
    rng = np.random.default_rng(9)
    reference, new = rng.integers(0, 3, 30) / 4, rng.integers(1, 4, 40) / 4
    at_once = SceneWatch(reference).update(new)
    watch = SceneWatch(reference)
    assert [watch.update(prediction) for prediction in new][-1] == at_once


@pytest.mark.parametrize(("look", "a", "b"), [("harder", 5, 5), ("easier", 1, 12), ("different", 0.3, 0.6)])
def test_changed_scenes_are_noticed_and_named(look, a, b):
    """200 reference scenes with predictions around 0.25; at most 100 new ones."""
    rng = np.random.default_rng(5)
    found = [SceneWatch(rng.beta(2, 6, 200)).update(rng.beta(a, b, 100)).look for _ in range(20)]
    assert found.count(look) >= 18


def shares(rng, before, after):
    """Predictions of 0 and 1: of 200 certified and 100 new scenes, a share of ones."""
    return [1.0 * (rng.random(n) < share) for n, share in ((200, before), (100, after))]


@pytest.mark.parametrize(
    ("look", "draw"),
    [
        ("harder", lambda rng: (rng.beta(2, 6, 200).round(1), rng.beta(5, 5, 100).round(1))),
        ("easier", lambda rng: (rng.beta(2, 6, 200).round(1), rng.beta(1, 12, 100).round(1))),
        ("harder", lambda rng: shares(rng, 0.5, 0.9)),
        ("easier", lambda rng: shares(rng, 0.5, 0.1)),
    ],
)
def test_few_different_predictions_are_enough(look, draw):
    rng = np.random.default_rng(5)
    found = []
    for _ in range(20):
        reference, new = draw(rng)
        found.append(SceneWatch(reference).update(new).look)
    assert found.count(look) >= 18


def test_the_notice_is_worded_as_no_verdict():
    rng = np.random.default_rng(1)
    watch = SceneWatch(rng.beta(2, 8, 100))
    for predictions in (0.1, rng.beta(8, 2, 50)):
        notice = watch.update(predictions)
        assert NOT_A_VERDICT in notice.text
        assert "ADVERSE" not in notice.text.upper().replace("VERDICT", "")
    assert notice.look == "harder"
    assert notice.text.startswith("The scenes look harder")
