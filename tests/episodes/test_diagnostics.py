"""What the data say about the assumptions: seldom without reason, and reliably with one."""

from __future__ import annotations

import numpy as np
import pytest

from boundwatch.episodes import diagnostics, read_costs
from boundwatch.episodes.diagnostics import blocks, diagnose, trend
from boundwatch.episodes.table import Table
from rates import assert_rate_at_most

NOTHING = Table(["cost"], True, lambda _: [])
FILES = 1000


def table(n, rng):
    """Return a sheet with the columns that people keep beside the outcome."""
    columns = {
        "trial": list(range(1, n + 1)),
        "operator": rng.choice(["kim", "ada"], n).tolist(),
        "object": rng.choice(["mug", "bowl", "box"], n).tolist(),
        "duration": rng.gamma(4, 3, n).round(1).tolist(),
        "cost": [],
    }
    return Table(list(columns), True, columns.__getitem__)


def files(rng):
    """Yield the costs of independent files of many sizes and kinds."""
    for i in range(FILES):
        n = int(rng.choice([5, 12, 20, 30, 60, 120]))
        kinds = [rng.random(n) < rng.uniform(0.02, 0.6), rng.beta(2, 6, n), rng.random(n).round(1)]
        yield kinds[i % 3].astype(float)


def test_independent_files_seldom_get_a_note():
    rng = np.random.default_rng(20261116)
    noted = sum(bool(diagnose(table(costs.size, rng), costs, "cost")) for costs in files(rng))
    assert noted < 0.02 * FILES
    assert_rate_at_most(noted, FILES, 0.011)  # the sum of the levels


def test_a_rule_that_is_too_quick_is_noticed():
    """The same count with the usual 5 % for each test would not pass."""
    rng = np.random.default_rng(20261116)
    noted = sum(trend(costs)[1] <= 0.05 or blocks(costs) <= 0.05 for costs in files(rng))
    assert noted > 0.02 * FILES


@pytest.mark.parametrize("binary", [True, False])
def test_what_is_wrong_is_found(binary):
    rng = np.random.default_rng(7)
    found = {"trend": 0, "blocks": 0, "copies": 0}
    for _ in range(50):
        chance = rng.random(60)
        wave = np.repeat(rng.permutation([0.05, 0.9] * 3), 10)
        whole = rng.random(60)
        cases = {"trend": np.linspace(0, 1, 60), "blocks": wave, "copies": np.full(60, 0.4)}
        for name, rates in cases.items():
            costs = (chance < rates).astype(float) if binary else np.clip(0.5 * rates + 0.5 * whole, 0, 1)
            if name == "copies":
                costs[30:] = costs[:30]
            found[name] += bool(diagnose(NOTHING, costs, "cost"))
    assert found["trend"] >= 48
    assert found["blocks"] >= 40
    assert found["copies"] >= 40


CASES = {
    "rise along": "trial,cost\n" + "".join(f"{i},{i / 40}\n" for i in range(40)),
    "pasted twice?": "trial,time,cost\n" + ("".join(f"{i},10:0{i},0.{i}1\n" for i in range(1, 8)) * 2),
    "all 12 episodes failed": "trial,success\n" + "".join(f"{i},no\n" for i in range(12)),
    "a training curve?": "global_step,cost\n" + "".join(f"{1000 * i},0.{i % 7}\n" for i in range(1, 9)),
    "messages of a sensor": "time,cost\n" + "".join(f"{i / 50:.2f},0.{i % 7}\n" for i in range(80)),
    "were some entered twice?": "timestamp,cost\n" + "".join(f"12:0{i % 8},0.{i}\n" for i in range(1, 10)),
    "exported from Weights & Biases": "Step,a - cost,a - cost__MIN\n1,0.1,0.1\n2,0.3,0.3\n",
}


@pytest.mark.parametrize("note", CASES)
def test_every_note_has_its_file(tmp_path, note):
    (tmp_path / "log.csv").write_text(CASES[note])
    cost = "a - cost" if "Weights" in note else None
    warnings = read_costs(tmp_path / "log.csv", cost=cost).warnings
    assert any(note in warning for warning in warnings), warnings


def test_tasks_are_looked_at_one_by_one(tmp_path):
    rng = np.random.default_rng(3)
    rows = [f"{task},{cost:.4f}\n" for task, mean in (("a", 2), ("b", 9)) for cost in rng.beta(mean, 6, 30)]
    (tmp_path / "log.csv").write_text("robot,cost\n" + "".join(rows))
    assert read_costs(tmp_path / "log.csv", by="robot").warnings == ()
    assert any("blocks" in w or "rise" in w for w in read_costs(tmp_path / "log.csv").warnings)


def test_tasks_at_once_are_as_each_by_itself():
    rng = np.random.default_rng(3)
    tasks = rng.choice(["a", "b", "c"], 400).tolist()
    groups = np.array([["a", "b", "c"].index(task) for task in tasks])
    for costs in (rng.random(400).round(1), (rng.random(400) < 0.3).astype(float)):
        each = [costs[groups == group] for group in range(3)]
        correlations, chances = diagnostics._trends(costs, groups)
        expected = [trend(values) for values in each]
        assert list(zip(correlations, chances, strict=True)) == [pytest.approx(pair) for pair in expected]
        assert diagnostics._blocks(costs, groups) == pytest.approx([blocks(values) for values in each])
    rising = costs + np.where(groups == 1, np.arange(400), 0)
    assert any(
        "rise along" in note for note in diagnose(NOTHING, rising / rising.max(), "cost", tuple(tasks))
    )


def test_a_long_file_is_ranked_by_its_stretches():
    """Means of stretches are as independent as the costs, and show what changes slowly."""
    rng = np.random.default_rng(2)
    noted = sum(bool(diagnose(NOTHING, rng.beta(2, 6, 25_000), "cost")) for _ in range(100))
    assert_rate_at_most(noted, 100, 0.01)
    costs = rng.beta(2, 6, 250_000)
    found = diagnose(NOTHING, 0.95 * costs + np.linspace(0, 0.05, costs.size), "cost")
    assert "rise along the file (rank correlation of the means of 10,000 stretches" in found[0]
    alternating = np.repeat(rng.random(50_000) < 0.5, 5) * 0.1 + 0.9 * costs
    assert "in blocks" in diagnose(NOTHING, alternating, "cost")[0]
