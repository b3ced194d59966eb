"""The options of the fixed-sample detectors, shared by `check` and `report`, and the detector they make."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.detectors import ConfidenceInterval, HypothesisTest, Verdict
from boundwatch.detectors.fixed_sample import TailName
from boundwatch.errors import BoundwatchError, InvalidSetting, SchemaMismatch

DetectorName = Annotated[
    Literal["hypothesis-test", "confidence-interval"],
    typer.Option(help="Algorithm 1 (levels of the tests) or Algorithm 2 (total error rates) of the paper."),
]
Tail = Annotated[
    Literal["joint", "betting", "kl", "hoeffding", "exact"] | None,
    typer.Option(
        help="joint judges new costs together with those of a held-out certificate. The others compare them "
        "with its limits; hoeffding is the paper's, exact needs a binary certificate. [default: joint if the "
        "certificate keeps its costs; else exact for binary costs, or betting]"
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        metavar="COST",
        help="Also say whether it is shown that the expected cost rose by no more than this.",
    ),
]
AlphaAdverse = Annotated[
    float | None,
    typer.Option(
        metavar="P", help="hypothesis-test: level of ADVERSE; delta is added to it. [default: 0.05]"
    ),
]
AlphaBenign = Annotated[
    float | None,
    typer.Option(metavar="P", help="hypothesis-test: level of BENIGN; delta is added to it. [default: 0.05]"),
]
FalsePositive = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="confidence-interval: total rate of a wrong ADVERSE, delta included. [default: 0.05]",
    ),
]
FalseNegative = Annotated[
    float | None,
    typer.Option(
        metavar="P", help="confidence-interval: total rate of a wrong BENIGN, delta included. [default: 0.05]"
    ),
]

ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code",
        help="Exit with 3 if the verdict is ADVERSE, whatever the margin. With --margin, exit with 3 also "
        "until it is shown, for every task, that the expected cost rose by no more than that.",
    ),
]
Ledger = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep every look here (time, episodes, hash of the costs, levels), and say if there was one "
        "before.",
    ),
]
UNUSUAL = 0.2
EXIT_WORSE = 3


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
            f"{path}: is not a certificate, but {costs} is; swap them: the certificate comes first"
        ) from None


def warn_of_levels(levels: Mapping[str, float | None]) -> None:
    """Say plainly what an unusually high error rate means."""
    for name, level in levels.items():
        if level is not None and UNUSUAL <= level < 1:
            print(
                f"boundwatch: warning: --{name.replace('_', '-')} {level:g} lets the promise fail in up to "
                f"{100 * level:.0f} of 100 cases where it should hold; 0.05 or less is usual",
                file=sys.stderr,
            )


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise typer.Exit(EXIT_WORSE)


def build_detector(
    certificate: Certificate,
    detector: str,
    tail: TailName | None,
    *,
    levels: dict[str, float | None],
    rates: dict[str, float | None],
    margin: float | None = None,
) -> HypothesisTest | ConfidenceInterval:
    """Return the detector that was asked for; refuse the options of the other one."""
    build: type[HypothesisTest | ConfidenceInterval]
    if detector == HypothesisTest.name:
        build, given, refused = HypothesisTest, levels, rates
    else:
        build, given, refused = ConfidenceInterval, rates, levels
    warn_of_levels(given)
    for name, other in zip(refused, given, strict=True):
        if refused[name] is not None:
            flag, remedy = (f"--{key.replace('_', '-')}" for key in (name, other))
            raise typer.BadParameter(f"{flag} does not go with --detector {detector}; use {remedy}")
    chosen = {name: value for name, value in given.items() if value is not None}
    return build(certificate, tail=tail, margin=margin, **chosen)
