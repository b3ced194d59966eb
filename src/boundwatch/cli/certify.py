"""boundwatch certify: a held-out certificate from any cost file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.limits import HeldOutMethod
from boundwatch.cli import output as out
from boundwatch.cli.audit import Labeling
from boundwatch.cli.file_options import Predictions, Reading
from boundwatch.cli.options import refuse, refuse_if
from boundwatch.cli.root import command
from boundwatch.cli.stopping import Stopping, certify_once, run_campaign
from boundwatch.episodes.episodes import Episodes


@command(
    example="boundwatch certify trials.csv --success grasped --delta 0.01 -o certificate.json\n"
    "boundwatch certify episodes.parquet --reward return --cost-range -200 0 -o certificate.json\n"
    "boundwatch certify eval_info.json --by task -o certificates.json\n"
    "boundwatch certify --bounds 0 0.22216 --delta 0.01 -o certificate.json\n"
    "boundwatch certify trials.csv --success grasped --cost force --cost-range 0 50 -o metrics.json\n"
    "boundwatch certify eval_info.json --strata task --until-width 0.2 -o certificate.json\n"
    "my-robot | boundwatch certify - --success ok --until-width 0.2 --at-most 200 -o certificate.json"
)
def certify(
    costs: str | None = None,
    *,
    delta: float | None = None,
    delta_upper: float | None = None,
    delta_lower: float | None = None,
    binary: bool | None = None,
    method: HeldOutMethod | None = None,
    bounds: tuple[float, float] | None = None,
    reading: Reading,
    predictions: Predictions,
    by: str | None = None,
    stopping: Stopping,
    labeling: Labeling,
    output: Path,
    sign: Path | None = None,
    seed: int | None = None,
    policy_file: Path | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Certify a policy's expected cost from fresh episodes, or use proved limits.

    The policy must not have been trained or selected on these episodes. With --by, every task gets a
    certificate and an equal share of delta. With a stopping rule (--until-width, --until-upper, --at-most)
    the interval is printed after each trial, with --strata after each round of all tasks, and the limits hold
    whenever and however you stop, also by Ctrl-C.

    Options
    -------
    delta P: Chance that a limit fails. [default: 0.01; labels: 0.05]
    delta_upper P: Of the upper limit alone, instead of --delta.
    delta_lower P: Of the lower limit alone, instead of --delta.
    binary: Costs are 0 or 1. [default: if only 0 and 1 occur]
    method NAME: betting, tuned, kl, hoeffding or exact; choose before you look. [default: exact if binary,
        tuned for clusters, else betting]
    bounds LOWER UPPER: Limits proved elsewhere, instead of COSTS.
    output FILE: Where to write it.
    sign KEY: Private key (see keygen); writes FILE.sig, too.
    seed SEED: Seed behind the episodes, for the provenance.
    policy_file FILE: The policy's file, whose SHA-256 is kept.
    """
    limits = {"delta": delta, "delta_upper": delta_upper, "delta_lower": delta_lower}
    deltas: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    given: dict[str, Any] = {"by": by, "method": method}
    origin: dict[str, Any] = {"seed": seed, "policy": policy_file}
    refuse_if(
        {
            "give either --delta, or --delta-upper and --delta-lower, not both": len(deltas) > 1
            and delta is not None,
            "give a file of costs, or --bounds LOWER UPPER for limits proved elsewhere": (bounds is None)
            == (costs is None),
            "--bounds needs --delta: the probability with which either limit fails": bounds is not None
            and delta is None,
        }
    )
    out.warn_of_levels(deltas)
    files.protect(output, [costs, policy_file, sign, labeling.labels], force=force)
    sources: tuple[Episodes, ...] = ()
    reason, said = "", list[str]()
    made: Certificate | CertificateFamily
    if bounds is not None:
        others = {**vars(reading), **vars(stopping), **vars(labeling), **vars(predictions), **given}
        refuse(others, "goes with a file of costs, not with --bounds; leave it out")
        lower, upper = bounds
        made = Certificate.from_bounds(lower=lower, upper=upper, binary=bool(binary), **deltas, **origin)
    elif labeling != Labeling():
        others = {**vars(stopping), **vars(predictions), **given, "seed": seed, "binary": binary}
        refuse(others, "does not go with --judge; leave it out")
        made, judged, said = labeling.certify(str(costs), reading, {**deltas, "policy": policy_file})
        sources = (judged,)
    elif stopping != Stopping():
        stopping.refuse_without_rule()
        refuse(given, "does not go with a stopping rule; leave it out")
        settings = stopping, reading, predictions, deltas, binary, origin
        made, reason = run_campaign(str(costs), *settings, as_json=as_json)
    elif predictions != Predictions():
        refuse(given, "does not go with --predicted; leave it out")
        made, read_once = certify_once(str(costs), reading, predictions, binary, {**deltas, **origin})
        sources = (read_once,)
    else:
        read = reading.read_all(str(costs), by=by, binary=binary)
        sources, levels = read.sources, {**deltas, **origin, "method": method}
        if read.by is None:
            made = Certificate.from_held_out(sources[0], **levels)
        else:
            made = CertificateFamily.from_held_out(read.parts, by=read.by, **levels)
    out.print_warnings(*sources)
    written = out.save(made, output, sign)
    if as_json and reason:  # one line, as those before it
        print(json.dumps({"stopped": reason, "output": str(output), "certificate": made.to_dict()}))
    elif as_json:
        out.print_json(made.to_dict())
    else:
        print(f"\nStopped: {reason}\n{written}" if reason else written)
        out.print_promise(made, [*(f"Costs: {out.describe_source(each)}." for each in sources), *said])
