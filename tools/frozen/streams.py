"""Records 2,000 random streams: every detector on certificates of every kind, at several times."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from flat import attributes, encode, entry, flatten

import boundwatch as bw

STREAMS = 2000
Draw = np.random.Generator
Certificates = dict[str, Any]


def costs_of(rng: Draw, n: int, mean: float, *, binary: bool) -> np.ndarray[Any, Any]:
    """Return costs: 0 and 1; or bounded ones, some with many ties at the ends or on a coarse scale."""
    if binary:
        return (rng.random(n) < mean).astype(float)
    shape = rng.integers(3)
    costs = rng.beta(4 * mean + 0.2, 4 * (1 - mean) + 0.2, n)
    if shape == 1:
        costs = np.where(rng.random(n) < 0.4, np.round(costs), costs)
    return np.round(costs * 8) / 8 if shape == 2 else costs


def certificates(seed: int = 1) -> Certificates:
    """Return certificates of every source, method and size, by name."""
    rng, made = np.random.default_rng(seed), {}
    make = bw.Certificate
    for binary, kind in ((True, "binary"), (False, "bounded")):
        for lower, upper in ((0.0, 0.2), (0.1, 0.2), (0.3, 0.45), (0.6, 1.0)):
            made[f"{kind} external {upper}"] = make.from_bounds(
                lower=lower, upper=upper, delta=0.01, binary=binary
            )
        for size in (8, 20, 50, 120, 200, 600, 1000, 1001, 1500, 3000):
            costs = costs_of(rng, size, rng.choice([0.05, 0.15, 0.4]), binary=binary)
            made[f"{kind} default {size}"] = make.from_held_out(costs, 0.02, binary=binary)
        for method in ("kl", "hoeffding", "betting", *(["exact"] if binary else [])):
            for size in (15, 150, 1200):
                costs = costs_of(rng, size, 0.2, binary=binary)
                made[f"{kind} {method} {size}"] = make.from_held_out(
                    costs, method=method, binary=binary, delta_upper=0.004, delta_lower=0.01
                )
        for size in (40, 1100):
            costs = costs_of(rng, size, 0.15, binary=binary)
            for variant in ("kl", "pinsker"):
                made[f"{kind} pac-bayes {variant} {size}"] = make.from_pac_bayes(
                    costs, renyi=2.5, method=variant, binary=binary
                )
            made[f"{kind} pointwise {size}"] = make.from_pointwise(costs, log_ratio=1.5, binary=binary)
            campaign = bw.Campaign(0.02, binary=binary)
            campaign.update_many(costs[:300])
            made[f"{kind} campaign {size}"] = campaign.certificate()
    return made


def restarted(detector: Any, certificate: Any) -> Any:
    """Return the detector as it comes back from its state in JSON, as after a crash."""
    state = json.loads(json.dumps(detector.state_dict()))
    return type(detector).from_state_dict(state, certificate)


def levels(rng: Draw, choices: tuple[float, ...] = (0.01, 0.04, 0.1)) -> dict[str, float]:
    """Return the two levels of a detector."""
    return {"alpha_adverse": float(rng.choice(choices)), "alpha_benign": float(rng.choice(choices))}


def margin_of(rng: Draw) -> float | None:
    """Return a margin, or none."""
    return [None, None, 0.02, 0.1, 0.3][rng.integers(5)]


def _read(
    detector: Any, certificate: Any, rng: Draw, feed: Callable[[Any, slice], Any], n: int
) -> dict[str, Any]:
    """Feed a stream in four pieces; between them restart from the state, and sometimes forget everything."""
    cuts = [0, *sorted(rng.integers(1, n, 3).tolist()), n]
    forget = rng.random() < 0.15
    found = {}
    for turn, (start, end) in enumerate(pairwise(cuts)):
        if end > start:
            feed(detector, slice(start, end))
        if detector.n:
            found |= {f"{turn}.{key}": value for key, value in attributes(detector.finding()).items()}
        if turn == 1:
            detector = restarted(detector, certificate)
        if turn == 2 and forget:
            detector.reset()
    return found


def sequential(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Read a sequential test, cost by cost or in pieces, and look ahead."""
    test = bw.SequentialTest(certificate, **levels(rng), margin=margin_of(rng))
    one_by_one = rng.random() < 0.5

    def feed(detector: Any, piece: slice) -> None:
        if one_by_one:
            for cost in costs[piece]:
                detector.update(float(cost))
        else:
            detector.update_many(costs[piece])

    found = _read(test, certificate, rng, feed, len(costs)) | flatten({"thresholds": test.thresholds})
    looked = entry(lambda: attributes(test.peek(float(costs[0]))))
    return found | {f"peek.{key}": value for key, value in looked.items()}


