"""The settings of one training, and what environments are drawn for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from boundwatch._support.validation import check_choices, check_level
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.distributions import distribution


class Draw(IntEnum):
    """What environments are drawn for; different purposes are independent under the same seed."""

    PRIOR = 0
    TRAINING = 1
    DEPLOYMENT = 2


@dataclass(frozen=True)
class Recipe:
    """Everything about one training; the defaults are the full setting."""

    d_thresh: float = 0.5
    """Clearance from which a flight costs nothing, meters."""
    distribution: str = "training"
    """Where the policy is trained and certified."""
    environments: int = 10_000
    """Training environments, for posterior and certificate."""
    prior_distribution: str = "training"
    """Where the prior is trained."""
    prior_environments: int = 10_000
    """Environments for the prior; disjoint from the training environments."""
    prior_loss: Literal["cross-entropy", "expected-cost"] = "cross-entropy"
    """The paper's, against softmax labels of the clearances; or the expected cost under the network's
    softmax."""
    label_temperature: float = 0.2
    """Of the softmax labels, in units of d_thresh."""
    prior_steps: int = 1600
    """Steps of the prior's training; the last third runs at a tenth of the learning rate."""
    prior_batch: int = 128
    """Environments in each of them."""
    prior_rate: float = 2e-3
    """Learning rate."""
    directions: int = 0
    """Principal components in the posterior, besides one offset per primitive."""
    prior_log_variance: float = -5.0
    """Logarithm of the prior's variance along each direction."""
    steps: int = 300
    """Steps of Algorithm 3."""
    samples: int = 4
    """Policies in each of them."""
    rate: float = 0.02
    """Learning rate, in standard deviations of the prior."""
    sharpness: float = 4.0
    """The surrogate cost is the expected cost under a softmax of this many times the logits."""
    bound: Bound = "pointwise"
    """What is minimized and certified."""
    delta: float = 0.01
    """Probability with which the certificate may fail."""
    seed: int = 1
    """Of everything random."""

    def __post_init__(self) -> None:
        for name in ("environments", "prior_environments"):
            if getattr(self, name) < 100:
                raise InvalidSetting(f"{name} = {getattr(self, name)} is below 100; training needs more")
        if self.seed < 0:
            raise InvalidSetting(f"seed = {self.seed} is below 0; choose 0 or more")
        if not 0.0 < self.d_thresh < math.inf:
            raise InvalidSetting(f"d_thresh = {self.d_thresh} is not above 0; give it in meters")
        check_choices(self)
        check_level(self.delta, "delta")
        for name in (self.distribution, self.prior_distribution):
            distribution(name)  # refuses what it does not know


QUICK = Recipe(environments=4_000, prior_environments=4_000, prior_steps=600, steps=150)
"""Small enough to wait for: a third of the time, for bounds 0.01 looser."""
