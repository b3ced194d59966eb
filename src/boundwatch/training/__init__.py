"""Train a torch policy with a guarantee: a Gaussian posterior, Algorithms 3 and 4, and the certificate.

Open `posterior` first, then `backprop` (Algorithm 3) or `evolution` (Algorithm 4), then `certify`. The
tutorial is ``docs/training.md``.
"""

from boundwatch.errors import MissingExtra

try:
    import joblib as _joblib  # noqa: F401
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise MissingExtra("boundwatch.training", "train") from error

from boundwatch.training.backprop import train_backprop
from boundwatch.training.certify import certify
from boundwatch.training.environments import check_disjoint, environment_hash
from boundwatch.training.evolution import train_evolution
from boundwatch.training.policies import LatentPolicy, load_policy, save_policy
from boundwatch.training.posterior import GaussianPosterior
from boundwatch.training.prior import train_prior
from boundwatch.training.rollouts import Rollouts, TrainingCosts
from boundwatch.training.run import History

__all__ = ["GaussianPosterior", "History", "LatentPolicy", "Rollouts", "TrainingCosts", "certify"]
__all__ += ["check_disjoint", "environment_hash", "load_policy", "save_policy"]
__all__ += ["train_backprop", "train_evolution", "train_prior"]
