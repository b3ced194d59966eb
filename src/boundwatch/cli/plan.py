"""boundwatch plan: how many trials until a suspected shift would be noticed."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import Force, Json
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.detectors import Verdict
from boundwatch.planning import SIZES, Plan, TrialPlan
from boundwatch.planning import plan as make_plan
from boundwatch.planning.two_policies import ComparisonPlan, plan_comparison


@command(
    example="boundwatch plan --cost 0.1 --new-cost 0.3 --lab-trials 50 -n 20\n"
    "boundwatch plan --cost 0.1 --new-cost 0.1 --margin 0.2\n"
    "boundwatch plan --compare 0.1 0.25 --paired --correlation 0.2\n"
    "boundwatch plan certificate.json --cost 0.5 --plot power.png\n"
    "boundwatch plan certificate.json --costs pilot.csv -n 20"
)
def plan(
    certificate: Annotated[
        Path | None,
        typer.Argument(metavar="[CERTIFICATE]", help="Certificate, if there is one already."),
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            metavar="C",
            help="Suspected expected cost; powers are exact if new costs are 0 or 1. Without a certificate: "
            "the failure rate in the lab.",
        ),
    ] = None,
    new_cost: Annotated[
        float | None,
        typer.Option(metavar="C", help="Without a certificate: the failure rate at the new site."),
    ] = None,
    lab_trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Without a certificate: trials in the lab. [default: the best number]"
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="M", help="Without a certificate: plan for showing that the site is at most M worse."
        ),
    ] = None,
    compare: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="A B",
            help="Plan a comparison of two policies (boundwatch compare) by their failure rates.",
        ),
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="With --compare: trials will share seeds or scenes.")
    ] = False,
    correlation: Annotated[
        float,
        typer.Option(metavar="R", help="With --paired: correlation between the two outcomes of a pair."),
    ] = 0.0,
    horizon: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --compare: the largest number of trials of each, if fixed."),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(metavar="P", help="With --compare: error rate per side. [default: 0.05]")
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(metavar="COSTS", help="Or a sample of costs from the suspected world, to draw from."),
    ] = None,
    n: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            min=1,
            metavar="N",
            help="Also say the smallest shift noticed in N trials; repeatable. Without a certificate: the "
            "power of N trials at the new site.",
        ),
    ] = None,
    alpha_adverse: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Level of ADVERSE of every detector, for a cost above the certified ones. "
            "[default: that of each detector]",
        ),
    ] = None,
    alpha_benign: Annotated[
        float | None,
        typer.Option(metavar="P", help="The same for BENIGN, for a cost below the certified ones."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="SEED", min=0, help="Seed of the simulation that --costs needs.")
    ] = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw power against trials; .png, .svg or .pdf.")
    ] = None,
    *,
    reading: Reading,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say how many trials each detector needs to notice a shift.

    Also how long the sequential test takes on average, the information limit, and the smallest shift that
    a given number of trials can show. Without a certificate: how many trials to run in the lab and at the
    new site. Ask before you book the hardware.
    """
    if plot is not None:
        files.protect(plot, [certificate, costs], force=force)
    if compare is not None:
        others = (certificate, cost, new_cost, lab_trials, margin, costs, n, alpha_adverse, alpha_benign)
        if seed or any(value is not None for value in others):
            raise typer.BadParameter(
                "--compare goes with --paired, --correlation, --horizon, --alpha and --plot; leave the "
                "others out"
            )
        reading.refuse_without_costs()
        plan_of_two = plan_comparison(
            cost_a=compare[0],
            cost_b=compare[1],
            alpha=0.05 if alpha is None else alpha,
            paired=paired,
            correlation=correlation,
            horizon=horizon,
        )
        _plan_comparison(plan_of_two, plot, as_json)
        return
    if paired or correlation or horizon is not None or alpha is not None:
        raise typer.BadParameter("--paired, --correlation, --horizon and --alpha go with --compare A B")
    if certificate is None:
        if cost is None or new_cost is None or costs is not None or len(n or []) > 1 or alpha_benign:
            raise typer.BadParameter(
                "without a CERTIFICATE give --cost and --new-cost, and optionally --lab-trials, --margin, "
                "--alpha-adverse and one -n"
            )
        reading.refuse_without_costs()
        _plan_trials(
            make_plan(
                cost=cost,
                new_cost=new_cost,
                lab_trials=lab_trials,
                trials=n[0] if n else None,
                margin=margin,
                alpha=alpha_adverse,
            ),
            plot,
            as_json,
        )
        return
    if new_cost is not None or lab_trials is not None or margin is not None:
        raise typer.BadParameter(
            "--new-cost, --lab-trials and --margin are for planning without a CERTIFICATE"
        )
    loaded = Certificate.load(certificate)
    if (cost is None) == (costs is None):
        raise typer.BadParameter("give either --cost or --costs")
    episodes = None
    if costs is None:
        reading.refuse_without_costs()
    else:
        episodes = reading.read(costs, certificate=loaded, allow_own=True)
        out.print_warnings(episodes)
    sample = None if episodes is None else episodes.costs
    level = alpha_adverse if alpha_benign is None else alpha_benign
    answer = make_plan(loaded, cost=cost, costs=sample, alpha=level, sizes=tuple(n or SIZES), seed=seed)
    if (alpha_benign if answer.verdict is Verdict.ADVERSE else alpha_adverse) is not None:
        raise typer.BadParameter(
            f"expected cost {answer.cost:g} would be {answer.verdict.name}; "
            f"give --alpha-{answer.verdict.value} alone"
        )
    if plot is not None:
        from boundwatch.reporting import plots

        plots.save_figure(plots.plot_plan(answer), plot)
    if as_json:
        out.print_json(answer.to_dict() | ({} if episodes is None else out.source_fields(episodes)))
    else:
        _print_plan(answer)
        if episodes is not None:
            print(f"\n  costs: {out.describe_source(episodes)}")


