"""Holm and e-BH against their definitions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.bounds.multiple import e_bh, e_bh_rows, holm

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
