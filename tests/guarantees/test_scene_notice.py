"""The notice about scenes: its level exactly and by simulation, its power, and what happens without care."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from boundwatch.prediction import SceneWatch
from boundwatch.prediction.scenes import NOT_A_VERDICT
from rates import assert_rate_at_most, min_trials

ALPHA = 0.05


def wealth(watch):
    return float(np.exp(np.logaddexp.reduce(watch._logs, axis=None)))


class Frozen(SceneWatch):
    """Compares every new scene with the same few reference scenes, as if their ranks were independent."""

    def _place(self, prediction):
        known = list(self._sorted)
        ranks = super()._place(prediction)
        self._sorted = known
        return ranks


class Averaged(SceneWatch):
    """Averages each bet over all places of a tie: fair at each fixed time, but not given the past."""

    def _place(self, prediction):
        super()._place(prediction)
        places = len(self._sorted)
        below, not_above = (
            bisect.bisect(self._sorted, (prediction, label)) for label in (-math.inf, math.inf)
        )
        return (places - not_above) / places, (places - below) / places


def histories(kind, chances, reference, new):
    """Yield the chance of every draw of scenes and order of their labels, and the capitals over time."""
    values = np.linspace(0.1, 0.9, len(chances)).tolist()
    orders = list(itertools.permutations(range(reference + new)))
    for draw in itertools.product(range(len(values)), repeat=reference + new):
        chance = math.prod(chances[place] for place in draw) / len(orders)
        predictions = [values[place] for place in draw]
        for labels in orders:
            watch = kind(predictions[:reference])
            watch._sorted = sorted(zip(predictions, labels[:reference], strict=False))
            watch._labels = SimpleNamespace(random=iter(labels[reference:]).__next__)
            capitals = []
            for prediction in predictions[reference:]:
                watch.update(prediction)
                capitals.append(np.exp(watch._logs))
            yield chance, capitals


def expected_wealth(known):
    """Exactly, over all draws of reference and new scenes from one world with these predictions."""
    return sum(chance * found[-1].sum() for chance, found in known)


def largest_drift(known):
    """Return how far from 1 the last factor of a capital may be, expected given all capitals before it."""
    totals = defaultdict(lambda: np.zeros((2, *SceneWatch([0.5])._logs.shape)))
    for chance, found in known:
        past = np.array(found[:-1]).round(9).tobytes()
        totals[past] += chance * np.array([found[-1] / found[-2], np.ones_like(found[-1])])
    return max(abs(factor / weight - 1).max() for factor, weight in totals.values())


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5), (0.01, 0.01, 0.98)])
def test_the_expected_capital_is_at_most_one_in_any_unchanged_world(chances):
    """Given the past, too: averaging over ties is right at each fixed time, which is not enough."""
    ours, frozen, averaged = (
        list(histories(kind, chances, reference=2, new=2)) for kind in (SceneWatch, Frozen, Averaged)
    )
    assert expected_wealth(ours) == pytest.approx(1, abs=1e-12)
    assert largest_drift(ours) < 1e-9
    assert expected_wealth(frozen) > 1.01  # a broken twin
    assert expected_wealth(averaged) == pytest.approx(1, abs=1e-12)
    assert largest_drift(averaged) > 0.01  # the other


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
    hits = 0
    for seed in range(runs):
        watch = kind(draw(rng, reference), alpha=ALPHA, seed=seed)
        hits += watch.update(draw(rng, new)).look is not None
    return hits


def test_unchanged_scenes_are_noticed_at_most_as_often_as_promised():
    """Ties (predictions in tenths) included; the broken twin fails by far."""
    rng = np.random.default_rng(3)
    runs = min_trials(limit=ALPHA, broken=0.15)
    smooth = notices(SceneWatch, rng, runs, 20, 60, lambda rng, n: rng.beta(2, 6, n))
    rough = notices(SceneWatch, rng, runs, 20, 60, lambda rng, n: rng.beta(2, 6, n).round(1))
    assert_rate_at_most(smooth, runs, ALPHA)
    assert_rate_at_most(rough, runs, ALPHA)
    runs = min_trials(limit=ALPHA, broken=0.3)
    broken = notices(Frozen, rng, runs, 20, 200, lambda rng, n: rng.beta(2, 6, n))
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(broken, runs, ALPHA)


def test_a_rare_prediction_among_ties_is_noticed_at_most_as_often_as_promised():
    """All scenes look alike but one in 200; the twin that averages over ties fails."""

    def rare(rng, n):
        return np.where(rng.random(n) < 0.005, 0.9, 0.1)

    rng = np.random.default_rng(7)
    runs = min_trials(limit=ALPHA, broken=0.15)
    assert_rate_at_most(notices(SceneWatch, rng, runs, 10, 300, rare), runs, ALPHA)
    broken = notices(Averaged, rng, runs, 10, 300, rare)
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(broken, runs, ALPHA)


def test_tied_scenes_give_the_same_notice_in_one_update_or_many():
    rng = np.random.default_rng(9)
    reference, new = rng.integers(0, 3, 30) / 4, rng.integers(1, 4, 40) / 4
    at_once = SceneWatch(reference, seed=1).update(new)
    watch = SceneWatch(reference, seed=1)
    assert [watch.update(prediction) for prediction in new][-1] == at_once
    assert SceneWatch(reference, seed=2).update(new).p_value != at_once.p_value


@pytest.mark.parametrize(("look", "a", "b"), [("harder", 5, 5), ("easier", 1, 12), ("different", 0.3, 0.6)])
def test_changed_scenes_are_noticed_and_named(look, a, b):
    """200 reference scenes with predictions around 0.25; at most 100 new ones."""
    rng = np.random.default_rng(5)
    found = [SceneWatch(rng.beta(2, 6, 200)).update(rng.beta(a, b, 100)).look for _ in range(20)]
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
