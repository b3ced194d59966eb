"""What certificates and findings say, in words: the same for the command line and for reports.

Limits are rounded outward, so that what is read is never more than what is promised.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.family_test import FamilyFinding
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.verdicts import Finding, Verdict

_HEADLINES = {
    Verdict.ADVERSE: "ADVERSE: evidence that the expected cost is higher than certified",
    Verdict.BENIGN: "BENIGN: evidence that the expected cost is not higher than certified",
    Verdict.WITHIN: "WITHIN: no evidence of a shift",
}
_FAILURES = _HEADLINES | {
    Verdict.ADVERSE: "ADVERSE: evidence of more failures than certified",
    Verdict.BENIGN: "BENIGN: evidence of no more failures than certified",
}

MISREADINGS = (
    "A limit on single episodes: it is about their mean, and any one may fail or cost more.",
    'A promise of safety: the verdict WITHIN reads "no evidence of a shift", never "safe".',
    "The probability of being wrong given an alarm: a detector's error rate is how often, before any "
    "data are seen, it would declare a shift that is not there.",
)
"""What a certificate, and a verdict that rests on it, are not."""
RATES = (
    "The rates are those of the procedure, not the probability that a verdict is wrong.",
    "They hold for one look at a number of episodes fixed in advance, independent of each other.",
)
"""How the error rates of one look are to be read."""
WITHIN = 'WITHIN means no evidence of a shift; it does not mean "safe".'
"""What stands beside tables of verdicts that have one."""
_METHODS = {
    "betting": "betting",
    "tuned": "betting for this level",
    "kl": "inverting the binary relative entropy (kl)",
    "hoeffding": "Hoeffding's inequality",
    "pinsker": "Pinsker's inequality",
    "exact": "the exact binomial distribution (Clopper-Pearson)",
    "weighted": "Chernoff's bound on the mean over tasks",
    "rounds": "betting on rounds, in which each task is run once, so that they hold after every one",
    "anytime": "betting at all times at once, so that they hold whatever made the campaign stop",
    "predicted": "betting with predicted costs, beside a limit on costs alone",
    "predicted-anytime": "betting with predicted costs, at all times at once",
}


def headline(subject: Certificate | Campaign | Finding | FamilyFinding, member: str = "task") -> str:
    """Say a certificate, a campaign or a finding in one sentence; a family is of tasks or of metrics."""
    if isinstance(subject, Certificate):
        return promise(subject)[0]
    if isinstance(subject, Campaign):
        what = f"the expected cost is between {floor(subject.lower)} and {ceiling(subject.upper)}"
        if subject.binary:
            what = f"it fails in {limits(subject)} of trials"
        rounds = "" if subject.strata is None else f" in {count(subject.rounds, 'complete round')}"
        return (
            f"After {count(subject.n, 'trial')}{rounds} {what}; both limits hold at all times at once "
            f"with probability at least {100 * (1 - subject.delta):.6g} %."
        )
    if not isinstance(subject, FamilyFinding):
        return answer(subject)
    tasks, missing = subject.tasks.values(), len(subject.not_judged)
    joint = all(each.tail == "joint" for each in tasks)
    said = says(subject.verdict, binary=all(each.binary for each in tasks), joint=joint)
    total = count(len(tasks) + missing, member)
    rest = f", {missing} not judged" if missing else ""
    return f"{said}, for {len(subject.called(subject.verdict))} of {total}{rest}"


def says(verdict: Verdict, *, binary: bool = True, joint: bool = False) -> str:
    """Say a verdict, in failures where costs are 0 or 1; `joint`, beside the lab's trials."""
    said = (_FAILURES if binary else _HEADLINES)[verdict]
    return said.replace("than certified", "than in the lab") if joint else said


def answer(finding: Finding) -> str:
    """Say a verdict and how large the shift is at least, in one line."""
    joint, least = finding.tail == "joint", points(finding.shift_lower)
    said = says(finding.verdict, binary=in_failures(finding), joint=joint)
    over = f", over {count(len(finding.tasks), 'task')}" if finding.tasks else ""
    if finding.verdict is not Verdict.ADVERSE or finding.shift_lower <= 0 or least == "0 points":
        return f"{said}{over}"
    error = finding.false_positive_rate
    sure, errors = percent(1 - error, "down"), percent(error, "up")
    sure = f"({sure} confidence: {errors} for errors of test and certificate)"
    if in_failures(finding):
        than = "in the lab" if joint else "certified"
        return f"ADVERSE: worse than {than}{over}; at least {least} more failures {sure}"
    return f"{said}{over}; up by at least {floor(finding.shift_lower)} {sure}"


