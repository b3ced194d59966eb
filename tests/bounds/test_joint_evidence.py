"""The evidence of many streams: the same in any parts, one part in memory at a time."""

import tracemalloc

import numpy as np
import pytest

from boundwatch.bounds.joint_evidence import Reference, Wager, joint_log_evidence_many

SIZES, LOG_SHARES = np.array([0.1, 0.3]), np.log([0.5, 0.5])
REFERENCE = Reference.of(Wager(SIZES, LOG_SHARES, np.array([1.0, 0.0]), np.array([46.0, 4.0])))
STREAMS = np.linspace(1.0, 2.0, 20_000)


def log_wealth(means: np.ndarray, streams: np.ndarray) -> np.ndarray:
    return -means * STREAMS[streams]


@pytest.mark.parametrize("at_once", [1, 7, 2000])
def test_parts_of_any_size_give_the_smallest_product(at_once):
    found = joint_log_evidence_many(REFERENCE, log_wealth, 1000, at_once=at_once)
    smallest = np.min(REFERENCE.logs[:-1] - np.outer(STREAMS[:1000], REFERENCE.means[1:]), axis=1)
    assert np.array_equal(found, smallest)


def test_memory_does_not_grow_with_the_number_of_streams():
    def most(streams: int) -> int:
        tracemalloc.start()
        joint_log_evidence_many(REFERENCE, log_wealth, streams, at_once=1000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    assert most(20_000) < most(1000) + 2 * STREAMS.nbytes
