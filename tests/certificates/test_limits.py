"""Limits follow from the fields of a certificate, and from nothing else."""

import dataclasses
from typing import get_args

import pytest

import boundwatch as bw
from boundwatch.bounds.audit import Audited, Judged
from boundwatch.certificates import limits
from boundwatch.certificates.record import AuditRecord, CostRecord
from boundwatch.errors import CertificateError

QUARTER = CostRecord((0.25,), (400.0,))
AUDITS = {
    "exact": AuditRecord(Audited(Judged(300, 100), Judged(60, 20), Judged(0, 20))),
    "tuned": AuditRecord(costs=(QUARTER, QUARTER, CostRecord((0.5,), (400.0,)))),
}
MADE = bw.Certificate.from_held_out([0, 0, 0, 1] * 100, binary=True)
DERIVED = [
    (source, method)
    for source, methods in limits.METHODS.items()
    for method in methods
    if source != "external" and method not in ("anytime", "rounds", "weighted", *get_args(limits.Predicted))
]


def derive(source, method, **facts):
    facts |= {"audit": AUDITS[method]} if source == "audit" else {}
    return limits.derive(
        dataclasses.replace(MADE, source=source, method=method, **{"renyi": 0.4, "log_ratio": 1.3} | facts)
    )


@pytest.mark.parametrize(("source", "method"), DERIVED)
def test_every_method_has_limits_of_its_own(source, method):
    lower, upper = derive(source, method)
    assert 0 < lower < 0.25 < upper < 1
    others = [pair for pair in DERIVED if pair != (source, method)]
    assert (lower, upper) not in [derive(*pair) for pair in others]


@pytest.mark.parametrize(
    ("source", "method"),
    [("held-out", "guess"), ("held-out", "pinsker"), ("hearsay", "kl"), ("pointwise", "")],
)
def test_an_unknown_method_is_refused(source, method):
    with pytest.raises(CertificateError, match="derives no limits"):
        derive(source, method)


def test_a_missing_number_is_named():
    for name, source, method in (("n", "held-out", "kl"), ("renyi", "pac-bayes", "kl")):
        with pytest.raises(CertificateError, match=f"{name} is missing"):
            derive(source, method, **{name: None})
    with pytest.raises(CertificateError, match="failures is missing"):
        derive("held-out", "betting", binary=False)


def test_binary_costs_need_no_record():
    costs = [0, 0, 0, 1] * 10
    known = bw.Certificate.from_held_out(costs, method="betting", binary=True)
    recorded = bw.Certificate.from_held_out(costs, method="betting")
    assert known.record is None
    assert known.failures == 10
    assert (known.lower, known.upper) == (recorded.lower, recorded.upper)
