"""The options by which `check` and `report` judge new costs, and the detectors that they make."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli.options import By
from boundwatch.cli.spelling import flag
from boundwatch.detectors import ConfidenceInterval, FamilyTest, HypothesisTest, Verdict
from boundwatch.detectors.base import LOOK_LEVEL, TailName
from boundwatch.detectors.family import Control
from boundwatch.errors import BoundwatchError, InvalidSetting, Place, SchemaMismatch

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

    def of_one(self, certificate: Certificate) -> HypothesisTest | ConfidenceInterval:
        """Return the detector that was asked for; refuse the options of the other one, and of tasks."""
        if self.control is not None:
            raise typer.BadParameter(
                "--control goes with several tasks; give --by, or the file of certify --by"
            )
        build: type[HypothesisTest | ConfidenceInterval]
        if self.detector == HypothesisTest.name:
            build, given, refused = HypothesisTest, self._levels, self._rates
        else:
            build, given, refused = ConfidenceInterval, self._rates, self._levels
        warn_of_levels(given)
        for name, other in zip(refused, given, strict=True):
            if refused[name] is not None:
                raise typer.BadParameter(
                    f"{flag(name)} does not go with --detector {self.detector}; use {flag(other)}"
                )
        return build(certificate, tail=self.tail, margin=self.margin, **_chosen(given))

    def of_tasks(self, family: CertificateFamily) -> FamilyTest:
        """Return the test of several tasks that was asked for."""
        control = self.control or "holm"
        return FamilyTest(
            family, control=control, tail=self.tail, margin=self.margin, **_chosen(self._levels)
        )

    def refuse_with_tasks(self, **others: object) -> None:
        """Refuse options that go with a single certificate only."""
        detector = None if self.detector == HypothesisTest.name else self.detector
        for name in _chosen({"detector": detector, **others, **self._rates}):
            raise typer.BadParameter(f"{flag(name)} does not go with several tasks; leave it out")

    @property
    def _levels(self) -> dict[str, float | None]:
        return {"alpha_adverse": self.alpha_adverse, "alpha_benign": self.alpha_benign}

    @property
    def _rates(self) -> dict[str, float | None]:
        return {
            "false_positive_rate": self.false_positive_rate,
            "false_negative_rate": self.false_negative_rate,
        }


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def load_judge(path: Path, costs: str, key: Path | None) -> Certificate | CertificateFamily:
    """Load the certificate, or say that it and the costs were swapped."""
    try:
        return load(path, key=key)
    except SchemaMismatch:
        try:
            load(Path(costs))
        except (BoundwatchError, OSError):
            swapped = False
        else:
            swapped = True
        if not swapped:
            raise
        raise InvalidSetting(
            f"is not a certificate, but {costs} is",
            where=Place(str(path)),
            remedy="swap them: the certificate comes first",
        ) from None


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
