"""A prior's training goes on after a kill, to the same bits, and refuses what is not its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from boundwatch.errors import ProvenanceMismatch
from boundwatch.training import prior, tensorfile, train_prior

X = torch.linspace(-1, 1, 64)[:, None]


def start():
    net = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    values = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=values))
    return net, torch.Generator().manual_seed(1)


def trained(checkpoint=None, stop=None, **changes):
    """Train with a loss that draws noise of its own, and is interrupted after so many steps."""
    net, generator = start()
    calls = []

    def loss(policy, x, y):
        calls.append(1)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return (policy(x) - y + 0.1 * torch.randn(y.shape, generator=generator)) ** 2

    options = {"steps": 20, "batch_size": 16, "seed": 5, "generator": generator, "checkpoint": checkpoint}
    data = (changes.pop("x", X), 2 * X)
    losses = train_prior(net, loss, data, disjoint_from=X + 9, **options | changes)
    return net.state_dict(), losses, len(calls)


def assert_same(ours, others):
    assert ours.keys() == others.keys()
    assert all(torch.equal(value, others[name]) for name, value in ours.items())


def test_interrupted_anywhere_it_ends_with_the_same_bits(tmp_path, monkeypatch):
    whole, losses, _ = trained()
    monkeypatch.setattr(prior, "_SECONDS", -1.0)  # a checkpoint after every step
    for stop in (2, 11, 20):
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / str(stop), stop)
        ours, again, calls = trained(tmp_path / str(stop))
        assert_same(ours, whole)
        assert again == losses
        assert calls == 21 - stop  # none of the finished steps was taken again
    ours, again, calls = trained(tmp_path / "20")
    assert_same(ours, whole)
    assert (again, calls) == (losses, 0)


@pytest.mark.parametrize("change", [{"seed": 6}, {"learning_rate": 0.1}, {"batch_size": 8}, {"x": X + 0.1}])
def test_a_checkpoint_of_another_training_is_refused(tmp_path, change):
    trained(tmp_path / "c")
    with pytest.raises(ProvenanceMismatch):
        trained(tmp_path / "c", **change)
    tensors, metadata = tensorfile.load(tmp_path / "c")
    tensorfile.save(tmp_path / "c", tensors, metadata | {"settings": "another"})
    with pytest.raises(ProvenanceMismatch):
        trained(tmp_path / "c")
