"""Detectors: compare the costs of new episodes with a certificate. Open `base` first."""

from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.change import ChangeDetector, ChangeFinding
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.family import FamilyFinding, FamilyTest, TaskFinding
from boundwatch.detectors.fixed_sample import Findings
from boundwatch.detectors.fleet import Fleet, StreamFinding
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.predicted import PredictedFinding, PredictedTest
from boundwatch.detectors.sequential import SequentialFinding, SequentialTest

__all__ = [
    "ChangeDetector",
    "ChangeFinding",
    "ConfidenceInterval",
    "FamilyFinding",
    "FamilyTest",
    "Finding",
    "Findings",
    "Fleet",
    "HypothesisTest",
    "PredictedFinding",
    "PredictedTest",
    "SequentialFinding",
    "SequentialTest",
    "StreamFinding",
    "TaskFinding",
    "Verdict",
]