def in_failures(subject: Certificate | Finding) -> bool:
    """Return whether costs are failures, or shares of failed trials, so that words are about these."""
    return subject.binary or subject.shares_of is not None


def _confidence(error: float) -> str:
    return f"({percent(1 - error, 'down')} confidence)"


def comparison(certificate: Certificate, finding: Finding) -> str:
    """Say what was certified and what was seen, in one line."""
    sure = _confidence(certificate.delta)
    if in_failures(certificate):
        return f"Certified: it fails in {limits(certificate)} of trials {sure}. New: {failed(finding)}."
    seen = f"mean {finding.mean_cost:.4f} over {count(finding.n, 'episode')}"
    return f"Certified: expected cost {limits(certificate)} {sure}. New: {seen}."


def promise(certificate: Certificate) -> list[str]:
    """Say what a certificate promises, and where it promises nothing."""
    low, high = floor(certificate.lower), ceiling(certificate.upper)
    over = f", in the mean over {count(len(certificate.strata), 'task')}," if certificate.strata else ""
    first = (
        f"The expected cost of an episode{over} is at least {low} and at most {high} (0 is best, 1 is worst)."
    )
    if in_failures(certificate):
        over = over.removesuffix(",")
        over += "" if certificate.binary else f" on average over {plural(str(certificate.shares_of))}"
        first = f"It fails in {limits(certificate)} of trials{over} {_confidence(certificate.delta)}."
    return [
        first,
        f"The upper limit fails with probability at most {certificate.delta_upper:g}, the lower with "
        f"at most {certificate.delta_lower:g}, either with at most {certificate.delta:g}.",
        *vacuous_limits(certificate),
    ]


def vacuous_limits(certificate: Certificate, finding: Finding | None = None) -> list[str]:
    """Say which limits promise nothing and, beside a finding, which verdict that rules out."""

    def rules_out(verdict: str, extreme: float) -> str:
        # Judged jointly with the certificate's costs, a shift may be noticed that its limits could not show.
        if finding is None or (finding.tail == "joint" and certificate.mean_cost != extreme):
            return "."
        return f", so no shift can be called {verdict}."

    sentences = []
    if certificate.upper >= 1:
        sentences.append(f"The upper limit is vacuous: no cost is above 1{rules_out('ADVERSE', 1)}")
    if certificate.lower <= 0:
        sentences.append(f"The lower limit is vacuous: no cost is below 0{rules_out('BENIGN', 0)}")
    return sentences


def basis(certificate: Certificate) -> list[str]:
    """Say what a certificate stands on."""
    if certificate.source == "external":
        return ["A bound that was proved elsewhere; boundwatch uses it as given and cannot check it."]
    failures, by = certificate.failures, f"limits by {_METHODS[certificate.method]}"
    seen = f"mean cost {certificate.mean_cost:.4f}" if failures is None else f"{failures} failed"
    if certificate.audit is not None:
        draws = "betting on label - judge" if certificate.audit.costs else "the chances of all draws"
        return [f"Audit: {certificate.audit}, drawn at random; limits by {draws}."]
    if certificate.source == "held-out":
        tasks = f" of {count(len(certificate.strata), 'task')}" if certificate.strata else ""
        of, what = f"{count(certificate.n, 'episode')}{tasks}, {seen}; {by}.", "its costs"
        if certificate.trials is not None:
            unit, what = str(certificate.design.cluster), "trials"
            of = f"{count(certificate.n, unit)}, {certificate.trials}; {by}, each {unit} as one cost: "
            of += "the mean of its trials."
        said = [f"Held-out: {of}"]
        if (saved := certificate.saved_trials) is not None:
            said.append(f"Predictions: {saved_trials(saved)}.")
        how = certificate.measure
        return [*said, *([] if how is None else [f"How {what} were measured: {how}."])]
    of_posterior = certificate.source == "pac-bayes"
    price = certificate.renyi if of_posterior else certificate.log_ratio
    priced = f"{'D2(P || P0)' if of_posterior else 'ln P(w)/P0(w)'} = {price:.6g}"
    return [f"{certificate.source}: {certificate.n} training environments, {priced}, {seen}; {by}."]


