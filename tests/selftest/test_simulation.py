"""The self-test: keeps quiet when promises are kept, and cries when one is broken."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.bounds import joint_region
from boundwatch.comparison import once, ranking
from boundwatch.detectors import family_test, fixed_sample, mixture, strata
from boundwatch.errors import InvalidLevel, InvalidSetting
from boundwatch.prediction.likeness import SceneWatch
from boundwatch.selftest import claims as promised
from boundwatch.selftest import designs, simulate_promises, simulation, tallies
from boundwatch.selftest import worlds as scenes

BOUNDED = bw.Certificate.from_bounds(lower=0.6, upper=0.7, delta=0.01)
WIDE = bw.Certificate.from_bounds(lower=0.1, upper=0.9, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
LAB = bw.Certificate.from_held_out([0, 0, 0, 1] * 10, binary=True)
BOUNDED_LAB = bw.Certificate.from_held_out([0.1, 0.2, 0.3, 0.4] * 3)
FAULTLESS_LAB = bw.Certificate.from_held_out([0] * 50, binary=True)
CAMPAIGN = bw.Campaign(binary=True).update_many([0, 0, 0, 1] * 5).certificate()
LEVELS = {bw.Verdict.ADVERSE: 0.04, bw.Verdict.BENIGN: 0.04}


def claims(certificate, name):
    """The claims about one kind of detector, in words that begin so."""
    found = [each for each in simulation.all_claims(certificate, LEVELS) if each.detector.startswith(name)]
    assert found
    return found


def kept(found, runs, seed=70):
    rng = np.random.default_rng(seed)
    return [simulation._judge(claim, rng, runs).kept for claim in found]


def found_out(found, runs):
    """Whether all are called broken; what a few of the runs show, all of them show, too."""
    return not any(kept(found, runs // 30)) or not any(kept(found, runs))


def test_our_promises_are_kept_and_not_vacuous():
    promises = simulate_promises(BINARY, runs=60)
    assert all(promise.kept for promise in promises)
    assert all(promise.low <= promise.rate <= promise.high for promise in promises)
    spent = max(promise.rate / promise.promised for promise in promises)
    assert spent > 0.5


def test_worlds_between_the_points():
    worlds = {claim.world for claim in claims(BOUNDED, "hypothesis-test, kl, n = 5")}
    assert {"0.2 or 1, mean 0.6", "0 or 0.735, mean 0.7", "0.58 or 1, mean 0.6"} <= worlds
    low = bw.Certificate.from_bounds(lower=0.05, upper=0.1, delta=0.01)
    assert "0 or 0.105, mean 0.1" in {claim.world for claim in claims(low, "fleet, read")}


CLAIMED = (
    "hypothesis-test, betting, n = 5",
    "hypothesis-test, exact, n = 100",
    "confidence-interval, exact, lower shift limit",
    "hypothesis-test, kl, upper shift limit",
    "fleet, read 200 times",
    "fleet, margin 0.1, read 200 times",
    "sequential-test, read 200 times",
    "sequential-test, margin 0.1, read 200 times",
    "sequential-test, upper shift limit",
    "discoveries, in 5 streams",
    "discoveries, restarted, in 5 streams",
    "change-detector, run length <= 200",
    "certificate, upper limit",
    "hypothesis-test, total, n = 50",
    "hypothesis-test, total, lower shift limit",
    "hypothesis-test, total, margin 0.1, n = 50",
    "confidence-interval, total, n = 10",
    "fleet, total, read 200 times",
    "fleet, total, margin 0.1, read 200 times",
    "sequential-test, total, read 200 times",
    "sequential-test, total, any of 20 streams",
    "sequential-test, total, margin 0.1, read 200 times",
    "sequential-test, total, lower shift limit",
    "discoveries, total, in 5 streams",
    "compare, 20 tasks in turn, independent",
    "compare, 20 tasks in turn, matched",
    "compare, matched, horizon 40",
    "compare, once, exact",
    "rank, any pair of 2",
    "rank, any pair of 3",
    "predicted-test, 20 trials",
    "scene-watch",
    "hypothesis-test, total, mean over 4 tasks and each",
    "family-test, total, any of 2 tasks",
)
ONLY_BINARY = {"hypothesis-test, exact, n = 100", "confidence-interval, exact, lower shift limit"}


@pytest.mark.parametrize(
    "lab", [LAB, FAULTLESS_LAB, BOUNDED_LAB, CAMPAIGN], ids=["binary", "faultless", "bounded", "campaign"]
)
def test_a_rate_of_one_and_a_half_times_any_promise_is_noticed(lab):
    found = list(simulation.all_claims(lab, LEVELS))
    names = {claim.detector.replace("n = 10", "n = 50") for claim in found}
    if lab is CAMPAIGN:
        assert "campaign, looked at 10 times" in names
    else:
        missing = set(CLAIMED) - names - (set() if lab.binary else ONLY_BINARY)
        assert not {name.replace("n = 10", "n = 50") for name in missing} - names
    rng = np.random.default_rng(71)
    for claim in found:
        broken = dataclasses.replace(
            claim, count=lambda rng, runs, rate=1.5 * claim.promised: int(rng.binomial(runs, rate))
        )
        promise = simulation._judge(broken, rng, simulation.RUNS)
        assert promise.sees <= 1.5 * claim.promised, claim
        assert not promise.kept, claim
        exact = dataclasses.replace(
            claim, count=lambda rng, runs, rate=claim.promised: int(rng.binomial(runs, rate))
        )
        assert simulation._judge(exact, rng, simulation.RUNS).kept


def hasty(kind):
    """A detector that takes any evidence for enough."""

    class Hasty(kind):
        def __init__(self, certificate, *, alpha_adverse=0.04, alpha_benign=0.04, **settings):
            del alpha_adverse, alpha_benign
            super().__init__(certificate, alpha_adverse=0.9, alpha_benign=0.9, **settings)

    return Hasty


def carefree(kind):
    """A detector that takes the mean of the lab's costs for the truth, and any evidence for enough."""

    class Carefree(kind):
        def __init__(self, certificate, *, alpha_adverse, alpha_benign, **settings):
            del alpha_adverse, alpha_benign
            mean = certificate.mean_cost
            bound = bw.Certificate.from_bounds(lower=mean, upper=mean, delta=0.01)
            super().__init__(bound, alpha_adverse=0.9, alpha_benign=0.9, **settings)

    return Carefree


