"""Audits: the draw, labels that are evidence, certificates that keep them, and sheets to fill in."""

import numpy as np
import pytest

from boundwatch import Audit, Certificate, Episodes, HypothesisTest, Verdict
from boundwatch.bounds.audit import Judged
from boundwatch.episodes.measure import Design
from boundwatch.errors import BoundwatchError, CertificateError, InvalidSetting, ProvenanceMismatch
from boundwatch.evaluation.audit import allocation
from boundwatch.reporting.model_card import badge_text

RNG = np.random.default_rng(4)
TRUTH = (RNG.random(400) < 0.2).astype(float)
JUDGED = np.where(RNG.random(400) < 0.93, TRUTH, 1 - TRUTH)


def labeled(n=40, judged=JUDGED, truth=TRUTH, seed=7):
    audit = Audit(judged, seed=seed)
    return audit, {place: truth[place] for place in audit.draw(n)}


def test_a_draw_is_the_first_part_of_a_longer_one_and_follows_from_the_seed_alone():
    places = Audit(JUDGED, seed=7).draw(70)
    assert Audit(JUDGED, seed=7).draw(33) == places[:33]
    assert Audit(JUDGED, seed=8).draw(33) != places[:33]
    assert len(set(places)) == 70
    assert sorted(Audit(JUDGED, seed=7).draw(400)) == list(range(400))


@pytest.mark.parametrize("calls", [0, 1, 3, 60, 399, 400])
def test_every_draw_has_the_planned_number_of_each_opinion(calls):
    judged, sizes = np.arange(400) < calls, Judged(400 - calls, calls)
    for n in (10, 50, 200, 400):
        drawn = judged[Audit(judged.astype(float), seed=1).draw(n)]
        assert int(drawn.sum()) == allocation(sizes, n).failed
        assert all(k <= size for k, size in zip(allocation(sizes, n), sizes, strict=True))


def test_who_changes_an_opinion_after_the_draw_has_another_draw():
    """A judge that knows which episodes were drawn cannot use it."""
    places, other = Audit(JUDGED, seed=7).draw(50), JUDGED.copy()
    undrawn = next(place for place in range(400) if place not in places)
    other[undrawn] = 1 - other[undrawn]
    assert len(set(places) & set(Audit(other, seed=7).draw(50))) < 25


def test_every_episode_is_drawn_equally_often_among_those_judged_alike():
    judged, often = np.arange(20) < 8, np.zeros(20)
    for seed in range(2000):
        often[Audit(judged.astype(float), seed=seed).draw(10)] += 1
    for group, k in zip((~judged, judged), allocation(Judged(12, 8), 10), strict=True):
        expected = 2000 * k / group.sum()
        assert np.abs(often[group] - expected).max() < 5 * np.sqrt(expected)


def test_a_certificate_of_an_audit_is_kept_derived_again_and_used(tmp_path):
    audit, labels = labeled()
    certificate = audit.certificate(labels, delta=0.05)
    assert badge_text(certificate).endswith(" confidence, 40 labels of 400 judged episodes")
    assert (certificate.source, certificate.method, certificate.n) == ("audit", "exact", 40)
    assert certificate.lower < TRUTH.mean() < certificate.upper
    assert certificate.failures is None
    certificate.save(tmp_path / "c.json")
    again = Certificate.load(tmp_path / "c.json")
    assert again == certificate
    assert all(check.ok for check in again.verify())
    assert HypothesisTest(again).decide(np.ones(30)).verdict is Verdict.ADVERSE
    with pytest.raises(ProvenanceMismatch, match="without costs"):
        again.verify(TRUTH)


def test_altered_counts_are_noticed():
    audit, labels = labeled()
    content = audit.certificate(labels).to_dict()
    content["audit"]["counts"][2][0] += 1
    with pytest.raises(CertificateError, match="altered"):
        Certificate.from_dict(content)
    content["audit"]["counts"][2][0] = 10_000
    with pytest.raises(BoundwatchError, match="not of one draw"):
        Certificate.from_dict(content)


def test_a_judge_narrows_the_certificate_and_a_finding_tells_its_errors():
    audit, labels = labeled(60)
    found, certificate = audit.finding(labels), audit.certificate(labels)
    assert certificate.lower <= found.lower <= TRUTH.mean() <= found.upper <= certificate.upper
    missed = (1 - JUDGED[TRUTH == 1]).mean()
    assert found.misses[0] <= missed <= found.misses[1]
    called = JUDGED[TRUTH == 0].mean()
    assert found.false_alarms[0] <= called <= found.false_alarms[1]
    assert audit.width_with(labels, 120) < audit.width_with(labels, 60)


def test_labels_of_episodes_that_were_not_drawn_are_no_evidence():
    audit, labels = labeled()
    more = labels | {place: 1.0 for place in range(400) if place not in labels}
    assert audit.certificate(more).audit == audit.certificate(labels).audit
    assert audit.finding(more).others == 360


