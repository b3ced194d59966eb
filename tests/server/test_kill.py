"""Two servers are killed in turn under load; benchmarks/kill_server.py does so 100 times per database."""

from __future__ import annotations

import pytest
from benchmarks.kill_server import campaign


@pytest.mark.parametrize(
    ("kind", "kills"), [("sqlite", 2), pytest.param("postgresql", 10, marks=pytest.mark.slow)]
)
def test_no_acknowledged_episode_is_lost_and_states_equal_a_replay(kind, kills, tmp_path, request):
    url = str(tmp_path / "monitor.sqlite") if kind == "sqlite" else request.getfixturevalue("postgres")()
    found = campaign(url, kills, tmp_path, seed=7)
    assert found["acknowledged"] > 20
    assert found["watches"] == 12
    faults = ("lost", "twice", "altered", "invented", "not_counted", "refused", "replay_differs")
    assert {name: found[name] for name in faults} == dict.fromkeys(faults, 0)
