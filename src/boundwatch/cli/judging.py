"""How `check` and `report` judge new costs: their options, and the one way in which they do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.audit import Labeling, doubted
from boundwatch.cli.file_options import Loaded, Reading
from boundwatch.cli.options import refuse
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.verdicts import Finding, TailName, Verdict
from boundwatch.episodes.compatibility import by_chance
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import InvalidSetting, Place, ProvenanceMismatch
from boundwatch.reporting import families as words

EXIT_WORSE = 3
_BY_COSTS = Labeling()


@dataclass(frozen=True)
class Judging:
    """How to judge new costs; a command that takes one has an option for each field.

    Options
    -------
    alpha_adverse P: Level of ADVERSE; the certificate's delta is added. [default: 0.05]
    alpha_benign P: Level of BENIGN; the certificate's delta is added. [default: 0.05]
    tail NAME: joint, with the certificate's costs; hoeffding, kl, exact or betting, with its limits.
        [default: joint if it has costs; exact if they are binary; else betting]
    """

    margin: float | None = None
    alpha_adverse: float | None = None
    alpha_benign: float | None = None
    tail: TailName | None = None
    key: Path | None = None
    allow_own: bool = False


@dataclass(frozen=True)
class Judged:
    """New costs, what judged them, and what it found: of one certificate, or of several tasks."""

    test: HypothesisTest | FamilyTest
    costs: Any
    finding: Finding | FamilyFinding
    sources: tuple[Episodes, ...]
    said: tuple[str, ...] = ()
    """What an audit says besides."""

    @property
    def in_tasks(self) -> bool:
        """Whether there is a verdict on each task."""
        return not isinstance(self.finding, Finding) or bool(self.finding.tasks)

    @property
    def subject(self) -> Any:
        """What a figure is about: the certificate or, of several tasks, the test."""
        return self.test if self.in_tasks or isinstance(self.test, FamilyTest) else self.test.certificate

    def exit_if_worse(self) -> None:
        """End with 3 on ADVERSE, or while a margin that was given is not shown to be kept."""
        exit_if_worse(self.finding.verdict, self.finding.no_worse)


def judge(
    certificate: Path,
    costs: str,
    judging: Judging,
    reading: Reading,
    by: str | None,
    labeling: Labeling = _BY_COSTS,
) -> Judged:
    """Load what judges, read what is judged, and decide."""
    loaded = out.load_trusted(certificate, judging.key)
    levels = {name: getattr(judging, name) for name in ("alpha_adverse", "alpha_benign")}
    out.warn_of_levels(levels)
    given = {name: level for name, level in levels.items() if level is not None}
    settings: dict[str, Any] = {"tail": judging.tail, "margin": judging.margin, **given}
    own = judging.allow_own
    if any(vars(labeling).values()):
        refuse({"by": by, "allow_own": own}, "does not go with --judge; leave it out")
        return _judge_audit(loaded, costs, settings, reading, labeling)
    if isinstance(loaded, Certificate) and by is None:
        test = HypothesisTest(loaded, **settings)
        episodes = reading.read(costs, certificate=loaded, allow_own=own)
        new: Any = episodes.costs
        if loaded.strata:
            new = {task: new[rows] for task, rows in rows_of(episodes.keys["strata"]).items()}
        return Judged(test, new, test.decide(new), (episodes,))
    read = reading.read_all(costs, by=by, certificates=loaded, allow_own=own)
    tasks = {name: part.costs for name, part in read.parts.items()}
    if isinstance(loaded, Certificate):
        loaded = CertificateFamily.shared(loaded, tasks, by=str(read.by))
    several = FamilyTest(loaded, **settings)
    finding = several.decide(tasks)
    first, *others = read.sources
    missing = [f"{first.source}: {each}" for each in words.not_judged(loaded, finding)]
    first = replace(first, warnings=(*first.warnings, *missing))
    return Judged(several, tasks, finding, (first, *others))


def _judge_audit(
    loaded: Loaded, path: str, settings: dict[str, Any], reading: Reading, labeling: Labeling
) -> Judged:
    """Judge episodes by the labels of an audit; say what the judge alone would say."""
    if not isinstance(loaded, Certificate):
        problem, remedy = "holds the certificates of several tasks", "check the audit of each task alone"
        raise InvalidSetting(problem, name="certificate", remedy=remedy)
    audit, labels, judged = labeling.read(path, reading)
    test = HypothesisTest(loaded, **settings)
    finding = test.decide(audit.record(labels))
    if audit.digest == loaded.provenance.costs_sha256 and not by_chance(audit.judged):
        raise ProvenanceMismatch("are the episodes that the certificate was made from", where=Place(path))
    alone = test.decide(audit.judged).verdict.name
    said = (*audit.finding(labels).sentences(), f"By the judge alone, which is no evidence: {alone}.")
    return Judged(test, audit.judged, finding, (doubted(judged, loaded),), said)


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise SystemExit(EXIT_WORSE)
