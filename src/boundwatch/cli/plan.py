"""boundwatch plan: how many trials until a suspected shift would be noticed."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.file_options import ANSWERS, Reading
from boundwatch.cli.options import AT_LEAST_0, AT_LEAST_1, WrongUsage, refuse
from boundwatch.cli.root import command
from boundwatch.detectors import Verdict
from boundwatch.episodes.episodes import Episodes
from boundwatch.planning import (
    SIZES,
    ComparisonPlan,
    Plan,
    TasksPlan,
    TrialPlan,
    WidthPlan,
    plan_comparison,
    plan_tasks,
    plan_trials,
    plan_width,
)
from boundwatch.planning import plan as plan_against
from boundwatch.planning.power import MOST_TRIALS
from boundwatch.reporting.wording import percent

_OPTIONS = {
    "--audit": "audit CERTIFICATE n",
    "--width": "width cost tasks repeats correlation after delta seed",
    "--compare": "compare paired correlation horizon alpha plot",
    "a CERTIFICATE": "CERTIFICATE cost n alpha_adverse alpha_benign seed plot",
    "a plan without CERTIFICATE": "cost new_cost lab_trials margin alpha_adverse n plot",
}
"""The options of each question: whether policies differ, or whether a shift will be noticed."""
_MORE_LABELS = 10, 20, 50, 100
_USUAL = 50  # trials at a new site
_NOT_SIMULATED = "is for simulations, and nothing is simulated here; leave it out"
_JOINT_NOTE = "joint: new trials are judged together with this certificate's; the levels include its delta."


@command(
    example="boundwatch plan certificate.json --cost 0.5 --plot power.png\n"
    "boundwatch plan --cost 0.1 --new-cost 0.3 --lab-trials 50 -n 20\n"
    "boundwatch plan --cost 0.1 --new-cost 0.1 --margin 0.2\n"
    "boundwatch plan --compare 0.1 0.25 --paired --correlation 0.2\n"
    "boundwatch plan --width 0.1 --cost 0.3 --repeats 5 --correlation 0.3\n"
    "boundwatch plan --width 0.1 --after trials.csv --success grasped"
)
def plan(
    certificate: Path | None = None,
    *,
    cost: float | None = None,
    new_cost: float | None = None,
    lab_trials: Annotated[int | None, AT_LEAST_1] = None,
    margin: float | None = None,
    compare: tuple[float, float] | None = None,
    paired: bool = False,
    correlation: float = 0.0,
    horizon: int | None = None,
    alpha: float | None = None,
    width: float | None = None,
    tasks: Annotated[int | None, AT_LEAST_1] = None,
    repeats: Annotated[int | None, AT_LEAST_1] = None,
    after: str | None = None,
    delta: float | None = None,
    n: Annotated[list[int] | None, AT_LEAST_1] = None,
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    seed: Annotated[int | None, AT_LEAST_0] = None,
    plot: Path | None = None,
    audit: bool = False,
    reading: Reading,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Say how many trials check and watch need to notice a shift.

    Also the smallest shift that a given number of trials can show. Without a certificate: how many trials to
    run in the lab and at the new site. Ask before you book the hardware.

    Options
    -------
    certificate [CERTIFICATE]: Certificate, if there is one already.
    cost C: Suspected failure rate or mean cost (left out: the least that -n or 50 trials notice); without a
        certificate: the lab's.
    new_cost C: Without a certificate: failure rate at the new site.
    lab_trials N: The same: trials in the lab. [default: the best number]
    margin M: The same: show that the site is at most M worse.
    compare A B: Compare two policies with these failure rates.
    paired: With --compare: trials will share seeds or scenes.
    correlation R: With --paired: correlation of the outcomes of a pair; with --repeats: of two in a scene.
    horizon N: With --compare: most trials of each, if fixed.
    alpha P: With --compare: error rate per side. [default: 0.05]
    width W: Trials until a failure rate is known within ± W.
    tasks N: With --width: tasks that share the trials.
    repeats N: With --width: repeats of a scene; says how many scenes.
    after COSTS: With --width: how many more, given these trials.
    delta P: With --width: chance that either limit fails. [default: 0.01]
    n N: Smallest shift noticed in N trials, or the power of N at a new site; with --audit: N labels in all.
    alpha_adverse P: Level of ADVERSE, for a cost above the certified ones.
    alpha_benign P: Level of BENIGN, for a cost below the certified ones.
    seed SEED: Seed of simulations (--repeats). [default: 0]
    plot FILE: Draw power against trials; .png, .svg or .pdf.
    audit: How much narrower more labels make the CERTIFICATE of an audit.
    """
    given = locals() | {"correlation": correlation or None, "CERTIFICATE": certificate}  # 0 is the usual one
    out.protect({"plot": plot}, [certificate], force=force)
    if after is None:
        refuse(vars(reading), "goes with --after; give it, or leave this out")
    without = "a plan without CERTIFICATE" if certificate is None else "a CERTIFICATE"
    asked = {"audit": audit, "width": width is not None, "compare": compare is not None}
    question = next((f"--{name}" for name, is_asked in asked.items() if is_asked), without)
    _refuse_others(question, given)
    if audit:
        _plan_audit(certificate, n, as_json=as_json)
        return
    answer: Plan | TasksPlan | TrialPlan | ComparisonPlan | WidthPlan
    episodes: tuple[Episodes, ...] = ()
    if width is not None:
        said = {"tasks": tasks, "repeats": repeats, "correlation": correlation or None, "cost": cost}
        episodes, answer = _plan_width(width, after, reading, said, {"delta": delta, "seed": seed})
        refuse({"seed": seed if answer.seed is None else None}, _NOT_SIMULATED)
    elif compare is not None:
        pairs: dict[str, Any] = {"paired": paired, "correlation": correlation, "horizon": horizon}
        pairs["alpha"] = 0.05 if alpha is None else alpha
        answer = plan_comparison(cost_a=compare[0], cost_b=compare[1], **pairs)
        out.draw(plot, "plot_comparison_plan", answer)
    elif certificate is None:
        if cost is None or new_cost is None or len(n or []) > 1:
            raise WrongUsage("without a CERTIFICATE give --cost and --new-cost, and at most one -n")
        booked: dict[str, Any] = {"lab_trials": lab_trials, "trials": n[0] if n else None, "margin": margin}
        answer = plan_trials(cost=cost, new_cost=new_cost, alpha=alpha_adverse, **booked)
        out.draw(plot, "plot_trials", answer)
    else:
        loaded = Certificate.load(certificate)
        answer = _plan_against(loaded, _noticed(loaded, given) if cost is None else cost, given)
    out.print_warnings(*episodes)
    if as_json:
        out.print_json(answer.to_dict() | (out.source_fields(*episodes) if episodes else {}))
        return
    if isinstance(answer, Plan) and cost is None:
        seen = f"{_notice(n)} a failure rate of {percent(answer.cost)} or more with a probability of 90 % in "
        print(f"{seen}one look (check); --cost plans for another rate.\n")
    _PRINT[type(answer)](answer)
    for each in episodes:
        print(f"\n  costs: {out.describe_source(each)}")


