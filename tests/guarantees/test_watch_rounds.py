"""A stream of several tasks, judged at looks after rounds 1, 2, 4, ...: every outcome of small worlds."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

import boundwatch as bw
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.bounds.strata import stratified_p_value
from boundwatch.detectors.rounds import share_of
from boundwatch.detectors.strata import StrataTest, Weighed, by_task

GRID = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
STEPS = (1, 1, 2, 4)  # trials of a task from look to look
DREAM = 1 - np.array([1, 1, 0.95, 1, 0.95, 0.2, 1, 0.85, 1, 0.9])
VIDEO = 1 - np.array([0.22, 0.34, 0.32, 0.40, 0.62, 0.24, 0.66, 0.38, 0.76, 0.92, 0.92, 1, 0.42, 0.94])


class Paths:
    """All numbers of failures of a task from look to look, and their chances."""

    def __init__(self, looks: int) -> None:
        self.steps = np.array(list(itertools.product(*(range(n + 1) for n in STEPS[:looks]))))
        self.counts = np.cumsum(self.steps, axis=1)
        self.looks = np.cumsum(STEPS[:looks]).tolist()

    def chances(self, rate: float) -> np.ndarray:
        return binom.pmf(self.steps, STEPS[: len(self.looks)], rate).prod(axis=1)


def highest(events: np.ndarray, lab: int, paths: Paths, worse: tuple[float, float] = (1.0, 1.0)) -> float:
    """Return the highest chance of an event, (lab a, lab b, path a, path b), over all rates of the lab."""
    found = []
    for rates in itertools.product(GRID, repeat=2):
        of_lab = [binom.pmf(range(lab + 1), lab, rate) for rate in rates]
        of_new = [paths.chances(rate * factor) for rate, factor in zip(rates, worse, strict=True)]
        found.append(np.einsum("i,j,k,l,ijkl->", *of_lab, *of_new, events))
    return max(found)


def test_all_tasks_together_are_called_adverse_at_most_as_often_as_promised_at_any_look():
    lab, paths, alpha = 6, Paths(4), 0.3
    p_values = np.ones((len(paths.looks), lab + 1, lab + 1, len(paths.counts), len(paths.counts)))
    for place, look in enumerate(paths.looks):
        size = range(look + 1)
        table = np.empty((lab + 1, lab + 1, look + 1, look + 1))
        for a, b, c, d in itertools.product(range(lab + 1), range(lab + 1), size, size):
            table[a, b, c, d] = stratified_p_value((lab, lab), (a, b), (look, look), (c, d))
        at = paths.counts[:, place]
        p_values[place] = table[:, :, at[:, None], at]
    shares = np.array([share_of(look, lab) for look in paths.looks]).reshape(-1, 1, 1, 1, 1)
    sound = (p_values <= alpha * shares).any(axis=0)
    assert 0.1 * alpha < highest(sound, lab, paths) <= alpha
    assert highest(sound, lab, paths, (1.0, 0.5)) <= alpha
    # The broken twins: the whole level at every look, and shares that grow without end.
    assert highest((p_values <= alpha).any(axis=0), lab, paths) > alpha
    growing = np.array([share_of(look, 0.5) * 3 for look in paths.looks]).reshape(-1, 1, 1, 1, 1)
    assert highest((p_values <= alpha * growing).any(axis=0), lab, paths) > alpha


def costs_of(failures: int, n: int) -> np.ndarray:
    return np.array([1.0] * failures + [0.0] * (n - failures))


def lab_of(*failures: int, n: int) -> bw.Episodes:
    costs = np.concatenate([costs_of(k, n) for k in failures])
    return bw.Episodes(costs, strata=np.repeat([*"ab"], n).tolist())


def calls(test: StrataTest, paths: Paths, lab: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for all pairs of paths whether anything is ever called ADVERSE, or BENIGN or no worse.

    And the broken twin: whether a task by itself would be ADVERSE, if each had the whole level.
    """
    found = {}
    for look in paths.looks:
        for a, b in itertools.product(range(look + 1), repeat=2):
            new = {"a": costs_of(a, look), "b": costs_of(b, look)}
            found[look, a, b] = test.weigh(new, share_of(look, lab))
    size = len(paths.counts)
    adverse, benign, alone = np.zeros((3, size, size), dtype=bool)
    for (i, first), (j, second) in itertools.product(enumerate(paths.counts.tolist()), repeat=2):
        known = Weighed.nothing(3)
        for look, a, b in zip(paths.looks, first, second, strict=True):
            known = known.with_look(found[look, a, b], share_of(look, lab))
        finding = test.finding(known, {"a": (1, 0.0), "b": (1, 0.0)}, "sequential-test")
        verdicts = {finding.verdict, *(each.verdict for each in finding.tasks.values())}
        shown = [finding.no_worse, *(each.no_worse for each in finding.tasks.values())]
        adverse[i, j] = bw.Verdict.ADVERSE in verdicts
        benign[i, j] = bw.Verdict.BENIGN in verdicts or any(shown)
        alone[i, j] = known.p[0, 1:].min() <= test.levels[0]
    return adverse, benign, alone


