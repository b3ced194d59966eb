"""boundwatch certify: a held-out certificate from any cost file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch._support import files
from boundwatch.certificates import signing
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.campaign import StoppingRule, run_campaign
from boundwatch.cli.family import print_promise
from boundwatch.cli.judge import warn_of_levels
from boundwatch.cli.options import By, Force, Json, OptionalCostsFile
from boundwatch.cli.reading import Reading, refuse
from boundwatch.cli.root import command


@dataclass(frozen=True)
class Levels:
    """How often limits may fail; an option for each field."""

    delta: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which either limit may fail, half of it on each side. [default: 0.01]",
        ),
    ] = None
    delta_upper: Annotated[
        float | None,
        typer.Option(metavar="P", help="The same for the upper limit alone, instead of --delta."),
    ] = None
    delta_lower: Annotated[
        float | None,
        typer.Option(metavar="P", help="The same for the lower limit alone, instead of --delta."),
    ] = None

    @property
    def given(self) -> dict[str, float | None]:
        """The arguments of whatever certifies."""
        if self.delta is not None and (self.delta_upper is not None or self.delta_lower is not None):
            raise typer.BadParameter("give either --delta, or --delta-upper and --delta-lower, not both")
        whole = {} if self.delta is None else {"delta": self.delta}
        return whole | {"delta_upper": self.delta_upper, "delta_lower": self.delta_lower}


@dataclass(frozen=True)
class Stopping:
    """When to stop, if trials are read one by one; an option for each field."""

    until_width: Annotated[
        float | None,
        typer.Option(metavar="W", help="Read trial by trial and stop once the interval is this narrow."),
    ] = None
    until_upper: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="The same, once the upper limit is this low (with both options: once both hold).",
        ),
    ] = None
    at_most: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The same, or after this many trials.")
    ] = None
    follow: Annotated[
        bool, typer.Option("--follow", help="With a stopping rule: wait for the file to grow.")
    ] = False


@command(
    example="boundwatch certify trials.csv --success grasped -o certificate.json\n"
    "boundwatch certify episodes.parquet --reward return --cost-range -200 0 -o certificate.json\n"
    "boundwatch certify eval_info.json --by task -o certificates.json\n"
    "boundwatch certify --bounds 0 0.22216 --delta 0.01 -o certificate.json\n"
    "boundwatch certify trials.csv --success grasped --cost force --cost-range 0 50 -o metrics.json\n"
    "my-robot | boundwatch certify - --success ok --until-width 0.2 --at-most 200 -o certificate.json"
)
def certify(
    costs: OptionalCostsFile = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")],
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOWER UPPER",
            help="Use limits that somebody else proved, instead of COSTS; say with --delta how often "
            "they may fail.",
        ),
    ] = None,
    levels: Levels,
    method: Annotated[
        Literal["betting", "kl", "hoeffding", "exact"] | None,
        typer.Option(
            help="How the limits are derived; exact needs binary costs. Choose before you look at the costs. "
            "[default: exact for binary costs, else betting]"
        ),
    ] = None,
    binary: Annotated[
        bool | None,
        typer.Option(
            "--binary/--no-binary",
            help="Promise that costs are always 0 or 1, now and whenever the certificate is used, or say "
            "that values in between can occur. [default: binary for successes, and for costs if both 0 and 1 "
            "occur and nothing else]",
        ),
    ] = None,
    by: By = None,
    stopping: Stopping,
    reading: Reading,
    seed: Annotated[
        int | None, typer.Option(metavar="SEED", help="Seed behind the episodes, for the provenance.")
    ] = None,
    policy_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The policy's file; its SHA-256 is kept in the certificate."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="Private key (see keygen); also writes a signature, FILE.sig."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Certify a policy's expected cost from fresh episodes, or use limits proved elsewhere.

    The policy must not have been trained or selected on these episodes. With --by, every task gets a
    certificate and an equal share of delta. With a stopping rule (--until-width, --until-upper, --at-most)
    trials are read line by line, the interval is printed after each, and the limits hold whenever and however
    you stop; Ctrl-C ends it with a certificate, too. If all goes well, an existing certificate is replaced;
    any other file only with --force; an input file never.
    """
    deltas = levels.given
    warn_of_levels(deltas)
    files.protect(output, [costs, policy_file, sign], force=force)
    origin: dict[str, Any] = {"seed": seed, "policy": policy_file}
    if (bounds is None) == (costs is None):
        raise typer.BadParameter("give a file of costs, or --bounds LOWER UPPER for limits proved elsewhere")
    rule = StoppingRule(stopping.until_width, stopping.until_upper, stopping.at_most)
    read = None
    certificate: Certificate | CertificateFamily
    if bounds is not None:
        others = dataclasses.asdict(reading) | dataclasses.asdict(stopping) | {"by": by, "method": method}
        refuse(others, "goes with a file of costs, not with --bounds; leave it out")
        if levels.delta is None:
            raise typer.BadParameter("--bounds needs --delta: the probability with which either limit fails")
        origin |= {"lower": bounds[0], "upper": bounds[1], "delta": levels.delta}
        certificate = Certificate.from_bounds(**origin, binary=bool(binary))
    elif rule.given:
        refuse({"by": by, "method": method}, "does not go with a stopping rule; leave it out")
        run_campaign(
            str(costs),
            output,
            rule,
            reading,
            deltas=deltas,
            binary=binary,
            follow=stopping.follow,
            sign=sign,
            provenance=origin,
            as_json=as_json,
        )
        return
    else:
        refuse({"follow": stopping.follow}, "goes with --until-width, --until-upper or --at-most")
        read = reading.read_all(str(costs), by=by, binary=binary)
        settings = {**deltas, **origin, "method": method}
        certificate = (
            Certificate.from_held_out(read.sources[0], **settings)
            if read.by is None
            else CertificateFamily.from_held_out(read.parts, by=read.by, **settings)
        )
    sources = () if read is None else read.sources
    out.print_warnings(*sources)
    if sign is not None:
        signing.sign(output, certificate.to_dict(), sign)
    certificate.save(output)
    if as_json:
        out.print_json(certificate.to_dict())
        return
    print(f"Wrote {output}{out.signed(output, sign)}")
    print_promise(certificate, *(f"Costs: {out.describe_source(each)}." for each in sources))
