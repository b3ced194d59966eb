"""What `import boundwatch` offers: its names, how objects describe themselves, what it leaves alone."""

import subprocess
import sys

import numpy as np
import pytest

import boundwatch as bw
from boundwatch._support.notebook import InTable

CERTIFICATE = bw.Certificate.from_held_out(np.linspace(0, 0.4, 500), measured="cost = path / 10 m")
BINARY = bw.Certificate.from_held_out([0, 0, 0, 1] * 25, binary=True)
FAMILY = bw.CertificateFamily({"pick": CERTIFICATE, "place": BINARY})
NEW = np.linspace(0.1, 0.9, 20)


@pytest.fixture(scope="module")
def subjects():
    """One of every public class."""
    campaign = bw.Campaign(delta=0.01)
    campaign.update(0.3)
    fleet = bw.Fleet(BINARY)
    fleet.update(["arm-1", "arm-2"], [0, 1])
    watching = [test(CERTIFICATE) for test in (bw.SequentialTest, bw.ChangeDetector, bw.PredictedTest)]
    comparison = bw.PolicyComparison(binary=True, paired=False)
    return [
        CERTIFICATE,
        bw.Episodes(np.linspace(0, 1, 5000), False, "lab.csv", "cost", "cost"),
        BINARY,
        FAMILY,
        CERTIFICATE.provenance,
        CERTIFICATE.record,
        campaign,
        fleet,
        fleet.finding("arm-1"),
        *watching,
        *(test.update_many(NEW) for test in watching[:2]),
        watching[2].update(0.3),
        bw.HypothesisTest(BINARY),
        bw.ConfidenceInterval(BINARY),
        bw.HypothesisTest(CERTIFICATE).decide(NEW),
        bw.HypothesisTest(CERTIFICATE).decide_many(np.stack([NEW, NEW])),
        bw.FamilyTest(FAMILY),
        bw.FamilyTest(FAMILY).decide({"pick": NEW, "place": [0, 1]}),
        bw.FamilyTest(FAMILY).decide({"pick": NEW}).findings[0],
        bw.plan(BINARY, cost=0.6),
        bw.plan(cost=0.1, new_cost=0.6, lab_trials=30),
        comparison,
        comparison.update(0, 1),
        bw.rank({"v1": NEW, "v2": NEW / 2}),
        bw.plan_comparison(cost_a=0.1, cost_b=0.6),
    ]


def test_no_public_class_is_forgotten(subjects):
    classes = {getattr(bw, name) for name in bw.__all__ if isinstance(getattr(bw, name), type)}
    without = {bw.Verdict, bw.ComparisonVerdict}  # enumerations describe themselves
    assert classes - without <= {type(subject) for subject in subjects}


def test_repr_is_one_line_and_str_is_in_words(subjects):
    for subject in subjects:
        line, words = repr(subject), str(subject)
        assert "\n" not in line
        assert len(line) < 700
        assert line.startswith(f"{type(subject).__name__}(")
        assert "\n" not in words
        assert words != line
        assert "=" not in words
        assert len(words.split()) >= 3


def test_repr_computes_nothing():
    finding = bw.SequentialTest(CERTIFICATE).update_many(NEW)
    assert "shift_lower" not in repr(finding)
    assert finding.shift_lower <= finding.shift_upper
    assert "shift_lower" in repr(finding)


def test_dir_shows_the_public_names_and_nothing_else():
    later = ["Client", "gymnasium", "prediction", "testing", "training"]
    assert bw.__dir__() == sorted([*bw.__all__, *later])
    for module in later[1:]:
        assert getattr(bw, module).__name__ == f"boundwatch.{module}"
    others = {name for name in vars(bw) if not name.startswith("_")} - set(dir(bw))
    assert {getattr(bw, name).__name__ for name in others} == {f"boundwatch.{name}" for name in others}
    with pytest.raises(AttributeError, match="has no attribute 'views'"):
        _ = bw.views


def test_importing_leaves_heavy_libraries_alone():
    code = (
        "import sys, boundwatch as bw\n"
        "c = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)\n"
        "str(c), repr(c), c._repr_html_()\n"
        "heavy = {'matplotlib', 'scipy.stats', 'torch', 'pandas', 'sqlalchemy', 'gymnasium'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_object_without_a_view_of_its_own_is_described_by_its_fields():
    class Note(InTable):
        def __repr__(self) -> str:
            return "Note()"

    assert repr(Note()) == "Note()"