def test_together_with_each_task_errors_are_at_most_as_frequent_as_promised():
    lab, paths = 2, Paths(3)
    adverse, benign, alone = np.zeros((3, lab + 1, lab + 1, len(paths.counts), len(paths.counts)))
    for a, b in itertools.product(range(lab + 1), repeat=2):
        certificate = bw.Certificate.from_held_out(lab_of(a, b, n=lab), delta=0.4, binary=True)
        test = StrataTest(certificate, (0.4, 0.4), 1e-4)
        assert test.joint
        assert [*test.totals.values()] == pytest.approx([0.6, 0.6])
        adverse[a, b], benign[a, b], alone[a, b] = calls(test, paths, lab)
    assert 0.03 < highest(adverse, lab, paths) <= 0.6
    assert 0.02 < highest(benign, lab, paths) <= 0.6
    assert highest(alone, lab, paths) > 2 * highest(adverse, lab, paths)


def test_against_the_limits_of_a_campaign_the_level_holds_wherever_they_do():
    rounds, alpha, paths = 400, 0.3, Paths(4)
    trials = lab_of(40, 120, n=rounds)
    certificate = (
        bw.Campaign(delta=0.2, binary=True, strata=[*"ab"]).update_many(trials, trials.keys["strata"])
    ).certificate()
    test = StrataTest(certificate, (alpha, alpha), None)
    assert not test.joint
    adverse, benign, _ = calls(test, paths, rounds / 100)
    tasks, found = by_task(certificate), {"adverse": [0.0], "benign": [0.0]}
    for rates in itertools.product(np.linspace(0, 1, 26), repeat=2):
        chances = np.multiply.outer(*(paths.chances(rate) for rate in rates))
        pairs = list(zip(rates, tasks.values(), strict=True))
        if np.mean(rates) <= certificate.upper and all(rate <= one.upper for rate, one in pairs):
            found["adverse"].append((chances * adverse).sum())
        if np.mean(rates) >= certificate.lower and all(rate >= one.lower for rate, one in pairs):
            found["benign"].append((chances * benign).sum())
    assert 0.004 < max(found["adverse"]) <= alpha
    assert max(found["benign"]) <= alpha


