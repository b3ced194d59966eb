"""Calls of a table of tasks, in LeRobot's words: seldom wrong with equal policies, and falls are found."""

import pytest
from benchmarks.comparison import calls

import boundwatch as bw
from boundwatch.comparison.finding import Call
from rates import assert_rate_at_most, min_trials


@pytest.mark.parametrize(("tasks", "runs", "broken"), [(10, 401, 0.2), (40, 70, 0.5)])
def test_tables_of_equal_policies_are_seldom_wrong(tasks, runs, broken):
    """By simulation, 20 episodes per task; the rule for each task alone is the broken twin."""
    assert runs >= min_trials(limit=0.05, broken=broken)
    found = calls(runs, 20, [(tasks, 0)])[f"{tasks} tasks, 0 fallen"]
    assert_rate_at_most(round(found["improved"] * runs), runs, 0.05)
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(round(found["draft improved"] * runs), runs, 0.05)


def test_a_fall_on_one_of_ten_tasks_is_found():
    fallen = calls(100, 50, [(10, 1)])["10 tasks, 1 fallen"]
    assert fallen["regressed"] > 0.6
    assert fallen["regressed or suspect"] > 0.85
    assert_rate_at_most(round(fallen["improved"] * 100), 100, 0.05)


def one(failed_a: int, failed_b: int, n: int, **settings) -> bw.ComparisonFinding:
    costs = [[1.0] * k + [0.0] * (n - k) for k in (failed_a, failed_b)]
    found = bw.compare_once(dict(zip("ab", costs, strict=True)), binary=True, **settings)
    assert isinstance(found, bw.ComparisonFinding)
    return found


def test_what_each_call_means():
    assert one(2, 12, 40).call is Call.REGRESSED
    assert one(12, 2, 40).call is Call.IMPROVED
    held = one(20, 20, 400)
    assert (held.call, held.episodes_needed) == (Call.HELD, None)
    assert held.difference_upper <= 0.1
    short = one(4, 4, 40)
    assert short.call is Call.UNDERPOWERED
    assert one(4, 4, 40, margin=0.3).call is Call.HELD
    # About so many more show it, if both fail alike: 80 % power by the normal approximation.
    more = 40 + short.episodes_needed
    assert one(round(0.1 * more), round(0.1 * more), more).call is Call.HELD


def test_a_better_task_does_not_decide_about_the_mean_of_graded_costs():
    tasks = [f"t{place // 60}" for place in range(300)]
    a = [0.1] * 60 + [0.5, 0.52, 0.48] * 80
    b = [0.9] * 60 + [0.3, 0.32, 0.28] * 80
    found = bw.compare_once(
        {name: bw.Episodes(costs, strata=tasks) for name, costs in {"a": a, "b": b}.items()}
    )
    assert found.tasks["t0"].verdict is bw.ComparisonVerdict.A_BETTER
    assert found.overall.verdict is not bw.ComparisonVerdict.A_BETTER


def test_where_each_policy_is_better_on_some_task_the_overall_call_is_the_bad_news():
    tasks = ["x"] * 40 + ["y"] * 40
    costs = {"a": [0.0] * 40 + [1.0] * 40, "b": [1.0] * 40 + [0.0] * 40}
    found = bw.compare_once(
        {name: bw.Episodes(each, binary=True, strata=tasks) for name, each in costs.items()}
    )
    assert found.overall.verdict is bw.ComparisonVerdict.UNDECIDED
    assert str(found) == "UNDECIDED: each of a and b fails less often on some task"
    calls_of = [found.overall.call, *(each.call for each in found.tasks.values())]
    assert calls_of == [Call.REGRESSED, Call.REGRESSED, Call.IMPROVED]


def test_means_are_over_tasks_and_every_p_value_is_adjusted_as_its_verdict_is():
    rates = {"a": {"x": (4, 40), "y": (5, 10)}, "b": {"x": (16, 40), "y": (5, 10)}}
    both = {
        name: bw.Episodes(
            [float(place < failed) for failed, n in tasks.values() for place in range(n)],
            strata=[task for task, (_, n) in tasks.items() for _ in range(n)],
            binary=True,
        )
        for name, tasks in rates.items()
    }
    found = bw.compare_once(both)
    assert (found.overall.mean_cost_a, found.overall.mean_cost_b) == (pytest.approx(0.3), pytest.approx(0.45))
    assert found.overall.difference_lower <= 0.15 <= found.overall.difference_upper
    assert (found.overall.failed, found.tasks["x"].failed) == ((9, 21), (4, 16))
    for each in found.rows.values():
        shown = each.verdict is bw.ComparisonVerdict.A_BETTER
        assert shown == (each.p_a_better <= each.alpha)
    for each in found.tasks.values():
        assert each.p_alone[0] <= each.p_a_better
        assert each.p_alone[1] <= each.p_b_better
    assert found.overall.p_alone is None
