"""boundwatch selftest."""

import json

import pytest

import boundwatch as bw
from boundwatch.selftest import simulation as library
from boundwatch.selftest.simulation import simulate_promises


@pytest.fixture
def limits(tmp_path):
    """A certificate of which nothing is known but its limits: no lab is drawn again."""
    bw.Certificate.from_bounds(lower=0.1, upper=0.9, delta=0.01).save(tmp_path / "limits.json")
    return tmp_path / "limits.json"


def test_promises_beside_what_was_simulated(run, folder, limits):
    done = run("selftest", folder / "certificate.json", "--runs", "1")
    assert done.code == 0
    assert "0 broken" in done.out
    as_json = json.loads(run("selftest", limits, "--runs", "10", "--json").out)
    assert as_json["kept"]
    assert {"promised", "rate", "low", "high"} <= set(as_json["promises"][0])


def test_a_broken_promise_fails_loudly(run, limits, monkeypatch):
    def broken(certificate, **settings):
        import dataclasses

        return [dataclasses.replace(p, kept=False) for p in simulate_promises(certificate, **settings)]

    monkeypatch.setattr(library, "simulate_promises", broken)
    done = run("selftest", limits, "--runs", "1")
    assert done.code == 1
    assert "BROKEN" in done.out
    assert "broken promises: " in done.err
