"""Which policy is better? Two policies while their trials come in, or several at once."""

from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.comparison.ranking import RankedPair, RankedPolicy, Ranking, rank

__all__ = [
    "ComparisonFinding",
    "ComparisonVerdict",
    "PolicyComparison",
    "RankedPair",
    "RankedPolicy",
    "Ranking",
    "rank",
]
