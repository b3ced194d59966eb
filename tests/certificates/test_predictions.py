"""Certificates and campaigns of trials with predicted costs: what they keep, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, SchemaMismatch

COSTS = [0, 0, 1, 0] * 15
PREDICTED = [0.9 if cost else 0.1 for cost in COSTS]
UNLABELED = [[0.1, 0.9, 0.1, 0.2]] * len(COSTS)


@pytest.fixture
def campaign():
    made = bw.Campaign(binary=True, predictions=True)
    for cost, predicted, unlabeled in zip(COSTS, PREDICTED, UNLABELED, strict=True):
        made.update(cost, predicted=predicted, unlabeled=unlabeled)
    return made


@pytest.mark.parametrize("binary", [True, False])
def test_a_certificate_derives_its_limits_again(binary, tmp_path):
    costs = COSTS if binary else [0.8 * cost + 0.1 for cost in COSTS]
    given = {"predicted": PREDICTED, "unlabeled": UNLABELED}
    made = bw.Certificate.from_held_out(costs, binary=binary, **given)
    assert made.method == "predicted"
    made.save(tmp_path / "certificate.json")
    loaded = bw.Certificate.load(tmp_path / "certificate.json")
    assert loaded == made
    assert all(check.ok for check in loaded.verify(costs))
    alone = bw.Certificate.from_held_out(costs, binary=binary)
    assert made.upper - made.lower < alone.upper - alone.lower
    assert made.saved_trials > 0
    assert alone.saved_trials is None


def test_a_certificate_whose_predictions_were_changed_is_refused():
    made = bw.Certificate.from_held_out(COSTS, binary=True, predicted=PREDICTED, unlabeled=UNLABELED)
    content = made.to_dict()
    content["predictions"]["outcomes"][0] = 1.0
    with pytest.raises(bw.errors.CertificateError):
        bw.Certificate.from_dict(content)
    for name, value in (("luck", [0.0]), ("most", [-0.9] * len(COSTS))):
        content = made.to_dict()
        content["predictions"][name] = value
        with pytest.raises(SchemaMismatch, match="predictions"):
            bw.Certificate.from_dict(content)
    content = made.to_dict()
    del content["predictions"]
    with pytest.raises(SchemaMismatch, match="predictions"):
        bw.Certificate.from_dict(content)


def test_a_campaign_continues_where_it_stood(campaign):
    again = bw.Campaign.from_state_dict(json.loads(json.dumps(campaign.state_dict())))
    for each in (campaign, again):
        each.update(1, predicted=0.8, unlabeled=[0.2])
        each.update(0)  # without predictions
    assert (again.lower, again.upper) == (campaign.lower, campaign.upper)
    made = campaign.certificate()
    assert (made.lower, made.upper) == (campaign.lower, campaign.upper)
    assert made.method == "predicted-anytime"
    assert all(check.ok for check in made.verify([*COSTS, 1, 0]))
    assert campaign.to_dict()["saved_trials"] == made.saved_trials > 0


def test_its_limits_never_widen(campaign):
    before = campaign.lower, campaign.upper
    for cost in (1, 1, 1, 1):
        campaign.update(cost, predicted=0.1, unlabeled=[0.9])
    assert campaign.lower >= before[0]
    assert campaign.upper <= before[1]


def test_what_does_not_go_together_is_refused(campaign):
    with pytest.raises(InvalidSetting, match="made for predictions"):
        bw.Campaign(binary=True).update(0, predicted=0.1, unlabeled=[0.2])
    with pytest.raises(InvalidSetting, match="one task"):
        bw.Campaign(binary=True, predictions=True, strata=["a", "b"])
    with pytest.raises(InvalidSetting, match="go together"):
        campaign.update(0, predicted=0.1)
    with pytest.raises(InvalidCost, match="outside"):
        campaign.update(0, predicted=1.1, unlabeled=[0.2])
    assert campaign.n == len(COSTS)
    with pytest.raises(InvalidSetting, match="each trial"):
        bw.Certificate.from_held_out(COSTS, binary=True, predicted=PREDICTED)
    with pytest.raises(InvalidSetting, match="one per trial"):
        bw.Certificate.from_held_out(COSTS, predicted=PREDICTED[:3], unlabeled=UNLABELED[:3])
    with pytest.raises(InvalidSetting, match="method"):
        bw.Certificate.from_held_out(COSTS, method="kl", predicted=PREDICTED, unlabeled=UNLABELED)


def test_on_the_command_line(tmp_path, run):
    rows = zip(COSTS, PREDICTED, UNLABELED, strict=True)
    lines = [f"{cost},{scene},{' '.join(map(str, others))}" for cost, scene, others in rows]
    (tmp_path / "trials.csv").write_text("\n".join(["failed,sim,unrun", *lines]))
    words = ("trials.csv", "--cost", "failed", "--predicted", "sim", "--unlabeled", "unrun", "--binary")
    once = run("certify", *words, "-o", "once.json")
    assert "Predictions: limits as narrow as with about" in once.out
    expected = bw.Certificate.from_held_out(COSTS, binary=True, predicted=PREDICTED, unlabeled=UNLABELED)
    assert bw.Certificate.load(tmp_path / "once.json").upper == expected.upper
    assert run("certify", *words, "--at-most", "50", "-o", "ever.json").code == 0
    assert bw.Certificate.load(tmp_path / "ever.json").method == "predicted-anytime"
    assert "after 50 of these 60 costs" in run("verify", "ever.json", "--costs", "trials.csv").out
    for wrong in (("--strata", "sim"), ("--by", "sim"), ("--method", "kl"), ("--bounds", "0", "1")):
        found = run("certify", *words, *wrong, "-o", "no.json")
        assert (found.code, len(found.err.splitlines())) == (2, 1)
    alone = run("certify", *words[:5], "-o", "no.json")
    assert "--predicted and --unlabeled must be given together" in alone.err


def test_np_arrays_are_predictions_too():
    rows = np.array(UNLABELED)
    made = bw.Certificate.from_held_out(COSTS, binary=True, predicted=np.array(PREDICTED), unlabeled=rows)
    assert made.predictions.luck[2] == pytest.approx(0.9 - rows[0].mean())
