"""What decides when MSP and MaxLogit alarm: the labels that the network learned, and batch statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import log_softmax
from scipy.stats import binom

from boundwatch.tasks.navigation.train import Recipe
from reproduction import recorded, style
from reproduction.artifacts import Array, Artifact, Cache
from reproduction.baseline_network import AUTHORS, BY_SETTING, POLICY, BaselineNetwork, Seen
from reproduction.confidence import MSP, Confidence, MaxLogit
from reproduction.figure import Caption, Claim, Table, percent
from reproduction.judging import PAPERS_N, SIGNIFICANT, Shift, split
from reproduction.navigation import QUICK_SWEEP_SETTINGS, Flights, NavigationPolicy, in_words
from reproduction.sweep import IN_PART, VISIBLE, OfSweep, points, true_shift

NAME = "labels"
TITLE = "Beyond the paper: why MSP and MaxLogit alarm"
CLIPPED = "clipped"
NETWORKS = {
    POLICY: "our policy, the paper's labels",
    CLIPPED: "our policy, labels clipped at d_thresh and divided by 0.1 m",
    AUTHORS: "the authors' shape, statistics frozen",
    BY_SETTING: "the authors' shape, statistics of each setting",
}
LOOKS: dict[str, dict[str, Any]] = {
    POLICY: {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    CLIPPED: {"color": "#D55E00", "linestyle": (0, (5, 2)), "marker": "s"},
    AUTHORS: {"color": "#CC79A7", "linestyle": (0, (4, 1, 1, 1)), "marker": "^"},
    BY_SETTING: {"color": "#009E73", "linestyle": (0, (1, 1)), "marker": "v"},
}
THEIRS: dict[str, Any] = {"color": "#000000", "linewidth": 2.2, "label": "the authors' curve"}


class SmallestLogOdds(MaxLogit):
    """MaxLogit as in the authors' code: the smallest log-odds, which are high where all outputs are alike."""

    @staticmethod
    def scores(logits: Array) -> Array:
        """Return the negative of the smallest log-odds: below the threshold is shifted, as for the others."""
        each = log_softmax(logits, axis=-1)
        return np.asarray(-(each - np.log1p(-np.exp(np.minimum(each, -1e-12)))).min(axis=-1))


BASELINES: dict[str, type[Confidence]] = {
    "MSP": MSP,
    "MaxLogit": MaxLogit,
    "MaxLogit, authors' code": SmallestLogOdds,
}
PUBLISHED = {"MSP": "msp", "MaxLogit": "max-logit", "MaxLogit, authors' code": "max-logit"}


@dataclass(frozen=True)
class Settings(OfSweep):
    """What is computed."""

    alpha: float = 0.05
    """Share of resampled training data that the baselines reject."""
    environments: int = 20_000
    """New environments per setting: 400 datasets of 50."""
    calibration: int = 40_000
    """What the figure on stronger baselines draws before them in training."""
    steps: int = 1500
    """Of the training of the network with the authors' shape."""

    def artifacts(self) -> Sequence[Artifact]:
        """Return what every network says in all settings."""
        mine = [self.seen(name) for name in self.names]
        return [*super().artifacts(), *mine, *(self.clipped(name) for name in self.names)]

    def network(self) -> BaselineNetwork:
        """Return the network with the authors' shape."""
        return BaselineNetwork(self.policy, self.steps)

    def seen(self, name: str) -> Seen:
        """Return what the networks say in a distribution: as in the figure on stronger baselines."""
        more = self.calibration if name == "training" else 0
        return Seen(self.network(), name, self.environments + more, self.sweep.seed)

    def clipped(self, name: str) -> Flights:
        """Return the flights of the same policy with the library's usual labels."""
        mine, usual = self.policy.recipe, Recipe()
        names = ("label_temperature", "clip_labels", "sharpness", "prior_log_variance")
        recipe = replace(mine, **{field: getattr(usual, field) for field in names})
        policy: NavigationPolicy = replace(self.policy, recipe=recipe)
        return Flights(policy, name, self.environments, self.sweep.seed)


