"""A certificate without its limits: arguments are checked, and become all of its other fields."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.validation import check_choice, check_costs, check_flag, check_level
from boundwatch.certificates import schema
from boundwatch.certificates.provenance import provenance_of
from boundwatch.certificates.record import CostRecord
from boundwatch.certificates.schema import HeldOutMethod
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidLevel, InvalidSetting

_PLAIN = Design()
"""Of costs about which nothing else was declared."""


@runtime_checkable
class Measured(Protocol):
    """Costs that come with how they were measured, such as `boundwatch.episodes.Episodes`."""

    @property
    def costs(self) -> NDArray[np.float64]:
        """One cost per episode."""

    @property
    def binary(self) -> bool:
        """Whether every cost is 0 or 1."""

    @property
    def measure(self) -> Measure:
        """How they were measured."""

    @property
    def design(self) -> Design:
        """How episodes relate to each other."""


def draft_held_out(
    costs: ArrayLike | Measured | None,
    deltas: tuple[float, float | None, float | None],
    *,
    successes: ArrayLike | None = None,
    method: HeldOutMethod | None,
    binary: bool | None,
    measure: Measure | None,
    **origin: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate from held-out costs, except for the limits.

    Parameters are those of `boundwatch.Certificate.from_held_out`; `deltas` are for both sides, the upper and
    the lower one, `origin` is for `draft`.
    """
    if (costs is None) == (successes is None):
        raise InvalidSetting("give either costs or successes, one of the two")
    design = _PLAIN
    if successes is not None:
        costs, binary, measure = 1 - _truths(successes), True, measure or Measure("success")
    elif not isinstance(costs, np.ndarray) and isinstance(costs, Measured):
        binary = costs.binary if binary is None else binary
        measure, design, costs = measure or costs.measure, costs.design, costs.costs
    binary = False if binary is None else check_flag(binary, "binary")
    if method is None:
        method = "exact" if binary else "betting"
    check_method(method, "held-out")
    if method == "exact" and not binary:
        remedy = ("pass ", Argument("binary", True), ", or use 'betting' or 'kl'")
        raise InvalidSetting("needs binary costs", name="method", value=method, remedy=remedy)
    above, below = split_delta(*deltas)
    fields = {"source": "held-out", "method": method, "measure": measure, "design": design}
    shares = (above + below, above, below)
    return draft(costs, shares, binary=binary, record=not binary, **origin, **fields)  # type: ignore[arg-type]


def draft(
    costs: ArrayLike | None,
    deltas: tuple[float, float, float],
    *,
    binary: bool,
    seed: int | None,
    policy: str | os.PathLike[str] | None,
    record: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate, except for limits that follow from them.

    `deltas` are for either limit, the upper and the lower one; `record` says whether to keep one of the
    costs, which are None for a bound that was proved elsewhere. `fields` are further ones.
    """
    binary = check_flag(binary, "binary")
    values = None if costs is None else check_costs(costs, binary=binary)
    found = dict.fromkeys(("n", "mean_cost", "renyi", "log_ratio", "record", "measure"))
    found |= dict(zip(("delta", "delta_upper", "delta_lower"), deltas, strict=True))
    if values is not None:
        kept = CostRecord.of(values) if record else None
        found |= {"n": values.size, "mean_cost": float(values.mean()), "record": kept}
    found |= {"binary": binary, "provenance": provenance_of(values, seed, policy), "design": _PLAIN}
    return found | {name: value for name, value in fields.items() if value is not None}


def split_delta(delta: float, delta_upper: float | None, delta_lower: float | None) -> tuple[float, float]:
    """Return the failure probabilities of the upper and the lower limit where each has half of delta."""
    above, below = _sides(delta, delta_upper, delta_lower, share=0.5)
    if above + below >= 1:
        raise InvalidLevel(f"delta_upper + delta_lower = {above + below:g} promises nothing; keep it below 1")
    return above, below


def shared_delta(delta: float, delta_upper: float | None, delta_lower: float | None) -> tuple[float, float]:
    """Return the failure probabilities of the upper and the lower limit where one event gives both."""
    return _sides(delta, delta_upper, delta_lower, share=1.0)


def check_method(method: schema.Method, source: schema.Source) -> None:
    """Refuse a method that does not go with a source."""
    allowed = [name for name in schema.METHODS[source] if name != "anytime"]  # made by a Campaign only
    check_choice(method, "method", allowed)


def check_number(value: object, name: str) -> float:
    """Return a number, or raise an error that names what came instead."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidSetting("is not a number", name=name, value=value, remedy="give one")
    return float(value)


def check_interval(lower: object, upper: object) -> tuple[float, float]:
    """Return limits on an expected cost; refuse what is no interval in [0, 1]."""
    low, high = check_number(lower, "lower"), check_number(upper, "upper")
    if not 0 <= low <= high <= 1:
        raise InvalidSetting(
            f"lower = {low:g}, upper = {high:g} is not an interval in [0, 1]",
            remedy="give 0 <= lower <= upper <= 1, for costs scaled to [0, 1]",
        )
    return low, high


def check_delta(delta: float, above: float, below: float) -> float:
    """Return the probability that either limit fails; refuse one below that of a single side."""
    delta = check_level(delta, "delta")
    if delta < max(above, below):
        problem = f"is below {max(above, below):g}, with which one side alone may fail"
        raise InvalidLevel(
            problem, name="delta", value=delta, remedy="give the probability that either fails"
        )
    return delta


def check_renyi(renyi: object) -> float:
    """Return a Rényi divergence; refuse one that bounds nothing."""
    number = check_number(renyi, "renyi")
    if not 0 <= number < math.inf:
        remedy = "it must be finite and >= 0, so keep every posterior variance below twice the prior's"
        raise InvalidSetting("bounds nothing", name="renyi", value=number, remedy=remedy)
    return number


def check_log_ratio(log_ratio: object) -> float:
    """Return a log density ratio; refuse one that is not finite."""
    number = check_number(log_ratio, "log_ratio")
    if not math.isfinite(number):
        remedy = "check the densities of the policy drawn"
        raise InvalidSetting("is not finite", name="log_ratio", value=number, remedy=remedy)
    return number


def _sides(
    delta: float, delta_upper: float | None, delta_lower: float | None, *, share: float
) -> tuple[float, float]:
    """Return the failure probabilities of the upper and the lower limit."""
    if delta_upper is None and delta_lower is None:
        each = share * check_level(delta, "delta")
        return each, each
    if delta_upper is None or delta_lower is None:
        raise InvalidSetting("delta_upper and delta_lower go together; give both, or delta alone")
    return check_level(delta_upper, "delta_upper"), check_level(delta_lower, "delta_lower")


def _truths(successes: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(successes)
    if values.dtype.kind == "b":
        values = values.astype(np.float64)
    return check_costs(values, binary=True, name="successes")
