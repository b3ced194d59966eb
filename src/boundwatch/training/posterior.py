"""The Gaussian posterior P = N(μ, diag s) over a policy's parameters, and its prior P₀."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch.errors import InvalidSetting, SchemaMismatch
from boundwatch.training import tensorfile
from boundwatch.training.policies import LATENT, LatentPolicy, load_state, refuse_batch_statistics

_KIND = "boundwatch.posterior/1"
_PSI = ("mean", "log_variance", "prior_mean", "prior_variance")
_VARIANCE_MARGIN = 0.01
"""Variances stay below 2 s₀ (1 - margin): D₂ is infinite at 2 s₀ and its gradient useless just below."""


class GaussianPosterior:
    """A diagonal Gaussian over some of a policy's parameters, and the prior that it started from.

    Build it with `over` (parameters of a module), `over_latent` (a latent input) or `load`. The module is
    copied to the CPU; in the copy everything outside the posterior is frozen.

    Attributes
    ----------
    mean, log_variance : Tensor
        ψ = (μ, ln s), float64, of length `dim`; what training changes.
    prior_mean, prior_variance : Tensor
        μ₀ and s₀, float64; fixed.
    names : tuple of str
        Names of the parameters in the posterior, in the order of the flat vector w.
    drawn : str or None
        What `boundwatch.training.certify` has drawn from it, so that it draws once.

    **Assumes**: the prior was chosen before the training environments were seen. A module trained on *other*
    environments is a fine prior mean, see `boundwatch.training.train_prior`.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> posterior = GaussianPosterior.over(net, ["2"], prior_variance=0.01)     # the last layer only
    >>> posterior.dim, posterior.names
    (18, ('2.weight', '2.bias'))
    >>> weights = posterior.sample(3, np.random.default_rng(0))                 # three policies at once
    >>> posterior.apply(weights, torch.zeros(5, 4)).shape
    torch.Size([3, 5, 2])
    """

    def __init__(
        self, module: nn.Module, names: Iterable[str], prior_mean: Tensor, prior_variance: Tensor
    ) -> None:
        refuse_batch_statistics(module)
        self._module = copy.deepcopy(module).cpu().eval().requires_grad_(False)
        self.names = tuple(names)
        state = self._module.state_dict()
        self._forms = [(state[name].shape, state[name].dtype) for name in self.names]
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.mean = prior_mean.clone()
        self.log_variance = prior_variance.log()
        self.drawn: str | None = None

    def __repr__(self) -> str:
        shown = {"dim": self.dim, "names": self.names, "module": type(self._module).__name__}
        return one_line(self, shown | {"drawn": self.drawn is not None})

    def __str__(self) -> str:
        away = f"a Rényi divergence of {self.renyi_divergence():.3f} from its prior"
        return f"Gaussian over {self.dim} parameters of {type(self._module).__name__}, with {away}"

    @classmethod
    def over(
        cls, module: nn.Module, parameters: Iterable[str] | None = None, *, prior_variance: ArrayLike
    ) -> GaussianPosterior:
        """Return a posterior over a module's parameters, at its prior N(present values, prior_variance).

        Parameters
        ----------
        module
            The policy: a function of one observation, batched along the first axis.
        parameters
            Names of parameters, or of submodules whose parameters are all meant; all parameters if left out.
        prior_variance
            s₀ > 0: one number, or one for each of the d parameters in the order of `names`.
        """
        chosen = _choose(module, parameters)
        mean = torch.cat([value.detach().cpu().double().reshape(-1) for value in chosen.values()])
        return cls(module, chosen, mean, _check_variance(prior_variance, mean.numel()))

    @classmethod
    def over_latent(
        cls, module: nn.Module, dim: int, *, prior_variance: ArrayLike = 1.0
    ) -> GaussianPosterior:
        """Return a posterior over a latent vector, the module's last argument; its parameters are frozen.

        The prior is N(0, prior_variance). The module is called as ``module(observations, latent)`` with one
        latent vector of shape (dim,) for a whole batch of observations.

        Examples
        --------
        >>> posterior = GaussianPosterior.over_latent(nn.Bilinear(3, 2, 1), 2)
        >>> posterior.dim, posterior.names
        (2, ('latent',))
        """
        if dim < 1:
            raise InvalidSetting(f"dim = {dim} is below 1; give the length of the latent vector")
        dtype = next((p.dtype for p in module.parameters()), torch.get_default_dtype())
        prior = _check_variance(prior_variance, dim)
        policy = LatentPolicy(module, torch.zeros(dim, dtype=dtype))
        return cls(policy, [LATENT], torch.zeros_like(prior), prior)

    @property
    def dim(self) -> int:
        """Number d of parameters in the posterior."""
        return self.prior_mean.numel()

    @property
    def variance(self) -> Tensor:
        """Variances s."""
        return self.log_variance.exp()

    @property
    def shift(self) -> Tensor:
        """(μ - μ₀)/√s₀, the distance moved in standard deviations of the prior."""
        return (self.mean - self.prior_mean) / self.prior_variance.sqrt()

    @property
    def log_ratio(self) -> Tensor:
        """ln(s/s₀)."""
        return self.log_variance - self.prior_variance.log()

    def sample(self, k: int, rng: np.random.Generator) -> Tensor:
        """Draw k parameter vectors w ~ P, as a (k, d) float64 tensor."""
        return self.weights(torch.from_numpy(rng.standard_normal((k, self.dim))))

    def weights(self, noise: Tensor) -> Tensor:
        """Return w = μ + √s z for standard normal noise z; differentiable in ψ."""
        return self.mean + torch.exp(0.5 * self.log_variance) * noise

    def call(self, weights: Tensor, *inputs: Any) -> Any:
        """Return the output of the policy with one parameter vector (d,); differentiable in it."""
        return torch.func.functional_call(self._module, self._unflatten(weights), inputs)

    def apply(self, weights: Tensor, *inputs: Any) -> Any:
        """Return the outputs of k policies (k, d) for the same inputs, stacked along a new first axis."""
        return torch.func.vmap(lambda w: self.call(w, *inputs))(weights)

    def policy(self, weights: Tensor) -> nn.Module:
        """Return a stand-alone module, in evaluation mode, with one parameter vector (d,) put in."""
        module = copy.deepcopy(self._module)
        state = module.state_dict()  # its tensors share memory with the module's
        for name, value in self._unflatten(weights.detach()).items():
            state[name].copy_(value)
        return module

    def flatten(self, state: Mapping[str, Tensor]) -> Tensor:
        """Return the parameter vector (d,) in the ``state_dict`` of a policy."""
        return torch.cat([state[name].reshape(-1).double() for name in self.names])

    def _unflatten(self, weights: Tensor) -> dict[str, Tensor]:
        parts = torch.split(weights, [shape.numel() for shape, _ in self._forms])
        formed = zip(self.names, parts, self._forms, strict=True)
        return {name: part.reshape(shape).to(dtype) for name, part, (shape, dtype) in formed}

    # Divergences, by the functions that certificates use; for gradients see boundwatch.training.objectives

    def renyi_divergence(self) -> float:
        """Return D₂(P‖P₀), computed by `boundwatch.bounds.renyi_divergence`."""
        return bounds.renyi_divergence(*self._moments())

    def kl_divergence(self) -> float:
        """Return KL(P‖P₀), computed by `boundwatch.bounds.kl_divergence`."""
        return bounds.kl_divergence(*self._moments())

    def log_density_ratio(self, weights: Tensor) -> float:
        """Return ln P(w)/P₀(w) of one parameter vector, by `boundwatch.bounds.log_density_ratio`."""
        return bounds.log_density_ratio(_numpy(weights), *self._moments())

    def _moments(self) -> tuple[NDArray[np.float64], ...]:
        return tuple(map(_numpy, (self.mean, self.variance, self.prior_mean, self.prior_variance)))

    def move(self, mean: Tensor, log_variance: Tensor) -> None:
        """Set ψ, with the variances projected into s < 2 s₀, where D₂ is finite."""
        ceiling = (2 * (1 - _VARIANCE_MARGIN) * self.prior_variance).log()
        self.mean, self.log_variance = mean.detach(), torch.minimum(log_variance.detach(), ceiling)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write posterior, prior and the frozen parameters to a safetensors file; return its SHA-256.

        **Guarantee**: equal posteriors give equal bytes. The file holds numbers and names, nothing that runs.
        """
        return tensorfile.save(path, *self._content())

    def sha256(self) -> str:
        """Return the SHA-256 of the file that `save` would write."""
        return tensorfile.sha256(*self._content())

    @classmethod
    def load(cls, path: str | os.PathLike[str], module: nn.Module) -> GaussianPosterior:
        """Read a posterior that `save` wrote; ``module`` gives the architecture, the file all parameters."""
        tensors, metadata = tensorfile.load(path, _KIND)
        try:
            names, over = json.loads(metadata["names"]), metadata["over"]
            psi = [tensors.pop(name) for name in _PSI]
        except (KeyError, ValueError) as error:
            raise SchemaMismatch(f"{path} is not a whole posterior ({error} is missing)") from error
        dim = psi[0].numel()
        if not all(t.shape == (dim,) and t.dtype == torch.float64 and bool(t.isfinite().all()) for t in psi):
            raise SchemaMismatch(f"{path} holds a mean or variances that are not {dim} finite numbers each")
        if over == LATENT:
            posterior = cls.over_latent(module, dim, prior_variance=_numpy(psi[3]))
        else:
            posterior = cls.over(module, names, prior_variance=_numpy(psi[3]))
        posterior.mean, posterior.log_variance, posterior.prior_mean, posterior.prior_variance = psi
        state = {name.removeprefix("module."): tensor for name, tensor in tensors.items()}
        load_state(posterior._module, state, set(posterior.names), str(path))
        return posterior

    def _content(self) -> tuple[Mapping[str, Tensor], Mapping[str, str]]:
        tensors = {name: getattr(self, name) for name in _PSI}
        state = self._module.state_dict()
        frozen = {f"module.{name}": value for name, value in state.items() if name not in self.names}
        over = LATENT if isinstance(self._module, LatentPolicy) else "parameters"
        return tensors | frozen, {"kind": _KIND, "over": over, "names": json.dumps(self.names)}


