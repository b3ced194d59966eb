"""Ten trials in wind, and in easier and harder fields: the hardware section, simulated (Figure 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boundwatch import Certificate, ConfidenceInterval, HypothesisTest
from boundwatch.episodes import read_costs
from boundwatch.errors import InvalidSetting
from reproduction import style
from reproduction.artifacts import Artifact, Cache
from reproduction.baselines import OURS, THEIRS, Watch
from reproduction.figure import Caption, Claim, Results, Table, holds, percent
from reproduction.judging import certificate_note, indicators, rising, split, tallies_of
from reproduction.navigation import QUICK_RECIPE, Flights, NavigationPolicy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "wind"
TITLE = "Drone: wind, and easier and harder fields, with ten trials each"
FIELDS = ("easier", "harder")
FULL_WIND = 5.0


@dataclass(frozen=True)
class Recorded:
    """Costs that somebody recorded on a drone."""

    setting: str
    """Where: a setting of the figure."""
    costs: tuple[float, ...]
    """One for each flight."""


@dataclass(frozen=True)
class Settings:
    """What is computed."""

    policy: NavigationPolicy = field(default_factory=lambda: NavigationPolicy().with_threshold(0.3))
    """How it was trained; the paper's hardware costs have a threshold of 300 mm."""
    speeds: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    """Speeds of the wind, m/s: 0 to 100 % of 5."""
    trials: int = 10
    """Trials in a dataset."""
    datasets: int = 2000
    """Datasets in each setting. The paper has one."""
    truth: int = 100_000
    """Flights in the training distribution, for the expected cost."""
    alpha: float = 0.05
    """Level of the test, rate of the interval, and the share of training data that the baselines reject."""
    seed: int = 10
    """Of the flights."""
    recorded: tuple[Recorded, ...] = ()
    """Recorded costs, shown beside the simulated ones."""


FULL = Settings()
QUICK = Settings(
    NavigationPolicy(QUICK_RECIPE).with_threshold(0.3),
    speeds=(0.0, 5.0),
    datasets=40,
    truth=2048,
)


def with_recorded(settings: Settings, arguments: Iterable[str]) -> Settings:
    """Add recorded costs, given as ``SETTING=FILE``.

    Examples
    --------
    >>> with_recorded(FULL, ["storm=costs.csv"])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: --costs storm=costs.csv: 'storm' is not a setting of the figure ...
    """
    recorded = []
    for argument in arguments:
        setting, separator, path = argument.partition("=")
        if not separator or setting not in _settings(settings):
            raise InvalidSetting(
                f"--costs {argument}: {setting!r} is not a setting of the figure wind; "
                f"write SETTING=FILE with one of {', '.join(_settings(settings))}"
            )
        recorded.append(Recorded(setting, tuple(read_costs(path).costs.tolist())))
    return dataclasses.replace(settings, recorded=tuple(recorded))


def _settings(settings: Settings) -> tuple[str, ...]:
    return (*(f"windy:{speed:g}" for speed in settings.speeds), *FIELDS)


def artifacts(settings: Settings) -> Sequence[Artifact]:
    """Return what `run` takes from the cache."""
    return [_flights(settings, name) for name in ("training", *_settings(settings))]


def _flights(settings: Settings, name: str) -> Flights:
    n = settings.truth if name == "training" else settings.trials * settings.datasets
    return Flights(settings.policy, name, n, settings.seed)


