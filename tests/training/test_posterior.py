"""GaussianPosterior: what is inside moves, what is outside does not, and files bring it back."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from boundwatch.errors import BoundwatchError, InvalidSetting, SchemaMismatch
from boundwatch.training import GaussianPosterior, tensorfile
from boundwatch.training.policies import LatentPolicy, load_policy, save_policy


class Decoder(nn.Module):
    """A network with a latent input."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.head = nn.Linear(6 + 3, 2)

    def forward(self, observation, latent):
        features = self.body(observation).tanh()
        return self.head(torch.cat([features, latent.expand(*features.shape[:-1], -1)], -1))


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def decoder(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Decoder()


def moved(posterior, seed=1):
    """Return the posterior after one step away from its prior."""
    rng = np.random.default_rng(seed)
    shift, log_ratio = (torch.from_numpy(0.3 * rng.standard_normal(posterior.dim)) for _ in range(2))
    posterior.move(
        posterior.prior_mean + shift * posterior.prior_variance.sqrt(), posterior.log_variance + log_ratio
    )
    return posterior


POSTERIORS = {
    "all": lambda: GaussianPosterior.over(network(), prior_variance=0.1),
    "some": lambda: GaussianPosterior.over(network(), ["2.weight"], prior_variance=0.1),
    "latent": lambda: GaussianPosterior.over_latent(decoder(), 3),
}
MODULES = {"all": network, "some": network, "latent": decoder}
both = pytest.mark.parametrize("kind", POSTERIORS)


def test_names_choose_parameters_and_submodules():
    over = GaussianPosterior.over
    assert over(network(), prior_variance=1).names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert over(network(), ["2", "0.bias"], prior_variance=1).names == ("0.bias", "2.weight", "2.bias")
    assert over(network(), "0", prior_variance=1).dim == 40


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: GaussianPosterior.over(network(), ["3"], prior_variance=1), "'3'"),
        (lambda: GaussianPosterior.over(network(), [], prior_variance=1), "parameters is empty"),
        (lambda: GaussianPosterior.over(network(), prior_variance=0), "prior_variance = 0"),
        (lambda: GaussianPosterior.over(network(), prior_variance=math.nan), "prior_variance"),
        (lambda: GaussianPosterior.over(network(), prior_variance=[1.0, 2.0]), "58"),
        (lambda: GaussianPosterior.over(nn.Tanh(), prior_variance=1), "no parameters"),
        (lambda: GaussianPosterior.over_latent(decoder(), 0), "dim = 0"),
    ],
)
def test_bad_choices_are_named(make, named):
    with pytest.raises(InvalidSetting, match=named):
        make()


def test_batch_statistics_are_refused():
    def net(**settings):
        return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, **settings))

    with pytest.raises(InvalidSetting, match=r"layer '1' \(BatchNorm1d\) .* call module.eval\(\) first"):
        GaussianPosterior.over(net(), prior_variance=1)
    with pytest.raises(InvalidSetting, match="statistics of its batch"):
        GaussianPosterior.over(net(track_running_stats=False).eval(), prior_variance=1)
    GaussianPosterior.over(net().eval(), prior_variance=1)  # a fixed function of one observation


def test_policies_are_in_evaluation_mode():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    posterior = GaussianPosterior.over(net, prior_variance=1)
    weights = posterior.sample(1, np.random.default_rng(0))
    outputs = [posterior.apply(weights, torch.ones(2, 4)) for _ in range(2)]
    assert torch.equal(*outputs)
    assert not posterior.policy(weights[0]).training
    assert net.training  # the user's module is left alone


@both
def test_many_policies_at_once_equal_one_after_the_other(kind):
    posterior = moved(POSTERIORS[kind]())
    weights = posterior.sample(5, np.random.default_rng(0))
    observations = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    together = posterior.apply(weights, observations)
    assert together.shape == (5, 7, 2)
    for w, outputs in zip(weights, together, strict=True):
        torch.testing.assert_close(posterior.call(w, observations), outputs)
        torch.testing.assert_close(posterior.policy(w)(observations), outputs)


