"""How `check` and `report` judge new costs: their options, and the one way in which they do."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
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
from boundwatch.detectors.family import Control
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import InvalidSetting, Place, SchemaMismatch
from boundwatch.reporting import families as words

EXIT_WORSE = 3
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
    detector: Algorithm 1 (levels of the tests) or Algorithm 2 (total error rates) of the paper.
    tail: joint judges new costs together with those of a held-out certificate. The others compare them with
        its limits; hoeffding is the paper's, exact needs a binary certificate. [default: joint if the
        certificate keeps its costs; else exact for binary costs, or betting]
    alpha_adverse P: hypothesis-test: level of ADVERSE; delta is added to it. [default: 0.05]
    alpha_benign P: hypothesis-test: level of BENIGN; delta is added to it. [default: 0.05]
    false_positive_rate P: confidence-interval: total rate of a wrong ADVERSE, delta included. [default: 0.05]
    false_negative_rate P: confidence-interval: total rate of a wrong BENIGN, delta included. [default: 0.05]
    control: Several tasks: holm bounds the probability of any wrong verdict; e-bh bounds the expected share
        of wrong verdicts, at any single look, if no task reveals what another will meet. [default: holm]
    """

    detector: Literal["hypothesis-test", "confidence-interval"] = "hypothesis-test"
    tail: TailName | None = None
    alpha_adverse: float | None = None
    alpha_benign: float | None = None
    false_positive_rate: float | None = None
    false_negative_rate: float | None = None
    margin: float | None = None
    control: Control | None = None
    by: str | None = None

    def build(
        self, loaded: Certificate | CertificateFamily
    ) -> HypothesisTest | ConfidenceInterval | FamilyTest:
        """Return the detector that was asked for; refuse the options of the others."""
        one = isinstance(loaded, Certificate)
        if one:
            refuse(
                {"control": self.control}, "goes with several tasks; give --by, or the file of certify --by"
            )
        elif self.detector != HypothesisTest.name:
            refuse({"detector": self.detector}, _SEVERAL)
        own = _LEVELS[self.detector]
        for others in _LEVELS.values():
            for name, instead in zip(others, own, strict=True):
                if name not in own:
                    why = (
                        f"does not go with --detector {self.detector}; use {flag(instead)}"
                        if one
                        else _SEVERAL
                    )
                    refuse({name: getattr(self, name)}, why)
        levels = {name: level for name in own if (level := getattr(self, name)) is not None}
        out.warn_of_levels(levels)
        if not isinstance(loaded, Certificate):
            control = self.control or "holm"
            return FamilyTest(loaded, control=control, tail=self.tail, margin=self.margin, **levels)
        kind = HypothesisTest if self.detector == HypothesisTest.name else ConfidenceInterval
        return kind(loaded, tail=self.tail, margin=self.margin, **levels)


@dataclass(frozen=True)
class Judged:
    """New costs, what judged them, and what it found: of one certificate, or of several tasks."""

    test: HypothesisTest | ConfidenceInterval | FamilyTest
    costs: Any
    finding: Finding | FamilyFinding
    sources: tuple[Episodes, ...]

    def warned(self, *warnings: str) -> Judged:
        """Return the same with further warnings about the first file."""
        first, *others = self.sources
        first = dataclasses.replace(first, warnings=(*first.warnings, *warnings))
        return dataclasses.replace(self, sources=(first, *others))


def judge(
    certificate: Path,
    costs: str,
    key: Path | None,
    judging: Judging,
    reading: Reading,
    *,
    allow_own: bool,
    **single: object,
) -> Judged:
    """Load what judges, read what is judged, and decide; the options `single` are not for several tasks."""
    loaded = _load(certificate, costs, key)
    out.print_trust(loaded, key)
    if isinstance(loaded, Certificate) and judging.by is None:
        one = judging.build(loaded)
        (episodes,) = sources = reading.read_all(costs, certificates=loaded, allow_own=allow_own).sources
        return Judged(one, episodes.costs, one.decide(episodes.costs), sources)  # type: ignore[arg-type]
    refuse(single, _SEVERAL)
    read = reading.read_all(costs, by=judging.by, certificates=loaded, allow_own=allow_own)
    tasks: Any = {name: part.costs for name, part in read.parts.items()}
    if isinstance(loaded, Certificate):
        loaded = CertificateFamily.shared(loaded, tasks, by=str(read.by))
    test = judging.build(loaded)
    finding: Any = test.decide(tasks)
    missing = [f"{read.sources[0].source}: {each}" for each in words.not_judged(loaded, finding)]
    return Judged(test, tasks, finding, read.sources).warned(*missing)


def _load(path: Path, costs: str, key: Path | None) -> Certificate | CertificateFamily:
    """Load the certificate, or say that it and the costs were swapped."""
    try:
        return load(path, key=key)
    except SchemaMismatch:
        if not is_certificate(costs):
            raise
        problem, remedy = f"is not a certificate, but {costs} is", "swap them: the certificate comes first"
        raise InvalidSetting(problem, where=Place(str(path)), remedy=remedy) from None


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise typer.Exit(EXIT_WORSE)
