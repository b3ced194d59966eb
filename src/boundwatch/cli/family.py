"""How commands print several tasks: their certificates, and the verdicts on them."""

from __future__ import annotations

import dataclasses

from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.detectors import FamilyFinding, FamilyTest, Verdict
from boundwatch.episodes import Episodes
from boundwatch.reporting import wording

_MEANING = {
    "holm": "adverse and benign are Holm's adjusted p-values: a verdict is declared at the level or below.",
    "e-bh": "adverse and benign are the smallest false discovery rates at which e-BH lists the task.",
}
_LOOKS = {
    "holm": "They hold for one look at numbers of episodes fixed in advance, independent of each other.",
    "e-bh": "They hold for the list at whatever episode one stops, for episodes independent of all earlier "
    "ones of all tasks.",
}


def print_family(family: CertificateFamily) -> None:
    """Print what a family promises."""
    out.print_section(
        "Promise",
        [
            f"For each of {wording.count(len(family), 'task')} (column {family.by}), the expected cost of an "
            "episode is within its limits (0 is best, 1 is worst).",
            f"The probability that any upper limit fails is at most {family.delta_upper:g}, any lower limit "
            f"at most {family.delta_lower:g}, any limit at all at most {family.delta:g}.",
        ],
    )
    print()
    out.print_table(
        ("lower", "upper", "episodes", "mean cost", family.by),
        [
            (
                wording.floor(certificate.lower),
                wording.ceiling(certificate.upper),
                "-" if certificate.n is None else str(certificate.n),
                "-" if certificate.mean_cost is None else f"{certificate.mean_cost:.4f}",
                task,
            )
            for task, certificate in family.items()
        ],
    )
    vacuous = [task for task, certificate in family.items() if certificate.upper >= 1]
    if vacuous:
        out.print_section(
            "Note",
            [f"No cost is above 1, so {', '.join(vacuous)} cannot be called ADVERSE; more episodes help."],
        )


def print_family_finding(test: FamilyTest, finding: FamilyFinding, episodes: Episodes) -> None:
    """Print the verdict on every task, and what is guaranteed for all of them."""
    family = test.family
    print(f"{wording.headline(finding)}\n")
    out.print_table(
        ("verdict", "episodes", "mean cost", "certified", "shift", "adverse", "benign", family.by),
        [
            (
                found.verdict.name,
                str(found.n),
                f"{found.mean_cost:.4f}",
                f"{wording.floor(family[found.task].lower)} to {wording.ceiling(family[found.task].upper)}",
                f"{wording.floor(found.shift_lower, '+')} to {wording.ceiling(found.shift_upper, '+')}",
                wording.at_most(found.adjusted_adverse).removeprefix("at most "),
                wording.at_most(found.adjusted_benign).removeprefix("at most "),
                found.task,
            )
            for found in finding.findings
        ],
    )
    print()
    if finding.control == "holm":
        alarms = "any task is called ADVERSE that is not worse, with probability at most"
        comfort = "any task is called BENIGN that is worse, with probability at most"
    else:
        alarms = "of the tasks called ADVERSE, those that are not worse make up an expected share of at most"
        comfort = "of the tasks called BENIGN, those that are worse make up an expected share of at most"
    rows = [
        ("false alarms", f"{alarms} {finding.false_positive_rate:.6g}, delta included"),
        ("false comfort", f"{comfort} {finding.false_negative_rate:.6g}, delta included"),
        ("costs", out.describe_source(episodes)),
    ]
    if finding.not_judged:
        rows.insert(0, ("not judged", f"{', '.join(finding.not_judged)} (certified, but no new episodes)"))
    out.print_rows(rows)
    few = [found.task for found in finding.findings if not _could_alarm(test, found.task, found.n)]
    notes = [
        *([f"So few episodes of {', '.join(few)} could not have been called ADVERSE at all."] if few else []),
        _MEANING[finding.control],
        "The limits on the shift hold for all tasks at once, for which they are wider than a single task "
        "needs: a verdict may stand beside limits that include zero.",
        "The rates are those of the procedure, not the probability that a verdict is wrong.",
        _LOOKS[finding.control],
    ]
    out.print_section("Note", notes, bullet="- ")


def _could_alarm(test: FamilyTest, task: str, n: int) -> bool:
    """Return whether failures throughout would be ADVERSE if there were no other task; with others, less."""
    alone = dataclasses.replace(test, family=test.family.only([task]))
    return alone.decide({task: [1] * n}).verdict is Verdict.ADVERSE
