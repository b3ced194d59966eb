"""The evidence of many streams: the same in parts of any size, and one part in memory at a time."""

import tracemalloc

import numpy as np
import pytest

from boundwatch.bounds.joint_evidence import Reference, Wager, joint_log_evidence_many

SIZES, LOG_SHARES = np.array([0.1, 0.3]), np.log([0.5, 0.5])
REFERENCE = Reference.of(Wager(SIZES, LOG_SHARES, np.array([1.0, 0.0]), np.array([46.0, 4.0])))
STREAMS = np.linspace(1.0, 2.0, 20_000)


def log_wealth(means: np.ndarray) -> np.ndarray:
    return -means[:, None] * STREAMS


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_parts_of_any_size_give_the_smallest_product(at_once):
    found = joint_log_evidence_many(REFERENCE, log_wealth, at_once=at_once)
    everywhere = REFERENCE.logs[:-1, None] + log_wealth(REFERENCE.means[1:])
    assert np.array_equal(found, everywhere.min(axis=0))


def test_memory_does_not_grow_with_the_number_of_means():
    tracemalloc.start()
    joint_log_evidence_many(REFERENCE, log_wealth)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert REFERENCE.means.size > 50
    assert most < 10 * STREAMS.nbytes