def assumptions(certificate: Certificate) -> list[str]:
    """List what must be true for the promise, and for any verdict that rests on it, to hold."""
    final = "The policy was final before these episodes ran; none was used to train or select it."
    labeled = "The audit drew the episodes that people labeled, and their labels are right."
    of_source = {"held-out": [final], "audit": [final, labeled], "external": []}
    trained = [
        "The prior was chosen before the training environments were seen, and training is deterministic.",
        "The policy was drawn once from the posterior, and nothing was chosen after seeing its costs.",
    ]
    kind = "is 0 or 1" if certificate.binary else "is in [0, 1]"
    of_each = " for each task; no other task is meant" if certificate.strata else ""
    independent = (
        f"The episodes behind it were independent draws from one distribution of environments{of_each}."
    )
    if (unit := certificate.design.cluster) is not None:
        independent = (
            f"Each {unit} behind it was an independent draw from one distribution of them, as are new ones; "
            f"trials of one {unit} may depend on each other in any way."
        )
    return [
        independent,
        *of_source.get(certificate.source, trained),
        "The policy that is deployed is the one that was certified, unchanged.",
        f"Every cost {kind}, and measured as it was for the certificate.",
    ]


def evidence(certificate: Certificate, finding: Finding) -> list[tuple[str, str]]:
    """Say what a fixed-sample finding rests on, as labeled lines."""
    seen = ("episodes", f"{finding.n}, mean cost {finding.mean_cost:.4f}")
    certified = f"expected cost {limits(certificate)}"
    if certificate.shares_of is not None:
        seen = (plural(certificate.shares_of), f"{finding.n}; {failed(finding)}")
        certified = f"{limits(certificate)} of trials fail"
    if certificate.binary:
        seen = ("trials", f"{failed(finding)} ({percent(finding.mean_cost)})")
        seen = seen if finding.labels is None else ("trials", failed(finding))
        certified = f"{limits(certificate)} of trials fail"
    how = f"{finding.tail} tail"
    if finding.tail == "joint":
        how = "new episodes judged jointly with the certificate's"
    p_values = f"{at_most(finding.p_adverse)} if nothing got worse, {at_most(finding.p_benign)} if it did"
    wrong = "is declared with probability at most {:.6g} (delta {:g} included) in any world that is"
    alarm = wrong.format(finding.false_positive_rate, certificate.delta_upper)
    comfort = wrong.format(finding.false_negative_rate, certificate.delta_lower)
    return [
        seen,
        ("certified", f"{certified}, delta {certificate.delta:g}"),
        ("shift", shift(finding)),
        ("p-values", p_values),
        ("false alarms", f"ADVERSE {alarm} not worse"),
        ("false comfort", f"BENIGN {comfort} worse"),
        *margin_words(finding),
        ("detector", f"{finding.detector}, {how}"),
    ]


def margin_words(finding: Finding) -> list[tuple[str, str]]:
    """Say whether it is shown that the cost rose by no more than the margin; nothing without a margin."""
    if finding.margin is None:
        return []
    what, more, margin = "the expected cost", "episodes", f"{finding.margin:g}"
    if in_failures(finding):
        what, more, margin = "failures", "trials", points(finding.margin, "nearest")
    rose = f"{what} rose by at most {margin}"
    if finding.no_worse:
        wrong = f"this is wrong with probability at most {finding.false_negative_rate:.6g}"
        return [("margin", f"shown: {rose}; {wrong}")]
    return [("margin", f"not shown that {rose}; more {more} may show it")]


def shift(finding: Finding) -> str:
    """Say the limits on the shift, rounded outward."""
    if in_failures(finding):
        return f"{signed_points(finding.shift_lower, finding.shift_upper)} of failures"
    low, high = floor(finding.shift_lower, "+"), ceiling(finding.shift_upper, "+")
    return f"expected cost changed by {low} to {high}"


