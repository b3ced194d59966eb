"""boundwatch selftest."""

import json

import numpy as np
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
    done = run("selftest", folder / "certificate.json", "--costs", folder / "costs.csv", "--runs", "1")
    assert done.code == 0
    assert "its own costs" in done.out
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


def test_costs_are_read_as_everywhere_else(run, folder, limits, monkeypatch):
    read = []

    def listening(certificate, *, costs, **settings):
        read.append((certificate, costs))
        return simulate_promises(bw.Certificate.load(limits), **settings)

    monkeypatch.setattr(library, "simulate_promises", listening)
    steps = "".join(
        f"{i},{cost}\n{i},0\n" for i, cost in enumerate((folder / "costs.csv").read_text().split()[1:])
    )
    (folder / "steps.csv").write_text("trial,cost\n" + steps)
    options = ["--episode", "trial", "--reduce", "max", "--runs", "1"]
    assert run("selftest", folder / "certificate.json", "--costs", folder / "steps.csv", *options).code == 0
    [(certificate, costs)] = read
    assert certificate == bw.Certificate.load(folder / "certificate.json")
    assert np.array_equal(costs, bw.read_costs(folder / "costs.csv", cost="cost").costs)
