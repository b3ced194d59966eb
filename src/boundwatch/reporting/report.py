"""Reports on new episodes: one HTML page in words that somebody answerable for safety can sign."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import costs_digest
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest, TaskFinding
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.strata import by_task
from boundwatch.detectors.verdicts import Finding
from boundwatch.reporting import families, page, svg, wording
from boundwatch.reporting.page import Html

_NEW_COSTS = (
    "Above: the new costs in order. Below: the band is the certified expected cost, the diamond the new mean"
)
_NEW_FAILURES = (
    "Above: one cell per trial, in order; a filled cell is a failure, an empty one a success. "
    "Below: the band is the certified rate of failures, the diamond the new one"
)
_GUARANTEED = (
    "The rates of false alarms and of false comfort are guaranteed in advance, over the draw of the "
    "certificate's data and of the new episodes, in every world and for every policy, if the assumptions "
    "that are listed for confirmation below are true. How to read them:"
)
_POWER = 0.9  # the chance of ADVERSE from which on a shift counts as noticed
_NEW = (
    "They are independent draws from one distribution of environments.",
    "Their number, the detector and its levels were fixed before any of their costs was seen.",
    "No episode was left out.",
)


def render_report(
    test: FixedSampleDetector | FamilyTest,
    costs: ArrayLike | Mapping[str, ArrayLike],
    *,
    source: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, str | None] | None = None,
    finding: Finding | FamilyFinding | None = None,
) -> str:
    """Judge new costs and return the report as one self-contained HTML page.

    What was promised, what was seen, the verdict, what is guaranteed and what must be true for it, what
    would have been noticed, and the hashes that tie the page to the certificate and the costs.

    Parameters
    ----------
    test
        `HypothesisTest` or `ConfidenceInterval` with its certificate, or `FamilyTest`.
    costs
        The costs of n new episodes, by task if there are several; n must have been fixed in advance.
    source
        Where the costs were read from, for the provenance.
    warnings
        What the reader of the file found fault with, such as `boundwatch.episodes.Episodes.warnings`.
    title, facts
        A title of one's own, and what else the page should say on top, such as the robot and the site.
    finding
        What the test found, if it was asked already.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> html = render_report(bw.HypothesisTest(certificate), [0.8, 0.9, 0.7, 0.9], source="kitchen.csv")
    >>> "ADVERSE" in html, "kitchen.csv" in html, "<script" in html
    (True, True, False)
    """
    judge: Any = test
    finding = judge.decide(costs) if finding is None else finding
    said, found = families.in_words(test, finding), dict(finding.tasks) or {"": finding}
    family = _certificates(test, found)
    given = costs if isinstance(costs, Mapping) else {"": costs}
    new = {task: np.asarray(given[task], dtype=np.float64) for task in found}
    judged = wording.count(sum(each.n for each in found.values()), "new episode")
    whole = test.family if isinstance(test, FamilyTest) else test.certificate
    if isinstance(whole, Certificate):
        promised = [*wording.promise(whole), *wording.basis(whole)]
        made: Mapping[str, Certificate] = {"": whole}
    else:
        judged = wording.count(len(whole), families.member(whole))
        promised, made = families.promise(whole), family
    known = [f"{name} {value}" for name, value in (facts or {}).items() if value]
    assumed = dict.fromkeys(line for each in made.values() for line in wording.assumptions(each))
    sections = [
        page.heading(title or f"Report on {judged}", level=1),
        page.paragraph("; ".join(known), "lead") if known else Html(""),
        page.verdict(finding.verdict.value, said.headline, said.lines),
        page.warnings(warnings),
        page.heading("What was promised"),
        page.bullets(promised),
        page.heading("What was seen"),
        *(_seen(task, family[task], each, new[task]) for task, each in found.items()),
        page.heading("Verdict and evidence"),
        *([] if said.table is None else [page.table(*families.name_first(said.table))]),
        page.rows(said.rows),
        *(() if isinstance(test, FamilyTest) or finding.tasks else _noticed(test, found[""])),
        page.heading("What is guaranteed, and what it is not"),
        page.paragraph(_GUARANTEED),
        page.bullets(said.notes),
        page.paragraph("Neither the certificate nor the verdict is:"),
        page.bullets(wording.MISREADINGS),
        page.heading("Provenance"),
        page.rows(_provenance(test, made, new, source), code=True),
        *signature(list(assumed), _NEW),
    ]
    return page.page(title or said.headline, sections)


def _certificates(
    test: FixedSampleDetector | FamilyTest, found: Mapping[str, Finding]
) -> Mapping[str, Certificate]:
    """Return the certificate of each task; that of all costs under an empty name."""
    if isinstance(test, FamilyTest):
        return test.family.only(found)
    return {"": test.certificate} if "" in found else by_task(test.certificate)


def _seen(task: str, certificate: Certificate, found: Finding, costs: NDArray[np.float64]) -> Html:
    """Return the figure of the new costs of a task, or of all of them."""
    low, high = new_interval(certificate, found, costs)
    interval = f"{wording.floor(low)} to {wording.ceiling(high)}"
    caption = (
        f"{_NEW_COSTS}; costs from {costs.min():.4g} to {costs.max():.4g}, median {np.median(costs):.4g}"
    )
    if certificate.binary:
        caption, interval = _NEW_FAILURES, wording.percents(low, high)
    kind = "the 90 %" if task else "the"
    figure = page.figure(
        svg.draw_check(certificate, costs, (low, high)),
        f"{caption}. The line through the diamond is {kind} confidence interval of the new one, {interval}.",
    )
    said = wording.says(found.verdict, binary=certificate.binary, joint=found.tail == "joint")
    return Html(page.heading(f"{task}: {said}", level=3) + figure) if task else figure


def _provenance(
    test: FixedSampleDetector | FamilyTest,
    certificates: Mapping[str, Certificate],
    new: Mapping[str, NDArray[np.float64]],
    source: str | None,
) -> Iterator[tuple[str, object]]:
    for task, certificate in certificates.items():
        of, made = f"{task}: " if task else "", certificate.provenance
        yield f"{of}certificate", certificate.fingerprint
        yield f"{of}certified", f"{made.created}, with {', '.join(map(' '.join, made.versions.items()))}"
        yield f"{of}certified costs, SHA-256", made.costs_sha256
        yield f"{of}policy, SHA-256", made.policy_sha256
        yield f"{of}seed", made.seed
    yield "new costs", source
    for task, costs in new.items():
        yield f"{task}: new costs, SHA-256" if task else "their values, SHA-256", costs_digest(costs)
    yield "detector", str(test)
    written = datetime.now(UTC).isoformat(timespec="seconds")
    yield "report written", f"{written}, with boundwatch {__version__}"


def _noticed(detector: FixedSampleDetector, finding: Finding) -> Iterator[Html]:
    certificate, episodes = detector.certificate, wording.count(finding.n, "new episode")
    yield page.heading("What would have been noticed")
    if (rate := noticed_from(detector, finding.n)) is None:
        yield page.paragraph(
            f"Nothing: with {episodes}, even if every one had failed, the verdict could not "
            "have been ADVERSE. Run more episodes; `boundwatch plan` says how many."
        )
        return
    joint, number, certified = finding.tail == "joint", wording.ceiling, certificate.upper
    what, extreme = "the expected cost", " (computed for costs of 0 and 1, which vary the most)"
    if joint:
        certified = certificate.mean_cost or 0.0
    if certificate.binary:
        what, extreme, number = "failures", "", partial(wording.percent, way="up")
    shift = wording.points(rate - certified, "up") if certificate.binary else number(rate - certified)
    since = f"above the mean of the lab ({number(certified)})" if joint else "beyond the certified limit"
    yield page.paragraph(
        f"With {episodes}, a rise of {what} to {number(rate)} or more would have been called ADVERSE with a "
        f"probability of at least 90 %{extreme}: a shift of {shift} {since}. Smaller shifts are noticed less "
        "often."
    )


def noticed_from(detector: FixedSampleDetector, n: int) -> float | None:
    """Return the expected cost from which on n costs of 0 and 1 are called ADVERSE with 90 % probability.

    None if even failures throughout are not ADVERSE.
    """
    fewest = detector.fewest_adverse(n)
    # P[Binomial(n, rate) >= fewest] = _POWER
    return None if fewest is None else float(betaincinv(fewest, n - fewest + 1, _POWER))


def signature(certified: Sequence[str], new: Sequence[str] = ()) -> Iterator[Html]:
    """Yield what must be confirmed, of the certificate and of the new episodes, and where to sign."""
    yield page.heading("To be confirmed by the person who signs")
    if new:
        no_program = "No program can check these; the guarantee holds if all are true. Of the certificate:"
        yield page.paragraph(no_program)
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
