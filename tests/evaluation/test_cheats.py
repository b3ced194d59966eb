"""Twelve ways to fool an evaluation: each is refused, or named in its report."""

import sqlite3

import pytest

from boundwatch import Evaluation, Protocol
from boundwatch.errors import Refusal
from boundwatch.evaluation import log as logs
from boundwatch.evaluation.final_report import check, render

SETTINGS = {"question": "compare", "policies": ["act", "dp"], "tasks": ["mug", "bowl"], "most_rounds": 30}


@pytest.fixture
def honest(tmp_path):
    """Return an evaluation that has been answered."""
    path = tmp_path / "eval.db"
    Protocol(**SETTINGS).save(tmp_path / "protocol.toml")
    with Evaluation.start(path, Protocol.load(tmp_path / "protocol.toml")) as ev:
        while (trial := ev.next()) is not None:
            ev.record(trial, success=ev.policy_of(trial) == "dp" or trial.number % 3 == 0)
        (tmp_path / "trials.csv").write_text(ev.results().as_csv())
        (tmp_path / "report.html").write_text(render(ev))
        files = [tmp_path / name for name in ("protocol.toml", "trials.csv", "report.html")]
        assert set(check(ev, path, files, None)) >= {"protocol.toml", "trials.csv", "report.html", "answer"}
        assert not ev.verify()
    return path


def alter(path, *statements):
    """Change the file by force, as somebody does who knows SQLite."""
    file = sqlite3.connect(path)
    file.executescript("DROP TRIGGER unchanged; DROP TRIGGER undeleted;")
    for statement in statements:
        file.execute(statement)
    file.commit()
    file.close()


def is_refused(path, match):
    with pytest.raises(Refusal, match=match):
        verify(path)


def verify(path):
    with Evaluation.open(path) as ev:
        return ev.verify()


def is_named(ev, said):
    return said in "\n".join(ev.verify()) and said in render(ev)


def test_1_extra_looks_are_named():
    ev = Evaluation.start(None, Protocol(**SETTINGS))
    for _ in range(4):
        ev.record(ev.next(), success=True)
    ev.results("show")
    ev.finding()
    assert is_named(ev, "results by policy were looked at (show)")
    assert is_named(ev, "results by policy were looked at (finding)")


@pytest.mark.parametrize("whole", [True, False])
def test_2_dropped_failures_are_refused(honest, whole):
    dropped = """DELETE FROM log WHERE number = (
        SELECT max(number) FROM log WHERE content LIKE '%"success":false%')"""
    alter(honest, dropped.replace("=", ">=", 1) if whole else dropped)
    is_refused(honest, "missing")


def test_2b_discarded_failures_count_as_failures_and_are_named():
    ev = Evaluation.start(None, Protocol(**SETTINGS))
    ev.record(ev.next(), discarded="did not look good")
    assert is_named(ev, "trial 1 was discarded and counts as a failure: did not look good")
    assert [outcome.cost for *_, outcome in ev.replay().recorded] == [1]


def test_3_an_edited_row_is_refused(honest):
    alter(honest, "UPDATE log SET content = replace(content, 'false', 'true') WHERE kind = 'outcome'")
    is_refused(honest, "was altered, its hash does not follow")


def rechain(path):
    """Compute all hashes again, as somebody does who has read the code."""
    file, head = sqlite3.connect(path), "0" * 64
    for number, time, kind, text in file.execute("SELECT number, time, kind, content FROM log").fetchall():
        head = logs._digest(head, number, time, kind, text)
        file.execute("UPDATE log SET hash = ? WHERE number = ?", (head, number))
    file.commit()
    file.close()


def test_3b_an_edited_and_chained_row_contradicts_the_rest(honest):
    alter(honest, "UPDATE log SET content = replace(content, 'true', 'false') WHERE kind = 'outcome'")
    rechain(honest)
    is_refused(honest, "does not tell the end that follows|is not to be run now|schedule")


def test_4_a_changed_level_is_refused(honest):
    alter(honest, "UPDATE log SET content = replace(content, '0.05', '0.5') WHERE number = 1")
    rechain(honest)
    is_refused(honest, "has a protocol that its fingerprint does not fit")


