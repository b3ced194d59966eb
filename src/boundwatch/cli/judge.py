"""How `check` and `report` judge new costs: their options, and the one way in which they do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.options import refuse
from boundwatch.cli.reading import Reading, is_certificate
from boundwatch.cli.spelling import flag
from boundwatch.detectors import (
    ConfidenceInterval,
    FamilyFinding,
    FamilyTest,
    Finding,
    HypothesisTest,
    Verdict,
)
from boundwatch.detectors.base import TailName
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import InvalidSetting, Place, SchemaMismatch
from boundwatch.reporting import families as words

EXIT_WORSE = 3
Test = HypothesisTest | ConfidenceInterval | FamilyTest
_SEVERAL = "does not go with several tasks; leave it out"
_LEVELS = {
    "hypothesis-test": ("alpha_adverse", "alpha_benign"),
    "confidence-interval": ("false_positive_rate", "false_negative_rate"),
}
"""The options that say how often each detector may be wrong."""


@dataclass(frozen=True)
class Judging:
    """How to judge new costs; a command that takes one has an option for each field.

    Options
    -------
    alpha_adverse P: Level of ADVERSE; the certificate's delta is added. [default: 0.05]
    alpha_benign P: Level of BENIGN; the certificate's delta is added. [default: 0.05]
    tail NAME: joint, with the certificate's costs; hoeffding, kl, exact or betting, with its limits.
        [default: joint if it has costs; exact if they are binary; else betting]
    detector NAME: hypothesis-test or confidence-interval: Algorithm 1 or 2 of the paper.
    false_positive_rate P: confidence-interval: total rate of a wrong ADVERSE. [default: 0.05]
    false_negative_rate P: confidence-interval: total rate of a wrong BENIGN. [default: 0.05]
    """

    margin: float | None = None
    alpha_adverse: float | None = None
    alpha_benign: float | None = None
    tail: TailName | None = None
    detector: Literal["hypothesis-test", "confidence-interval"] = "hypothesis-test"
    false_positive_rate: float | None = None
    false_negative_rate: float | None = None
    key: Path | None = None
    allow_own: bool = False

    def build(self, loaded: Certificate | CertificateFamily) -> Test:
        """Return the detector that was asked for; refuse the options of the others."""
        one, own = isinstance(loaded, Certificate), _LEVELS[self.detector]
        if not one and self.detector != HypothesisTest.name:
            refuse({"detector": self.detector}, _SEVERAL)
        (others,) = (levels for name, levels in _LEVELS.items() if name != self.detector)
        for name, instead in zip(others, own, strict=True):
            why = f"does not go with --detector {self.detector}; use {flag(instead)}" if one else _SEVERAL
            refuse({name: getattr(self, name)}, why)
        levels = {name: level for name in own if (level := getattr(self, name)) is not None}
        out.warn_of_levels(levels)
        settings: dict[str, Any] = {"tail": self.tail, "margin": self.margin, **levels}
        if not isinstance(loaded, Certificate):
            return FamilyTest(loaded, **settings)
        kind = HypothesisTest if self.detector == HypothesisTest.name else ConfidenceInterval
        return kind(loaded, **settings)


@dataclass(frozen=True)
class Judged:
    """New costs, what judged them, and what it found: of one certificate, or of several tasks."""

    test: Test
    costs: Any
    finding: Finding | FamilyFinding
    sources: tuple[Episodes, ...]

    def warned(self, *warnings: str) -> Judged:
        """Return the same with further warnings about the first file."""
        first, *others = self.sources
        first = dataclasses.replace(first, warnings=(*first.warnings, *warnings))
        return dataclasses.replace(self, sources=(first, *others))


def judge(
    certificate: Path, costs: str, judging: Judging, reading: Reading, by: str | None, **single: object
) -> Judged:
    """Load what judges, read what is judged, and decide; the options `single` are not for several tasks."""
    try:
        loaded = out.load_trusted(certificate, judging.key)
    except SchemaMismatch:
        if not is_certificate(costs):
            raise
        problem, remedy = f"is not a certificate, but {costs} is", "swap them: the certificate comes first"
        raise InvalidSetting(problem, where=Place(str(certificate)), remedy=remedy) from None
    test: Any = None
    if isinstance(loaded, Certificate) and by is None:
        test = judging.build(loaded)
    if test is None or test.certificate.strata:
        refuse(single, _SEVERAL)
    read = reading.read_all(costs, by=by, certificates=loaded, allow_own=judging.allow_own)
    if test is not None:
        (episodes,) = read.sources
        new: Any = episodes.costs
        if isinstance(loaded, Certificate) and loaded.strata:
            new = {task: new[rows] for task, rows in rows_of(episodes.keys["strata"]).items()}
        return Judged(test, new, test.decide(new), read.sources)
    tasks: Any = {name: part.costs for name, part in read.parts.items()}
    if isinstance(loaded, Certificate):
        loaded = CertificateFamily.shared(loaded, tasks, by=str(read.by))
    test = judging.build(loaded)
    finding = test.decide(tasks)
    missing = [f"{read.sources[0].source}: {each}" for each in words.not_judged(loaded, finding)]
    return Judged(test, tasks, finding, read.sources).warned(*missing)


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise typer.Exit(EXIT_WORSE)
