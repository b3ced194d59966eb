"""How commands read, judge and print several tasks: their certificates, and the verdicts on them."""

from __future__ import annotations

import dataclasses

import numpy as np

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.reading import METRIC, Reading
from boundwatch.detectors import FamilyFinding, FamilyTest
from boundwatch.episodes import Episodes
from boundwatch.episodes.fit import refuse_unknown
from boundwatch.reporting import family as words
from boundwatch.reporting import wording


@dataclasses.dataclass(frozen=True)
class _Metrics(Episodes):
    """The costs of several metrics, those of an episode together, as if they were tasks."""

    parts: tuple[Episodes, ...] = ()
    """The episodes of each metric by themselves."""


def print_family(family: CertificateFamily) -> None:
    """Print what a family promises."""
    what = (
        "the share of trials that fail is within its limits."
        if words.in_failures(family)
        else "the expected cost of an episode is within its limits (0 is best, 1 is worst)."
    )
    out.print_section(
        "Promise",
        [
            f"For each of {_members(family)}, {what}",
            f"The probability that any upper limit fails is at most {family.delta_upper:g}, any lower limit "
            f"at most {family.delta_lower:g}, any limit at all at most {family.delta:g}.",
        ],
    )
    print()
    out.print_table(*words.promises(family))
    vacuous = [task for task, certificate in family.items() if certificate.upper >= 1]
    if vacuous:
        out.print_section(
            "Note",
            [f"No cost is above 1, so {', '.join(vacuous)} cannot be called ADVERSE; more episodes help."],
        )


def is_of_metrics(family: CertificateFamily) -> bool:
    """Return whether the members are metrics, or the metrics of tasks, instead of tasks."""
    return family.by.split("/")[-1] == METRIC


def tasks_of_metrics(family: CertificateFamily) -> str | None:
    """Return the column of the tasks whose metrics these are, if there is one."""
    return family.by.removesuffix(METRIC).rstrip("/") or None


def parts(episodes: Episodes) -> tuple[Episodes, ...]:
    """Return the episodes of each metric by themselves."""
    return episodes.parts if isinstance(episodes, _Metrics) else (episodes,)


def _members(family: CertificateFamily) -> str:
    counted = wording.count(len(family), words.member(family))
    return counted if family.by == METRIC else f"{counted} (column {family.by})"


def print_family_finding(test: FamilyTest, finding: FamilyFinding, episodes: Episodes) -> None:
    """Print the verdict on every task, and what is guaranteed for all of them."""
    print(f"{wording.headline(finding, words.member(test.family))}\n")
    out.print_table(*words.verdicts(test.family, finding))
    print()
    sources = [("costs", out.describe_source(part)) for part in parts(episodes)]
    out.print_rows([*words.rates(test.family, finding), *sources])
    out.print_section("Note", words.notes(test, finding), bullet="- ")


def name_missing(family: CertificateFamily, finding: FamilyFinding, episodes: Episodes) -> Episodes:
    """Add a warning that names the tasks without new episodes."""
    if not finding.not_judged:
        return episodes
    certified = wording.count(len(family), f"certified {words.member(family)}")
    missing = (
        f"{episodes.source}: no new episodes of {', '.join(finding.not_judged)}, so that "
        f"{len(finding.not_judged)} of {certified} are not judged"
    )
    return dataclasses.replace(episodes, warnings=(*episodes.warnings, missing))


def read_tasks(
    loaded: Certificate | CertificateFamily,
    costs: str,
    reading: Reading,
    by: str | None,
    *,
    allow_own: bool | None = None,
    judged: bool = True,
) -> tuple[CertificateFamily, Episodes]:
    """Return the certificates of the tasks, and the costs of each, which they judge unless told otherwise."""
    if isinstance(loaded, CertificateFamily) and is_of_metrics(loaded):
        return loaded, _read_metrics(loaded, costs, reading, allow_own=allow_own, judged=judged)
    by = by or (loaded.by if isinstance(loaded, CertificateFamily) else None)
    episodes = reading.read(costs, by=by, certificate=loaded, allow_own=allow_own, judged=judged)
    if isinstance(loaded, CertificateFamily):
        return loaded, episodes
    return CertificateFamily.shared(loaded, episodes.by_task(), by=by or "task"), episodes


def _read_metrics(
    family: CertificateFamily, costs: str, reading: Reading, *, allow_own: bool | None, judged: bool
) -> Episodes:
    """Return the costs of every metric as if they were tasks."""
    reading.refuse_several(family)
    by = tasks_of_metrics(family)
    metrics = reading.metrics(costs, by=by, family=family, allow_own=allow_own, judged=judged)
    compared = list(metrics.values())
    lines = np.concatenate([each.lines for each in compared])
    order = np.argsort(lines, kind="stable")  # episode by episode
    names = [name for name, each in metrics.items() for _ in each.costs]
    columns: dict[str, list[Episodes]] = {}
    for each in compared:
        columns.setdefault(str(each.column), []).append(each)
    first = compared[0]
    found = _Metrics(
        np.concatenate([each.costs for each in compared])[order],
        all(each.binary for each in compared),
        first.source,
        ", ".join(columns),
        first.meaning,
        first.file_format,
        first.cost_range,
        by=family.by,
        tasks=tuple(map(names.__getitem__, order)),
        lines=lines[order].tolist(),
        detail=first.detail,
        blocks_of=first.blocks_of,
        warnings=tuple(dict.fromkeys(warning for each in compared for warning in each.warnings)),
        notes=tuple(dict.fromkeys(note for each in compared for note in each.notes)),
        episode=first.episode,
        reduce=first.reduce,
        parts=tuple(
            dataclasses.replace(each[0], costs=np.concatenate([task.costs for task in each]))
            for each in columns.values()
        ),
    )
    if judged:
        refuse_unknown(found, family)
    return found
