"""The loop and its state: counted once, stored before it is said, refused when anything was changed."""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.watching import files, ids, pipes
from boundwatch.watching.alarms import Wait
from boundwatch.watching.files import FileSource
from boundwatch.watching.pipes import PipeSource
from boundwatch.watching.rows import Rows, Rule
from boundwatch.watching.sources import RowSource
from boundwatch.watching.spool import SpooledPipe
from boundwatch.watching.starting import build_detectors, resume
from boundwatch.watching.state import StateFile
from boundwatch.watching.watch import Counted, Notice, Watch

CERT = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


def watch(state=None, *, certificate=CERT, source="-", detector="sequential-test", **rule):
    return Watch(build_detectors(certificate, detector, {}), Rows(Rule(**rule)), source, state=state)


def run(session, *lines, **options):
    return [event for events in session.run(RowSource(list(lines)), **options) for event in events]


def costs(events):
    return [event.cost for event in events if isinstance(event, Counted)]


def test_what_is_yielded_is_in_the_state(tmp_path):
    with StateFile(tmp_path / "s") as state:
        session = watch(state)
        for events in session.run(RowSource(["0.3", "0.4"])):
            assert [event.cost for event in events] == [0.3, 0.4]
            stored = state.read()
            assert stored["detectors"][""]["n"] == 2
            assert stored["last_cost"] == 0.4


def test_lines_before_a_malformed_one_are_counted_and_stored(tmp_path):
    for poison in ("x", "0.\0", "1.4", '{"cost": [[[]]]}'):
        with StateFile(tmp_path / "s") as state:
            session = watch(state)
            with pytest.raises(InvalidCost, match=r"standard input: line 2[ ,].*--skip-malformed"):
                run(session, "0.3", poison, "0.4")
            assert state.read()["detectors"][""]["n"] == 1
            events = run(session, "0.3", poison, "0.4", lenient=True)
            assert (costs(events), session.skipped) == ([0.3, 0.4], 1)
            assert next(event.text for event in events if isinstance(event, Notice)).startswith(
                "line 2 skipped"
            )


def test_a_state_of_an_earlier_version_goes_on_with_the_range_of_the_certificate(tmp_path):
    """It kept that range as if it had been asked for, and did not say what stands above the numbers."""
    lab = {"measured": "cost = 1 - reward, rescaled", "cost_range": (0.0, 50.0)}
    certificate = bw.Certificate.from_held_out([0.1] * 20, **lab)

    def session(cost_range=None, *, bare_costs=False):
        rows = Rows(Rule(cost_range=cost_range, bare_costs=bare_costs), ranges={"reward": (0.0, 50.0)})
        return Watch(build_detectors(certificate, "sequential-test", {}), rows, "-", state=state)

    with StateFile(tmp_path / "s") as state:
        run(session((0.0, 50.0), bare_costs=True), '{"reward": 40}')
        again = session()
        assert resume(again, {})
        assert costs(run(again, '{"reward": 30}')) == [0.4]
        other = session((0.0, 60.0))
        with pytest.raises(
            InvalidSetting, match=r"begun with no --cost-range, not with --cost-range 0.0 60.0"
        ):
            resume(other, {})


def test_a_state_in_which_every_stream_spends_the_shared_delta_is_refused():
    """As an earlier version wrote it: any false alarm would be more likely than what is printed."""
    lab = bw.Certificate.from_held_out([0, 0, 0, 1] * 5, binary=True)
    family = bw.CertificateFamily.shared(lab, ["arm-1", "arm-2"], by="robot")
    content = watch(certificate=family, by="robot").to_dict()
    watch(certificate=family, by="robot").restore(content)
    for stored in content["detectors"].values():
        assert stored["settings"].pop("sharing") == 2
    with pytest.raises(InvalidSetting, match="divides the certificate's delta otherwise"):
        watch(certificate=family, by="robot").restore(content)


def test_a_state_that_has_seen_no_line_expects_nothing_above_the_numbers():
    content = watch().to_dict()
    for name in ("above", "order", "columns"):
        del content["table"][name]  # as an earlier version wrote it
    session = watch()
    session.restore(content)
    assert costs(run(session, "0.5", "0.25")) == [0.5, 0.25]


def test_a_repeated_id_counts_once_and_a_gap_is_fatal():
    lines = [json.dumps({"n": n, "cost": 0.1 * n}) for n in (1, 2, 3)]
    session = watch(id="n")
    assert costs(run(session, *lines, lines[1], lines[2])) == pytest.approx([0.1, 0.2, 0.3])
    assert session.repeated == 2
    with pytest.raises(InvalidSetting, match=r"line 1: id 5 follows id 3: 1 missing; .*--allow-gaps"):
        run(session, json.dumps({"n": 5, "cost": 0.5}))
    events = run(session, *(json.dumps({"n": n, "cost": 0.5}) for n in (5, 4, 5)), allow_gaps=True)
    assert costs(events) == [0.5, 0.5]
    assert (session.gaps, session.repeated, session.episodes) == (2, 3, 5)


