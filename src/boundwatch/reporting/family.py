"""Several tasks in words, as a table and as a report: the same for the command line and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.provenance import costs_digest
from boundwatch.detectors.base import Finding, Verdict
from boundwatch.detectors.family import FamilyFinding, FamilyTest, TaskFinding
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.reporting import drawings, page, wording
from boundwatch.reporting.page import Html
from boundwatch.reporting.report import DOTS, NEW, STRIP, signature, written
from boundwatch.reporting.sensitivity import new_interval

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The heads of a table, and its rows; the last column is the task."""
_MEANING = {
    "holm": "adverse and benign are Holm's adjusted p-values: a verdict is declared at the level or below.",
    "e-bh": "adverse and benign are the smallest false discovery rates at which e-BH lists the task.",
}
_LOOKS = {
    "holm": "They hold for one look at numbers of episodes fixed in advance, independent of each other.",
    "e-bh": "They hold for the list whenever you stop, for episodes independent of all earlier "
    "ones of all tasks.",
}


def in_failures(family: CertificateFamily) -> bool:
    """Return whether all costs are 0 or 1, so that the words are about failures."""
    return all(certificate.binary for certificate in family.values())


def member(family: CertificateFamily) -> str:
    """Return what one of a family is called: a metric of the same episodes, else a task."""
    return "metric" if family.by == "metric" else "task"


def promise(family: CertificateFamily) -> list[str]:
    """Say what certificates promise together."""
    one = member(family)
    column = "" if one == family.by == "metric" else f" (column {family.by})"
    what = "the expected cost of an episode is within its limits (0 is best, 1 is worst)."
    if in_failures(family):
        what = "the share of trials that fail is within its limits."
    return [
        f"For each of {wording.count(len(family), one)}{column}, {what}",
        f"The probability that any upper limit fails is at most {family.delta_upper:g}, any lower limit "
        f"at most {family.delta_lower:g}, any limit at all at most {family.delta:g}.",
    ]


def vacuous(family: CertificateFamily) -> list[str]:
    """Say which tasks cannot be called ADVERSE whatever their costs, if any."""
    tasks = ", ".join(task for task, certificate in family.items() if certificate.upper >= 1)
    return [f"No cost is above 1, so {tasks} cannot be called ADVERSE; more episodes help."] if tasks else []


def not_judged(family: CertificateFamily, finding: FamilyFinding) -> list[str]:
    """Say which tasks had no new episodes, if any."""
    missing, certified = finding.not_judged, wording.count(len(family), f"certified {member(family)}")
    told = f"no new episodes of {', '.join(missing)}, so that {len(missing)} of {certified} are not judged"
    return [told] if missing else []


@dataclass(frozen=True)
class Words:
    """A finding in words, on one certificate or on several tasks."""

    headline: str
    lines: tuple[str, ...]
    """What was certified and what was seen, of one certificate."""
    table: Table | None
    """The verdicts on several tasks."""
    rows: list[tuple[str, str]]
    notes: list[str]


def in_words(test: FixedSampleDetector | FamilyTest, finding: Finding | FamilyFinding) -> Words:
    """Say a finding: the verdict, what it rests on, and how that is to be read.

    Examples
    --------
    >>> family = CertificateFamily.from_held_out({"pick": [0, 0, 0, 1] * 50}, binary=True)
    >>> test = FamilyTest(family)
    >>> in_words(test, test.decide({"pick": [1] * 8 + [0] * 4})).headline
    'ADVERSE: evidence of more failures than certified, for 1 of 1 task'
    """
    if isinstance(test, FamilyTest) and isinstance(finding, FamilyFinding):
        family = test.family
        headline = wording.headline(finding, member(family))
        return Words(headline, (), verdicts(family, finding), rates(family, finding), notes(test, finding))
    if isinstance(test, FamilyTest) or isinstance(finding, FamilyFinding):
        raise TypeError("a finding is said with the test that found it")
    certificate = test.certificate
    compared = wording.comparison(certificate, finding)
    rows, caveats = wording.evidence(certificate, finding), wording.caveats(test, finding)
    return Words(wording.answer(finding), (compared,), None, rows, caveats)


