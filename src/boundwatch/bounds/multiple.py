"""Many hypotheses at once: Holm for the probability of any error, e-BH for the expected share of errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def holm(p_values: ArrayLike) -> Array:
    """Return Holm's adjusted p-values: rejecting those at most alpha keeps the family-wise error rate alpha.

    **Guarantee**: whatever the dependence, the probability of rejecting any true hypothesis is at most alpha.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1.0)
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
