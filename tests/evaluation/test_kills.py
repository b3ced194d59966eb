"""Nothing that was acknowledged is lost by kills, at a terminal, a pipe or a program."""

import pytest
from benchmarks.kill_evaluation import FAULTS, KILLS, campaign


@pytest.mark.parametrize("kills", [6, pytest.param(KILLS, marks=pytest.mark.slow)])
def test_every_acknowledged_outcome_is_there_once(kills, tmp_path):
    found = campaign(tmp_path, kills)
    assert [found[name] for name in FAULTS] == [0] * len(FAULTS)
    assert found["acknowledged"] > kills
