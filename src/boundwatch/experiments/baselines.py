"""MSP and MaxLogit beside the detectors, over difficulty (the paper's Figure 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scipy.stats import binom

from boundwatch import Certificate, ConfidenceInterval, HypothesisTest
from boundwatch.detectors.baselines import MSP, MaxLogit
from boundwatch.experiments import style
from boundwatch.experiments.artefacts import Artefact, Cache
from boundwatch.experiments.figure import Caption, Claim, Results, Table, holds, percent
from boundwatch.experiments.judging import Array, Shift, counted, false_declarations, split, tally
from boundwatch.experiments.navigation import QUICK_SWEEP_SETTINGS, Flights, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "baselines"
TITLE = "Drone: MSP and MaxLogit on settings of varied difficulty"
OURS = ("hypothesis-test", "confidence-interval")
THEIRS = ("msp", "max-logit")
NO_RULE = (
    "Confidence is not cost: how a network's outputs react to fields that it has not seen depends on the "
    "network. Ours is a function of one image; the authors' normalised each batch by itself."
)


@dataclass(frozen=True)
class Settings:
    """What is computed."""

    sweep: Sweep = field(default_factory=Sweep)
    """Policy and settings of difficulty."""
    sizes: tuple[int, ...] = (10, 50)
    """Trials in a dataset."""
    alpha: float = 0.05
    """Level of the test, rate of the interval, and the share of training data that the baselines reject."""


FULL = Settings()
QUICK = Settings(QUICK_SWEEP_SETTINGS)


def artefacts(settings: Settings) -> Sequence[Artefact]:
    """Return what `run` takes from the cache."""
    return settings.sweep.artefacts()


def run(settings: Settings, cache: Cache) -> Results:
    """Judge all datasets with detectors and baselines, those of the training distribution included."""
    sweep = settings.sweep
    trained = sweep.policy.load(cache)
    watch = Watch(trained.certificate, trained.logits.astype(float), settings.alpha)
    reference = sweep.flights("training").costs(cache)
    tallies, baselines = [], []
    for name in ("training", *sweep.settings):
        for n in settings.sizes:
            ours, theirs = watch.judge(sweep.flights(name), cache, reference, n, sweep.datasets)
            tallies += ours
            baselines += theirs
    return {"alpha": settings.alpha, "tallies": tallies, "baselines": baselines}


class Watch:
    """Both detectors and both baselines, at the same level.

    Parameters
    ----------
    certificate
        What the detectors compare with.
    logits
        The network's outputs in training, what the baselines compare with.
    alpha
        The level.
    """

    def __init__(self, certificate: Certificate, logits: Array, alpha: float) -> None:
        self._detectors = (
            HypothesisTest(certificate, alpha_adverse=alpha, alpha_benign=alpha, tail="hoeffding"),
            ConfidenceInterval(certificate, false_positive=alpha, false_negative=alpha, tail="hoeffding"),
        )
        self._baselines = (MSP(logits, alpha=alpha), MaxLogit(logits, alpha=alpha))

    def judge(
        self, flights: Flights, cache: Cache, reference: Array, n: int, datasets: int
    ) -> tuple[list[Results], list[Results]]:
        """Return the tallies of the detectors, and those of the baselines, which promise nothing."""
        costs = flights.costs(cache)
        # Flights of the training distribution against themselves: the shift is zero by definition.
        same = flights.distribution == "training"
        shift = Shift(0.0, 0.0) if same else Shift.between(costs, reference)
        rows, outputs = split(costs, n, datasets), split(flights.logits(cache), n, datasets)
        ours = [tally(detector, rows, flights.distribution, shift) for detector in self._detectors]
        theirs = [
            counted(
                baseline.decide_many(outputs).verdict,
                setting=flights.distribution,
                shift=shift,
                detector=baseline.name,
                tail="none",
                n=n,
                rates=(1.0, 1.0),
            )
            for baseline in self._baselines
        ]
        return ours, theirs


def draw(results: Results) -> Figure:
    """Draw the share of datasets that each calls shifted (ADVERSE) against the true shift."""
    rows = results["tallies"] + results["baselines"]
    sizes = sorted({row["n"] for row in rows})
    figure = style.new_figure(5 * len(sizes), 4)
    for axes, n in zip(figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0], sizes, strict=True):
        for detector in (*OURS, *THEIRS):
            mine = sorted(
                (row["shift"], row["adverse"] / row["datasets"])
                for row in rows
                if row["n"] == n and row["detector"] == detector and row["setting"] != "training"
            )
            axes.plot(*zip(*mine, strict=True), **style.line(detector))
        axes.axhline(results["alpha"], **style.PROMISE)
        axes.annotate(
            f"{100 * results['alpha']:.0f} %",
            (1, results["alpha"]),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            fontsize=9,
        )
        axes.axvline(0, **style.PROMISE)
        axes.set(xlabel="true shift of the expected cost", ylim=(-0.02, 1.02))
        axes.set_title(f"n = {n} trials", loc="left", fontsize=10)
        style.bare(axes)
    figure.axes[0].set_ylabel("share of datasets called shifted (ADVERSE)")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    first = results["tallies"][0]
    return Caption(
        see="Left of zero the policy pays less than in training: whoever alarms there alarms about nothing "
        "that hurts. Right of zero, a curve that is higher notices smaller adverse shifts.",
        numbers=f"{first['datasets']} datasets a setting, n as in the titles; level {results['alpha']}.",
        paper="In the paper's Figure 6 both baselines alarm at easier settings, and at small adverse shifts "
        "more often than the detectors; see the table for the training distribution itself.",
        differs="The paper compares at n = 10 only. MaxLogit uses the true maximum logit. Our network has no "
        "batch statistics, so it treats an environment alike whichever others come with it; the "
        "baselines' thresholds come from its outputs on the training environments, as in the paper.",
    )


def tables(results: Results) -> list[Table]:
    """Return how often each alarms in the training distribution."""
    lines = []
    for row in _in_training(results):
        p_value = binom.sf(row["adverse"] - 1, row["datasets"], results["alpha"])
        lines.append(
            (
                str(row["n"]),
                style.LINES[row["detector"]]["label"],
                percent(row["adverse"] / row["datasets"]),
                f"{p_value:.2g}",
            )
        )
    title = (
        "New environments of the training distribution: alarms, and the p-value of alarming more often than "
        + percent(results["alpha"])
    )
    return [Table(title, ("n", "detector", "alarms", "p-value"), tuple(lines))]


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its Figure 6."""
    training = {
        (row["detector"], row["n"]): row["adverse"] / row["datasets"] for row in _in_training(results)
    }
    sizes = sorted({n for _, n in training})
    benign = [check for check in false_declarations(results["tallies"]) if check["verdict"] == "adverse"]
    worst = max(benign, key=lambda check: check["false"] / check["datasets"])
    most = worst["false"] / worst["datasets"]
    where = f"{worst['setting']}, {style.LINES[worst['detector']]['label']}, n = {worst['n']}"
    rates = "; ".join(
        f"n = {n}: MSP {percent(training['msp', n])}, MaxLogit {percent(training['max-logit', n])}"
        for n in sizes
    )
    above = [
        row
        for row in _in_training(results)
        if row["detector"] in THEIRS
        and binom.sf(row["adverse"] - 1, row["datasets"], results["alpha"]) < 0.001
    ]
    found = [
        Claim(
            "The detectors call benign environments adverse less than 5 % of the time.",
            f"At most {percent(most)} ({where}) in the training distribution and in all "
            f"{len({check['setting'] for check in benign}) - 1} settings that are not surely adverse.",
            holds(most < 0.05),
            ""
            if most < 0.05
            else "The test's guarantee is 5 % plus delta, and is one over certificates too.",
        ),
        Claim(
            "The baselines violate their false-positive rate of 5 % even on new training environments.",
            rates + ".",
            holds(len(above) == 2 * len(sizes), otherwise="partly" if above else "no"),
            "" if len(above) == 2 * len(sizes) else _exceptions(above),
        ),
    ]
    return [*found, _easier(results, sizes), _small_shifts(results), _relevant_shifts(results)]


