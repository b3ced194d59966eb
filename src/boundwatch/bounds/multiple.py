"""Many hypotheses at once: Holm for the probability of any error, e-BH for the expected share of errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
OVERALL_SHARE = 0.8
"""The share of alpha that a test of all tasks together gets; the single tasks have the rest."""


def holm(p_values: ArrayLike) -> Array:
    """Return Holm's adjusted p-values.

    **Guarantee**: rejecting those at most alpha, the probability of rejecting any true hypothesis is at most
    alpha, whatever the dependence.
    """
    values = np.asarray(p_values, dtype=np.float64)
    return _stepped(values, np.arange(values.size, 0, -1))


def with_overall(p_overall: float, p_values: ArrayLike, share: float = OVERALL_SHARE) -> tuple[float, Array]:
    """Return adjusted p-values of "no task" and of each task, by a test of all and one of each, at one rate.

    Closed testing. All hypotheses together are rejected by their own test at `share` alpha, or by the
    smallest of K p-values at the rest of alpha over K; fewer of them by the smallest at alpha over their
    number. So a task that is rejected rejects "no task", too, and once that is rejected, tasks have all of
    alpha.

    **Guarantee**: as `holm`. **Assumes**: `p_overall` is a p-value where all of them are true.

    >>> overall, tasks = with_overall(0.04, [0.001, 0.02, 0.5])
    >>> round(overall, 6), tasks.round(6).tolist()
    (0.015, [0.015, 0.04, 0.5])
    """
    values = np.asarray(p_values, dtype=np.float64)
    k = values.size
    overall = min(p_overall / share, k * float(values.min()) / (1 - share), 1.0)
    # With all K rejected, at most K - 1 are left to be true, whichever comes first.
    return overall, _stepped(values, np.minimum(np.arange(k, 0, -1), max(k - 1, 1)), overall)


def _stepped(values: Array, left: NDArray[np.int64], least: float = 0.0) -> Array:
    """Return p-values times how many are left, from the smallest on, none below the one before."""
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(np.maximum(values[order] * left, least)), 1.0)
    return adjusted


def e_bh(log_e_values: ArrayLike, log_shares: ArrayLike | None = None) -> Array:
    """Return the smallest rate at which e-BH lists each hypothesis (Wang and Ramdas, 2022).

    e-BH lists the k hypotheses with the largest products of e-value and share, for the largest k whose k-th
    is at least 1/(k rate).

    **Guarantee**: whatever the dependence, among the hypotheses with a result of at most `rate` the expected
    share of true ones is at most `rate`. **Assumes**: shares that add up to at most 1 and do not depend on
    the e-values.
    """
    values = np.asarray(log_e_values, dtype=np.float64)
    weighted = values + (-np.log(values.size) if log_shares is None else np.asarray(log_shares))
    order = np.argsort(-weighted, kind="stable")
    needed = -np.log(np.arange(1, values.size + 1)) - weighted[order]
    adjusted = np.empty_like(values)
    adjusted[order] = np.exp(np.minimum(np.minimum.accumulate(needed[::-1])[::-1], 0.0))
    return adjusted


def e_bh_rows(log_e_values: Array, log_shares: Array, rate: float) -> NDArray[np.int64]:
    """Return which hypotheses `e_bh` lists at a rate, the strongest first."""
    order = np.argsort(-(log_e_values + log_shares), kind="stable")
    return order[e_bh(log_e_values, log_shares)[order] <= rate]