def rash(kind):
    """A detector that takes every difference for a shift."""

    class Rash(kind):
        def decide_many(self, costs):
            change = np.asarray(costs).mean(axis=-1) - self.certificate.mean_cost
            verdict = np.where(change > 0, bw.Verdict.ADVERSE, bw.Verdict.BENIGN)
            no_worse = change <= (self.margin or 0.0)
            return SimpleNamespace(verdict=verdict, no_worse=no_worse, shift_lower=change, shift_upper=change)

    return Rash


class Fickle(bw.SequentialTest):
    """Alarms, shows all and has impossible limits in every third stream, whatever its e-values say."""

    streams = 0

    def reset(self):
        Fickle.streams += 1
        super().reset()

    def update_many(self, costs):
        real = super().update_many(costs)
        if Fickle.streams % 3:
            return real
        self.verdict = bw.Verdict.ADVERSE
        return SimpleNamespace(verdict=self.verdict, no_worse=True, shift_lower=1.0, shift_upper=-1.0)


@pytest.mark.parametrize("lab", [LAB, BOUNDED_LAB], ids=["binary", "bounded"])
@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("hypothesis-test, total, n = 10", rash(bw.HypothesisTest)),
        ("hypothesis-test, total, lower shift limit", rash(bw.HypothesisTest)),
        ("hypothesis-test, total, upper shift limit", rash(bw.HypothesisTest)),
        ("hypothesis-test, total, margin", rash(bw.HypothesisTest)),
        ("confidence-interval, total", rash(bw.ConfidenceInterval)),
        ("sequential-test, total, lower shift limit", Fickle),
        ("sequential-test, total, upper shift limit", Fickle),
        ("sequential-test, total, read 200", carefree(bw.SequentialTest)),
        ("sequential-test, total, margin", carefree(bw.SequentialTest)),
        ("fleet, total, read 200", carefree(bw.Fleet)),
        ("fleet, total, margin", carefree(bw.Fleet)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_totals_that_are_not_kept_are_found_out(lab, name, twin, monkeypatch):
    found = [claim for claim in claims(lab, name) if "0.25" in claim.world][:1]
    assert all(kept(found, 50))
    name = twin.__base__.__name__
    monkeypatch.setattr(promised if hasattr(promised, name) else tallies, name, twin)
    assert not any(kept(found, 50 if twin is Fickle else 100))  # which errs more often than the others


class Unshared(bw.SequentialTest):
    """Spends the whole delta on each of the streams that share a certificate."""

    def __init__(self, certificate, *, sharing, **settings):
        assert sharing == 20
        super().__init__(certificate, **settings)


class Careless(bw.HypothesisTest):
    """Takes the mean of the lab's costs for the truth."""

    def __init__(self, certificate, **settings):
        mean = certificate.mean_cost
        bound = bw.Certificate.from_bounds(lower=mean, upper=mean, delta=0.01, binary=True)
        super().__init__(bound, tail="exact", **settings)


class Spendthrift(bw.Certificate):
    """Spends four times its delta."""

    @classmethod
    def from_held_out(cls, costs, **settings):
        deltas = {name: 4 * settings.pop(name) for name in ("delta_upper", "delta_lower")}
        return bw.Certificate.from_held_out(costs, **settings, **deltas)


class Impatient(bw.Campaign):
    """Certifies as if the number of trials had been fixed in advance."""

    def __init__(self, **settings):
        self.settings = settings

    def update_many(self, costs):
        return bw.Certificate.from_held_out(costs, **self.settings)


class Hurried(bw.PolicyComparison):
    """Looks within turns."""

    def __init__(self, *args, tasks, **settings):
        del tasks
        super().__init__(*args, **settings)


class Lavish(bw.PolicyComparison):
    """Has three times its level."""

    def __init__(self, alpha, **settings):
        super().__init__(3 * alpha, **settings)


class Listing(bw.Fleet):
    """Lists whatever has some evidence."""

    def discoveries(self, _rate):
        return self.ids


@pytest.mark.parametrize(
    ("twin", "module", "certificate", "name", "runs"),
    [
        (Unshared, tallies, LAB, "sequential-test, total, any of", 4000),
        (Careless, promised, LAB, "hypothesis-test, total, n = 50", 1500),
        (Spendthrift, scenes, LAB, "certificate, ", 600),
        (Impatient, promised, CAMPAIGN, "campaign", 3000),
        (Hurried, designs, BINARY, "compare, 20 tasks in turn, independent", 300),
        (Hurried, designs, BINARY, "compare, 20 tasks in turn, matched", 300),
        (Lavish, designs, BINARY, "compare, matched, horizon", 1500),
        (Lavish, designs, BINARY, "compare, one finished", 1500),
        (Listing, tallies, BINARY, "discoveries, in", 1000),
        (Listing, tallies, LAB, "discoveries, total", 1000),
        (Fickle, tallies, BOUNDED, "sequential-test, read", 100),
        (Fickle, tallies, BOUNDED, "sequential-test, margin", 100),
        (Fickle, tallies, BOUNDED, "sequential-test, lower", 100),
        (Fickle, tallies, BOUNDED, "sequential-test, upper", 100),
    ],
)
def test_a_broken_twin_is_found_out(twin, module, certificate, name, runs, monkeypatch):
    found = claims(certificate, name)
    if twin in (Unshared, Fickle):  # slow: one world is enough
        found = found[:1]
    assert all(kept(found, runs // 8))  # so that it is the twin that is found out
    monkeypatch.setattr(module, twin.__base__.__name__, twin)
    broken = [not fine for fine in kept(found, runs)]
    assert any(broken) if twin in (Careless, Spendthrift, Impatient) else all(broken)


def test_a_delta_of_one_in_ten_million_takes_no_memory():
    strict = bw.Certificate.from_held_out([0, 0, 0, 1] * 10, binary=True, delta=1e-7)
    rng = np.random.default_rng(72)
    found = [simulation._judge(claim, rng, simulation.RUNS) for claim in claims(strict, "certificate, ")]
    assert all(promise.kept and promise.runs > 1e9 for promise in found)


def test_the_worlds_lie_on_the_side_where_the_verdict_is_wrong():
    class Fixed:
        """Draws just below the mean and at it, so that the rounding of the chance decides."""

        def random(self, shape):
            return np.full(shape, [np.nextafter(0.2, 0), 0.2])

    for verdict, mean in ((bw.Verdict.ADVERSE, 0.0), (bw.Verdict.BENIGN, 1.0)):
        assert scenes.World(BINARY, verdict, 0.0, 1.0, 0.2).draw(Fixed(), (3, 2)).mean() == mean


def test_each_verdict_of_the_change_detector_has_its_own_level(monkeypatch):
    class Uneven(bw.ChangeDetector):
        def __init__(self, certificate):
            super().__init__(certificate, alpha_adverse=0.0001, alpha_benign=0.002)

    monkeypatch.setattr(promised, "ChangeDetector", Uneven)
    levels = {claim.verdict: claim.promised for claim in claims(BOUNDED, "change-detector")}
    assert levels == {bw.Verdict.ADVERSE: pytest.approx(0.02), bw.Verdict.BENIGN: pytest.approx(0.4)}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (bw.Fleet, {"fleet, read 200 times", "fleet, margin 0.1, read 200 times"}),
        (
            bw.SequentialTest,
            {"sequential-test, read 200 times", "sequential-test, margin 0.1, read 200 times"},
        ),
    ],
)
def test_who_alarms_too_soon_is_found_out_and_nobody_else(kind, names, monkeypatch):
    found = [claim for claim in claims(WIDE, "") if claim.world.startswith("0 or 1,")]
    assert {claim.verdict for claim in found} == {bw.Verdict.ADVERSE, bw.Verdict.BENIGN}
    monkeypatch.setattr(tallies, kind.__name__, hasty(kind))
    broken = {claim.detector for claim, fine in zip(found, kept(found, 30), strict=True) if not fine}
    assert names <= broken  # and, at this level, its limits
    assert {name.partition(",")[0] for name in broken} == {name.partition(",")[0] for name in names}


@pytest.mark.parametrize("lab", [LAB, FAULTLESS_LAB], ids=["binary", "faultless"])
@pytest.mark.parametrize("n", [20, 200])
def test_nothing_is_listed_of_streams_that_the_self_test_passes_over(lab, n):
    failures = np.arange(n + 1)
    fleet = tallies.listing_fleet(lab)
    tallies.run_fleet(fleet, np.where(np.arange(n)[:, None] < n - failures, 0.0, 1.0))
    looked_at = np.array(fleet.verdicts) == bw.Verdict.ADVERSE
    enough = 2 / tallies.RATE
    assert fleet.e_adverse[~looked_at].max() < enough < fleet.e_adverse.max()


def test_shares_of_which_everyone_has_all_are_found_out(monkeypatch):
    class Generous(tallies.DiscoveryShares):
        def look(self, total, _streams=None):
            return np.zeros(total)

    found = claims(WIDE, "discoveries, restarted, in 5 streams")
    assert all(kept(found, 100))
    monkeypatch.setattr(tallies, "DiscoveryShares", Generous)
    monkeypatch.setattr("boundwatch.detectors.fleet.DiscoveryShares", Generous)
    assert not any(kept(found, 100))


class Flattered(SceneWatch):
    """Gives a prediction that others equal the highest of their ranks."""

    def _place(self, prediction):
        above, _, places = super()._place(prediction)
        return above, 0, places


class Doubled(SceneWatch):
    """Has twice its level."""

    def __init__(self, reference, *, alpha):
        super().__init__(reference, alpha=2 * alpha)


@pytest.mark.parametrize(("twin", "place"), [(Flattered, 0), (Doubled, 1)])
def test_scenes_that_are_watched_wrongly_are_found_out_by_one_of_two_lines(twin, place, monkeypatch):
    found = [claims(BINARY, "scene-watch")[place]]
    assert all(kept(found, simulation.RUNS // 30))
    monkeypatch.setattr(designs, "SceneWatch", twin)
    assert found_out(found, simulation.RUNS)


class Wasteful(bw.Certificate):
    """Spends twice its delta."""

    @classmethod
    def from_held_out(cls, costs, **settings):
        deltas = {name: 2 * settings.pop(name) for name in ("delta_upper", "delta_lower")}
        return bw.Certificate.from_held_out(costs, **settings, **deltas)


def too_small(function, factor):
    """The same numbers, times a factor."""
    return lambda *args, **settings: factor * function(*args, **settings)


def nonsense(_self, line, more):
    """A line beyond the horizon at one failure in four trials, which is the rate of the lab."""
    return np.append(line, np.arange(line.size, line.size + more) // 4)


FAULTS = {
    "limits that fail at twice delta": (LAB, "certificate, ", scenes, "Certificate", Wasteful),
    "a threshold that is a quarter too low": (
        BINARY,
        "sequential-test, read 600 times, exact",
        mixture,
        "exact_threshold",
        too_small(mixture.exact_threshold, 0.75),
    ),
    "p-values of two rates, times 0.75": (
        LAB,
        "hypothesis-test, total, n = 50, exact",
        fixed_sample,
        "rate_difference_p_value",
        too_small(fixed_sample.rate_difference_p_value, 0.75),
    ),
    "nonsense beyond the horizon": (
        LAB,
        "sequential-test, total, 600 times, exact",
        joint_region.AlarmLine,
        "_extended",
        nonsense,
    ),
    "restarts that keep their share": (
        BINARY,
        "discoveries, restarted, in 5 streams",
        tallies.DiscoveryShares,
        "restart",
        lambda *_: None,
    ),
    "tasks without Holm": (LAB, "family-test", family_test, "holm", np.asarray),
    "p-values of finished trials, times 0.75": (
        BINARY,
        "compare, once, exact",
        once,
        "rate_difference_p_value",
        too_small(once.rate_difference_p_value, 0.75),
    ),
    "policies that differ at once": (BINARY, "rank", designs, "rank", lambda *_, **__: SHOWN),
    "pairs that each have all of alpha": (
        BINARY,
        "rank, any pair of 3",
        ranking,
        "PolicyComparison",
        lambda alpha, **settings: bw.PolicyComparison(6 * alpha, **settings),
    ),
    "rankings at twice their level": (
        BINARY,
        "rank, any pair of 2",
        ranking,
        "PolicyComparison",
        lambda alpha, **settings: bw.PolicyComparison(2 * alpha, **settings),
    ),
    "tasks at another level": (
        BINARY,
        "hypothesis-test, total, mean over",
        designs,
        "HypothesisTest",
        lambda certificate, **_: bw.HypothesisTest(certificate, alpha_adverse=0.95),
    ),
    "tasks and their mean that each have all of alpha": (
        BINARY,
        "hypothesis-test, total, mean over",
        strata,
        "with_overall",
        lambda overall, values: (overall, values),
    ),
    "scenes that were fitted to": (
        BINARY,
        "scene-watch",
        designs,
        "SceneWatch",
        lambda seen, **settings: SceneWatch(seen / 2, **settings),
    ),
    "predictions believed": (BINARY, "predicted-test", designs, "PredictedTest", hasty(bw.PredictedTest)),
}
SHOWN = SimpleNamespace(pairs=[SimpleNamespace(decided=True)])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen_at_the_default_size(fault, monkeypatch):
    certificate, name, module, attribute, broken = FAULTS[fault]
    found = claims(certificate, name)[:1]
    for cached in (joint_region.alarm_line, joint_region.joint_region):
        cached.cache_clear()
    runs = simulation.RUNS // (3 if "restarts" in fault else 1)  # a third is enough, and takes long
    assert all(kept(found, runs // 30))
    monkeypatch.setattr(module, attribute, broken)
    joint_region.alarm_line.cache_clear()
    assert found_out(found, runs)
    joint_region.alarm_line.cache_clear()


def test_bad_input():
    with pytest.raises(InvalidSetting):
        simulate_promises(BOUNDED, runs=0)
    with pytest.raises(InvalidLevel):
        simulate_promises(BOUNDED, alpha_adverse=0.995)