def test_every_robot_has_its_own_detector_level_and_ids():
    family = bw.CertificateFamily.from_held_out({"a": [0.1, 0.2] * 20, "b": [0.3] * 40}, by="robot")
    session = watch(certificate=family, by="robot", id="n")
    assert {one.alpha_adverse for one in session.detectors.values()} == {0.02}
    run(session, *(json.dumps({"robot": r, "n": n, "cost": 0.9}) for n in range(9) for r in "ab"))
    assert {name: one.n for name, one in session.detectors.items()} == {"a": 9, "b": 9}
    assert session.verdict is bw.Verdict.ADVERSE
    with pytest.raises(InvalidCost, match="'c', which has no certificate, only 'a', 'b'; correct it"):
        run(session, '{"robot": "c", "n": 1, "cost": 0}')


def test_an_alarm_is_told_again_only_if_that_was_not_stored(tmp_path):
    told = []
    path = tmp_path / "s"
    with StateFile(path) as state:
        session = watch(state)

        def fail(_):
            raise RuntimeError  # killed while the command ran

        with pytest.raises(RuntimeError):
            run(session, *["0.9"] * 8, on_alarm=fail)
    for expected in (1, 1):
        with StateFile(path) as state:
            session = watch(state)
            assert resume(session, {})
            run(session, on_alarm=told.append)
        assert len(told) == expected
    assert (told[0]["verdict"], told[0]["n"], told[0]["source"]) == ("adverse", 8, "standard input")


def test_an_alarm_that_cannot_be_told_is_tried_again(tmp_path):
    asked = []

    def refuse(alarm):
        asked.append(alarm["n"])
        if len(asked) < 4:
            raise InvalidSetting("nobody there")

    with StateFile(tmp_path / "s") as state:
        session = watch(state)
        events = run(session, *["0.9"] * 8, on_alarm=refuse)  # when it alarms, and at the end
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "warning: nobody there; the alarm is not delivered yet"
        ]
        assert (session.announced, session.undelivered) == ({}, {"": "nobody there"})
        events = run(session, "0.9", on_alarm=refuse)  # at once, and at the end
        assert (asked, session.announced, session.undelivered) == ([8, 8, 8, 9], {"": "adverse"}, {})
        assert not any(isinstance(event, Notice) for event in events)  # it was said before
        run(session, "0.9", on_alarm=refuse)
        assert len(asked) == 4


@pytest.mark.parametrize("kind", ["file", "pipe", "spool"])
def test_an_alarm_is_tried_again_while_no_line_comes(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(files, "_POLL", 0.001)
    monkeypatch.setattr(pipes, "_WAIT", 0.001)
    (tmp_path / "log").write_text("0.9\n" * 8)
    reading, writing = os.pipe()
    os.write(writing, b"0.9\n" * 8)
    asked = []

    def stop():
        source.follow = False
        with suppress(OSError):  # closed before
            os.close(writing)

    def refuse(alarm):
        asked.append(alarm["n"])
        if len(asked) < 5:
            raise InvalidSetting("nobody there")
        stop()

    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        if kind == "file":
            source = FileSource(str(tmp_path / "log"), follow=True)
        else:
            source = PipeSource("-") if kind == "pipe" else SpooledPipe(str(tmp_path / "spool"))
        session = watch()
        session._waits[""] = Wait(seconds=0.0)
        late = threading.Timer(60, stop)  # it is silent for ever
        late.start()
        events = [event for batch in session.run(source, on_alarm=refuse) for event in batch]
        late.cancel()
        stop()
    assert (asked, session.undelivered, session.episodes) == ([8] * 5, {}, 8)
    assert sum(isinstance(event, Notice) for event in events) == 1


def test_a_followed_line_without_newline_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_POLL", 0.0)
    monkeypatch.setattr(files, "_LOOKS", 2)
    log = tmp_path / "log"
    log.write_text("0.3\n0.4")
    source = FileSource(str(log), follow=True)
    session = watch(source=str(log))
    found = []
    for events in session.run(source):
        found += events
        if isinstance(events[-1], Notice):
            log.write_text("0.3\n0.4\n0.5")
        source.follow = len(costs(found)) < 2
    assert costs(found) == [0.3, 0.4]
    said = [event.text for event in found if isinstance(event, Notice)]
    assert said == [f"note: {log}: line 2 has no newline yet; it is counted once it has one"]


def test_an_alarm_before_a_malformed_line_is_told():
    told = []
    with pytest.raises(InvalidCost, match="line 9"):
        run(watch(), *["0.9"] * 8, "x", on_alarm=told.append)
    assert [alarm["n"] for alarm in told] == [8]


def test_a_program_that_keeps_failing_is_not_asked_line_after_line():
    asked = []

    def refuse(alarm):
        asked.append(alarm["n"])
        raise InvalidSetting("nobody there")

    class OneByOne(RowSource):
        def batches(self):
            for line in range(30):
                yield from RowSource(["0.9"], [line + 1]).batches()

    session = watch()
    list(session.run(OneByOne([]), on_alarm=refuse))
    assert (asked[0], asked[-1], session.undelivered) == (3, 30, {"": "nobody there"})
    assert len(asked) < 6  # when it alarms, after a second, two, four, and at the end


def test_own_costs_are_noticed_after_a_restart(tmp_path):
    lab = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7]
    certificate = bw.Certificate.from_held_out(lab)
    for own in (True, False):
        with StateFile(tmp_path / "s") as state:
            run(watch(state, certificate=certificate), *map(str, lab[:4]))
        with StateFile(tmp_path / "s") as state:
            session = watch(state, certificate=certificate)
            assert resume(session, {})
            if own:
                with pytest.raises(ProvenanceMismatch, match="line 3: these are the costs that the certif"):
                    run(session, *map(str, lab[4:]))
                assert not state.path.exists()
            else:
                run(session, "0.8", *map(str, lab[5:]), "0.6")
                assert (session.episodes, session.to_dict()["followed"]) == (8, {})


