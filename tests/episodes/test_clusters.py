"""Clusters: trials of one scene become one cost, in every way in."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.certificates.record import Trials
from boundwatch.comparison.matching import align
from boundwatch.episodes.episodes import describe
from boundwatch.errors import InvalidSetting


def test_clusters_become_the_means_of_their_trials_in_the_order_of_appearance():
    episodes = bw.Episodes([1, 0, 1, 1, 0], clusters=["b", "a", "b", "a", "c"], numbers=[2, 3, 4, 5, 6])
    assert episodes.costs.tolist() == [1.0, 0.5, 0.0]
    assert episodes.keys["cluster"] == ("b", "a", "c")
    assert list(episodes.numbers) == [2, 3, 6]
    assert episodes.repeats == (Trials(2, 2), Trials(2, 1), Trials(1, 0))
    assert episodes.trials == Trials(5, 3)
    assert not episodes.binary
    assert episodes.design.cluster == "cluster"


def test_one_trial_of_each_cluster_stays_a_failure_or_a_success():
    episodes = bw.Episodes([1, 0, 1], clusters=["a", "b", "c"])
    assert episodes.binary
    assert describe(episodes.repeats, "scene") == "3 scenes: 3 trials, 2 failed"


def test_clusters_are_taken_within_strata_tasks_and_policies():
    tasks = ["mug", "mug", "can", "can"]
    episodes = bw.Episodes([1, 0, 0, 1], clusters=["m", "m", "c", "c"], strata=tasks)
    assert episodes.costs.tolist() == [0.5, 0.5]
    with pytest.raises(InvalidSetting, match="two with the same name"):  # or one day, which makes tasks alike
        bw.Episodes([1, 0, 0, 1], clusters=["s"] * 4, strata=tasks)
    parts = bw.Episodes([1, 1, 0, 1], clusters=["s"] * 4, keys={"by": ["x", "x", "y", "y"]}).split()
    assert {task: part.costs.tolist() for task, part in parts.items()} == {"x": [1.0], "y": [0.5]}
    assert parts["y"].trials == Trials(2, 1)


def test_costs_in_between_have_no_failures():
    episodes = bw.Episodes([0.25, 0.75, 0.1], clusters=["a", "a", "b"])
    assert episodes.costs.tolist() == [0.5, 0.1]
    assert describe(episodes.repeats, "days") == "2 days x 1 to 2 repeats: 3 trials"


def test_trials_are_not_told_apart_by_a_pair_within_a_cluster():
    with pytest.raises(InvalidSetting, match="which are one unit"):
        bw.Episodes([1, 0], clusters=["a", "a"], keys={"pair": ["1", "2"]})


def test_a_certificate_of_clusters_counts_them_and_keeps_their_trials(tmp_path):
    rng = np.random.default_rng(3)
    scenes = np.repeat(np.arange(12), 5)
    lab = bw.Episodes((rng.random(60) < 0.3).astype(float), clusters=scenes)
    certificate = bw.Certificate.from_held_out(lab, delta=0.1)
    assert (certificate.n, certificate.trials.n, certificate.method) == (12, 60, "tuned")
    assert certificate.shares_of == "cluster"
    certificate.save(tmp_path / "c.json")
    again = bw.Certificate.load(tmp_path / "c.json")
    assert again == certificate
    assert all(check.ok for check in again.verify(lab))
    means = bw.Certificate.from_held_out(lab.costs, delta=0.1, method="tuned")
    assert (means.lower, means.upper) == (certificate.lower, certificate.upper)
    new = bw.Episodes(np.ones(40), binary=True, clusters=np.repeat(np.arange(20, 30), 4))
    found = bw.HypothesisTest(certificate).decide(new)
    assert (found.n, found.verdict.value, found.shares_of) == (10, "adverse", "cluster")
    with pytest.raises(InvalidSetting, match=r"counts each cluster once, but these are trials.*clusters"):
        bw.HypothesisTest(certificate).decide(bw.Episodes([0, 1, 0], binary=True))


def policy(costs, clusters, name):
    return bw.Episodes(costs, clusters=clusters, source=name)


def test_clusters_of_two_policies_are_matched_by_name():
    a = policy([1, 0, 0, 1, 0, 0], ["x", "x", "y", "y", "z", "z"], "a.csv")
    b = policy([0, 0, 1, 1], ["y", "y", "x", "x"], "b.csv")
    one, other = align([a, b], paired=True)
    assert one.keys["cluster"] == other.keys["cluster"] == ("x", "y")
    assert (one.costs.tolist(), other.costs.tolist()) == ([0.5, 0.5], [1.0, 0.0])
    assert one.warnings == ("a.csv: z left out: not every policy ran there",)
    with pytest.raises(InvalidSetting, match=r"b.csv: .*'x', on which a.csv ran, too; .*paired"):
        align([a, b], paired=False)
    apart = policy([0, 0, 1, 1], ["v", "v", "w", "w"], "b.csv")
    assert [each.costs.size for each in align([a, apart], paired=False)] == [3, 2]
    with pytest.raises(bw.errors.InvalidCost, match="has no cluster that another policy ran on"):
        align([a, apart], paired=True)