@dataclass(frozen=True)
class Alarms:
    """How often a baseline calls datasets of a network's outputs shifted."""

    network: str
    baseline: str
    setting: str
    shift: float
    datasets: int
    alarms: int

    @property
    def share(self) -> float:
        """Of the datasets."""
        return self.alarms / self.datasets


@dataclass(frozen=True)
class Results:
    """What came out."""

    alpha: float
    n: int
    rows: list[Alarms]

    def of(self, network: str, baseline: str) -> dict[str, Alarms]:
        """Return the alarms of one baseline by setting."""
        found = (row for row in self.rows if (row.network, row.baseline) == (network, baseline))
        return {row.setting: row for row in found}

    def apart(self, network: str, baseline: str) -> float:
        """Return the mean absolute difference from the authors' curve over the settings of difficulty."""
        curve, mine = recorded.published("figure_6_baselines"), self.of(network, baseline)
        name = PUBLISHED[baseline]
        gaps = [
            abs(mine[setting].share - point.share(name))
            for setting, point in curve.items()
            if setting in mine
        ]
        return float(np.mean(gaps))


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS, environments=2048, calibration=2048, steps=150)


def run(settings: Settings, cache: Cache) -> Results:
    """Set thresholds by the outputs in training, and judge all settings."""
    n, trained = PAPERS_N, settings.network()
    shifts = {name: true_shift(settings.sweep, name, cache) for name in settings.names}
    training: dict[str, Array] = {
        CLIPPED: settings.clipped("training").policy.load(cache).logits.astype(float)
    }
    training |= {
        network: trained.training(cache, network)[0].logits for network in (POLICY, AUTHORS, BY_SETTING)
    }
    rows = []
    for network in NETWORKS:
        judges = {name: judge(training[network], alpha=settings.alpha) for name, judge in BASELINES.items()}
        for setting in settings.names:
            outputs = _outputs(settings, cache, network, setting)
            datasets = split(outputs[-settings.environments :], n, settings.environments // n)
            for name, judge in judges.items():
                alarms = int((judge.decide_many(datasets) == "adverse").sum())
                shift: Shift = shifts[setting]
                rows.append(Alarms(network, name, setting, shift.difference, len(datasets), alarms))
    return Results(settings.alpha, n, rows)


def _outputs(settings: Settings, cache: Cache, network: str, setting: str) -> Array:
    if network == CLIPPED:
        return settings.clipped(setting).logits(cache)
    return settings.seen(setting).outputs(cache, network).logits


def draw(results: Results) -> Figure:
    """Draw the share of datasets that MSP, and MaxLogit as in the authors' code, call shifted."""
    figure = style.new_figure(11, 4.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, baseline in zip(panels, ("MSP", "MaxLogit, authors' code"), strict=True):
        for network, look in LOOKS.items():
            mine = [(row.shift, row.share) for row in results.of(network, baseline).values()]
            style.curve(axes, mine, markersize=4, linewidth=1.3, label=NETWORKS[network], **look)
        curve = recorded.published("figure_6_baselines").values()
        style.curve(axes, [(point.shift, point.share(PUBLISHED[baseline])) for point in curve], **THEIRS)
        axes.axhline(results.alpha, **style.PROMISE)
        style.shift_panel(axes, f"{baseline}, n = {results.n}", None)
    panels[0].set_ylabel("share of datasets called shifted")
    style.legend_below(figure, panels[0], 2, fontsize=9)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    datasets = results.rows[0].datasets
    return Caption(
        see="The closer a curve is to the black one, the more the network behaves as the authors' did. What "
        "it "
        "learned decides: with labels that are sharp and clipped, a network is sure of itself in harder "
        "fields, too.",
        numbers=f"{datasets} datasets of {results.n} in each setting; thresholds from the outputs in the "
        "policy's "
        f"{results.n}-fold resampled training environments, at {percent(results.alpha)}. The network of the "
        "authors' shape was trained on the prior's environments, as theirs was.",
        paper="The authors' labels are a softmax of the distances in meters, not clipped; their code's "
        "MaxLogit is "
        "the smallest log-odds, and the batch statistics are those of whatever is shown at once: in its "
        "figures a whole setting.",
        differs="Each convolution has statistics of its own, theirs share one set. Thresholds and settings "
        "are as in the figure on baselines, which has the true maximum logit.",
    )


def tables(results: Results) -> list[Table]:
    """Return how far each network is from the authors' curves, and every share."""
    lines = []
    for network, label in NETWORKS.items():
        apart = (f"{100 * results.apart(network, baseline):.1f}" for baseline in BASELINES)
        new = (percent(results.of(network, baseline)["training"].share) for baseline in BASELINES)
        lines.append((label, *apart, *new))
    header = (
        "network",
        *(f"{name}: points apart" for name in BASELINES),
        *(f"{name}: training" for name in BASELINES),
    )
    title = "Mean absolute difference from the authors' curves, and alarms in new training environments"
    return [Table(title, header, tuple(lines)), *(_by_setting(results, name) for name in BASELINES)]


def _by_setting(results: Results, baseline: str) -> Table:
    curve, lines = recorded.published("figure_6_baselines"), []
    for setting, row in results.of(POLICY, baseline).items():
        theirs = curve.get(setting)
        mine = (percent(results.of(network, baseline)[setting].share) for network in NETWORKS)
        said = percent(theirs.share(PUBLISHED[baseline])) if theirs else "–"
        lines.append((in_words(setting), f"{row.shift:+.3f}", said, *mine))
    header = ("setting", "shift", "the authors'", *NETWORKS.values())
    return Table(f"{baseline}, n = {results.n}", header, tuple(lines))


def claims(results: Results) -> list[Claim]:
    """State what decides."""
    return [_labels(results), _statistics(results)]


def _labels(results: Results) -> Claim:
    apart = {name: (results.apart(POLICY, name), results.apart(CLIPPED, name)) for name in BASELINES}
    weak = [name for name in ("MSP", "MaxLogit") if apart[name][1] - apart[name][0] < VISIBLE]
    return Claim.judged(
        "With the paper's labels MSP and MaxLogit alarm as in the authors' curves; with sharp, clipped ones "
        "they do not.",
        "Mean distance from the authors' curves over the settings: "
        + "; ".join(
            f"{name} {points(paper)} with the paper's labels, {points(clipped)} with clipped ones"
            for name, (paper, clipped) in apart.items()
        )
        + ".",
        f"both closer by at least {points(VISIBLE)} ({IN_PART}).",
        f"Not so: {', '.join(weak)}." if weak else "",
        partly=len(weak) == 1,
        beyond=True,
    )


def _statistics(results: Results) -> Claim:
    """Look for more alarms in training than the level, with a setting's statistics and without."""
    found = {
        (network, name): results.of(network, name)["training"]
        for network in (BY_SETTING, AUTHORS, POLICY)
        for name in ("MSP", "MaxLogit, authors' code")
    }
    loud = [key for key, row in found.items() if len(found) * _p_value(row, results.alpha) <= SIGNIFICANT]
    told = "; ".join(
        f"{NETWORKS[network]}: {name} {percent(row.share)}" for (network, name), row in found.items()
    )
    by_setting = {name for network, name in loud if network == BY_SETTING}
    return Claim.judged(
        "The authors' 7 % of alarms in new training environments come from batch statistics over a setting.",
        f"{told}.",
        "significantly above the level with a setting's statistics, and only with these (in part: there, "
        "too).",
        ""
        if by_setting and len(loud) == len(by_setting)
        else f"Significantly above: {', '.join(f'{NETWORKS[a]} ({b})' for a, b in loud) or 'none'}.",
        partly=bool(by_setting),
        beyond=True,
    )


def _p_value(row: Alarms, alpha: float) -> float:
    """Return that of "alarms at most at the level"."""
    return float(binom.sf(row.alarms - 1, row.datasets, alpha))
