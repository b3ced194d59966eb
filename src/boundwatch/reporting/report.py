"""Reports on new episodes: one HTML page in words that somebody answerable for safety can sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, betaincinv

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import costs_digest
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.family import FamilyFinding, FamilyTest, TaskFinding
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.strata import by_task
from boundwatch.reporting import families, page, svg, wording
from boundwatch.reporting.page import Html

_TITLES = {
    Verdict.ADVERSE: "Evidence that the policy does worse than certified",
    Verdict.BENIGN: "Evidence that the policy does no worse than certified",
    Verdict.WITHIN: "No evidence that the policy does worse or better than certified",
}
_COMPATIBLE = (
    "This is compatible with the certificate. It does not show that nothing has changed: "
    "a shift that is too small for so many episodes goes unnoticed (see below)."
)
_STRIP = (
    "Above: one cell per trial, in order; a filled cell is a failure, an empty one a success. "
    "Below: the band is the certified rate of failures, the diamond the new one."
)
_DOTS = (
    "Each dot is an episode. The band is the certified interval of the expected cost. The diamond is the "
    "mean of the new costs, with the interval for their expected cost"
)
_GUARANTEED = (
    "The two rates above are guaranteed in advance, over the draw of the certificate's data and of the "
    "new episodes, in every world and for every policy, if the assumptions that are listed for "
    "confirmation below are true. How to read them:"
)
_POWER = 0.9  # the chance of ADVERSE from which on a shift counts as noticed
_NEW = (
    "They are independent draws from one distribution of environments.",
    "Their number, the detector and its levels were fixed before any of their costs was seen.",
    "No episode was left out.",
)


def render_report(
    detector: FixedSampleDetector,
    costs: ArrayLike,
    *,
    source: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, str | None] | None = None,
    looks: Sequence[str] = (),
    finding: Finding | None = None,
) -> str:
    """Judge new costs and return the report as one self-contained HTML page.

    What was promised, what was seen, the verdict, what is guaranteed and what must be true for it, what
    would have been noticed, and the hashes that tie the page to the certificate and the costs.

    Parameters
    ----------
    detector
        `HypothesisTest` or `ConfidenceInterval`, with its certificate and levels.
    costs
        The costs of n new episodes; n must have been fixed in advance.
    source
        Where the costs were read from, for the provenance.
    warnings
        What the reader of the file found fault with, such as `boundwatch.episodes.Episodes.warnings`.
    title, facts
        A title of one's own, and what else the page should say on top, such as the robot and the site.
    looks
        The looks at these or other costs that a ledger has, one line each.
    finding
        What the detector found, if it was asked already.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> html = render_report(bw.HypothesisTest(certificate), [0.8, 0.9, 0.7, 0.9], source="kitchen.csv")
    >>> "does worse than certified" in html, "kitchen.csv" in html, "<script" in html
    (True, True, False)
    """
    certificate = detector.certificate
    values = certificate.check_costs(costs) if finding is None else np.asarray(costs, dtype=np.float64)
    finding = detector.decide(values) if finding is None else finding
    noticed, made = Noticed.by(detector, finding), certificate.provenance
    own, episodes = certificate.fingerprint, wording.count(finding.n, "new episode")
    top = title or _TITLES[finding.verdict]
    said = [wording.comparison(certificate, finding), _explanation(finding, certificate, episodes)]
    provenance = {
        "certificate": own,
        "certified on": made.created,
        "certified with": ", ".join(map(" ".join, made.versions.items())),
        "certified costs, SHA-256": made.costs_sha256,
        "policy, SHA-256": made.policy_sha256,
        "seed": made.seed,
        "new costs": source,
        "their values, SHA-256": costs_digest(values),
        "detector": f"{finding.detector}, {finding.tail} tail",
        "report written": _now(),
    }
    sections = [
        page.heading(top, level=1),
        _lead(f"{episodes} with certificate {own[:12]}", facts),
        page.verdict(finding.verdict.value, wording.answer(finding), said),
        page.heading("What was promised"),
        page.bullets([*wording.promise(certificate), *wording.basis(certificate)]),
        page.heading("What was seen"),
        *_seen(certificate, finding, values, warnings),
        page.heading("Verdict and evidence"),
        page.rows(wording.evidence(certificate, finding)),
        page.heading("What would have been noticed"),
        *_noticed(certificate, finding, noticed, episodes),
        page.heading("What is guaranteed, and what it is not"),
        page.paragraph(_GUARANTEED),
        page.bullets(wording.caveats(detector, finding)),
        page.paragraph("Neither the certificate nor the verdict is:"),
        page.bullets(wording.MISREADINGS),
        *([page.heading("Looks at new costs so far"), page.bullets(looks)] if looks else []),
        page.heading("Provenance"),
        page.rows(provenance.items(), code=True),
        *signature(wording.assumptions(certificate), _NEW),
    ]
    return page.page(title or f"{top}: {wording.count(finding.n, 'episode')}", sections)


def _explanation(finding: Finding, certificate: Certificate, episodes: str) -> str:
    """Say in a few sentences what a verdict rests on and what it means."""
    what, few, said = "failure rate", "so few failures", ""
    limit, least = wording.percent(certificate.lower, "down"), wording.points(finding.shift_lower)
    if not certificate.binary:
        what, few = "expected cost", "costs as low as these"
        limit, least = wording.floor(certificate.lower), wording.floor(finding.shift_lower)
        said = (
            f"The policy was certified for an expected cost of at most {wording.ceiling(certificate.upper)}; "
            f"the mean cost of {episodes} is {finding.mean_cost:.4f}. "
        )
    if finding.verdict is Verdict.WITHIN:
        return said + _COMPATIBLE
    if finding.verdict is Verdict.ADVERSE:
        p_value, world = finding.p_adverse, "nothing had gotten worse"
        strange = f"the {what} were still within that limit, evidence as strong as this"
    else:
        p_value, world = finding.p_benign, f"the {what} had risen"
        strange = f"{world}, and so were above the certified lower limit of {limit}, {few}"
    if finding.tail == "joint":
        strange = f"{world}, lab and new trials that differ this much"
    said += f"If {strange} would occur with probability {wording.at_most(p_value)}."
    if finding.verdict is Verdict.ADVERSE and finding.shift_lower > 0:
        wrong = f"this limit is wrong with probability at most {finding.false_positive_rate:.6g}"
        said += f" The {what} has risen by at least {least}; {wrong}."
    return said


def _seen(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], warnings: Sequence[str]
) -> Iterator[Html]:
    low, high = new_interval(certificate, finding, costs)
    episodes = wording.count(finding.n, "new episode")
    if certificate.binary:
        seen = f"{int(costs.sum())} of {episodes} failed (cost 1)."
        drawing = svg.draw_outcomes(certificate, costs, (low, high))
        interval = f"{wording.percent(low, 'down')} to {wording.percent(high, 'up')}"
        caption = f"{_STRIP} The line through the diamond is the interval for the new rate, {interval}."
    else:
        seen = (
            f"{episodes.capitalize()}; costs from {costs.min():.4g} to {costs.max():.4g}, "
            f"mean {finding.mean_cost:.4f}, median {np.median(costs):.4g}."
        )
        drawing = svg.draw_costs(certificate, costs, (low, high))
        caption = f"{_DOTS}, {wording.floor(low)} to {wording.ceiling(high)}."
    yield page.paragraph(seen)
    yield page.warnings(warnings)
    yield page.figure(drawing, caption)


def _noticed(
    certificate: Certificate, finding: Finding, noticed: Noticed | None, episodes: str
) -> Iterator[Html]:
    if noticed is None:
        yield page.paragraph(
            f"Nothing: with {episodes}, even if every one had failed, the verdict could not "
            "have been ADVERSE. Run more episodes; `boundwatch plan` says how many."
        )
        return
    what, rise, extreme = "failure rate", "failures", ""
    to, shift = wording.percent(noticed.rate, "up"), wording.points(noticed.beyond, "up")
    certified = f"{certificate.failures} of {certificate.n} trials failed"
    if not certificate.binary:
        what, rise = "expected cost", "the expected cost"
        extreme = " (computed for costs of 0 and 1, which vary the most)"
        to, shift = wording.ceiling(noticed.rate), wording.ceiling(noticed.beyond)
        certified = f"a mean of {certificate.mean_cost or 0:.4f}"
    joint = finding.tail == "joint"
    since = f"above what was certified ({certified})" if joint else "beyond the certified limit"
    yield page.paragraph(
        f"With {episodes}, a rise of {rise} to {to} or more would have been called ADVERSE with a "
        f"probability of at least 90 %{extreme}: a shift of {shift} {since}. Smaller shifts are noticed less "
        "often."
    )
    yield page.figure(
        svg.draw_power(certificate, noticed.curve()),
        f"Chance of the verdict ADVERSE, by the true {what} of {episodes}. "
        "The band is the certified interval, the horizontal line 90 %.",
    )


def render_family_report(
    test: FixedSampleDetector | FamilyTest,
    costs: Mapping[str, ArrayLike],
    *,
    source: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, str | None] | None = None,
    finding: Finding | FamilyFinding | None = None,
) -> str:
    """Judge the new costs of several tasks and return the report, as `render_report` does of one."""
    family = test.family if isinstance(test, FamilyTest) else by_task(test.certificate)
    one = families.member(family)
    finding = test.decide(costs) if finding is None else finding  # type: ignore[arg-type]
    values = {task: np.asarray(costs[task], dtype=np.float64) for task in finding.tasks}
    said = families.in_words(test, finding)
    column = "" if one == family.by else f" (column {family.by})"
    judged = f"{wording.count(len(finding.tasks), one)}{column}"
    adverse = finding.called(Verdict.ADVERSE)
    called = [f"Called ADVERSE: {', '.join(adverse)}."] if adverse else []
    heads, lines = said.table or ((), [])
    assumed = [line for task in finding.tasks for line in wording.assumptions(family[task])]
    certified = {f"{task}: certificate": family[task].fingerprint for task in costs}
    if not isinstance(test, FamilyTest):
        certified = {"certificate": test.certificate.fingerprint}
    provenance = {
        "new costs": source,
        **certified,
        **{f"{task}: new costs, SHA-256": costs_digest(values[task]) for task in costs},
        "detector": str(test),
        "report written": _now(),
    }
    sections = [
        page.heading(title or f"Report on {wording.count(len(family), one)}", level=1),
        _lead(f"{judged} with their certificates", facts),
        page.verdict(finding.verdict.value, said.headline, called),
        page.warnings(warnings),
        page.heading(f"The verdict on each {one}"),
        page.table((heads[-1], *heads[:-1]), [(line[-1], *line[:-1]) for line in lines]),
        page.rows(said.rows),
        page.bullets(said.notes),
        page.heading("What was seen"),
        page.paragraph(_STRIP if families.in_failures(family) else f"{_DOTS}."),
    ]
    for task, found in finding.tasks.items():
        certificate, new = family[task], values[task]
        if certificate.binary:
            drawing = svg.draw_outcomes(certificate, new)
        else:
            drawing = svg.draw_costs(certificate, new, new_interval(certificate, found, new))
        sections.append(page.heading(f"{task}: {found.verdict.name}", level=3))
        sections.append(page.figure(drawing, wording.promise(certificate)[0]))
    sections += [page.heading("Provenance"), page.rows(provenance.items(), code=True)]
    sections += signature(list(dict.fromkeys(assumed)), _NEW)
    return page.page(title or said.headline, sections)


def _lead(of: str, facts: Mapping[str, str | None] | None) -> Html:
    known = [f"{name} {value}" for name, value in (facts or {}).items() if value]
    return page.paragraph("; ".join([f"Comparison of {of}", *known]), "lead")


def _now() -> str:
    return f"{datetime.now(UTC).isoformat(timespec='seconds')}, with boundwatch {__version__}"


def signature(certified: Sequence[str], new: Sequence[str] = ()) -> Iterator[Html]:
    """Yield what must be confirmed, of the certificate and of the new episodes, and where to sign."""
    yield page.heading("To be confirmed by the person who signs")
    if new:
        yield page.paragraph(
            "No program can check these; the guarantee holds if all are true. Of the certificate:"
        )
    yield page.bullets(certified, "confirm")
    if new:
        yield page.paragraph("Of the new episodes:")
        yield page.bullets(new, "confirm")
    yield Html('<div class="sign"><div>Name and role</div><div>Date</div><div>Signature</div></div>')


def new_interval(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the confidence interval of the new expected cost, at the rates that a finding states.

    That of a task is its own, at 5 % for each side: the rates of its finding are those of all tasks.
    """
    of_task = isinstance(finding, TaskFinding)
    if not of_task and finding.tail != "joint":
        return finding.shift_lower + certificate.upper, finding.shift_upper + certificate.lower
    above, below = (0.05, 0.05) if of_task else (finding.false_positive_rate, finding.false_negative_rate)
    tail = TAILS["exact" if certificate.binary else "betting"]
    return float(tail.lower(costs[None], above)[0]), 1 - float(tail.lower(1 - costs[None], below)[0])


