"""Two growing files: what is said once is kept, and what waits is told apart from it."""

from __future__ import annotations

from boundwatch.comparison.following import Following, GrowingFile
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.episodes.lines import LineReader


def followed(tmp_path, trials_a, trials_b, margin=None):
    """Return the steps on trials such as ("mug", 1), and whether more would change anything."""
    both = []
    for name, trials in (("a.csv", trials_a), ("b.csv", trials_b)):
        rows = "".join(f"{task},{success}\n" for task, success in trials)
        (tmp_path / name).write_text("task,success\n" + rows)
        both.append(GrowingFile(str(tmp_path / name), LineReader(), print))
    following = Following(*both, lambda binary: PolicyComparison(binary=binary, paired=False, margin=margin))
    return list(following.look()), following.over


def in_turn(n, success):
    return [(("bowl", "mug")[i % 2], success) for i in range(n)]


def test_a_verdict_that_was_given_is_not_taken_back_when_tasks_come_to_differ(tmp_path):
    good = in_turn(6, 1) + [("mug", 1), ("mug", 1), ("bowl", 1)] * 7
    bad = in_turn(6, 0) + [("bowl", 0), ("bowl", 0), ("mug", 0)] * 7
    steps, over = followed(tmp_path, good, bad, margin=0.1)
    verdicts = [step.finding.verdict.name for step in steps]
    first = verdicts.index("A_BETTER")
    assert set(verdicts[first:]) == {"A_BETTER"}
    assert not any(step.withheld for step in steps)  # "no worse", which alone is asked for, is not reached
    assert not over


def test_no_worse_waits_while_the_tasks_differ(tmp_path):
    """The control: the same outcomes on the same tasks show at once that B is no worse."""
    (tmp_path / "same").mkdir()
    same, over = followed(tmp_path / "same", in_turn(60, 1), in_turn(60, 1), margin=0.3)
    reached = [step.finding.no_worse for step in same].index(True)
    assert over
    mugs, bowls = (
        [(task, 1), (task, 1), (other, 1)] * 20 for task, other in (("mug", "bowl"), ("bowl", "mug"))
    )
    steps, over = followed(tmp_path, mugs, bowls, margin=0.3)
    assert (steps[reached].finding.no_worse, steps[reached].alike, over) == (False, False, False)
    assert [bool(step.withheld) for step in steps] == [False] * reached + [True] * (60 - reached)
