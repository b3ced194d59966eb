"""What certificates and findings say, in words: the same for the command line and for reports.

Limits are rounded outward, so that what is read is never more than what is promised.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.family import FamilyFinding, TaskFinding
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.joint import reference_of

_HEADLINES = {
    Verdict.ADVERSE: "ADVERSE: evidence that the expected cost is higher than certified",
    Verdict.BENIGN: "BENIGN: evidence that the expected cost is not higher than certified",
    Verdict.WITHIN: "WITHIN: no evidence of a shift",
}
_FAILURES = _HEADLINES | {
    Verdict.ADVERSE: "ADVERSE: evidence of more failures than certified",
    Verdict.BENIGN: "BENIGN: evidence of no more failures than certified",
}

_METHODS = {
    "betting": "betting",
    "kl": "inverting the binary relative entropy (kl)",
    "hoeffding": "Hoeffding's inequality",
    "pinsker": "Pinsker's inequality",
    "exact": "the exact binomial distribution (Clopper-Pearson)",
    "anytime": "betting at all times at once, so that they hold whatever made the campaign stop",
}


def headline(
    subject: Certificate | Campaign | Finding | TaskFinding | FamilyFinding, member: str = "task"
) -> str:
    """Say a certificate, a campaign or a finding in one sentence; what a family is of is a task or a metric.

    Examples
    --------
    >>> headline(Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
    'The expected cost of an episode is at least 0.1000 and at most 0.2000 (0 is best, 1 is worst).'
    """
    if isinstance(subject, Certificate):
        return promise(subject)[0]
    if isinstance(subject, Campaign):
        limits = (
            f"it fails in {rates(subject)} of trials"
            if subject.binary
            else f"the expected cost is between {floor(subject.lower)} and {ceiling(subject.upper)}"
        )
        return (
            f"After {count(subject.n, 'trial')} {limits}; both limits hold at all times at once with "
            f"probability at least {100 * (1 - subject.delta):.6g} %."
        )
    if isinstance(subject, FamilyFinding):
        called, missing = len(subject.tasks(subject.verdict)), len(subject.not_judged)
        rest = f", {missing} not judged" if missing else ""
        total = count(len(subject.findings) + missing, member)
        binary = all(finding.binary for finding in subject.findings)
        return f"{says(subject.verdict, binary=binary)}, for {called} of {total}{rest}"
    return answer(subject) if isinstance(subject, Finding) else says(subject.verdict, binary=subject.binary)


def says(verdict: Verdict, *, binary: bool) -> str:
    """Say a verdict, in failures where costs are 0 or 1.

    Examples
    --------
    >>> says(Verdict.ADVERSE, binary=True)
    'ADVERSE: evidence of more failures than certified'
    """
    return (_FAILURES if binary else _HEADLINES)[verdict]


def answer(finding: Finding) -> str:
    """Say a verdict and how large the shift is at least, in one line.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_held_out([0] * 184 + [1] * 16, binary=True)
    >>> answer(bw.HypothesisTest(certificate).decide([1] * 8 + [0] * 4))
    'ADVERSE: worse than certified; at least 32 points more failures (94.5 % confidence)'
    """
    if finding.verdict is not Verdict.ADVERSE or finding.shift_lower <= 0:
        return says(finding.verdict, binary=finding.binary)
    sure = f"({percent(1 - finding.false_positive_rate, 'down')} confidence)"
    if not finding.binary:
        risen = f"up by at least {floor(finding.shift_lower)}"
        return f"{says(finding.verdict, binary=False)}; {risen} {sure}"
    return f"ADVERSE: worse than certified; at least {points(finding.shift_lower)} more failures {sure}"


def comparison(certificate: Certificate, finding: Finding) -> str:
    """Say what was certified and what was seen, in one line.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_held_out([0] * 184 + [1] * 16, binary=True)
    >>> comparison(certificate, bw.HypothesisTest(certificate).decide([1] * 8 + [0] * 4))
    'Certified: it fails in 3.8 to 14.3 % of trials (99 % confidence). New: 8 of 12 failed.'
    """
    sure = f"({percent(1 - certificate.delta, 'down')} confidence)"
    if certificate.binary:
        return f"Certified: it fails in {rates(certificate)} of trials {sure}. New: {failed(finding)}."
    return (
        f"Certified: expected cost {floor(certificate.lower)} to {ceiling(certificate.upper)} {sure}. "
        f"New: mean {finding.mean_cost:.4f} over {count(finding.n, 'episode')}."
    )


def promise(certificate: Certificate) -> list[str]:
    """Say what a certificate promises, and where it promises nothing.

    Examples
    --------
    >>> for sentence in promise(Certificate.from_bounds(lower=0.0, upper=0.2, delta=0.01)):
    ...     print(sentence)
    The expected cost of an episode is at least 0.0000 and at most 0.2000 (0 is best, 1 is worst).
    The upper limit fails with probability at most 0.01, the lower with at most 0.01, either with ...
    The lower limit is vacuous: no cost is below 0, so no shift can be called BENIGN.
    >>> promise(Certificate.from_held_out([0] * 184 + [1] * 16, binary=True))[0]
    'It fails in 3.8 to 14.3 % of trials (99 % confidence).'
    """
    if certificate.binary:
        sure = percent(1 - certificate.delta, "down")
        first = f"It fails in {rates(certificate)} of trials ({sure} confidence)."
    else:
        first = (
            f"The expected cost of an episode is at least {floor(certificate.lower)} "
            f"and at most {ceiling(certificate.upper)} (0 is best, 1 is worst)."
        )
    return [
        first,
        f"The upper limit fails with probability at most {certificate.delta_upper:g}, the lower with "
        f"at most {certificate.delta_lower:g}, either with at most {certificate.delta:g}.",
        *vacuous_limits(certificate),
    ]


def under_shift(certificate: Certificate, distance: float) -> list[str]:
    """Say how bad the expected cost can get in a world that differs from the certified one.

    Examples
    --------
    >>> for sentence in under_shift(Certificate.from_bounds(lower=0.0, upper=0.1, delta=0.01), 0.1):
    ...     print(sentence)
    In any world within a relative entropy of 0.1 nats the expected cost is at most 0.2569.
    In any world within a total variation of 0.1 it is at most 0.2000.
    Both hold with probability at least 99 %, as the upper limit does.
    """
    return [
        f"In any world within a relative entropy of {distance:g} nats the expected cost is at most "
        f"{ceiling(certificate.under_shift(kl=distance))}.",
        f"In any world within a total variation of {min(distance, 1):g} it is at most "
        f"{ceiling(certificate.under_shift(tv=min(distance, 1)))}.",
        f"Both hold with probability at least {100 * (1 - certificate.delta_upper):.4g} %, "
        "as the upper limit does.",
    ]


def vacuous_limits(certificate: Certificate) -> list[str]:
    """Say which limits promise nothing; an empty list when both do.

    Examples
    --------
    >>> vacuous_limits(Certificate.from_bounds(lower=0.1, upper=1.0, delta=0.01))
    ['The upper limit is vacuous: no cost is above 1, so no shift can be called ADVERSE.']
    """
    sentences = []
    # Judged jointly with the certificate's costs, a shift may be noticed that its limits could not show.
    jointly = certificate.mean_cost is not None and reference_of(certificate) is not None
    mean = certificate.mean_cost or 0.0
    if certificate.upper >= 1:
        rest = "." if jointly and mean < 1 else ", so no shift can be called ADVERSE."
        sentences.append(f"The upper limit is vacuous: no cost is above 1{rest}")
    if certificate.lower <= 0:
        rest = "." if jointly and mean > 0 else ", so no shift can be called BENIGN."
        sentences.append(f"The lower limit is vacuous: no cost is below 0{rest}")
    return sentences


def basis(certificate: Certificate) -> list[str]:
    """Say what a certificate stands on.

    Examples
    --------
    >>> basis(Certificate.from_held_out([0, 1, 0, 0], binary=True))[0]
    'Held-out: 4 episodes, 1 failed; limits by the exact binomial distribution ...'
    """
    if certificate.source == "external":
        return ["A bound that was proved elsewhere; boundwatch uses it as given and cannot check it."]
    counted = f"mean cost {certificate.mean_cost:.4f}; limits by {_METHODS[certificate.method]}."
    if certificate.failures is not None:
        counted = f"{certificate.failures} failed; limits by {_METHODS[certificate.method]}."
    if certificate.source == "held-out":
        how = certificate.measure
        measure = [] if how is None else [f"How its costs were measured: {how}."]
        return [f"Held-out: {count(certificate.n, 'episode')}, {counted}", *measure]
    if certificate.source == "pac-bayes":
        price = f"D2(P || P0) = {certificate.renyi:.6g}"
    else:
        price = f"ln P(w)/P0(w) = {certificate.log_ratio:.6g}"
    return [f"{certificate.source}: {certificate.n} training environments, {price}, {counted}"]


def assumptions(certificate: Certificate) -> list[str]:
    """List what must be true for the promise, and for any verdict that rests on it, to hold.

    Examples
    --------
    >>> assumptions(Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True))[-1]
    'Every cost is 0 or 1, and measured as it was for the certificate.'
    """
    kind = "is 0 or 1" if certificate.binary else "is in [0, 1]"
    lines = ["The episodes behind it were independent draws from one distribution of environments."]
    if certificate.source in ("pac-bayes", "pointwise"):
        lines.append(
            "The prior was chosen before the training environments were seen, and training is deterministic."
        )
        lines.append(
            "The policy was drawn once from the posterior, and nothing was chosen after seeing its costs."
        )
    elif certificate.source == "held-out":
        lines.append("The policy was final before these episodes ran; none was used to train or select it.")
    return [
        *lines,
        "The policy that is deployed is the one that was certified, unchanged.",
        f"Every cost {kind}, and measured as it was for the certificate.",
    ]


def misreadings() -> list[str]:
    """List what a certificate, and a verdict that rests on it, are not.

    Examples
    --------
    >>> misreadings()[1]
    'A promise of safety: the verdict WITHIN reads "no evidence of a shift", never "safe".'
    """
    return [
        "A limit on single episodes: it bounds their expected cost, and one episode may cost more.",
        'A promise of safety: the verdict WITHIN reads "no evidence of a shift", never "safe".',
        "The probability of being wrong given an alarm: a detector's error rate is how often, before any "
        "data are seen, it would declare a shift that is not there.",
    ]


def evidence(certificate: Certificate, finding: Finding) -> list[tuple[str, str]]:
    """Say what a fixed-sample finding rests on, as labeled lines.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.22216, delta=0.01)
    >>> finding = bw.HypothesisTest(certificate, tail="hoeffding").decide([0.5123] * 10)
    >>> dict(evidence(certificate, finding))["p-values"]
    'at most 0.186 if nothing got worse, at most 1 if it did'
    """
    if certificate.binary:
        seen = ("trials", f"{failed(finding)} ({percent(finding.mean_cost)})")
        certified = f"{rates(certificate)} of trials fail, delta {certificate.delta:g}"
    else:
        seen = ("episodes", f"{finding.n}, mean cost {finding.mean_cost:.4f}")
        certified = (
            f"expected cost {floor(certificate.lower)} to {ceiling(certificate.upper)}, delta "
            f"{certificate.delta:g}"
        )
    joint = finding.tail == "joint"
    return [
        seen,
        ("certified", certified),
        ("shift", shift(finding)),
        (
            "p-values",
            f"{at_most(finding.p_adverse)} if nothing got worse, {at_most(finding.p_benign)} if it did",
        ),
        (
            "false alarms",
            f"ADVERSE is declared with probability at most {finding.false_positive_rate:.6g} "
            f"(delta {certificate.delta_upper:g} included) in any world that is not worse",
        ),
        (
            "false comfort",
            f"BENIGN is declared with probability at most {finding.false_negative_rate:.6g} "
            f"(delta {certificate.delta_lower:g} included) in any world that is worse",
        ),
        *margin_words(finding),
        (
            "detector",
            f"{finding.detector}, new episodes judged jointly with the certificate's"
            if joint
            else f"{finding.detector}, {finding.tail} tail",
        ),
    ]


def margin_words(finding: Finding) -> list[tuple[str, str]]:
    """Say whether it is shown that the cost rose by no more than the margin; nothing without a margin.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_held_out([0] * 90 + [1] * 10, binary=True)
    >>> margin_words(bw.HypothesisTest(certificate, margin=0.1).decide([0] * 50))[0][1]
    'shown: failures rose by at most 10 points; this is wrong with probability at most 0.055'
    """
    if finding.margin is None:
        return []
    rose = f"rose by at most {finding.margin:g}"
    if finding.binary:
        rose = f"rose by at most {points(finding.margin, 'nearest')}"
    if finding.no_worse:
        text = f"shown: {_what(finding)} {rose}; this is wrong with probability"
        return [("margin", f"{text} at most {finding.false_negative_rate:.6g}")]
    return [("margin", f"not shown that {_what(finding)} {rose}; more {_trials(finding)} may show it")]


def _what(finding: Finding) -> str:
    return "failures" if finding.binary else "the expected cost"


def _trials(finding: Finding) -> str:
    return "trials" if finding.binary else "episodes"


def shift(finding: Finding | TaskFinding) -> str:
    """Say the limits on the shift, rounded outward.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> shift(bw.HypothesisTest(certificate).decide([1, 0, 0]))
    '-18.4 to +76.5 points of failures'
    """
    if finding.binary:
        return f"{signed_points(finding.shift_lower, finding.shift_upper)} of failures"
    low, high = floor(finding.shift_lower, "+"), ceiling(finding.shift_upper, "+")
    return f"expected cost changed by {low} to {high}"


def caveats(detector: FixedSampleDetector, finding: Finding) -> list[str]:
    """Say how the rates of a detector's finding are to be read, and whether it could have alarmed at all.

    Examples
    --------
    >>> import boundwatch as bw
    >>> test = bw.HypothesisTest(bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01))
    >>> for sentence in caveats(test, test.decide([0.2]))[:2]:
    ...     print(sentence)
    Finding no evidence of a shift does not prove that there is none; it does not mean "safe".
    With 1 episode, even if every one had failed, the verdict could not have been ADVERSE; run more ...
    """
    certificate = detector.certificate
    sentences = []
    if finding.verdict is Verdict.WITHIN:
        sentences.append(
            'Finding no evidence of a shift does not prove that there is none; it does not mean "safe".'
        )
        failures = detector.decide_many(np.ones((1, finding.n)))
        if certificate.upper < 1 and failures.verdict[0] != Verdict.ADVERSE:
            sentences.append(
                f"With {count(finding.n, 'episode')}, even if every one had failed, the verdict could not "
                f"have been "
                "ADVERSE; run more (`boundwatch plan` says how many)."
            )
    return [
        *sentences,
        *vacuous_limits(certificate),
        "The rates are those of the procedure, not the probability that this verdict is wrong.",
        "They hold for one look at a number of episodes fixed in advance, independent of each other.",
    ]


def new_interval(
    certificate: Certificate, finding: Finding | TaskFinding, costs: ArrayLike
) -> tuple[float, float]:
    """Return the confidence interval of the new expected cost, at the rates that a finding states.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> costs = [0.5] * 50
    >>> finding = bw.HypothesisTest(certificate, tail="hoeffding").decide(costs)
    >>> [round(end, 3) for end in new_interval(certificate, finding, costs)]
    [0.327, 0.673]
    """
    if isinstance(finding, Finding) and finding.tail != "joint":
        return finding.shift_lower + certificate.upper, finding.shift_upper + certificate.lower
    values = certificate.check_costs(costs)[None]
    rates = (
        (finding.false_positive_rate, finding.false_negative_rate)
        if isinstance(finding, Finding)
        else (0.05, 0.05)
    )
    tail = TAILS["exact" if certificate.binary else "betting"]
    return float(tail.lower(values, rates[0])[0]), 1 - float(tail.lower(1 - values, rates[1])[0])


def count(number: int | None, thing: str) -> str:
    """Say how many there are of something.

    Examples
    --------
    >>> count(1, "new episode"), count(12, "new episode")
    ('1 new episode', '12 new episodes')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def floor(value: float, sign: str = "") -> str:
    """Round down to four decimals.

    Examples
    --------
    >>> floor(0.29), floor(0.33336), floor(-0.00001, "+")
    ('0.2900', '0.3333', '-0.0001')
    """
    return f"{Decimal(repr(value)).quantize(Decimal('0.0001'), ROUND_FLOOR):{sign}}"


