"""Which policy is better? Two policies while their trials come in, or several at once."""

from boundwatch.comparison.policy_comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison

__all__ = ["ComparisonFinding", "ComparisonVerdict", "PolicyComparison"]
