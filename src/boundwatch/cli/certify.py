"""boundwatch certify: a held-out certificate from any cost file."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch._support import files
from boundwatch.certificates import signing
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.campaign import StoppingRule, run_campaign
from boundwatch.cli.family import print_family
from boundwatch.cli.judge import warn_of_levels
from boundwatch.cli.options import By, Force, Json, OptionalCostsFile
from boundwatch.cli.reading import METRIC, Reading, refuse
from boundwatch.cli.root import command
from boundwatch.reporting import wording


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
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability with which either limit may fail, half of it on each side. [default: 0.01]",
        ),
    ] = None,
    delta_upper: Annotated[
        float | None,
        typer.Option(metavar="P", help="The same for the upper limit alone, instead of --delta."),
    ] = None,
    delta_lower: Annotated[
        float | None,
        typer.Option(metavar="P", help="The same for the lower limit alone, instead of --delta."),
    ] = None,
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
    until_width: Annotated[
        float | None,
        typer.Option(metavar="W", help="Read trial by trial and stop once the interval is this narrow."),
    ] = None,
    until_upper: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="The same, once the upper limit is this low (with both options: once both hold).",
        ),
    ] = None,
    at_most: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The same, or after this many trials.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="With a stopping rule: wait for the file to grow.")
    ] = False,
    reading: Reading,
    seed: Annotated[
        int | None, typer.Option(metavar="SEED", help="Seed behind the episodes, for the provenance.")
    ] = None,
    policy: Annotated[
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
    if delta is not None and (delta_upper is not None or delta_lower is not None):
        raise typer.BadParameter("give either --delta, or --delta-upper and --delta-lower, not both")
    warn_of_levels({"delta": delta, "delta_upper": delta_upper, "delta_lower": delta_lower})
    files.protect(output, [costs, policy, sign], force=force)
    if (bounds is None) == (costs is None):
        raise typer.BadParameter("give a file of costs, or --bounds LOWER UPPER for limits proved elsewhere")
    if costs is None or bounds is not None:
        if bounds is None or delta is None:
            raise typer.BadParameter("--bounds needs --delta: the probability with which either limit fails")
        others = {"until_width": until_width, "until_upper": until_upper, "at_most": at_most}
        refuse(
            dataclasses.asdict(reading) | {"by": by, "method": method, **others, "follow": follow or None},
            "goes with a file of costs, not with --bounds; leave it out",
        )
        lower, upper = bounds
        taken = Certificate.from_bounds(
            lower=lower, upper=upper, delta=delta, binary=bool(binary), seed=seed, policy=policy
        )
        _write(taken, output, sign, as_json)
        return
    rule = StoppingRule(until_width, until_upper, at_most)
    if rule.given:
        if by is not None or method is not None:
            raise typer.BadParameter("--by and --method do not go with a stopping rule; leave them out")
        run_campaign(
            costs,
            output,
            rule,
            reading,
            deltas={
                **({} if delta is None else {"delta": delta}),
                "delta_upper": delta_upper,
                "delta_lower": delta_lower,
            },
            binary=binary,
            follow=follow,
            sign=sign,
            provenance={"seed": seed, "policy": policy},
            as_json=as_json,
        )
        return
    if follow:
        raise typer.BadParameter("--follow goes with --until-width, --until-upper or --at-most")
    if metrics := reading.metrics(costs, by=by):
        if any(value is not None for value in (binary, method, delta_upper, delta_lower)):
            raise typer.BadParameter(
                "--binary, --method, --delta-upper and --delta-lower do not go with several columns; leave "
                "them out, or give --delta"
            )
        for each in metrics.values():
            out.print_warnings(each)
        family = CertificateFamily(
            {
                name: Certificate.from_held_out(
                    each.costs,
                    (0.01 if delta is None else delta) / len(metrics),
                    binary=each.binary,
                    seed=seed,
                    policy=policy,
                    measured=each.measured,
                    cost_range=each.cost_range,
                )
                for name, each in metrics.items()
            },
            METRIC if by is None else f"{by}/{METRIC}",
        )
        _write(
            family, output, sign, as_json, *(f"Costs: {out.describe_source(e)}." for e in metrics.values())
        )
        return
    episodes = reading.read(costs, binary=binary, by=by)
    settings: dict[str, Any] = {
        **({} if delta is None else {"delta": delta}),
        "method": method,
        "binary": episodes.binary,
        "delta_upper": delta_upper,
        "delta_lower": delta_lower,
        "seed": seed,
        "policy": policy,
        "measured": episodes.measured,
        "cost_range": episodes.cost_range,
    }
    certificate: Certificate | CertificateFamily
    if by is None:
        certificate = Certificate.from_held_out(episodes.costs, **settings)
    else:
        certificate = CertificateFamily.from_held_out(episodes.by_task(), by=by, **settings)
    out.print_warnings(episodes)
    _write(certificate, output, sign, as_json, f"Costs: {out.describe_source(episodes)}.")


def _write(
    certificate: Certificate | CertificateFamily, output: Path, sign: Path | None, as_json: bool, *basis: str
) -> None:
    """Write a certificate, signed if asked for, and say what it promises."""
    if sign is not None:
        signing.sign(output, certificate.to_dict(), sign)
    certificate.save(output)
    if as_json:
        out.print_json(certificate.to_dict())
        return
    print(f"Wrote {output}{out.signed(output, sign)}")
    if isinstance(certificate, CertificateFamily):
        print_family(certificate)
        out.print_section("Basis", basis)
    else:
        out.print_section("Promise", wording.promise(certificate))
        out.print_section("Basis", [*wording.basis(certificate), *basis])
