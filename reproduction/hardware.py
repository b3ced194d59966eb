"""The authors' trials, replayed: recorded costs through their detectors and ours (Figures 2c, 3 and 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from boundwatch.detectors.verdicts import TailName, Verdict
from reproduction import recorded, style
from reproduction.artifacts import Cache
from reproduction.figure import BaseSettings, Caption, Claim, Table
from reproduction.judging import confidence_interval, hypothesis_test, margin
from reproduction.rereading import curves, first_alarm, sequential_test

NAME = "hardware"
TITLE = "Hardware: the recorded trials, replayed"
WIND = ("no wind", "wind 25 %", "wind 50 %", "wind 75 %", "wind 100 %")
EASIER, HARDER = "easier: 6 obstacles", "harder: 9 obstacles, smaller gaps"
PLACEMENTS = ("10 cm", "20 cm", "30 cm", "40 cm", "50 cm")
PAPERS = ("hypothesis-test", "confidence-interval")
LABELS = {
    "hypothesis-test": "hypothesis test: 1 − p",
    "confidence-interval": "confidence interval: ΔC + 0.95",
    "sequential-test": "sequential test (anytime-valid): 1 − p",
}
ORDER = {"sequential-test": 2.0, "hypothesis-test": 2.1, "confidence-interval": 2.2}
"""Thin lines are drawn above the thick one."""
JUDGES = ("test", "interval", "sharper test", "sharper interval")
PRINTED = {HARDER: ("0.81", "-0.11")}
"""What the paper's text says of 1 - p and of ΔC; of the other settings it has points in figures."""
FLAT = 0.0005
"""A rise of an indicator by less cannot be read from a figure."""


@dataclass(frozen=True)
class Settings(BaseSettings):
    """What is computed."""

    alpha: float = 0.05
    """Level of the tests; what the intervals and the sequential test may err in all, delta included."""
    recordings: str = field(default_factory=lambda: recorded.digest(recorded.HARDWARE))
    """SHA-256 of the recorded costs."""


FULL = QUICK = Settings()


@dataclass(frozen=True)
class Replay:
    """Ten recorded trials, judged."""

    robot: str
    setting: str
    mean_cost: float
    test: float
    """1 - p of the paper's test after all trials."""
    interval: float
    """ΔC: the lower limit of the shift by the paper's interval."""
    verdicts: dict[str, str]
    """After all trials: the paper's two detectors, and the same two with a sharper tail."""
    evidence: dict[str, list[float]]
    """After 1, 2, … trials, by detector; the fixed-sample ones are not valid when read so."""
    crossed: dict[str, int]
    """The trial after which each first says ADVERSE, 0 for never."""
    benign_test: float
    """1 - p of the paper's test for BENIGN after all trials."""
    benign_interval: float
    """ΔC_B: the lower limit of how far the cost has fallen, by the paper's interval."""


@dataclass(frozen=True)
class Results:
    """What came out."""

    alpha: float
    certificates: dict[str, float]
    """Upper limits, by robot."""
    delta: float
    replays: list[Replay]

    def of(self, *settings: str) -> list[Replay]:
        """Return the replays of some settings, in their order."""
        replays = {replay.setting: replay for replay in self.replays}
        return [replays[setting] for setting in settings]


def run(settings: Settings, cache: Cache) -> Results:  # noqa: ARG001  (every experiment has a cache)
    """Judge all recorded trials."""
    return Results(
        alpha=settings.alpha,
        certificates={robot: recorded.certificate(robot).upper for robot in ("drone", "arm")},
        delta=recorded.certificate("drone").delta,
        replays=[_replay(settings.alpha, each) for each in recorded.hardware() + recorded.simulated()],
    )


def _replay(alpha: float, trials: recorded.Trials) -> Replay:
    certificate, costs = recorded.certificate(trials.robot), np.array(trials.costs)
    tails: tuple[TailName, ...] = ("hoeffding", "exact" if certificate.binary else "betting")
    findings = [
        detector(certificate, alpha, tail).decide(costs)
        for tail in tails
        for detector in (hypothesis_test, confidence_interval)
    ]
    evidence = curves(certificate, alpha, costs)
    crossed = {
        name: next((n for n, value in enumerate(evidence[name], 1) if value >= 1 - alpha), 0)
        for name in PAPERS
    }
    return Replay(
        trials.robot,
        trials.setting,
        float(costs.mean()),
        1 - findings[0].p_adverse,
        findings[1].shift_lower,
        {name: finding.verdict.value for name, finding in zip(JUDGES, findings, strict=True)},
        evidence,
        crossed | {"sequential-test": first_alarm(sequential_test(certificate, alpha), costs)},
        1 - findings[0].p_benign,
        -findings[1].shift_upper,
    )


