"""How commands read, judge and print several tasks: their certificates, and the verdicts on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, no_certificate
from boundwatch.cli import output as out
from boundwatch.cli.reading import METRIC, Reading
from boundwatch.detectors import FamilyFinding, FamilyTest
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import InvalidSetting, Place
from boundwatch.reporting import family as words
from boundwatch.reporting import wording


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


def _members(family: CertificateFamily) -> str:
    counted = wording.count(len(family), words.member(family))
    return counted if family.by == METRIC else f"{counted} (column {family.by})"


@dataclasses.dataclass(frozen=True)
class Tasks:
    """The costs of several tasks, or of several metrics as if they were tasks, and where they came from."""

    family: CertificateFamily
    costs: Mapping[str, NDArray[np.float64]]
    sources: tuple[Episodes, ...]
    """What was read: once or, of several metrics, once for each."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may make the guarantees wrong."""
        return tuple(dict.fromkeys(warning for each in self.sources for warning in each.warnings))

    @property
    def fields(self) -> dict[str, Any]:
        """Where they came from, for JSON."""
        if len(self.sources) == 1:
            return out.source_fields(self.sources[0])
        return {"metrics": [out.source_fields(each) for each in self.sources]}

    def with_missing(self, finding: FamilyFinding) -> Tasks:
        """Return the same with a warning that names the tasks without new episodes."""
        if not finding.not_judged:
            return self
        certified = wording.count(len(self.family), f"certified {words.member(self.family)}")
        first, *others = self.sources
        missing = (
            f"{first.source}: no new episodes of {', '.join(finding.not_judged)}, so that "
            f"{len(finding.not_judged)} of {certified} are not judged"
        )
        first = dataclasses.replace(first, warnings=(*first.warnings, missing))
        return dataclasses.replace(self, sources=(first, *others))


def print_family_finding(test: FamilyTest, finding: FamilyFinding, tasks: Tasks) -> None:
    """Print the verdict on every task, and what is guaranteed for all of them."""
    print(f"{wording.headline(finding, words.member(test.family))}\n")
    out.print_table(*words.verdicts(test.family, finding))
    print()
    sources = [("costs", out.describe_source(each)) for each in tasks.sources]
    out.print_rows([*words.rates(test.family, finding), *sources])
    out.print_section("Note", words.notes(test, finding), bullet="- ")


def read_tasks(
    loaded: Certificate | CertificateFamily,
    costs: str,
    reading: Reading,
    by: str | None,
    *,
    allow_own: bool | None = None,
    judged: bool = True,
) -> Tasks:
    """Return the certificates of the tasks, and the costs of each, which they judge unless told otherwise."""
    if isinstance(loaded, CertificateFamily) and is_of_metrics(loaded):
        return _read_metrics(loaded, costs, reading, allow_own=allow_own, judged=judged)
    by = by or (None if isinstance(loaded, Certificate) else loaded.by)
    judge = loaded if judged or isinstance(loaded, Certificate) else next(iter(loaded.values()))
    episodes = reading.read(costs, by=by, certificate=judge, allow_own=allow_own if judged else True)
    tasks = episodes.by_task()
    if isinstance(loaded, CertificateFamily):
        return Tasks(loaded, tasks, (episodes,))
    return Tasks(CertificateFamily.shared(loaded, tasks, by=by or "task"), tasks, (episodes,))


def _read_metrics(
    family: CertificateFamily, costs: str, reading: Reading, *, allow_own: bool | None, judged: bool
) -> Tasks:
    """Return the costs of every metric as if they were tasks."""
    reading = reading.of_metrics(family)
    judges = family if judged else None
    metrics = reading.metrics(costs, by=tasks_of_metrics(family), family=judges, allow_own=allow_own)
    for name, each in metrics.items():
        if judged and name not in family:
            raise InvalidSetting(no_certificate(name, family), where=Place(each.source))
    columns: dict[str, list[Episodes]] = {}
    for each in metrics.values():
        columns.setdefault(str(each.measure.column), []).append(each)
    wholes = [
        dataclasses.replace(each[0], costs=np.concatenate([task.costs for task in each]), keys={}, numbers=())
        for each in columns.values()
    ]
    return Tasks(family, {name: each.costs for name, each in metrics.items()}, tuple(wholes))
