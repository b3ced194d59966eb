"""boundwatch certify: a held-out certificate from any cost file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.certificates.limits import HeldOutMethod
from boundwatch.cli import output as out
from boundwatch.cli.campaign import Stopping, run_campaign
from boundwatch.cli.options import refuse
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command


@command(
    example="boundwatch certify trials.csv --success grasped -o certificate.json\n"
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
    output: Path,
    bounds: tuple[float, float] | None = None,
    delta: float | None = None,
    delta_upper: float | None = None,
    delta_lower: float | None = None,
    method: HeldOutMethod | None = None,
    binary: bool | None = None,
    by: str | None = None,
    stopping: Stopping,
    reading: Reading,
    seed: int | None = None,
    policy_file: Path | None = None,
    sign: Path | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Certify a policy's expected cost from fresh episodes, or use limits proved elsewhere.

    The policy must not have been trained or selected on these episodes. With --by, every task gets a
    certificate and an equal share of delta. With a stopping rule (--until-width, --until-upper, --at-most)
    trials are read line by line, the interval is printed after each, and the limits hold whenever and however
    you stop; Ctrl-C ends it with a certificate, too. With --strata, that is so after every round, in which
    each task is run once; trials that complete no round wait. If all goes well, an existing certificate is
    replaced; any other file only with --force; an input file never.

    Options
    -------
    output FILE: Where to write it.
    bounds LOWER UPPER: Use limits that somebody else proved, instead of COSTS; say with --delta how often
        they may fail.
    delta P: Probability with which either limit may fail, half of it on each side. [default: 0.01]
    delta_upper P: The same for the upper limit alone, instead of --delta.
    delta_lower P: The same for the lower limit alone, instead of --delta.
    method: How the limits are derived; exact needs binary costs. Choose before you look at the costs.
        [default: exact for binary costs, tuned for clusters, else betting]
    binary: Promise that costs are always 0 or 1, now and whenever the certificate is used, or say that values
        in between can occur. [default: binary for successes, and for costs if both 0 and 1 occur and nothing
        else]
    seed SEED: Seed behind the episodes, for the provenance.
    policy_file FILE: The policy's file; its SHA-256 is kept in the certificate.
    sign KEY: Private key (see keygen); also writes a signature, FILE.sig.
    """
    deltas = {"delta_upper": delta_upper, "delta_lower": delta_lower}
    if delta is not None and (delta_upper is not None or delta_lower is not None):
        raise typer.BadParameter("give either --delta, or --delta-upper and --delta-lower, not both")
    if delta is not None:
        deltas["delta"] = delta
    out.warn_of_levels(deltas)
    files.protect(output, [costs, policy_file, sign], force=force)
    origin: dict[str, Any] = {"seed": seed, "policy": policy_file}
    if (bounds is None) == (costs is None):
        raise typer.BadParameter("give a file of costs, or --bounds LOWER UPPER for limits proved elsewhere")
    read = None
    certificate: Certificate | CertificateFamily
    if bounds is not None:
        others = {**vars(reading), **vars(stopping), "by": by, "method": method}
        refuse(others, "goes with a file of costs, not with --bounds; leave it out")
        if delta is None:
            raise typer.BadParameter("--bounds needs --delta: the probability with which either limit fails")
        limits: dict[str, Any] = {"lower": bounds[0], "upper": bounds[1], "delta": delta}
        certificate = Certificate.from_bounds(**limits, **origin, binary=bool(binary))
    elif stopping.given:
        refuse({"by": by, "method": method}, "does not go with a stopping rule; leave it out")
        campaign: dict[str, Any] = {"deltas": deltas, "binary": binary, "provenance": origin}
        run_campaign(str(costs), output, stopping, reading, **campaign, sign=sign, as_json=as_json)
        return
    else:
        refuse({"follow": stopping.follow}, "goes with --until-width, --until-upper or --at-most")
        read = reading.read_all(str(costs), by=by, binary=binary)
        settings: dict[str, Any] = {**deltas, **origin, "method": method}
        if read.by is None:
            certificate = Certificate.from_held_out(read.sources[0], **settings)
        else:
            certificate = CertificateFamily.from_held_out(read.parts, by=read.by, **settings)
    sources = () if read is None else read.sources
    out.print_warnings(*sources)
    written = out.save(certificate, output, sign)
    if as_json:
        out.print_json(certificate.to_dict())
        return
    print(written)
    read_from = map(out.describe_source, sources)
    out.print_promise(certificate, map("Costs: {}.".format, read_from))
