"""What a certificate keeps of each task."""

import dataclasses
import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch._support.schema import convert
from boundwatch.certificates.record import Stratum, check_strata, mean_over, strata_of
from boundwatch.episodes.measure import Design
from boundwatch.errors import CertificateError, InvalidCost, InvalidSetting, SchemaMismatch


@pytest.mark.parametrize(("costs", "binary"), [([0, 1, 0, 0], True), ([0.25, 1.0, 0.5], False)])
def test_a_stratum_keeps_its_costs_in_order(costs, binary):
    (found,) = strata_of(np.array(costs, dtype=float), ["mug"] * len(costs), {}, binary=binary)
    assert found.costs.tolist() == costs
    assert found.outcomes == ("0100" if binary else tuple(costs))


def test_strata_are_shares_of_one_mean():
    good = (Stratum("mug", 0.25, 2, 0.5, "01"), Stratum("bowl", 0.75, 2, 1.0, "11"))
    check_strata(good, "rounds")
    assert mean_over(good) == 0.875
    with pytest.raises(SchemaMismatch, match="twice"):
        check_strata((good[0], good[0]), "rounds")
    with pytest.raises(SchemaMismatch, match=r"add up to 0\.5"):
        check_strata((good[0], dataclasses.replace(good[1], weight=0.25)), "rounds")
    with pytest.raises(SchemaMismatch, match="3 outcomes"):
        Stratum("mug", 0.5, 4, 0.25, outcomes="010")


def test_weights_are_declared_with_the_column_of_the_tasks():
    design = Design(strata="task", weights={"mug": 2, "bowl": 1})
    assert convert(Design, design.to_dict()) == design
    for wrong in ({"mug": 0}, {"mug": "x"}, [1, 2]):
        with pytest.raises(InvalidSetting):
            Design(strata="task", weights=wrong)
    with pytest.raises(InvalidSetting, match="strata"):
        Design(weights={"mug": 1})


TASKS = ("mug", "bowl", "cup")


def campaign_of(costs, order, weights=None, **settings):
    campaign = bw.Campaign(0.1, strata=weights or TASKS, **settings)
    for task, place in order:
        campaign.update(costs[place, TASKS.index(task)], task)
    return campaign


def test_rounds_are_the_same_in_whatever_order_trials_come():
    costs = (np.random.default_rng(5).random((12, 3)) < [0.1, 0.3, 0.8]).astype(float)
    in_turn = campaign_of(costs, [(task, place) for place in range(12) for task in TASKS], binary=True)
    in_blocks = campaign_of(costs, [(task, place) for task in TASKS for place in range(12)], binary=True)
    assert in_turn.certificate().strata == in_blocks.certificate().strata
    assert (in_turn.lower, in_turn.upper) == (in_blocks.lower, in_blocks.upper)
    assert in_turn.upper < 1
    assert in_turn.n == 36
    assert in_turn.failures == costs.sum()


@pytest.mark.parametrize("binary", [True, False])
def test_a_certificate_in_rounds_can_be_derived_again(binary, tmp_path):
    rng = np.random.default_rng(6)
    costs = rng.random((20, 3)) ** 2
    costs = (costs > 0.5).astype(float) if binary else costs.round(3)
    weights = {"mug": 2.0, "bowl": 1.0, "cup": 1.0}
    order = [(task, place) for place in range(20) for task in TASKS]
    campaign = campaign_of(costs, order, weights, binary=binary).update(1, "cup")
    certificate = campaign.certificate()
    assert certificate.method == "rounds"
    assert certificate.n == 60
    assert certificate.mean_cost == pytest.approx(costs.mean(axis=0) @ [0.5, 0.25, 0.25])
    assert campaign.waiting == {"cup": 1}
    assert campaign.to_dict()["waiting"] == {"cup": 1}
    certificate.save(tmp_path / "c.json")
    assert bw.Certificate.load(tmp_path / "c.json") == certificate
    tasks = [task for task, _ in order]
    blocks = np.argsort(tasks, kind="stable")
    read = bw.Episodes(costs.ravel()[blocks], strata=np.array(tasks)[blocks], binary=binary)
    for own in (None, costs.ravel(), read):
        assert all(check.ok for check in certificate.verify(own))
    other = costs.copy()
    other[3, 1] = 1 - other[3, 1]
    assert not all(check.ok for check in certificate.verify(other.ravel()))
    content = certificate.to_dict()
    content["strata"][0]["weight"], content["strata"][1]["weight"] = 0.25, 0.5
    with pytest.raises(CertificateError, match="altered"):
        bw.Certificate.from_dict(content)


def test_a_campaign_of_tasks_goes_on_where_it_stood():
    campaign = bw.Campaign(0.1, binary=True, strata={"mug": 3, "bowl": 1})
    campaign.update_many([0, 1] * 20, ["mug", "bowl"] * 20).update(1, "mug")
    again = bw.Campaign.from_state_dict(json.loads(json.dumps(campaign.state_dict())))
    assert repr(again) == repr(campaign)
    assert again.to_dict() == campaign.to_dict()
    assert again.update(0, "bowl").to_dict() == campaign.update(0, "bowl").to_dict()
    assert campaign.rounds == 21


def test_what_waits_changes_no_limit():
    campaign = bw.Campaign(0.1, binary=True, strata=["mug", "bowl"])
    assert (campaign.lower, campaign.upper, campaign.mean_cost) == (0, 1, None)
    campaign.update_many([1] * 9, ["mug"] * 9)
    assert (campaign.n, campaign.upper, campaign.waiting) == (0, 1, {"mug": 9})
    with pytest.raises(InvalidCost, match="no round is complete"):
        campaign.certificate()


def test_tasks_that_were_not_declared_are_refused():
    campaign = bw.Campaign(strata=["mug", "bowl"])
    with pytest.raises(InvalidSetting, match="'plate' is not a task"):
        campaign.update(0, "plate")
    with pytest.raises(InvalidSetting, match="missing"):
        campaign.update(0)
    with pytest.raises(InvalidSetting, match="goes with"):
        bw.Campaign().update(0, "mug")
    for wrong in ([], ["mug", "mug"], [""], {"mug": -1}):
        with pytest.raises(InvalidSetting):
            bw.Campaign(strata=wrong)
