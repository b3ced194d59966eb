"""Costs from Gymnasium environments (extra ``gym``): roll a policy out, or watch it while it runs.

`rollout` runs a fixed number of seeded episodes; `watch` wraps an environment and feeds a detector that may
be read after every episode. Both take single and vector environments, in every autoreset mode.
"""

from boundwatch.gym.episode import CostRule, Episode
from boundwatch.gym.rollout import first_observations, rollout
from boundwatch.gym.stepping import WatchedEnv, WatchedVectorEnv, watch

__all__ = ["CostRule", "Episode", "WatchedEnv", "WatchedVectorEnv", "first_observations", "rollout", "watch"]
