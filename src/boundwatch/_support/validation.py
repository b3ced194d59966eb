"""The one place where costs and probabilities are checked before anything is computed from them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.text import shown
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting

SMALLEST_LEVEL = 1e-300
"""Half of it, and one over it, are still ordinary numbers."""


def check_costs(
    costs: ArrayLike, *, binary: bool = False, name: str = "costs", ndim: int = 1
) -> NDArray[np.float64]:
    """Return costs as a float64 array, or raise an error that names the first one that cannot be a cost.

    Parameters
    ----------
    costs : array_like
        One cost per episode, in [0, 1], higher is worse.
    binary : bool
        Whether every cost was promised to be 0 or 1.
    name : str
        What to call them in an error.
    ndim : int
        1 for one data set, 2 for a (datasets, n) array of them.

    Raises
    ------
    InvalidCost
        For costs that are missing, not numbers, outside [0, 1], not 0 or 1 though promised, or none at all.

    Examples
    --------
    >>> check_costs([0, 0.25, True])
    array([0.  , 0.25, 1.  ])
    >>> check_costs([True, False])
    Traceback (most recent call last):
    boundwatch.errors.InvalidCost: costs holds True and False, which could be successes or failures; pass ...
    >>> check_costs([0.2, 1.4])
    Traceback (most recent call last):
    boundwatch.errors.InvalidCost: costs[1] = 1.4 is outside [0, 1]; rescale, or pass cost_range=(low, ...
    >>> check_costs([0, 1, 0.4], binary=True)
    Traceback (most recent call last):
    boundwatch.errors.InvalidCost: costs[2] = 0.4 is not 0 or 1; binary costs were promised
    """
    values = _as_numbers(costs, name)
    if values.ndim != ndim:
        shape = "(n,), one cost per episode" if ndim == 1 else "(datasets, n)"
        raise InvalidCost(f"{name} has shape {values.shape}; it must be {shape}")
    if values.size == 0:
        raise InvalidCost(f"{name} is empty; at least one episode is needed")
    if values.min() >= 0 and values.max() <= 1 and not binary:  # the usual case
        return values
    faults = {
        "is not a finite number; give every episode a cost (a failed one is usually 1)": ~np.isfinite(values),
        "is outside [0, 1]; rescale, or pass cost_range=(low, high) to read_costs": (values < 0)
        | (values > 1),
        "is not 0 or 1; binary costs were promised": (values != 0) & (values != 1) & binary,
    }
    for fault, found in faults.items():
        if found.any():
            index = np.unravel_index(int(np.argmax(found)), values.shape)
            raise InvalidCost(f"{_item(name, index)} = {shortest(values[index])} {fault}")
    return values


def check_level(value: object, name: str) -> float:
    """Return a probability strictly between 0 and 1, or raise an error that names it.

    Examples
    --------
    >>> check_level(0.05, "alpha")
    0.05
    >>> check_level(0, "delta")
    Traceback (most recent call last):
    boundwatch.errors.InvalidLevel: delta = 0 is outside (0, 1); choose a probability such as 0.05
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidLevel(f"{name} = {shown(value)} is not a number; choose a probability such as 0.05")
    level = float(value)
    if not 0 < level < 1:
        raise InvalidLevel(f"{name} = {shortest(level)} is outside (0, 1); choose a probability such as 0.05")
    if level < SMALLEST_LEVEL:
        raise InvalidLevel(f"{name} = {shortest(level)} is too small to compute with; choose 1e-300 or more")
    return level


def check_margin(margin: object, *, zero: bool = False) -> float:
    """Return a difference of costs in (0, 1), or in [0, 1) if there may be none, or raise an error.

    Examples
    --------
    >>> check_margin(1.5)
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: margin = 1.5 is outside (0, 1); say how much more cost is acceptable...
    """
    number = None if isinstance(margin, bool) or not isinstance(margin, numbers.Real) else float(margin)
    if number is None or not (0 < number < 1 or (zero and number == 0)):
        given, allowed = shown(margin) if number is None else shortest(number), "[0, 1)" if zero else "(0, 1)"
        raise InvalidSetting(
            f"margin = {given} is outside {allowed}; say how much more cost is acceptable, such as 0.05"
        )
    return number


def check_flag(value: object, name: str) -> bool:
    """Return True or False, or raise an error that names what came instead.

    Examples
    --------
    >>> check_flag("no", "binary")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: binary = 'no' is not True or False; choose one
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidSetting(f"{name} = {shown(value)} is not True or False; choose one")
    return bool(value)


def check_choice(value: object, name: str, allowed: Iterable[str]) -> None:
    """Refuse what is not one of some names.

    Examples
    --------
    >>> check_choice("bonferroni", "control", ["holm", "e-bh"])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: control = 'bonferroni' is unknown; choose one of holm, e-bh
    """
    if not isinstance(value, str) or value not in allowed:
        raise InvalidSetting(f"{name} = {shown(value)} is unknown; choose one of {', '.join(allowed)}")


def check_choices(settings: object) -> None:
    """Refuse fields of a dataclass that are not among the names that their `Literal` lists.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> check_choices(make_dataclass("Recipe", [("bound", Literal["kl", "pinsker"])])("mcallester"))
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: bound = 'mcallester' is unknown; choose one of kl, pinsker
    """
    for name, kind in get_type_hints(type(settings)).items():
        if get_origin(kind) is Literal:
            check_choice(getattr(settings, name), name, get_args(kind))


def shortest(value: float) -> str:
    """Return the fewest digits that tell a number from every other.

    Examples
    --------
    >>> shortest(2.0), shortest(1.0000000000000002)
    ('2', '1.0000000000000002')
    """
    return repr(float(value)).removesuffix(".0")


def _as_numbers(costs: ArrayLike, name: str) -> NDArray[np.float64]:
    if np.ma.is_masked(costs):  # asarray would silently count what is masked
        raise InvalidCost(f"{name} has masked entries; give every episode a cost")
    try:
        values = np.asarray(costs)
        if values.dtype.kind == "m":  # numpy takes durations for whole numbers
            raise InvalidCost(f"{name} holds durations, which are not costs; pass one number per episode")
        if values.size and (values.dtype.kind == "b" or _all_truths(values)):
            raise InvalidCost(
                f"{name} holds True and False, which could be successes or failures; pass successes=[...] to "
                "Certificate.from_held_out, elsewhere numbers: 1 for a failure, 0 for a success"
            )
        if values.dtype.kind not in "iuf":
            _refuse_non_numbers(values, name)
        return values.astype(np.float64)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        if isinstance(error, InvalidCost):
            raise
        reason = " ".join(str(error).split())
        raise InvalidCost(
            f"{name} is not an array of numbers ({reason}); pass one number per episode"
        ) from error


def _all_truths(values: NDArray[np.generic]) -> bool:
    return values.dtype.kind == "O" and all(isinstance(value, bool | np.bool_) for value in values.flat)


def _refuse_non_numbers(values: NDArray[np.generic], name: str) -> None:
    if values.ndim == 0:
        kind = type(values.item()).__name__
        raise InvalidCost(f"{name} is a {kind}; pass a list or an array, one number per episode")
    for index, value in np.ndenumerate(values):
        if not isinstance(value, numbers.Real):
            raise InvalidCost(
                f"{_item(name, index)} = {str(value)[:40]!r} is not a number; every cost must be one"
            )


def _item(name: str, index: tuple[int | np.intp, ...]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"