def caveats(detector: FixedSampleDetector, finding: Finding) -> list[str]:
    """Say how the rates of a detector's finding are to be read, and whether it could have alarmed at all."""
    said = []
    if finding.verdict is Verdict.WITHIN:
        said = ['Finding no evidence of a shift does not prove that there is none; it does not mean "safe".']
        if finding.labels is None and detector.certificate.upper < 1 and not detector.could_alarm(finding.n):
            said.append(
                f"With {count(finding.n, 'episode')}, even if every one had failed, the verdict could not "
                "have been ADVERSE; run more (`boundwatch plan` says how many)."
            )
    return [*said, *vacuous_limits(detector.certificate, finding), *RATES]


def saved_trials(number: int, of: str = "") -> str:
    """Say how many trials predictions saved for limits as narrow, or cost if fewer than none."""
    narrow, more = ("narrow", "more") if number >= 0 else ("wide", "fewer")
    return f"limits as {narrow} as with about {count(abs(number), f'{more} trial')}{of} without predictions"


def count(number: int | None, thing: str) -> str:
    """Say how many there are of something."""
    return f"{number} {thing if number == 1 else plural(thing)}"


def shortened(name: str, most: int = 30) -> str:
    """Return a name without its middle, if it is long: checkpoints differ at their ends."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2) + 1 :]}"


def plural(thing: str) -> str:
    """Return the word for several of a thing, which may be the name of a column."""
    return thing if thing.endswith("s") else f"{thing}s"


def floor(value: float, sign: str = "") -> str:
    """Round down to four decimals."""
    return f"{Decimal(repr(value)).quantize(Decimal('0.0001'), ROUND_FLOOR):{sign}}"


def ceiling(value: float, sign: str = "") -> str:
    """Round up to four decimals."""
    return f"{Decimal(repr(value)).quantize(Decimal('0.0001'), ROUND_CEILING):{sign}}"


_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}


def percent(share: float, way: str = "nearest") -> str:
    """Say a share in percent with at most one decimal, rounded down, up or to the nearest."""
    return f"{_hundredths(share, way)} %"


def _hundredths(share: float, way: str, sign: str = "") -> str:
    # Nine decimals hide the dust of binary fractions, such as that of 1 - 0.055.
    exact = Decimal(f"{100 * share:.9f}")
    return f"{exact.quantize(Decimal('0.1'), _ROUNDING[way]):{sign}}".removesuffix(".0")


def percents(lower: float, upper: float) -> str:
    """Say two limits on a share in percent, rounded outward."""
    return f"{_hundredths(lower, 'down')} to {_hundredths(upper, 'up')} %"


def limits(certificate: Certificate | Campaign) -> str:
    """Say the limits of a certificate or a campaign, rounded outward; in percent where costs are 0 or 1."""
    if certificate.binary or (isinstance(certificate, Certificate) and certificate.shares_of is not None):
        return percents(certificate.lower, certificate.upper)
    return f"{floor(certificate.lower)} to {ceiling(certificate.upper)}"


def failed(finding: Any) -> str:
    """Say how many trials failed, of a finding with `n` costs of 0 or 1, or shares in so many clusters."""
    if getattr(finding, "shares_of", None) is not None:
        return f"{percent(finding.mean_cost)} failed, on average over {count(finding.n, finding.shares_of)}"
    if (labels := getattr(finding, "labels", None)) is not None:
        about = f"about {percent(finding.mean_cost)} of {finding.n} failed, by {count(labels, 'label')}"
        return about if labels else f"{finding.n} counted, no label yet"
    parts = list(getattr(finding, "tasks", {}).values()) or [finding]  # whose weights may differ
    failures = sum(round(each.mean_cost * each.n) for each in parts)
    if isinstance(finding, Campaign) and finding.failures is not None:  # tasks may have weights
        failures = finding.failures
    return f"{failures} of {finding.n} failed"


def points(shift: float, way: str = "down") -> str:
    """Say a difference of two shares in percentage points."""
    return f"{_hundredths(shift, way)} points"


def signed_points(lower: float, upper: float) -> str:
    """Say limits on a shift in percentage points, rounded outward."""
    return f"{_hundredths(lower, 'down', '+')} to {_hundredths(upper, 'up', '+')} points"


def upward(p_value: float) -> str:
    """Say a p-value with three digits, rounded up; never zero, which it may have been rounded to."""
    if p_value < 1e-300:
        return "below 1e-300"
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(p_value))):g}"


def at_most(p_value: float) -> str:
    """Say a bound on a p-value with three digits, rounded up."""
    text = upward(p_value)
    return text if text.startswith("below") else f"at most {text}"
