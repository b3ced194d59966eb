"""Tells you, with a guaranteed error rate, when a policy has met a world that is worse for its task.

Certify a policy's expected cost, then compare the costs of new episodes with the certificate::

    import boundwatch as bw

    certificate = bw.Certificate.from_held_out(costs, delta=0.01)
    finding = bw.HypothesisTest(certificate).decide(new_costs)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from boundwatch import bounds, errors
from boundwatch._version import __version__
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.provenance import Provenance
from boundwatch.comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison, Ranking, rank
from boundwatch.detectors import (
    ChangeDetector,
    ChangeFinding,
    ConfidenceInterval,
    FamilyFinding,
    FamilyTest,
    Finding,
    Findings,
    Fleet,
    HypothesisTest,
    PredictedFinding,
    PredictedTest,
    SequentialFinding,
    SequentialTest,
    StreamFinding,
    TaskFinding,
    Verdict,
)
from boundwatch.planning import Plan, plan
from boundwatch.planning.comparison import ComparisonPlan, plan_comparison

if TYPE_CHECKING:  # editors know what `__getattr__` will import
    from boundwatch import gymnasium as gymnasium
    from boundwatch import testing as testing
    from boundwatch.server.client import Client as Client

__all__ = [
    "Campaign",
    "Certificate",
    "CertificateFamily",
    "ChangeDetector",
    "ChangeFinding",
    "ComparisonFinding",
    "ComparisonPlan",
    "ComparisonVerdict",
    "ConfidenceInterval",
    "FamilyFinding",
    "FamilyTest",
    "Finding",
    "Findings",
    "Fleet",
    "HypothesisTest",
    "Plan",
    "PolicyComparison",
    "PredictedFinding",
    "PredictedTest",
    "Provenance",
    "Ranking",
    "SequentialFinding",
    "SequentialTest",
    "StreamFinding",
    "TaskFinding",
    "Verdict",
    "__version__",
    "bounds",
    "errors",
    "plan",
    "plan_comparison",
    "rank",
]


def __getattr__(name: str) -> Any:
    """Import what few need when it is first used: ``bw.Client``, ``bw.gymnasium``, ``bw.testing``, …."""
    if name == "Client":
        return import_module("boundwatch.server.client").Client
    if name in ("gymnasium", "testing", "training"):
        return import_module(f"boundwatch.{name}")
    raise AttributeError(f"module 'boundwatch' has no attribute {name!r}")
