"""Mugs against bowls over trials, and the price of looking after every one (the paper's Figure 2c)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from boundwatch import Certificate, ConfidenceInterval, HypothesisTest, SequentialTest, Verdict
from boundwatch.detectors.mixture import alarm_counts, alarm_distribution
from boundwatch.experiments import style
from boundwatch.experiments.artefacts import Artefact, Cache
from boundwatch.experiments.figure import Caption, Claim, Results, Table, holds, percent
from boundwatch.experiments.grasping import QUICK_RECIPE, GraspingPolicy, Grasps
from boundwatch.experiments.judging import Array, Shift, split, tally
from boundwatch.planning.exact import fewest_failures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "mugs-and-bowls"
TITLE = "Grasping: mugs against bowls, over trials"
OBJECTS = ("mugs", "bowls", "wide-bowls")
# Hollow and filled markers tell the two apart in grey, and where they coincide.
DRAWN: dict[str, dict[str, Any]] = {
    "mugs": {"color": "#0072B2", "markersize": 9, "markerfacecolor": "none", "zorder": 3},
    "bowls": {"color": "#D55E00", "markersize": 5},
}
PEEKED = {
    "hoeffding": "Hoeffding test, read after every trial",
    "exact": "exact test, read after every trial",
}
READERS = {**PEEKED, "sequential": "sequential test"}
INTERVAL = "Hoeffding interval, read after every trial"


@dataclass(frozen=True)
class Settings:
    """What is computed."""

    policy: GraspingPolicy = field(default_factory=GraspingPolicy)
    """How it was trained."""
    trials: int = 10
    """Trials in a stream."""
    environments: int = 1000
    """Grasps of each kind of object at the usual friction: 100 streams of 10."""
    alpha: float = 0.05
    """Level of all tests, and rate of the interval."""
    horizon: int = 500
    """How long somebody looks, for the false-alarm rates."""
    bounds: tuple[float, ...] = (0.25, 0.5)
    """Certified bounds for which they are computed, besides our own."""
    frictions: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Of the finger pads, for the sensitivity."""
    sensitivity: int = 200
    """Grasps of each kind of object at each friction."""
    seed: int = 0
    """Of the grasps."""


FULL = Settings()
QUICK = Settings(GraspingPolicy(QUICK_RECIPE), environments=50, horizon=100, frictions=(0.2,), sensitivity=10)


def artefacts(settings: Settings) -> Sequence[Artefact]:
    """Return what `run` takes from the cache."""
    return [_grasps(settings, name) for name in OBJECTS] + [
        _grasps(settings, name, friction) for name in OBJECTS for friction in settings.frictions
    ]


def _grasps(settings: Settings, objects: str, friction: float | None = None) -> Grasps:
    if friction is None:
        return Grasps(settings.policy, settings.environments, objects, seed=settings.seed)
    return Grasps(settings.policy, settings.sensitivity, objects, pad_friction=friction, seed=settings.seed)


