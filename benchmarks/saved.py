"""What a sharper rule saves at the same promise: the rule before and the one in use, exactly, in one run."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.bounds.bets import Bets
from boundwatch.bounds.rate_difference import fewest_that_differ, rate_difference_p_value
from boundwatch.detectors.run_length import calibrated, run_length
from boundwatch.detectors.verdicts import CHANGE_LEVEL
from boundwatch.planning.before_certificate import Question

ALPHA, DELTA = 0.05, 0.01
FAMILIES = [  # tasks, lab trials and their rate, new trials and their rate
    (4, 20, 0.2, 20, 0.6),
    (10, 50, 0.1, 40, 0.4),
    (3, 100, 0.05, 30, 0.25),
    (20, 30, 0.3, 50, 0.8),
]
MARGINS = [
    (n, n, 0.1, 0.04) for n in (1047, 1048)
]  # trials in the lab and at the site, their rate, the margin
MARGINS += [(1048, 300, 0.1, 0.05), (3000, 3000, 0.2, 0.03), (3000, 100, 0.05, 0.08)]

CHANGES = [(0.02, 0.06), (0.1, 0.3), (0.05, 0.1), (0.05, 0.3), (0.4, 0.7)]  # the bound, and the rate after
RUNS = 1000


def run() -> dict[str, Any]:
    """Compute, and return the numbers."""
    return {
        "families": [_family(*setting) for setting in FAMILIES],
        "margins": [_margin(*setting) for setting in MARGINS],
        "changes": [_change(*setting) for setting in CHANGES],
    }


def _family(tasks: int, lab: int, rate: float, new: int, worse: float) -> dict[str, Any]:
    """Return the chance that the one task that got worse is ADVERSE, the others being as good as they can."""
    chance = binom.pmf(np.arange(lab + 1), lab, rate)
    joint = [fewest_that_differ(lab, k, new, (ALPHA + DELTA / 2) / tasks) for k in range(lab + 1)]
    upper = bounds.clopper_pearson_upper(np.arange(lab + 1), lab, DELTA / 2 / tasks)
    p_values = binom.sf(np.arange(-1, new), new, upper[:, None])
    limits = binom.pmf(np.arange(new + 1), new, worse) * (p_values <= ALPHA / tasks)
    return {
        "tasks": tasks,
        "lab": [lab, rate],
        "new": [new, worse],
        "by limits": float(chance @ limits.sum(axis=1)),
        "jointly": float(chance @ binom.sf(np.array(joint) - 1, new, worse)),
    }


def _margin(lab: int, site: int, rate: float, margin: float) -> dict[str, Any]:
    """Return the power of "no worse": a limit on each rate, the test in use, and what `plan` says.

    The fewest failures in the lab are searched at 25 numbers of failures at the site, lines drawn between.
    """
    total, likely = ALPHA + DELTA / 2, binom.pmf(np.arange(site + 1), site, rate)
    share = min(max(site / (site + lab), 0.05), 0.95)
    lower = bounds.clopper_pearson_lower(np.arange(lab + 1), lab, share * total)
    upper = bounds.clopper_pearson_upper(np.arange(site + 1), site, (1 - share) * total)
    limits = likely @ binom.sf(np.searchsorted(lower, upper - margin, side="right") - 1, lab, rate)
    places = np.flatnonzero(likely > 1e-6)
    tried = np.unique(np.linspace(places[0], places[-1], 25).round().astype(int))
    needed = [
        bisect_left(
            range(lab + 1), True, key=lambda k: rate_difference_p_value(site, j, lab, k, -margin) <= total
        )
        for j in tried.tolist()
    ]
    between = np.interp(places, tried, needed)
    whole = np.floor(between)
    tails = binom.sf(whole - 1, lab, rate) - (between - whole) * binom.pmf(whole, lab, rate)
    return {
        "lab": lab,
        "site": site,
        "rate": rate,
        "margin": margin,
        "two limits": float(limits),
        "in use": float(likely[places] @ tails),
        "plan": Question("no worse", rate, rate, margin, ALPHA, DELTA / 2).power(lab, site).power,
    }


def _change(bound: float, rate: float) -> dict[str, Any]:
    """Return run lengths at the bound and delays: Shiryaev and Roberts at 1/alpha (simulated), calibrated."""
    found = calibrated(bound, CHANGE_LEVEL)
    assert found is not None
    calibrated_at = {name: run_length(found[0], p, found[1]) for name, p in (("run", bound), ("delay", rate))}
    return {"bound": bound, "rate": rate, "calibrated": calibrated_at} | {
        "before": {name: _waits(bound, p) for name, p in (("run", bound), ("delay", rate))}
    }


def _waits(bound: float, rate: float) -> float:
    bets, rng = Bets.for_costs(binary=True), np.random.default_rng(1)
    going, capitals, total, n = np.arange(RUNS), np.zeros((RUNS, bets.sizes.size)), 0, 0
    while going.size:
        n += 1
        failed = rng.random(going.size)[:, None] < rate
        capitals = (capitals + bets.shares) * (1 - bets.sizes + failed * bets.sizes / bound)
        stays = capitals.sum(axis=1) < 1 / CHANGE_LEVEL
        total += n * int((~stays).sum())
        going, capitals = going[stays], capitals[stays]
    return total / RUNS


def show(result: dict[str, Any]) -> None:
    """Print the numbers as tables."""
    print(
        f"FamilyTest, Holm at {ALPHA} + delta of {DELTA}: chance that the one task that got worse is ADVERSE"
    )
    for row in result["families"]:
        told = f"{row['tasks']:3} tasks, lab {row['lab'][0]} at {row['lab'][1]:g}, {row['new'][0]} new"
        print(
            f"{told:>32} at {row['new'][1]:g}: {row['by limits']:.3f} by limits, {row['jointly']:.3f} jointly"
        )
    print("No worse by more than a margin, both rates equal: power")
    for row in result["margins"]:
        told = f"{row['lab']} and {row['site']} trials at {row['rate']:g}, margin {row['margin']:g}"
        rest = f"{row['in use']:.3f} in use, {row['plan']:.3f} planned"
        print(f"{told:>42}: {row['two limits']:.3f} with a limit on each rate, {rest}")
    print(f"Change detector, alpha {CHANGE_LEVEL}, costs of 0 and 1: run length at the bound, and mean delay")
    for row in result["changes"]:
        old, new = row["before"], row["calibrated"]
        told = f"bound {row['bound']:g}, then {row['rate']:g}"
        print(
            f"{told:>22}: {old['run']:.0f} and {old['delay']:.1f}, now {new['run']:.0f}, {new['delay']:.1f}"
        )