def test_costs_between_0_and_1_of_tasks_that_differ_keep_their_level_as_one_sample():
    """Two tasks, two rounds in the lab and two new ones: every outcome, with its chance."""
    values, level = np.array([0.0, 0.5, 1.0]), 0.1
    pairs = list(itertools.product(range(3), repeat=4))  # of a series: a, a, b, b
    found, spent = {}, []
    counts = sorted({tuple(sorted(pair)) for pair in pairs})
    for lab in counts:
        costs = bw.Episodes(values[list(lab)], strata=[*"aabb"], binary=False)
        certificate = bw.Certificate.from_held_out(costs, delta=0.1, binary=False)
        for new in counts:
            series = values[list(new)]
            p = StrataTest(certificate, (level, level), None).weigh({"a": series[:2], "b": series[2:]}).p
            found[lab, new] = 1 / p[:2, 0]
    table = np.array([[found[tuple(sorted(a)), tuple(sorted(b))] for b in pairs] for a in pairs])
    for first, second in itertools.product(
        [(1, 0, 0), (0.5, 0, 0.5), (0.2, 0.6, 0.2), (0, 0, 1), (0.8, 0, 0.2)], repeat=2
    ):
        chances = np.array([np.prod([first[i], first[j], second[k], second[m]]) for i, j, k, m in pairs])
        for alpha in (0.3, 0.5, 0.7, 0.9):
            reached = chances @ (table >= 1 / alpha - 1e-9).transpose(2, 0, 1) @ chances
            assert (reached <= alpha).all()
            spent.append(reached.max() / alpha)
    assert max(spent) > 0.05


def test_a_small_rise_of_costs_that_vary_little_is_found_soon():
    rng = np.random.default_rng(7)
    tasks, means = [*"abc"], np.array([0.1, 0.3, 0.5])
    lab = np.clip(means + 0.05 * rng.standard_normal((20, 3)), 0, 1).ravel()
    certificate = bw.Certificate.from_held_out(bw.Episodes(lab, strata=tasks * 20), delta=0.01, binary=False)
    new = np.clip(means + 0.2 + 0.05 * rng.standard_normal((16, 3)), 0, 1).ravel()
    finding = bw.SequentialTest(certificate).update_many(new, tasks * 16)
    assert finding.verdict is bw.Verdict.ADVERSE
    assert finding.shift_lower > 0


def test_the_shares_of_all_looks_add_up_to_the_level():
    for lab in (1, 3.5, 20, 4000):
        assert 0.999 < sum(share_of(2**k, lab) for k in range(60)) <= 1 + 1e-12


def found_by(rates: np.ndarray, shift: float, lab: int, most: int, runs: int = 60):
    """Return after how many trials looks, and the exact line of all trials as one sample, alarm."""
    rng, tasks = np.random.default_rng(3), rates.size
    looks, pooled = np.full(runs, np.inf), np.full(runs, np.inf)
    for run in range(runs):
        failures = (rng.random((lab, tasks)) < rates).sum(axis=0)
        new = rng.random((most, tasks)) < np.clip(rates + shift, 0, 1)
        for look in 2 ** np.arange(int(np.log2(most)) + 1):
            seen = np.full(tasks, look), new[:look].sum(axis=0)
            p = stratified_p_value(np.full(tasks, lab), failures, *seen)
            if p <= 0.8 * 0.05 * share_of(int(look), lab):
                looks[run] = look * tasks
                break
        line = alarm_line(lab * tasks, int(failures.sum()), 0.05).needed(most * tasks)
        reached = np.flatnonzero(np.cumsum(new) >= line[1 : most * tasks + 1])
        pooled[run] = reached[0] + 1 if reached.size else np.inf
    return looks, pooled


# Rates, shift, lab rounds; at most how many trials on average where it is found, and how often it must be.
POWER = {
    "dream20": (DREAM, 0.10, 20, 120, 0.95),
    "dream50": (DREAM, 0.06, 50, 280, 0.85),
    "video20": (VIDEO, 0.10, 20, 330, 0.70),
    "alike20": (np.full(10, 0.2), 0.10, 20, 300, 0.55),
}


@pytest.mark.parametrize("cell", POWER)
def test_a_rise_of_all_tasks_is_found_soon_with_single_tasks_paid_for(cell):
    rates, shift, lab, trials, share = POWER[cell]
    looks, pooled = found_by(rates, shift, lab, 64)
    assert np.isfinite(looks).mean() >= share
    assert looks[np.isfinite(looks)].mean() <= trials
    if cell.startswith("dream"):  # where tasks differ much, one sample needs far more
        assert np.isfinite(pooled).mean() < np.isfinite(looks).mean() - 0.1
