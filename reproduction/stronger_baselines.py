"""Beyond the paper: better input detectors than MSP and MaxLogit, all at the same measured false-alarm rate.

Every one of them reads what a network says of n environments and gives one number, larger for stranger ones.
Its threshold is the quantile of that number over datasets of *new* training environments, so that each has
the same false-alarm rate, which the paper's thresholds from the training environments do not give. There are
two networks: the policy, and one of the authors' shape (`reproduction.baseline_network`).

Scores of one environment are those of pytorch-ood 0.4.0 (Apache-2.0) up to a constant factor and offset. It
is not used: it imports torchvision, whose package on PyPI does not load beside the CPU build of PyTorch, and
it has no two-sample test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from boundwatch.detectors.verdicts import Verdict
from reproduction import baselines, style
from reproduction.artifacts import Array, Artifact, Cache
from reproduction.baseline_network import AUTHORS, NETWORKS, POLICY, BaselineNetwork, Outputs, Seen
from reproduction.certification import Limits, certificate_of
from reproduction.figure import Caption, Claim, Table, percent
from reproduction.irrelevant_shift import DISTRIBUTION
from reproduction.judging import Tally, confidence_interval, counted, split, where
from reproduction.navigation import QUICK_SWEEP_SETTINGS, in_words
from reproduction.sweep import VISIBLE, SweepSettings, points, true_shift

NAME = "stronger-baselines"
TITLE = "Beyond the paper: stronger input detectors at the same false-alarm rate"
OURS = "confidence-interval"
LOOKS: dict[str, dict[str, Any]] = {
    "msp": style.LINES["msp"],
    "max-logit": style.LINES["max-logit"],
    "energy": {"color": "#56B4E9", "linestyle": (0, (3, 1)), "marker": "<", "label": "energy"},
    "mahalanobis": {"color": "#009E73", "linestyle": (0, (5, 1)), "marker": "p", "label": "Mahalanobis"},
    "knn": {"color": "#0072B2", "linestyle": (0, (2, 2)), "marker": "s", "label": "nearest neighbors"},
    "ks": {"color": "#D55E00", "linestyle": "-", "marker": "x", "label": "two-sample, KS"},
    "mmd": {"color": "#F0E442", "linestyle": "-", "marker": "+", "label": "two-sample, MMD"},
}
"""Of the baselines."""
OUR_LOOK: dict[str, Any] = {
    "color": "#000000",
    "linewidth": 2.4,
    "marker": "D",
    "label": "ours: interval, betting",
}
READ = {POLICY: "the policy", AUTHORS: "the authors' shape"}
"""The networks, in words."""
BASELINES = {f"{network}:{kind}": (network, kind) for network in NETWORKS for kind in LOOKS}
"""Networks and scores, by the names of detectors."""
LABELS = {OURS: str(OUR_LOOK["label"])} | {
    name: f"{LOOKS[kind]['label']} ({READ[network]})" for name, (network, kind) in BASELINES.items()
}
Statistic = Callable[[Outputs], Array]
"""From outputs of shape (datasets, n, ...) to one number per dataset: larger is stranger."""


@dataclass(frozen=True)
class Settings(SweepSettings):
    """What is computed."""

    alpha: float = 0.05
    """False-alarm rate of the baselines, measured; what our detector may err, guaranteed."""
    environments: int = 20_000
    """New environments per setting that the networks look at."""
    calibration: int = 40_000
    """New training environments that the thresholds come from."""
    steps: int = 1500
    """Of the training of the network with the authors' shape."""
    neighbors: int = 10
    """How far the nearest ones are: the distance to this one counts."""
    references: int = 2000
    """Training environments among which the nearest ones are looked for."""
    features: int = 256
    """Random features of the kernel of the MMD."""
    feature_seed: int = 7
    """Of them."""

    @property
    def names(self) -> tuple[str, ...]:
        """All distributions, with that of the shift that does not matter."""
        return ("training", DISTRIBUTION, *self.sweep.settings)

    def artifacts(self) -> Sequence[Artifact]:
        """Return the flights in all of them, and what the networks say there."""
        return [*super().artifacts(), *(self.seen(name) for name in self.names)]

    def network(self) -> BaselineNetwork:
        """Return the network with the authors' shape."""
        return BaselineNetwork(self.sweep.policy, self.steps)

    def seen(self, name: str) -> Seen:
        """Return what the networks say in a distribution; in training, of the calibration's first."""
        more = self.calibration if name == "training" else 0
        return Seen(self.network(), name, self.environments + more, self.sweep.seed)


