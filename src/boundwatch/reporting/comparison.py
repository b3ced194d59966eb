"""Comparisons and rankings in words, and as one page that can be signed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from numpy.typing import ArrayLike

from boundwatch._support.validation import check_costs, shortest
from boundwatch._version import __version__
from boundwatch.certificates.provenance import costs_digest
from boundwatch.comparison import ComparisonFinding, ComparisonVerdict, PolicyComparison, Ranking
from boundwatch.reporting import page
from boundwatch.reporting.page import Html
from boundwatch.reporting.wording import at_most, ceiling, count, floor, percent

Names = tuple[str, str]
NAMES = ("A", "B")


def comparison_headline(finding: ComparisonFinding, names: Names = NAMES) -> str:
    """Say in one sentence which policy is better.

    Examples
    --------
    >>> test = PolicyComparison(binary=True, paired=False)
    >>> comparison_headline(test.update_many([0] * 10, [1] * 10), ("v2", "v1"))
    'A_BETTER: evidence that v2 fails less often than v1'
    """
    verb = "fails less often" if finding.binary else "costs less"
    if finding.verdict is ComparisonVerdict.UNDECIDED:
        return f"UNDECIDED: not enough evidence that either of {names[0]} and {names[1]} {verb}"
    better, worse = names if finding.verdict is ComparisonVerdict.A_BETTER else names[::-1]
    return f"{finding.verdict.name}: evidence that {better} {verb} than {worse}"


def comparison_evidence(finding: ComparisonFinding, names: Names = NAMES) -> list[tuple[str, str]]:
    """Return what a comparison found as labeled lines.

    Examples
    --------
    >>> test = PolicyComparison(binary=True, paired=False)
    >>> dict(comparison_evidence(test.update_many([0] * 10, [1] * 10)))["verdict"]
    'reached at pair 4'
    """
    rows = [
        (name, _outcome(n, mean, binary=finding.binary))
        for name, n, mean in zip(
            names, (finding.n_a, finding.n_b), (finding.mean_cost_a, finding.mean_cost_b), strict=True
        )
    ]
    kind = "matched" if finding.paired else "independent"
    ahead = abs(finding.n_a - finding.n_b)
    leader = names[0] if finding.n_a > finding.n_b else names[1]
    waits = f"; {count(ahead, 'more trial')} of {leader} {'wait' if ahead > 1 else 'waits'}" if ahead else ""
    turns = count(finding.pairs // finding.tasks, "complete turn")
    in_turns = f", in {turns} of {finding.tasks} tasks" if finding.tasks > 1 else ""
    rows.append(("compared", f"{count(finding.pairs, 'pair')} of {kind} trials{in_turns}{waits}"))
    rows.append(
        (
            "difference",
            f"the expected cost of {names[1]} minus that of {names[0]} is between "
            f"{floor(finding.difference_lower, '+')} and {ceiling(finding.difference_upper, '+')}",
        )
    )
    for name, e_value, p_value in (
        (names[0], finding.e_a_better, finding.p_a_better),
        (names[1], finding.e_b_better, finding.p_b_better),
    ):
        rows.append((f"{name} better", f"e-value {e_value:.3g}, anytime p-value {at_most(p_value)}"))
    if finding.first_alarm is not None:
        rows.append(("verdict", f"reached at pair {finding.first_alarm}"))
    if finding.margin:
        shown = "shown" if finding.no_worse else "not shown"
        rows.append(
            ("no worse", f"{shown}: {names[1]} costs at most {finding.margin:g} more than {names[0]}")
        )
    rows.append(
        (
            "guarantee",
            f"if {names[0]} is not better{_on_average(finding)}, A_BETTER is ever declared with probability "
            f"at most {finding.alpha:g}; likewise for {names[1]}. Each limit on the difference holds at all "
            f"times with probability at least {1 - finding.alpha:g}.",
        )
    )
    return rows


def _on_average(finding: ComparisonFinding) -> str:
    return f" in the mean over the {finding.tasks} tasks" if finding.tasks > 1 else ""


def comparison_notes(finding: ComparisonFinding) -> list[str]:
    """Say what must be true, and what the result does not say.

    Examples
    --------
    >>> test = PolicyComparison(binary=True, paired=False)
    >>> comparison_notes(test.update(0, 0))[-1]
    'UNDECIDED does not mean that the two are equally good; more trials may tell them apart.'
    """
    notes = [
        "Both policies were final before their trials ran. If one was picked as the best of several on these "
        "trials, give all of them."
    ]
    if finding.paired:
        notes.append("Trial i of one policy and trial i of the other shared their seed, scene or task.")
    else:
        notes.append(
            "Trials were independent. If trial i of both policies shared its seed, scene or task, say so "
            "(paired): it usually saves trials, and the error rate above holds only for independent ones."
        )
    if finding.tasks > 1:
        notes.append(
            "Tasks take turns, and there is a look after each complete turn: this is about the mean over the "
            "tasks, and says nothing about one of them. Trials of different tasks are independent."
        )
    excludes = not finding.difference_lower <= 0 <= finding.difference_upper
    if finding.verdict is ComparisonVerdict.UNDECIDED:
        notes.append(
            "UNDECIDED does not mean that the two are equally good; more trials may tell them apart."
        )
    elif not excludes:
        notes.append("With costs of 0 and 1 the verdict may come a few pairs before the limits exclude 0.")
    if finding.horizon is not None and finding.pairs >= finding.horizon:
        notes.append(
            f"The horizon of {finding.horizon} pairs has been reached; more trials change no verdict."
        )
    return notes


def ranking_headline(ranking: Ranking) -> str:
    """Say in one sentence which policies are best.

    Examples
    --------
    >>> import boundwatch as bw
    >>> ranking_headline(bw.rank({"v1": [0.0] * 20, "v2": [1.0] * 20}))
    'v1 is better than the other policy'
    """
    if len(ranking.best) == 1:
        others = "the other policy" if len(ranking.policies) == 2 else "all other policies"
        return f"{ranking.best[0]} is better than {others}"
    if len(ranking.best) == len(ranking.policies):
        return "No policy is shown to be worse than another"
    return f"The best cannot be told apart yet: {', '.join(ranking.best)}"


def ranking_notes(ranking: Ranking) -> list[str]:
    """Say what a ranking guarantees, and what to test next.

    Examples
    --------
    >>> import boundwatch as bw
    >>> ranking_notes(bw.rank({"v1": [0.0] * 5, "v2": [1.0] * 5}))[-1]
    'Next: run about 2 more trials of v1 and v2; then look again.'
    """
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
    """Compare costs and return the report as one self-contained HTML page.

    Parameters
    ----------
    test
        A comparison without costs yet.
    costs_a, costs_b
        The costs of the two policies.
    names
        What to call them.
    sources
        Where the costs were read from.
    warnings
        What the readers of the files found fault with.

    Examples
    --------
    >>> html = render_comparison(PolicyComparison(binary=True, paired=False), [0] * 9, [1] * 9)
    >>> "evidence that A fails less often than B" in html, "<script" in html
    (True, False)
    """
    finding = test.update_many(costs_a, costs_b)
    sections = [
        *_summary(finding, names, warnings),
        page.heading("What was found"),
        page.rows(comparison_evidence(finding, names)),
        page.heading("What must be true, and what this does not say"),
        page.bullets(comparison_notes(finding)),
        *_provenance(finding, (costs_a, costs_b), names, sources),
        *_signature(finding),
    ]
    return page.page(comparison_headline(finding, names), sections)


def _signature(finding: ComparisonFinding) -> Iterator[Html]:
    together = "pairs were" if finding.paired else "trials of each policy were"
    drawn = f"The {together} independent draws from one distribution of environments."
    if finding.tasks > 1:
        drawn = f"Of each task, the {together} independent draws from one distribution of environments."
    yield page.heading("To be confirmed by the person who signs")
    yield page.bullets(
        [
            drawn,
            "Both policies were final before their trials ran, and no trial was left out.",
            "The levels were fixed before any of the costs was seen.",
        ],
        "confirm",
    )
    blanks = "".join(f"<div>{label}</div>" for label in ("Name and role", "Date", "Signature"))
    yield Html(f'<div class="sign">{blanks}</div>')


def _summary(finding: ComparisonFinding, names: Names, warnings: Sequence[str]) -> Iterator[Html]:
    yield page.heading(comparison_headline(finding, names), level=1)
    yield page.paragraph(
        f"{names[0]}: {_outcome(finding.n_a, finding.mean_cost_a, binary=finding.binary)}. "
        f"{names[1]}: {_outcome(finding.n_b, finding.mean_cost_b, binary=finding.binary)}."
    )
    if warnings:
        yield page.bullets(warnings, "warning")


def _provenance(
    finding: ComparisonFinding, costs: tuple[ArrayLike, ArrayLike], names: Names, sources: Sequence[str]
) -> Iterator[Html]:
    yield page.heading("Provenance")
    settings = f"alpha {finding.alpha:g}, margin {finding.margin:g}, horizon {finding.horizon or 'none'}"
    rows = [("boundwatch", __version__), ("comparison", settings)]
    for i, (name, values) in enumerate(zip(names, costs, strict=True)):
        rows.append((f"costs of {name}", f"SHA-256 {costs_digest(check_costs(values))}"))
        if i < len(sources):
            rows.append((f"source of {name}", sources[i]))
    yield page.rows(rows, code=True)


def _outcome(n: int, mean: float | None, *, binary: bool) -> str:
    if mean is None:
        return "no trials yet"
    if binary:
        return f"{count(round(mean * n), 'failure')} in {count(n, 'trial')} ({percent(mean)})"
    return f"mean cost {shortest(round(mean, 4))} over {count(n, 'trial')}"