def change(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Read a change detector: for costs of 0 and 1 the calibrated one, else that of Shiryaev and Roberts."""
    detector = bw.ChangeDetector(certificate, **levels(rng, (0.001, 0.01, 0.05)))
    found = _read(detector, certificate, rng, lambda each, piece: each.update_many(costs[piece]), len(costs))
    return found | {"false_alarms": encode(detector.false_alarm_probability(500))}


def predicted(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Read a test with predictions; every fifth trial has none."""
    guesses = np.clip(0.5 * costs + 0.5 * rng.random(len(costs)), 0, 1)
    others = rng.random((len(costs), 4))

    def feed(detector: Any, piece: slice) -> None:
        for cost, guess, unlabeled in zip(costs[piece], guesses[piece], others[piece], strict=True):
            if guess < 0.1:
                detector.update(float(cost))
            else:
                detector.update(float(cost), float(guess), unlabeled)

    return _read(bw.PredictedTest(certificate, **levels(rng)), certificate, rng, feed, len(costs))


def fleet(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Read a fleet of six streams in uneven order, with a stream that begins again and a restart."""
    watched = bw.Fleet(certificate, **levels(rng), margin=margin_of(rng))
    names = [f"arm-{number}" for number in rng.integers(0, 6, len(costs))]
    half, found = len(costs) // 2, {}
    for turn, piece in enumerate((slice(0, half), slice(half, None))):
        alarms = watched.update(names[piece], costs[piece])
        found |= flatten({"alarms": len(alarms), "n": watched.n, "verdicts": watched.verdicts}, str(turn))
        found |= flatten({"e_adverse": watched.e_adverse, "e_benign": watched.e_benign}, str(turn))
        found |= flatten({"no_worse": watched.no_worse, "found": len(watched.discoveries(0.1))}, str(turn))
        for name in sorted(watched.ids)[:3]:
            numbers = entry(lambda w=watched, name=name: attributes(w.finding(name)))
            found |= {f"{turn}.{name}.{key}": value for key, value in numbers.items()}
        watched = restarted(watched, certificate)
        if rng.random() < 0.3:
            watched.reset(names[0])
    return found


def fixed(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Decide once, with every tail that the certificate allows, by either algorithm."""
    found: dict[str, Any] = {}
    margin, one = margin_of(rng), rng.random() < 0.5
    rates = {"false_positive_rate": 0.05, "false_negative_rate": 0.1}
    maker, settings = (bw.HypothesisTest, levels(rng)) if one else (bw.ConfidenceInterval, rates)
    for tail in (None, "joint", "hoeffding", "kl", "exact", "betting"):
        if not one and tail == "joint":
            continue

        def decide(tail: str | None = tail) -> dict[str, Any]:
            return attributes(maker(certificate, tail=tail, margin=margin, **settings).decide(costs))

        found |= {f"{tail}.{key}": value for key, value in entry(decide).items()}
    if len(costs) >= 6:
        table = costs[: len(costs) // 3 * 3].reshape(3, -1)
        found |= {
            f"many.{k}": v for k, v in attributes(maker(certificate, **settings).decide_many(table)).items()
        }
    return found


def family(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Judge several tasks at one error rate: with a certificate of each, or one that they share."""
    binary, tasks = certificate.binary, ["mug", "bowl", "lid", "pan"][: rng.integers(2, 5)]
    if rng.random() < 0.3:
        promised = bw.CertificateFamily.shared(certificate, tasks)
    else:
        lab = {
            task: costs_of(rng, int(rng.integers(10, 150)), rng.uniform(0.05, 0.4), binary=binary)
            for task in tasks
        }
        promised = bw.CertificateFamily.from_held_out(lab, 0.02, binary=binary)
    tail = [None, None, "kl", "betting"][rng.integers(4)]
    test = bw.FamilyTest(promised, tail=tail, margin=margin_of(rng), **levels(rng))
    new = {
        task: costs_of(rng, int(rng.integers(3, 40)), rng.uniform(0.05, 0.8), binary=binary) for task in tasks
    }
    new[tasks[0]] = costs
    finding = test.decide(new)
    found = attributes(finding, "verdict false_positive_rate false_negative_rate no_worse")
    per_task = finding.findings if hasattr(finding, "findings") else finding.tasks
    each_task = per_task if isinstance(per_task, dict) else {each.task: each for each in per_task}
    for task, each in each_task.items():
        found |= {f"{task}.{key}": value for key, value in attributes(each).items()}
    return found | flatten({"could_alarm": test.could_alarm({task: len(new[task]) for task in tasks})})


def _lab_of_tasks(certificate: Any, rng: Draw) -> tuple[Any, list[str]]:
    """Return a certificate of the mean over tasks, with equal or unequal numbers of trials, and the tasks."""
    binary, tasks = certificate.binary, ["mug", "bowl", "lid", "pan"][: rng.integers(2, 5)]
    sizes = [int(rng.integers(5, 60))] * len(tasks) if rng.random() < 0.6 else rng.integers(5, 60, len(tasks))
    costs = [costs_of(rng, int(size), rng.uniform(0.05, 0.4), binary=binary) for size in sizes]
    names = np.repeat(tasks, sizes).tolist()
    lab = bw.Episodes(np.concatenate(costs), strata=names, binary=binary)
    return bw.Certificate.from_held_out(lab, float(rng.choice([0.01, 0.05]))), tasks


def _of_tasks(finding: Any) -> dict[str, Any]:
    """Return the numbers of a finding and of each of its tasks."""
    found = attributes(finding)
    for task, each in finding.tasks.items():
        found |= {f"{task}.{key}": value for key, value in attributes(each).items()}
    return found


def strata(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Judge the mean over tasks once, with equal or unequal numbers of new trials."""
    promised, tasks = _lab_of_tasks(certificate, rng)
    test = bw.HypothesisTest(promised, margin=margin_of(rng), **levels(rng))
    equal = rng.random() < 0.6
    new = {
        task: costs_of(
            rng,
            len(costs) if equal else int(rng.integers(2, 40)),
            rng.uniform(0.05, 0.8),
            binary=certificate.binary,
        )
        for task in tasks
    }
    return _of_tasks(test.decide(new))


def rounds(certificate: Any, rng: Draw, costs: Any) -> dict[str, Any]:
    """Watch the mean over tasks in rounds, shuffled, and begin again from the state."""
    promised, tasks = _lab_of_tasks(certificate, rng)
    sharing = int(rng.choice([1, 1, 5]))
    test = bw.SequentialTest(promised, margin=margin_of(rng), sharing=sharing, **levels(rng))
    names = [tasks[i] for i in rng.integers(0, len(tasks), len(costs))]
    half, found = len(costs) // 2, {}
    for turn, piece in enumerate((slice(0, half), slice(half, None))):
        finding = test.update_many(costs[piece], names[piece])
        found |= {f"{turn}.{key}": value for key, value in _of_tasks(finding).items()}
        found |= flatten({"looked": test.looked, "waiting": test.waiting, "rounds": test.rounds}, str(turn))
        state = json.loads(json.dumps(test.state_dict()))
        test = bw.SequentialTest.from_state_dict(state, promised)
    return found


DETECTORS = (sequential, fixed, strata, change, fleet, predicted, family, rounds)


def record_streams() -> dict[str, Any]:
    """Return the numbers of 2,000 streams."""
    known, found = certificates(), {}
    names = list(known)
    for number in range(STREAMS):
        rng = np.random.default_rng([29, number])
        name, work = names[rng.integers(len(names))], DETECTORS[number % len(DETECTORS)]
        certificate = known[name]
        n = int(rng.choice([4, 12, 30, 80, 200], p=[0.1, 0.3, 0.3, 0.2, 0.1]))
        costs = costs_of(rng, n, rng.uniform(0.02, 0.9), binary=certificate.binary)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is suspicious about random costs is not a number
            found[f"{number:04d} {work.__name__}, {name}"] = entry(
                lambda work=work, certificate=certificate, rng=rng, costs=costs: work(certificate, rng, costs)
            )
    return found
