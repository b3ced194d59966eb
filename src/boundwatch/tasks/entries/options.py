"""Options that training has in every one of our tasks."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Bound = Annotated[
    Literal["pointwise", "kl", "pinsker"],
    typer.Option(help="What is minimized and certified; pinsker is Theorem 1 as printed."),
]
Delta = Annotated[float, typer.Option(metavar="P", help="Probability with which the certificate may fail.")]