def draw(results: Results) -> Figure:
    """Draw the paper's Figures 7, 3b and 3c with the recorded points, and the sequential test beside them."""
    figure = style.new_figure(12.5, 4.6)
    left, middle, right = figure.subplots(1, 3, sharey=True)
    _draw_settings(left, results.of(*WIND, EASIER, HARDER), len(WIND))
    style.bare(left, "Drone: wind, and fields (Figure 7)")
    left.set_xlabel("ten flights each")
    _draw_settings(middle, results.of(*PLACEMENTS), len(PLACEMENTS))
    style.bare(middle, "Arm: where mugs stand (Figure 3b)")
    middle.set_xlabel("side of the square; ten grasps each")
    for replay in results.of("mugs", "bowls"):
        for detector, values in replay.evidence.items():
            look = style.line(detector, label=None, zorder=ORDER[detector])
            if replay.setting == "mugs":
                look |= {"markerfacecolor": "none", "alpha": 0.75}
            right.plot(range(1, len(values) + 1), values, **look)
    right.annotate("bowls", (5, 1.16), fontsize=9, ha="center")
    right.annotate("mugs (hollow)", (7, 0.14), fontsize=9, ha="center")
    style.bare(right, "Arm: mugs and bowls (Figure 3c)")
    right.set_xlabel("grasps so far")
    right.set_xticks(range(1, 11))
    left.set_ylabel("evidence of an adverse shift")
    for axes in (left, middle, right):
        axes.axhline(1 - results.alpha, **style.PROMISE)
    style.legend_below(figure, left, 3, fontsize=9)
    return figure


def _draw_settings(axes: Axes, replays: Sequence[Replay], joined: int) -> None:
    """Draw every detector's evidence after all trials; the first settings are joined by a line."""
    for detector, label in LABELS.items():
        values = [replay.evidence[detector][-1] for replay in replays]
        look = style.line(detector, label=label, zorder=ORDER[detector])
        axes.plot(range(joined), values[:joined], **look)
        rest = look | {"linestyle": "", "label": None}
        axes.plot(range(joined, len(values)), values[joined:], **rest)
    for place, replay in enumerate(replays):
        if alarm := replay.crossed["sequential-test"]:
            top = max(values[-1] for values in replay.evidence.values())
            style.write(axes, f"after {alarm}", (place, top), above=6, fontsize=8)
    names = [replay.setting.split(":")[0].replace("wind ", "") for replay in replays]
    axes.set_xticks(range(len(names)), names, fontsize=8)


def caption(results: Results) -> Caption:
    """Say what the figure shows."""
    drone, arm = (results.certificates[robot] for robot in ("drone", "arm"))
    return Caption(
        see="The costs that the paper's authors recorded on their drone and their arm, judged by their two "
        "detectors and by the sequential test (black). Above the dashed line (0.95; for the sequential test "
        "0.96) the verdict is ADVERSE. “After 5”: the sequential test alarmed after the fifth trial. Only "
        "the sequential test may be read after every trial, as the panel on the right reads all three.",
        numbers=f"Fourteen settings of ten trials each, and ten mugs and ten bowls that the authors "
        "simulated. The certificates are the authors': expected cost at "
        f"most {drone} for the drone and at most {arm} for the arm, at delta = {results.delta}. The drone's "
        f"lower limit, {recorded.certificate('drone').lower:.4f}, is that of Corollary 1 at the training "
        "cost "
        "behind their bound; with ten trials BENIGN is impossible all the same: even ten costs of 0 leave "
        f"Hoeffding's margin of {margin(10, results.alpha - results.delta):.3f} above it. Each "
        "setting has its own error rate: 5 % plus delta for the tests, 5 % with delta for the intervals and "
        "the sequential test.",
        paper="The paper's Figures 3 and 7. Of its numbers, the text prints 1 - p >= 0.81 and ΔC = -0.11 for "
        "the harder fields.",
        differs="Nothing was flown or simulated here: same costs, same bounds, same formulas. The sharper "
        "tails (betting for the drone's costs, the exact binomial one for the arm's) and the sequential test "
        "are ours.",
    )