@both
def test_samples_have_the_moments_of_the_posterior(kind):
    posterior = moved(POSTERIORS[kind]())
    weights = posterior.sample(20_000, np.random.default_rng(0))
    z = (weights - posterior.mean) / posterior.variance.sqrt()
    assert z.mean(0).abs().max() < 6 / math.sqrt(20_000)
    assert (z.var(0) - 1).abs().max() < 6 * math.sqrt(2 / 20_000)
    ratios = torch.tensor([posterior.log_density_ratio(w) for w in weights[:4000]])
    assert abs(ratios.mean() - posterior.kl_divergence()) < 6 * ratios.std() / math.sqrt(4000)
    assert posterior.renyi_divergence() > posterior.kl_divergence() > 0


@both
def test_parameters_outside_the_posterior_are_frozen(kind):
    module = MODULES[kind]()
    before = copy.deepcopy(module.state_dict())
    build = GaussianPosterior.over_latent if kind == "latent" else GaussianPosterior.over
    extra = {"latent": {"dim": 3}, "some": {"parameters": ["2.weight"], "prior_variance": 0.1}}
    posterior = moved(build(module, **extra.get(kind, {"prior_variance": 0.1})))
    policy = posterior.policy(posterior.sample(1, np.random.default_rng(0))[0])
    policy = policy.network if isinstance(policy, LatentPolicy) else policy
    inside = set() if kind == "latent" else set(posterior.names)
    for name, value in policy.state_dict().items():
        assert torch.equal(value, before[name]) == (name not in inside), name
    assert not any(p.requires_grad for p in policy.parameters())
    # Changing the user's module afterward changes nothing here.
    digest = posterior.sha256()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1.0)
    assert posterior.sha256() == digest


def test_moving_projects_the_variances():
    posterior = GaussianPosterior.over(network(), prior_variance=math.exp(-14))
    posterior.move(posterior.mean, posterior.log_variance + torch.linspace(-5, 5, posterior.dim))
    assert bool((posterior.variance < 2 * posterior.prior_variance).all())
    assert math.isfinite(posterior.renyi_divergence())
    assert posterior.log_ratio[0] == pytest.approx(-5)  # only what is too large is touched


@both
def test_files_bring_everything_back(kind, tmp_path):
    posterior = moved(POSTERIORS[kind]())
    digest = posterior.save(tmp_path / "posterior.safetensors")
    again = GaussianPosterior.load(tmp_path / "posterior.safetensors", MODULES[kind](seed=5))
    assert again.sha256() == posterior.sha256() == digest
    observations = torch.ones(3, 4)
    policy, same = (p.policy(p.sample(1, np.random.default_rng(1))[0]) for p in (posterior, again))
    assert torch.equal(same(observations), policy(observations))
    save_policy(tmp_path / "policy.safetensors", policy)
    loaded = load_policy(tmp_path / "policy.safetensors", MODULES[kind](seed=5))
    assert torch.equal(loaded(observations), policy(observations))


def test_files_of_something_else_are_refused(tmp_path):
    path = tmp_path / "posterior.safetensors"
    posterior = POSTERIORS["some"]()
    posterior.save(path)
    for other in (nn.Linear(4, 2), nn.Sequential(*network(), nn.Linear(1, 1))):
        with pytest.raises(BoundwatchError):
            GaussianPosterior.load(path, other)
    with pytest.raises(SchemaMismatch, match="policy"):
        load_policy(path, network())
    with pytest.raises(InvalidSetting, match="no such file"):
        GaussianPosterior.load(tmp_path / "missing", network())
    save_policy(path, network())
    with pytest.raises(SchemaMismatch, match="posterior"):
        GaussianPosterior.load(path, network())
    tensors, metadata = tensorfile.decode(tensorfile.encode(*posterior._content()))
    for means in (tensors["mean"] * math.nan, tensors["mean"][:3], None):
        damaged = {} if means is None else tensors | {"mean": means}
        tensorfile.save(path, damaged, metadata)
        with pytest.raises(SchemaMismatch):
            GaussianPosterior.load(path, network())