def run(settings: Settings, cache: Cache) -> Results:
    """Judge all datasets; describe the first, all that the paper would have, and all together."""
    trained = settings.policy.load(cache)
    watch = Watch(trained.certificate, trained.logits.astype(float), settings.alpha)
    reference = _flights(settings, "training").costs(cache)
    tallies, baselines, evidence = [], [], []
    for name in _settings(settings):
        flights = _flights(settings, name)
        ours, theirs = watch.judge(flights, cache, reference, settings.trials, settings.datasets)
        tallies += ours
        baselines += theirs
        datasets = split(flights.costs(cache), settings.trials, settings.datasets)
        evidence.append(
            {
                "setting": name,
                "shift": ours[0].shift,
                **indicators(trained.certificate, settings.alpha, datasets),
            }
        )
    recorded = [
        {"setting": row.setting, **_judge_recorded(trained.certificate, settings.alpha, row.costs)}
        for row in settings.recorded
    ]
    return {
        "alpha": settings.alpha,
        "certificate": {
            "lower": trained.certificate.lower,
            "upper": trained.certificate.upper,
            "theorem_1": trained.summary["trained"]["upper_pinsker"],
        },
        "expected_cost": float(reference.mean()),
        "tallies": tallies,
        "baselines": baselines,
        "indicators": evidence,
        "recorded": recorded,
    }


def _judge_recorded(certificate: Certificate, alpha: float, costs: Sequence[float]) -> dict[str, Any]:
    test = HypothesisTest(certificate, alpha_adverse=alpha, tail="hoeffding").decide(costs)
    interval = ConfidenceInterval(certificate, false_positive_rate=alpha, tail="hoeffding").decide(costs)
    return {
        "n": test.n,
        "mean_cost": test.mean_cost,
        "hypothesis-test": 1 - test.p_adverse,
        "confidence-interval": interval.shift_lower,
        "verdict": interval.verdict.value,
    }


def draw(results: Results) -> Figure:
    """Draw the indicators and the share of alarms against the wind, and the two fields beside them."""
    figure = style.new_figure(10, 4.8)
    left, right = figure.subplots(1, 2)
    rows = results["indicators"]
    windy = [row for row in rows if row["setting"].startswith("windy:")]
    _draw_indicators(left, results, "hypothesis-test", 0.0, "1 − p")
    _draw_indicators(left, results, "confidence-interval", 0.95, "ΔC + 0.95")
    left.axhline(0.95, **style.PROMISE)
    left.set_ylabel("evidence of an adverse shift")
    for name in (*OURS, *THEIRS):
        shares = [row.share() for row in tallies_of(results, "tallies", "baselines") if row.detector == name]
        right.plot(range(len(windy)), shares[: len(windy)], **style.line(name))
        right.plot(
            range(len(windy), len(rows)), shares[len(windy) :], **style.line(name, label=None, linestyle="")
        )
    right.axhline(results["alpha"], **style.PROMISE)
    right.set(ylabel="share of datasets called shifted (ADVERSE)", ylim=(-0.02, 1.02))
    for axes in (left, right):
        labels = [_percentage(row["setting"]) for row in rows]
        axes.set_xticks(range(len(rows)), labels, fontsize=9)
        axes.axvline(len(windy) - 0.5, color="#999999", linewidth=0.8)
        axes.set_xlabel("wind, % of 5 m/s; or fields without wind")
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
        style.bare(axes)
    return figure


def _draw_indicators(axes: Axes, results: Results, detector: str, offset: float, label: str) -> None:
    """Draw one indicator in every setting, a little beside the tick so that two do not hide each other."""
    rows = results["indicators"]
    aside = -0.09 if detector == "hypothesis-test" else 0.09
    places = {row["setting"]: place + aside for place, row in enumerate(rows)}
    windy = [row for row in rows if row["setting"].startswith("windy:")]
    look = style.line(detector, label=f"{label}: mean and one standard deviation")
    for group in (windy, *([row] for row in rows if row not in windy)):
        at = [places[row["setting"]] for row in group]
        mean = [row[detector]["mean"] + offset for row in group]
        deviation = [row[detector]["deviation"] for row in group]
        axes.errorbar(
            at, mean, yerr=deviation, capsize=3, **(look if group is windy else look | {"label": None})
        )
    first = [row[detector]["first"] + offset for row in rows]
    mark = {"marker": "x" if aside < 0 else "+", "linestyle": "", "markersize": 9, "color": look["color"]}
    beside = [place + 1.5 * aside for place in places.values()]
    axes.plot(beside, first, label=f"{label}: the first ten trials", **mark)
    if results["recorded"]:
        at = [places[row["setting"]] for row in results["recorded"]]
        recorded = [row[detector] + offset for row in results["recorded"]]
        axes.plot(at, recorded, label=f"{label}: recorded", **mark | {"marker": "*", "markersize": 12})


