"""Results made up for the rules of claims, and what a claim must say for itself."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from reproduction.figure import Claim
from reproduction.judging import Indicated, Tally

SHIFTS = {"training": 0.0, "easiest": -0.3, "easy": -0.08, "hard": 0.08, "harder": 0.2, "hardest": 0.5}
ERRORS = {"training": 0.0}
Made = TypeVar("Made")


def row(setting: str, detector: str = "confidence-interval", n: int = 10, **changes: Any) -> Tally:
    """Return what a detector declares in 1000 datasets of a setting: nothing, but for the changes."""
    given = {"datasets": 1000, "shift": SHIFTS[setting], "shift_error": ERRORS.get(setting, 0.001)} | changes
    return _counted(tallied(setting=setting, detector=detector, n=n, **given))


def tallied(**given: Any) -> Tally:
    """Return a tally in which what is not given is nothing in particular."""
    rates = {"false_positive_rate": 0.05, "false_negative_rate": 0.05}
    return filled(Tally, **{"tail": "hoeffding", "n": 10, "shift_error": 0.001} | rates | given)


def filled(kind: type[Made], /, **given: Any) -> Made:
    """Return results, or a row of them, in which what is not given is empty or 0."""
    kinds = get_type_hints(kind)
    needed = [each.name for each in dataclasses.fields(kind) if each.default is dataclasses.MISSING]
    return kind(**{name: _nothing(kinds[name]) for name in needed} | given)


def _nothing(kind: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return filled(kind)
    outer = get_origin(kind) or kind
    return None if outer is types.UnionType else get_args(kind)[0] if not isinstance(outer, type) else outer()


def indicated(setting: str, shift: float, test: float, interval: float, deviation: float) -> Indicated:
    """Return the indicators of a setting, the same in its first dataset as in the mean."""
    means = {"hypothesis-test": test, "confidence-interval": interval}
    return Indicated(setting, shift, 0.0, dict(means), dict(means), dict.fromkeys(means, deviation))


def change(rows: list[Tally], *, to: dict[str, Any], **where: object) -> None:
    """Give rows other counts: those that have all these values."""
    found = [i for i, row in enumerate(rows) if all(getattr(row, k) == v for k, v in where.items())]
    assert found
    for place in found:
        rows[place] = _counted(dataclasses.replace(rows[place], **to))


def _counted(row: Tally) -> Tally:
    return dataclasses.replace(row, within=row.datasets - row.adverse - row.benign)


def judged(claim: Claim, holds: str) -> None:
    assert claim.holds == holds, claim
    assert bool(claim.why) == (holds != "yes"), claim
    assert claim.ours