def tables(results: Results) -> list[Table]:
    """Return every setting, with the paper's printed numbers beside ours."""
    lines = []
    for replay in results.replays:
        printed = PRINTED.get(replay.setting)
        said = {name: "ADVERSE" if v == Verdict.ADVERSE else "–" for name, v in replay.verdicts.items()}
        alarm = replay.crossed["sequential-test"]
        lines.append(
            {
                "robot": replay.robot,
                "setting": replay.setting,
                "mean cost": f"{replay.mean_cost:.3f}",
                "1 − p": f"{replay.test:.3f}" + (f" (paper: {printed[0]})" if printed else ""),
                "ΔC": f"{replay.interval:+.3f}" + (f" (paper: {printed[1]})" if printed else ""),
                "BENIGN: 1 − p": f"{replay.benign_test:.3f}",
                "BENIGN: ΔC": f"{replay.benign_interval:+.3f}",
                "paper's test": said["test"],
                "paper's interval": said["interval"],
                "sharper test": said["sharper test"],
                "sharper interval": said["sharper interval"],
                "sequential test": f"after {alarm}" if alarm else "–",
            }
        )
    return [Table.of("Recorded trials: who says ADVERSE", lines)]


def claims(results: Results) -> list[Claim]:
    """Check what the paper says of its hardware experiments, on its own recordings."""
    return [
        _silent(
            results, "no wind", "Without wind, the shift from simulation to hardware is not seen as adverse."
        ),
        _silent(results, EASIER, "On hardware, the detectors are not triggered by easier fields."),
        _harder(results),
        _wind(results),
        _placements(results),
        _only_50(results),
        _bowls(results),
        _silent(
            results, "mugs", "On hardware, the detectors are not triggered by mugs.", after_every_trial=True
        ),
        _bowls_simulated(results),
        _silent(
            results,
            "mugs, simulated",
            "In the authors' simulation, mugs trigger neither detector.",
            after_every_trial=True,
        ),
        _sequential(results),
    ]


def _bowls_simulated(results: Results) -> Claim:
    (replay,) = results.of("bowls, simulated")
    first = {name: replay.crossed[name] for name in PAPERS}
    return Claim.judged(
        "In the authors' simulation, bowls are detected after 4 trials.",
        f"{round(10 * replay.mean_cost)} failures of 10; the test crosses its threshold at trial "
        f"{first[PAPERS[0]]}, the interval at trial {first[PAPERS[1]]}. The sequential test {_when(replay)}.",
        "both cross at trial 4 (in part: both by then).",
        "" if set(first.values()) == {4} else f"At trials {' and '.join(map(str, first.values()))}.",
        partly=all(0 < trial <= 4 for trial in first.values()),
    )


def _silent(results: Results, setting: str, said: str, *, after_every_trial: bool = False) -> Claim:
    """Neither of the paper's detectors may alarm, after all trials or after any."""
    (replay,) = results.of(setting)
    loud = [name for name in PAPERS if replay.crossed[name]] if after_every_trial else _adverse(replay)
    return Claim.judged(
        said,
        f"Ten recorded trials of mean cost {replay.mean_cost:.3f}: {_numbers(replay)}. The sequential test "
        + ("is silent, too." if not replay.crossed["sequential-test"] else "alarms."),
        "neither detector declares ADVERSE" + (" after any trial." if after_every_trial else "."),
        f"Not so: {', '.join(loud)}." if loud else "",
    )


def _harder(results: Results) -> Claim:
    (replay,) = results.of(HARDER)
    ours = (f"{replay.test:.2f}", f"{replay.interval:.2f}")
    adverse = _adverse(replay)
    sharper = replay.verdicts["sharper test"] == Verdict.ADVERSE
    return Claim.judged(
        "On hardware, harder fields give 1 - p = 0.81 and ΔC = -0.11, and raise no alarm at 5 %.",
        f"{_numbers(replay)}. With the betting tail the same test "
        + ("alarms" if sharper else "does not alarm, either")
        + f" on these ten flights (at 6 % in all); the sequential test (5 %) {_when(replay)}.",
        "the printed numbers to two digits, and no alarm by the paper's detectors.",
        ""
        if ours == PRINTED[HARDER] and not adverse
        else f"Here {' and '.join(ours)}; alarms: {', '.join(adverse) or 'none'}.",
        partly=ours == PRINTED[HARDER],
    )


def _wind(results: Results) -> Claim:
    replays = results.of(*WIND)
    flat = _not_rising(replays)
    detected = len(_adverse(replays[-1])) == len(PAPERS)
    return Claim.judged(
        "On hardware, both indicators increase monotonically with the wind, and 100 % is ADVERSE.",
        f"From no wind to 100 %: {_series(replays)}. By both detectors: "
        f"{_declared(replays)}; the sequential test: {_alarmed(replays)}.",
        "each indicator rises at every step, and both detectors alarm at 100 % (in part: one of the two).",
        " ".join([*flat, *([] if detected else ["100 % is not ADVERSE for both."])]),
        partly=detected or not flat,
    )


