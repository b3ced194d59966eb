"""Tells you, with a guaranteed error rate, whether a policy does worse in a new place than in testing.

Certify a policy's expected cost, then compare the costs of new episodes with the certificate::

    import boundwatch as bw

    certificate = bw.Certificate.from_held_out(costs, delta=0.01)
    finding = bw.HypothesisTest(certificate).decide(new_costs)
"""

import typing as _typing

from boundwatch._version import __version__

if _typing.TYPE_CHECKING:  # editors know what `__getattr__` will import
    from boundwatch import bounds, errors
    from boundwatch import gym as gym
    from boundwatch import prediction as prediction
    from boundwatch import testing as testing
    from boundwatch import training as training
    from boundwatch.certificates.campaign import Campaign
    from boundwatch.certificates.certificate import Certificate
    from boundwatch.certificates.family import CertificateFamily
    from boundwatch.certificates.judged import JudgedCampaign
    from boundwatch.certificates.record import Provenance
    from boundwatch.comparison import (
        ComparedTasks,
        ComparisonFinding,
        ComparisonVerdict,
        PolicyComparison,
        Ranking,
        compare_once,
        rank,
    )
    from boundwatch.detectors import (
        ChangeDetector,
        ConfidenceInterval,
        FamilyFinding,
        FamilyTest,
        Finding,
        Fleet,
        HypothesisTest,
        JudgedTest,
        PredictedTest,
        SequentialTest,
        Verdict,
    )
    from boundwatch.episodes.episodes import Episodes
    from boundwatch.episodes.measure import Design, Measure
    from boundwatch.evaluation import Audit, AuditFinding, Evaluation, Protocol
    from boundwatch.planning import ComparisonPlan, Plan, TrialPlan, plan, plan_comparison, plan_trials
    from boundwatch.planning.precision import WidthPlan, plan_width
    from boundwatch.readers import read_costs
    from boundwatch.server.client import Client as Client

__all__ = ["Campaign", "Certificate", "CertificateFamily", "Provenance", "__version__", "bounds", "errors"]
__all__ += ["JudgedCampaign"]
__all__ += ["Design", "Episodes", "Measure", "read_costs"]
__all__ += ["ComparedTasks", "ComparisonFinding", "ComparisonVerdict", "PolicyComparison", "Ranking"]
__all__ += ["compare_once", "rank"]
__all__ += ["ChangeDetector", "ConfidenceInterval", "FamilyFinding", "FamilyTest", "Finding", "Fleet"]
__all__ += ["HypothesisTest", "JudgedTest", "PredictedTest", "SequentialTest", "Verdict"]
__all__ += ["Audit", "AuditFinding", "Evaluation", "Protocol"]
__all__ += ["ComparisonPlan", "Plan", "TrialPlan", "plan", "plan_comparison", "plan_trials"]
__all__ += ["WidthPlan", "plan_width"]

_MODULES = ("bounds", "errors", "gym", "prediction", "testing", "training")
_HOMES = {
    "boundwatch.certificates.campaign": "Campaign",
    "boundwatch.certificates.certificate": "Certificate",
    "boundwatch.certificates.family": "CertificateFamily",
    "boundwatch.certificates.judged": "JudgedCampaign",
    "boundwatch.certificates.record": "Provenance",
    "boundwatch.comparison": "ComparedTasks ComparisonFinding ComparisonVerdict PolicyComparison Ranking "
    "compare_once rank",
    "boundwatch.detectors": "ChangeDetector ConfidenceInterval FamilyFinding FamilyTest Finding Fleet "
    "HypothesisTest JudgedTest PredictedTest SequentialTest Verdict",
    "boundwatch.episodes.episodes": "Episodes",
    "boundwatch.episodes.measure": "Design Measure",
    "boundwatch.evaluation": "Audit AuditFinding Evaluation Protocol",
    "boundwatch.planning": "ComparisonPlan Plan TrialPlan plan plan_comparison plan_trials",
    "boundwatch.planning.precision": "WidthPlan plan_width",
    "boundwatch.readers": "read_costs",
    "boundwatch.server.client": "Client",
}
"""What is imported when it is first used: the command line must be able to say that it was interrupted."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> _typing.Any:
    """Import a public name when it is first used."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"boundwatch.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'boundwatch' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    """Return the public names and nothing else."""
    return sorted({*__all__, *_MODULES, *_HOME_OF})
