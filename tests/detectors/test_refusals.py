"""What every detector refuses, when it is made and of `Episodes`, with the same kind of message."""

import inspect
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidLevel, InvalidSetting, ProvenanceMismatch
from boundwatch.readers import read_costs
from boundwatch.testing import assert_no_worse, assert_not_adverse

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
LAB = Path(__file__).parents[2] / "examples" / "data" / "lab_trials.csv"
ARRAY = np.zeros((99, 9))  # its repr has many lines, and a message has one
RATES = {bw.ConfidenceInterval: ("false_positive_rate", "false_negative_rate")}


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize("wrong", ["certificate.json", None, 0.2, FAMILY, bw.Certificate, ARRAY])
def test_what_is_not_a_certificate(detector, wrong):
    with pytest.raises(InvalidSetting, match=r"certificate = .* is not a Certificate; make or load one"):
        detector(wrong)
    if wrong is not None:  # which asks for a plan before there is one
        with pytest.raises(InvalidSetting, match=r"certificate = .* is not a Certificate; make or load one"):
            bw.plan(wrong, cost=0.8)


@pytest.mark.parametrize("wrong", ["certificate.json", None, CERTIFICATE, {"pick": CERTIFICATE}, ARRAY])
def test_what_is_not_a_family(wrong):
    with pytest.raises(InvalidSetting, match=r"family = .* is not a CertificateFamily; make or load one"):
        bw.FamilyTest(wrong)


@pytest.mark.parametrize("detector", [*DETECTORS, bw.FamilyTest])
@pytest.mark.parametrize("wrong", [0, 1, -0.1, float("nan"), "0.05", True, None, ARRAY])
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
        (lambda value: bw.FamilyTest(FAMILY, tail=value), "tail"),
        (lambda value: bw.Certificate.from_held_out([0.5], method=value), "method"),
        (lambda value: bw.bounds.pac_bayes_upper(0.1, 100, 0.01, 0.1, value), "method"),
        (lambda value: bw.bounds.pac_bayes_lower(0.1, 100, 0.01, 0.1, value), "method"),
    ],
)
@pytest.mark.parametrize("wrong", ["guess", 3, ["kl"], ARRAY])
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
        (lambda value: bw.rank({"v1": [0, 1], "v2": [1, 0]}, paired=value), "paired"),
        (lambda value: bw.plan_comparison(cost_a=0.1, cost_b=0.9, paired=value), "paired"),
        (lambda value: read_costs(LAB, success="grasped", binary=value), "binary"),
        (lambda value: read_costs(LAB, success="grasped", allow_own=value), "allow_own"),
        (
            lambda value: read_costs(LAB, success="grasped").against(CERTIFICATE, allow_own=value),
            "allow_own",
        ),
    ],
)
def test_what_is_not_a_flag(make, name):
    make(np.True_)
    for wrong in ("no", 1, ARRAY):
        with pytest.raises(InvalidSetting, match=f"{name} = .* is not True or False"):
            make(wrong)