def test_5_swapped_labels_are_refused(honest):
    swap = """UPDATE log SET content = replace(replace(replace(
        content, '"A"', 'x'), '"B"', '"A"'), 'x', '"B"') WHERE kind = 'open'"""
    alter(honest, swap)
    rechain(honest)
    is_refused(honest, "does not follow from the schedule")


def test_5b_another_key_of_the_letters_is_refused(honest):
    alter(
        honest,
        "UPDATE sealed SET secret = 'f' || substr(secret, 2)",
        "UPDATE sealed SET secret = secret || 'a'",
    )
    is_refused(honest, "has a commitment that the key of letters and order does not fit")


def test_6_a_reused_trial_is_refused(honest):
    with Evaluation.open(honest) as ev:
        number = next(trial.number for trial, _, outcome in ev.replay().recorded if outcome.cost)
        with pytest.raises(Refusal, match="has another outcome already"):
            ev.record(number, success=True)


def test_7_reordered_rows_are_refused(honest):
    alter(
        honest,
        "UPDATE log SET number = -1 WHERE number = 4",
        "UPDATE log SET number = 4 WHERE number = 5",
        "UPDATE log SET number = 5 WHERE number = -1",
    )
    is_refused(honest, "was altered")
    rechain(honest)
    is_refused(honest, "is not to be run now|does not follow|is not what comes there")


def test_8_a_second_start_is_named_and_never_in_the_same_file(honest):
    protocol = Protocol.load(honest.parent / "protocol.toml")
    with pytest.raises(Refusal, match="an evaluation is never started over"):
        Evaluation.start(honest, protocol)
    with Evaluation.start(honest.parent / "again.db", protocol) as ev:
        assert is_named(ev, "these policies were evaluated before, in eval.db (20")
    seeded = Protocol(**SETTINGS, seed=5)
    with Evaluation.start(honest.parent / "other.db", seeded) as ev:
        assert is_named(ev, ", other settings)")


def test_9_a_trial_of_a_dropped_policy_is_refused():
    settings = SETTINGS | {"question": "rank", "policies": ["a", "b", "c"], "most_rounds": 300}
    ev = Evaluation.start(None, Protocol(**settings))
    while ev.status["policies_in"] == 3:
        trial = ev.next()
        ev.record(trial, success=ev.policy_of(trial) != "a" and trial.number % 3 > 0)
    while (trial := ev.next()).round == ev.status["rounds"]:
        ev.record(trial, success=True)
    beaten = {"a", "b", "c"} - set(ev.replay().evidence.policies)
    assert beaten == {"a"}
    for number in (trial.number + 1, trial.number + 2, trial.number + 50):
        with pytest.raises(Refusal, match=r"was not handed out|is not to be run now"):
            ev.record(number, success=True)
    assert {ev.policy_of(trial)} <= {"b", "c"}


def test_10_a_clock_that_was_set_back_is_named(tmp_path, monkeypatch):
    class Earlier(logs.datetime):
        @classmethod
        def now(cls, tz=None):
            return logs.datetime(2020, 1, 1, tzinfo=tz)

    with Evaluation.start(tmp_path / "e.db", Protocol(**SETTINGS)) as ev:
        ev.record(ev.next(), success=True)
        monkeypatch.setattr(logs, "datetime", Earlier)
        ev.record(ev.next(), success=True)
        assert is_named(ev, "the clock was set back, from 20")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("trials.csv", ",0,,", ",1,,"),  # 11: the export
        ("protocol.toml", "alpha = 0.05", "alpha = 0.1"),  # 12: the protocol
        ("report.html", "is better than", "is far better than"),
    ],
)
def test_11_12_edited_files_are_refused(honest, name, old, new):
    target = honest.parent / name
    text = target.read_text()
    assert old in text
    target.write_text(text.replace(old, new, 1))
    with Evaluation.open(honest) as ev, pytest.raises(Refusal, match=f"{name}: does not follow from the log"):
        check(ev, honest, [target], None)


def test_the_answer_does_not_move_with_what_the_file_of_the_protocol_says_later(honest):
    target = honest.parent / "protocol.toml"
    with Evaluation.open(honest) as ev:
        before = render(ev)
    target.write_text(target.read_text().replace("alpha = 0.05", "alpha = 0.5"))
    with Evaluation.open(honest) as ev:
        assert render(ev) == before
