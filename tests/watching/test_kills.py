"""kill -9 in the middle of a watch: a small part of `python -m benchmarks kill_watch`."""

import pytest
from benchmarks import kill_watch


@pytest.mark.parametrize("way", kill_watch.WAYS)
def test_every_episode_is_counted_once(tmp_path, way):
    found = kill_watch.run_way(way, kills=3, episodes=400, seed=3, folder=tmp_path)
    assert (found["lost_or_doubled"], found["same_bytes"], found["refused"]) == (0, True, "")
