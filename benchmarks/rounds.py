"""How far upper limits on the mean over tasks, which hold after every round, are above the truth.

One-sided 95 %, costs of 0 and 1, on tables of success rates that people posted about their policies
(DreamVLA, videopolicy, LIBERO-plus) and on tasks that are alike. "pooled" reads all trials as one sample, as
a campaign without strata does; "fixed" is Clopper-Pearson's limit, which may be read once, at a number fixed
in advance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boundwatch import bounds

DELTA = 0.05
RUNS = 1000
SEED = 11
DREAM = 1 - np.array([1, 1, 0.95, 1, 0.95, 0.2, 1, 0.85, 1, 0.9])
VIDEO = 1 - np.array([0.22, 0.34, 0.32, 0.40, 0.62, 0.24, 0.66, 0.38, 0.76, 0.92, 0.92, 1, 0.42, 0.94])
LIBERO = 1 - np.array([0.131, 0.068, 0.656, 0.87, 0.818, 0.164, 0.727])
ALIKE = np.full(10, 0.2)
CELLS = {
    "DreamVLA, 10 x 20": (DREAM, 20),
    "DreamVLA, 10 x 50": (DREAM, 50),
    "videopolicy, 14 x 20": (VIDEO, 20),
    "videopolicy, 14 x 50": (VIDEO, 50),
    "LIBERO-plus, 7 x 50": (LIBERO, 50),
    "alike, 10 x 20": (ALIKE, 20),
    "alike, 10 x 50": (ALIKE, 50),
}


def run() -> dict[str, Any]:
    """Return the mean of each limit above the truth, and how often that in rounds was below it."""
    found = {}
    for name, (rates, rounds) in CELLS.items():
        rng, truth = np.random.default_rng(SEED), rates.mean()
        streams = (rng.random((RUNS, rounds, rates.size)) < rates).astype(np.float64)
        failures, n = streams.sum(axis=(1, 2)), rounds * rates.size
        limits = np.array([bounds.rounds_upper(stream, DELTA) for stream in streams])
        found[name] = {
            "rounds": float(limits.mean() - truth),
            "pooled": float(bounds.anytime_upper(failures, n, DELTA).mean() - truth),
            "fixed": float(bounds.clopper_pearson_upper(failures, n, DELTA).mean() - truth),
            "below the truth": float((limits < truth).mean()),
        }
    return {"delta": DELTA, "runs": RUNS, "seed": SEED, "cells": found}


def show(results: dict[str, Any]) -> None:
    """Print one line per table."""
    print(f"above the truth, {results['runs']} runs, seed {results['seed']}")
    for name, row in results["cells"].items():
        print(f"{name:<24}" + "".join(f"  {what} {value:.4f}" for what, value in row.items()))
