"""The server is killed under load; benchmarks/kill_server.py does so a hundred times per database."""

from __future__ import annotations

from benchmarks.kill_server import campaign


def test_no_acknowledged_episode_is_lost_and_states_equal_a_replay(database_url, tmp_path):
    found = campaign(database_url, 2, tmp_path, seed=7)
    assert found["acknowledged"] > 20
    assert found["watches"] == 12
    faults = ("lost", "twice", "altered", "invented", "refused", "replay_differs")
    assert {name: found[name] for name in faults} == dict.fromkeys(faults, 0)