def promises(family: CertificateFamily) -> Table:
    """Return the table of limits.

    Examples
    --------
    >>> promises(CertificateFamily.from_held_out({"pick": [0, 0, 0, 1] * 50}, binary=True))
    (('fails in', 'failed', 'task'), [('17.5 to 33.7 %', '50 of 200', 'pick')])
    """
    if in_failures(family):
        return ("fails in", "failed", family.by), [
            (wording.rates(each), "-" if each.n is None else f"{each.failures} of {each.n}", task)
            for task, each in family.items()
        ]
    return ("lower", "upper", "episodes", "mean cost", family.by), [
        (
            wording.floor(each.lower),
            wording.ceiling(each.upper),
            "-" if each.n is None else str(each.n),
            "-" if each.mean_cost is None else f"{each.mean_cost:.4f}",
            task,
        )
        for task, each in family.items()
    ]


def verdicts(family: CertificateFamily, finding: FamilyFinding) -> Table:
    """Return the table of verdicts.

    Examples
    --------
    >>> family = CertificateFamily.from_held_out({"pick": [0, 0, 0, 1] * 50}, binary=True)
    >>> heads, rows = verdicts(family, FamilyTest(family).decide({"pick": [1] * 8 + [0] * 4}))
    >>> dict(zip(heads, rows[0]))["failed"]
    '8 of 12'
    """
    failures = in_failures(family)
    seen = ("failed",) if failures else ("episodes", "mean cost")
    margins = {
        f"worse by at most {wording.points(each.margin, 'nearest') if failures else f'{each.margin:g}'}"
        for each in finding.tasks.values()
        if each.margin is not None
    }
    heads = ("verdict", *margins, *seen, "certified", "shift", "adverse", "benign", family.by)
    rows = [(*_verdict(family[task], found, failures), task) for task, found in finding.tasks.items()]
    return heads, rows


def _verdict(certificate: Certificate, found: TaskFinding, failures: bool) -> tuple[str, ...]:
    seen: tuple[str, ...] = (str(found.n), f"{found.mean_cost:.4f}")
    certified = f"{wording.floor(certificate.lower)} to {wording.ceiling(certificate.upper)}"
    shift = f"{wording.floor(found.shift_lower, '+')} to {wording.ceiling(found.shift_upper, '+')}"
    if failures:
        seen, certified = (wording.failed(found).removesuffix(" failed"),), wording.rates(certificate)
        shift = wording.signed_points(found.shift_lower, found.shift_upper)
    levels = [wording.upward(level) for level in (found.adjusted_adverse, found.adjusted_benign)]
    shown = () if found.no_worse is None else ("shown" if found.no_worse else "not shown",)
    return (found.verdict.name, *shown, *seen, certified, shift, *levels)


def rates(family: CertificateFamily, finding: FamilyFinding) -> list[tuple[str, str]]:
    """Say which tasks were not judged, and what is guaranteed for all of them together."""
    one = member(family)
    if finding.control == "holm":
        alarms = f"the probability that any {one} that is not worse is called ADVERSE is at most"
        comfort = f"the probability that any {one} that is worse is called BENIGN is at most"
    else:
        share = "make up an expected share of at most"
        alarms = f"of the {one}s called ADVERSE, those that are not worse {share}"
        comfort = f"of the {one}s called BENIGN, those that are worse {share}"
    missing = f"{', '.join(finding.not_judged)} (certified, but no new episodes)"
    return [
        *([("not judged", missing)] if finding.not_judged else []),
        ("false alarms", f"{alarms} {finding.false_positive_rate:.6g}, delta included"),
        ("false comfort", f"{comfort} {finding.false_negative_rate:.6g}, delta included"),
    ]


