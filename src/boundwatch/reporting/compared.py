"""Comparisons and rankings in words, and as one page that can be signed; what notebooks show of objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from boundwatch._support.validation import check_costs, shortest
from boundwatch._version import __version__
from boundwatch.certificates.record import costs_digest
from boundwatch.comparison import ComparedTasks, ComparisonFinding, ComparisonVerdict, Ranking
from boundwatch.reporting import page, svg, wording
from boundwatch.reporting.families import Table, name_first
from boundwatch.reporting.report import signature
from boundwatch.reporting.wording import at_most, ceiling, count, floor, percent, percents, points, upward

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Names = tuple[str, str]
_SHOWN = 8
_METHODS = {
    "exact": "exact unconditional test (Boschloo)",
    "sign test": "exact sign test on the pairs that differ",
    "betting": "betting",
    "stratified": "exact test of all tasks together",
    "weighted": "Chernoff's bound on the mean over tasks",
    "audit": "the labels of an audit, whatever the judge said",
}
_TOGETHER = {
    True: "Trial i of one policy and trial i of the other shared their seed, scene or task.",
    False: "Trials were independent. If trial i of both policies shared its seed, scene or task, say so "
    "(--paired): it usually saves trials, and the error rate above holds only for independent ones.",
}


def comparison_headline(finding: ComparisonFinding | ComparedTasks, names: Names | None = None) -> str:
    """Say in one sentence which policy is better."""
    overall, names = finding.overall, names or finding.overall.names
    verb = "fails less often" if overall.binary else "costs less"
    if overall.verdict is ComparisonVerdict.UNDECIDED:
        if overall.call.name == "REGRESSED":  # and improved
            return f"UNDECIDED: each of {names[0]} and {names[1]} {verb} on some task"
        return f"UNDECIDED: not enough evidence that either of {names[0]} and {names[1]} {verb}"
    better, worse = names if overall.verdict is ComparisonVerdict.A_BETTER else names[::-1]
    where = " on some task" if _is_of_some_task(overall) else ""
    where = f", since {_alarm(overall)}" if _fell_back(overall) else where
    return f"{overall.verdict.name}: evidence that {better} {verb} than {worse}{where}"


def _is_of_some_task(finding: ComparisonFinding) -> bool:
    """Return whether a verdict says that a policy is better on some task, not in the mean over all."""
    return finding.method == "stratified" or (finding.method == "sign test" and finding.tasks > 1)


def _alarm(finding: ComparisonFinding) -> str:
    """Say at which trial the verdict was reached."""
    return f"{'new trial' if finding.finished else 'pair'} {finding.first_alarm}"


def _fell_back(finding: ComparisonFinding) -> bool:
    """Return whether a verdict stands although the limits, of all trials, do not exclude 0."""
    looks = finding.n_b if finding.finished else finding.pairs or 0
    still = finding.difference_lower <= 0 <= finding.difference_upper
    return finding.first_alarm is not None and finding.first_alarm < looks and still


def comparison_evidence(finding: ComparisonFinding, names: Names | None = None) -> list[tuple[str, str]]:
    """Return what a comparison found as labeled lines."""
    a, b = names = names or finding.names
    rows = [
        *zip(names, _outcomes(finding), strict=True),
        ("compared", _compared(finding, names)),
        ("difference", difference(finding, names)),
        (f"{a} better", _strength(finding.e_a_better, finding.p_a_better)),
        (f"{b} better", _strength(finding.e_b_better, finding.p_b_better)),
    ]
    if finding.first_alarm is not None:
        rows.append(("verdict", f"reached at {_alarm(finding)}"))
    if (saved := finding.saved_trials) is not None:
        rows.append(("predictions", wording.saved_trials(saved, " of each")))
    if finding.margin:
        shown = "shown" if finding.no_worse else "not shown"
        most = f"{b} costs at most {finding.margin:g} more than {a}"
        if finding.binary:
            most = f"{b} fails at most {points(finding.margin, 'nearest')} more often than {a}"
        rows.append(("no worse", f"{shown}: {most}{' in the mean over tasks' if finding.tasks > 1 else ''}"))
    for name, alone in zip(names, (finding.unmatched_a, finding.unmatched_b), strict=True):
        if alone:
            keys = ", ".join(alone[:_SHOWN]) + (", ..." if len(alone) > _SHOWN else "")
            rows.append(("no partner", f"{count(len(alone), 'trial')} of {name} left out: {keys}"))
    return [*rows, ("guarantee", _guarantee(finding, names))]


def difference(finding: ComparisonFinding, names: Names) -> str:
    """Say the limits on the difference, rounded outward; in failures where costs are 0 or 1."""
    (a, b), said = names, _span(finding)
    if not finding.binary:
        return f"the expected cost of {b} minus that of {a} is between {said.replace(' to ', ' and ')}"
    mean = " in the mean over tasks" if finding.tasks > 1 else ""
    if finding.difference_lower < 0 < finding.difference_upper:
        less, more = (part.split()[0] for part in said.split(" to "))
        said = f"at most {less} points less often and at most {more} points more often"
        return f"{b} fails {said} than {a}{mean}"
    number, _, word = said.rpartition(" ")
    return f"{b} fails {number} points {word} often than {a}{mean}"


def _span(finding: ComparisonFinding) -> str:
    """Say the limits on the difference in a cell of a table; in points where costs are 0 or 1."""
    low, high = finding.difference_lower, finding.difference_upper
    if not finding.binary:
        return f"{floor(low, '+')} to {ceiling(high, '+')}"
    bare = [points(abs(end), way).removesuffix(" points") for end, way in ((low, "up"), (high, "up"))]
    if low < 0 < high:
        return f"{bare[0]} less to {bare[1]} more"
    least, most = sorted((abs(low), abs(high)))
    return f"{points(least).removesuffix(' points')} to {bare[high == most]} {'more' if low >= 0 else 'less'}"


def _guarantee(finding: ComparisonFinding, names: Names) -> str:
    ever, always = ("ever ", " at all times") if finding.method == "anytime" else ("", "")
    where = f" in the mean over the {finding.tasks} tasks" if finding.tasks > 1 else ""
    where = " on any task" if _is_of_some_task(finding) else where
    return (
        f"if {names[0]} is not better{where}, A_BETTER is {ever}declared with probability at most "
        f"{finding.alpha:g}; likewise for {names[1]}. Each limit on the difference holds{always} with "
        f"probability at least {1 - finding.alpha:g}."
    )


def _compared(finding: ComparisonFinding, names: Names) -> str:
    if finding.method != "anytime":
        what = "all trials of both" if finding.pairs is None else count(finding.pairs, "matched pair")
        tasks = f", {finding.tasks} tasks" if finding.tasks > 1 else ""
        return f"{what}, once{tasks}: {_METHODS[finding.method]}"
    if finding.finished:
        return f"all trials of both; {names[0]} was finished, in a planned number, before {names[1]} began"
    pairs = finding.pairs or 0
    said = f"{count(pairs, 'pair')} of {'matched' if finding.paired else 'independent'} trials"
    if finding.tasks > 1:
        said += f", in {count(pairs // finding.tasks, 'complete turn')} of {finding.tasks} tasks"
    if ahead := abs(finding.n_a - finding.n_b):
        leader = names[0] if finding.n_a > finding.n_b else names[1]
        said += f"; {count(ahead, 'more trial')} of {leader} {'wait' if ahead > 1 else 'waits'}"
        if finding.binary and not finding.paired and finding.tasks == 1 and finding.horizon is None:
            given = "" if leader == names[0] else f", with {leader} given first"
            said += f" (--finished{given}: they ran first, in a number fixed beforehand, and all count)"
    return said


def _strength(e_value: float | None, p_value: float) -> str:
    if e_value is None:
        return f"p-value {upward(p_value)}"
    return f"e-value {e_value:.3g}, anytime p-value {at_most(p_value)}"


def _outcomes(finding: ComparisonFinding) -> Iterator[str]:
    """Yield what was seen of each policy."""
    both = (finding.n_a, finding.mean_cost_a), (finding.n_b, finding.mean_cost_b)
    for (n, mean), failed in zip(both, finding.failed or (0, 0), strict=True):
        if mean is None:
            yield "no trials yet"
        elif finding.method == "audit":
            yield f"about {percent(mean)} of {count(n, 'trial')} failed"
        elif finding.binary:
            over = "" if abs(failed - mean * n) < 0.5 else " in the mean over tasks"
            yield f"{count(failed, 'failure')} in {count(n, 'trial')} ({percent(mean)}{over})"
        else:
            yield f"mean cost {shortest(round(mean, 4))} over {count(n, 'trial')}"


def _pictures(compared: ComparisonFinding | ComparedTasks, names: Names) -> Iterator[page.Html]:
    """Yield what was seen of both policies, overall and on each task, and the limits on the difference."""
    overall, seen, differences = compared.overall, [], []
    scale = 100 if overall.binary else 1
    for task, each in compared.rows.items():
        limits, more = each.gain
        if more is None:
            return
        differences.append((task, [scale * value for value in (more, *limits)]))
        for name, (mean, ends) in zip(names, each.outcomes, strict=True):
            values = [scale * value for value in (mean or 0.0, *(ends or [mean or 0.0] * 2))]
            seen.append((f"{task}, {name}" if len(compared.rows) > 1 else name, values))
    what, unit = ("success rate in %", "success rate, in points") if overall.binary else ("mean cost", "cost")
    sure = f"{100 * (1 - 2 * overall.alpha):g} % intervals"
    lines = f"; lines are {sure}, each its own" if ends else ""
    yield page.figure(svg.draw_limits(seen, (0, scale), what), f"Diamonds are the {what}{lines}.")
    said = f"{unit}: {names[1]} minus {names[0]}"
    always = " that hold at all times" if overall.method == "anytime" else ""
    yield page.figure(svg.draw_limits(differences, (-scale, scale), said), f"Lines are {sure}{always}.")


def summary(compared: ComparisonFinding | ComparedTasks, names: Names | None = None) -> dict[str, Any]:
    """Return the answer and what was seen of each policy, as JSON has them beside the numbers."""
    names = names or compared.overall.names
    seen = dict(zip(names, _outcomes(compared.overall), strict=True))
    return {"headline": comparison_headline(compared, names), "seen": seen}


def comparison_notes(finding: ComparisonFinding) -> list[str]:
    """Say what must be true, and what the result does not say."""
    once = finding.method != "anytime"
    notes = [
        "Both policies were final before their trials ran. "
        "If one was picked as the best of several on these trials, give all of them.",
    ]
    if once:
        notes.append(
            "The numbers of trials were planned beforehand, and this is the only look. "
            "If trials may be added after a look, compare without --once (PolicyComparison)."
        )
    asked = finding.method != "audit" and not (once and finding.paired)
    notes += [_TOGETHER[finding.paired]] if asked else []
    notes += _about_tasks(finding)
    undecided = finding.verdict is ComparisonVerdict.UNDECIDED
    if undecided and finding.call.name == "REGRESSED":
        notes.append("Each policy is better on some task; more trials do not change that.")
    elif undecided:
        notes.append("UNDECIDED does not mean that they are equally good; more trials may tell them apart.")
    elif _fell_back(finding):
        notes.append(
            f"The verdict at {_alarm(finding)} stands; limits and e-values are of all trials, "
            "and may fall back after it."
        )
    elif finding.difference_lower <= 0 <= finding.difference_upper:
        notes.append("The verdict comes from a sharper test than the limits, which do not exclude 0 yet.")
    if undecided and not once and finding.horizon is None:
        notes.append(
            "If the numbers of trials were planned beforehand and nobody looked before, --once "
            "(compare_once) is allowed: one sharper look at all, and no trial may be added after it."
        )
    if finding.horizon is not None and (finding.pairs or 0) >= finding.horizon:
        notes.append(f"The horizon of {finding.horizon} pairs is reached; more trials change no verdict.")
    return notes


def _about_tasks(finding: ComparisonFinding) -> list[str]:
    if finding.tasks == 1:
        return []
    if finding.method == "anytime":
        return [
            "Tasks take turns, and there is a look after each complete turn: this is about the mean over the "
            "tasks, and says nothing about one of them; --once (compare_once) has a table of them. Trials of "
            "different tasks are independent."
        ]
    if _is_of_some_task(finding):
        return [
            "The overall verdict (REGRESSED, IMPROVED) says that a policy is better on some task, not in the "
            "mean over them; the limits and the margin are about the mean.",
            "SUSPECT, HELD and a task's limits are about that task alone; adjusted p-values allow for all.",
        ]
    return ["The overall verdict and limits are about the mean over the tasks."]


def task_table(compared: ComparisonFinding | ComparedTasks) -> Table:
    """Return header and rows, all tasks together first: what LeRobot's table calls it, and what was seen."""
    overall = compared.overall
    what = ("failed", "fails (points)") if overall.binary else ("mean cost", "costs")
    seen = [f"{name}: {what[0]}" for name in overall.names]
    rows = []
    for task, each in compared.rows.items():
        both = ((each.mean_cost_a or 0.0, each.n_a), (each.mean_cost_b or 0.0, each.n_b))
        cells = [f"{mean:.3f} ({n})" for mean, n in both]
        if each.failed is not None:
            cells = [f"{failed}/{n}" for failed, (_, n) in zip(each.failed, both, strict=True)]
        needed = "" if each.episodes_needed is None else f"about {each.episodes_needed:,}"
        p_values = {"REGRESSED": each.p_a_better, "SUSPECT": each.p_a_better, "IMPROVED": each.p_b_better}
        p_value = p_values.get(each.call.name, min(each.p_a_better, each.p_b_better))  # of what it says
        rows.append((each.call.name, *cells, _span(each), upward(p_value), needed, task))
    return ("call", *seen, f"{overall.names[1]} {what[1]}", "adjusted p", "more episodes", "task"), rows


