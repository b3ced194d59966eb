"""Detectors: compare the costs of new episodes with a certificate. Open `base` first."""

from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import Findings
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.sequential import SequentialFinding, SequentialTest

__all__ = [
    "ConfidenceInterval",
    "Finding",
    "Findings",
    "HypothesisTest",
    "SequentialFinding",
    "SequentialTest",
    "Verdict",
]
