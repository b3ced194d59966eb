"""A report on new episodes: one HTML page in words that somebody answerable for safety can sign."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, betaincinv

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.reporting import drawings, page, wording
from boundwatch.reporting.page import Html

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


def render_report(
    detector: FixedSampleDetector,
    costs: ArrayLike,
    *,
    source: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, str | None] | None = None,
    looks: Sequence[str] = (),
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
    finding = detector.decide(values)
    sections = [
        *_summary(certificate, finding, title, facts or {}),
        *_promise(certificate),
        *_seen(certificate, finding, values, warnings),
        *_verdict(certificate, finding),
        *_power(detector, finding.n),
        *_assumptions(detector, finding),
        *_looks(looks),
        *_provenance(certificate, finding, values, source),
        *signature(wording.assumptions(certificate)),
    ]
    return page.page(title or f"{_TITLES[finding.verdict]}: {wording.count(finding.n, 'episode')}", sections)


def _summary(
    certificate: Certificate, finding: Finding, title: str | None, facts: Mapping[str, str | None]
) -> Iterator[Html]:
    yield page.heading(title or _TITLES[finding.verdict], level=1)
    said = "".join(f"; {name} {value}" for name, value in facts.items() if value)
    yield page.paragraph(
        f"Comparison of {_episodes(finding.n)} with certificate {certificate.fingerprint[:12]}{said}",
        "lead",
    )
    statement = page.Html(f"<p><strong>{escape(wording.answer(finding))}</strong></p>")
    yield page.box(
        f"verdict {finding.verdict.value}",
        [
            statement,
            page.paragraph(wording.comparison(certificate, finding)),
            page.paragraph(explanation(certificate, finding)),
        ],
    )


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
        ""
        if certificate.binary
        else (
            f"The policy was certified for an expected cost of at most {wording.ceiling(certificate.upper)}; "
            f"the mean cost of {_episodes(finding.n)} is {finding.mean_cost:.4f}. "
        )
    )
    what = _quantity(certificate)
    if finding.verdict is Verdict.ADVERSE:
        least = (
            wording.points(finding.shift_lower) if certificate.binary else wording.floor(finding.shift_lower)
        )
        rise = (
            f" The {what} has risen by at least {least}; this limit is "
            f"wrong with probability at most {finding.false_positive_rate:.6g}."
            if finding.shift_lower > 0
            else ""
        )
        if finding.tail == "joint":
            return (
                seen + "If nothing had gotten worse, lab and new trials that differ this much would occur "
                f"with probability {wording.at_most(finding.p_adverse)}.{rise}"
            )
        return (
            seen + f"If the {what} were still within that limit, evidence as strong as this would occur "
            f"with probability {wording.at_most(finding.p_adverse)}.{rise}"
        )
    if finding.verdict is Verdict.BENIGN:
        if finding.tail == "joint":
            return (
                seen + f"If the {what} had risen, lab and new trials that differ this much would occur "
                f"with probability {wording.at_most(finding.p_benign)}."
            )
        return (
            seen + f"If the {what} had risen, and so were above the certified lower limit of "
            f"{_limit(certificate)}, {'so few failures' if certificate.binary else 'costs as low as these'} "
            "would occur with probability "
            f"{wording.at_most(finding.p_benign)}."
        )
    return seen + (
        "This is compatible with the certificate. It does not show that nothing has changed: a shift that is "
        "too small for so many episodes goes unnoticed (see below)."
    )


def _promise(certificate: Certificate) -> Iterator[Html]:
    yield page.heading("What was promised")
    yield page.bullets([*wording.promise(certificate), *wording.basis(certificate)])


def _seen(
    certificate: Certificate, finding: Finding, costs: NDArray[np.float64], warnings: Sequence[str]
) -> Iterator[Html]:
    yield page.heading("What was seen")
    low, high = wording.new_interval(certificate, finding, costs)
    if certificate.binary:
        failures = int(costs.sum())
        yield page.paragraph(f"{failures} of {_episodes(finding.n)} failed (cost 1).")
    else:
        yield page.paragraph(
            f"{_episodes(finding.n).capitalize()}; costs from {costs.min():.4g} to {costs.max():.4g}, "
            f"mean {finding.mean_cost:.4f}, median {np.median(costs):.4g}."
        )
    if warnings:
        yield page.box(
            "verdict adverse", [page.paragraph("What may make the guarantee wrong:"), page.bullets(warnings)]
        )
    if certificate.binary:
        yield page.figure(
            drawings.draw_outcomes(certificate, costs, (low, high)),
            f"{STRIP} The line through the diamond is the interval for the new rate, "
            f"{wording.percent(low, 'down')} to {wording.percent(high, 'up')}.",
        )
        return
    yield page.figure(
        drawings.draw_costs(certificate, costs, (low, high)),
        f"{DOTS[:-1]}, {wording.floor(low)} to {wording.ceiling(high)}.",
    )


def _verdict(certificate: Certificate, finding: Finding) -> Iterator[Html]:
    yield page.heading("Verdict and evidence")
    yield page.rows(wording.evidence(certificate, finding))


def _power(detector: FixedSampleDetector, n: int) -> Iterator[Html]:
    certificate = detector.certificate
    needed = fewest_failures(detector, n)
    yield page.heading("What would have been noticed")
    if needed is None:
        yield page.paragraph(
            f"Nothing: with {_episodes(n)}, even if every one had failed, the verdict could not "
            "have been ADVERSE. Run more episodes; `boundwatch plan` says how many."
        )
        return
    noticed = float(betaincinv(needed, n - needed + 1, 0.9))  # P[Binomial(n, noticed) >= needed] = 0.9
    joint = detector.tail_name == "joint"
    beyond, extreme = noticed - ((certificate.mean_cost or 0.0) if joint else certificate.upper), ""
    since = "beyond the certified limit"
    if joint:
        since = f"above what was certified{_certified_mean(certificate)}"
    if certificate.binary:
        to, shift = f"of failures to {wording.percent(noticed, 'up')}", wording.points(beyond, "up")
    else:
        to, shift = f"of the expected cost to {wording.ceiling(noticed)}", wording.ceiling(beyond)
        extreme = " (computed for costs of 0 and 1, which vary the most)"
    yield page.paragraph(
        f"With {_episodes(n)}, a rise {to} or more would have been called ADVERSE with a probability of at "
        f"least 90 %{extreme}: a shift of {shift} {since}. Smaller shifts are noticed less often."
    )
    costs = np.linspace(0, 1, 101)
    yield page.figure(
        drawings.draw_power(certificate, costs, bdtrc(needed - 1, n, costs)),
        f"Chance of the verdict ADVERSE, by the true {_quantity(certificate)} of {_episodes(n)}. The band is "
        "the certified interval, the horizontal line 90 %.",
    )


def fewest_failures(detector: FixedSampleDetector, n: int) -> int | None:
    """Return the fewest costs of 1 among n, the others being 0, that are ADVERSE; None if no number is.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> test = bw.HypothesisTest(certificate)
    >>> fewest_failures(test, 12), fewest_failures(test, 1)
    (6, None)
    """

    def is_adverse(failures: int) -> bool:
        # As one of many: unlike a single finding, these leave out the limits until somebody asks for them.
        return bool(
            detector.decide_many((np.arange(n) < failures).astype(float)[None]).verdict[0] == Verdict.ADVERSE
        )

    # More failures are never less evidence, so the answer can be found by halving.
    return bisect_left(range(n + 1), True, key=is_adverse) if is_adverse(n) else None


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
    certificate: Certificate,
    finding: Finding,
    costs: NDArray[np.float64],
    source: str | None,
) -> Iterator[Html]:
    made = certificate.provenance
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    entries = {
        "certificate": certificate.fingerprint,
        "certified on": made.created,
        "certified with": versions,
        "certified costs, SHA-256": made.costs_sha256,
        "policy, SHA-256": made.policy_sha256,
        "seed": made.seed,
        "new costs": source,
        "their values, SHA-256": costs_digest(costs),
        "detector": f"{finding.detector}, {finding.tail} tail",
        "report written": f"{datetime.now(UTC).isoformat(timespec='seconds')}, with boundwatch {__version__}",
    }
    yield page.heading("Provenance")
    yield page.rows([(label, str(entry)) for label, entry in entries.items() if entry is not None], code=True)


def signature(assumptions: Sequence[str]) -> Iterator[Html]:
    """Yield what must be confirmed, of the certificate and of the new episodes, and where to sign.

    Examples
    --------
    >>> "Signature" in "".join(signature(["The policy is unchanged."]))
    True
    """
    yield page.heading("To be confirmed by the person who signs")
    yield page.paragraph(
        "No program can check these; the guarantee holds if all are true. Of the certificate:"
    )
    yield page.bullets(assumptions, "confirm")
    yield page.paragraph("Of the new episodes:")
    yield page.bullets(
        [
            "They are independent draws from one distribution of environments.",
            "Their number, the detector and its levels were fixed before any of their costs was seen.",
            "No episode was left out.",
        ],
        "confirm",
    )
    blanks = "".join(f"<div>{label}</div>" for label in ("Name and role", "Date", "Signature"))
    yield Html(f'<div class="sign">{blanks}</div>')


def _certified_mean(certificate: Certificate) -> str:
    mean = certificate.mean_cost or 0.0
    if certificate.binary:
        return f" ({certificate.failures} of {certificate.n} trials failed)"
    return f" (a mean of {mean:.4f})"


def _quantity(certificate: Certificate) -> str:
    return "failure rate" if certificate.binary else "expected cost"


def _limit(certificate: Certificate) -> str:
    return (
        wording.percent(certificate.lower, "down") if certificate.binary else wording.floor(certificate.lower)
    )


def _episodes(n: int) -> str:
    return wording.count(n, "new episode")
