"""Beyond the paper: whether certificates fail as rarely as promised, and what each kind is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.bounds.pac_bayes import Variant
from reproduction import style
from reproduction.artifacts import Array, Artifact, Cache
from reproduction.figure import BaseSettings, Caption, Claim, Table, percent
from reproduction.judging import SIGNIFICANT
from reproduction.navigation import QUICK_SWEEP_SETTINGS, Sweep

NAME = "certificates"
TITLE = "Beyond the paper: certificates, promised against measured"
Limits = Callable[[Array, float], tuple[Array, Array]]


@dataclass(frozen=True)
class Settings(BaseSettings):
    """What is computed."""

    sweep: Sweep = field(default_factory=Sweep)
    """The policy; its flights in the training distribution are what certificates are drawn from."""
    sizes: tuple[int, ...] = (100, 1000)
    """Environments behind a certificate."""
    repetitions: int = 2000
    """Certificates of each kind and size."""
    delta: float = 0.1
    """What each may fail with: large, so that failures can be counted."""
    seed: int = 4
    """Of the draws."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return the flights in the training distribution."""
        return [self.sweep.flights("training")]


@dataclass(frozen=True)
class Repeated:
    """Certificates of one kind and size, drawn again and again."""

    n: int
    kind: str
    """Of the costs."""
    method: str
    truth: float
    failures: int
    gap: float
    """Upper limit minus truth, in the mean."""
    width: float


@dataclass(frozen=True)
class Results:
    """What came out."""

    delta: float
    repetitions: int
    rows: list[Repeated]


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS, sizes=(100,), repetitions=200)


def run(settings: Settings, cache: Cache) -> Results:
    """Certify again and again, from costs drawn with replacement, so that the true mean is known exactly."""
    costs = settings.sweep.flights("training").costs(cache)
    pools = {"bounded": costs, "binary": (costs == 1.0).astype(np.float64)}
    rows = []
    for index, n in enumerate(settings.sizes):
        # The experiment's name is part of the seed: nothing else draws the same numbers.
        rng = np.random.default_rng([settings.seed, *NAME.encode(), index])
        chosen = rng.integers(len(costs), size=(settings.repetitions, n))
        for kind, name, limits in _methods():
            pool = pools[kind]
            lower, upper = limits(pool[chosen], settings.delta)
            truth = float(pool.mean())
            failures = int(((lower > truth) | (upper < truth)).sum())
            gap, width = float((upper - truth).mean()), float((upper - lower).mean())
            rows.append(Repeated(n, kind, name, truth, failures, gap, width))
    return Results(settings.delta, settings.repetitions, rows)


def _methods() -> list[tuple[str, str, Limits]]:
    """Return kind of cost, name, and the two limits that hold together but for delta.

    Held-out limits give each side half of delta. The PAC-Bayes kinds are taken for a posterior that equals
    the prior, whose policy is certified on environments that it has not seen: nothing is paid for training.
    """
    return [
        ("bounded", "Theorem 1", _pac_bayes("pinsker")),
        ("bounded", "Theorem 1, kl", _pac_bayes("kl")),
        ("bounded", "pointwise", _pointwise),
        ("bounded", "held out, Hoeffding", _held_out(bounds.hoeffding_lower, bounds.hoeffding_upper, _means)),
        ("bounded", "held out, kl", _held_out(bounds.chernoff_lower, bounds.chernoff_upper, _means)),
        ("bounded", "held out, betting", _held_out(bounds.betting_lower, bounds.betting_upper, _costs)),
        (
            "binary",
            "held out, exact",
            _held_out(bounds.clopper_pearson_lower, bounds.clopper_pearson_upper, _sums),
        ),
    ]


def _held_out(lower: Callable[..., Array], upper: Callable[..., Array], read: Callable[..., Any]) -> Limits:
    return lambda rows, delta: (lower(*read(rows), delta / 2), upper(*read(rows), delta / 2))


def _costs(rows: Array) -> tuple[Array]:
    return (rows,)


def _means(rows: Array) -> tuple[Array, int]:
    return rows.mean(axis=1), rows.shape[1]


def _sums(rows: Array) -> tuple[Array, int]:
    return rows.sum(axis=1), rows.shape[1]


