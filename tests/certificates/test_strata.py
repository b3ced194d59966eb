"""What a certificate keeps of each task."""

import dataclasses

import numpy as np
import pytest

from boundwatch.certificates.strata import Stratum, check_strata, mean_over
from boundwatch.episodes.design import Design
from boundwatch.errors import InvalidSetting, SchemaMismatch


@pytest.mark.parametrize(("costs", "binary"), [([0, 1, 0, 0], True), ([0.25, 1.0, 0.5], False)])
def test_a_stratum_keeps_its_costs_in_order(costs, binary):
    found = Stratum.in_order("mug", 0.5, np.array(costs, dtype=float), binary=binary)
    assert found.costs.tolist() == costs
    assert found.to_dict()["outcomes"] == ("0100" if binary else costs)
    assert "record" not in found.to_dict()


def test_strata_are_shares_of_one_mean():
    good = (Stratum("mug", 0.25, 2, 0.5), Stratum("bowl", 0.75, 2, 1.0))
    check_strata(good)
    assert mean_over(good) == 0.875
    with pytest.raises(SchemaMismatch, match="twice"):
        check_strata((good[0], good[0]))
    with pytest.raises(SchemaMismatch, match=r"add up to 0\.5"):
        check_strata((good[0], dataclasses.replace(good[1], weight=0.25)))
    with pytest.raises(SchemaMismatch, match="3 outcomes"):
        Stratum("mug", 0.5, 4, 0.25, outcomes="010")


def test_weights_are_declared_with_the_column_of_the_tasks():
    design = Design(strata="task", weights={"mug": 2, "bowl": 1})
    assert Design.from_dict(design.to_dict()) == design
    for wrong in ({"mug": 0}, {"mug": "x"}, [1, 2]):
        with pytest.raises(InvalidSetting):
            Design(strata="task", weights=wrong)
    with pytest.raises(InvalidSetting, match="strata"):
        Design(weights={"mug": 1})
