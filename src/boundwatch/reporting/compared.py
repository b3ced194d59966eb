"""Comparisons and rankings in words, and as one page that can be signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from numpy.typing import ArrayLike

from boundwatch._support.validation import check_costs, shortest
from boundwatch._version import __version__
from boundwatch.certificates.provenance import costs_digest
from boundwatch.comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison, Ranking
from boundwatch.reporting import page
from boundwatch.reporting.report import signature
from boundwatch.reporting.wording import at_most, ceiling, count, floor, percent

Names = tuple[str, str]
NAMES = ("A", "B")
_TOGETHER = {
    True: "Trial i of one policy and trial i of the other shared their seed, scene or task.",
    False: "Trials were independent. If trial i of both policies shared its seed, scene or task, say so "
    "(paired): it usually saves trials, and the error rate above holds only for independent ones.",
}


def comparison_headline(finding: ComparisonFinding, names: Names = NAMES) -> str:
    """Say in one sentence which policy is better."""
    verb = "fails less often" if finding.binary else "costs less"
    if finding.verdict is ComparisonVerdict.UNDECIDED:
        return f"UNDECIDED: not enough evidence that either of {names[0]} and {names[1]} {verb}"
    better, worse = names if finding.verdict is ComparisonVerdict.A_BETTER else names[::-1]
    return f"{finding.verdict.name}: evidence that {better} {verb} than {worse}"


def comparison_evidence(finding: ComparisonFinding, names: Names = NAMES) -> list[tuple[str, str]]:
    """Return what a comparison found as labeled lines."""
    a, b = names
    limits = f"{floor(finding.difference_lower, '+')} and {ceiling(finding.difference_upper, '+')}"
    on_average = f" in the mean over the {finding.tasks} tasks" if finding.tasks > 1 else ""
    rows = [
        *zip(names, _outcomes(finding), strict=True),
        ("compared", _compared(finding, names)),
        ("difference", f"the expected cost of {b} minus that of {a} is between {limits}"),
        (f"{a} better", _strength(finding.e_a_better, finding.p_a_better)),
        (f"{b} better", _strength(finding.e_b_better, finding.p_b_better)),
    ]
    if finding.first_alarm is not None:
        rows.append(("verdict", f"reached at pair {finding.first_alarm}"))
    if finding.margin:
        shown = "shown" if finding.no_worse else "not shown"
        rows.append(("no worse", f"{shown}: {b} costs at most {finding.margin:g} more than {a}"))
    guarantee = (
        f"if {a} is not better{on_average}, A_BETTER is ever declared with probability at most "
        f"{finding.alpha:g}; likewise for {b}. Each limit on the difference holds at all times with "
        f"probability at least {1 - finding.alpha:g}."
    )
    return [*rows, ("guarantee", guarantee)]


def _compared(finding: ComparisonFinding, names: Names) -> str:
    said = f"{count(finding.pairs, 'pair')} of {'matched' if finding.paired else 'independent'} trials"
    if finding.tasks > 1:
        said += f", in {count(finding.pairs // finding.tasks, 'complete turn')} of {finding.tasks} tasks"
    if ahead := abs(finding.n_a - finding.n_b):
        leader = names[0] if finding.n_a > finding.n_b else names[1]
        said += f"; {count(ahead, 'more trial')} of {leader} {'wait' if ahead > 1 else 'waits'}"
    return said


def _strength(e_value: float, p_value: float) -> str:
    return f"e-value {e_value:.3g}, anytime p-value {at_most(p_value)}"


def _outcomes(finding: ComparisonFinding) -> Iterator[str]:
    """Yield what was seen of each policy."""
    for n, mean in ((finding.n_a, finding.mean_cost_a), (finding.n_b, finding.mean_cost_b)):
        if mean is None:
            yield "no trials yet"
        elif finding.binary:
            yield f"{count(round(mean * n), 'failure')} in {count(n, 'trial')} ({percent(mean)})"
        else:
            yield f"mean cost {shortest(round(mean, 4))} over {count(n, 'trial')}"


def comparison_notes(finding: ComparisonFinding) -> list[str]:
    """Say what must be true, and what the result does not say."""
    notes = [
        "Both policies were final before their trials ran. "
        "If one was picked as the best of several on these trials, give all of them.",
        _TOGETHER[finding.paired],
    ]
    if finding.tasks > 1:
        notes.append(
            "Tasks take turns, and there is a look after each complete turn: this is about the mean over the "
            "tasks, and says nothing about one of them. Trials of different tasks are independent."
        )
    if finding.verdict is ComparisonVerdict.UNDECIDED:
        notes.append(
            "UNDECIDED does not mean that the two are equally good; more trials may tell them apart."
        )
    elif finding.difference_lower <= 0 <= finding.difference_upper:
        notes.append("With costs of 0 and 1 the verdict may come a few pairs before the limits exclude 0.")
    if finding.horizon is not None and finding.pairs >= finding.horizon:
        notes.append(
            f"The horizon of {finding.horizon} pairs has been reached; more trials change no verdict."
        )
    return notes


def ranking_headline(ranking: Ranking) -> str:
    """Say in one sentence which policies are best."""
    if len(ranking.best) == 1:
        others = "the other policy" if len(ranking.policies) == 2 else "all other policies"
        return f"{ranking.best[0]} is better than {others}"
    if len(ranking.best) == len(ranking.policies):
        return "No policy is shown to be worse than another"
    return f"The best cannot be told apart yet: {', '.join(ranking.best)}"


def ranking_notes(ranking: Ranking) -> list[str]:
    """Say what a ranking guarantees, and what to test next."""
    notes = [
        "Policies that share a letter cannot be told apart. With probability at least "
        f"{1 - ranking.alpha:g}, no two policies without a common letter are in the wrong order, at all "
        "times at once; and all limits hold at once with probability at least the same.",
    ]
    if ranking.next_pair is not None:
        some = "" if ranking.next_trials is None else f"about {ranking.next_trials} "
        one, other = ranking.next_pair
        notes.append(f"Next: run {some}more trials of {one} and {other}; then look again.")
    return notes


def render_comparison(
    test: PolicyComparison,
    costs_a: ArrayLike,
    costs_b: ArrayLike,
    *,
    names: Names = NAMES,
    sources: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Compare costs, by a test that has seen none yet, and return the report as one HTML page."""
    finding = test.update_many(costs_a, costs_b)
    title = comparison_headline(finding, names)
    seen = [f"{name}: {outcome}." for name, outcome in zip(names, _outcomes(finding), strict=True)]
    together = "pairs were" if finding.paired else "trials of each policy were"
    drawn = f"{'Of each task, the' if finding.tasks > 1 else 'The'} {together} independent draws from one"
    provenance = [
        ("boundwatch", __version__),
        (
            "comparison",
            f"alpha {finding.alpha:g}, margin {finding.margin:g}, horizon {finding.horizon or 'none'}",
        ),
    ]
    for name, values, source in zip_longest(names, (costs_a, costs_b), sources):
        provenance.append((f"costs of {name}", f"SHA-256 {costs_digest(check_costs(values))}"))
        provenance.append((f"source of {name}", source))
    sections = [
        page.heading(title, level=1),
        page.paragraph(" ".join(seen)),
        *([page.bullets(warnings, "warning")] if warnings else []),
        page.heading("What was found"),
        page.rows(comparison_evidence(finding, names)),
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