def _pac_bayes(method: Variant) -> Limits:
    def limits(rows: Array, delta: float) -> tuple[Array, Array]:
        means, n = rows.mean(axis=1).tolist(), rows.shape[1]
        lower = [bounds.pac_bayes_lower(mean, n, delta, 0.0, method) for mean in means]
        upper = [bounds.pac_bayes_upper(mean, n, delta, 0.0, method) for mean in means]
        return np.array(lower), np.array(upper)

    return limits


def _pointwise(rows: Array, delta: float) -> tuple[Array, Array]:
    means, n = _means(rows)
    complexity = bounds.pointwise_complexity(n, delta, 0.0)
    return bounds.kl_inverse_lower(means, complexity), bounds.kl_inverse_upper(means, complexity)


def draw(results: Results) -> Figure:
    """Draw measured failure rates against the promise, and the gap to the truth."""
    sizes = sorted({row.n for row in results.rows})
    methods = list(dict.fromkeys(row.method for row in results.rows))
    figure = style.new_figure(10, 4)
    left, right = figure.subplots(1, 2, sharey=True)
    looks = ({"color": "#0072B2", "marker": "o"}, {"color": "#D55E00", "marker": "s"})
    for look, aside, n in zip(looks, (-0.14, 0.14), sizes, strict=False):
        rows = [row for row in results.rows if row.n == n]
        places = [methods.index(row.method) + aside for row in rows]  # beside, not upon each other
        rates = [row.failures / results.repetitions for row in rows]
        left.plot(rates, places, linestyle="", markersize=7, label=f"{n:,} environments", **look)
        right.plot([row.gap for row in rows], places, linestyle="", markersize=7, **look)
    left.axvline(results.delta, **style.PROMISE, label="promised: at most")
    left.set_yticks(range(len(methods)), methods)
    left.invert_yaxis()
    left.set(xlabel="share of certificates that fail", xlim=(-0.005, 1.15 * results.delta))
    right.set(xlabel="upper limit minus true expected cost, mean")
    right.set_xlim(0, None)
    for axes in (left, right):
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        style.bare(axes)
    style.legend_below(figure, left, 3)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    return Caption(
        see="Left: every kind of certificate should fail at most as often as promised (dashed). Right: what "
        "it gives away; further left is better.",
        numbers=f"{results.repetitions:,} certificates of each kind and size, delta = {results.delta}.",
        paper="The paper certifies once per experiment; it has no such figure.",
        differs="Costs are drawn with replacement from the policy's flights, so that the truth is known "
        "exactly. PAC-Bayes bounds are taken at a posterior that equals its prior: their coverage with "
        "training on the same data is tested in tests/training. The exact limits are for the binary cost "
        "'collided or not'.",
    )


def tables(results: Results) -> list[Table]:
    """Return the numbers of the figure."""
    lines = [
        {
            "environments": f"{row.n:,}",
            "certificate": row.method,
            "fails": percent(row.failures / results.repetitions),
            "promised": percent(results.delta),
            "upper − truth": f"{row.gap:.4f}",
            "upper − lower": f"{row.width:.4f}",
        }
        for row in results.rows
    ]
    return [Table.of("Promised against measured", lines)]


def claims(results: Results) -> list[Claim]:
    """Check that certificates keep their promise."""
    worst = max(results.rows, key=lambda row: row.failures)
    repetitions = results.repetitions
    rate = percent(worst.failures / repetitions)
    # Corrected for having looked for the worst.
    p_value = len(results.rows) * float(binom.sf(worst.failures - 1, repetitions, results.delta))
    kept = p_value > SIGNIFICANT
    found = f"at most {rate} fail ({worst.method}, {worst.n:,} environments)"
    return [
        Claim.judged(
            "The certified limits hold with probability at least 1 - delta.",
            f"Of {repetitions:,} certificates of each kind at delta = {results.delta}, "
            f"{found if worst.failures else 'none fails'}; corrected p-value of exceeding the promise "
            f"{min(p_value, 1.0):.2g}.",
            "",
            "" if kept else f"{rate} are significantly more than {percent(results.delta)}.",
            beyond=True,
        )
    ]
