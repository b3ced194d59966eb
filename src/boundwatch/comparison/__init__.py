"""Which policy is better? Two policies while their trials come in, or several at once."""

from boundwatch.comparison.finding import ComparedTasks, ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.once import compare_once
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.comparison.ranking import RankedPair, RankedPolicy, Ranking, rank

__all__ = [
    "ComparedTasks",
    "ComparisonFinding",
    "ComparisonVerdict",
    "PolicyComparison",
    "RankedPair",
    "RankedPolicy",
    "Ranking",
    "compare_once",
    "rank",
]
