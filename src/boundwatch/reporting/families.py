"""Several tasks in words and as a table: the same for the command line and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boundwatch.bounds.multiple import OVERALL_SHARE, with_overall
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest, TaskFinding
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.detectors.strata import by_task
from boundwatch.detectors.verdicts import Finding, Verdict
from boundwatch.reporting import wording

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""The heads of a table, and its rows; the last column is the task."""


def name_first(table: Table) -> Table:
    """Return the table with its last column as the first one."""
    heads, rows = table
    return (heads[-1], *heads[:-1]), [(row[-1], *row[:-1]) for row in rows]


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
    """Say a finding: the verdict, what it rests on, and how that is to be read."""
    if isinstance(test, FamilyTest) and isinstance(finding, FamilyFinding):
        said, table = wording.headline(finding, member(test.family)), verdicts(test.family, finding.tasks)
        return Words(said, (), table, rates(test.family, finding), notes(test, finding))
    if isinstance(test, FamilyTest) or isinstance(finding, FamilyFinding):
        raise TypeError("a finding is said with the test that found it")
    if finding.tasks:
        return _of_strata(test, finding)
    compared = wording.comparison(test.certificate, finding)
    rows, caveats = wording.evidence(test.certificate, finding), wording.caveats(test, finding)
    return Words(wording.answer(finding), (compared,), None, rows, caveats)


def _of_strata(test: FixedSampleDetector, finding: Finding) -> Words:
    """Say a finding on the mean over tasks and on each of them."""
    certificate, family = test.certificate, by_task(test.certificate)
    lines = [wording.comparison(certificate, finding)]
    if called := finding.called(Verdict.ADVERSE):
        lines.append(f"By itself ADVERSE: {', '.join(called)}.")
    table, caveats = strata(certificate, finding), _strata_notes(family, finding)
    return Words(wording.answer(finding), tuple(lines), table, strata_rates(finding), caveats)


def strata(certificate: Certificate, finding: Finding) -> Table:
    """Return the table of verdicts on all tasks and on each."""
    tasks = {name: each for name, each in finding.tasks.items() if isinstance(each, TaskFinding)}
    heads, rows = verdicts(by_task(certificate), tasks)
    adverse = with_overall(finding.p_adverse, [each.p_adverse for each in tasks.values()])[0]
    adjusted = adverse, min(finding.p_benign / OVERALL_SHARE, 1.0)
    first = _verdict(certificate, finding, adjusted, certificate.binary)
    return heads, [(*first, "all together"), *rows]


def strata_rates(finding: Finding) -> list[tuple[str, str]]:
    """Say what is guaranteed for all tasks and each of them."""
    alarm = (
        f"if no task got worse, the probability of any ADVERSE is at most {finding.false_positive_rate:.6g}"
    )
    comfort = f"BENIGN for a mean, or a task, that got worse: at most {finding.false_negative_rate:.6g}"
    both = ("false alarms", alarm), ("false comfort", comfort)
    return [*((name, f"{said}, delta included") for name, said in both), *wording.margin_words(finding)]


def _strata_notes(family: CertificateFamily, finding: Finding) -> list[str]:
    column = "" if family.by == "task" else f" ({family.by})"
    return [
        f"The first row is about all tasks{column} together and gets 0.8 of the level, the others 0.2 by "
        "Holm, or all of it once the first is ADVERSE; a task that is ADVERSE makes the first row so, too.",
        "Limits on the shift hold for the mean and all tasks at once. Where some tasks got worse and others "
        "better, those of the first row say what became of the mean.",
        *([wording.WITHIN] if finding.called(Verdict.WITHIN) else []),
        *wording.RATES,
    ]


def promises(family: CertificateFamily) -> Table:
    """Return the table of limits."""
    rows: list[tuple[str, ...]] = []
    for task, each in family.items():
        seen, mean = "-" if each.n is None else str(each.n), each.mean_cost
        if in_failures(family):
            seen = seen if each.n is None else f"{each.failures} of {each.n}"
            rows.append((wording.limits(each), seen, task))
        else:
            ends = wording.floor(each.lower), wording.ceiling(each.upper)
            rows.append((*ends, seen, "-" if mean is None else f"{mean:.4f}", task))
    heads = ("fails in", "failed") if in_failures(family) else ("lower", "upper", "episodes", "mean cost")
    return (*heads, family.by), rows


def verdicts(family: CertificateFamily, tasks: Mapping[str, TaskFinding]) -> Table:
    """Return the table of verdicts."""
    failures = in_failures(family)
    seen = ("failed",) if failures else ("episodes", "mean cost")
    margins = {
        f"worse by at most {wording.points(each.margin, 'nearest') if failures else f'{each.margin:g}'}"
        for each in tasks.values()
        if each.margin is not None
    }
    heads = ("verdict", *margins, *seen, "certified", "shift", "adverse", "benign", family.by)
    rows = [
        (*_verdict(family[task], found, (found.adjusted_adverse, found.adjusted_benign), failures), task)
        for task, found in tasks.items()
    ]
    return heads, rows


def _verdict(
    certificate: Certificate, found: Finding, adjusted: tuple[float, float], failures: bool
) -> tuple[str, ...]:
    if failures:
        seen = [wording.failed(found).removesuffix(" failed"), wording.limits(certificate)]
        shift = wording.signed_points(found.shift_lower, found.shift_upper)
    else:
        certified = f"{wording.floor(certificate.lower)} to {wording.ceiling(certificate.upper)}"
        seen = [str(found.n), f"{found.mean_cost:.4f}", certified]
        shift = f"{wording.floor(found.shift_lower, '+')} to {wording.ceiling(found.shift_upper, '+')}"
    levels = map(wording.upward, adjusted)
    shown = () if found.no_worse is None else ("shown" if found.no_worse else "not shown",)
    return (found.verdict.name, *shown, *seen, shift, *levels)


def rates(family: CertificateFamily, finding: FamilyFinding) -> list[tuple[str, str]]:
    """Say which tasks were not judged, and what is guaranteed for all of them together."""
    any_ = f"the probability that any {member(family)} that is"
    alarm, comfort = finding.false_positive_rate, finding.false_negative_rate
    missing = f"{', '.join(finding.not_judged)} (certified, but no new episodes)"
    return [
        *([("not judged", missing)] if finding.not_judged else []),
        ("false alarms", f"{any_} not worse is called ADVERSE is at most {alarm:.6g}, delta included"),
        ("false comfort", f"{any_} worse is called BENIGN is at most {comfort:.6g}, delta included"),
    ]


def notes(test: FamilyTest, finding: FamilyFinding) -> list[str]:
    """Say how the table is to be read."""
    # With other tasks, less is ADVERSE than if there were none.
    could = test.could_alarm({task: found.n for task, found in finding.tasks.items()})
    few, one = [task for task, alarm in could.items() if not alarm], member(test.family)
    return [
        *([f"Too few episodes of {', '.join(few)}: no outcome could have been ADVERSE."] if few else []),
        "adverse and benign are Holm's adjusted p-values: a verdict is declared at the level or below, which "
        "includes the delta of certificates that keep their costs.",
        f"The limits on the shift hold for all {one}s at once, for which they are wider than a single {one} "
        "needs: a verdict may stand beside limits that include zero.",
        *([wording.WITHIN] if finding.called(Verdict.WITHIN) else []),
        *wording.RATES,
    ]
