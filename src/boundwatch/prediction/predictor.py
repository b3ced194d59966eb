"""What predicts costs from scenes: a fitted curve of a score, a critic, a value function, or a twin."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from boundwatch._support.describing import one_line
from boundwatch._support.parallel import Backend, check_workers
from boundwatch._support.validation import check_costs
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra
from boundwatch.tasks.base import Rollout

if TYPE_CHECKING:
    from torch import Tensor, nn

Array = NDArray[np.float64]
Score = Callable[[Any], ArrayLike]
# Newton's method on two coefficients; the ridge keeps them finite where a score separates the costs.
_STEPS = 50
_RIDGE = 1e-3
_BATCH = 1024


@dataclass(frozen=True)
class Predictor:
    """Predicts costs from scenes: a logistic curve of a score, so always a number in [0, 1].

    A good one saves real trials, a bad one costs some. The guarantee of `boundwatch.PredictedTest` does not
    depend on it. **Assumes**, as that test does, that it sees the scene that is run and those that are not in
    the same way: predict them in one call.

    ``score`` maps scenes to one finite number each; the prediction is ``expit(offset + slope * score)``.
    ``correlation`` is that between predictions and costs in the rollouts that the curve was fitted to. What
    it promises in trials is in ``docs/before-it-fails.md``; in a new world it may be lower.
    """

    score: Score
    slope: float
    offset: float
    correlation: float | None = None

    def __str__(self) -> str:
        known = "unknown" if self.correlation is None else f"{self.correlation:.3g}"
        return f"Predictor with slope {self.slope:.4g}; the correlation with costs is {known}"

    def __call__(self, scenes: Any) -> Array:
        """Return the predicted costs of some scenes, one each."""
        return np.asarray(expit(self.offset + self.slope * _check_scores(self.score(scenes))))


def calibrate(score: Score, scenes: Any, costs: ArrayLike) -> Predictor:
    """Fit the curve from a score to costs, by logistic regression on rollouts of the certified world.

    The score maps scenes to one number each, on any scale and in either direction; ``costs``, in [0, 1], are
    what the policy cost in these scenes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clutter = rng.integers(0, 10, 400)
    >>> failed = rng.random(400) < clutter / 12
    >>> predict = calibrate(lambda scenes: scenes, clutter, failed.astype(float))
    >>> predict(np.array([0, 5, 9])).round(1).tolist(), round(predict.correlation, 1)
    ([0.1, 0.4, 0.8], 0.5)
    """
    scores, known = _check_scores(score(scenes)), check_costs(costs)
    if scores.size != known.size:
        problem = f"{scores.size} scores, {known.size} costs"
        raise InvalidSetting(problem, remedy="give one scene per cost")
    # In standard units, so that the ridge means the same on every scale; a constant score has no slope.
    spread = float(scores.std())
    if spread > 1e-12 * max(1.0, float(np.abs(scores).max())):
        slope, offset = _logistic((scores - scores.mean()) / spread, known)
        slope, offset = slope / spread, offset - slope * float(scores.mean()) / spread
    else:
        slope, offset = 0.0, _logistic(np.zeros_like(scores), known)[1]
    return Predictor(score, slope, offset, _correlation(expit(offset + slope * scores), known))


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
    torch = _torch("train_critic")
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
        loss: Tensor = torch.nn.functional.binary_cross_entropy_with_logits(logits, costs)
        return loss

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


def value_function(model: Any, scenes: Any, costs: ArrayLike) -> Predictor:
    """Return a predictor made of the value that a Stable-Baselines3 model gives to first observations.

    PPO and A2C: ``policy.predict_values``. SAC, TD3 and DDPG: the smallest of their critics' values for the
    action that the policy takes. A low value is a high cost; how high is fitted to rollouts.

    Parameters
    ----------
    model
        The trained model. If it was trained on normalized observations, give such observations here, too.
    scenes, costs
        First observations of episodes in the certified world, such as `boundwatch.gym.first_observations`
        returns, and what those episodes cost, in [0, 1].

    Examples
    --------
    >>> import boundwatch as bw
    >>> import gymnasium
    >>> from stable_baselines3 import PPO
    >>> env = gymnasium.make("CartPole-v1")
    >>> model = PPO("MlpPolicy", env, n_steps=64, batch_size=64, seed=0, device="cpu")
    >>> costs = bw.gym.rollout(env, model.predict, 20, cost=(0, 500))
    >>> predict = value_function(model, bw.gym.first_observations(env, 20), costs)
    >>> predict(bw.gym.first_observations(env, 3, seed=1)).shape
    (3,)
    """
    torch = _torch("value_function")
    policy = getattr(model, "policy", None)
    on_policy, off_policy = hasattr(policy, "predict_values"), hasattr(policy, "critic")
    if policy is None or not (on_policy or off_policy):
        name = type(model).__name__
        raise InvalidSetting(f"model = {name} has no policy with predict_values or a critic; use calibrate()")

    def score(scenes: Any) -> NDArray[np.float64]:
        policy.set_training_mode(False)
        with torch.no_grad():
            observations, _ = policy.obs_to_tensor(scenes)
            if on_policy:
                values = policy.predict_values(observations).reshape(-1)
            else:
                actions = policy._predict(observations, deterministic=True)
                values = torch.cat(policy.critic(observations, actions), dim=1).min(dim=1).values
            result: NDArray[np.float64] = -values.double().cpu().numpy()
            return result

    return calibrate(score, scenes, costs)


@dataclass(frozen=True)
class Twin:
    """Predicts the cost of a scene as the mean cost of simulated rollouts of the same policy in it.

    **Assumes**: the simulator's randomness has nothing to do with the real trial's. To try it out where the
    "real" trial is simulated, too, give the two different seeds; the twin would know the outcome otherwise.

    It simulates ``repeats`` times per scene; all else is as for `boundwatch.training.Rollouts`.

    Examples
    --------
    >>> from torch import nn
    >>> def rollout(policy, scene, rng):  # clutter makes it fail
    ...     return float(rng.random() < scene["clutter"] / 10)
    >>> twin = Twin(rollout, nn.Identity(), repeats=50)
    >>> twin([{"clutter": 0}, {"clutter": 10}]).round(1).tolist()
    [0.0, 1.0]
    """

    rollout: Rollout[Any]
    policy: nn.Module
    repeats: int = 10
    seed: int = 0
    jobs: int = 1
    backend: Backend = "loky"

    def __post_init__(self) -> None:
        check_workers(self.jobs, self.backend)
        if self.repeats < 1:
            raise InvalidSetting(f"repeats = {self.repeats} is below 1; simulate each scene at least once")

    def __repr__(self) -> str:
        return one_line(self, vars(self))

    def __str__(self) -> str:
        return f"Twin that simulates {type(self.policy).__name__} {self.repeats} times in each scene"

    def __call__(self, scenes: Sequence[Any]) -> NDArray[np.float64]:
        """Return the predicted costs of some scenes, one each."""
        from boundwatch.training import Rollouts

        # Equal environments of one set have generators of their own, so repeats are simply more environments.
        repeated = [scene for scene in scenes for _ in range(self.repeats)]
        rollouts = Rollouts(self.rollout, repeated, seed=self.seed, jobs=self.jobs, backend=self.backend)
        means: NDArray[np.float64] = rollouts(self.policy).reshape(len(scenes), self.repeats).mean(axis=1)
        return means


def _torch(needed_by: str) -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra(f"boundwatch.prediction.{needed_by}", "train") from error
    return torch


def _check_scores(scores: ArrayLike) -> Array:
    """Return scores as one finite number per scene, or say which is not."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.size == 0:
        problem = f"a predictor returned a shape {values.shape}"
        raise InvalidSetting(problem, remedy="return one number per scene")
    bad = ~np.isfinite(values)
    if bad.any():
        place = int(np.argmax(bad))
        problem = f"a predictor returned {values[place]} for scene {place}"
        raise InvalidCost(problem, remedy="return finite numbers")
    return values


def _logistic(scores: Array, costs: Array) -> tuple[float, float]:
    """Return slope and offset of the least cross-entropy."""
    features = np.stack([scores, np.ones_like(scores)])
    weights = np.zeros(2)
    for _ in range(_STEPS):
        rates = expit(weights @ features)
        gradient = features @ (rates - costs) / costs.size + _RIDGE * weights
        curvature = (features * (rates * (1 - rates))) @ features.T / costs.size + _RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-10:
            break
    return float(weights[0]), float(weights[1])


def _correlation(predictions: Array, costs: Array) -> float:
    if np.ptp(predictions) == 0 or np.ptp(costs) == 0:
        return 0.0
    return float(np.corrcoef(predictions, costs)[0, 1])