def _easier(results: Results, sizes: list[int]) -> Claim:
    largest = {
        n: {
            name: max(
                (
                    row["adverse"] / row["datasets"]
                    for row in results["tallies"] + results["baselines"]
                    if row["n"] == n and row["detector"] == name and row["shift"] < -0.05
                ),
                default=0.0,
            )
            for name in (*OURS, *THEIRS)
        }
        for n in sizes
    }
    fires = [shares[name] > 0.5 for shares in largest.values() for name in THEIRS]
    silent = all(shares[name] < 0.05 for shares in largest.values() for name in OURS)
    return Claim(
        "The baselines declare easier environments shifted; the detectors do not.",
        "Largest share at a shift below -0.05: "
        + "; ".join(f"n = {n}: {_listed(shares)}" for n, shares in largest.items())
        + ".",
        holds(all(fires) and silent, otherwise="partly" if any(fires) and silent else "no"),
        "" if all(fires) and silent else f"Compared as: more than half of the datasets. {NO_RULE}",
    )


def _exceptions(above: list[Results]) -> str:
    """Say which baseline is significantly above its level (p < 0.001) on new training environments."""
    if not above:
        return (
            "None is significantly above 5 % here (p < 0.001). Their thresholds come from the training "
            "environments, and our network seems to be as confident on new ones; nothing guarantees it."
        )
    names = ", ".join(f"{style.LINES[row['detector']]['label']} with n = {row['n']}" for row in above)
    return f"Significantly above 5 % (p < 0.001): {names}; not the others."


