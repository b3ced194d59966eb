"""Reference and new trials judged jointly: levels, trials and speed, beside a test against a limit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import binom

import boundwatch as bw
from benchmarks.worlds import Draw, beta, inflated
from boundwatch.bounds import clopper_pearson_upper
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.joint_region import alarm_line, joint_region, region_within
from boundwatch.detectors.mixture import alarm_counts, exact_threshold

ALPHA, DELTA = 0.04, 0.005
TOTAL = ALPHA + DELTA
MOST = 400
# Reference trials, old and new failure rate, and the most trials that were asked for (None: not asked).
CELLS = [
    (50, 0.08, 0.3, 80),
    (50, 0.08, 0.5, 8),
    (30, 0.2, 0.5, 92),
    (30, 0.2, 0.7, 9.2),
    (100, 0.05, 0.2, 82),
    (100, 0.05, 0.3, 17),
    (200, 0.08, 0.2, 116),
    (200, 0.08, 0.3, 23),
    (400, 0.1, 0.25, 60),
    (20, 0.1, 0.5, None),
    (200, 0.02, 0.08, None),
    (200, 0.3, 0.5, None),
    (1000, 0.1, 0.2, None),
]
# Large references: trials, old and new failure rate; P[alarm] within so many new trials.
LARGE = [(1000, 0.1, 0.14), (1001, 0.1, 0.14), (2000, 0.1, 0.14), (5000, 0.1, 0.14), (5000, 0.3, 0.34)]
WITHIN = (500, 1000, 3000)
RUNS, BOUNDED_MOST, SEED = 1000, 400, 2026
BOUNDED: dict[str, tuple[Draw, Draw]] = {
    "Beta(2, 8) -> Beta(3, 7)": (beta(2, 8).draw, beta(3, 7).draw),
    "Beta(2, 8) -> Beta(4, 6)": (beta(2, 8).draw, beta(4, 6).draw),
    "35 % zeros, 23 % ones -> 20, 40": (inflated(0.35, 0.23).draw, inflated(0.2, 0.4).draw),
    "35 % zeros, 23 % ones -> 10, 60": (inflated(0.35, 0.23).draw, inflated(0.1, 0.6).draw),
}


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    binary = []
    for n, old, new, asked in CELLS:
        joint = joint_lines(n, np.flatnonzero(binom.pmf(np.arange(n + 1), n, old) > 1e-9))
        # Thresholds take a fifth of a second each: every few references stand for those between them.
        likely = np.flatnonzero(binom.pmf(np.arange(n + 1), n, old) > 1e-4)
        limit = limit_lines(n, likely[:: max(1, likely.size // 20)])
        binary.append(
            {
                "n": n,
                "old": old,
                "new": new,
                "asked": asked,
                "today": mean_trials(limit, n, old, new),
                "joint": mean_trials(joint, n, old, new),
                "level_at_old_today": 1 - survival(limit, n, old, old)[-1],
                "level_at_old_joint": 1 - survival(joint, n, old, old)[-1],
            }
        )
    levels = []
    for n in (20, 50, 100, 400):
        start = time.process_time()
        joint_region.cache_clear()
        region = joint_region(n, TOTAL)
        seconds = time.process_time() - start
        levels.append({"n": n, "proven": region.bound, "seconds": seconds})
    bounded = [
        {"worlds": name, "n": n} | bounded_trials(*worlds, n=n, seed=[SEED, index])
        for index, (name, worlds) in enumerate(BOUNDED.items())
        for n in (50, 200)
    ]
    large = [{"n": n, "old": old, "new": new} | large_powers(n, old, new) for n, old, new in LARGE]
    found = {"binary": binary, "levels": levels, "large": large, "bounded": bounded}
    return {"total": TOTAL, "runs": RUNS} | found | speed()


def large_powers(n: int, old: float, new: float) -> dict[str, Any]:
    """Return P[alarm] within some numbers of trials, and how long the line takes; before: exact up to 500."""
    likely = np.flatnonzero(binom.pmf(np.arange(n + 1), n, old) > 1e-9)
    found: dict[str, Any] = {}
    for name in ("before", "now"):
        start = time.process_time()
        is_before = name == "before" and n > 1000
        region = region_within(n, TOTAL, 500, 0.1 * TOTAL) if is_before else joint_region(n, TOTAL)
        found[f"{name}_seconds"] = time.process_time() - start
        lines = {k: region.line(k).needed(WITHIN[-1])[: WITHIN[-1] + 1] for k in likely.tolist()}
        left = survival(lines, n, old, new)
        found[name] = [1 - float(left[trials]) for trials in WITHIN]
    return found


def joint_lines(n: int, failures: np.ndarray) -> dict[int, np.ndarray]:
    """Return, for each number of failures in the reference, how many new ones alarm after each trial."""
    return {k: alarm_line(n, k, TOTAL).needed(MOST)[: MOST + 1] for k in failures.tolist()}


def limit_lines(n: int, failures: np.ndarray) -> dict[int, np.ndarray]:
    """Return the same for a test against the certificate's upper limit."""
    bets = Bets.for_costs(binary=True)
    lines = {}
    for k in failures.tolist():
        upper = float(clopper_pearson_upper(k, n, DELTA))
        lines[k] = alarm_counts(bets, upper, float(np.log(exact_threshold(upper, ALPHA))), MOST)
    return lines