JUDGES = {
    "HypothesisTest": lambda certificate, new: bw.HypothesisTest(certificate).decide(new),
    "ConfidenceInterval": lambda certificate, new: bw.ConfidenceInterval(certificate).decide(new),
    "SequentialTest": lambda certificate, new: bw.SequentialTest(certificate).update_many(new),
    "PredictedTest": lambda certificate, new: bw.PredictedTest(certificate).update_many(new),
    "JudgedTest": lambda certificate, new: bw.JudgedTest(certificate, seed=1).update_many(new),
    "ChangeDetector": lambda certificate, new: bw.ChangeDetector(certificate).update_many(new),
    "Fleet": lambda certificate, new: bw.Fleet(certificate).update(["arm-1"] * len(new), new),
    "FamilyTest": lambda certificate, new: bw.FamilyTest(bw.CertificateFamily({"pick": certificate})).decide(
        {"pick": new}
    ),
    "assert_not_adverse": lambda certificate, new: assert_not_adverse(certificate, new, alpha=1e-9),
    "assert_no_worse": lambda certificate, new: assert_no_worse(certificate, new, margin=0.9),
}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bw.plan_comparison(cost_a=ARRAY, cost_b=0.9), "cost_a = .* is not an expected cost"),
        (
            lambda: bw.plan_comparison(cost_a=0.1, cost_b=0.9, horizon=ARRAY),
            "horizon = .* is no number of pairs",
        ),
        (
            lambda: bw.PolicyComparison(binary=True, paired=True, horizon=ARRAY),
            "horizon = .* is no number of pairs",
        ),
        (lambda: read_costs(LAB, success="grasped", cost_range=ARRAY), "cost_range = .* is not a range"),
        (lambda: bw.CertificateFamily({"pick": CERTIFICATE}, by=ARRAY), "array.* is not a valid name"),
        (lambda: bw.Certificate.from_held_out([0.5], seed=ARRAY), "seed = .* is not a whole number"),
        (lambda: bw.Certificate.from_held_out([0.5], measure=ARRAY), "measure = .* is not a Measure"),
        (lambda: bw.Certificate.from_bounds(lower=ARRAY, upper=1, delta=0.1), "lower = .* is not a limit"),
        (lambda: bw.plan(CERTIFICATE, cost=ARRAY), "cost = .* is not an expected cost"),
        (lambda: bw.HypothesisTest(CERTIFICATE, margin=ARRAY), "margin = .* is outside"),
    ],
)
def test_a_message_is_one_short_line(make, message):
    with pytest.raises(InvalidSetting, match=message) as refused:
        make()
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_no_detector_is_forgotten():
    exported = [(name, getattr(bw, name)) for name in bw.__all__]
    judging = {
        name
        for name, each in exported
        if inspect.isclass(each) and inspect.signature(each).parameters.keys() & {"certificate", "family"}
    } - {"Protocol"}  # it names a certificate; `Evaluation` judges
    assert judging == set(JUDGES) - {"assert_not_adverse", "assert_no_worse"}


@pytest.mark.parametrize("judge", JUDGES)
def test_what_is_wrong_with_episodes(judge, tmp_path):
    (tmp_path / "lab.csv").write_text("grasped\n" + "yes\nno\n" * 20)
    (tmp_path / "new.csv").write_text("cost\n" + "0\n" * 20 + "1\n" * 20)
    lab = read_costs(tmp_path / "lab.csv", success="grasped")
    certificate = bw.Certificate.from_held_out(lab)
    with pytest.raises(ProvenanceMismatch) as refused:
        JUDGES[judge](certificate, lab)
    assert str(tmp_path / "lab.csv") in refused.value.where.source
    assert "their .costs show" in str(refused.value.remedy[-1])
    with pytest.warns(UserWarning, match=r"new\.csv") as said:
        JUDGES[judge](certificate, read_costs(tmp_path / "new.csv"))
    text = " ".join(str(each.message) for each in said)
    assert "not measured the way the certificate's were" in text
    assert "the costs rise along the file" in text
    assert len(said) == len({str(each.message) for each in said})
    assert {each.filename for each in said} == {__file__}


def test_why_evidence_cannot_be_joint():
    anytime = bw.Campaign(binary=True).update(0).update(1).certificate()
    many = bw.Certificate.from_held_out([0, 1] + [0] * 4999, binary=True)
    for certificate in (CERTIFICATE, anytime, many, bw.Certificate.from_held_out([0.5] * 5001, binary=False)):
        with pytest.raises(InvalidSetting, match=r"tail = 'joint' needs .* at most 5,000; leave it out"):
            bw.HypothesisTest(certificate, tail="joint")


@pytest.mark.parametrize(
    "kind", [bw.ChangeDetector, bw.Fleet, bw.PredictedTest, partial(bw.JudgedTest, seed=1)]
)
def test_one_stream_is_not_judged_by_a_mean_over_tasks(kind):
    tasks = bw.Episodes([0, 1] * 20, strata=["mug", "bowl"] * 20, binary=True)
    with pytest.raises(InvalidSetting, match="mean over tasks"):
        kind(bw.Certificate.from_held_out(tasks))
