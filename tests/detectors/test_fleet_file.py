"""A fleet on disk: the same numbers, and nothing else passes for one."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch

CERT = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


@pytest.fixture
def saved(tmp_path):
    fleet = bw.Fleet(CERT)
    rng = np.random.default_rng(3)
    for _ in range(30):
        fleet.update(["a", "b", 3], rng.random(3) * [0.2, 1, 0.4])
    fleet.save(tmp_path / "fleet")
    return fleet, tmp_path / "fleet"


def test_a_fleet_goes_on_where_it_was(saved):
    fleet, path = saved
    again = bw.Fleet.load(path, CERT)
    assert again.state_dict() == fleet.state_dict()
    for each in (fleet, again):
        each.update(["a", "new"], [0.3, 0.4])
    assert again.state_dict() == fleet.state_dict()
    assert [file.name for file in path.parent.iterdir()] == ["fleet"]


def test_it_belongs_to_its_certificate(saved):
    other = bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01)
    with pytest.raises(ProvenanceMismatch):
        bw.Fleet.load(saved[1], other)


@pytest.mark.parametrize("cut", [0, 10, 300, -1])
def test_a_damaged_file_is_refused(saved, cut):
    path = saved[1]
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SchemaMismatch):
        bw.Fleet.load(path)
    with pytest.raises(InvalidSetting, match="no such file"):
        bw.Fleet.load(path.with_name("none"))
