"""Records certificates, comparisons and plans."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from flat import attributes, encode, entry, flatten
from streams import Draw, certificates, costs_of, margin_of

import boundwatch as bw

CERTIFICATES = 500
COMPARISONS = 500
LIMITS = (
    "lower upper delta delta_upper delta_lower n mean_cost method binary renyi log_ratio cost_range failures"
)


def _promise(certificate: Any) -> dict[str, Any]:
    """Return a certificate's limits, under shifts too, and whether it verifies, also after JSON."""
    found = attributes(certificate, LIMITS)
    for size in (0.01, 0.1, 0.5):
        found[f"kl {size}"] = encode(certificate.under_shift(kl=size))
        found[f"tv {size}"] = encode(certificate.under_shift(tv=size))
    back = bw.Certificate.from_dict(certificate.to_dict())
    found["same after JSON"] = back == certificate
    found["verified"] = all(each.ok for each in certificate.verify())
    return found


def _certify(kind: int, rng: Draw) -> dict[str, Any]:
    binary = bool(rng.random() < 0.5)
    n = int(
        rng.choice([1, 2, 7, 25, 60, 200, 999, 1000, 1001, 2500], p=[0.05, 0.05, *[0.125] * 6, 0.1, 0.05])
    )
    n = max(n, 8) if kind in (4, 5) else n  # PAC-Bayes theorems need eight
    costs = costs_of(rng, n, rng.uniform(0, 1), binary=binary)
    delta = float(rng.choice([0.001, 0.01, 0.05, 0.2]))
    settings: dict[str, Any] = {"delta": delta, "binary": binary}
    if rng.random() < 0.3:
        settings = {"delta_upper": delta, "delta_lower": delta / 3, "binary": binary}
    make = bw.Certificate
    if kind < 4:
        methods = [None, "kl", "hoeffding", "betting"] + (["exact"] if binary else [])
        certificate = make.from_held_out(costs, method=methods[rng.integers(len(methods))], **settings)
    elif kind == 4:
        method = ["kl", "pinsker"][rng.integers(2)]
        certificate = make.from_pac_bayes(costs, renyi=float(rng.exponential(4)), method=method, **settings)
    elif kind == 5:
        certificate = make.from_pointwise(costs, log_ratio=float(rng.normal(2, 2)), **settings)
    elif kind == 6:
        lower, upper = np.sort(rng.random(2)).tolist()
        certificate = make.from_bounds(lower=lower, upper=upper, **{"delta": delta, **settings})
    elif kind == 7:
        return _campaign(costs, settings, rng)
    else:
        return _family(binary, delta, rng)
    verified = {}
    if kind < 6:
        verified = {"verified with costs": all(each.ok for each in certificate.verify(costs))}
        other = np.append(costs, 1.0 - costs[0])
        verified["verified with others"] = all(each.ok for each in certificate.verify(other))
    return _promise(certificate) | verified


def _campaign(costs: Any, settings: dict[str, Any], rng: Draw) -> dict[str, Any]:
    campaign, found = bw.Campaign(**settings), {}
    cuts = np.unique([0, *rng.integers(1, len(costs) + 1, 3), len(costs)])
    for look, (start, end) in enumerate(pairwise(cuts)):
        campaign.update_many(costs[start:end])
        if look == 1:
            campaign = type(campaign).from_state_dict(campaign.state_dict())
        numbers = attributes(campaign, "n lower upper width mean_cost delta")
        found |= {f"{look}.{key}": value for key, value in numbers.items()}
    return found | _promise(campaign.certificate())


def _family(binary: bool, delta: float, rng: Draw) -> dict[str, Any]:
    lab = {
        f"task {number}": costs_of(rng, int(rng.integers(2, 120)), rng.random(), binary=binary)
        for number in range(rng.integers(1, 6))
    }
    family = bw.CertificateFamily.from_held_out(lab, delta, binary=binary)
    found = attributes(family, "delta delta_upper delta_lower")
    for task, certificate in family.items():
        found |= {f"{task}.{key}": value for key, value in _promise(certificate).items()}
    return found


def record_certificates() -> dict[str, Any]:
    """Return the limits of 500 random certificates of every kind, and of those that streams are judged by."""
    found = {name: _promise(certificate) for name, certificate in certificates().items()}
    for number in range(CERTIFICATES):
        rng = np.random.default_rng([30, number])
        found[f"{number:03d} {number % 9}"] = entry(lambda rng=rng, number=number: _certify(number % 9, rng))
    return found