def _choose(module: nn.Module, parameters: Iterable[str] | None) -> dict[str, Tensor]:
    available: dict[str, Tensor] = dict(module.named_parameters())
    if not available:
        raise InvalidSetting(
            f"module = {type(module).__name__} has no parameters; use over_latent, or give it some"
        )
    if parameters is None:
        return available
    chosen: set[str] = set()
    for name in [parameters] if isinstance(parameters, str) else parameters:
        matches = {n for n in available if n == name or n.startswith(f"{name}.")}
        if not matches:
            known = ", ".join(available)
            raise InvalidSetting(f"parameters: {name!r} is not in the module; choose from {known}")
        chosen |= matches
    if not chosen:
        raise InvalidSetting("parameters is empty; name at least one, or leave it out for all")
    return {name: value for name, value in available.items() if name in chosen}


def _check_variance(prior_variance: ArrayLike, dim: int) -> Tensor:
    values = np.array(prior_variance, dtype=np.float64)
    if values.shape not in ((), (dim,)):
        raise InvalidSetting(f"prior_variance has shape {values.shape}; give one number, or {dim}")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidSetting(f"prior_variance = {values.min()} is not a positive number; choose e.g. 0.01")
    return torch.from_numpy(np.broadcast_to(values, (dim,)).copy())


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.detach().double().numpy()
