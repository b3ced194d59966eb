"""How many rounds until a rise of all tasks is noticed, with the certificate of a mean over tasks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.multiple import OVERALL_SHARE
from boundwatch.bounds.strata import stratified_p_value
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.rounds import share_of
from boundwatch.detectors.strata import StrataTest
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, LOOK_LEVEL
from boundwatch.errors import InvalidSetting
from boundwatch.planning.power import check_rate, fewest

POWERS = (0.5, 0.8, 0.9)
_RUNS, _LOOKS = 100, 9
_ROUNDS = sorted(
    {2**k for k in range(_LOOKS)} | {3 * 2**k for k in range(_LOOKS - 2)} | {5, 7, 10, 14, 20, 28}
)


@dataclass(frozen=True, kw_only=True)
class TasksPlan:
    """The answer of `plan` with the certificate of a mean over tasks: rounds by power, None above 256.

    `check` looks once, `watch` after rounds 1, 2, 4, 8, ...; simulated, each power within 0.1.
    """

    cost: float
    tasks: int
    check: dict[float, int | None]
    watch: dict[float, int | None]
    seed: int

    def __str__(self) -> str:
        once, often = (_said(each[0.9]) for each in (self.check, self.watch))
        world = f"every task fails more often by the same, {100 * self.cost:.3g} % of trials in the mean over"
        return (
            f"Run {once} rounds of {self.tasks} tasks and look once (check), or at most {often} and watch; "
            f"if {world} tasks, the verdict is then ADVERSE with a probability of 90 %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self) | {"recommendation": str(self)}


def _said(rounds: int | None) -> str:
    return f"more than {_ROUNDS[-1]}" if rounds is None else str(rounds)


def plan_tasks(certificate: Certificate, cost: float, alpha: float | None = None, seed: int = 0) -> TasksPlan:
    """Simulate new rounds in which every task's failure rate rose by the same, to a mean of `cost`."""
    levels = [
        StrataTest(certificate, (each, each), None) for each in (alpha or LOOK_LEVEL, alpha or ANYTIME_LEVEL)
    ]
    rates = np.array([(each.failures + 0.5) / (each.n + 1) for each in certificate.strata])
    weights = np.array([each.weight for each in certificate.strata])
    if not (
        certificate.binary and levels[0].joint and check_rate(cost, "cost", inside=True) > weights @ rates
    ):
        problem = "is not above the certified mean of failures, whose trials the certificate must keep"
        raise InvalidSetting(problem, name="cost", value=cost, remedy="plan a rise, or one task by itself")
    rise = fewest(lambda step: bool(weights @ np.clip(rates + step / 1000, 0, 1) >= cost), 0, 1000) / 1000
    lab = [each.n for each in certificate.strata], [each.failures for each in certificate.strata]
    size = _RUNS, _ROUNDS[-1], rates.size
    failures = np.cumsum(np.random.default_rng(seed).random(size) < np.clip(rates + rise, 0, 1), axis=1)
    p_values = np.array(
        [
            [stratified_p_value(*lab, np.full(rates.size, number), each[number - 1]) for number in _ROUNDS]
            for each in failures
        ]
    )
    spent = [OVERALL_SHARE * each.levels[0] for each in levels]
    mean = sum(lab[0]) / rates.size
    shares = np.array([share_of(each, mean) if each & (each - 1) == 0 else 0.0 for each in _ROUNDS])
    watch = np.logical_or.accumulate(p_values <= spent[1] * shares, axis=1)
    found = [_first(p_values <= spent[0]), _first(watch)]
    return TasksPlan(cost=cost, tasks=rates.size, check=found[0], watch=found[1], seed=seed)


def _first(called: NDArray[np.bool_]) -> dict[float, int | None]:
    """Return the fewest rounds from which on each power is reached."""
    lasting = np.minimum.accumulate(called.mean(axis=0)[::-1])[::-1]
    return {
        power: _ROUNDS[int(np.argmax(lasting >= power))] if lasting[-1] >= power else None for power in POWERS
    }