def ceiling(value: float, sign: str = "") -> str:
    """Round up to four decimals.

    Examples
    --------
    >>> ceiling(0.29), ceiling(0.33331), ceiling(0.5, "+")
    ('0.2900', '0.3334', '+0.5000')
    """
    return f"{Decimal(repr(value)).quantize(Decimal('0.0001'), ROUND_CEILING):{sign}}"


_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}


def percent(share: float, way: str = "nearest") -> str:
    """Say a share in percent with at most one decimal, rounded down, up or to the nearest.

    Examples
    --------
    >>> percent(0.945, "down"), percent(0.99), percent(0.1425, "up"), percent(2 / 3)
    ('94.5 %', '99 %', '14.3 %', '66.7 %')
    """
    return f"{_hundredths(share, way)} %"


def _hundredths(share: float, way: str) -> str:
    # Nine decimals hide the dust of binary fractions, such as that of 1 - 0.055.
    exact = Decimal(f"{100 * share:.9f}")
    return f"{exact.quantize(Decimal('0.1'), _ROUNDING[way])}".removesuffix(".0")


def rates(certificate: Certificate | Campaign) -> str:
    """Say the limits of a certificate or a campaign in percent, rounded outward.

    Examples
    --------
    >>> rates(Certificate.from_bounds(lower=0.1, upper=0.2051, delta=0.01, binary=True))
    '10 to 20.6 %'
    """
    return f"{_hundredths(certificate.lower, 'down')} to {_hundredths(certificate.upper, 'up')} %"