def _compare(rng: Draw) -> dict[str, Any]:
    binary, paired = bool(rng.random() < 0.6), bool(rng.random() < 0.5)
    horizon = int(rng.choice([20, 50, 100])) if binary and rng.random() < 0.3 else None
    alpha, margin = float(rng.choice([0.01, 0.05, 0.1])), margin_of(rng) or 0.0
    n = min(int(rng.integers(3, 90)), horizon or 90)
    test = bw.PolicyComparison(alpha, binary=binary, paired=paired, horizon=horizon, margin=margin)
    first, second = (costs_of(rng, n, rng.uniform(0.05, 0.9), binary=binary) for _ in range(2))
    if paired and rng.random() < 0.5:
        second = np.where(rng.random(n) < 0.5, first, second)
    found: dict[str, Any] = {}
    cuts = [0, n // 3, 2 * n // 3, n]
    for look, (start, end) in enumerate(pairwise(cuts)):
        if rng.random() < 0.5:
            finding = test.update_many(first[start:end], second[start:end])
        else:
            for a, b in zip(first[start:end], second[start:end], strict=True):
                finding = test.update(float(a), float(b))
        found |= {f"{look}.{key}": value for key, value in attributes(finding).items()}
        if look == 1:
            test = type(test).from_state_dict(test.state_dict())
    if not paired and (horizon is None or n < horizon):
        found |= {f"more.{key}": value for key, value in attributes(test.update(cost_a=1.0)).items()}
    return found


def _rank(rng: Draw) -> dict[str, Any]:
    paired, n = bool(rng.random() < 0.5), int(rng.integers(5, 60))
    binary = bool(rng.random() < 0.5)
    costs = {
        f"policy {number}": costs_of(rng, n + (0 if paired else 3 * number), rng.random(), binary=binary)
        for number in range(rng.integers(2, 6))
    }
    ranking = bw.rank(costs, float(rng.choice([0.05, 0.1])), paired=paired)
    return flatten(ranking.to_dict()) | {"order": [each.name for each in ranking.policies]}


def record_comparisons() -> dict[str, Any]:
    """Return the findings of 500 comparisons, every fifth a ranking of several policies."""
    found = {}
    for number in range(COMPARISONS):
        rng, work = np.random.default_rng([31, number]), _rank if number % 5 == 4 else _compare
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # words, not numbers
            found[f"{number:03d} {work.__name__[1:]}"] = entry(lambda rng=rng, work=work: work(rng))
    return found


BEFORE: tuple[dict[str, Any], ...] = (
    {"cost": 0.1, "new_cost": 0.3},
    {"cost": 0.1, "new_cost": 0.3, "lab_trials": 50},
    {"cost": 0.1, "new_cost": 0.3, "lab_trials": 50, "trials": 20},
    {"cost": 0.1, "new_cost": 0.5, "trials": 15},
    {"cost": 0.3, "new_cost": 0.1, "lab_trials": 80},
    {"cost": 0.2, "new_cost": 0.6, "delta": 0.05, "alpha": 0.1},
    {"cost": 0.0, "new_cost": 0.4},
    {"cost": 0.1, "new_cost": 0.1, "margin": 0.2},
    {"cost": 0.1, "new_cost": 0.15, "margin": 0.3, "lab_trials": 100},
)
AGAINST: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bounded external 0.2", {"cost": 0.6}),
    ("binary pac-bayes kl 40", {"cost": 0.8}),
    *(
        (name, settings)
        for name in ("binary external 0.2", "binary default 50", "binary default 200", "binary kl 150")
        for settings in ({"cost": 0.6}, {"cost": 0.05}, {"cost": 0.5, "alpha": 0.01, "sizes": (5, 20)})
    ),
)
COMPARED: tuple[dict[str, Any], ...] = (
    {"cost_a": 0.1, "cost_b": 0.4},
    {"cost_a": 0.5, "cost_b": 0.2, "alpha": 0.1},
    {"cost_a": 0.1, "cost_b": 0.3, "paired": True},
    {"cost_a": 0.1, "cost_b": 0.3, "paired": True, "correlation": 0.3},
    {"cost_a": 0.2, "cost_b": 0.5, "horizon": 50},
    {"cost_a": 0.2, "cost_b": 0.6, "paired": True, "horizon": 40},
    {"cost_a": 0.4, "cost_b": 0.4},
)


def record_plans() -> dict[str, Any]:
    """Return plans: before a certificate, against one, from a pilot, and of comparisons."""
    known, found = certificates(), {}
    first = getattr(bw, "plan_trials", bw.plan)
    for settings in BEFORE:
        found[f"before {settings}"] = entry(lambda s=settings: flatten(first(**s).to_dict()))
    for name, settings in AGAINST:
        found[f"{name} {settings}"] = entry(
            lambda n=name, s=settings: flatten(bw.plan(known[n], **s).to_dict())
        )
    pilot = costs_of(np.random.default_rng(32), 30, 0.7, binary=False)
    certificate = known["bounded default 50"]
    found["pilot"] = entry(
        lambda: flatten(bw.plan(certificate, costs=pilot, sizes=(10, 25), seed=3).to_dict())
    )
    for settings in COMPARED:
        found[f"compare {settings}"] = entry(lambda s=settings: flatten(bw.plan_comparison(**s).to_dict()))
    return found
