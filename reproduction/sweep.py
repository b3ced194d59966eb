"""What the figures over difficulty share: settings, datasets, stacked bars, and words for differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from reproduction import style
from reproduction.artifacts import Artifact, Cache
from reproduction.certification import Certified
from reproduction.figure import percent
from reproduction.judging import PAPERS_N, Detector, Shift, Tally, split, tally
from reproduction.navigation import NavigationPolicy, Sweep
from reproduction.recorded import Published

VISIBLE = 0.05
"""What a difference of mean shares of datasets must be at least, to be visible in a figure."""
IN_PART = "in part: one of the two"


@dataclass(frozen=True)
class OfSweep(Certified):
    """What is computed of a policy that is deployed in settings of varied difficulty."""

    sweep: Sweep = field(default_factory=Sweep)
    """The policy, and the flights that datasets are drawn from."""

    @property
    def policy(self) -> NavigationPolicy:
        """The sweep's."""
        return self.sweep.policy

    @property
    def names(self) -> tuple[str, ...]:
        """The distributions in which datasets are judged: training's, and every setting's."""
        return ("training", *self.sweep.settings)

    def artifacts(self) -> Sequence[Artifact]:
        """Return the flights in all of them, and in training."""
        return [self.sweep.flights(name) for name in dict.fromkeys(("training", *self.names))]


@dataclass(frozen=True)
class SweepSettings(OfSweep):
    """What is computed for a figure over difficulty."""

    sizes: tuple[int, ...] = (10, 50)
    """Trials in a dataset: what the paper's text says, and what the code behind its figures has."""

    def tallies(self, detectors: Sequence[Detector], cache: Cache) -> list[Tally]:
        """Judge the datasets of each distribution and size."""
        found = []
        for name in self.names:
            costs, shift = self.sweep.flights(name).costs(cache), true_shift(self.sweep, name, cache)
            for n in self.sizes:
                datasets = split(costs, n, self.sweep.datasets)
                found += [tally(detector, datasets, name, shift) for detector in detectors]
        return found


def true_shift(sweep: Sweep, distribution: str, cache: Cache) -> Shift:
    """Return how much more the policy pays than in training: in training nothing, by definition."""
    if distribution == "training":
        return Shift(0.0, 0.0)
    return Shift.between(*(sweep.flights(name).costs(cache) for name in (distribution, "training")))


def points(difference: float) -> str:
    """Return a difference of shares in words.

    Examples
    --------
    >>> points(0.05), points(0.01), points(-0.0126)
    ('5 points', '1 point', '-1.3 points')
    """
    number = percent(difference).removesuffix(" %")
    return f"{number} point" if number == "1" else f"{number} points"


def onset(reached: Mapping[float, bool]) -> float | None:
    """Return the smallest shift from which on all larger ones reach something; none if the largest does not.

    Examples
    --------
    >>> onset({0.1: True, 0.2: False, 0.3: True, 0.4: True}), onset({0.1: True, 0.2: False})
    (0.3, None)
    """
    smallest = None
    for size in sorted(reached, reverse=True):
        if not reached[size]:
            break
        smallest = size
    return smallest


@dataclass(frozen=True)
class Panel:
    """Stacked bars of one detector."""

    title: str
    """With ``{n}`` for the number of trials."""
    rows: Sequence[Tally]
    published: Mapping[str, Published]
    """What the authors published, by setting, at their number of trials."""


def draw_verdicts(panels: Sequence[Panel], width: float, bold: str) -> Figure:
    """Draw stacked bars: panels beside each other, numbers of trials below each other."""
    sizes = sorted({row.n for panel in panels for row in panel.rows})
    figure = style.new_figure(width, 0.8 + 3.1 * len(sizes))
    grid = figure.subplots(len(sizes), len(panels), sharey=True, squeeze=False)
    for above, n in zip(grid, sizes, strict=True):
        for axes, panel in zip(above, panels, strict=True):
            rows = [row for row in panel.rows if row.n == n]
            style.verdict_bars(axes, rows, panel.title.format(n=n), panel.published if n == PAPERS_N else {})
        above[0].set_ylabel("share of datasets")
    for axes in grid[-1]:
        axes.set_xlabel(f"true shift of the expected cost (bold: {bold})")
    style.verdict_legend(figure)
    return figure
