"""Tells you, with a guaranteed error rate, whether a policy does worse in a new place than in testing.

Certify a policy's expected cost, then compare the costs of new episodes with the certificate::

    import boundwatch as bw

    certificate = bw.Certificate.from_held_out(costs, delta=0.01)
    finding = bw.HypothesisTest(certificate).decide(new_costs)
"""

import typing as _typing

from boundwatch import bounds, errors
from boundwatch._support.notebook import show_with as _show_with
from boundwatch._version import __version__
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.provenance import Provenance
from boundwatch.comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison, Ranking, rank
from boundwatch.detectors import (
    ChangeDetector,
    ConfidenceInterval,
    FamilyFinding,
    FamilyTest,
    Finding,
    Fleet,
    HypothesisTest,
    PredictedTest,
    SequentialTest,
    Verdict,
)
from boundwatch.episodes.design import Design
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import Measure
from boundwatch.planning import ComparisonPlan, Plan, TrialPlan, plan, plan_comparison, plan_trials
from boundwatch.readers import read_costs
from boundwatch.reporting import views as _views

if _typing.TYPE_CHECKING:  # editors know what `__getattr__` will import
    from boundwatch import gym as gym
    from boundwatch import prediction as prediction
    from boundwatch import testing as testing
    from boundwatch import training as training
    from boundwatch.server.client import Client as Client

__all__ = [
    "Campaign",
    "Certificate",
    "CertificateFamily",
    "ChangeDetector",
    "ComparisonFinding",
    "ComparisonPlan",
    "ComparisonVerdict",
    "ConfidenceInterval",
    "Design",
    "Episodes",
    "FamilyFinding",
    "FamilyTest",
    "Finding",
    "Fleet",
    "HypothesisTest",
    "Measure",
    "Plan",
    "PolicyComparison",
    "PredictedTest",
    "Provenance",
    "Ranking",
    "SequentialTest",
    "TrialPlan",
    "Verdict",
    "__version__",
    "bounds",
    "errors",
    "plan",
    "plan_comparison",
    "plan_trials",
    "rank",
    "read_costs",
]


_show_with(_views)  # certificates and findings stand below the words and figures that show them

_LATER = {
    "Client": "boundwatch.server.client",
    "gym": None,
    "prediction": None,
    "testing": None,
    "training": None,
}
"""What few need and takes long to import, with the module that has it; modules are imported themselves."""


def __getattr__(name: str) -> _typing.Any:
    """Import a name of `_LATER` when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'boundwatch' has no attribute {name!r}")
    from importlib import import_module

    home = _LATER[name]
    found = import_module(f"boundwatch.{name}") if home is None else getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names and nothing else."""
    return sorted([*__all__, *_LATER])
