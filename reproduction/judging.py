"""From costs to counts: datasets, the true shift, how often a detector declares what, and whether it may."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ConfidenceInterval, HypothesisTest
from boundwatch.detectors.verdicts import TailName, Verdict
from boundwatch.errors import InvalidSetting
from reproduction.artifacts import Array

Detector = HypothesisTest | ConfidenceInterval

SURE = 3.0
"""A shift is called adverse or benign when it is this many standard errors from zero."""
SIGNIFICANT = 0.01
"""A rate exceeds its guarantee if the p-value, corrected for the number of checks, is at most this."""

PAPERS_N = 50
"""Trials in the datasets of the paper's Figures 4 to 6: its text says 10, the code that drew them 50."""
MAY_ERR = "The test at alpha = 0.05 may err by delta more than the interval at 5 %"
INDICATORS = {"hypothesis-test": "1 - p", "confidence-interval": "ΔC"}
"""The paper's two, by detector."""


def fewest_failures(tail: TailName, level: float, n: int, bound: float) -> int:
    """Return the fewest failures among n with a p-value within the level; n + 1 if none has."""
    limits = Certificate.from_bounds(lower=0.0, upper=bound, delta=level, binary=True)
    found = HypothesisTest(limits, tail=tail, alpha_adverse=level).fewest_adverse(n)
    return n + 1 if found is None else found


@dataclass(frozen=True)
class Shift:
    """The difference of expected costs, new minus certified, estimated from many environments."""

    difference: float
    error: float
    """Its standard error."""

    @classmethod
    def between(cls, new: Array, certified: Array) -> Shift:
        """Estimate it from costs in either distribution.

        Examples
        --------
        >>> Shift.between(np.ones(100), np.zeros(100)).difference
        1.0
        """
        error = math.sqrt(new.var() / new.size + certified.var() / certified.size)
        return cls(float(new.mean() - certified.mean()), error)


@dataclass(frozen=True)
class Tally:
    """How often a detector declared what, in datasets of one setting."""

    setting: str
    detector: str
    tail: str
    n: int
    """Trials in a dataset."""
    datasets: int
    adverse: int
    benign: int
    within: int
    shift: float
    """The true one."""
    shift_error: float
    false_positive_rate: float
    """Guaranteed."""
    false_negative_rate: float
    certificate: str | None = None
    """Which one it was, where a figure has several; by its cost's threshold: ``d_thresh``, in meters."""
    d_thresh: float | None = None

    @property
    def certified_by(self) -> str:
        """The certificate in words, where there are several."""
        cost = "" if self.d_thresh is None else f"d_thresh = {1000 * self.d_thresh:g} mm"
        return cost if self.certificate is None else self.certificate

    @property
    def point(self) -> tuple[float, float]:
        """The true shift, and the share of datasets that are ADVERSE."""
        return self.shift, self.share()

    def share(self, verdict: str = "adverse") -> float:
        """Return the share of datasets with a verdict."""
        return int(getattr(self, verdict)) / self.datasets


@dataclass(frozen=True)
class Check:
    """A guarantee that a tally can break: how often a verdict was false, and may be."""

    tally: Tally
    verdict: str
    false: int
    promised: float

    @property
    def rate(self) -> float:
        """The share of datasets in which it was false."""
        return self.false / self.tally.datasets

    @property
    def p_value(self) -> float:
        """Of the exact binomial test of "declared at most as often as guaranteed"."""
        return float(binom.sf(self.false - 1, self.tally.datasets, self.promised))


@dataclass(frozen=True)
class Tallied:
    """Results of detectors on datasets.

    Examples
    --------
    >>> said = {"setting": "x", "shift": Shift(0.0, 0.0), "detector": "d"}
    >>> rows = [counted(np.array(["within"]), n=n, **said) for n in (10, 50)]
    >>> Tallied(rows).sizes, Tallied(rows).n, Tallied(rows[:1]).n
    ([10, 50], 50, 10)
    """

    tallies: list[Tally]
    """Of detectors that promise something."""

    @property
    def sizes(self) -> list[int]:
        """The numbers of trials in their datasets, in order."""
        return sorted({row.n for row in self.tallies})

    @property
    def n(self) -> int:
        """That at which the paper's claims are judged: its own, or else the most there are."""
        return PAPERS_N if PAPERS_N in self.sizes else self.sizes[-1]

    @property
    def papers_first(self) -> list[int]:
        """All of them, beginning with that."""
        return sorted(self.sizes, key=lambda size: size != self.n)

    def checks(self, verdict: str | None = None, **values: object) -> list[Check]:
        """Return `false_declarations` of the tallies that have these values, all or those of one verdict."""
        found = false_declarations(where(self.tallies, **values))
        return [check for check in found if verdict in (None, check.verdict)]

    @property
    def datasets(self) -> int:
        """How many datasets a setting has, at the first number of trials."""
        return self.tallies[0].datasets


