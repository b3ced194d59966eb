"""The notice about scenes: its level exactly and by simulation, its power, and what happens without care."""

from __future__ import annotations

import itertools
import math

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

    def _count(self, prediction):
        known = list(self._sorted)
        super()._count(prediction)
        self._sorted = known


def expected_wealth(kind, values, chances, reference, new):
    """Exactly, over all draws of reference and new scenes from one world with these predictions."""
    total = 0.0
    for draw in itertools.product(range(len(values)), repeat=reference + new):
        predictions = [values[place] for place in draw]
        watch = kind(predictions[:reference])
        watch.update(predictions[reference:])
        total += math.prod(chances[place] for place in draw) * wealth(watch)
    return total


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5), (0.01, 0.01, 0.98)])
def test_the_expected_capital_is_at_most_one_in_any_unchanged_world(chances):
    values = np.linspace(0.1, 0.9, len(chances)).tolist()
    assert expected_wealth(SceneWatch, values, chances, reference=2, new=3) == pytest.approx(1, abs=1e-12)
    assert expected_wealth(Frozen, values, chances, reference=2, new=3) > 1.01  # the broken twin


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
    for _ in range(runs):
        watch = kind(draw(rng, reference), alpha=ALPHA)
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
