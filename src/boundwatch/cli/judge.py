"""How `check` and `report` judge new costs: their options, and the one way in which they do."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli import output as out
from boundwatch.cli.options import By
from boundwatch.cli.reading import Reading, is_certificate, refuse
from boundwatch.cli.spelling import flag
from boundwatch.detectors import (
    ConfidenceInterval,
    FamilyFinding,
    FamilyTest,
    Finding,
    HypothesisTest,
    Verdict,
)
from boundwatch.detectors.base import LOOK_LEVEL, TailName
from boundwatch.detectors.family import Control
from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import InvalidSetting, Place, SchemaMismatch
from boundwatch.reporting import family as words

Margin = Annotated[
    float | None,
    typer.Option(
        metavar="COST",
        help="Also say whether the data show that the expected cost rose by at most this much.",
    ),
]
ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code",
        help="Exit with 3 if the verdict is ADVERSE, whatever the margin. With --margin, also exit with 3 "
        "unless the data show, for every task, that the expected cost rose by at most the margin.",
    ),
]
UNUSUAL = 0.2
EXIT_WORSE = 3
SEVERAL = "does not go with several tasks; leave it out"


def _rate(words: str) -> Any:
    return typer.Option(metavar="P", help=f"{words} [default: {LOOK_LEVEL:g}]")


@dataclass(frozen=True)
class Judging:
    """How to judge new costs; a command that takes one has an option for each field."""

    detector: Annotated[
        Literal["hypothesis-test", "confidence-interval"],
        typer.Option(
            help="Algorithm 1 (levels of the tests) or Algorithm 2 (total error rates) of the paper."
        ),
    ] = "hypothesis-test"
    tail: Annotated[
        TailName | None,
        typer.Option(
            help="joint judges new costs together with those of a held-out certificate. The others compare "
            "them with its limits; hoeffding is the paper's, exact needs a binary certificate. [default: "
            "joint if the certificate keeps its costs; else exact for binary costs, or betting]"
        ),
    ] = None
    alpha_adverse: Annotated[
        float | None, _rate("hypothesis-test: level of ADVERSE; delta is added to it.")
    ] = None
    alpha_benign: Annotated[
        float | None, _rate("hypothesis-test: level of BENIGN; delta is added to it.")
    ] = None
    false_positive_rate: Annotated[
        float | None, _rate("confidence-interval: total rate of a wrong ADVERSE, delta included.")
    ] = None
    false_negative_rate: Annotated[
        float | None, _rate("confidence-interval: total rate of a wrong BENIGN, delta included.")
    ] = None
    margin: Margin = None
    control: Annotated[
        Control | None,
        typer.Option(
            help="Several tasks: holm bounds the probability of any wrong verdict; e-bh bounds the expected "
            "share of wrong verdicts, at any single look, if no task reveals what another will meet. "
            "[default: holm]",
        ),
    ] = None
    by: By = None

    def of(self, certificate: Certificate) -> HypothesisTest | ConfidenceInterval:
        """Return the detector of one certificate that was asked for; refuse the options of the others."""
        refuse({"control": self.control}, "goes with several tasks; give --by, or the file of certify --by")
        build: type[HypothesisTest | ConfidenceInterval] = HypothesisTest
        given, refused = self._levels, self._rates
        if self.detector != HypothesisTest.name:
            build, given, refused = ConfidenceInterval, refused, given
        warn_of_levels(given)
        for name, other in zip(refused, given, strict=True):
            refuse({name: refused[name]}, f"does not go with --detector {self.detector}; use {flag(other)}")
        return build(certificate, tail=self.tail, margin=self.margin, **_chosen(given))

    def of_tasks(self, family: CertificateFamily) -> FamilyTest:
        """Return the test of several tasks that was asked for; refuse the options of a single one."""
        detector = None if self.detector == HypothesisTest.name else self.detector
        refuse({"detector": detector, **self._rates}, SEVERAL)
        warn_of_levels(self._levels)
        levels, control = _chosen(self._levels), self.control or "holm"
        return FamilyTest(family, control=control, tail=self.tail, margin=self.margin, **levels)

    @property
    def _levels(self) -> dict[str, float | None]:
        return {"alpha_adverse": self.alpha_adverse, "alpha_benign": self.alpha_benign}

    @property
    def _rates(self) -> dict[str, float | None]:
        rates = ("false_positive_rate", "false_negative_rate")
        return {name: getattr(self, name) for name in rates}


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


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
        one = judging.of(loaded)
        read = reading.read_all(costs, certificates=loaded, allow_own=allow_own)
        values = read.sources[0].costs
        return Judged(one, values, one.decide(values), read.sources)
    refuse(single, SEVERAL)
    read = reading.read_all(costs, by=judging.by, certificates=loaded, allow_own=allow_own)
    tasks = {name: part.costs for name, part in read.parts.items()}
    if isinstance(loaded, Certificate):
        loaded = CertificateFamily.shared(loaded, tasks, by=str(read.by))
    test = judging.of_tasks(loaded)
    finding = test.decide(tasks)
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


def warn_of_levels(levels: Mapping[str, float | None]) -> None:
    """Say plainly what an unusually high error rate means."""
    for name, level in levels.items():
        if level is not None and UNUSUAL <= level < 1:
            print(
                f"boundwatch: warning: {flag(name)} {level:g} lets the promise fail in up to "
                f"{100 * level:.0f} of 100 cases where it should hold; 0.05 or less is usual",
                file=sys.stderr,
            )


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise typer.Exit(EXIT_WORSE)