LIKE = {
    "certified before": (
        ["0.9", "0.3", "0.5", "0.1", "0.2", "0.4", "0.7", "0.6"],
        7,
        "100 % of these costs are also among",
    ),
    "another unit": (
        ["0", "0.4", "0.7", "0.2", "0", "0.3", "0.1", "0.6"],
        7,
        "all values are at most 1 in the certificate's range",
    ),
}


@pytest.mark.parametrize("kind", LIKE)
@pytest.mark.parametrize("restart", range(6))
def test_costs_that_look_certified_or_in_another_unit_are_said_once(tmp_path, kind, restart):
    lines, first, warning = LIKE[kind]
    ends = (0, 100) if kind == "another unit" else None
    certificate = bw.Certificate.from_held_out([0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7], cost_range=ends)
    counted = costs(run(watch(certificate=CERT, cost_range=ends), *lines))
    events = []
    for part in (lines[:restart], lines[restart:]):
        with StateFile(tmp_path / "s") as state:
            session = watch(state, certificate=certificate, cost_range=ends)
            resume(session, {})
            events += run(session, *part)
    said = [place for place, event in enumerate(events) if warning in getattr(event, "text", "")]
    assert said == [first - 1]  # right before the episode that shows it
    assert (costs(events), session.episodes) == (counted, len(lines))  # it is only said
    assert session.to_dict()["likeness"].get("", [None, None]).count(None) >= 1


def test_a_state_of_an_earlier_version_is_compared_no_further(tmp_path):
    certificate = bw.Certificate.from_held_out([0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7])
    lines, _, warning = LIKE["certified before"]
    with StateFile(tmp_path / "s") as state:
        run(watch(state, certificate=certificate), *lines[:3])
        content = state.read()
        del content["likeness"]
        state.write(content)
        session = watch(state, certificate=certificate)
        assert resume(session, {})
        assert not [event for event in run(session, *lines[3:]) if warning in getattr(event, "text", "")]
        assert session.episodes == len(lines)


def test_a_state_has_one_owner(tmp_path):
    code = (
        "import sys\nfrom boundwatch.watching.state import StateFile\n"
        "with StateFile(sys.argv[1]):\n    print('locked', flush=True)\n    sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        with (
            pytest.raises(InvalidSetting, match=f"is in use by process {other.pid}; end that watch"),
            StateFile(tmp_path / "s"),
        ):
            pass
        other.kill()
    (tmp_path / ".s.0123456789abcdef.tmp").touch()
    (tmp_path / ".other.0123456789abcdef.tmp").touch()
    with StateFile(tmp_path / "s"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".other.0123456789abcdef.tmp"]


@pytest.mark.parametrize(
    "change",
    [
        {"source": "other"},
        {"rule": {"id": "n"}},
        {"rule": {"cost_range": (0.0, 2.0)}},
        {"detector": "change-detector"},
    ],
)
def test_a_state_belongs_to_its_source_rule_and_detector(tmp_path, change):
    with StateFile(tmp_path / "s") as state:
        run(watch(state), "0.3")
        other = {"source": change.get("source", "-"), "detector": change.get("detector", "sequential-test")}
        with pytest.raises(InvalidSetting, match=f"^{tmp_path / 's'}: it "):
            resume(watch(state, **other, **change.get("rule", {})), {})
        for binary in (False, True):
            certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01, binary=binary)
            with pytest.raises(ProvenanceMismatch, match=f"^{tmp_path / 's'}: the state belongs to certif"):
                resume(watch(state, certificate=certificate, binary=binary), {})


