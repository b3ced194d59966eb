"""Certify: one draw, the choice of the bound before the look, and a price for every further candidate."""

import copy
import json

import numpy as np
import pytest
import torch

from boundwatch import Certificate, bounds
from boundwatch._support.files import sha256_file
from boundwatch.errors import CertificateError, InvalidCost, InvalidSetting
from boundwatch.readers import read_costs
from boundwatch.training import GaussianPosterior, certify, load_policy, train_backprop
from training.toy import Point, costs_on, posterior, surrogate, targets

ENVIRONMENTS = targets(200, seed=0)
COSTS_OF = costs_on(ENVIRONMENTS)


@pytest.fixture(scope="module")
def template():
    made = posterior()
    train_backprop(made, surrogate, (ENVIRONMENTS,), steps=40)
    return made


@pytest.fixture
def trained(template):
    return copy.deepcopy(template)


@pytest.mark.parametrize("bound", ["pinsker", "kl", "pointwise"])
def test_the_certificate_is_that_of_bounds_for_the_policy_in_the_file(trained, tmp_path, bound):
    certificate = certify(trained, COSTS_OF, tmp_path, bound=bound, delta=0.02, seed=3)
    policy = load_policy(tmp_path / "policy.safetensors", Point())
    with torch.no_grad():
        costs = COSTS_OF(policy).astype(float)
    m, mean = len(costs), costs.mean()
    if bound == "pointwise":
        weights = policy.w.double()
        ratio = trained.log_density_ratio(weights)
        expected = bounds.pointwise_upper(mean, m, 0.02, ratio), bounds.pointwise_lower(mean, m, 0.02, ratio)
    else:
        renyi = trained.renyi_divergence()
        expected = (
            bounds.pac_bayes_upper(mean, m, 0.02, renyi, bound),
            bounds.pac_bayes_lower(mean, m, 0.02, renyi, bound),
        )
    # The file holds float32 parameters, the ratio is that of the float64 draw behind them.
    assert (certificate.upper, certificate.lower) == pytest.approx(expected, abs=1e-6)
    assert certificate.provenance.policy_sha256 == sha256_file(tmp_path / "policy.safetensors")
    assert certificate.provenance.seed == 3
    loaded = Certificate.load(tmp_path / "certificate.json")
    assert loaded == certificate
    assert all(check.ok for check in loaded.verify(read_costs(tmp_path / "costs.csv").costs))
    again = GaussianPosterior.load(tmp_path / "posterior.safetensors", Point())
    assert again.sha256() == trained.sha256()


def test_the_same_arguments_repeat_the_same_draw(trained, tmp_path):
    first = certify(trained, COSTS_OF, tmp_path)
    assert first.source == "pointwise"  # the default
    policy = (tmp_path / "policy.safetensors").read_bytes()
    second = certify(trained, COSTS_OF, tmp_path)
    assert (first.upper, first.mean_cost) == (second.upper, second.mean_cost)
    assert (tmp_path / "policy.safetensors").read_bytes() == policy


@pytest.mark.parametrize("change", [{"seed": 1}, {"bound": "kl"}, {"delta": 0.02}, {"binary": True}])
def test_a_second_draw_after_a_look_is_refused(trained, tmp_path, change):
    first = certify(trained, COSTS_OF, tmp_path / "a")
    # In the same directory, after loading the posterior anew …
    loaded = GaussianPosterior.load(tmp_path / "a" / "posterior.safetensors", Point())
    with pytest.raises(CertificateError, match="already drawn"):
        certify(loaded, COSTS_OF, tmp_path / "a", **change)
    # … and from the same object, in another directory.
    with pytest.raises(CertificateError, match="already drawn"):
        certify(trained, COSTS_OF, tmp_path / "b", **change)
    # Training on does not help.
    train_backprop(trained, surrogate, (ENVIRONMENTS,), steps=1)
    with pytest.raises(CertificateError, match="already drawn"):
        certify(trained, COSTS_OF, tmp_path / "b")
    assert Certificate.load(tmp_path / "a" / "certificate.json") == first
    assert not (tmp_path / "b" / "certificate.json").exists()


def test_a_draw_is_written_down_before_anything_is_seen(trained, tmp_path):
    def crash(_policy):
        assert json.loads((tmp_path / "draw.json").read_text())["seed"] == 5
        raise RuntimeError("the simulator crashed")

    with pytest.raises(RuntimeError):
        certify(trained, crash, tmp_path, seed=5)
    with pytest.raises(CertificateError, match="already drawn"):
        certify(trained, COSTS_OF, tmp_path, seed=6)
    certify(trained, COSTS_OF, tmp_path, seed=5)