def notes(test: FamilyTest, finding: FamilyFinding) -> list[str]:
    """Say how the table is to be read."""
    # With other tasks, less is ADVERSE than if there were none.
    could = test.could_alarm({task: found.n for task, found in finding.tasks.items()})
    few, one = [task for task, alarm in could.items() if not alarm], member(test.family)
    return [
        *([f"Too few episodes of {', '.join(few)}: no outcome could have been ADVERSE."] if few else []),
        _MEANING[finding.control],
        f"The limits on the shift hold for all {one}s at once, for which they are wider than a single {one} "
        "needs: a verdict may stand beside limits that include zero.",
        "The rates are those of the procedure, not the probability that a verdict is wrong.",
        _LOOKS[finding.control],
    ]


def render_family_report(
    test: FamilyTest,
    costs: Mapping[str, ArrayLike],
    *,
    source: str | None = None,
    warnings: Sequence[str] = (),
    title: str | None = None,
    facts: Mapping[str, str | None] | None = None,
    finding: FamilyFinding | None = None,
) -> str:
    """Judge the new costs of several tasks and return the report as one self-contained HTML page.

    Parameters
    ----------
    test
        With its certificates and levels.
    costs
        The new costs of each task; how many there are must have been fixed in advance.
    source, warnings, title, facts, finding
        As in `boundwatch.reporting.report.render_report`.

    Examples
    --------
    >>> family = CertificateFamily.from_held_out({"pick": [0, 0, 0, 1] * 50, "place": [0] * 200}, binary=True)
    >>> html = render_family_report(FamilyTest(family), {"pick": [1] * 8 + [0] * 4, "place": [0] * 12})
    >>> html.count("<svg"), "8 of 12" in html
    (2, True)
    """
    family, one = test.family, member(test.family)
    finding = test.decide(costs) if finding is None else finding
    answer = wording.headline(finding, one)
    column = "" if one == family.by else f" (column {family.by})"
    judged = f"{wording.count(len(finding.tasks), one)}{column}"
    adverse = [task for task, found in finding.tasks.items() if found.verdict is Verdict.ADVERSE]
    heads, lines = verdicts(family, finding)
    assumed = [line for task in finding.tasks for line in wording.assumptions(family[task])]
    sections = [
        page.heading(title or f"Report on {wording.count(len(family), one)}", level=1),
        page.paragraph(f"Comparison of {judged} with their certificates{page.facts(facts)}", "lead"),
        page.verdict(
            finding.verdict.value, answer, [f"Called ADVERSE: {', '.join(adverse)}."] if adverse else []
        ),
        *page.warnings(warnings),
        page.heading(f"The verdict on each {one}"),
        page.table((heads[-1], *heads[:-1]), [(line[-1], *line[:-1]) for line in lines]),
        page.rows(rates(family, finding)),
        page.bullets(notes(test, finding)),
        *_tasks(family, finding, costs),
        page.heading("Provenance"),
        page.rows(_provenance(test, costs, source), code=True),
        *signature(list(dict.fromkeys(assumed)), NEW),
    ]
    return page.page(title or answer, sections)


def _tasks(
    family: CertificateFamily, finding: FamilyFinding, costs: Mapping[str, ArrayLike]
) -> Iterator[Html]:
    yield page.heading("What was seen")
    yield page.paragraph(STRIP if in_failures(family) else DOTS)
    for task, found in finding.tasks.items():
        certificate = family[task]
        values = certificate.check_costs(costs[task])
        if certificate.binary:
            drawing = drawings.draw_outcomes(certificate, values)
        else:
            drawing = drawings.draw_costs(certificate, values, new_interval(certificate, found, values))
        yield page.heading(f"{task}: {found.verdict.name}", level=3)
        yield page.figure(drawing, wording.promise(certificate)[0])


def _provenance(
    test: FamilyTest, costs: Mapping[str, ArrayLike], source: str | None
) -> Iterator[tuple[str, str]]:
    if source is not None:
        yield "new costs", source
    yield from ((f"{task}: certificate", test.family[task].fingerprint) for task in costs)
    for task, each in costs.items():
        yield f"{task}: new costs, SHA-256", costs_digest(np.asarray(each, float))
    yield "detector", str(test)
    yield "report written", written()