def _percentage(setting: str) -> str:
    kind, _, speed = setting.partition(":")
    return f"{100 * float(speed) / FULL_WIND:.0f} %" if kind == "windy" else kind


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    first = tallies_of(results)[0]
    return Caption(
        see="Wind moves the drone and cannot be seen in the depth image. Left: the two indicators over the "
        "wind; above the dashed line (0.95) ADVERSE is declared. Right: how often it is. The baselines "
        "look at the network's outputs, which wind does not change: they cannot notice it.",
        numbers=f"{first.n} trials in a dataset, {first.datasets} datasets in each setting, of which "
        "the crosses show the first; costs with d_thresh = 300 mm. "
        + certificate_note(results["certificate"]),
        paper="The paper flew ten trials in each setting on hardware: no alarm without wind and in easier "
        "fields, 1 - p = 0.81 and ΔC = -0.11 in harder ones, alarms at full wind.",
        differs="Simulated: a fan's jet of up to 5 m/s across the way of a calibrated model, instead of a "
        "drone. One set of ten trials is luck, so many are shown. Costs recorded on hardware can be added "
        "with --costs.",
    )


def tables(results: Results) -> list[Table]:
    """Return every setting's shift, indicators and alarms."""
    lines = []
    for row in results["indicators"]:
        shares = [_share(results, row["setting"], name) for name in (*OURS, *THEIRS)]
        lines.append(
            (
                _percentage(row["setting"]),
                f"{row['shift']:+.3f}",
                f"{row['hypothesis-test']['mean']:.3f}",
                f"{row['confidence-interval']['mean']:+.3f}",
                *(percent(share) for share in shares),
            )
        )
    header = ("setting", "true shift", "1 − p (mean)", "ΔC (mean)", "test", "interval", "MSP", "MaxLogit")
    found = [Table("Evidence, and shares of alarms", header, tuple(lines))]
    if results["recorded"]:
        rows = tuple(
            (
                row["setting"],
                str(row["n"]),
                f"{row['mean_cost']:.3f}",
                f"{row['hypothesis-test']:.3f}",
                f"{row['confidence-interval']:+.3f}",
                row["verdict"],
            )
            for row in results["recorded"]
        )
        found.append(Table("Recorded costs", ("setting", "n", "mean cost", "1 − p", "ΔC", "verdict"), rows))
    return found


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its hardware experiments."""
    windy = [row for row in results["indicators"] if row["setting"].startswith("windy:")]
    datasets = tallies_of(results)[0].datasets
    rise, why = rising(windy, datasets, lambda row: f"{_percentage(row['setting'])} of the wind")
    calm, full = windy[0]["setting"], windy[-1]["setting"]
    at_full = [_share(results, full, name) for name in OURS]
    theirs = {name: (_share(results, calm, name), _share(results, full, name)) for name in THEIRS}
    blind = all(round(abs(before - after), 9) < 0.05 for before, after in theirs.values())
    return [
        Claim(
            "Both indicators increase monotonically as the wind, and with it the shift, increases.",
            "In the order of the wind, mean 1 - p: "
            + ", ".join(f"{row['hypothesis-test']['mean']:.2f}" for row in windy)
            + "; mean ΔC: "
            + ", ".join(f"{row['confidence-interval']['mean']:+.2f}" for row in windy)
            + "; true shift: "
            + ", ".join(f"{row['shift']:+.3f}" for row in windy)
            + ".",
            rise,
            "By construction the mean of ΔC is the true shift less a constant; that the indicators rise with "
            f"the wind is what is checked, on the means. {why}",
        ),
        Claim.judged(
            "ADVERSE is detected at 100 % wind from ten trials.",
            f"In {' and '.join(percent(share) for share in at_full)} of the datasets of ten, by the test and "
            "by the interval.",
            "",
            "" if min(at_full) > 0.5 else _why_missed(results, full),
            partly=max(at_full) > 0.5,
        ),
        _quiet(results),
        _harder(results),
        Claim.judged(
            "Wind is invisible to MSP and MaxLogit.",
            "By construction, here as there: they read the network's outputs, which do not depend on wind. "
            + "; ".join(
                f"{style.LINES[name]['label']}: {percent(before)} of the datasets without wind, "
                f"{percent(after)} at full wind"
                for name, (before, after) in theirs.items()
            )
            + ", in different fields of the same distribution.",
            "the two shares of either differ by less than 5 %.",
            "" if blind else f"The fields are not the same ones, and there are {datasets} datasets.",
        ),
    ]


def _quiet(results: Results) -> Claim:
    """Check easier fields."""
    share = max(_share(results, "easier", name) for name in OURS)
    quiet = share <= results["alpha"]
    shifts = {row["setting"]: row["shift"] for row in results["indicators"]}
    paper = "In easier fields the detectors are not triggered."
    if not any(row.adverse for row in tallies_of(results)):
        return Claim(paper, "Nothing triggers them here: silence shows nothing.", "not checkable here")
    return Claim(
        paper,
        f"They are in {percent(share)} of the datasets; true shift {shifts['easier']:+.3f}.",
        holds(quiet),
        "" if quiet else f"Compared as: at most {percent(results['alpha'])}.",
    )


def _why_missed(results: Results, setting: str) -> str:
    """Say how large the shift is, and how large it would have to be for an alarm in half of the datasets."""
    (row,) = (row for row in results["indicators"] if row["setting"] == setting)
    needed = row["shift"] - row["confidence-interval"]["mean"]
    return (
        f"The true shift is {row['shift']:+.2f} in our simulation; with ten trials, Hoeffding's margin and "
        f"the certificate's take {needed:.2f}."
    )


def _harder(results: Results) -> Claim:
    """Check the paper's one set of ten trials in harder fields, in which neither detector alarmed."""
    (row,) = (row for row in results["indicators"] if row["setting"] == "harder")
    test, interval = (row[name] for name in OURS)
    shares = [_share(results, "harder", name) for name in OURS]
    conditions = {
        "1 - p = 0.81 is within two standard deviations of the mean": (
            abs(test["mean"] - 0.81) < 2 * test["deviation"]
        ),
        "ΔC = -0.11 is within two standard deviations of the mean": (
            abs(interval["mean"] + 0.11) < 2 * interval["deviation"]
        ),
        "at most half of the datasets alarm": max(shares) <= 0.5,
    }
    failed = [condition for condition, met in conditions.items() if not met]
    return Claim(
        "Ten flights in harder fields, with 1 - p = 0.81 and ΔC = -0.11, raise no alarm at 5 %.",
        f"Mean 1 - p {test['mean']:.2f}, mean ΔC {interval['mean']:+.2f}; first ten trials "
        f"{test['first']:.2f} and {interval['first']:+.2f}; alarms in "
        f"{' and '.join(percent(share) for share in shares)} of the datasets, "
        f"by the test and by the interval; true shift {row['shift']:+.2f}.",
        holds(not failed, otherwise="partly" if len(failed) == 1 else "no"),
        f"Compared as: {', '.join(conditions)}." + (f" Not so: {', '.join(failed)}." if failed else ""),
    )


def _share(results: Results, setting: str, name: str) -> float:
    (row,) = (
        row
        for row in tallies_of(results, "tallies", "baselines")
        if row.setting == setting and row.detector == name
    )
    return row.share()
