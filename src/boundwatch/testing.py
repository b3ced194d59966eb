"""For tests: a policy must not be worse than certified, or than another policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison import ComparisonFinding, PolicyComparison
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.verdicts import LOOK_LEVEL, Finding, TailName, Verdict
from boundwatch.reporting import wording
from boundwatch.reporting.compared import comparison_evidence

_RERUN = "running again with new episodes is another chance to pass; fix how often, and divide alpha by it"


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
    AssertionError: ADVERSE: worse than in the lab; at least 14.2 points more failures (94.5 % confidence...
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
