"""Holm and e-BH against their definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.bounds.multiple import e_bh, e_bh_rows, holm, with_overall

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(P_VALUES, st.floats(0.001, 0.5))
def test_holm_is_the_step_down_procedure(p_values, alpha):
    declared, order = set(), sorted(range(len(p_values)), key=p_values.__getitem__)
    for step, index in enumerate(order):
        if p_values[index] * (len(p_values) - step) > alpha:
            break
        declared.add(index)
    assert {index for index, value in enumerate(holm(p_values)) if value <= alpha} == declared


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_e_bh_lists_the_largest_set_that_is_allowed(e_values, rate):
    m = len(e_values)
    ordered = sorted(e_values, reverse=True)
    sizes = [k for k in range(1, m + 1) if ordered[k - 1] > 0 and m / (k * ordered[k - 1]) <= rate]
    with np.errstate(divide="ignore"):
        adjusted = e_bh(np.log(e_values))
    assert (
        (adjusted <= rate * (1 - 1e-12)).sum()
        <= max(sizes, default=0)
        <= (adjusted <= rate * (1 + 1e-12)).sum()
    )


@given(P_VALUES, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(p_values, random):
    order = list(range(len(p_values)))
    random.shuffle(order)
    for adjust, values in ((holm, np.array(p_values)), (e_bh, -np.log(np.array(p_values) + 1e-9))):
        assert adjust(values[order]).tolist() == adjust(values)[order].tolist()


@given(st.lists(st.floats(-5, 30), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_rows_are_those_that_are_listed_the_strongest_first(logs, rate):
    values, shares = np.array(logs), np.full(len(logs), -np.log(len(logs)))
    rows = e_bh_rows(values, shares, rate).tolist()
    assert set(rows) == set(np.flatnonzero(e_bh(values) <= rate).tolist())
    assert [logs[row] for row in rows] == sorted((logs[row] for row in rows), reverse=True)


def test_an_overall_test_and_one_per_task_are_closed_testing():
    """A task's adjusted p-value is the largest of all sets with it; the set of all has a test of its own."""
    rng = np.random.default_rng(3)
    for k in (1, 2, 3, 5):
        for _ in range(40):
            p_overall, values = rng.random() ** 3, rng.random(k) ** 3
            whole = min(p_overall / 0.8, k * values.min() / 0.2, 1.0)
            closed = np.full(k, whole)
            for size in range(1, k):
                for chosen in itertools.combinations(range(k), size):
                    p_value = min(size * values[list(chosen)].min(), 1.0)
                    closed[list(chosen)] = np.maximum(closed[list(chosen)], p_value)
            overall, adjusted = with_overall(p_overall, values)
            assert overall == pytest.approx(whole)
            assert (adjusted >= closed * (1 - 1e-12)).all()
            assert (adjusted <= np.maximum(closed, values) * (1 + 1e-12)).all()