def _refuse_others(question: str, given: dict[str, Any]) -> None:
    others = set(" ".join(_OPTIONS.values()).split()) - set(_OPTIONS[question].split())
    for name in (each for each in given if each in others):
        remedy = "say it as --cost" if (name, question) == ("new_cost", "a CERTIFICATE") else "leave it out"
        refuse({name: given[name]}, f"does not go with {question}; {remedy}")
    for name in ("alpha_adverse", "alpha_benign"):
        check_level(0.05 if given[name] is None else given[name], name)


def _plan_audit(path: Path | None, sizes: list[int] | None, *, as_json: bool) -> None:
    from boundwatch.evaluation.audit import width_with

    loaded = None if path is None else Certificate.load(path)
    if loaded is None or loaded.audit is None:
        raise WrongUsage("--audit needs the CERTIFICATE of an audit: certify --judge --labels writes one")
    kept, had = loaded.audit, loaded.audit.n
    judged = had if kept.counts is None else sum(kept.counts.judged)
    later = sizes or [had + more for more in _MORE_LABELS if had + more <= judged]
    for each in later:
        if not had < each <= judged:
            raise WrongUsage(
                f"-n {each}: there are {had} labels of {judged} judged episodes; give one between"
            )
    widths = {had: loaded.upper - loaded.lower}
    widths |= {each: width_with(kept, each, loaded.delta_lower, loaded.delta_upper) for each in later}
    if as_json:
        out.print_json({"labels": had, "judged": judged, "widths": widths})
        return
    print(f"You have {had} labels of {judged} judged episodes; more are supposed to be like them.\n")
    _print_row("labels", 30, map(str, widths), 7)
    _print_row("from limit to limit, points", 30, (f"{100 * width:.1f}" for width in widths.values()), 7)


