"""For tests: a policy must not be worse than certified, and a detector must keep the common contract."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonFinding, PolicyComparison
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.fleet import Fleet
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.verdicts import LOOK_LEVEL, Finding, TailName, Verdict
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.reporting import wording
from boundwatch.reporting.compared import comparison_evidence

_RERUN = "running again with new episodes is another chance to pass; fix how often, and divide alpha by it"
_INVALID: list[Any] = [1.5, -0.1, float("nan"), float("inf"), "0.3", None]


def check_detector(detector: Any) -> None:
    """Run the contract on a detector; raise `AssertionError` with the clause that it breaks.

    A detector that looks once has `decide` and no `update`; one that may be read after every episode has
    `update` and no `decide`. Invalid costs raise `InvalidCost` and are not counted, the verdict is a
    `Verdict`, what must not matter does not matter (the order of a batch; one by one or all at once), and a
    state continues exactly where it was. An alarm latches, unless even 10,000 failures are no evidence.

    Parameters
    ----------
    detector
        A fixed-sample detector, a `AnytimeDetector` without costs yet, or a `Fleet` without streams.

    Raises
    ------
    InvalidSetting
        For what does not compare with one certificate, such as a `FamilyTest`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> check_detector(bw.SequentialTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)))
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


def assert_not_adverse(
    certificate: Certificate, costs: ArrayLike, *, alpha: float = LOOK_LEVEL, tail: TailName | None = None
) -> Finding:
    """Fail, as ``assert`` does, if new costs are evidence that a policy is worse than certified.

    For pytest and continuous integration: a change fails only on evidence at a level that was chosen, not
    because a noisy mean moved.

    **Guarantee**: if the expected cost is not above the certified one, this reports ADVERSE with probability
    at most `alpha` + the certificate's `delta_upper`. **Assumes**: i.i.d. episodes, as many as planned.
    Every run that draws new episodes may fail falsely. By default each run spends both: divide them by the
    number of runs to come, or keep a `boundwatch.SequentialTest` from run to run. With any tail except
    ``"joint"``, all runs together spend `delta_upper` once: if the upper limit holds, each spends `alpha`.

    Parameters
    ----------
    certificate
        The promise, made once from the policy that is in use.
    costs
        The costs of n new episodes.
    alpha
        Level of the test.
    tail
        As in `boundwatch.HypothesisTest`: ``"exact"`` (binary costs) or ``"betting"`` compare with the
        certificate's limits. Left out, it is ``"joint"`` where the certificate keeps its costs.

    Returns
    -------
    Finding
        The evidence, if the verdict is not ADVERSE. Passing does not prove that nothing got worse.

    Raises
    ------
    AssertionError
        If the verdict is ADVERSE, with the evidence; or if so few episodes could not have been called ADVERSE
        whatever they cost.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_held_out([0] * 184 + [1] * 16, binary=True)
    >>> bw.testing.assert_not_adverse(certificate, [0] * 18 + [1] * 2).verdict.value
    'within'
    >>> bw.testing.assert_not_adverse(certificate, [0] * 12 + [1] * 8)
    Traceback (most recent call last):
    AssertionError: ADVERSE: worse than in the lab; at least 14.2 points more failures (94.5 % confidence, ...
      trials: 8 of 20 failed (40 %)
      ...
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    test = HypothesisTest(certificate, alpha_adverse=alpha, tail=tail)
    finding = test.decide(costs)
    if finding.verdict is Verdict.ADVERSE:
        raise _failure(wording.answer(finding), dict(wording.evidence(certificate, finding)))
    if not (certificate.strata or test.could_alarm(finding.n)):
        problem = "can never fail this check, even if all of them did; boundwatch plan says how many can"
        raise AssertionError(f"{wording.count(finding.n, 'episode')} {problem}")
    return finding


def assert_no_worse(
    certificate: Certificate,
    costs: ArrayLike,
    *,
    margin: float,
    alpha: float = LOOK_LEVEL,
    tail: TailName | None = None,
) -> Finding:
    """Fail, as ``assert`` does, until new costs show that a policy is worse by no more than a margin.

    The opposite of `assert_not_adverse`: that one passes unless there is evidence of a rise, this one fails
    unless there is evidence that no rise is larger than the margin.

    **Guarantee**: if the expected cost exceeds the certified one by more than the margin, this passes with
    probability at most `alpha` + the certificate's `delta_lower`. **Assumes**: i.i.d. episodes whose number
    was fixed in advance. Every rerun with new ones is another chance to pass: divide `alpha` by their number.

    Parameters
    ----------
    certificate, costs, alpha
        As in `assert_not_adverse`.
    margin
        How much more expected cost is acceptable.
    tail
        As in `assert_not_adverse`; with any but ``"joint"``, all runs together spend `delta_lower` once.

    Returns
    -------
    Finding
        The evidence. Its verdict may still be ADVERSE: worse, but by no more than the margin.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_held_out([0] * 184 + [1] * 16, binary=True)
    >>> bw.testing.assert_no_worse(certificate, [0] * 92 + [1] * 8, margin=0.1).no_worse
    True
    >>> bw.testing.assert_no_worse(certificate, [0] * 9 + [1], margin=0.1)
    Traceback (most recent call last):
    AssertionError: not shown that failures rose by at most 10 points; more trials may show it
      trials: 1 of 10 failed (10 %)
      ...
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    finding = HypothesisTest(certificate, alpha_benign=alpha, margin=margin, tail=tail).decide(costs)
    if not finding.no_worse:
        lines = dict(wording.evidence(certificate, finding))
        raise _failure(lines.pop("margin"), lines | {"note": _RERUN})
    return finding