def ranking_headline(ranking: Ranking) -> str:
    """Say in one sentence which policies are best."""
    if len(ranking.best) == 1:
        others = "the other policy" if len(ranking.policies) == 2 else "all other policies"
        return f"{ranking.best[0]} is better than {others}"
    if len(ranking.best) == len(ranking.policies):
        return "No policy is shown to be worse than another"
    return f"The best cannot be told apart yet: {', '.join(ranking.best)}"


def ranking_table(ranking: Ranking, *, binary: bool) -> Table:
    """Return header and rows of the policies, best first; binary: in failures."""
    head = ("fail", "fails in") if binary else ("mean cost", "expected cost")
    rows = []
    for each in ranking.policies:
        _, letters, trials, *seen = each.row
        if binary:
            seen = [percent(each.mean_cost), percents(each.lower, each.upper)]
        rows.append((letters, trials, *seen, each.name))
    return ("group", "trials", *head, "policy"), rows


def ranking_notes(ranking: Ranking) -> list[str]:
    """Say what a ranking guarantees, and what to test next."""
    notes = [
        "Policies that share a letter cannot be told apart. With probability at least "
        f"{1 - ranking.alpha:g}, no two policies without a common letter are in the wrong order, at all "
        "times at once; and all limits hold at once with probability at least the same.",
    ]
    if ranking.next_pair is not None:
        notes.append(f"Next: run more trials of {' and '.join(ranking.next_pair)}; then look again.")
    return notes


