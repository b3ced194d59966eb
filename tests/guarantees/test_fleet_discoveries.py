"""The false discovery rate over a fleet, by simulation, with the uncorrected list as the broken twin."""

import numpy as np
import pytest

import boundwatch as bw

RATE = 0.1


def test_discoveries_keep_the_false_discovery_rate():
    cert = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    rng = np.random.default_rng(41)
    streams, shifted, runs = 100, 4, 150
    means = np.where(np.arange(streams) < shifted, 0.6, 0.2)
    kept, uncorrected, found = [], [], []
    for _ in range(runs):
        fleet = bw.Fleet(cert, alpha_adverse=RATE)
        for _ in range(60):
            fleet.update(np.arange(streams), (rng.random(streams) < means).astype(float))
        listed = fleet.discoveries(RATE)
        alarmed = [i for i, v in enumerate(fleet.verdicts) if v is bw.Verdict.ADVERSE]
        for rates, names in ((kept, listed), (uncorrected, alarmed)):
            rates.append(sum(name >= shifted for name in names) / max(len(names), 1))
        found.append(sum(name < shifted for name in listed) / shifted)

    def too_high(rates):
        error = np.std(rates, ddof=1) / np.sqrt(runs)
        return np.mean(rates) - 4.9 * error > RATE

    assert not too_high(kept)
    assert too_high(uncorrected)
    assert np.mean(found) > 0.9


def test_more_streams_to_come_make_it_stricter():
    cert = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    fleet = bw.Fleet(cert)
    fleet.update([1] * 4, [0.9] * 4)
    assert fleet.discoveries(RATE) == [1]
    assert fleet.discoveries(RATE, streams=1000) == []
    with pytest.raises(bw.errors.InvalidSetting, match="below the 1 already seen"):
        fleet.discoveries(RATE, streams=0)