@dataclass(frozen=True)
class Results(baselines.Results):
    """What came out."""

    calibration: int


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS, environments=2048, calibration=2048, steps=150, features=32)


def run(settings: Settings, cache: Cache) -> Results:
    """Set thresholds in new training environments, and judge others and all settings."""
    detector = confidence_interval(certificate_of(settings, cache), settings.alpha, "betting")
    found: list[Tally] = []
    shifts = {name: true_shift(settings.sweep, name, cache) for name in settings.names}
    for network in NETWORKS:
        statistics = statistics_of(*settings.network().training(cache, network), settings)
        usual = settings.seen("training").outputs(cache, network)
        calibration = _datasets(usual.part(slice(settings.calibration)), settings.sizes)
        thresholds = {
            (kind, n): float(np.quantile(statistic(usual), 1 - settings.alpha))
            for n, usual in calibration.items()
            for kind, statistic in statistics.items()
        }
        for name in settings.names:
            seen = settings.seen(name).outputs(cache, network).part(slice(-settings.environments, None))
            for n, datasets in _datasets(seen, settings.sizes).items():
                for kind, statistic in statistics.items():
                    strange = statistic(datasets) > thresholds[kind, n]
                    verdicts = np.where(strange, Verdict.ADVERSE, Verdict.WITHIN)
                    found.append(
                        counted(verdicts, setting=name, shift=shifts[name], detector=f"{network}:{kind}", n=n)
                    )
    limits, tallies = Limits.of(settings, cache), settings.tallies((detector,), cache)
    return Results(tallies, settings.alpha, limits, found, settings.calibration)


