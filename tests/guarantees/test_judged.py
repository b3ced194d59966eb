"""`JudgedTest`: expected wealth enumerated for all paths, for any judge; broken twins; fewer labels."""

from itertools import product

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds.judged_bets import JudgedBets
from boundwatch.errors import BoundwatchError

T = 3
RATES = [(0.2, 0.5), (0.3, 0.3), (1.0, 0.1)]
JUDGES = [(0.9, 0.1), (0.5, 0.5), (0.1, 0.9), (1.0, 1.0), (0.0, 0.0)]
"""How often a judge calls failures, and successes, failures: good, useless, inverted, biased."""
CERT = bw.Certificate.from_bounds(lower=0.05, upper=0.15, delta=0.01, binary=True)


def expected(rate, judge, rates, means, counts=lambda _drawn, _label: True):
    """The expected wealth of both sides after 3 episodes, by all paths; `counts` is for a broken twin."""
    total = np.zeros((2, len(means)))
    steps = [
        (called, drawn, failed, p)
        for failed, called, drawn in product((0, 1), repeat=3)
        for p in [
            (rate if failed else 1 - rate)
            * (judge[1 - failed] if called else 1 - judge[1 - failed])
            * (rates[called] if drawn else 1 - rates[called])
        ]
        if p
    ]
    for path in product(steps, repeat=T):
        bets = JudgedBets(np.array(means), rates)
        for called, drawn, failed, _ in path:
            if counts(drawn, failed):
                bets.step(bool(called), float(failed) if drawn else None)
        total += np.prod([step[3] for step in path]) * np.exp([bets.wealth(0), bets.wealth(1)])
    return total


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize(("rate", "rates"), list(zip([0.1, 0.3, 0.8], RATES, strict=True)))
def test_no_judge_makes_the_bets_unfair(judge, rate, rates):
    wealth = expected(rate, judge, rates, [rate, rate + 0.1, rate - 0.05])
    assert wealth[:, 0] == pytest.approx(1)
    assert wealth[0, 1] <= 1
    assert wealth[1, 2] <= 1


def test_labels_that_come_when_people_like_fail_this_test():
    """Who counts what has a label, and has labeled failures first, believes in more of them."""
    twin = expected(0.3, (0.9, 0.1), (0.5, 0.5), [0.3], lambda drawn, failed: failed or not drawn)
    assert twin[0, 0] > 1.3


def test_a_judge_that_knows_the_coin_fails_this_test():
    """It calls failures what nobody will label, so that each of these counts as one."""
    total = 0.0
    for path in product([(0.2, 0.2), (0.2, 0.8), (0.8, None)], repeat=T):
        bets, p = JudgedBets(np.array([0.2]), (0.2, 0.2)), 1.0
        for chance, of_label in path:
            drawn = of_label is not None
            p *= chance * of_label if drawn else chance
            bets.step(not drawn, float(of_label == 0.2) if drawn else None)
        total += p * np.exp(bets.wealth(0)[0])
    assert total > 1.1


def streams(runs, rate, miss, alarm, n=400):
    rng = np.random.default_rng(17)
    for seed in range(runs):
        failed = rng.random(n) < rate
        called = np.where(failed, rng.random(n) >= miss, rng.random(n) < alarm)
        yield seed, failed.astype(float), called.astype(float)


def test_a_good_judge_saves_labels_and_a_bad_one_is_found_out():
    labels, alone = [], []
    for seed, failed, called in streams(8, 0.28, 0.1, 0.05):
        judged, plain = bw.JudgedTest(CERT, seed=seed), bw.SequentialTest(CERT)
        for one, said in zip(failed, called, strict=True):
            if judged.update(said, one).first_alarm:
                break
        for one in failed:
            if plain.update(one).first_alarm:
                break
        labels.append(judged.finding().labels)
        alone.append(plain.n)
    assert np.mean(labels) < 0.85 * np.mean(alone)
    # Another judge calls half of all successes failures, where nothing has become worse.
    for seed, failed, called in streams(5, 0.1, 0.1, 0.5):
        judged = bw.JudgedTest(CERT, seed=seed)
        for one, said in zip(failed, called, strict=True):
            finding = judged.update(said, one)
        assert finding.judge_says > 0.45
        assert finding.verdict is not bw.Verdict.ADVERSE
        assert finding.shift_lower + CERT.upper <= 0.1 <= finding.shift_upper + CERT.lower


def test_labels_may_come_in_any_order_and_count_in_that_of_the_episodes():
    (_, failed, called), *_ = streams(1, 0.5, 0.1, 0.1, n=60)
    at_once = bw.JudgedTest(CERT, seed=3)
    for one, said in zip(failed, called, strict=True):
        known = at_once.update(said, one)
    later = bw.JudgedTest(CERT, seed=3)
    waiting = later.update_many(called).waiting
    assert later.n == waiting[0] - 1
    for episode in reversed(waiting):
        assert later.n < waiting[0]
        finding = later.label(episode, failed[episode - 1])
    assert finding == known
    assert finding.n == finding.judged == 60
    again = bw.JudgedTest.from_state_dict(later.state_dict())
    assert again.finding() == finding
    assert again.update(1.0) == later.update(1.0)


def test_wrong_labels_and_settings_are_refused():
    test = bw.JudgedTest(CERT, seed=3)
    drawn, *_ = test.update_many([1.0, 0.0] * 20).waiting
    other = next(each for each in range(1, 41) if not test.is_drawn(each))
    test.label(drawn, 1)
    test.label(drawn, 1)
    for episode, cost in ((drawn, 0), (other, 1), (41, 1), (drawn, 0.5)):
        with pytest.raises(BoundwatchError):
            test.label(episode, cost)
    for rates in ((0, 0.5), (0.5,), (0.2, 1.2)):
        with pytest.raises(BoundwatchError, match="two probabilities"):
            bw.JudgedTest(CERT, seed=3, rates=rates)
    state = test.state_dict()
    with pytest.raises(BoundwatchError, match="damaged"):
        bw.JudgedTest.from_state_dict(state | {"n": 39})


def test_a_campaign_with_a_judge_has_limits_at_all_times():
    """They are those of the bets that were enumerated; a good judge makes them narrow."""
    for seed, failed, called in streams(4, 0.2, 0.1, 0.05):
        good, blind = (bw.JudgedCampaign(seed=seed, delta=0.05, binary=True) for _ in range(2))
        for one, said in zip(failed, called, strict=True):
            good.update(said, one)
            blind.update(1 - said, one)
            assert good.lower <= 0.2 <= good.upper
            assert blind.lower <= 0.2 <= blind.upper
        assert good.upper - good.lower < 0.4
    certificate = good.certificate()
    assert (certificate.lower, certificate.upper, certificate.delta) == (good.lower, good.upper, 0.05)
    assert bw.SequentialTest(certificate).certificate.binary


def test_a_campaign_waits_for_labels():
    campaign = bw.JudgedCampaign(seed=1, binary=True)
    for _ in range(40):
        campaign.update(1)
    first, *others = campaign.waiting
    assert (campaign.lower, campaign.upper) == (0.0, 1.0)
    for trial in (*others, first):
        campaign.label(trial, 1)
    assert campaign.waiting == ()
    assert campaign.lower > 0.3
    with pytest.raises(BoundwatchError):
        campaign.update(0.5)
    assert "judged=40" in repr(campaign)