def _small_shifts(results: Results) -> Claim:
    means, n = _mean_shares(results, 0.05, 0.25)
    better = [name for name in THEIRS if means[name] > max(means[ours] for ours in OURS)]
    return Claim(
        "For small adverse shifts the baselines detect a higher proportion of datasets.",
        f"Mean share at shifts between +0.05 and +0.25 with n = {n}: {_listed(means)}.",
        holds(len(better) == 2, otherwise="partly" if better else "no"),
        "" if len(better) == 2 else NO_RULE,
    )


def _relevant_shifts(results: Results) -> Claim:
    means, n = _mean_shares(results, 0.25, 1.0)
    gaps = [abs(means[ours] - means[theirs]) for ours in OURS for theirs in THEIRS]
    return Claim(
        "For task-relevant shifts the detectors perform similarly to the baselines.",
        f"Mean share at shifts above +0.25 with n = {n}: {_listed(means)}.",
        holds(max(gaps) <= 0.15, otherwise="partly" if min(gaps) <= 0.15 else "no"),
        "" if max(gaps) <= 0.15 else NO_RULE,
    )


def _mean_shares(results: Results, low: float, high: float) -> tuple[dict[str, float], int]:
    """Return each one's mean share of alarms at shifts in a range, with the paper's number of trials."""
    rows = results["tallies"] + results["baselines"]
    n = min(row["n"] for row in rows)
    shares: dict[str, list[float]] = {name: [] for name in (*OURS, *THEIRS)}
    for row in rows:
        if row["n"] == n and low < row["shift"] <= high:
            shares[row["detector"]].append(row["adverse"] / row["datasets"])
    return {name: sum(values) / max(len(values), 1) for name, values in shares.items()}, n


def _listed(shares: dict[str, float]) -> str:
    return ", ".join(f"{style.LINES[name]['label']} {percent(share)}" for name, share in shares.items())


def _in_training(results: Results) -> list[Results]:
    return [row for row in results["tallies"] + results["baselines"] if row["setting"] == "training"]
