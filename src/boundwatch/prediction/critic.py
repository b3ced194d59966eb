"""A critic: a torch module that learns from the certified rollouts which scenes cost much."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.validation import check_costs
from boundwatch.errors import InvalidSetting, MissingExtra
from boundwatch.prediction.predictor import Predictor, calibrate

if TYPE_CHECKING:
    from torch import Tensor, nn

_BATCH = 1024


def train_critic(
    module: nn.Module,
    scenes: NDArray[Any] | Tensor,
    costs: ArrayLike,
    *,
    steps: int = 1000,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> Predictor:
    """Train a copy of a module to predict costs from scenes, and calibrate it on rollouts that it never saw.

    Three quarters of the rollouts, drawn at random, train it by cross-entropy with Adam. The last quarter
    fits the curve from its output to a cost and gives ``correlation``: read it before you rely on the critic.

    Parameters
    ----------
    module
        Maps a batch of scenes to one number per scene, on any scale.
    scenes
        Where the policy was rolled out, one row each: images, states, anything that the module takes. Bytes
        (``uint8`` images) become numbers in [0, 1], divided by 255; floating-point numbers get the precision
        of the module's parameters; other types are passed on as they are. The same is done to new scenes.
    costs
        What it cost there, in [0, 1]. The rollouts that certified the policy will do; trials that the critic
        will predict must not be among them.

    Examples
    --------
    >>> import torch
    >>> rng = np.random.default_rng(0)
    >>> scenes = rng.normal(size=(400, 3)).astype(np.float32)
    >>> costs = (rng.random(400) < 1 / (1 + np.exp(-3 * scenes[:, 0]))).astype(float)
    >>> critic = train_critic(torch.nn.Linear(3, 1), scenes, costs, steps=200, learning_rate=0.02)
    >>> easy, hard = critic(np.float32([[-1, 0, 0], [1, 0, 0]]))
    >>> bool(easy < 0.2 and hard > 0.8 and critic.correlation > 0.5)
    True
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("boundwatch.prediction.train_critic", "train") from error
    from boundwatch.training import train_prior
    from boundwatch.training.determinism import single_thread

    rows, known = torch.as_tensor(scenes), check_costs(costs)
    if len(rows) != known.size or known.size < 8:
        raise InvalidSetting(f"{len(rows)} scenes, {known.size} costs; give one scene per cost, at least 8")
    order = np.random.default_rng(seed).permutation(known.size)
    held_out, training = np.split(order, [max(known.size // 4, 2)])
    network = copy.deepcopy(module).requires_grad_(True).train()
    precision = next((p.dtype for p in network.parameters() if p.is_floating_point()), torch.float32)

    def as_input(scenes: Tensor) -> Tensor:
        if scenes.dtype == torch.uint8:
            return scenes.to(precision) / 255
        return scenes.to(precision) if scenes.is_floating_point() else scenes

    def cross_entropy(critic: nn.Module, scenes: Tensor, costs: Tensor) -> Tensor:
        logits = critic(as_input(scenes)).reshape(len(scenes))
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, costs)

    targets = torch.from_numpy(known[training]).float()
    train_prior(
        network,
        cross_entropy,
        (rows[training], targets),
        disjoint_from=(),  # nothing is promised about a critic
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        label="critic",
    )
    network.eval().requires_grad_(False)

    def score(scenes: Any) -> NDArray[np.float64]:
        with torch.inference_mode(), single_thread():
            batches = torch.split(torch.as_tensor(scenes), _BATCH)
            parts = [network(as_input(part)).reshape(len(part)) for part in batches]
            result: NDArray[np.float64] = torch.cat(parts).double().numpy()
            return result

    return calibrate(score, rows[held_out], known[held_out])
