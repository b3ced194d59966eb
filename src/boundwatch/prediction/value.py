"""The value function of a Stable-Baselines3 model, read as a prediction of the cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.errors import InvalidSetting, MissingExtra
from boundwatch.prediction.predictor import Predictor, calibrate


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
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("boundwatch.prediction.value_function", "train") from error
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