def _plan_comparison(answer: ComparisonPlan, plot: Path | None, as_json: bool) -> None:
    if plot is not None:
        from boundwatch.reporting import comparison_plots, plots

        plots.save_figure(comparison_plots.plot_comparison_plan(answer), plot)
    if as_json:
        out.print_json(answer.to_dict())
        return
    kind = f"matched trials, correlation {answer.correlation:g}" if answer.paired else "independent trials"
    until = "" if answer.horizon is None else f", at most {answer.horizon} of each"
    print(f"Failure rates {answer.cost_a:g} and {answer.cost_b:g}, {kind}{until}\n")
    print(f"  {'trials of each policy':<38}{'mean':>8}{'50 %':>8}{'80 %':>8}{'90 %':>8}")
    most = answer.most_pairs
    rows = [("as asked", answer.mean_pairs, answer.trials)]
    rows += [
        (f"matched, correlation {each.correlation:g}", each.mean_pairs, each.trials)
        for each in answer.pairing
    ]
    for label, mean, trials in rows:
        cells = "".join(f"{f'> {most}' if value is None else value:>8}" for value in trials.values())
        print(f"  {label:<38}{mean:>8.1f}{cells}")
    limit = f" up to {answer.exact_pairs} trials of each; beyond, simulated"
    notes = [
        f"Until the right verdict, at level {answer.alpha:g} per side, read after every trial. Exact for "
        f"costs of 0 and 1{limit if answer.exact_pairs < most else ''}.",
        "Matched: trial i of both shares its seed or scene; scenes that are hard for both correlate them.",
    ]
    if answer.trials[0.9] is None:
        notes.append(f"The mean counts a run without a verdict as {most} trials.")
    out.print_section("Note", notes, bullet="- ")