def run(settings: Settings, cache: Cache) -> Results:
    """Read fixed-sample and sequential tests along streams; compute what repeated looking does."""
    certificate = settings.policy.load(cache).certificate
    reference = _grasps(settings, "mugs").costs(cache)
    tallies, streams = [], {}
    for name in OBJECTS:
        costs = _grasps(settings, name).costs(cache)
        shift = Shift(0.0, 0.0) if name == "mugs" else Shift.between(costs, reference)
        rows = split(costs, settings.trials, settings.environments // settings.trials)
        for tail in ("hoeffding", "exact"):
            for detector in (
                HypothesisTest(
                    certificate, alpha_adverse=settings.alpha, alpha_benign=settings.alpha, tail=tail
                ),
                ConfidenceInterval(
                    certificate, false_positive=settings.alpha, false_negative=settings.alpha, tail=tail
                ),
            ):
                tallies.append(tally(detector, rows, name, shift))
        streams[name] = {
            "failures": float(costs.mean()),
            "shift": shift.difference,
            "first": _curves(certificate, settings.alpha, rows[0]),
            "alarms": _first_alarms(certificate, settings.alpha, rows),
        }
    return {
        "alpha": settings.alpha,
        "certificate": {"lower": certificate.lower, "upper": certificate.upper, "delta": certificate.delta},
        "streams": streams,
        "tallies": tallies,
        "looking": [
            _looking(bound, settings.alpha, settings.horizon)
            for bound in (certificate.upper, *settings.bounds)
        ],
        "sensitivity": [
            {
                "friction": friction,
                **{name: float(_grasps(settings, name, friction).costs(cache).mean()) for name in OBJECTS},
            }
            for friction in settings.frictions
        ],
    }


def _curves(certificate: Certificate, alpha: float, stream: Array) -> dict[str, list[float]]:
    """Return every indicator after 1, 2, … trials of one stream, those of fixed samples included."""
    test = HypothesisTest(certificate, alpha_adverse=alpha, tail="hoeffding")
    interval = ConfidenceInterval(certificate, false_positive=alpha, tail="hoeffding")
    sequential = SequentialTest(certificate, alpha_adverse=alpha, alpha_benign=alpha)
    prefixes = [stream[: n + 1] for n in range(stream.size)]
    return {
        "hypothesis-test": [1 - test.decide(prefix).p_adverse for prefix in prefixes],
        "confidence-interval": [interval.decide(prefix).shift_lower + 0.95 for prefix in prefixes],
        "sequential-test": [1 - sequential.update(cost).p_adverse for cost in stream.tolist()],
    }


def _first_alarms(certificate: Certificate, alpha: float, rows: Array) -> dict[str, list[int]]:
    """Return the trial of the first ADVERSE in each stream, 0 for none."""
    n, failures = rows.shape[1], rows.cumsum(axis=1)
    # The interval is the test at what delta leaves of its rate.
    levels = {"hoeffding": alpha, "interval": alpha - certificate.delta_upper, "exact": alpha}
    found = {}
    for name, level in levels.items():
        tail = "hoeffding" if name == "interval" else name
        needed = [fewest_failures(tail, level, k, certificate.upper) for k in range(1, n + 1)]
        alarmed = failures >= needed
        found[name] = np.where(alarmed.any(axis=1), alarmed.argmax(axis=1) + 1, 0).tolist()
    test = SequentialTest(certificate, alpha_adverse=alpha, alpha_benign=alpha)
    found["sequential"] = []
    for stream in rows:
        test.reset()
        test.update_many(stream)
        adverse = test.verdict is Verdict.ADVERSE
        found["sequential"].append((test.first_alarm or 0) if adverse else 0)
    return found


def _looking(bound: float, alpha: float, horizon: int) -> Results:
    """Return the exact probability of a false alarm within n trials, at a failure rate equal to the bound."""
    series = {}
    for tail in PEEKED:
        needed = np.array([1, *(fewest_failures(tail, alpha, n, bound) for n in range(1, horizon + 1))])
        series[tail] = alarm_distribution(needed, bound)[0].cumsum()[1:].tolist()
    certificate = Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=True)
    test = SequentialTest(certificate, alpha_adverse=alpha)
    needed = alarm_counts(test.bets, bound, math.log(test.thresholds[0]), horizon)
    series["sequential"] = alarm_distribution(needed, bound)[0].cumsum()[1:].tolist()
    return {"bound": bound, "false_alarms": series}


def draw(results: Results) -> Figure:
    """Draw the paper's curves, the anytime-valid ones, and the false alarms of looking after every trial."""
    figure = style.new_figure(12, 4.6)
    left, middle, right = figure.subplots(1, 3)
    for name, look in DRAWN.items():
        curves = results["streams"][name]["first"]
        trials = range(1, len(curves["sequential-test"]) + 1)
        left.plot(trials, curves["hypothesis-test"], marker="o", label=f"{name}: 1 − p", **look)
        dashed = look | {"linestyle": (0, (5, 2))}
        left.plot(trials, curves["confidence-interval"], marker="s", label=f"{name}: ΔC + 0.95", **dashed)
        thick = look | {"linewidth": 2.4}
        label = f"{name}: 1 − p, anytime-valid"
        middle.plot(trials, curves["sequential-test"], marker="D", label=label, **thick)
    left.set_title(
        "As in the paper: fixed samples, reread.\nNot valid under repeated looking", loc="left", fontsize=10
    )
    middle.set_title("Anytime-valid:\nmay be read after every trial", loc="left", fontsize=10)
    for axes in (left, middle):
        axes.axhline(1 - results["alpha"], **style.PROMISE)
        axes.set(xlabel="trials", ylabel="evidence of an adverse shift")
        axes.set_xticks(range(1, len(results["streams"]["mugs"]["first"]["sequential-test"]) + 1))
    middle.set_ylim(-0.05, 1.05)
    looking = results["looking"][-1]
    looks = {
        "hoeffding": style.line("hoeffding", label=PEEKED["hoeffding"]),
        "exact": style.line("kl", label=PEEKED["exact"]),
        "sequential": style.line("mixture", label="sequential test"),
    }
    for name, look in looks.items():
        right.plot(
            range(1, len(looking["false_alarms"][name]) + 1),
            looking["false_alarms"][name],
            **{**look, "marker": ""},
        )
    right.axhline(results["alpha"], **style.PROMISE)
    right.set(xlabel="trials", ylabel="probability of a false alarm so far", xscale="log")
    right.set_ylim(0, None)
    right.set_title(
        f"No shift, bound {looking['bound']:g}:\nfalse alarms of looking every time", loc="left", fontsize=10
    )
    for axes in (left, middle, right):
        style.bare(axes)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=1)
    return figure


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    streams = results["streams"]
    last = results["looking"][-1]
    rereading, sequential = (last["false_alarms"][name][-1] for name in ("exact", "sequential"))
    return Caption(
        see="Left: the paper's curves, which reread a test for a fixed number of trials after each one; that "
        "voids its guarantee. Middle: the same streams watched by the sequential test, which may be read at "
        "any time. Right: without any shift, the probability of a false alarm; the level (dashed) is "
        f"{percent(results['alpha'])}, and by the end rereading the exact test has {percent(rereading)}, the "
        f"sequential test {percent(sequential)}.",
        numbers=f"the first stream of ten of each kind; for the table "
        f"{len(streams['mugs']['alarms']['sequential'])} streams of each; level {results['alpha']}; "
        "false alarms by exact enumeration at a failure rate equal to the bound.",
        paper="The paper detects bowls after 4 trials in simulation (3 on hardware) and never mugs; 7 of its "
        "10 bowls were failures.",
        differs="Our bowls fail in "
        + percent(streams["bowls"]["failures"])
        + " of the grasps (wide ones "
        + percent(streams["wide-bowls"]["failures"])
        + "). Sizes and friction are those of real bowls and pads, not fitted to the paper's rate; the table "
        "of sensitivity shows what other frictions would have given.",
    )


