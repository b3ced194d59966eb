"""Detectors: compare the costs of new episodes with a certificate. Open `base` first."""

from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest
from boundwatch.detectors.fleet import Fleet
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.judged_test import JudgedTest
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.verdicts import Finding, Verdict

__all__ = [
    "ChangeDetector",
    "ConfidenceInterval",
    "FamilyFinding",
    "FamilyTest",
    "Finding",
    "Fleet",
    "HypothesisTest",
    "JudgedTest",
    "PredictedTest",
    "SequentialTest",
    "Verdict",
]
