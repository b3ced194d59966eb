"""Cards: they promise no more than the certificate, and a board no more than its intervals."""

import json
from xml.etree import ElementTree

import pytest
import yaml
from scipy.stats import binom

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from boundwatch.reporting import model_card
from boundwatch.reporting.compared import summary


def certificate(failures: int, n: int, delta: float = 0.01) -> bw.Certificate:
    return bw.Certificate.from_held_out([1] * failures + [0] * (n - failures), delta=delta, binary=True)


def test_a_badge_rounds_outward_and_is_well_formed():
    one = certificate(16, 200)
    assert model_card.badge_text(one) == "fails at most 14.3 %, 99 % confidence, 200 trials"
    assert one.upper < 0.143
    tasks = bw.Episodes([0, 1] * 20, strata=["mug", "bowl"] * 20, binary=True)
    assert model_card.badge_text(bw.Certificate.from_held_out(tasks)).endswith("40 trials, mean over 2 tasks")
    root = ElementTree.fromstring(model_card.badge(one))  # noqa: S314  # our own
    assert one.fingerprint in "".join(root.itertext())


def test_the_hub_result_has_the_fields_that_the_hub_reads():
    one = certificate(16, 200)
    (result,) = yaml.safe_load(
        model_card.hub_result(one, "lab/kitchen: mugs", "default", "https://lab.example/x")
    )
    assert result["dataset"] == {"id": "lab/kitchen: mugs", "task_id": "default"}
    assert result["value"] == 92
    assert result["source"] == {"url": "https://lab.example/x"}
    assert set(result) == {"dataset", "value", "date", "source", "notes"}
    with pytest.raises(InvalidSetting, match="no mean"):
        model_card.hub_result(bw.Certificate.from_bounds(lower=0, upper=0.2, delta=0.01), "a/b", "default")


def wrong_order(apart, rates=(0.2, 0.2), n=30, delta=0.1) -> float:
    """Return the probability that the first of two policies is put behind the second."""
    ones = [certificate(k, n, delta) for k in range(n + 1)]
    weights = [binom.pmf(range(n + 1), n, rate) for rate in rates]
    return sum(
        weights[0][i] * weights[1][j] for i in range(n + 1) for j in range(n + 1) if apart(ones[i], ones[j])
    )


def by_letters(one: bw.Certificate, other: bw.Certificate) -> bool:
    markdown, _ = model_card.board({"one": one, "other": other}, "")
    rows = [line.split(" | ") for line in markdown.splitlines() if line.startswith(("| one", "| other"))]
    first, second = rows
    return first[1] != second[1] and first[0] == "| other"


def test_a_board_puts_policies_in_the_wrong_order_at_most_as_often_as_it_says():
    assert wrong_order(by_letters) <= 2 * 0.1
    assert wrong_order(by_letters, rates=(0.8, 0.1)) > 0.9  # and it tells apart what differs
    by_means = wrong_order(lambda one, other: other.mean_cost < one.mean_cost)
    assert by_means > 0.4  # the broken twin


def test_a_board_of_different_measures_is_refused():
    scores = bw.Certificate.from_held_out([0.5, 0.2, 0.7], delta=0.1)
    with pytest.raises(InvalidSetting, match="different things"):
        model_card.board({"act": certificate(1, 20), "dp": scores}, "")


FAILED = (("old", 30), ("new", 3))


def test_the_command_writes_what_verify_checks(run, tmp_path):
    certificate(16, 200).save(tmp_path / "c.json")
    both = {
        name: bw.Episodes([1] * k + [0] * 30, binary=True, strata=["mug"] * (k + 5) + ["cup"] * 25)
        for name, k in FAILED
    }
    found = bw.compare_once(both)
    compared = found.to_dict() | summary(found)
    (tmp_path / "compared.json").write_text(json.dumps(compared))
    for _ in range(2):  # it replaces what it wrote
        words = "card", "c.json", "compared.json", "-o", "out", "--benchmark", "a/b"
        assert run(*words).code == 0
    section = (tmp_path / "out" / "CARD.md").read_text()
    assert "**B_BETTER: evidence that new fails less often than old on some task** (95 %" in section
    assert "old: 30 failures in 60 trials (" in section
    assert "Its tasks: mug " in section
    assert (tmp_path / "out" / ".eval_results" / "boundwatch.yaml").exists()
    badge = tmp_path / "out" / "badge.svg"
    assert run("verify", "c.json", "--badge", "out/badge.svg").code == 0
    badge.write_text(badge.read_text().replace("14.3", "4.3"))
    assert run("verify", "c.json", "--badge", "out/badge.svg").code == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "CARD.md").write_text("# My model\n")
    assert run("card", "c.json", "-o", "mine").code == 1
    assert (tmp_path / "mine" / "CARD.md").read_text() == "# My model\n"


def test_what_is_not_a_comparison_is_refused():
    with pytest.raises(InvalidSetting, match="compare --json"):
        model_card.section(certificate(1, 20), {"verdict": "b-better"})
