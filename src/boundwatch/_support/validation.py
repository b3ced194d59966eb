"""The one place where costs and probabilities are checked before anything is computed from them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.errors import Argument, InvalidCost, InvalidLevel, InvalidSetting, Remedy

SMALLEST_LEVEL = 1e-300
"""Half of it, and one over it, are still ordinary numbers."""
_ONE_EACH = "pass one number per episode"
_NUMBERS = " to Certificate.from_held_out, elsewhere numbers: 1 for a failure, 0 for a success"
_SUCCESSES: Remedy = ("pass ", Argument("successes"), _NUMBERS)
_RANGE: Remedy = ("rescale, or pass ", Argument("cost_range"), " to read_costs")


def check_costs(
    costs: ArrayLike, *, binary: bool = False, name: str = "costs", ndim: int = 1
) -> NDArray[np.float64]:
    """Return costs in [0, 1] as a float64 array, or raise `InvalidCost` that names the first that is none.

    `binary` costs were promised to be 0 or 1; `ndim` is 1 for one data set, 2 for a (datasets, n) array.
    """
    values = _as_numbers(costs, name)
    if values.ndim != ndim:
        shape = "(n,), one cost per episode" if ndim == 1 else "(datasets, n)"
        raise InvalidCost(f"has shape {values.shape}", name=name, remedy=f"it must be {shape}")
    if values.size == 0:
        raise InvalidCost("is empty", name=name, remedy="at least one episode is needed")
    if values.min() >= 0 and values.max() <= 1 and not binary:  # the usual case
        return values
    fail = "give every episode a cost (a failed one is usually 1)"
    faults: list[tuple[NDArray[np.bool_], str, Remedy]] = [
        (~np.isfinite(values), "is not a finite number", fail),
        ((values < 0) | (values > 1), "is outside [0, 1]", _RANGE),
        ((values != 0) & (values != 1) & binary, "is not 0 or 1", "binary costs were promised"),
    ]
    for found, problem, remedy in faults:
        if found.any():
            place = np.unravel_index(int(np.argmax(found)), values.shape)
            raise InvalidCost(problem, name=_item(name, place), value=float(values[place]), remedy=remedy)
    return values


def check_level(value: object, name: str) -> float:
    """Return a probability strictly between 0 and 1, or raise an error that names it."""
    level = _real(value)
    if level is not None and SMALLEST_LEVEL <= level < 1:
        return level
    problem, remedy = "is outside (0, 1)", "choose a probability such as 0.05"
    if level is None:
        problem = "is not a number"
    elif 0 < level < 1:
        problem, remedy = "is too small to compute with", f"choose {SMALLEST_LEVEL:g} or more"
    raise InvalidLevel(problem, name=name, value=value if level is None else level, remedy=remedy)


def check_number(
    value: object, name: str, what: str, least: float = -math.inf, most: float = math.inf, *, remedy: str
) -> float:
    """Return a finite number in a range, or raise an error that says what it is not."""
    number = _real(value)
    if number is None or not math.isfinite(number) or not least <= number <= most:
        given = value if number is None else number
        raise InvalidSetting(f"is not {what}", name=name, value=given, remedy=remedy)
    return number


def check_margin(margin: object, *, zero: bool = False) -> float:
    """Return a difference of costs in (0, 1), or in [0, 1) if there may be none, or raise an error."""
    number = _real(margin)
    if number is None or not (0 < number < 1 or (zero and number == 0)):
        problem, given = f"is outside {'[' if zero else '('}0, 1)", margin if number is None else number
        remedy = "say how much more cost is acceptable, such as 0.05"
        raise InvalidSetting(problem, name="margin", value=given, remedy=remedy)
    return number


def check_flag(value: object, name: str) -> bool:
    """Return True or False, or raise an error that names what came instead."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSetting("is not True or False", name=name, value=value, remedy="choose one")
    return bool(value)


def check_choice(value: object, name: str, allowed: Iterable[str]) -> None:
    """Refuse what is not one of some names."""
    if not isinstance(value, str) or value not in allowed:
        remedy = f"choose one of {', '.join(allowed)}"
        raise InvalidSetting("is unknown", name=name, value=value, remedy=remedy)


def check_choices(settings: object) -> None:
    """Refuse fields of a dataclass that are not among the names that their `Literal` lists."""
    for name, kind in get_type_hints(type(settings)).items():
        if get_origin(kind) is Literal:
            check_choice(getattr(settings, name), name, get_args(kind))


def shortest(value: float) -> str:
    """Return the fewest digits that tell a number from every other."""
    return repr(float(value)).removesuffix(".0")


def _real(value: object) -> float | None:
    """Return a number that is not a truth value; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    return float(value)


def _as_numbers(costs: ArrayLike, name: str) -> NDArray[np.float64]:
    if np.ma.is_masked(costs):  # asarray would silently count what is masked
        raise InvalidCost("has masked entries", name=name, remedy="give every episode a cost")
    try:
        values = np.asarray(costs)
        if values.dtype.kind not in "iuf":
            _refuse_non_numbers(values, name)
        return values.astype(np.float64)
    except InvalidCost:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise InvalidCost(f"is not an array of numbers ({reason})", name=name, remedy=_ONE_EACH) from error


def _refuse_non_numbers(values: NDArray[np.generic], name: str) -> None:
    """Refuse what numpy would take for numbers, such as durations, and what it would not."""
    if values.dtype.kind == "m":
        raise InvalidCost("holds durations, which are not costs", name=name, remedy=_ONE_EACH)
    if values.size and all(isinstance(value, bool | np.bool_) for value in values.flat):
        problem = "holds True and False, which could be successes or failures"
        raise InvalidCost(problem, name=name, remedy=_SUCCESSES)
    if values.ndim == 0:
        kind = type(values.item()).__name__
        raise InvalidCost(f"is a {kind}", name=name, remedy=f"pass a list or an array: {_ONE_EACH}")
    for place, value in np.ndenumerate(values):
        if not isinstance(value, numbers.Real):
            remedy, where = "every cost must be one", _item(name, place)
            raise InvalidCost("is not a number", name=where, value=str(value), remedy=remedy)


def _item(name: str, place: tuple[int | np.intp, ...]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in place)}]"


def check_predictions(predicted: object, unlabeled: ArrayLike) -> tuple[float | None, NDArray[np.float64]]:
    """Return predictions as numbers in [0, 1]; both kinds or neither."""
    found: dict[str, NDArray[np.float64]] = {}
    for name, value in (("predicted", () if predicted is None else predicted), ("unlabeled", unlabeled)):
        try:
            numbers = np.ravel(np.asarray(value, dtype=np.float64))
        except (TypeError, ValueError):
            remedy = "give costs in [0, 1]"
            raise InvalidCost("is not a number", name=name, value=value, remedy=remedy) from None
        if (outside := numbers[~((numbers >= 0) & (numbers <= 1))]).size:
            remedy = "give predicted costs, such as chances to fail"
            raise InvalidCost("is outside [0, 1]", name=name, value=float(outside[0]), remedy=remedy)
        found[name] = numbers
    scene, others = found["predicted"], found["unlabeled"]
    if scene.size > 1:
        raise InvalidCost(f"has {scene.size} numbers", name="predicted", remedy="give one prediction")
    if scene.size != min(others.size, 1):
        raise InvalidSetting(
            "predicted and unlabeled go together",
            remedy="give that of the trial's scene, and of at least one that was observed but not run",
        )
    return (float(scene[0]) if scene.size else None), others