def planted(state, change):
    sealed = json.loads(state.path.read_text())
    change(sealed)
    state.path.write_text(json.dumps(sealed))


@pytest.mark.parametrize(
    "change",
    [
        lambda sealed: sealed["content"]["detectors"][""].update(n=1001),
        lambda sealed: sealed["content"]["detectors"][""].update(verdict="benign", first_alarm=1),
        lambda sealed: sealed["content"].update(last_cost="x"),
        lambda sealed: sealed["content"]["position"].update(end=0),
        lambda sealed: sealed.update(version=2),
        lambda sealed: sealed.update(version=4),
        lambda sealed: sealed.update(kind="x"),
        lambda sealed: sealed.update(content=[]),
        lambda sealed: sealed.pop("checksum"),
    ],
)
def test_an_altered_state_is_refused(tmp_path, change):
    with StateFile(tmp_path / "s") as state:
        run(watch(state), "0.3")
        planted(state, change)
        with pytest.raises(SchemaMismatch, match=f"^{tmp_path / 's'}: "):
            resume(watch(state), {})


@pytest.mark.parametrize(
    "change",
    [
        {"last_cost": "x"},
        {"last_cost": [1]},
        {"skipped": 10**400},
        {"position": {"end": "4"}},
        {"position": None},
        {"ids": {"": [[1]]}},
        {"detectors": 1},
        {"detectors": {"": {"kind": "SequentialTest"}}},
        {"followed": {"": [0.3, 0.3]}},
        {"followed": {"x": [0.3]}},
        {"costs": [[1, 2]]},
        {"costs": [["", 1, ["x"]]]},
        {"table": {}},
        {"rule": {}},
    ],
)
def test_a_state_with_a_good_checksum_and_bad_values_is_refused(tmp_path, change):
    with StateFile(tmp_path / "s") as state:
        session = watch(state)
        run(session, "0.3")
        state.write(session.to_dict() | change)
        with pytest.raises((SchemaMismatch, InvalidSetting), match=f"^{tmp_path / 's'}: "):
            resume(watch(state), {})


@pytest.mark.parametrize("value", [10**400, -1, 1.5, "3", None])
def test_a_number_of_episodes_that_cannot_be_is_refused(tmp_path, value):
    with StateFile(tmp_path / "s") as state:
        session = watch(state)
        run(session, "0.3")
        content = session.to_dict()
        content["detectors"][""]["n"] = value
        state.write(content)
        with pytest.raises(SchemaMismatch, match=r"\['n'\] = .* is not a whole number from 0 to 2\^53"):
            resume(watch(state), {})


@pytest.mark.parametrize("text", ["{", "[" * 100000, "\ud800", "1" * 10000, ""])
def test_a_state_that_is_not_json(tmp_path, text):
    (tmp_path / "s").write_text(text, errors="surrogatepass")
    with StateFile(tmp_path / "s") as state, pytest.raises(SchemaMismatch, match=f"^{tmp_path / 's'}: "):
        resume(watch(state), {})


@pytest.mark.parametrize("kind", [int, str])
def test_a_repeated_id_with_another_cost_is_an_error(tmp_path, kind):
    def line(number, cost):
        return json.dumps({"n": kind(number), "cost": cost})

    with StateFile(tmp_path / "s") as state:
        session = watch(state, id="n")
        assert costs(run(session, line(1, 0.25), line(2, 0.5), line(1, 0.25))) == [0.25, 0.5]
    with StateFile(tmp_path / "s") as state:
        session = watch(state, id="n")
        assert resume(session, {})
        said = (
            r"line 2 has id '?1'? and cost 0\.75, but this id was counted with cost 0\.25; .*--skip-malformed"
        )
        with pytest.raises(InvalidCost, match=said):
            run(session, line(3, 0.5), line(1, 0.75), line(4, 0.5))
        assert session.episodes == 3
        events = run(session, line(1, 0.75), line(4, 0.5), lenient=True)
        assert (costs(events), session.skipped, session.repeated) == ([0.5], 1, 1)


def test_what_is_too_old_to_compare_is_said(monkeypatch):
    monkeypatch.setattr(ids, "MOST_REMEMBERED", 2)
    lines = [json.dumps({"n": n, "cost": 0.1}) for n in range(1, 6)]
    session = watch(id="n")
    events = run(session, *lines, *lines)
    assert (len(costs(events)), session.repeated) == (5, 5)
    (notice,) = (event.text for event in events if isinstance(event, Notice))
    assert notice == "3 lines from 6 on: ids that came too long ago to compare their costs; not counted"
    assert len(session.to_dict()["costs"]) == 2