def where(rows: Iterable[Tally], **values: object) -> list[Tally]:
    """Return the rows that have all these values.

    Examples
    --------
    >>> where([], setting="training", n=10)
    []
    """
    return [row for row in rows if all(getattr(row, name) == value for name, value in values.items())]


def split(costs: Array, n: int, datasets: int) -> Array:
    """Return the first environments as (datasets, n).

    Examples
    --------
    >>> split(np.arange(10.0), 2, 3).tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    if len(costs) < n * datasets:
        raise InvalidSetting(
            f"{datasets} datasets of {n} need {n * datasets} environments; there are {len(costs)}"
        )
    return costs[: n * datasets].reshape(datasets, n, *costs.shape[1:])


def tally(detector: Detector, costs: Array, setting: str, shift: Shift) -> Tally:
    """Count what a detector declares on datasets, one per row of `costs`."""
    findings = detector.decide_many(costs)
    return counted(
        findings.verdict,
        setting=setting,
        shift=shift,
        detector=findings.detector,
        tail=findings.tail,
        n=findings.n,
        rates=(findings.false_positive_rate, findings.false_negative_rate),
    )


def counted(
    verdicts: NDArray[np.str_],
    *,
    setting: str,
    shift: Shift,
    detector: str,
    n: int,
    tail: str = "none",
    rates: tuple[float, float] = (1.0, 1.0),
) -> Tally:
    """Return the counts of verdicts with what is needed to judge them; without a tail nothing is promised."""
    return Tally(
        setting=setting,
        detector=detector,
        tail=tail,
        n=n,
        datasets=int(verdicts.size),
        adverse=int((verdicts == Verdict.ADVERSE).sum()),
        benign=int((verdicts == Verdict.BENIGN).sum()),
        within=int((verdicts == Verdict.WITHIN).sum()),
        shift=shift.difference,
        shift_error=shift.error,
        false_positive_rate=rates[0],
        false_negative_rate=rates[1],
    )


@dataclass(frozen=True)
class Indicated:
    """The paper's two indicators of an adverse shift in one setting, by detector: 1 - p, and ΔC.

    1 - p is that of the hypothesis test, ADVERSE from 1 - alpha on; ΔC is the lower limit of the shift by the
    confidence interval, ADVERSE above 0. Both are with Hoeffding's tail.
    """

    setting: str
    shift: float
    """The true one."""
    mean_cost: float
    first: dict[str, float]
    """Of the first dataset."""
    mean: dict[str, float]
    deviation: dict[str, float]

    @classmethod
    def of(
        cls,
        certificate: Certificate,
        alpha: float,
        datasets: Array,
        *,
        setting: str,
        shift: Shift,
        cost: float,
    ) -> Indicated:
        """Compute them for datasets, one per row.

        Examples
        --------
        >>> shift, certificate = Shift(0.7, 0.0), Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01)
        >>> found = Indicated.of(certificate, 0.05, np.ones((2, 10)), setting="x", shift=shift, cost=1.0)
        >>> {name: round(mean, 3) for name, mean in found.mean.items()}
        {'hypothesis-test': 1.0, 'confidence-interval': 0.299}
        """
        test = hypothesis_test(certificate, alpha).decide_many(datasets)
        interval = confidence_interval(certificate, alpha).decide_many(datasets)
        found = {"hypothesis-test": 1 - test.p_adverse, "confidence-interval": interval.shift_lower}
        return cls(
            setting,
            shift.difference,
            cost,
            first={name: float(values[0]) for name, values in found.items()},
            mean={name: float(values.mean()) for name, values in found.items()},
            deviation={name: float(values.std()) for name, values in found.items()},
        )


def false_declarations(tallies: Iterable[Tally]) -> list[Check]:
    """Return the check of every guarantee that some tallies can break.

    ADVERSE is false where the expected cost did not rise, BENIGN where it rose; where the sign of the shift
    is within three standard errors of its estimate, both count as false.

    Examples
    --------
    >>> verdicts = np.array(["adverse"] * 30 + ["within"] * 70)
    >>> row = counted(verdicts, setting="x", shift=Shift(-0.1, 0.01), detector="d", tail="t", n=10,
    ...               rates=(0.05, 0.05))
    >>> [(check.verdict, check.false, check.p_value < 1e-6) for check in false_declarations([row])]
    [('adverse', 30, True)]
    """
    checks = []
    for row in tallies:
        unsure = SURE * row.shift_error
        if row.shift <= unsure:
            checks.append(Check(row, "adverse", row.adverse, row.false_positive_rate))
        if row.shift > -unsure:
            checks.append(Check(row, "benign", row.benign, row.false_negative_rate))
    return checks


def indicated(rows: Sequence[Indicated]) -> str:
    """Return the means of both indicators in words, row by row."""
    tests = ", ".join(f"{row.mean['hypothesis-test']:.2f}" for row in rows)
    intervals = ", ".join(f"{row.mean['confidence-interval']:+.2f}" for row in rows)
    return f"mean 1 - p: {tests}; mean ΔC: {intervals}"


RISING = "A fall below 0.005 is none, one within two standard errors is one in part."
"""The rule of `rising`."""


def rising(rows: Sequence[Indicated], datasets: int, place: Callable[[Indicated], str]) -> tuple[str, bool]:
    """Return where the means of the indicators do not rise from row to row, and whether they do in part.

    A fall of less than 0.005 cannot be seen in a figure and is none; in part they rise if no fall is larger
    than two standard errors of the means of so many ``datasets``. Reasons call a row by its ``place``.

    Examples
    --------
    >>> def rows(*means):
    ...     spread = dict.fromkeys(INDICATORS, 0.1)
    ...     return [Indicated("x", 0.0, 0.0, {}, dict.fromkeys(INDICATORS, m), spread) for m in means]
    >>> rising(rows(0.2, 0.9, 0.899), 100, str)[0], rising(rows(0.2, 0.2), 100, str)[1]
    ('', False)
    >>> rising(rows(0.2, 0.9, 0.88), 100, str)[1], rising(rows(0.2, 0.9, 0.8), 100, str)[1]
    (True, False)
    """
    worst, falls = 0.0, []
    for name, label in INDICATORS.items():
        for before, after in pairwise(rows):
            fall = before.mean[name] - after.mean[name]
            error = math.hypot(before.deviation[name], after.deviation[name]) / math.sqrt(datasets)
            if fall >= 0.005:
                falls.append(
                    f"{label} falls by {fall:.3f} ± {error:.3f} from {place(before)} to {place(after)}"
                )
                worst = max(worst, fall / error if error else math.inf)
        if rows[0].mean[name] == rows[-1].mean[name]:
            falls.append(f"{label} is constant")
            worst = math.inf
    return f"Not so: {'; '.join(falls)} (standard error)." if falls else "", worst <= 2.0


def hypothesis_test(certificate: Certificate, alpha: float, tail: TailName = "hoeffding") -> HypothesisTest:
    """Return the test with one level for both sides, by default with the paper's tail."""
    return HypothesisTest(certificate, alpha_adverse=alpha, alpha_benign=alpha, tail=tail)


