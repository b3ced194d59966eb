"""The network with the authors' shape: what it learns from, and that it sees one environment at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from reproduction.artifacts import Cache
from reproduction.baseline_network import (
    AUTHORS,
    POLICY,
    BaselineNetwork,
    Outputs,
    Seen,
    in_setting,
    training_environments,
)

from boundwatch.training.policies import refuse_batch_statistics
from doctored import tiny


@pytest.fixture(scope="module")
def cache(tmp_path_factory, with_policies) -> Cache:
    return Cache(with_policies(tmp_path_factory.mktemp("networks")) / "cache")


def test_what_it_says_of_the_training_environments_is_kept(cache):
    run = tiny.POLICY.load(cache)
    environments = training_environments(run)
    assert Outputs.of(run.policy, environments.images).logits == pytest.approx(run.logits, abs=1e-5)
    trained, classes = BaselineNetwork(tiny.POLICY, steps=3).training(cache, AUTHORS)
    assert trained.features.shape == (len(environments), 64)
    assert np.array_equal(classes, environments.clearances.argmax(axis=1))


def test_it_looks_at_what_the_policy_flew_through(cache):
    flights = tiny.SWEEP.flights("difficulty:9")
    seen = Seen(BaselineNetwork(tiny.POLICY, steps=3), flights.distribution, 70, flights.seed)
    of_policy = seen.outputs(cache, POLICY)
    assert of_policy.logits == pytest.approx(flights.logits(cache)[:70], abs=1e-5)
    network = tiny.POLICY.load(cache).policy
    scores = network.adapter(network.head(torch.from_numpy(of_policy.features).float()), torch.zeros(70, 0))
    assert scores.numpy() == pytest.approx(of_policy.logits, abs=1e-5)


def test_its_statistics_are_frozen(cache):
    network = BaselineNetwork(tiny.POLICY, steps=3).load(cache)[AUTHORS]
    refuse_batch_statistics(network)
    images = training_environments(tiny.POLICY.load(cache)).images[:40]
    alone = np.concatenate([Outputs.of(network, images[i : i + 1]).logits for i in range(3)])
    assert alone == pytest.approx(Outputs.of(network, images).logits[:3], abs=1e-5)
    # With a setting's statistics, too; but these are those of the setting, as in training mode.
    adapted = in_setting(network, images)
    assert Outputs.of(adapted, images[:1]).logits == pytest.approx(
        Outputs.of(adapted, images).logits[:1], abs=1e-5
    )
    batch = Outputs.of(network.train(), images).logits[:3]
    # But for the variances, which are kept with n - 1 in place of n.
    assert Outputs.of(adapted, images).logits[:3] == pytest.approx(batch, abs=3e-3)
    # The control: in training mode, as the authors left it, the others of the batch matter.
    assert np.abs(Outputs.of(network, images[:3]).logits - batch).max() > 0.01
