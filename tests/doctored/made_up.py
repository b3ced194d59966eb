"""Results made up for the rules of claims, and what a claim must say for itself."""

from __future__ import annotations

from reproduction.figure import Claim

SHIFTS = {"training": 0.0, "easiest": -0.3, "easy": -0.08, "hard": 0.08, "harder": 0.2, "hardest": 0.5}
ERRORS = {"training": 0.0}


def row(setting: str, detector: str = "confidence-interval", n: int = 10, **changes: float) -> dict:
    """Return what a detector declares in 1000 datasets of a setting: nothing, but for the changes."""
    counts = {"adverse": 0, "benign": 0} | changes
    return filled(
        setting=setting,
        detector=detector,
        n=n,
        datasets=1000,
        within=1000 - counts["adverse"] - counts["benign"],
        shift=SHIFTS[setting],
        shift_error=ERRORS.get(setting, 0.001),
        **counts,
    )


def filled(**given: object) -> dict:
    """Return a tally in which what is not given is nothing in particular."""
    rates = {"false_positive_rate": 0.05, "false_negative_rate": 0.05}
    nothing = {"tail": "hoeffding", "n": 10, "benign": 0, "within": 0, "shift": 0.0, "shift_error": 0.001}
    return nothing | rates | given


def indicated(setting: str, shift: float, test: float, interval: float, deviation: float) -> dict:
    """Return the indicators of a setting, the same in its first dataset as in the mean."""
    means = {"hypothesis-test": test, "confidence-interval": interval}
    spread = dict.fromkeys(means, deviation)
    return {
        "setting": setting,
        "shift": shift,
        "mean_cost": 0.0,
        "first": dict(means),
        "mean": dict(means),
        "deviation": spread,
    }


def change(rows: list[dict], *, to: dict, **where: object) -> None:
    """Give rows other counts: those that have all these values."""
    found = [row for row in rows if all(row[name] == value for name, value in where.items())]
    assert found
    for each in found:
        each |= to
        each["within"] = each["datasets"] - each["adverse"] - each["benign"]


def judged(claim: Claim, holds: str) -> None:
    assert claim.holds == holds, claim
    assert bool(claim.why) == (holds != "yes"), claim
    assert claim.ours