def confidence_interval(
    certificate: Certificate, rate: float, tail: TailName = "hoeffding"
) -> ConfidenceInterval:
    """Return the interval with one rate for both errors, by default with the paper's tail."""
    return ConfidenceInterval(certificate, false_positive_rate=rate, false_negative_rate=rate, tail=tail)


def margin(n: int, level: float) -> float:
    """Return Hoeffding's margin γ of n trials; below it no certified lower limit can be undercut.

    Examples
    --------
    >>> [round(margin(n, 0.04), 3) for n in (10, 50)]
    [0.401, 0.179]
    """
    return math.sqrt(math.log(1 / level) / (2 * n))


def both_tails(certificate: Certificate, alpha: float) -> list[Detector]:
    """Return both detectors with the paper's tail and with the exact one."""
    tails: tuple[TailName, ...] = ("hoeffding", "exact")
    return [
        *(hypothesis_test(certificate, alpha, tail) for tail in tails),
        *(confidence_interval(certificate, alpha, tail) for tail in tails),
    ]


def contested(a: float, b: float) -> bool:
    """Tell whether two shares of datasets can differ: not both below 2 %, nor both above 98 %.

    Where both are plain, any two detectors are alike, which says nothing of how similar they are.

    Examples
    --------
    >>> contested(0.01, 0.3), contested(0.01, 0.02), contested(0.98, 1.0)
    (True, False, False)
    """
    return min(a, b) < 0.98 and max(a, b) > 0.02


def corrected(checks: Sequence[Check]) -> float:
    """Return the smallest p-value, corrected for having looked for it; it may exceed 1."""
    return min(check.p_value for check in checks) * len(checks)


def no_false_declaration(false: int, corrected: float) -> tuple[str, bool]:
    """Return why "nothing is declared falsely" does not hold, and whether it does in part.

    Parameters
    ----------
    false
        How often something was.
    corrected
        The p-value that `corrected` returns.

    Examples
    --------
    >>> no_false_declaration(0, 1.0)[0], no_false_declaration(3, 0.8)[1], no_false_declaration(90, 1e-9)[1]
    ('', True, False)
    """
    if false == 0:
        return "", False
    if corrected > SIGNIFICANT:
        return "Some declarations are false, not more often than the guarantee allows.", True
    return "Some rate exceeds its guarantee.", False
