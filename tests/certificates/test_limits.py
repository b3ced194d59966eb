"""Limits follow from the fields of a certificate, and from nothing else."""

import pytest

import boundwatch as bw
from boundwatch.certificates import limits, schema
from boundwatch.errors import CertificateError

FACTS = {"n": 400, "mean_cost": 0.25, "binary": True, "delta_upper": 0.005, "delta_lower": 0.005}
PRICES = {"pac-bayes": {"renyi": 0.4}, "pointwise": {"log_ratio": 1.3}}
DERIVED = [
    (source, method)
    for source, methods in schema.METHODS.items()
    for method in methods
    if source != "external" and method != "anytime"
]


@pytest.mark.parametrize(("source", "method"), DERIVED)
def test_every_method_has_limits_of_its_own(source, method):
    lower, upper = limits.derive(source, method, **FACTS, **PRICES.get(source, {}))
    assert 0 < lower < 0.25 < upper < 1
    others = [pair for pair in DERIVED if pair != (source, method)]
    assert (lower, upper) not in [limits.derive(*pair, **FACTS, **PRICES.get(pair[0], {})) for pair in others]


@pytest.mark.parametrize(
    ("source", "method"),
    [("held-out", "guess"), ("held-out", "pinsker"), ("hearsay", "kl"), ("pointwise", "")],
)
def test_an_unknown_method_is_refused(source, method):
    with pytest.raises(CertificateError, match="derives no limits"):
        limits.derive(source, method, **FACTS)


def test_a_missing_number_is_named():
    for name, source, method in (("n", "held-out", "kl"), ("renyi", "pac-bayes", "kl")):
        with pytest.raises(CertificateError, match=f"{name} is missing"):
            limits.derive(source, method, **FACTS | {name: None})
    with pytest.raises(CertificateError, match="record is missing"):
        limits.derive("held-out", "betting", **FACTS | {"binary": False})


def test_binary_costs_need_no_record():
    costs = [0, 0, 0, 1] * 10
    known = bw.Certificate.from_held_out(costs, method="betting", binary=True)
    recorded = bw.Certificate.from_held_out(costs, method="betting")
    assert known.record is None
    assert known.failures == 10
    assert (known.lower, known.upper) == (recorded.lower, recorded.upper)
