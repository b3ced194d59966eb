"""The settings of one training, and what environments are drawn for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

import numpy as np

from boundwatch._support.validation import check_choices, check_level
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidSetting
from boundwatch.training.determinism import Stream, generator
from boundwatch.training.run import OptimizerName


class Draw(IntEnum):
    """What is drawn; different purposes are independent under the same seed."""

    DEMONSTRATIONS = 0
    RIM_ANGLES = 1
    PRIOR = 2
    PRIOR_LATENTS = 3
    TRAINING = 4
    DEPLOYMENT = 5


@dataclass(frozen=True)
class Recipe:
    """Everything about one training; the defaults are the full setting."""

    demonstrations: int = 4_500
    """Mugs on which the expert shows how to grasp."""
    clone_steps: int = 4_000
    """Steps of the autoencoder's training: half at the learning rate, a third at a quarter of it, the rest
    at a twentieth."""
    clone_batch: int = 16
    """Demonstrations in each of them."""
    clone_rate: float = 2e-3
    """Learning rate."""
    prior_environments: int = 500
    """Other mugs, on which the cloned policy is judged before training; used for nothing else."""
    environments: int = 500
    """Training environments, for posterior and certificate."""
    steps: int = 10
    """Steps of Algorithm 4; each runs every training environment twice, with opposite latent noise."""
    rate: float = 0.05
    """Learning rate of the latent mean."""
    variance_rate: float = 0.02
    """Learning rate of the latent log-variance."""
    optimizer: OptimizerName = "adam"
    """Adam, or steps along the natural gradient itself, the algorithm as printed."""
    bound: Bound = "pointwise"
    """What is minimized and certified."""
    delta: float = 0.01
    """Probability with which the certificate may fail."""
    seed: int = 0
    """Of everything random."""
    objects: Literal["mugs", "varied-mugs"] = "mugs"
    """What is grasped: mugs of one shape in many sizes, or of many shapes."""
    depth_noise: bool = False
    """Whether the camera sees as a real sensor does, with noise."""
    unsteadiness: float = 0.0
    """Standard deviation, meters, of the expert's grasps along the radius and in height."""
    sorted: bool = True
    """Whether demonstrations that failed are left out; if not, they are cloned with the others."""
    network: Literal["points", "features"] = "points"
    """The paper's, in which each channel of the convolutions is a point in the image, or a plain one."""

    def __post_init__(self) -> None:
        least = {"demonstrations": self.clone_batch, "clone_batch": 1, "clone_steps": 6, "environments": 8}
        for name, low in (least | {"prior_environments": 1, "steps": 1, "seed": 0}).items():
            if getattr(self, name) < low:
                raise InvalidSetting(f"{name} = {getattr(self, name)} is below {low}; training needs more")
        for name in ("clone_rate", "rate", "variance_rate", "unsteadiness"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf or (value == 0.0 and name != "unsteadiness"):
                raise InvalidSetting(f"{name} = {value} is not above 0; leave it out if in doubt")
        check_choices(self)
        check_level(self.delta, "delta")

    def generator(self, purpose: Draw, *index: int) -> np.random.Generator:
        """Return the generator for a purpose; other purposes, indices and plain seeds give other numbers."""
        return generator(self.seed, Stream.SCENES, purpose, *index)


HARDER = Recipe(
    demonstrations=4_000,
    clone_batch=32,
    prior_environments=200,
    rate=10.0,
    variance_rate=3.0,
    optimizer="sgd",
    objects="varied-mugs",
    depth_noise=True,
    unsteadiness=0.02,
    sorted=False,
    network="features",
)
"""Mugs of many shapes, seen through a real sensor's noise and shown by an unsteady hand."""
FEATURES: dict[str, Any] = {"network": "features", "demonstrations": 9_000}
FEATURES |= {"clone_steps": 3_000, "clone_batch": 128}
"""How the plain network is cloned where the paper's is the usual one."""
HARDER_POINTS: dict[str, Any] = {"network": "points", "clone_steps": 12_000, "clone_batch": 16}
"""How the paper's network is cloned in the harder world, where it learns more slowly."""
SMALL: dict[str, Any] = {"demonstrations": 1_000, "clone_steps": 800, "prior_environments": 50}
SMALL |= {"environments": 60, "steps": 2}
"""What makes a recipe small enough to wait for, for a looser certificate."""
