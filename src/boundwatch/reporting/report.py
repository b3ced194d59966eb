"""A report on new episodes: one HTML page in words that somebody answerable for safety can sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.reporting import drawings, page, wording
from boundwatch.reporting.page import Html
from boundwatch.reporting.sensitivity import Noticed, new_interval

_TITLES = {
    Verdict.ADVERSE: "Evidence that the policy does worse than certified",
    Verdict.BENIGN: "Evidence that the policy does no worse than certified",
    Verdict.WITHIN: "No evidence that the policy does worse or better than certified",
}
STRIP = (
    "Above: one cell per trial, in order; a dark cell is a failure. Below: the band is the certified rate of "
    "failures, the diamond the new one."
)
DOTS = (
    "Each dot is an episode. The band is the certified interval of the expected cost. The diamond is the "
    "mean of the new costs, with the interval for their expected cost."
)

NEW = (
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
    values = certificate.check_costs(costs)
    finding = detector.decide(values) if finding is None else finding
    top = title or _TITLES[finding.verdict]
    said = [wording.comparison(certificate, finding), explanation(certificate, finding)]
    sections = [
        page.heading(top, level=1),
        page.paragraph(
            f"Comparison of {_episodes(finding.n)} with certificate "
            f"{certificate.fingerprint[:12]}{page.facts(facts)}",
            "lead",
        ),
        page.verdict(finding.verdict.value, wording.answer(finding), said),
        page.heading("What was promised"),
        page.bullets([*wording.promise(certificate), *wording.basis(certificate)]),
        *_seen(certificate, finding, values, warnings),
        page.heading("Verdict and evidence"),
        page.rows(wording.evidence(certificate, finding)),
        *_power(certificate, finding.n, Noticed.by(detector, finding.n)),
        *_assumptions(detector, finding),
        *_looks(looks),
        *_provenance(certificate, finding, values, source),
        *signature(wording.assumptions(certificate), NEW),
    ]
    return page.page(title or f"{top}: {wording.count(finding.n, 'episode')}", sections)


def _looks(looks: Sequence[str]) -> Iterator[Html]:
    if looks:
        yield page.heading("Looks at new costs so far")
        yield page.bullets(looks)


def explanation(certificate: Certificate, finding: Finding) -> str:
    """Say in a few sentences what a verdict rests on and what it means.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> print(explanation(certificate, bw.HypothesisTest(certificate).decide([0.15] * 10)))
    The policy was certified for an expected cost of at most 0.2000; the mean cost of 10 new episodes is ...
    """
    seen = (
        f"The policy was certified for an expected cost of at most {wording.ceiling(certificate.upper)}; "
        f"the mean cost of {_episodes(finding.n)} is {finding.mean_cost:.4f}. "
    )
    verdicts = {Verdict.ADVERSE: _worse, Verdict.BENIGN: _no_worse, Verdict.WITHIN: _compatible}
    return ("" if certificate.binary else seen) + verdicts[finding.verdict](certificate, finding)


def _worse(certificate: Certificate, finding: Finding) -> str:
    what, least = "expected cost", wording.floor(finding.shift_lower)
    if certificate.binary:
        what, least = "failure rate", wording.points(finding.shift_lower)
    strange = f"If the {what} were still within that limit, evidence as strong as this would occur"
    if finding.tail == "joint":
        strange = "If nothing had gotten worse, lab and new trials that differ this much would occur"
    said = f"{strange} with probability {wording.at_most(finding.p_adverse)}."
    if finding.shift_lower > 0:
        wrong = f"this limit is wrong with probability at most {finding.false_positive_rate:.6g}"
        said += f" The {what} has risen by at least {least}; {wrong}."
    return said


def _no_worse(certificate: Certificate, finding: Finding) -> str:
    what, few, limit = "expected cost", "costs as low as these", wording.floor(certificate.lower)
    if certificate.binary:
        what, few, limit = "failure rate", "so few failures", wording.percent(certificate.lower, "down")
    strange = f"If the {what} had risen, and so were above the certified lower limit of {limit}, {few}"
    if finding.tail == "joint":
        strange = f"If the {what} had risen, lab and new trials that differ this much"
    return f"{strange} would occur with probability {wording.at_most(finding.p_benign)}."


def _compatible(_certificate: Certificate, _finding: Finding) -> str:
    return (
        "This is compatible with the certificate. It does not show that nothing has changed: "
        "a shift that is too small for so many episodes goes unnoticed (see below)."
    )


def _seen(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], warnings: Sequence[str]
) -> Iterator[Html]:
    low, high = new_interval(certificate, finding, costs)
    if certificate.binary:
        seen = f"{int(costs.sum())} of {_episodes(finding.n)} failed (cost 1)."
        drawing = drawings.draw_outcomes(certificate, costs, (low, high))
        interval = f"{wording.percent(low, 'down')} to {wording.percent(high, 'up')}"
        caption = f"{STRIP} The line through the diamond is the interval for the new rate, {interval}."
    else:
        seen = (
            f"{_episodes(finding.n).capitalize()}; costs from {costs.min():.4g} to {costs.max():.4g}, "
            f"mean {finding.mean_cost:.4f}, median {np.median(costs):.4g}."
        )
        drawing = drawings.draw_costs(certificate, costs, (low, high))
        caption = f"{DOTS[:-1]}, {wording.floor(low)} to {wording.ceiling(high)}."
    yield page.heading("What was seen")
    yield page.paragraph(seen)
    yield from page.warnings(warnings)
    yield page.figure(drawing, caption)


def _power(certificate: Certificate, n: int, noticed: Noticed | None) -> Iterator[Html]:
    yield page.heading("What would have been noticed")
    if noticed is None:
        yield page.paragraph(
            f"Nothing: with {_episodes(n)}, even if every one had failed, the verdict could not "
            "have been ADVERSE. Run more episodes; `boundwatch plan` says how many."
        )
        return
    what, extreme = "expected cost", " (computed for costs of 0 and 1, which vary the most)"
    certified, to = f"a mean of {certificate.mean_cost or 0:.4f}", wording.ceiling(noticed.rate)
    shift = wording.ceiling(noticed.beyond)
    if certificate.binary:
        what, extreme, to = "failure rate", "", wording.percent(noticed.rate, "up")
        certified = f"{certificate.failures} of {certificate.n} trials failed"
        shift = wording.points(noticed.beyond, "up")
    since = f"above what was certified ({certified})" if noticed.joint else "beyond the certified limit"
    rise = f"a rise of {'failures' if certificate.binary else 'the expected cost'} to {to} or more"
    yield page.paragraph(
        f"With {_episodes(n)}, {rise} would have been called ADVERSE with a probability of at least "
        f"90 %{extreme}: a shift of {shift} {since}. Smaller shifts are noticed less often."
    )
    costs = np.linspace(0, 1, 101)
    yield page.figure(
        drawings.draw_power(certificate, costs, noticed.chances(costs)),
        f"Chance of the verdict ADVERSE, by the true {what} of {_episodes(n)}. "
        "The band is the certified interval, the horizontal line 90 %.",
    )


def _assumptions(detector: FixedSampleDetector, finding: Finding) -> Iterator[Html]:
    yield page.heading("What is guaranteed, and what it is not")
    yield page.paragraph(
        "The two rates above are guaranteed in advance, over the draw of the certificate's data and of the "
        "new episodes, in every world and for every policy, if the assumptions that are listed for "
        "confirmation below are true. How to read them:"
    )
    yield page.bullets(wording.caveats(detector, finding))
    yield page.paragraph("Neither the certificate nor the verdict is:")
    yield page.bullets(wording.misreadings())


def _provenance(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], source: str | None
) -> Iterator[Html]:
    made = certificate.provenance
    entries = {
        "certificate": certificate.fingerprint,
        "certified on": made.created,
        "certified with": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
        "certified costs, SHA-256": made.costs_sha256,
        "policy, SHA-256": made.policy_sha256,
        "seed": made.seed,
        "new costs": source,
        "their values, SHA-256": costs_digest(costs),
        "detector": f"{finding.detector}, {finding.tail} tail",
        "report written": written(),
    }
    yield page.heading("Provenance")
    yield page.rows([(label, str(entry)) for label, entry in entries.items() if entry is not None], code=True)


def written() -> str:
    """Say when a report is written, and by which version."""
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
    blanks = "".join(f"<div>{label}</div>" for label in ("Name and role", "Date", "Signature"))
    yield Html(f'<div class="sign">{blanks}</div>')


def _episodes(n: int) -> str:
    return wording.count(n, "new episode")
