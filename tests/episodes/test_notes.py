"""What the data say about the assumptions: seldom without reason, and reliably with one."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr

from boundwatch.episodes.notes import blocks, repeats, suspicions, trend
from rates import assert_rate_at_most

FILES = 1000


def files(rng):
    """Yield the costs of independent files of many sizes and kinds."""
    for i in range(FILES):
        n = int(rng.choice([5, 12, 20, 30, 60, 120]))
        kinds = [rng.random(n) < rng.uniform(0.02, 0.6), rng.beta(2, 6, n), rng.random(n).round(1)]
        yield kinds[i % 3].astype(float)


def test_independent_files_seldom_get_a_note():
    rng = np.random.default_rng(20261116)
    noted = sum(bool(suspicions(costs)) for costs in files(rng))
    assert noted < 0.02 * FILES
    assert_rate_at_most(noted, FILES, 0.01)  # the sum of the levels


def test_a_rule_that_is_too_quick_is_noticed():
    """The same count with the usual 5 % for each test would not pass."""
    rng = np.random.default_rng(20261116)
    noted = sum(trend(costs)[1] <= 0.05 or blocks(costs) <= 0.05 for costs in files(rng))
    assert noted > 0.02 * FILES


@pytest.mark.parametrize("binary", [True, False])
def test_what_is_wrong_is_found(binary):
    rng = np.random.default_rng(7)
    found = {"trend": 0, "blocks": 0}
    for _ in range(50):
        chance = rng.random(60)
        wave = np.repeat(rng.permutation([0.05, 0.9] * 3), 10)
        whole = rng.random(60)
        cases = {"trend": np.linspace(0, 1, 60), "blocks": wave}
        for name, rates in cases.items():
            costs = (chance < rates).astype(float) if binary else np.clip(0.5 * rates + 0.5 * whole, 0, 1)
            found[name] += bool(suspicions(costs))
    assert found["trend"] >= 48
    assert found["blocks"] >= 40


CASES = {
    "rise along": np.arange(40) / 40,
    "fall along": 1 - np.arange(40) / 40,
    "in blocks": np.repeat([0.0, 1.0, 0.0, 1.0], 10),
    "all 12 episodes failed": np.ones(12),
}


@pytest.mark.parametrize("note", CASES)
def test_every_note_has_its_file(note):
    assert any(note in said for said in suspicions(CASES[note]))


def test_tasks_are_looked_at_one_by_one():
    rng = np.random.default_rng(3)
    costs = np.append(rng.beta(2, 6, 30), rng.beta(9, 6, 30))
    assert suspicions(costs, ["a"] * 30 + ["b"] * 30) == []
    assert suspicions(costs)


def test_one_task_that_changes_is_found_among_others():
    rng = np.random.default_rng(3)
    tasks = rng.choice(["a", "b", "c"], 400)
    rising = rng.random(400) + np.where(tasks == "b", np.arange(400), 0)
    assert any("rise along" in note for note in suspicions(rising / rising.max(), tasks.tolist()))


def test_the_chances_are_those_of_all_orders():
    """By enumeration: so few runs, and the variance that the rank correlation is compared with."""
    costs = np.array([0.0] * 3 + [1.0] * 9)
    failures = itertools.combinations(range(12), 3)
    orders = [np.isin(np.arange(12), places).astype(float) for places in failures]
    runs = [1 + np.count_nonzero(np.diff(order)) for order in orders]
    assert blocks(costs) == pytest.approx(np.mean([each <= 2 for each in runs]))
    assert np.mean([trend(order)[0] ** 2 for order in orders]) == pytest.approx(1 / 11)
    assert trend(costs)[0] == pytest.approx(spearmanr(np.arange(12), costs).statistic)


def test_a_long_file_is_ranked_by_its_stretches():
    """Means of stretches are as independent as the costs, and show what changes slowly."""
    rng = np.random.default_rng(2)
    noted = sum(bool(suspicions(rng.beta(2, 6, 25_000))) for _ in range(100))
    assert_rate_at_most(noted, 100, 0.01)
    costs = rng.beta(2, 6, 250_000)
    found = suspicions(0.95 * costs + np.linspace(0, 0.05, costs.size))
    assert "rise along the file (rank correlation of the means of stretches" in found[0]
    alternating = np.repeat(rng.random(50_000) < 0.5, 5) * 0.1 + 0.9 * costs
    assert "in blocks" in suspicions(alternating)[0]


@pytest.mark.parametrize(
    ("numbers", "costs", "tasks", "note"),
    [
        ("123412", [0, 1, 0, 1, 0, 1], "", "pasted twice?"),
        ("112233", [0, 1, 0, 1, 0, 1], "", "episode='trial'"),
        ("123123", [0, 1, 0, 1, 0, 1], "aaabbb", None),
        ("123456", [1] * 6, "", None),
    ],
)
def test_rows_with_the_same_number_are_noticed(numbers, costs, tasks, note):
    keys = [list(tasks)] if tasks else []
    found = list(repeats({"trial": list(numbers)}, np.array(costs, dtype=float), keys))
    assert [note in said for said in found] == ([] if note is None else [True])
