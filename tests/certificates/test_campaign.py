"""A campaign: what it says while trials come in, and the certificate that it leaves behind."""

import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.episodes.measure import Measure
from boundwatch.errors import CertificateError, InvalidCost, InvalidLevel, SchemaMismatch


def costs_of(binary: bool, n: int) -> np.ndarray:
    rng = np.random.default_rng(61)
    return (rng.random(n) < 0.2).astype(float) if binary else rng.beta(2, 6, n)


def test_it_promises_nothing_before_the_first_trial():
    campaign = bw.Campaign()
    assert (campaign.n, campaign.lower, campaign.upper, campaign.mean_cost) == (0, 0, 1, None)
    with pytest.raises(InvalidCost, match="no trial has been counted"):
        campaign.certificate()


@pytest.mark.parametrize("binary", [True, False])
def test_the_certificate_says_what_the_campaign_says_and_anybody_can_derive_it(binary, tmp_path):
    costs = costs_of(binary, 400)  # of the bounded ones, more values than a record keeps apart
    campaign = bw.Campaign(delta=0.02, binary=binary)
    for cost in costs:
        campaign.update(cost)
    certificate = campaign.certificate(measure=Measure("cost"))
    assert (certificate.lower, certificate.upper) == (campaign.lower, campaign.upper)
    assert (certificate.n, certificate.method, certificate.delta) == (400, "anytime", 0.02)
    certificate.save(tmp_path / "certificate.json")
    loaded = bw.Certificate.load(tmp_path / "certificate.json")
    assert loaded == certificate
    assert all(check.ok for check in loaded.verify(costs))
    assert not all(check.ok for check in loaded.verify(costs[:-1]))
    altered = json.loads((tmp_path / "certificate.json").read_text()) | {"upper": campaign.upper - 0.01}
    with pytest.raises(CertificateError, match="upper"):
        bw.Certificate.from_dict(altered)


@pytest.mark.parametrize("binary", [True, False])
def test_the_order_of_the_trials_does_not_matter(binary):
    costs = costs_of(binary, 60)
    one, other = (bw.Campaign(binary=binary).update_many(part) for part in (costs, costs[::-1]))
    assert one.lower == pytest.approx(other.lower, abs=1e-12)
    assert one.upper == pytest.approx(other.upper, abs=1e-12)


@pytest.mark.parametrize("binary", [True, False])
def test_it_goes_on_from_its_state(binary):
    costs = costs_of(binary, 30)
    campaign = bw.Campaign(delta_upper=0.01, delta_lower=0.03, binary=binary).update_many(costs[:20])
    again = bw.Campaign.from_state_dict(json.loads(json.dumps(campaign.state_dict())))
    assert again.update_many(costs[20:]).to_dict() == campaign.update_many(costs[20:]).to_dict()
    assert again.delta == pytest.approx(0.04)


@pytest.mark.parametrize(
    "damage",
    [{"kind": "Fleet"}, {"version": 9}, {"binary": None}, {"costs": "0"}, {"costs": [2]}, {"delta_upper": 3}],
)
def test_a_damaged_state_is_refused(damage):
    with pytest.raises(SchemaMismatch):
        bw.Campaign.from_state_dict(bw.Campaign().update(0.5).state_dict() | damage)


def test_bad_input_is_refused_and_not_counted():
    campaign = bw.Campaign(binary=True)
    with pytest.raises(InvalidCost, match="not 0 or 1"):
        campaign.update_many([0, 1, 0.5])
    assert campaign.n == 0
    with pytest.raises(InvalidLevel):
        bw.Campaign(delta=1.5)
    with pytest.raises(InvalidLevel, match="promises nothing"):
        bw.Campaign(delta_upper=0.6, delta_lower=0.6)


def test_notebooks_show_it():
    campaign = bw.Campaign(binary=True).update_many([0, 1, 0])
    assert "After 3 trials" in campaign._repr_html_()
    assert "failures=1" in repr(campaign)
    assert campaign.to_frame().shape[0] == 1


def test_the_interval_may_widen_since_only_the_counts_are_kept():
    # The narrowest limits so far would be valid, but nobody could derive them from n and the failures.
    campaign = bw.Campaign(binary=True).update_many([0] * 60)
    before = campaign.upper
    assert campaign.update_many([1] * 10).upper > before
