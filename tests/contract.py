"""The contract that every detector keeps, which `check_detector` runs."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.fleet import Fleet
from boundwatch.detectors.verdicts import Verdict
from boundwatch.errors import InvalidCost, InvalidSetting

_INVALID: list[Any] = [1.5, -0.1, float("nan"), float("inf"), "0.3", None]


def check_detector(detector: Any) -> None:
    """Run the contract on a detector; raise `AssertionError` with the clause that it breaks.

    A detector that looks once has `decide` and no `update`; one that may be read after every episode has
    `update` and no `decide`. Invalid costs raise `InvalidCost` and are not counted, the verdict is a
    `Verdict`, what must not matter does not matter (the order of a batch; one by one or all at once), and a
    state continues exactly where it was. An alarm latches, unless even 10,000 failures are no evidence.
    """
    if not isinstance(getattr(detector, "certificate", None), Certificate):
        raise InvalidSetting(
            f"detector = {type(detector).__name__} has no certificate, so it is not of the kind that is "
            "checked here; a FamilyTest judges each task with a detector that is: check that one"
        )
    _require(hasattr(detector, "decide") != hasattr(detector, "update"), "it has either decide or update")
    values = (rng := np.random.default_rng(0)).random(40)
    costs = (values < 0.4).astype(np.float64) if detector.certificate.binary else values
    if hasattr(detector, "decide"):
        _check_fixed_sample(detector, costs, rng)
    elif isinstance(detector, Fleet):
        _check_fleet(detector, costs)
    else:
        _require(isinstance(detector, AnytimeDetector), "what has update is a AnytimeDetector or a Fleet")
        _check_stream(detector, costs)


def _check_fixed_sample(detector: Any, costs: NDArray[np.float64], rng: np.random.Generator) -> None:
    for invalid in (*[[0.0, cost] for cost in _INVALID], [], 0.5, [[0.0]]):
        _require(_refuses(detector.decide, invalid), f"decide({invalid}) raises InvalidCost")
    finding = detector.decide(costs)
    _require(isinstance(finding.verdict, Verdict), "the verdict is a Verdict")
    _require(finding.n == costs.size, "n is the number of costs")
    _require(0 < finding.false_positive_rate <= 1, "the false-positive rate is a probability")
    shuffled = detector.decide(rng.permutation(costs))
    _require(_close(finding.to_dict(), shuffled.to_dict()), "the order of the costs does not matter")
    many = detector.decide_many(np.stack([costs, 1 - costs]))
    _require(many.verdict[0] == finding.verdict, "decide_many agrees with decide")
    again = pickle.loads(pickle.dumps(detector)).decide(costs)  # noqa: S301  (our own bytes)
    _require(again.to_dict() == finding.to_dict(), "a pickled detector decides alike")
    json.dumps(finding.to_dict(), allow_nan=False)


def _check_stream(detector: AnytimeDetector[Any], costs: NDArray[np.float64]) -> None:
    _require(detector.n == 0, "it comes without costs")
    for invalid in _INVALID:
        _require(_refuses(detector.update, invalid), f"update({invalid}) raises InvalidCost")
        _require(_refuses(detector.update_many, [0.0, invalid]), f"a batch with {invalid} raises InvalidCost")
    _require(_refuses(detector.update_many, []), "an empty batch raises InvalidCost")
    _require(detector.n == 0, "invalid costs are not counted")
    findings = [detector.update(cost) for cost in costs.tolist()]
    _require(all(isinstance(finding.verdict, Verdict) for finding in findings), "the verdict is a Verdict")
    _require(findings[-1].n == costs.size, "n is the number of costs")
    one_by_one = findings[-1].to_dict()
    state = json.loads(json.dumps(detector.state_dict(), allow_nan=False))
    again = type(detector).from_state_dict(state, detector.certificate)
    _require(again.finding().to_dict() == one_by_one, "the state keeps the finding")
    _require(again.state_dict() == detector.state_dict(), "the state survives JSON")
    pickled = pickle.loads(pickle.dumps(detector))  # noqa: S301  (our own bytes)
    _require(pickled.update(0.0).to_dict() == again.update(0.0).to_dict(), "the state continues as it was")
    detector.reset()
    _require(detector.n == 0 and detector.verdict is Verdict.WITHIN, "reset forgets")
    _require(detector.update_many(costs).to_dict() == one_by_one, "one by one is as all at once")
    detector.reset()
    if (failures := _convincing_failures(detector)) is None:
        return
    first = detector.update_many(np.ones(failures)).first_alarm
    _require(detector.verdict is Verdict.ADVERSE and first is not None, f"{failures} failures are an alarm")
    later = detector.update_many(np.zeros(200))
    _require(later.verdict is Verdict.ADVERSE and later.first_alarm == first, "an alarm latches")
    detector.reset()


def _convincing_failures(detector: AnytimeDetector[Any]) -> int | None:
    """Return how many failures in a row a detector must not overlook, None if that is more than 10,000."""
    # n failures have a chance of upper^n in the worst certified world. Where that is a millionth of the
    # level, a mixture of bets has lost part of the evidence, but not all.
    nats = math.log(1e6 / getattr(detector, "alpha_adverse", 0.001))
    upper = detector.certificate.upper
    if upper >= math.exp(-nats / 10_000):
        return None
    return max(60, math.ceil(nats / -math.log(max(upper, 1e-9))))


def _check_fleet(fleet: Fleet, costs: NDArray[np.float64]) -> None:
    _require(fleet.ids == [], "it comes without streams")
    for invalid in _INVALID:
        refused = _refuses(lambda cost: fleet.update(["a", "b"], [0.0, cost]), invalid)
        _require(refused, f"a batch with {invalid} raises InvalidCost")
    _require(fleet.ids == [], "invalid costs are not counted")
    names = ["a", "b", "c", "b"] * (costs.size // 4)
    fleet.update(names, costs)
    findings = [fleet.finding(name) for name in fleet.ids]
    _require(all(isinstance(finding.verdict, Verdict) for finding in findings), "verdicts are Verdicts")
    state = json.loads(json.dumps(fleet.state_dict(), allow_nan=False))
    again = Fleet.from_state_dict(state, fleet.certificate)
    _require([again.finding(name) for name in again.ids] == findings, "the state survives JSON")
    _require(again.state_dict() == fleet.state_dict(), "the state survives JSON")


def _refuses(call: Any, argument: object) -> bool:
    try:
        call(argument)
    except InvalidCost:
        return True
    return False


def _close(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two findings agree up to rounding."""
    return all(
        bool(np.isclose(value, other[name], rtol=1e-9, atol=1e-12))
        if isinstance(value, float)
        else value == other[name]
        for name, value in one.items()
    )


def _require(kept: bool, clause: str) -> None:
    if not kept:
        raise AssertionError(f"the contract is broken: {clause}")