def _datasets(seen: Outputs, sizes: Sequence[int]) -> dict[int, Outputs]:
    count = len(seen.logits)
    return {n: Outputs(split(seen.logits, n, count // n), split(seen.features, n, count // n)) for n in sizes}


def statistics_of(training: Outputs, classes: NDArray[np.intp], settings: Settings) -> dict[str, Statistic]:
    """Return every baseline's statistic, from what the network says of the training environments.

    The `classes` are the best primitives there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> classes = rng.integers(3, size=500)
    >>> def outputs(*shape, shift=0.0):
    ...     features = rng.normal(size=(*shape, 3)) + shift
    ...     return Outputs(features, features)
    >>> statistics = statistics_of(outputs(500), classes, QUICK)
    >>> usual, other = outputs(40, 20), outputs(40, 20, shift=-2)
    >>> [name for name, of in statistics.items() if np.median(of(other)) <= np.quantile(of(usual), 0.95)]
    ['msp', 'knn']
    """
    features = training.features
    centers = np.stack([features[classes == each].mean(axis=0) for each in np.unique(classes)])
    away = features - centers[np.unique(classes, return_inverse=True)[1]]
    inverse = np.linalg.pinv(away.T @ away / len(away))
    references, ordered = _directions(features[: settings.references]), np.sort(features, axis=0)
    rng = np.random.default_rng([settings.feature_seed, *NAME.encode()])
    apart = np.linalg.norm(features[1:][:1000] - features[:-1][:1000], axis=1)
    frequencies = rng.normal(size=(features.shape[1], settings.features)) / np.median(apart)
    phases = rng.uniform(0, 2 * np.pi, size=settings.features)
    embedded = np.cos(features @ frequencies + phases).mean(axis=0)

    def mahalanobis(seen: Outputs) -> Array:
        distances = [
            np.einsum("dni,dni->dn", (seen.features - center) @ inverse, seen.features - center)
            for center in centers
        ]
        means: Array = np.min(distances, axis=0).mean(axis=1)
        return means

    def nearest(seen: Outputs) -> Array:
        queries = _directions(seen.features.reshape(-1, seen.features.shape[-1]))
        last = min(settings.neighbors, len(references)) - 1
        squares = [
            np.partition(_squared_distances(part, references), last, axis=1)[:, last]
            for part in np.array_split(queries, -(-len(queries) // 1024))  # bounds the memory
        ]
        means: Array = np.sqrt(np.concatenate(squares)).reshape(seen.features.shape[:-1]).mean(axis=1)
        return means

    def kolmogorov(seen: Outputs) -> Array:
        datasets, n, width = seen.features.shape
        largest = np.zeros(datasets)
        for feature in range(width):
            values, reference = np.sort(seen.features[:, :, feature], axis=1), ordered[:, feature]
            # A feature that is 0 in many environments jumps there at once.
            rises = np.diff(values, axis=1) > 0
            last = np.pad(rises, ((0, 0), (0, 1)), constant_values=True)
            first = np.pad(rises, ((0, 0), (1, 0)), constant_values=True)
            until = np.searchsorted(reference, values, side="right") / len(reference)
            before = np.searchsorted(reference, values, side="left") / len(reference)
            above = np.where(last, np.arange(1, n + 1) / n - until, 0.0).max(axis=1)
            below = np.where(first, before - np.arange(n) / n, 0.0).max(axis=1)
            largest = np.maximum(largest, np.maximum(above, below))
        return largest

    return {
        "msp": lambda seen: (1 - softmax(seen.logits, axis=-1).max(axis=-1)).mean(axis=1),
        "max-logit": lambda seen: -seen.logits.max(axis=-1).mean(axis=1),
        "energy": lambda seen: -logsumexp(seen.logits, axis=-1).mean(axis=1),
        "mahalanobis": mahalanobis,
        "knn": nearest,
        "ks": kolmogorov,
        "mmd": lambda seen: np.linalg.norm(
            np.cos(seen.features @ frequencies + phases).mean(axis=1) - embedded, axis=1
        ),
    }


def _directions(features: Array) -> Array:
    """Return features of length 1; what has none stays as it is."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    directions: Array = features / np.maximum(lengths, 1e-12)
    return directions


def _squared_distances(a: Array, b: Array) -> Array:
    """Return those of all pairs of rows, by one matrix product."""
    lengths = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    squares: Array = np.maximum(lengths - 2 * a @ b.T, 0.0)
    return squares


def draw(results: Results) -> Figure:
    """Draw the share of datasets that each calls shifted, against the true shift; one row per network."""
    sizes = results.sizes
    figure = style.new_figure(5.5 * len(sizes), 8.0)
    grid = figure.subplots(len(NETWORKS), len(sizes), sharey=True, squeeze=False)
    for above, network in zip(grid, NETWORKS, strict=True):
        shown = {OURS: OUR_LOOK} | {f"{network}:{kind}": look for kind, look in LOOKS.items()}
        for axes, n in zip(above, sizes, strict=True):
            for name, look in shown.items():
                look = {"markersize": 5, "linewidth": 1.3} | look
                mine = where(results.everybody, n=n, detector=name)
                style.curve(axes, [row.point for row in mine if row.setting != DISTRIBUTION], **look)
                # Fields of another kind: a line to their neighbors in cost would say that these are alike.
                (apart,) = where(mine, setting=DISTRIBUTION)
                axes.plot(apart.shift, apart.share(), **look | {"label": None, "fillstyle": "none"})
            axes.axhline(results.alpha, **style.PROMISE)
            style.shift_panel(axes, f"baselines read {READ[network]}, n = {n} trials", None)
        above[0].set_ylabel("share of datasets called shifted")
    style.legend_below(figure, figure.axes[0], 4)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    counts = sorted({(row.n, row.datasets) for row in results.baselines})
    return Caption(
        see="Left of zero the policy pays less than in training: an alarm there is about nothing that hurts. "
        "Right of zero, a higher curve notices smaller adverse shifts. All baselines alarm on 5 % of new "
        "training environments (dashed), by calibration; ours is guaranteed to alarm on no more. Hollow: "
        "four obstacles, the shift that does not matter to the task.",
        numbers=f"{results.datasets:,} datasets per setting for ours; for the baselines "
        + " and ".join(f"{datasets:,} with n = {n}" for n, datasets in counts)
        + f", with thresholds from {results.calibration:,} other environments of the training "
        "distribution. " + results.certificate.note,
        paper="The paper compares with MSP and MaxLogit only, of a network that normalizes each batch by "
        "itself.",
        differs="Ours is the interval with the betting tail, the default. The baselines read the policy, or "
        "a network of the authors' shape that learned the same labels and whose batch "
        "statistics are frozen. MSP, MaxLogit and energy (Liu et al., 2020) take the outputs before the "
        "softmax, the others what the last layer reads: Mahalanobis distance to the nearest class (Lee et "
        "al., 2018), distance to the nearest neighbors at length 1 (Sun et al., 2022), and two-sample tests "
        "as in Rabanser et al. (2019): Kolmogorov-Smirnov with the largest statistic of all features, and "
        "MMD with random features of the kernel. They need new training environments to calibrate on, and "
        "no costs.",
    )


def tables(results: Results) -> list[Table]:
    """Return how often each alarms where nothing changed, where it does not matter, and where it does."""
    lines = []
    for n in results.sizes:
        for name, label in LABELS.items():
            mine = {row.setting: row for row in where(results.everybody, n=n, detector=name)}
            easier = max((r.share() for r in mine.values() if r.shift < -VISIBLE), default=0.0)
            harder = [r.share() for r in mine.values() if r.shift > VISIBLE] or [0.0]
            shares = (mine["training"].share(), mine[DISTRIBUTION].share(), easier, float(np.mean(harder)))
            lines.append((str(n), label, *map(percent, shares)))
    header = (
        "n",
        "detector",
        "training",
        in_words(DISTRIBUTION),
        "easier settings, at most",
        "adverse settings, mean",
    )
    return [Table("Alarms where the policy does not pay more, and where it does", header, tuple(lines))]


def claims(results: Results) -> list[Claim]:
    """State what is ours, and where it loses."""
    return [_irrelevant(results), _more_power(results)]


def _irrelevant(results: Results) -> Claim:
    easier = [row for row in results.everybody if row.shift < 0]
    most = {name: max((r.share() for r in where(easier, detector=name)), default=0.0) for name in LABELS}
    quiet = [name for name, share in most.items() if name != OURS and share <= 0.5]
    loud = most[OURS] > results.alpha
    return Claim.judged(
        "At the same false-alarm rate, every input detector alarms where the policy pays less than in "
        "training, and ours does not.",
        "Largest share at a shift below 0: "
        + ", ".join(f"{LABELS[name]} {percent(share)}" for name, share in most.items())
        + ".",
        f"every baseline in most datasets of some setting, ours in at most {percent(results.alpha)} of "
        "each (in part: ours).",
        f"Not so: {', '.join(LABELS[name] for name in quiet + [OURS] * loud)}." if quiet or loud else "",
        partly=not loud,
        beyond=True,
    )


def _more_power(results: Results) -> Claim:
    """Say where an input detector sees an adverse shift more often than ours."""
    said = "Where the cost rises, no input detector alarms visibly more often than ours."
    rows = results.everybody
    adverse = sorted({(row.shift, row.setting) for row in rows if row.shift > VISIBLE})
    losses, wins = [], 0
    for n in results.sizes:
        for shift, setting in adverse:
            shares = {row.detector: row.share() for row in where(rows, setting=setting, n=n)}
            ours = shares.pop(OURS)
            best = max(shares, key=lambda name: shares[name])
            wins += ours - shares[best] >= VISIBLE
            if shares[best] - ours >= VISIBLE:
                told = f"{LABELS[best]} {percent(shares[best])}, ours {percent(ours)}"
                losses.append(f"{shift:+.2f}, n = {n} ({told})")
    compared = len(adverse) * len(results.sizes)
    if not compared:
        return Claim.unchecked(said, "No setting is adverse.", beyond=True)
    return Claim.judged(
        said,
        f"Of {compared} comparisons with the best of {len(BASELINES)} baselines, chosen afterward, ours is "
        f"ahead in {wins} and behind in {len(losses)}, by at least {points(VISIBLE)}.",
        "behind in none (in part: ahead more often than behind).",
        f"Behind at shifts of {'; '.join(losses)}. Inputs show a harder field at once; costs must first be "
        "paid."
        if losses
        else "",
        partly=wins > len(losses),
        beyond=True,
    )
