"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch.episodes.design import Reduction
from boundwatch.readers import Format

CertificateFile = Annotated[
    Path, typer.Argument(metavar="CERTIFICATE", help="Certificate, as `boundwatch certify` writes it.")
]
Key = Annotated[
    Path | None,
    typer.Option(
        metavar="PUB",
        help="Public key; a certificate is refused unless its holder signed exactly this content.",
    ),
]
_COSTS = typer.Argument(
    metavar="COSTS",
    help="One row per episode: CSV, XLSX, JSON, NPY or Parquet; lerobot-eval's eval_info.json or a "
    "LeRobotDataset folder; Stable-Baselines3's monitor.csv or evaluations.npz; MCAP. May be gzipped; "
    "- reads standard input.",
)
CostsFile = Annotated[str, _COSTS]
OptionalCostsFile = Annotated[str | None, _COSTS]
SuccessColumn = Annotated[
    str | None,
    typer.Option(
        "--success",
        metavar="COL",
        help="Column that says whether a trial succeeded (yes/no, pass/fail, 1/0, ...). Columns without "
        "names are numbered from 1; /topic.field in MCAP.",
    ),
]
CostColumn = Annotated[
    str | None,
    typer.Option("--cost", metavar="COL", help="Or: column of costs (higher is worse)."),
]
RewardColumn = Annotated[
    str | None,
    typer.Option(
        "--reward",
        metavar="COL",
        help="Or: column of rewards (higher is better); needs --cost-range. If you name no column, the one "
        "called cost, success, is_success or reward is read, or a log's own success column.",
    ),
]
CostRange = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Range that costs or rewards can have, known in advance (0 100 for percent); it is rescaled to "
        "[0, 1].",
    ),
]
SuccessValues = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD,WORD",
        help="Words that mean success, if boundwatch does not know them; all others are then failures.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="COL=VALUE", help="Read only the rows with this value in this column; repeatable."),
]
Strata = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column of the fixed set of tasks or conditions whose mean is meant; kept."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column of scenes, seeds or days whose repeats are not independent; kept."
    ),
]
AsIs = Annotated[
    bool,
    typer.Option(
        "--as-is",
        help="Tasks come in random order: ask nothing about their column where the order of trials matters.",
    ),
]
FileFormat = Annotated[
    Format | None, typer.Option("--format", help="Format of the file. [default: recognized by content]")
]
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="Sheet of a workbook. [default: the one with the column]")
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that names the task (or robot): each is judged separately; all share one error rate.",
    ),
]
Episode = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column that names the episode, if each row is one step of an episode."),
]
Reduce = Annotated[
    Reduction | None,
    typer.Option(
        help="How an episode's steps become one value. [default: any for successes, sum for rewards; "
        "required for costs]"
    ),
]
Evaluation = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Which evaluation in evaluations.npz, counted from 1. [default: the last]"
    ),
]
AllowOwn = Annotated[
    bool,
    typer.Option(
        "--allow-own", help="Judge even the costs that the certificate was made from, as a rehearsal."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that boundwatch did not write; never an input.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
