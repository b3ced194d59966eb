"""Every exported detector keeps the contract, and broken ones do not pass."""

import inspect

import pytest

import boundwatch as bw
from contract import check_detector

BOUNDED = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
BINARY = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
# What compares costs with one certificate; a family of them is judged by detectors of this list. Who draws,
# by a seed, which episodes people label knows nothing from costs alone: tests/guarantees/test_judged.py.
DETECTORS = [
    value
    for name in bw.__all__
    if inspect.isclass(value := getattr(bw, name))
    and (hasattr(value, "decide") or hasattr(value, "update"))
    and "certificate" in (parameters := inspect.signature(value).parameters)
    and "seed" not in parameters
]


def test_the_list_is_not_empty():
    names = {detector.__name__ for detector in DETECTORS}
    assert names >= {"HypothesisTest", "ConfidenceInterval", "SequentialTest", "ChangeDetector", "Fleet"}


@pytest.mark.parametrize("certificate", [BOUNDED, BINARY], ids=["bounded", "binary"])
@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.__name__)
def test_exported_detectors_keep_the_contract(detector, certificate):
    check_detector(detector(certificate))


@pytest.mark.parametrize("upper", [0.0, 0.95, 0.995, 0.9999, 1.0])
@pytest.mark.parametrize("binary", [True, False], ids=["binary", "bounded"])
@pytest.mark.parametrize(
    "detector", [bw.SequentialTest, bw.PredictedTest, bw.ChangeDetector], ids=lambda kind: kind.__name__
)
def test_correct_detectors_pass_whatever_is_certified(detector, binary, upper):
    check_detector(detector(bw.Certificate.from_bounds(lower=0.0, upper=upper, delta=0.01, binary=binary)))


@pytest.mark.parametrize("alpha", [1e-12, 0.9])
def test_correct_detectors_pass_at_any_level(alpha):
    check_detector(bw.SequentialTest(BINARY, alpha_adverse=alpha))


def test_what_has_no_certificate_is_refused_by_name():
    family = bw.CertificateFamily.shared(BOUNDED, ["a", "b"])
    for stranger, name in ((bw.FamilyTest(family), "FamilyTest"), (3, "int")):
        with pytest.raises(bw.errors.InvalidSetting, match=f"detector = {name} has no certificate"):
            check_detector(stranger)


class Peeking(bw.HypothesisTest):
    def update(self, cost):
        return self.decide([cost])


class Ordered(bw.HypothesisTest):
    def decide(self, costs):
        return super().decide(self.certificate.check_costs(costs)[:1])


class Forgiving(bw.SequentialTest):
    def update(self, cost):
        try:
            return super().update(cost)
        except bw.errors.InvalidCost:
            return super().update(0.0)


class Forgetful(bw.SequentialTest):
    def state_dict(self):
        return super().state_dict() | {"total": 1.0}


class Unlatched(bw.SequentialTest):
    def _step(self, cost):
        super()._step(cost)
        if self._finding().e_adverse < 1:
            self.verdict, self.first_alarm = bw.Verdict.WITHIN, None


class Silent(bw.SequentialTest):
    def _step(self, cost):
        super()._step(cost)
        self.verdict, self.first_alarm = bw.Verdict.WITHIN, None


@pytest.mark.parametrize(
    ("broken", "clause"),
    [
        (Peeking, "either decide or update"),
        (Ordered, "number of costs"),
        (Forgiving, "raises InvalidCost"),
        (Forgetful, "the state"),
        (Unlatched, "latches"),
        (Silent, "failures are an alarm"),
    ],
)
def test_broken_detectors_do_not_pass(broken, clause):
    with pytest.raises(AssertionError, match=clause):
        check_detector(broken(BOUNDED))
