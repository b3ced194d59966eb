"""boundwatch selftest."""

import json

from boundwatch.cli import selftest as command
from boundwatch.selftest import simulate_promises


def test_promises_beside_what_was_simulated(run, folder):
    done = run("selftest", folder / "certificate.json", "--costs", folder / "costs.csv", "--runs", "100")
    assert done.code == 0
    assert "its own costs" in done.out
    assert "0 broken" in done.out
    as_json = json.loads(run("selftest", folder / "binary.json", "--runs", "50", "--json").out)
    assert as_json["kept"]
    assert {"promised", "rate", "low", "high"} <= set(as_json["promises"][0])


def test_a_broken_promise_fails_loudly(run, folder, monkeypatch):
    def broken(certificate, **settings):
        import dataclasses

        return [dataclasses.replace(p, kept=False) for p in simulate_promises(certificate, **settings)]

    monkeypatch.setattr(command, "simulate_promises", broken)
    done = run("selftest", folder / "certificate.json", "--runs", "20")
    assert done.code == 1
    assert "BROKEN" in done.out
    assert "promises are broken" in done.err
