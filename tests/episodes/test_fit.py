"""What makes a verdict on new costs doubtful, of a whole file and cost by cost."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.certificates.record import MOST_POINTS
from boundwatch.episodes.fit import Likeness, is_time_to_look

RNG = np.random.default_rng(41)


def share(certificate, costs):
    """Return the share of costs that were certified, however many there are; 0 where that may be chance."""
    if len(costs) < 5 or len(set(costs)) < 0.9 * len(costs):
        return 0.0
    return len([cost for cost in costs if cost in certificate.record.values]) / len(costs)


@pytest.mark.parametrize("known", [0.2, 0.45, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("again", [0.0, 0.1, 0.3])
def test_most_costs_were_certified_is_said_at_the_first_cost_that_makes_it_true(known, again):
    moments = set()
    for n in (4, 5, 20, 60):
        lab = RNG.random(n).tolist()
        certificate = bw.Certificate.from_held_out(lab)
        for _ in range(5):
            new = []
            for _ in range(4 * n):
                draw, rest = RNG.random(2)
                new.append(new[0] if new and draw < again else RNG.choice(lab) if rest < known else draw)
            expected = [i for i in range(len(new)) if share(certificate, new[: i + 1]) >= 0.5][:1]
            likeness = Likeness(certificate)
            said = [likeness.take([cost], "cost", None) for cost in new]
            assert [i for i, each in enumerate(said) if each] == expected
            whole = Likeness(certificate).take(np.array(new), "cost", None)
            assert len(whole) == (share(certificate, new) >= 0.5)
            moments.update(expected)
    assert moments or known < 0.5 or again == 0.3


def test_few_costs_are_kept_however_many_come():
    certificate = bw.Certificate.from_held_out(RNG.random(MOST_POINTS))
    likeness, kept = Likeness(certificate), 0
    for cost in RNG.random(1000):
        assert likeness.take([cost], "cost", None) == []
        kept = max(kept, len(likeness.costs or ()))
    assert (kept, likeness.is_settled) == (642, True)
    for costs in (RNG.random(MOST_POINTS + 100), np.repeat([0.1, 0.4], 10)):  # on a grid; of two values
        likeness = Likeness(bw.Certificate.from_held_out(costs))
        assert likeness.take(costs, "cost", None) == []
        assert likeness.is_settled


@pytest.mark.parametrize("meaning", ["cost", "reward"])
def test_another_unit_is_said_at_the_first_value_that_shows_it(meaning):
    lab, new = np.array([20, 35, 0, 50, 80]), [0.0, 0.0, 0.4, 0.7, 0.0, 30.0]

    def costs(readings):
        shares = np.array(readings) / 100
        return shares if meaning == "cost" else 1 - shares

    certificate = bw.Certificate.from_held_out(costs(lab), cost_range=(0, 100))
    likeness = Likeness(certificate)
    said = [likeness.take([cost], meaning, (0, 100)) for cost in costs(new)]
    assert [i for i, each in enumerate(said) if each] == [2]
    for place in range(1, len(new) + 1):
        whole = Likeness(certificate).take(costs(new[:place]), meaning, (0, 100))
        assert bool(whole) == (3 <= place <= 5)
    # One value that is too high for fractions settles it; so does another range.
    for first, cost_range in ((30.0, (0, 100)), (0.4, (0, 200)), (0.4, None)):
        likeness = Likeness(certificate)
        assert likeness.take(costs([first]), meaning, cost_range) == []
        assert (likeness.take(costs([0.4]), meaning, (0, 100)), likeness.highest) == ([], None)


@pytest.mark.parametrize(("mean", "doubtful"), [(0.0, True), (0.5, True), (0.995, False)])
def test_the_unit_of_rewards_is_compared_with_the_certified_reward(mean, doubtful):
    certificate = bw.Certificate.from_held_out(np.full(20, mean), cost_range=(0, 100))
    said = Likeness(certificate).take(1 - np.array([0.5, 0.7]) / 100, "reward", (0, 100))
    assert bool(said) == doubtful


def test_honest_streams_seldom_look_doubtful():
    """The control, a look after every cost, takes many of them for certified costs or another unit."""
    rng = np.random.default_rng(0)

    def doubted(certificate, costs, ends, is_looked_at):
        likeness = Likeness(certificate)
        return any(
            likeness.take([cost], "cost", ends, look=is_looked_at(n, certificate.n))
            for n, cost in enumerate(costs, start=1)
        )

    found = {"seldom": np.zeros(2), "always": np.zeros(2)}
    for _ in range(200):
        digits = [
            bw.Certificate.from_held_out(rng.integers(0, 100, 30) / 100),
            rng.integers(0, 100, 60) / 100,
        ]
        low = np.minimum(rng.exponential(0.06, 80), 1)
        unit = [bw.Certificate.from_held_out(low[:60], cost_range=(0, 100)), low[60:]]
        for name, rule in (("seldom", is_time_to_look), ("always", lambda *_: True)):
            found[name] += doubted(*digits, None, rule), doubted(*unit, (0, 100), rule)
    assert (found["seldom"] <= 4).all()
    assert (found["always"] >= 10).all()
