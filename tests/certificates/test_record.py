"""What a certificate keeps of its costs, and what that costs."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch._support.schema import convert
from boundwatch.bounds import betting_lower, betting_upper
from boundwatch.bounds.bets import CostGrid, grid_points, split_on_grid
from boundwatch.certificates.record import MOST_POINTS, CostRecord, Trials

COSTS = {
    "uniform": lambda rng, n: rng.random(n),
    "small": lambda rng, n: rng.beta(1, 999, n),
    "nearly constant": lambda rng, n: 0.1234 + 1e-6 * rng.random(n),
    "between 0 and the first point": lambda rng, n: rng.random(n) / 300,
}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_the_record_keeps_number_and_mean(costs):
    record = CostRecord.of(np.array(costs))
    assert record.n == len(costs)
    assert record.mean == pytest.approx(np.mean(costs), abs=1e-12)
    assert len(record.values) <= MOST_POINTS
    assert convert(CostRecord, json.loads(json.dumps(vars(record)))) == record


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300))
def test_the_grid_is_the_same_at_once_and_one_by_one(costs):
    memory = CostGrid()
    for cost in costs:
        memory.add(cost)
    assert split_on_grid(np.array(costs)) == pytest.approx(np.array(memory.weights), abs=1e-9)


def test_few_values_are_kept_exactly():
    assert CostRecord.of_failures(10, 3) == CostRecord((0.0, 1.0), (7.0, 3.0))
    assert (Trials(10, 3) + Trials(10, 0), Trials(1) + Trials(2, 1)) == (Trials(20, 3), Trials(3))
    costs = np.random.default_rng(0).integers(0, MOST_POINTS, 10_000) / 300
    record = CostRecord.of(costs)
    assert list(record.values) == np.unique(costs).tolist()
    assert list(record.weights) == np.unique(costs, return_counts=True)[1].tolist()
    late = np.append(np.zeros(5000), np.random.default_rng(0).random(300))  # many values, but not at first
    assert set(CostRecord.of(late).values) <= set(grid_points())


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("n", [300, 20_000])
def test_limits_widen_through_the_grid_and_only_a_little(kind, n):
    costs = COSTS[kind](np.random.default_rng(n), n)
    values, weights = CostRecord.of(costs).arrays()
    exact = float(betting_lower(costs, 0.005)), float(betting_upper(costs, 0.005))
    kept = float(betting_lower(values, 0.005, weights)), float(betting_upper(values, 0.005, weights))
    assert kept[0] <= exact[0] + 1e-12
    assert kept[1] >= exact[1] - 1e-12
    assert kept[1] - kept[0] <= 1.1 * (exact[1] - exact[0]) + 1e-4


def test_a_grid_that_drops_the_remainder_would_be_noticed():
    """The broken twin: rounding every cost to its nearest point moves limits inward for some costs."""
    costs = np.full(20_000, 100.49 / 256)
    rounded = np.round(costs * 256) / 256
    assert betting_upper(rounded, 0.005) < betting_upper(costs, 0.005)
    values, weights = CostRecord._where_positive(grid_points(), split_on_grid(costs)).arrays()
    assert betting_upper(values, 0.005, weights) >= betting_upper(costs, 0.005)


def test_a_million_costs_make_one_page(tmp_path):
    certificate = bw.Certificate.from_held_out(np.random.default_rng(0).random(1_000_000))
    certificate.save(tmp_path / "certificate.json")
    text = (tmp_path / "certificate.json").read_text()
    assert len(text) < 10_000
    assert len(text.splitlines()) < 50
    assert bw.Certificate.load(tmp_path / "certificate.json") == certificate