def failed(finding: Any) -> str:
    """Say how many trials failed, of a finding with `n` costs of 0 or 1.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> failed(bw.HypothesisTest(certificate).decide([1, 0, 0]))
    '1 of 3 failed'
    """
    return f"{round(finding.mean_cost * finding.n)} of {finding.n} failed"


def points(shift: float, way: str = "down") -> str:
    """Say a difference of two shares in percentage points.

    Examples
    --------
    >>> points(0.3203), points(0.3203, "up")
    ('32 points', '32.1 points')
    """
    return f"{_hundredths(shift, way)} points"


def signed_points(lower: float, upper: float) -> str:
    """Say limits on a shift in percentage points, rounded outward.

    Examples
    --------
    >>> signed_points(-0.0513, 0.2)
    '-5.2 to +20 points'
    """
    return f"{_signed(lower, 'down')} to {_signed(upper, 'up')} points"


def _signed(shift: float, way: str) -> str:
    text = _hundredths(shift, way)
    return text if text.startswith("-") else f"+{text}"


def at_most(p_value: float) -> str:
    """Say a bound on a p-value with three digits, rounded up.

    Examples
    --------
    >>> at_most(0.0123456), at_most(1.0), at_most(8.0812e-11), at_most(0.0)
    ('at most 0.0124', 'at most 1', 'at most 8.09e-11', 'below 1e-300')
    """
    if p_value < 1e-300:  # it may have been rounded to zero
        return "below 1e-300"
    return f"at most {float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(p_value))):g}"
