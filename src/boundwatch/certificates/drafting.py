"""A certificate before its limits: arguments are checked, once, and become all of its other fields."""

from __future__ import annotations

from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._support.validation import check_choice, check_costs, check_flag, check_level
from boundwatch.certificates.limits import HeldOutMethod, Source
from boundwatch.certificates.provenance import provenance_of
from boundwatch.certificates.record import CostRecord, Trials
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidLevel, InvalidSetting

Deltas = tuple[float, float | None, float | None]
"""For either limit, and for the upper and the lower one if each has its own."""
PLAIN = Design()
"""Of costs about which nothing else was declared."""


@runtime_checkable
class Measured(Protocol):
    """Costs that come with how they were measured, such as `boundwatch.episodes.Episodes`."""

    costs: NDArray[np.float64]
    binary: bool
    measure: Measure
    design: Design

    @property
    def trials(self) -> Trials | None:
        """The trials behind costs that are means over clusters."""


def held_out(
    costs: ArrayLike | Measured | None,
    deltas: Deltas,
    *,
    successes: ArrayLike | None = None,
    method: HeldOutMethod | None,
    binary: bool | None,
    measure: Measure | None,
    **origin: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate from held-out costs; see `boundwatch.Certificate.from_held_out`."""
    if (costs is None) == (successes is None):
        raise InvalidSetting("give either costs or successes, one of the two")
    design, trials = PLAIN, None
    if successes is not None:
        costs, binary, measure = 1 - _truths(successes), True, measure or Measure("success")
    elif not isinstance(costs, np.ndarray) and isinstance(costs, Measured):
        binary = costs.binary if binary is None else binary
        measure, design, trials = measure or costs.measure, costs.design, costs.trials
        costs = costs.costs
    binary = False if binary is None else check_flag(binary, "binary")
    if method is None:
        method = "exact" if binary else "betting" if trials is None else "tuned"
    check_choice(method, "method", get_args(HeldOutMethod))
    if method == "exact" and not binary:
        remedy = ("pass ", Argument("binary", True), ", or use 'betting' or 'kl'")
        raise InvalidSetting("needs binary costs", name="method", value=method, remedy=remedy)
    origin |= {"binary": binary, "method": method, "measure": measure, "design": design}
    origin["trials"] = trials
    return fields_of("held-out", costs, deltas, **origin)


def fields_of(
    source: Source,
    costs: Any,
    deltas: Deltas,
    *,
    binary: object,
    seed: Any,
    policy: Any,
    **fields: Any,
) -> dict[str, Any]:
    """Return the fields of a certificate that promises nothing yet: its limits follow from the others.

    `costs` are None for a bound that was proved elsewhere; `fields` are further ones, among them the method.
    """
    found = dict.fromkeys(("n", "mean_cost", "renyi", "log_ratio", "record", "measure"))
    found |= {"source": source, "lower": 0.0, "upper": 1.0, "design": PLAIN} | fields
    found["binary"] = binary = check_flag(binary, "binary")
    found |= zip(("delta", "delta_upper", "delta_lower"), split_delta(source, *deltas), strict=True)
    values = None if costs is None else check_costs(costs, binary=binary)
    if values is not None:
        kept = CostRecord.of(values) if source == "held-out" and not binary else None
        found |= {"n": values.size, "mean_cost": float(values.mean()), "record": kept}
    return found | {"provenance": provenance_of(values, seed, policy)}


def split_delta(
    source: Source, delta: float, delta_upper: float | None, delta_lower: float | None
) -> tuple[float, float, float]:
    """Return the failure probabilities of either limit, of the upper and of the lower one.

    Held-out limits fail apart from each other, and so share delta; elsewhere one event gives both.
    """
    if (delta_upper is None) != (delta_lower is None):
        raise InvalidSetting("delta_upper and delta_lower go together", remedy="give both, or delta alone")
    if delta_upper is None or delta_lower is None:
        above = below = check_level(delta, "delta") * (0.5 if source == "held-out" else 1.0)
    else:
        above, below = check_level(delta_upper, "delta_upper"), check_level(delta_lower, "delta_lower")
    if source == "held-out":
        if above + below >= 1:
            problem = f"delta_upper + delta_lower = {above + below:g} promises nothing"
            raise InvalidLevel(problem, remedy="keep it below 1")
        return above + below, above, below
    larger = max(above, below)
    if source != "external":
        return larger, above, below
    if check_level(delta, "delta") < larger:
        problem, remedy = f"is below {larger:g}, with which one side alone may fail", "give that of either"
        raise InvalidLevel(problem, name="delta", value=delta, remedy=remedy)
    return float(delta), above, below


def _truths(successes: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(successes)
    if values.dtype.kind == "b":
        values = values.astype(np.float64)
    return check_costs(values, binary=True, name="successes")