def render_comparison(
    compared: ComparisonFinding | ComparedTasks,
    costs_a: ArrayLike,
    costs_b: ArrayLike,
    *,
    names: Names | None = None,
    sources: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return what was found about two policies as one HTML page."""
    finding, names = compared.overall, names or compared.overall.names
    said = summary(finding, names)
    title, seen = said["headline"], [f"{name}: {outcome}." for name, outcome in said["seen"].items()]
    together = "pairs were" if finding.paired else "trials of each policy were"
    drawn = f"{'Of each task, the' if finding.tasks > 1 else 'The'} {together} independent draws from one"
    rule = f"alpha {finding.alpha:g}, margin {finding.margin:g}, horizon {finding.horizon or 'none'}"
    provenance = [("boundwatch", __version__), ("comparison", rule)]
    for name, values, source in zip_longest(names, (costs_a, costs_b), sources):
        provenance.append((f"costs of {name}", f"SHA-256 {costs_digest(check_costs(values))}"))
        provenance.append((f"source of {name}", source))
    sections = [
        page.heading(title, level=1),
        page.paragraph(" ".join(seen)),
        page.warnings(warnings),
        page.heading("What was found"),
        page.rows(comparison_evidence(finding, names)),
        *([page.table(*name_first(task_table(compared)))] if len(compared.rows) > 1 else []),
        *_pictures(compared, names),
        page.heading("What must be true, and what this does not say"),
        page.bullets(comparison_notes(finding)),
        page.heading("Provenance"),
        page.rows(provenance, code=True),
        *signature(
            [
                f"{drawn} distribution of environments.",
                "Both policies were final before their trials ran, and no trial was left out.",
                "The levels were fixed before any of the costs was seen.",
            ]
        ),
    ]
    return page.page(title, sections)


def headline(subject: Any) -> str:
    """Say an object in one sentence; `boundwatch._support.describing` asks when the first one is shown."""
    if isinstance(subject, Ranking):
        return ranking_headline(subject)
    compared = isinstance(subject, ComparisonFinding | ComparedTasks)
    return comparison_headline(subject) if compared else wording.headline(subject)


def rows(subject: Any) -> list[tuple[str, str]] | None:
    """Return the table of an object, or None where its fields are the table."""
    return comparison_evidence(subject) if isinstance(subject, ComparisonFinding) else None


def plot(subject: Any) -> Figure:
    """Draw an object."""
    from boundwatch.reporting import plots

    return plots.plot(subject)
