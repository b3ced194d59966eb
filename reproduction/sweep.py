"""What the figures over difficulty share: settings, datasets, stacked bars, and words for differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reproduction import style
from reproduction.artifacts import Artifact, Cache
from reproduction.figure import percent
from reproduction.judging import Array, Shift, Tally, sizes_of, split
from reproduction.navigation import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VISIBLE = 0.05
"""What a difference of mean shares of datasets must be at least, to be visible in a figure."""
IN_PART = "in part: one of the two"


@dataclass(frozen=True)
class SweepSettings:
    """What is computed."""

    sweep: Sweep = field(default_factory=Sweep)
    """Policy and settings of difficulty."""
    sizes: tuple[int, ...] = (10, 50)
    """Trials in a dataset: what the paper says, and what its figure fits."""

    def datasets(self, cache: Cache) -> Iterator[tuple[str, Array, Shift]]:
        """Yield every setting's name, datasets of each size, and true shift; the training's first."""
        for name in ("training", *self.sweep.settings):
            costs, shift = self.sweep.flights(name).costs(cache), true_shift(self.sweep, name, cache)
            for n in self.sizes:
                yield name, split(costs, n, self.sweep.datasets), shift


def artifacts(settings: SweepSettings) -> Sequence[Artifact]:
    """Return what a figure over difficulty takes from the cache."""
    return settings.sweep.artifacts()


def certified(sweep: Sweep, cache: Cache) -> dict[str, float]:
    """Return the certificate's limits, and the upper limit that Theorem 1 as printed gives instead."""
    trained = sweep.policy.load(cache)
    return {
        "lower": trained.certificate.lower,
        "upper": trained.certificate.upper,
        "delta": trained.certificate.delta,
        "theorem_1": trained.summary["trained"]["upper_pinsker"],
    }


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

    Parameters
    ----------
    reached
        Sizes of shifts, and whether each does.

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


def draw_verdicts(panels: Mapping[str, Sequence[Tally]], width: float, bold: str) -> Figure:
    """Draw stacked bars: panels, by title, beside each other, numbers of trials below each other."""
    sizes = sizes_of(row for rows in panels.values() for row in rows)
    figure = style.new_figure(width, 0.8 + 3.1 * len(sizes))
    grid = figure.subplots(len(sizes), len(panels), sharey=True, squeeze=False)
    for above, n in zip(grid, sizes, strict=True):
        for axes, (title, rows) in zip(above, panels.items(), strict=True):
            style.verdict_bars(axes, [row for row in rows if row.n == n], title.format(n=n))
        above[0].set_ylabel("share of datasets")
        if n == sizes[-1]:
            for axes in above:
                axes.set_xlabel(f"true shift of the expected cost (bold: {bold})")
    style.verdict_legend(figure)
    return figure
