"""What is computed once and kept is shared by threads: nobody can change it."""

import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest

from boundwatch.bounds.audit import Audited, Judged
from boundwatch.bounds.bets import Bets
from boundwatch.certificates.record import CostRecord

ROOMS = ("bounds", "comparison", "detectors")
BETS = tuple(Bets.for_costs(binary=True).sizes.tolist())
ARGUMENTS = {
    "bounds.audit._chances": ((1.0, 0.5),),
    "bounds.audit._ranges": (Audited(Judged(30, 10), Judged(4, 4), Judged(1, 2)), 0.05),
    "bounds.audit._shape": (0.5, 0.05, True, True),
    "bounds.bets._mixture": (False,),
    "bounds.joint_evidence._grid_factors": (0.3,),
    "bounds.joint_region.alarm_line": (20, 3, 0.05),
    "bounds.joint_region.joint_region": (20, 0.05),
    "bounds.rate_difference._orders": (5, 6),
    "bounds.rate_difference._ranks": (5, 6, 0.1),
    "bounds.rate_difference.rate_difference_lower": (5, 1, 6, 2, 0.05),
    "bounds.rate_difference.rate_difference_p_value": (5, 1, 6, 2),
    "bounds.rate_difference.rate_difference_region": (5, 6, 0.05),
    "bounds.two_sample._elevation": (5, 9),
    "bounds.two_sample._fair": (5,),
    "comparison.late.late_line": (0.05, 200),
    "comparison.margin.margin_table": (0.05, 0.4),
    "comparison.region.find_region": (0.05,),
    "comparison.region.shipped_regions": (),
    "detectors.joint._references": (CostRecord.of_failures(9, 3),),
    "detectors.mixture.exact_threshold": (0.5, 0.5),
    "detectors.predicted._design": (0.2, BETS, (1 / 32,) * 32),
    "detectors.run_length.calibrated": (0.3, 0.1),
}
SETTINGS = {"comparison.region.find_region": {"paired": True}}


def arrays(value):
    """All arrays in a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from arrays(each)
    elif dataclasses.is_dataclass(value) or type(value).__name__ == "AlarmLine":
        yield from arrays(vars(value))


def cached():
    for room in ROOMS:
        package = importlib.import_module(f"boundwatch.{room}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"boundwatch.{room}.{info.name}")
            for name, each in vars(module).items():
                if hasattr(each, "cache_info") and each.__module__ == module.__name__:
                    yield f"{room}.{info.name}.{name}", each


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_kept_cannot_be_changed(name):
    function = dict(cached())[name]
    answer = function(*ARGUMENTS[name], **SETTINGS.get(name, {}))
    if name == "comparison.region.find_region":
        _ = answer.sizes
    if name == "comparison.region.shipped_regions":
        _ = next(iter(answer.values())).ending
    assert not any(each.flags.writeable for each in arrays(answer))
    assert function(*ARGUMENTS[name], **SETTINGS.get(name, {})) is answer


def test_every_kept_answer_is_tried():
    assert {name for name, _ in cached()} == set(ARGUMENTS)
