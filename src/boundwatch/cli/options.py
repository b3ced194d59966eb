"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CertificateFile = Annotated[
    Path, typer.Argument(metavar="CERTIFICATE", help="Certificate, as `boundwatch certify` writes it.")
]
CostsFile = Annotated[
    str,
    typer.Argument(
        metavar="COSTS",
        help="CSV, JSON lines, NPY or Parquet with one row per episode, gzipped or not; "
        "- reads standard input.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column to read (its number, counted from 1, if it has no name). Left out: the one named cost, "
        "success or reward. A success becomes the cost 1 - success; a reward needs --cost-range.",
    ),
]
CostRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Range that costs or rewards can have, known beforehand; it is rescaled to [0, 1].",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
