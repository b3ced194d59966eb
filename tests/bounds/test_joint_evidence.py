"""The evidence of many streams: the same in any parts and from a table, one part in memory at a time."""

import tracemalloc

import numpy as np
import pytest

from boundwatch.bounds.joint_evidence import (
    EvidenceTable,
    Reference,
    Wager,
    joint_log_evidence,
    joint_log_evidence_many,
)

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


@pytest.mark.parametrize("margin", [0.0, 0.05, -0.2])
@pytest.mark.parametrize("weights", [[0, 0, 0, 0], [3, 0, 0, 2], [0, 5, 0, 9], [40, 1, 7, 0]])
def test_a_table_gives_the_evidence_of_each_stream(weights, margin):
    bets = Wager(np.array([0.2, 0.9, 1.0]), np.log(np.full(3, 1 / 3)), np.empty(0), np.empty(0))
    reference = Reference.of(bets.on(np.array([0.9, 0.5]), np.array([40.0, 10.0])))
    points, counts = np.array([0.0, 0.25, 0.5, 1.0]), np.array(weights, dtype=float)
    table = EvidenceTable(reference, bets.on(points, np.ones(4)), margin)
    assert table.log_evidence(counts) == pytest.approx(
        joint_log_evidence(reference, bets.on(points, counts), margin), rel=1e-12
    )
