"""What a policy must be, and its parameters in a file."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from boundwatch.errors import InvalidSetting, SchemaMismatch
from boundwatch.training import tensorfile

_KIND = "boundwatch.policy/1"
LATENT = "latent"


class LatentPolicy(nn.Module):
    """A policy whose network takes a latent vector beside the observation, with that vector fixed."""

    latent: Tensor

    def __init__(self, network: nn.Module, latent: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer(LATENT, latent)

    def forward(self, *inputs: Any) -> Any:
        """Return the network's output for the inputs, with the latent vector as its last argument."""
        return self.network(*inputs, self.latent)


def save_policy(path: str | os.PathLike[str], policy: nn.Module) -> str:
    """Write a policy's parameters and buffers to a safetensors file; return its SHA-256.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digest = save_policy(f"{folder}/policy.safetensors", nn.Linear(3, 1))
    ...     policy = load_policy(f"{folder}/policy.safetensors", nn.Linear(3, 1))
    >>> len(digest), policy.training
    (64, False)
    """
    return tensorfile.save(path, policy.state_dict(), {"kind": _KIND})


@contextmanager
def unchanged(policy: nn.Module) -> Iterator[None]:
    """Refuse a policy whose ``state_dict`` the block changes: it would not be clear which was certified."""
    before = tensorfile.sha256(policy.state_dict())
    yield
    if tensorfile.sha256(policy.state_dict()) != before:
        raise InvalidSetting(
            f"rolling out {type(policy).__name__} changed its state_dict; freeze statistics and counters, "
            "and keep the memory of a recurrent policy in a plain attribute or a buffer with "
            "persistent=False, reset when an episode begins"
        )


def load_policy(path: str | os.PathLike[str], module: nn.Module) -> nn.Module:
    """Return a copy of ``module``, in evaluation mode, with the parameters that `save_policy` wrote."""
    tensors, _ = tensorfile.load(path, _KIND)
    policy = copy.deepcopy(module)
    if LATENT in tensors and LATENT not in module.state_dict():
        policy = LatentPolicy(policy, torch.zeros_like(tensors[LATENT]))
    load_state(policy, tensors, set(), str(path))
    return policy.eval().requires_grad_(False)


def load_state(module: nn.Module, tensors: Mapping[str, Tensor], inside: set[str], path: str) -> None:
    """Copy tensors into a module's parameters and buffers, all of them except those named ``inside``."""
    state = {name: value for name, value in module.state_dict().items() if name not in inside}
    forms, found = (
        {(name, value.shape, value.dtype) for name, value in part.items()} for part in (state, tensors)
    )
    if forms != found:
        wrong = min(name for name, *_ in forms ^ found)
        raise SchemaMismatch(f"{path} was written for another module: {wrong} differs; rebuild that module")
    for name, value in state.items():
        value.copy_(tensors[name])


def draw_first_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the first weights from a generator of our own; torch's layers draw theirs from the global one."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def refuse_batch_statistics(module: nn.Module) -> None:
    """Refuse layers by which the action in one environment depends on others: its cost is not defined."""
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None):
            where = f"layer {name!r}" if name else "the module itself"
            raise InvalidSetting(
                f"{where} ({type(layer).__name__}) normalizes by the statistics of its batch; "
                "call module.eval() first (with track_running_stats=True), or use GroupNorm or LayerNorm"
            )
