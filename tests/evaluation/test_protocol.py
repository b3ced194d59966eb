"""A protocol contradicts itself nowhere, means the same after a file, and says where it does not."""

import pytest

from boundwatch import Protocol
from boundwatch.errors import Refusal

PAIR = {"question": "compare", "policies": ["act", "dp"], "most_rounds": 60}
EVERY = [
    PAIR,
    PAIR | {"tasks": ["mug", "bowl"], "scenes": 3, "blind": "round", "seed": 7, "block": 5, "margin": 0.1},
    PAIR | {"tasks": {"mug": 2, "bowl": 1}, "scenes": ["left", "right"], "blind": False, "aborted": "repeat"},
    PAIR | {"measure": "score", "score_range": (0, 5)},
    PAIR | {"measure": "rubric", "milestones": {"reached it": 1, "grasped": 2.5}},
    {"question": "rank", "policies": ["a", "b", "c"], "most_rounds": 9},
    {"question": "certify", "policies": ["a"], "most_rounds": 9, "until_width": 0.2},
    {"question": "check", "policies": ["a"], "most_rounds": 9, "certificate": "lab.json"},
]
REFUSED = [
    (PAIR | {"policies": ["act"]}, "policies = ('act',) is not what compare takes; name 2"),
    (PAIR | {"policies": ["act", "act"]}, "policies = 'act' is named twice"),
    (PAIR | {"policies": "ab"}, "policies = 'ab' does not fit"),
    (PAIR | {"question": "win"}, "question = 'win' does not fit"),
    (PAIR | {"most_rounds": 0}, "most_rounds = 0 does not fit: expected `int` >= 1"),
    (PAIR | {"alpha": 2}, "alpha = 2 does not fit: expected `float` < 1.0"),
    (PAIR | {"until_width": 0.2}, "until_width = 0.2 goes with certify, and the question is compare"),
    (PAIR | {"score_range": (0, 5)}, "score_range = (0.0, 5.0) goes with the measure score"),
    (PAIR | {"measure": "score", "score_range": (5, 0)}, "score_range = (5.0, 0.0) is not a range"),
    (PAIR | {"measure": "rubric", "milestones": {}}, "milestones is empty"),
    (PAIR | {"blind": "yes"}, "blind = 'yes' does not fit"),
    (PAIR | {"tasks": {"mug": 0}}, "does not fit: expected `int` >= 1"),
    (PAIR | {"seed": 1.5}, "seed = 1.5 does not fit: expected `int | null`"),
    ({"question": "certify", "policies": ["a"], "most_rounds": 9}, "until_width is missing"),
    ({"question": "check", "policies": ["a"], "most_rounds": 9}, "certificate is missing"),
]


@pytest.mark.parametrize("settings", EVERY)
def test_a_file_says_the_same(settings, tmp_path):
    protocol = Protocol(**settings)
    protocol.save(tmp_path / "p.toml")
    again = Protocol.load(tmp_path / "p.toml")
    assert again == protocol == Protocol.from_dict(protocol.to_dict())
    assert again.fingerprint == protocol.fingerprint


def test_every_setting_is_in_the_fingerprint():
    assert len({Protocol(**settings).fingerprint for settings in EVERY}) == len(EVERY)
    assert Protocol(**PAIR).fingerprint != Protocol(**PAIR | {"alpha": 0.1}).fingerprint


@pytest.mark.parametrize(("settings", "said"), REFUSED)
def test_contradictions_are_refused(settings, said):
    with pytest.raises(Refusal) as caught:
        Protocol(**settings)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('question = "compare"\npolicies = ["a"]\nmost_rounds = 9\n', "line 2: policies = ('a',) is not"),
        (
            'question = "compare"\npolicies = ["a", "b"]\n\nmost_rounds = "9"\n',
            "line 4: most_rounds = 9 does not fit: expected `int`, got `str`",
        ),
        (
            'question = "rank"\nwinner = "a"\npolicies=["a", "b"]\nmost_rounds=1',
            "line 2: winner is not known",
        ),
        ('question = "compare"\npolicies = [\n', "line 2 is not TOML"),
        ('question = "compare"\npolicies = ["a", "b"]\n', "p.toml: most_rounds is missing"),
    ],
)
def test_a_file_is_refused_with_its_line(text, said, tmp_path):
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(Refusal) as caught:
        Protocol.load(tmp_path / "p.toml")
    assert said in str(caught.value)


def test_measures_become_costs():
    score = Protocol(**PAIR, measure="score", score_range=(0, 5))
    rubric = Protocol(**PAIR, measure="rubric", milestones={"reach": 1, "grasp": 3})
    assert [Protocol(**PAIR).cost(success=each) for each in (True, False)] == [0, 1]
    assert [score.cost(score=each) for each in (0, 4, 5)] == [1, 0.2, 0]
    assert [rubric.cost(milestones=each) for each in ([], ["reach"], ["grasp", "reach"])] == [1, 0.75, 0]
    for wrong in ({"success": True}, {"score": 6}, {}, {"score": True}):
        with pytest.raises(Refusal):
            score.cost(**wrong)
    with pytest.raises(Refusal, match="choose from reach, grasp"):
        rubric.cost(milestones=["lift"])