def _print_comparison(answer: ComparisonPlan) -> None:
    kind = f"matched trials, correlation {answer.correlation:g}" if answer.paired else "independent trials"
    until = "" if answer.horizon is None else f", at most {answer.horizon} of each"
    print(f"Failure rates {answer.cost_a:g} and {answer.cost_b:g}, {kind}{until}\n")
    _print_row("trials of each policy", 38, ["mean", "50 %", "80 %", "90 %"], 8)
    most = answer.most_pairs
    cells = [f"{answer.mean_pairs:.1f}", *(_number(each, most) for each in answer.trials.values())]
    _print_row("until the right verdict", 38, cells, 8)
    notes = [
        f"At level {answer.alpha:g} per side, read after every trial. Exact for costs of 0 and 1.",
        "Matched: trial i of both shares its seed or scene; scenes that are hard for both correlate them.",
    ]
    if answer.trials[0.9] is None:
        notes.append(f"The mean counts a run without a verdict as {most} trials.")
    out.print_section("Note", notes, bullet="- ")


def _noticed(loaded: Certificate, given: dict[str, Any]) -> float:
    """Return the least failure rate that -n trials notice, where nobody said which one is suspected."""
    answer = None
    if loaded.binary and not loaded.strata:
        answer = plan_against(
            loaded, cost=1, alpha=given["alpha_adverse"], sizes=(given["n"] or [_USUAL])[:1]
        )
    shift = None if answer is None else answer.smallest_shifts[0]["shift"]["check"]
    if answer is None:
        raise WrongUsage("with this CERTIFICATE give --cost, the failure rate or mean cost that you suspect")
    if shift is None:
        raise WrongUsage(f"{_notice(given['n'])} no shift with 90 % power; give a larger -n")
    least = ((loaded.mean_cost or 0.0) if answer.joint else loaded.upper) + float(shift)
    return min(math.ceil(1000 * least) / 1000, 1.0)


def _notice(sizes: list[int] | None) -> str:
    size = (sizes or [_USUAL])[0]
    return "1 trial notices" if size == 1 else f"{size} trials notice"


def _plan_against(loaded: Certificate, cost: float, given: dict[str, Any]) -> Plan | TasksPlan:
    adverse, benign = (given[name] for name in ("alpha_adverse", "alpha_benign"))
    if loaded.strata:
        unused = {name: given[name] for name in ("n", "alpha_benign", "plot")}
        refuse(unused, "does not go with the certificate of a mean over tasks; leave it out")
        return plan_tasks(loaded, cost, adverse, given["seed"] or 0)
    refuse({"seed": given["seed"]}, _NOT_SIMULATED)
    either = adverse if benign is None else benign
    answer = plan_against(loaded, cost=cost, alpha=either, sizes=given["n"] or SIZES)
    wrong = {"alpha_adverse": adverse, "alpha_benign": benign}
    del wrong[f"alpha_{answer.verdict.value}"]
    alone = f"give --alpha-{answer.verdict.value} alone"
    refuse(wrong, f"is of no use: {answer.cost:g} would be {answer.verdict.name}; {alone}")
    out.draw(given["plot"], "plot_plan", answer)
    return answer


def _plan_width(
    width: float, after: str | None, reading: Reading, said: dict[str, Any], others: dict[str, Any]
) -> tuple[tuple[Episodes, ...], WidthPlan]:
    given = {name: value for name, value in (said | others).items() if value is not None}
    if after is None:
        return (), plan_width(width, **given)
    refuse(said, "does not go with --after, whose trials say it; leave it out")
    episodes = reading.read(after, answers=("count", *ANSWERS))
    return (episodes,), plan_width(width, **given, after=episodes)


def _print_width(answer: WidthPlan) -> None:
    print("\n".join(textwrap.wrap(str(answer), 100)))
    if answer.scenes:
        print(f"\n  {'trials on each scene':<22}{'scenes':>8}{'trials':>9}")
        for repeats, scenes in answer.scenes.items():
            print(f"  {repeats:<22}{scenes:>8,}{repeats * scenes:>9,}")
    notes = ["Exact for outcomes of 0 and 1 and a number of trials fixed in advance, as certify takes it."]
    if answer.scenes:
        alike = f"two trials of a scene are correlated by {answer.correlation:.2g}"
        notes = [f"Simulated, seed {answer.seed}; {alike}."]
        if answer.had:
            notes.append(
                f"The {answer.had} trials so far told the rate and that; these scenes are a new series."
            )
    elif answer.had:
        until = f"the limits of certify --until-width {2 * answer.within:g}, which hold after every trial"
        notes = [f"As these trials were seen, go on with {until}; the rate is supposed to stay as it was."]
        if answer.counted:
            notes.append("That needs a row per trial, in the order in which they were run: counts have none.")
        if answer.seed is not None:
            notes.append(f"Simulated, seed {answer.seed}.")
    if answer.each_task is not None:
        notes.append(f"For each task's own rate within that, run {answer.each_task:,} trials of each.")
    out.print_section("Note", notes, bullet="- ")


