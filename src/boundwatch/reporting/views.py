"""What `print`, notebooks and `plot()` show of certificates, findings and rankings.

Those stand below this package: `boundwatch._support.notebook` imports it when the first one is shown.
Figures are imported when the first one is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundwatch.comparison.finding import ComparedTasks, ComparisonFinding
from boundwatch.comparison.ranking import Ranking
from boundwatch.reporting import compared, wording

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def headline(subject: Any) -> str:
    """Say an object in one sentence."""
    if isinstance(subject, Ranking):
        return compared.ranking_headline(subject)
    is_compared = isinstance(subject, ComparisonFinding | ComparedTasks)
    return compared.comparison_headline(subject) if is_compared else wording.headline(subject)


def rows(subject: Any) -> list[tuple[str, str]] | None:
    """Return the table of an object, or None where its fields are the table."""
    return compared.comparison_evidence(subject) if isinstance(subject, ComparisonFinding) else None


def plot(subject: Any) -> Figure:
    """Draw an object."""
    from boundwatch.reporting import plots

    return plots.plot(subject)