def _failure(title: str, lines: dict[str, str]) -> AssertionError:
    return AssertionError("\n".join([title, *(f"  {label}: {text}" for label, text in lines.items())]))


def assert_not_worse_than(
    costs_new: ArrayLike,
    costs_old: ArrayLike,
    *,
    margin: float,
    alpha: float = LOOK_LEVEL,
    binary: bool = False,
) -> ComparisonFinding:
    """Fail, as ``assert`` does, until it is shown that a new policy costs at most a margin more than the old.

    **Guarantee**: if the new expected cost is `margin` or more above the old one, this ever passes with
    probability at most `alpha`, also if trials are added until it does. **Assumes**: costs in [0, 1];
    pairs of trials, the i-th new with the i-th old, that are i.i.d.; the two costs of a pair may depend on
    each other, so matched seeds are welcome.

    Parameters
    ----------
    costs_new, costs_old
        Costs of the two policies. If one has more, the rest waits for its partners.
    margin
        How much more the new policy may cost. With 0 it has to be better.
    alpha
        Probability of passing wrongly.
    binary
        Promise that every cost is always 0 or 1, which takes fewer trials. That all are so far is no promise.

    Returns
    -------
    ComparisonFinding
        The evidence, with the old policy as A and the new one as B.

    Examples
    --------
    >>> import boundwatch as bw
    >>> new, old = [0, 0, 0, 1] * 20, [0, 1, 0, 0] * 20
    >>> bw.testing.assert_not_worse_than(new, old, margin=0.25, binary=True).no_worse
    True
    >>> bw.testing.assert_not_worse_than([0, 1, 0, 1] * 5, [0, 1, 0, 0] * 5, margin=0.05, binary=True)
    Traceback (most recent call last):
    AssertionError: not shown: the new policy costs at most 0.05 more than the old one
      old: 5 failures in 20 trials (25 %)
      ...
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    comparison = PolicyComparison(alpha, binary=binary, paired=True, margin=margin)
    finding = comparison.update_many(costs_old, costs_new)
    if not finding.no_worse:
        lines = dict(comparison_evidence(finding, ("old", "new")))
        lines.pop("no worse", None)
        if not binary and all(np.isin(each, (0, 1)).all() for each in (costs_old, costs_new)):
            lines["note"] = (
                "if every cost is always 0 or 1, binary=True takes fewer pairs; decide it beforehand"
            )
        title = f"not shown: the new policy costs at most {finding.margin:g} more than the old one"
        raise _failure(title, lines)
    return finding


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
