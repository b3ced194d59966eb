"""What `print`, notebooks and `plot()` show of certificates, findings and rankings.

Those stand below this package: `boundwatch._support.notebook` imports it when the first one is shown.
Figures are imported when the first one is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boundwatch.comparison.finding import ComparisonFinding
from boundwatch.comparison.ranking import Ranking

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def headline(subject: Any) -> str:
    """Say an object in one sentence."""
    from boundwatch.reporting import comparison, wording

    if isinstance(subject, Ranking):
        return comparison.ranking_headline(subject)
    compared = isinstance(subject, ComparisonFinding)
    return comparison.comparison_headline(subject) if compared else wording.headline(subject)


def rows(subject: Any) -> list[tuple[str, str]] | None:
    """Return the table of an object, or None where its fields are the table."""
    from boundwatch.reporting import comparison

    return comparison.comparison_evidence(subject) if isinstance(subject, ComparisonFinding) else None


def plot(subject: Any) -> Figure:
    """Draw an object."""
    from boundwatch.reporting import comparison_plots, plots

    if isinstance(subject, Ranking):
        return comparison_plots.plot_ranking(subject)
    compared = isinstance(subject, ComparisonFinding)
    return comparison_plots.plot_difference(subject) if compared else plots.plot(subject)