@dataclass(frozen=True)
class Noticed:
    """What n episodes with costs of 0 and 1 would have shown."""

    n: int
    fewest: int
    """The fewest failures among them that are ADVERSE."""
    rate: float
    """The expected cost from which on ADVERSE is declared with a probability of `_POWER`."""
    beyond: float
    """How much that is above the certified mean if it is judged jointly, else above the certified limit."""

    @classmethod
    def by(cls, detector: FixedSampleDetector, finding: Finding) -> Self | None:
        """Return what a detector would have noticed; None if even failures throughout are not ADVERSE."""
        n, fewest, certificate = finding.n, detector.fewest_adverse(finding.n), detector.certificate
        if fewest is None:
            return None
        rate = float(betaincinv(fewest, n - fewest + 1, _POWER))  # P[Binomial(n, rate) >= fewest] = _POWER
        certified = (certificate.mean_cost or 0.0) if finding.tail == "joint" else certificate.upper
        return cls(n, fewest, rate, rate - certified)

    def curve(self) -> list[tuple[float, float]]:
        """Return expected costs from 0 to 1, each with the probability of ADVERSE."""
        rates = np.linspace(0, 1, 101)
        return list(zip(rates.tolist(), bdtrc(self.fewest - 1, self.n, rates).tolist(), strict=True))