def _placements(results: Results) -> Claim:
    replays = results.of(*PLACEMENTS)
    flat = _not_rising(replays)
    falls = any(
        after.test < before.test - FLAT or after.interval < before.interval - FLAT
        for before, after in pairwise(replays)
    )
    failures = ", ".join(f"{round(10 * replay.mean_cost)} at {replay.setting}" for replay in replays)
    return Claim.judged(
        "On hardware, both indicators increase monotonically with the range of placements.",
        f"Failures of 10: {failures}. {_series(replays)}.",
        "each indicator rises at every step (in part: never falls).",
        " ".join(flat),
        partly=not falls,
    )


def _only_50(results: Results) -> Claim:
    replays = results.of(*PLACEMENTS)
    both = _declared(replays)
    return Claim.judged(
        "On hardware, both detectors declare ADVERSE for placements within 50 cm, and for no smaller square.",
        f"By both detectors: {both}; by the exact test: "
        f"{_declared(replays, 'sharper test')}; the sequential test: {_alarmed(replays)}.",
        "at 50 cm alone (in part: there, too).",
        "" if both == "50 cm" else f"By both: {both}.",
        partly="50 cm" in both,
    )


def _bowls(results: Results) -> Claim:
    (replay,) = results.of("bowls")
    first = {name: replay.crossed[name] for name in PAPERS}
    at_three = all(replay.evidence[name][2] >= 1 - results.alpha for name in PAPERS)
    return Claim.judged(
        "On hardware, bowls are detected after 3 trials.",
        f"In the recordings the test crosses its threshold at trial {first['hypothesis-test']} and the "
        f"interval at trial {first['confidence-interval']}; the sequential test, the only one that may be "
        f"read after every trial, {_when(replay)}.",
        "both cross at trial 3 (in part: both are above the threshold at trial 3).",
        ""
        if set(first.values()) == {3}
        else "Both cross earlier: two failures in two trials are enough."
        if at_three
        else "They do not.",
        partly=at_three,
    )


def _sequential(results: Results) -> Claim:
    """Ours: nothing that the paper's detectors see is lost, although the test may be read at any time."""
    replays = results.replays
    theirs = [replay for replay in replays if _adverse(replay)]
    missed = [replay.setting for replay in theirs if not replay.crossed["sequential-test"]]
    more = [replay for replay in replays if replay.crossed["sequential-test"] and not _adverse(replay)]
    return Claim.judged(
        "The sequential test alarms wherever the paper's detectors do on the recorded trials.",
        f"The paper's alarm in {len(theirs)} of {len(replays)} settings; the sequential test there: "
        f"{_alarmed(theirs)}. It also alarms in: {_alarmed(more)}.",
        "",
        f"Not so: {', '.join(missed)}." if missed else "",
        beyond=True,
    )


def _adverse(replay: Replay) -> list[str]:
    """Return which of the paper's detectors alarm after all trials."""
    return [name for name in ("test", "interval") if replay.verdicts[name] == Verdict.ADVERSE]


def _not_rising(replays: Sequence[Replay]) -> list[str]:
    found = []
    for before, after in pairwise(replays):
        if after.test - before.test < FLAT or after.interval - before.interval < FLAT:
            falls = after.test < before.test - FLAT
            found.append(
                f"From {before.setting} to {after.setting} they {'fall' if falls else 'stay the same'}."
            )
    return found


def _numbers(replay: Replay) -> str:
    return f"1 - p = {replay.test:.3f} and ΔC = {replay.interval:+.3f}"


def _series(replays: Sequence[Replay]) -> str:
    tests = ", ".join(f"{replay.test:.3f}" for replay in replays)
    return f"1 - p {tests}; ΔC {', '.join(f'{replay.interval:+.3f}' for replay in replays)}"


def _declared(replays: Sequence[Replay], *names: str) -> str:
    wanted = names or ("test", "interval")
    found = [r.setting for r in replays if all(r.verdicts[name] == Verdict.ADVERSE for name in wanted)]
    return ", ".join(found) or "none"


def _alarmed(replays: Sequence[Replay]) -> str:
    found = [
        f"{replay.setting.split(':')[0]} after {alarm}"
        for replay in replays
        if (alarm := replay.crossed["sequential-test"])
    ]
    return ", ".join(found) or "none"


def _when(replay: Replay) -> str:
    alarm = replay.crossed["sequential-test"]
    return f"alarms after trial {alarm}" if alarm else "does not alarm"
