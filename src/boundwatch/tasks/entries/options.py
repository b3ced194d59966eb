"""Options that training has in every one of our tasks."""

from __future__ import annotations

from typing import Annotated

import typer

from boundwatch._support import parallel
from boundwatch.bounds import pac_bayes

Bound = Annotated[
    pac_bayes.Bound,
    typer.Option(help="What is minimized and certified; pinsker is Theorem 1 as printed."),
]
Backend = Annotated[
    parallel.Backend, typer.Option(help="Processes of this machine, or a Ray cluster (extra ray).")
]
Delta = Annotated[float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")]
