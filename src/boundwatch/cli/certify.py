"""boundwatch certify: a held-out certificate from any cost file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
from boundwatch.cli.family import print_family
from boundwatch.cli.judge import warn_of_levels
from boundwatch.cli.options import By, Force, Json, OptionalCostsFile
from boundwatch.cli.reading import METRIC, Reading, refuse
from boundwatch.cli.root import command
from boundwatch.episodes.episodes import Episodes
from boundwatch.reporting import wording


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
    written = _Written(output, sign, as_json)
    provenance: dict[str, Any] = {"seed": seed, "policy": policy_file}
    if (bounds is None) == (costs is None):
        raise typer.BadParameter("give a file of costs, or --bounds LOWER UPPER for limits proved elsewhere")
    if costs is None or bounds is not None:
        others = dataclasses.asdict(reading) | dataclasses.asdict(stopping) | {"by": by, "method": method}
        refuse(others, "goes with a file of costs, not with --bounds; leave it out")
        written.write(_external(bounds, levels.delta, binary=bool(binary), **provenance))
        return
    rule = StoppingRule(stopping.until_width, stopping.until_upper, stopping.at_most)
    if rule.given:
        refuse({"by": by, "method": method}, "does not go with a stopping rule; leave it out")
        run_campaign(
            costs,
            output,
            rule,
            reading,
            deltas=deltas,
            binary=binary,
            follow=stopping.follow,
            sign=sign,
            provenance=provenance,
            as_json=as_json,
        )
        return
    if stopping.follow:
        raise typer.BadParameter("--follow goes with --until-width, --until-upper or --at-most")
    if metrics := reading.metrics(costs, by=by):
        others = {"method": method, "delta_upper": levels.delta_upper, "delta_lower": levels.delta_lower}
        refuse(
            others | {"binary": binary is not None},
            "does not go with several columns; leave it out, or give --delta",
        )
        family = _of_metrics(metrics, METRIC if by is None else f"{by}/{METRIC}", levels.delta, provenance)
        written.write(family, *metrics.values())
        return
    episodes = reading.read(costs, binary=binary, by=by)
    settings: dict[str, Any] = {**deltas, **provenance, "method": method}
    if by is None:
        written.write(Certificate.from_held_out(episodes, **settings), episodes)
    else:
        settings["binary"] = episodes.binary
        written.write(CertificateFamily.from_held_out(episodes.split(), by=by, **settings), episodes)


def _external(bounds: tuple[float, float] | None, delta: float | None, **others: Any) -> Certificate:
    """Return limits that somebody else proved."""
    if bounds is None or delta is None:
        raise typer.BadParameter("--bounds needs --delta: the probability with which either limit fails")
    lower, upper = bounds
    return Certificate.from_bounds(lower=lower, upper=upper, delta=delta, **others)


def _of_metrics(
    metrics: Mapping[str, Episodes], by: str, delta: float | None, provenance: dict[str, Any]
) -> CertificateFamily:
    """Certify each metric at its share of delta."""
    share = (0.01 if delta is None else delta) / len(metrics)
    return CertificateFamily(
        {name: Certificate.from_held_out(each, share, **provenance) for name, each in metrics.items()}, by
    )


@dataclass(frozen=True)
class _Written:
    """Where a certificate goes, and how it is shown."""

    output: Path
    sign: Path | None
    as_json: bool

    def write(self, certificate: Certificate | CertificateFamily, *read: Episodes) -> None:
        """Write a certificate, signed if asked for, and say what it promises."""
        out.print_warnings(*read)
        if self.sign is not None:
            signing.sign(self.output, certificate.to_dict(), self.sign)
        certificate.save(self.output)
        if self.as_json:
            out.print_json(certificate.to_dict())
            return
        print(f"Wrote {self.output}{out.signed(self.output, self.sign)}")
        basis = [f"Costs: {out.describe_source(each)}." for each in read]
        if isinstance(certificate, CertificateFamily):
            print_family(certificate)
            out.print_section("Basis", basis)
        else:
            out.print_section("Promise", wording.promise(certificate))
            out.print_section("Basis", [*wording.basis(certificate), *basis])