def tables(results: Results) -> list[Table]:
    """Return when alarms come, what looking costs, and the sensitivity."""
    lines: list[tuple[str, ...]] = []
    for name, stream in results["streams"].items():
        for detector, label in {**READERS, "interval": INTERVAL}.items():
            alarms = stream["alarms"][detector]
            caught = [alarm for alarm in alarms if alarm]
            median = f"{np.median(caught):.0f}" if caught else "–"
            lines.append((name, label, *(percent(_shares(alarms, n)) for n in (4, 5, 10)), median))
    header: tuple[str, ...] = (
        "objects",
        "detector",
        "ADVERSE by trial 4",
        "by 5",
        "by 10",
        "median trial, if any",
    )
    found = [Table("Alarms in streams of ten", header, tuple(lines))]
    length = len(results["looking"][0]["false_alarms"]["hoeffding"])
    lines = [
        (f"{entry['bound']:.3f}", *(percent(entry["false_alarms"][name][-1]) for name in READERS))
        for entry in results["looking"]
    ]
    header = ("certified bound", *READERS.values())
    found.append(Table(f"False alarms within {length} trials, at a level of 5 %", header, tuple(lines)))
    lines = [
        (f"{entry['friction']:g}", *(percent(entry[name]) for name in OBJECTS))
        for entry in results["sensitivity"]
    ]
    return [*found, Table("Failures by friction of the pads", ("friction", *OBJECTS), tuple(lines))]


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its Figure 2c."""
    streams = results["streams"]
    # What both of the paper's detectors detect; mugs: what either does.
    caught, late = (
        {
            name: min(_shares(streams[name]["alarms"][reader], n) for reader in ("hoeffding", "interval"))
            for name in OBJECTS
        }
        for n in (5, 10)
    )
    mugs = max(_shares(streams["mugs"]["alarms"][reader], 10) for reader in ("hoeffding", "interval"))
    safe = _shares(streams["bowls"]["alarms"]["sequential"], 10)
    detected = holds(caught["bowls"] > 0.5, otherwise="partly" if late["bowls"] > 0.5 else "no")
    last = results["looking"][-1]
    worst = max(last["false_alarms"]["hoeffding"][-1], last["false_alarms"]["exact"][-1])
    return [
        Claim(
            "Bowls are detected with a dataset of 5 (after 4 trials).",
            f"By both detectors within 5 trials in {percent(caught['bowls'])} of the streams of bowls "
            f"({percent(caught['wide-bowls'])} of wide bowls), within 10 in {percent(late['bowls'])} "
            f"({percent(late['wide-bowls'])}); the anytime-valid test within 10 in {percent(safe)}. Bowls "
            f"fail in {percent(streams['bowls']['failures'])} of the grasps, wide ones in "
            f"{percent(streams['wide-bowls']['failures'])}; the paper's in 7 of 10.",
            detected,
            "" if detected == "yes" else _why_late(results),
        ),
        Claim(
            "Mugs do not trigger the detectors.",
            f"{percent(mugs)} of the streams of ten mugs, although read after every trial.",
            holds(mugs <= 0.05),
            "" if mugs <= 0.05 else "Nothing is guaranteed when a test is read after every trial.",
        ),
        Claim(
            "The detectors can be read after every trial (implied by 'detects after 4').",
            f"At a bound of {last['bound']:g} a test at 5 % read after each of "
            f"{len(last['false_alarms']['exact'])} trials alarms falsely with probability up to "
            f"{percent(worst)}; the sequential test with {percent(last['false_alarms']['sequential'][-1])}.",
            holds(worst <= results["alpha"]),
            "A test for a fixed number of trials promises nothing when it is read repeatedly.",
        ),
        Claim(
            "On hardware, bowls are detected after 3 trials.",
            "There is no hardware here.",
            "not checkable here",
        ),
    ]


def _why_late(results: Results) -> str:
    if results["streams"]["bowls"]["failures"] >= 0.7:
        return f"The certified bound of {results['certificate']['upper']:.3f} is too loose for so few trials."
    return (
        "At our friction and sizes, our policy fails on fewer bowls than the paper's: the shift is smaller, "
        "and more trials are needed."
    )


def _shares(alarms: Sequence[int], within: int) -> float:
    return sum(0 < alarm <= within for alarm in alarms) / len(alarms)
