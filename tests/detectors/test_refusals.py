"""What every detector refuses when it is made, with the same kind of message."""

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidLevel, InvalidSetting

CERTIFICATE = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
FAMILY = bw.CertificateFamily.shared(CERTIFICATE, ["pick", "place"])
DETECTORS = (
    bw.HypothesisTest,
    bw.ConfidenceInterval,
    bw.SequentialTest,
    bw.PredictedTest,
    bw.ChangeDetector,
    bw.Fleet,
)
RATES = {bw.ConfidenceInterval: ("false_positive_rate", "false_negative_rate")}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("wrong", ["certificate.json", None, 0.2, FAMILY, bw.Certificate])
def test_what_is_not_a_certificate(detector, wrong):
    with pytest.raises(InvalidSetting, match=r"certificate = .* is not a Certificate; make or load one"):
        detector(wrong)


@pytest.mark.parametrize("wrong", ["certificate.json", None, CERTIFICATE, {"pick": CERTIFICATE}])
def test_what_is_not_a_family(wrong):
    with pytest.raises(InvalidSetting, match=r"family = .* is not a CertificateFamily; make or load one"):
        bw.FamilyTest(wrong)


@pytest.mark.parametrize("detector", [*DETECTORS, bw.FamilyTest])
@pytest.mark.parametrize("wrong", [0, 1, -0.1, float("nan"), "0.05", True, None])
def test_what_is_not_a_level(detector, wrong):
    subject = FAMILY if detector is bw.FamilyTest else CERTIFICATE
    for name in RATES.get(detector, ("alpha_adverse", "alpha_benign")):
        with pytest.raises(InvalidLevel, match=rf"{name} = .*; choose a probability such as 0\.05"):
            detector(subject, **{name: wrong})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda value: bw.HypothesisTest(CERTIFICATE, tail=value), "tail"),
        (lambda value: bw.ConfidenceInterval(CERTIFICATE, tail=value), "tail"),
        (lambda value: bw.ChangeDetector(CERTIFICATE, method=value), "method"),
        (lambda value: bw.FamilyTest(FAMILY, control=value), "control"),
        (lambda value: bw.Certificate.from_held_out([0.5], method=value), "method"),
    ],
)
@pytest.mark.parametrize("wrong", ["guess", 3, ["kl"]])
def test_what_is_not_a_choice(make, name, wrong):
    with pytest.raises(InvalidSetting, match=rf"{name} = .* is unknown; choose one of "):
        make(wrong)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda value: bw.Certificate.from_held_out([0, 1], binary=value), "binary"),
        (lambda value: bw.Certificate.from_bounds(lower=0, upper=1, delta=0.1, binary=value), "binary"),
        (lambda value: bw.Campaign(binary=value), "binary"),
        (lambda value: bw.PolicyComparison(binary=value, paired=False), "binary"),
        (lambda value: bw.PolicyComparison(binary=True, paired=value), "paired"),
    ],
)
def test_what_is_not_a_flag(make, name):
    make(np.True_)
    for wrong in ("no", 1):
        with pytest.raises(InvalidSetting, match=f"{name} = .* is not True or False"):
            make(wrong)


def test_why_evidence_cannot_be_joint():
    anytime = bw.Campaign(binary=True).update(0).update(1).certificate()
    reasons = {
        "needs held-out costs, but the certificate is from external": CERTIFICATE,
        "but the certificate is anytime": anytime,
        "at most 5,000 certified trials, but there are 5,001": bw.Certificate.from_held_out(
            [0, 1] + [0] * 4999, binary=True
        ),
        "at most 5,000 certified costs between 0 and 1, but there are 5,001": bw.Certificate.from_held_out(
            [0.5] * 5001, binary=False
        ),
    }
    for reason, certificate in reasons.items():
        with pytest.raises(InvalidSetting, match=rf"tail = 'joint' .*{reason}; leave it out"):
            bw.HypothesisTest(certificate, tail="joint")