def test_labels_may_end_early_but_not_skip():
    audit, labels = labeled()
    places = audit.drawn
    first = {place: labels[place] for place in places[:25]}
    assert audit.certificate(first).n == 25
    del first[places[3]]
    with pytest.raises(InvalidSetting, match="skips episodes chooses"):
        audit.certificate(first)
    with pytest.raises(InvalidSetting, match="no drawn episode"):
        audit.certificate({})
    with pytest.raises(InvalidSetting, match="nothing was drawn"):
        Audit(JUDGED, seed=1).certificate(labels)


def test_several_labelers_vote_and_their_disagreement_is_counted():
    audit, labels = labeled(20)
    place = audit.drawn[0]
    votes = labels | {place: [1, 0, 0]}
    assert audit.record(votes) == audit.record(labels | {place: 0})
    assert audit.record(labels | {place: [1, 0]}) == audit.record(labels | {place: 1})
    assert audit.finding(votes).disagreed == 1
    with pytest.raises(BoundwatchError, match=r"labels\[0\] = 0.5 is not 0 or 1"):
        audit.record(labels | {place: 0.5})


def test_bounded_costs_are_audited_by_differences(tmp_path):
    truth = RNG.beta(1, 4, 400)
    judged = np.clip(truth + RNG.normal(0, 0.03, 400), 0, 1)
    audit, labels = labeled(60, judged, truth)
    certificate, found = audit.certificate(labels), audit.finding(labels)
    assert (certificate.method, found.misses) == ("tuned", None)
    assert certificate.lower <= found.lower <= truth.mean() <= found.upper <= certificate.upper
    alone = Certificate.from_held_out([labels[place] for place in audit.drawn], delta=0.05)
    assert found.upper - found.lower < alone.upper - alone.lower
    certificate.save(tmp_path / "c.json")
    assert Certificate.load(tmp_path / "c.json") == certificate


def test_tasks_cost_little_and_repeats_what_they_must(tmp_path):
    """The draw is the same, and so are the limits on the judged episodes; those on the policy are wider."""
    tasks = Episodes(JUDGED, strata=["mug", "bowl"] * 200, binary=True)
    widths = []
    for audit in (Audit(JUDGED, seed=7), Audit(tasks, seed=7), Audit(JUDGED, seed=7, clusters=range(400))):
        labels = {place: TRUTH[place] for place in audit.draw(40)}
        certificate = audit.certificate(labels)
        widths.append(certificate.upper - certificate.lower)
    assert widths[0] < widths[1] < 1.05 * widths[0]
    assert widths[2] == widths[1]  # one episode of each scene is none that is repeated
    audit = Audit(JUDGED, seed=7, clusters=np.arange(400) // 8)
    repeated = audit.certificate({place: TRUTH[place] for place in audit.draw(40)})
    assert audit.finding(labels) == labeled()[0].finding(labels)
    assert repeated.upper - repeated.lower > 1.3 * widths[1]
    assert (repeated.audit.units, repeated.binary, repeated.design.cluster) == (50, False, "cluster")
    repeated.save(tmp_path / "c.json")
    assert Certificate.load(tmp_path / "c.json") == repeated
    assert all(check.ok for check in repeated.verify())
    scenes = Episodes(np.ones(60), clusters=np.arange(60) // 2)
    assert HypothesisTest(repeated).decide(scenes).verdict is Verdict.ADVERSE


def test_a_certificate_of_the_mean_over_tasks_judges_no_new_costs():
    audit = Audit(Episodes(JUDGED, strata=["mug", "bowl"] * 200, binary=True), seed=7)
    certificate = audit.certificate({place: TRUTH[place] for place in audit.draw(40)})
    with pytest.raises(InvalidSetting, match="mean over tasks as an audit shows it"):
        HypothesisTest(certificate)
    known = Certificate.from_held_out([0, 1] * 20, binary=True)
    with pytest.raises(InvalidSetting, match="is of tasks or repeats"):
        HypothesisTest(known).decide(certificate.audit)


def test_designs_whose_mean_is_another_are_refused():
    with pytest.raises(InvalidSetting, match="means over clusters already"):
        Audit(Episodes([0, 1, 1], clusters=["a", "b", "b"]), seed=1)
    with pytest.raises(InvalidSetting, match="its share of the judged episodes"):
        Audit(Episodes([0, 1, 1], strata=["a", "b", "b"]), seed=1)
    weights = Design(strata="task", weights={"a": 1, "b": 2})
    assert Audit(Episodes([0, 1, 1], strata=["a", "b", "b"], design=weights), seed=1).units == 3
    with pytest.raises(InvalidSetting, match="are not repeated alike"):
        Audit([0, 1, 1], clusters=["a", "b", "b"], seed=1)
    with pytest.raises(InvalidSetting, match="one for each of 3"):
        Audit([0, 1, 1], clusters=["a", "b"], seed=1)
    with pytest.raises(InvalidSetting, match="from 1 to 400"):
        Audit(JUDGED, seed=1).draw(401)


@pytest.mark.parametrize("name", ["row", "label", "label_note"])
def test_a_column_called_as_the_sheets_own_is_not_carried_along(name):
    audit = Audit([0, 1, 0, 1], seed=1)
    audit.draw(2)
    with pytest.raises(InvalidSetting, match="rename it, or show another"):
        audit.sheet(range(2, 6), {name: ["a", "b", "c", "d"]})