@pytest.mark.parametrize("bound", ["pinsker", "kl", "pointwise"])
def test_candidates_are_paid_for(tmp_path, bound):
    """Each of three is certified at delta/3, the best is kept, and the certificate is one at delta."""
    candidates, drawn = [], []
    for steps in (1, 20, 60):
        candidate = posterior()
        train_backprop(
            candidate, surrogate, (ENVIRONMENTS,), steps=steps, checkpoint=tmp_path / "checkpoint"
        )  # each continues where the one before stopped
        candidates.append(candidate)

    def costs_of(policy):
        drawn.append(policy.w.double())
        return COSTS_OF(policy)

    chosen = certify(candidates, costs_of, tmp_path, bound=bound, delta=0.03)
    paid = []
    for candidate, weights in zip(candidates, drawn, strict=True):
        mean = COSTS_OF(candidate.policy(weights)).astype(float).mean()
        if bound == "pointwise":
            ratio = candidate.log_density_ratio(weights)
            paid.append(bounds.pointwise_upper(mean, 200, 0.03 / 3, ratio))
        else:
            renyi = candidate.renyi_divergence()
            paid.append(bounds.pac_bayes_upper(mean, 200, 0.03 / 3, renyi, bound))
    assert chosen.upper == pytest.approx(min(paid), abs=1e-6)
    assert chosen.delta == 0.03
    assert json.loads((tmp_path / "draw.json").read_text())["candidates"] == 3
    kept = GaussianPosterior.load(tmp_path / "posterior.safetensors", Point())
    assert kept.sha256() == candidates[int(np.argmin(paid))].sha256()
    assert chosen.provenance.policy_sha256 == sha256_file(tmp_path / "policy.safetensors")
    assert all(check.ok for check in chosen.verify(read_costs(tmp_path / "costs.csv").costs))


def test_candidates_are_drawn_independently(trained, tmp_path):
    seen = []
    equal = [trained, copy.deepcopy(trained)]
    certify(equal, lambda policy: seen.append(policy.w.tolist()) or COSTS_OF(policy), tmp_path)
    assert seen[0] != seen[1]


def test_the_draw_is_not_among_those_that_training_saw():
    """Even with the same seed: otherwise the policy would not be a fresh draw."""
    from boundwatch.training.determinism import Stream, generator

    certified = generator(0, Stream.CERTIFIED_POLICY).standard_normal(2)
    for step in range(1000):
        assert not np.isclose(generator(0, Stream.TRAINING, step).standard_normal(2), certified).any()


class Normalizing(Point):
    """A policy that goes on learning the mean of what it observes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("observed", torch.zeros(()))

    def forward(self, observation):
        self.observed += observation.mean()
        return super().forward(observation - self.observed)


def test_a_policy_that_changes_while_it_is_rolled_out_is_refused(tmp_path):
    """Otherwise the file would hold another policy than the one whose costs are certified."""
    saved = {}

    def costs_of(policy):
        saved["observed"] = load_policy(tmp_path / "policy.safetensors", Normalizing()).observed.item()
        return COSTS_OF(policy)

    with pytest.raises(InvalidSetting, match="Normalizing changed its state_dict"):
        certify(GaussianPosterior.over(Normalizing(), prior_variance=0.2), costs_of, tmp_path)
    assert saved["observed"] == 0.0  # saved before it was rolled out
    assert not (tmp_path / "certificate.json").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bound": "best"}, InvalidSetting, "bound = 'best' is unknown; choose one of"),
        ({"delta": 1.0}, ValueError, "delta = 1"),
        ({"binary": "no"}, InvalidSetting, "binary = 'no' is not True or False"),
        ({"posterior": []}, InvalidSetting, "empty list"),
        ({"seed": -1}, InvalidSetting, "seed = -1 is not a whole number"),
        ({"seed": 0.5}, InvalidSetting, "seed = 0.5"),
        ({"costs_of": lambda _: [0.5] * 7}, InvalidSetting, "m = 7"),
        ({"costs_of": lambda _: [0.5, 1.5] * 7}, InvalidCost, r"costs\[1\] = 1.5"),
        ({"costs_of": lambda _: [0.5, 1.0] * 7, "binary": True}, InvalidCost, "not 0 or 1"),
    ],
)
def test_bad_arguments_are_explained(trained, tmp_path, arguments, error, message):
    call = {"posterior": trained, "costs_of": COSTS_OF} | arguments
    with pytest.raises(error, match=message):
        certify(call.pop("posterior"), call.pop("costs_of"), tmp_path, **call)
    assert not (tmp_path / "certificate.json").exists()
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSetting, match="file/run: cannot be made"):
        certify(trained, COSTS_OF, tmp_path / "file" / "run")