def _print_tasks(answer: TasksPlan) -> None:
    print("\n".join(textwrap.wrap(str(answer), 100)) + "\n")
    _print_row("rounds for a power of", 26, [f"{100 * power:.0f} %" for power in answer.check], 8)
    for name in ("check", "watch"):
        _print_row(name, 26, [_number(each, 256) for each in getattr(answer, name).values()], 8)
    notes = [
        f"Simulated, 100 runs, seed {answer.seed}; in a round each task is run once.",
        "watch looks after rounds 1, 2, 4, 8, ...; single tasks are paid for.",
    ]
    out.print_section("Note", notes, bullet="- ")


def _print_trials(answer: TrialPlan) -> None:
    print("\n".join(textwrap.wrap(answer.recommendation, 100)) + "\n")
    print(f"  {'one look, power of':<22}{'in the lab':>12}{'at the site':>13}{'in all':>9}")
    notes = ["Exact for costs of 0 and 1; other costs of these means usually need fewer trials."]
    for power, booking in answer.bookings.items():
        lab = site = both = "-"
        if booking is not None:
            about = "" if booking.exact else "~"
            lab, site = f"{booking.lab:,}", f"{about}{booking.site:,}"
            both = f"{about}{booking.lab + booking.site:,}"
            if not booking.exact:
                notes = ["~: approximated, as there are too many trials to enumerate."]
        print(f"  {f'{100 * power:.0f} %':<22}{lab:>12}{site:>13}{both:>9}")
    out.print_section("Note", notes, bullet="- ")


def _print_plan(answer: Plan) -> None:
    (check, watch), most = answer.powers, MOST_TRIALS
    look, read = (_number(each.trials[0.9], most) for each in (check, watch))
    at = f"at an expected cost of {answer.cost:.4g}"
    if answer.caveat is None:  # costs of 0 and 1
        at = f"if {percent(answer.cost)} of trials fail"
    exact = "exact" if answer.caveat is None else "exact, for costs of 0 and 1"
    print(
        f"Run {look} trials and look once (check), or at most {read} and look after each (watch): {at}, "
        f"the verdict is then {answer.verdict.name} with a probability of 90 % ({exact}).\n"
    )
    _print_row("trials for a power of", 34, ["50 %", "80 %", "90 %", "95 %"], 7)
    for name, power in {"check": check, "watch": watch}.items():
        cells = [_number(value, most) for value in power.trials.values()]
        _print_row(f"{name} ({power.tail})", 34, cells, 7, f"   level {power.level:.3g}")
    never = "no mean, as some runs have no alarm in as many trials as were computed"
    mean = f"{watch.mean_trials:.1f} on average" if watch.mean_trials else never
    print(f"\n  watch: trials to the alarm: median {_number(watch.median_trials, most)}, {mean}")
    limit = "upper" if answer.verdict is Verdict.ADVERSE else "lower"
    beyond = "from the certified trials' mean" if answer.joint else f"beyond the certified {limit} limit"
    print(f"\n  smallest shift noticed with 90 % power, {beyond} (costs of 0 and 1)")
    _print_row("  trials", 8, answer.smallest_shifts[0]["shift"], 11)
    for row in answer.smallest_shifts:
        shifts = ("-" if shift is None else f"{shift:.3f}" for shift in row["shift"].values())
        _print_row(f"{row['n']:>8}", 8, shifts, 11)
    notes = [_JOINT_NOTE] if answer.joint else []
    notes.append("'-': no shift is noticed with 90 % power in so few trials.")
    out.print_section("Note", notes, bullet="- ")
    if answer.caveat is not None:
        print(f"\n  {answer.caveat}")


def _print_row(label: str, width: int, cells: Iterable[str], each: int, end: str = "") -> None:
    print(f"  {label:<{width}}" + "".join(f"{cell:>{each}}" for cell in cells) + end)


def _number(trials: int | None, most: int) -> str:
    return f"> {most}" if trials is None else str(trials)


_PRINT: dict[type, Callable[[Any], None]] = {
    Plan: _print_plan,
    TasksPlan: _print_tasks,
    TrialPlan: _print_trials,
    ComparisonPlan: _print_comparison,
    WidthPlan: _print_width,
}
