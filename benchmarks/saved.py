"""What a sharper rule saves at the same promise: the rule before and the one in use, exactly, in one run."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.bounds.rate_difference import fewest_that_differ

ALPHA, DELTA = 0.05, 0.01
FAMILIES = [  # tasks, lab trials and their rate, new trials and their rate
    (4, 20, 0.2, 20, 0.6),
    (10, 50, 0.1, 40, 0.4),
    (3, 100, 0.05, 30, 0.25),
    (20, 30, 0.3, 50, 0.8),
]


def run() -> dict[str, Any]:
    """Compute, and return the numbers."""
    return {"families": [_family(*setting) for setting in FAMILIES]}


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
