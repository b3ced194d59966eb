"""On a task whose optimum is known, both algorithms lower the certified bound, toward it."""

import json

import numpy as np
import pytest
import torch

from boundwatch import bounds
from boundwatch.training import train_backprop, train_evolution
from training.toy import THETA, Simulator, expected_cost, posterior, surrogate, targets

M, DELTA = 1000, 0.01
ALGORITHMS = {
    "backprop": lambda p, e, o: train_backprop(p, surrogate, (e,), steps=150, bound=o, samples=4),
    "evolution": lambda p, e, o: train_evolution(p, Simulator(e), steps=150, bound=o, samples=16),
}


def mean_bound(trained, environments, objective, draws=200):
    """Return the mean, over policies drawn, of the bound certified for each, and of its true cost."""
    weights = trained.sample(draws, np.random.default_rng(1))
    everywhere = np.tile(np.arange(len(environments)), (draws, 1))
    costs = Simulator(environments).costs(trained, weights, everywhere).mean(1)
    if objective == "pointwise":
        ratios = [trained.log_density_ratio(w) for w in weights]
        uppers = [bounds.pointwise_upper(c, M, DELTA, r) for c, r in zip(costs, ratios, strict=True)]
    else:
        uppers = [bounds.pac_bayes_upper(c, M, DELTA, trained.renyi_divergence(), objective) for c in costs]
    return np.mean(uppers), expected_cost(weights.numpy()).mean()


@pytest.mark.parametrize("objective", ["pinsker", "kl", "pointwise"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_lowers_the_certified_bound(algorithm, objective):
    environments = targets(M, seed=0)
    before, _ = mean_bound(posterior(), environments, objective)
    trained = posterior()
    history = ALGORITHMS[algorithm](trained, environments, objective)
    after, true_cost = mean_bound(trained, environments, objective)
    assert before > 0.8
    assert true_cost < after < 0.25
    assert true_cost < expected_cost(np.full(2, THETA)) + 0.03  # the best of all policies, 0.0826
    assert trained.mean.numpy() == pytest.approx(np.full(2, THETA), abs=0.15)
    # The history tells the same story: its bound is an estimate of the one that is certified.
    assert len(history) == 150
    assert np.mean(history.upper[-20:]) == pytest.approx(after, abs=0.03)


def test_more_is_paid_for_distance_when_environments_are_few():
    """With 10 environments the posterior stays near the prior; with 1000 it goes to the optimum."""
    few, many = posterior(), posterior()
    train_backprop(few, surrogate, (targets(10, 0),), steps=150, bound="kl")
    train_backprop(many, surrogate, (targets(1000, 0),), steps=150, bound="kl")
    assert few.renyi_divergence() < 0.8 * many.renyi_divergence()


def test_the_history_is_saved_with_its_numbers(tmp_path):
    history = train_backprop(posterior(), surrogate, (targets(50, 0),), steps=5)
    history.save(tmp_path / "training.json")
    numbers = json.loads((tmp_path / "training.json").read_text())
    assert numbers["upper"] == history.upper
    assert numbers["bound"] == "pointwise"


def test_true_costs_go_into_the_history_and_not_into_the_gradient():
    def with_true(policy, environments):
        costs = surrogate(policy, environments)
        return costs, torch.full_like(costs, 0.75)

    plain, paired = posterior(), posterior()
    train_backprop(plain, surrogate, (targets(50, 0),), steps=5)
    history = train_backprop(paired, with_true, (targets(50, 0),), steps=5)
    assert paired.sha256() == plain.sha256()
    assert history.cost == [0.75] * 5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"surrogate": lambda p, e: surrogate(p, e).mean()}, r"shape \(\) for 50 environments"),
        ({"surrogate": lambda p, e: 2 + surrogate(p, e)}, "outside"),
        ({"surrogate": lambda p, e: surrogate(p, e) * torch.nan, "bound": "pinsker"}, "not finite"),
        ({"data": (torch.zeros(50, 2), torch.zeros(49))}, r"\[49, 50\] rows"),
        ({"data": (torch.zeros(7, 2),)}, "at least 8"),
        *(
            ({name: value}, f"{name} = {value!r}")
            for name, value in [("samples", 0), ("jobs", 0), ("bound", "elbo")]
        ),
    ],
)
def test_bad_arguments_are_named(change, named):
    arguments = {"surrogate": surrogate, "data": (targets(50, 0),), "steps": 2} | change
    with pytest.raises(ValueError, match=named):
        train_backprop(posterior(), arguments.pop("surrogate"), arguments.pop("data"), **arguments)