def survival(lines: dict[int, np.ndarray], n: int, old: float, new: float) -> np.ndarray:
    """Return P[no alarm within t trials], t = 0, 1, …, over the draw of reference and stream."""
    keys = np.array(list(lines))
    needed = np.array(list(lines.values()))
    chances = binom.pmf(keys, n, old)
    chances /= chances.sum()
    most = needed.shape[1] - 1
    alive = np.zeros((keys.size, most + 2))
    alive[:, 0] = 1.0
    left = [1.0]
    for t in range(1, most + 1):
        alive[:, 1 : t + 1] = (1 - new) * alive[:, 1 : t + 1] + new * alive[:, :t]
        alive[:, 0] *= 1 - new
        alive[np.arange(keys.size), np.minimum(needed[:, t], t + 1)] = 0.0
        left.append(float(chances @ alive.sum(axis=1)))
    return np.array(left)


def mean_trials(lines: dict[int, np.ndarray], n: int, old: float, new: float) -> float:
    """Return E min(trials to the alarm, 400)."""
    return float(survival(lines, n, old, new)[:-1].sum())


def bounded_trials(draw_old: Draw, draw_new: Draw, *, n: int, seed: list[int]) -> dict[str, float]:
    """Return the mean trials to the alarm with and without the certificate's own costs, on the same draws."""
    rng = np.random.default_rng([*seed, n])
    found: dict[str, list[int]] = {"today": [], "joint": []}
    for _ in range(RUNS):
        joint = bw.Certificate.from_held_out(draw_old(rng, n))
        limits = bw.Certificate.from_bounds(
            lower=joint.lower, upper=joint.upper, delta=2 * DELTA, delta_upper=DELTA, delta_lower=DELTA
        )
        costs = draw_new(rng, BOUNDED_MOST)
        for name, certificate in (("today", limits), ("joint", joint)):
            test = bw.SequentialTest(certificate, alpha_adverse=ALPHA)
            for cost in costs.tolist():
                test.update(cost)
                if test.first_alarm is not None:
                    break
            found[name].append(test.first_alarm or BOUNDED_MOST)
    today, joint = (np.array(found[name], dtype=float) for name in ("today", "joint"))
    ratio = joint.mean() / today.mean()
    error = np.std(joint - ratio * today, ddof=1) / today.mean() / np.sqrt(RUNS)
    return {
        "today": today.mean(),
        "joint": joint.mean(),
        "saved": 1 - ratio,
        "standard_error": error,
    }


def speed() -> dict[str, Any]:
    """Return microseconds per update and costs per second of a fleet, with joint evidence."""
    from benchmarks.speed import median_microseconds, seconds

    rng = np.random.default_rng(3)
    kinds = {
        "binary": (
            bw.Certificate.from_held_out((np.arange(200) < 16).astype(float), binary=True),
            (rng.random(200_000) < 0.08).astype(float),
        ),
        "bounded": (bw.Certificate.from_held_out(rng.beta(2, 8, 200)), rng.beta(2, 8, 200_000)),
    }
    update, fleet = {}, {}
    for name, (certificate, costs) in kinds.items():
        update[name] = median_microseconds(bw.SequentialTest(certificate), costs[:5000])
        streams = bw.Fleet(certificate)
        ids = rng.integers(0, 10_000, costs.size)
        streams.update(ids, costs)
        fleet[name] = max(costs.size / seconds(streams.update, ids, costs) for _ in range(3))
    return {"update_microseconds": update, "fleet_costs_per_second": fleet}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(f"Mean trials to ADVERSE, E min(tau, {MOST}), exact, total promise {result['total']:g}")
    print(f"{'n':>6}{'old':>6}{'new':>6}{'today':>9}{'joint':>9}{'asked':>8}{'level today':>13}{'joint':>9}")
    for row in result["binary"]:
        asked = "" if row["asked"] is None else f"{row['asked']:g}"
        print(
            f"{row['n']:>6}{row['old']:>6}{row['new']:>6}{row['today']:>9.1f}{row['joint']:>9.1f}{asked:>8}"
            f"{row['level_at_old_today']:>13.4f}{row['level_at_old_joint']:>9.4f}"
        )
    for row in result["levels"]:
        proven = f"level proven for every rate {row['proven']:.5f}"
        print(f"n = {row['n']}: {proven}, found in {row['seconds']:.2f} s")
    print(f"P[ADVERSE within {', '.join(map(str, WITHIN))} trials], exact; before: the line ended at 500")
    for row in result["large"]:
        for name in ("before", "now"):
            powers = "  ".join(f"{power:.3f}" for power in row[name])
            cell = f"n = {row['n']}, {row['old']} -> {row['new']}"
            print(f"{cell:<24}{name:<8}{powers}  {row[f'{name}_seconds']:.1f} s")
    print(f"Bounded costs, mean over {result['runs']} runs, at most {BOUNDED_MOST} trials")
    for row in result["bounded"]:
        print(
            f"{row['worlds']:<34}n = {row['n']:<5}today {row['today']:>6.1f}  joint {row['joint']:>6.1f}  "
            f"{100 * row['saved']:.1f} % fewer, standard error {100 * row['standard_error']:.1f}"
        )
    for name in ("binary", "bounded"):
        print(
            f"{name}: update {result['update_microseconds'][name]:.1f} microseconds at the median, "
            f"Fleet {result['fleet_costs_per_second'][name] / 1e6:.1f} million costs per second"
        )
