"""What the page says must follow from the numbers: doctored numbers must change the answer."""

from __future__ import annotations

import numpy as np
import pytest
from reproduction.judging import (
    SIGNIFICANT,
    Shift,
    Tally,
    false_declarations,
    no_false_declaration,
    split,
    tally,
)

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from rates import FALSE_FAIL

CERTIFICATE = bw.Certificate.from_bounds(lower=0.2, upper=0.3, delta=0.01, binary=True)


def tallies(rate: float, shift: Shift, *, upper: float = 0.3, datasets: int = 4000) -> list[Tally]:
    """Judge streams that fail at a rate, with a detector whose certificate may be wrong."""
    certificate = bw.Certificate.from_bounds(lower=min(0.2, upper), upper=upper, delta=0.01, binary=True)
    costs = (np.random.default_rng(5).random((datasets, 50)) < rate).astype(float)
    return [tally(bw.HypothesisTest(certificate, tail="exact"), costs, "x", shift)]


def test_a_valid_detector_passes_and_a_broken_one_is_caught():
    no_shift = Shift(0.0, 0.0)
    (valid,) = [c for c in false_declarations(tallies(0.3, no_shift)) if c.verdict == "adverse"]
    assert valid.p_value >= FALSE_FAIL
    assert valid.false > 0  # it does declare, so that passing means something
    (broken,) = [c for c in false_declarations(tallies(0.3, no_shift, upper=0.2)) if c.verdict == "adverse"]
    assert broken.p_value < FALSE_FAIL


@pytest.mark.parametrize(
    ("shift", "verdicts"),
    [
        (Shift(0.2, 0.01), ["benign"]),
        (Shift(-0.2, 0.01), ["adverse"]),
        (Shift(0.01, 0.01), ["adverse", "benign"]),
        (Shift(0.0, 0.0), ["adverse"]),  # exactly no shift: BENIGN, "not higher", is then true
    ],
)
def test_an_uncertain_sign_counts_against_both_verdicts(shift, verdicts):
    assert [check.verdict for check in false_declarations(tallies(0.3, shift, datasets=10))] == verdicts


def test_too_few_environments_are_refused():
    with pytest.raises(InvalidSetting, match="3 datasets of 4 need 12 environments; there are 10"):
        split(np.zeros(10), 4, 3)


def test_a_guarantee_is_exceeded_at_one_level_everywhere():
    for corrected, partly in ((SIGNIFICANT + 1e-9, True), (SIGNIFICANT, False)):
        why, in_part = no_false_declaration(1, corrected)
        assert (bool(why), in_part) == (True, partly)