def _plan_trials(answer: TrialPlan, plot: Path | None, as_json: bool) -> None:
    if plot is not None:
        from boundwatch.reporting import plots

        plots.save_figure(plots.plot_trials(answer), plot)
    if as_json:
        out.print_json(answer.to_dict())
        return
    print("\n".join(textwrap.wrap(answer.recommendation, 100)) + "\n")
    print(f"  {'one look, power of':<22}{'in the lab':>12}{'at the site':>13}{'in all':>9}")
    for power, booking in answer.bookings.items():
        cells = ("-", "-", "-")
        if booking is not None:
            about = "" if booking.exact else "~"
            cells = (f"{booking.lab:,}", f"{about}{booking.site:,}", f"{about}{booking.lab + booking.site:,}")
        print(f"  {f'{100 * power:.0f} %':<22}{cells[0]:>12}{cells[1]:>13}{cells[2]:>9}")
    if answer.watch_mean is not None:
        lab = answer.lab_trials or (answer.recommended.lab if answer.recommended else None)
        sites = answer.site_trials or (answer.recommended.site if answer.recommended else None)
        within = (
            ""
            if answer.watch_power is None
            else f", within {sites:,} with probability {100 * answer.watch_power:.0f} %"
        )
        print(
            f"\n  watch, read after every trial: with {lab:,} in the lab it alarms after "
            f"{answer.watch_mean:.1f} trials on average{within}"
        )
    notes = ["Exact for costs of 0 and 1; other costs of these means usually need fewer trials."]
    if any(booking is not None and not booking.exact for booking in answer.bookings.values()):
        notes = ["~: normal approximation, as there are too many trials to enumerate."]
    if answer.watch_mean is not None:
        notes.append("watch: averages count runs of at most 1,000 trials.")
    out.print_section("Note", notes, bullet="- ")


def _print_plan(answer: Plan) -> None:
    exactness = (
        "exact, for costs of 0 and 1"
        if answer.exact
        else f"simulated, each power ± {2 * answer.standard_error:.2f}"
    )
    print(f"Expected cost {answer.cost:.4g}: a shift to be called {answer.verdict.name} ({exactness})\n")
    print(f"  {'trials for a power of':<34}{'50 %':>7}{'80 %':>7}{'90 %':>7}{'95 %':>7}")
    for power in answer.powers:
        name = f"{power.detector}, {power.tail}"
        cells = "".join(f"{_number(value, answer):>7}" for value in power.trials.values())
        print(f"  {name:<34}{cells}   level {power.level:.3g}")
    sequential = answer.powers[-1]
    mean = (
        f"more than {sequential.mean_trials_at_least:.0f}"
        if sequential.mean_trials is None
        else f"{sequential.mean_trials:.1f}"
    )
    median = _number(sequential.median_trials, answer)
    print(
        f"\n  sequential test: alarm after {mean} trials on average, median {median}; "
        f"information limit {answer.information_limit:.1f}"
    )
    limit = "upper" if answer.verdict is Verdict.ADVERSE else "lower"
    beyond = "from the certified trials' mean" if answer.joint else f"beyond the certified {limit} limit"
    print(f"\n  smallest shift noticed with 90 % power, {beyond} (costs of 0 and 1)")
    tails = list(answer.smallest_shifts[0]["shift"])
    print(f"  {'trials':>8}" + "".join(f"{tail:>11}" for tail in tails))
    for row in answer.smallest_shifts:
        cells = "".join(
            f"{'-' if row['shift'][t] is None else format(row['shift'][t], '.3f'):>11}" for t in tails
        )
        print(f"  {row['n']:>8}{cells}")
    if answer.joint:
        notes = [
            "joint: what check and watch do with this certificate; their levels include its delta. The other "
            "tails compare with its limits (--tail).",
            "information limit: the average number of trials needed by a bettor who knew both failure rates.",
        ]
    else:
        notes = [
            "mixture: the sequential test, which may be read after every trial and bets on shifts of many "
            "sizes.",
            "information limit: the trials that one who knew the new costs' distribution would need on "
            "average, against the certified limit.",
        ]
        if answer.caveat is not None:
            notes.append("A held-out certificate of few costs is judged jointly, which usually needs fewer.")
    notes.append("'-': no shift is noticed with 90 % power in so few trials.")
    out.print_section("Note", notes, bullet="- ")
    if answer.caveat is not None:
        print(f"\n  {answer.caveat} (--costs)")


def _number(trials: int | None, answer: Plan) -> str:
    return f"> {answer.most_trials}" if trials is None else str(trials)
