"""The loop and its store: counted once, stored before it is said, refused when anything was changed."""

import json
import os
import threading

import pytest

import boundwatch as bw
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.readers.lines import LineSplitter, Position
from boundwatch.watching.alarms import Alarms
from boundwatch.watching.loop import Counted, Notice, Watch, build_detectors
from boundwatch.watching.resuming import resume
from boundwatch.watching.sources import is_pipe
from boundwatch.watching.store import Store
from boundwatch.watching.trials import TrialReader
from program import LIMIT

CERT = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)


def watch(state=None, *, certificate=CERT, number=None, by=None, source="-", on_alarm=None, **options):
    store, levels = Store(state, "watch"), options.pop("levels", {})
    session = Watch(
        build_detectors(certificate, options.pop("detector", "sequential-test"), levels),
        source,
        store,
        TrialReader(Declared.of(CERT, by_line=True, id=number, by=by), source),
        settings={"id": number, "by": by} | options.pop("settings", {}),
        alarms=Alarms(on_alarm),
        **options,
    )
    resume(session, levels)
    return session


def given(*texts, at=None):
    """Yield lines, those of one text at a time."""
    splitter = LineSplitter("-", at or Position())
    for text in texts:
        yield splitter.feed("".join(f"{line}\n" for line in text.split()).encode())


def run(session, *texts):
    return [event for events in session.run(given(*texts, at=session.position)) for event in events]


def costs(events):
    return [event.cost for event in events if isinstance(event, Counted)]


def notices(events):
    return [event.text for event in events if isinstance(event, Notice)]


def again(session, **options):
    session.store.close()
    return watch(session.store.path, **options)


def test_what_is_yielded_is_in_the_store(tmp_path):
    session = watch(tmp_path / "s")
    for events in session.run(given("0.3 0.4")):
        assert costs(events) == [0.3, 0.4]
        session = again(session)  # as after a kill
        assert (session.resumed, session.episodes, session.position.lines) == (True, 2, 2)
    assert costs(run(session, "0.5")) == [0.5]


def test_lines_before_a_malformed_one_are_counted_and_stored(tmp_path):
    for poison in ("x", "1.4", '{"cost":[[[]]]}'):
        session = watch(tmp_path / poison)
        with pytest.raises(InvalidCost) as refused:
            run(session, f"0.3 {poison} 0.4")
        assert refused.value.where.number == 2
        session = again(session)
        assert (session.episodes, session.position.lines) == (1, 1)
        session.lenient = True
        assert (costs(run(session, f"{poison} 0.4")), session.skipped) == ([0.4], 1)


def test_nothing_is_left_where_nothing_was_counted(tmp_path):
    with pytest.raises(InvalidCost):
        run(watch(tmp_path / "s"), "1.4")
    assert list(tmp_path.iterdir()) == []


def test_an_alarm_may_end_it_and_the_rest_of_the_batch_is_counted_later(tmp_path):
    session = watch(tmp_path / "s", until_alarm=True)
    assert len(costs(run(session, "0.9 0.9 0.9 0.9 0.1"))) == 3
    session = again(session)
    assert session.position.lines == 3
    assert costs(run(session, "0.9 0.1")) == [0.9, 0.1]


@pytest.mark.parametrize("kind", [int, str])
def test_an_id_counts_once_and_with_one_cost(tmp_path, kind):
    def line(number, cost):
        return json.dumps({"n": kind(number), "cost": cost}, separators=(",", ":"))

    session = watch(tmp_path / "s", number="n")
    assert costs(run(session, f"{line(1, 0.25)} {line(2, 0.5)} {line(1, 0.25)}")) == [0.25, 0.5]
    session = again(session, number="n")
    with pytest.raises(
        InvalidCost, match=r"has id '?1'? and cost 0\.75, but this id was counted with cost 0\.25"
    ):
        run(session, f"{line(3, 0.5)} {line(1, 0.75)} {line(4, 0.5)}")
    assert (session.episodes, session.repeated) == (3, 1)


def test_gaps_are_refused_or_said():
    def line(number):
        return json.dumps({"n": number, "cost": 0.1}, separators=(",", ":"))

    for numbers, said in (
        ((1, 2, 5), "id 5 comes after id 2: 2 missing"),
        ((1, 4, 3), "id 4 comes after id 1: 2 missing"),
    ):
        text = " ".join(map(line, numbers))
        with pytest.raises(InvalidSetting, match=said):
            run(watch(number="n"), text)
        session = watch(number="n", allow_gaps=True)
        assert len(costs(run(session, text))) == 3
        assert session.gaps == (2 if numbers[1] == 4 else 1)


def test_every_robot_has_its_own_detector():
    family = bw.CertificateFamily.from_held_out({"a": [0.1] * 30, "b": [0.1] * 30})
    session = watch(certificate=family, by="robot")
    lines = [json.dumps({"robot": r, "cost": 0.9}, separators=(",", ":")) for _ in range(9) for r in "ab"]
    run(session, " ".join(lines))
    assert {name: one.n for name, one in session.detectors.items()} == {"a": 9, "b": 9}
    with pytest.raises(InvalidCost, match="is of 'c', which has no certificate"):
        run(session, '{"robot":"c","cost":0}')


def test_an_alarm_is_told_once_and_again_only_if_that_was_not_stored(tmp_path):
    def fail(_):
        raise RuntimeError  # killed while the command ran

    session = watch(tmp_path / "s", on_alarm=fail)
    with pytest.raises(RuntimeError):
        run(session, "0.9 0.9 0.9 0.9")
    told = []
    for _ in range(2):
        session = again(session, on_alarm=told.append)
        run(session)
        assert [(alarm["verdict"], alarm["n"], alarm["source"]) for alarm in told] == [("adverse", 4, "-")]


def test_an_alarm_that_cannot_be_told_is_tried_again_while_no_line_comes():
    asked = []

    def refuse(alarm):
        asked.append(alarm["n"])
        if len(asked) < 4:
            raise InvalidSetting("nobody there")

    session = watch(on_alarm=refuse)

    def silent():
        yield from given("0.9 0.9 0.9 0.9")
        for _ in range(20):
            if "" in session.alarms.waits:
                session.alarms.waits[""] = (1.0, 0.0)
            yield from given("")

    events = [event for events in session.run(silent()) for event in events]
    assert notices(events) == ["warning: nobody there; the alarm is not delivered yet"]
    assert (asked, session.alarms.undelivered, session.alarms.told) == ([4] * 4, {}, {"": "adverse"})


def test_own_costs_are_noticed_after_a_restart(tmp_path):
    lab = [0.1, 0.5, 0.3, 0.2, 0.9, 0.4, 0.7]
    certificate = bw.Certificate.from_held_out(lab, measure=Measure("cost"))
    session = watch(tmp_path / "s", certificate=certificate)
    run(session, " ".join(map(str, lab[:4])))
    session = again(session, certificate=certificate)
    with pytest.raises(ProvenanceMismatch, match="are the costs that the certificate was made from"):
        run(session, " ".join(map(str, lab[4:])))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"settings": {"source": "b"}}, {"number": "n"}, {"by": "robot"}])
def test_a_state_belongs_to_its_settings(tmp_path, change):
    session = watch(tmp_path / "s", settings={"source": "a"})
    run(session, "0.3")
    with pytest.raises(InvalidSetting, match="was begun with") as refused:
        again(session, **{"settings": {"source": "a"}} | change)
    assert refused.value.where.source == str(tmp_path / "s")


def test_robots_that_share_a_certificate_go_on_at_the_same_levels(tmp_path):
    shared = bw.Certificate.from_held_out([0, 1, 0, 0] * 10, binary=True)
    options = {"certificate": bw.CertificateFamily({"a": shared, "b": shared}), "by": "robot"}
    session = watch(tmp_path / "s", levels={"alpha_adverse": 0.1}, **options)
    run(session, '{"robot":"a","cost":0}')
    session = again(session, **options)  # which asks for no level
    assert (session.episodes, session.detectors["a"].alpha_adverse) == (1, 0.05)
    with pytest.raises(InvalidSetting, match=r"was begun with alpha_adverse=0\.1") as refused:
        again(session, levels={"alpha_adverse": 0.2}, **options)
    assert refused.value.remedy[1].name == "alpha_adverse"


def test_a_state_belongs_to_its_certificate(tmp_path):
    session = watch(tmp_path / "s")
    run(session, "0.3")
    with pytest.raises(ProvenanceMismatch, match="belongs to certificate"):
        again(session, certificate=bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01))


@pytest.mark.parametrize(
    "change",
    [
        {"progress": {}},
        {"progress": {"position": {"offset": -1}}},
        {"progress": {"position": None}},
        {"progress": {"skipped": -1}},
        {"progress": {"highest": {"": "x"}}},
        {"text": {}},
        {"likeness": {"x": 1}},
        {"detector ": {"n": 1}},
    ],
)
def test_a_state_with_bad_values_is_refused(tmp_path, change):
    session = watch(tmp_path / "s")
    run(session, "0.3")
    if change.get("progress"):
        change = {"progress": session.store.facts["progress"] | change["progress"]}
    session.store.keep(change)
    session.store.commit()
    with pytest.raises((SchemaMismatch, InvalidSetting)) as refused:
        again(session)
    assert refused.value.where.source == str(tmp_path / "s")


def follow(session, path, **options):
    return [event for events in session.run(session.open(str(path), **options)) for event in events]


def counted(tmp_path, text):
    """Return a log of which all was counted, and a function that counts what came since."""
    log = tmp_path / "log"
    log.write_text(text)

    def count():
        session = watch(tmp_path / "s", source=str(log))
        try:
            return costs(follow(session, log))
        finally:
            session.store.close()

    count()
    return log, count


def test_a_file_that_is_replaced_by_rename_goes_on(tmp_path):
    log, count = counted(tmp_path, "0.1\n0.2\n")
    for cost in (0.3, 0.4, 0.5):
        (tmp_path / "new").write_text(f"{log.read_text()}{cost}\n")
        (tmp_path / "new").rename(log)
        assert count() == [cost]
    (tmp_path / "new").write_text("0.9\n")
    (tmp_path / "new").rename(log)
    with pytest.raises(InvalidSetting, match="does not begin with the 5 lines"):
        count()


@pytest.mark.parametrize("name", ["log.1", "log-20261115", "log.1763164800", "log.bak", "log.old"])
def test_rotation_is_followed(tmp_path, name):
    log, count = counted(tmp_path, "0.1\n0.2\n")
    with log.open("a") as file:
        file.write("0.3\n")
    log.rename(tmp_path / name)
    log.write_text("0.4\n")
    assert count() == [0.3, 0.4]


@pytest.mark.parametrize("names", [("log.3", "log.2.gz", "log.1"), ("log.20261113", "log.20261114")])
@pytest.mark.parametrize("text", ["0.9\n", "0.1\n0.2\n"])  # of another day, and of one just like it
def test_rotation_that_cannot_be_accounted_for_names_the_files(tmp_path, names, text):
    log, count = counted(tmp_path, "0.1\n0.2\n")
    log.rename(tmp_path / names[0])
    for name in names[1:]:
        (tmp_path / name).write_text(text)
    log.write_text("0.4\n")
    with pytest.raises(InvalidSetting, match=names[-1]):
        count()


@pytest.mark.parametrize("text", ["0.9\n0.9\n", "0.9\n0.9\n0.9\n", "0.9\n"])
def test_a_file_that_was_emptied_and_has_grown_again_is_noticed(tmp_path, text):
    log, count = counted(tmp_path, "0.1\n0.2\n")
    log.write_text(text)
    with pytest.raises(InvalidSetting):
        count()


def test_a_line_without_newline_is_left_for_the_next_time(tmp_path):
    log, count = counted(tmp_path, "0.1\n0.2")
    with log.open("a") as file:
        file.write("5\n")
    assert count() == [0.25]


def test_without_a_state_a_last_line_without_newline_counts(tmp_path):
    (tmp_path / "log").write_text("0.1\n0.2")
    assert costs(follow(watch(source="log"), tmp_path / "log")) == [0.1, 0.2]


def send(fifo, text):
    thread = threading.Thread(target=fifo.write_text, args=(text,), daemon=True)
    thread.start()
    return thread


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_a_named_pipe_is_read(fifo, tmp_path):
    sender = send(fifo, "0.1\n0.2\n")
    assert costs(follow(watch(source=str(fifo)), fifo)) == [0.1, 0.2]
    sender.join(LIMIT)
    with pytest.raises(InvalidSetting, match="is a pipe, of which a kill loses") as refused:
        follow(watch(tmp_path / "s", source=str(fifo)), fifo)
    assert refused.value.remedy[1].name == "id"


@pytest.mark.parametrize("line", ['{{"n": {0}, "cost": 0.{0}}}\n', "{0},0.{0}\n", '{0},0.{0},"a\nb"\n'])
def test_a_numbered_sender_sends_a_torn_line_again(fifo, tmp_path, line):
    """What it wrote of the line is never joined to what another one writes, cells in quotes included."""
    head = "" if line.startswith("{{") else "n,cost\n" if '"' not in line else "n,cost,note\n"
    lines = [line.format(n) for n in range(1, 5)]
    sender = send(fifo, head + lines[0] + lines[1][:-3])
    session = watch(tmp_path / "s", source=str(fifo), number="n")
    with pytest.raises(InvalidCost, match=r"has no newline|opens a quote"):  # its sender may not know
        follow(session, fifo)
    sender.join(LIMIT)
    sender = send(fifo, head + "".join(lines))
    session = again(session, source=str(fifo), number="n")
    assert (costs(follow(session, fifo)), session.repeated) == ([0.2, 0.3, 0.4], 1)
    sender.join(LIMIT)


def test_a_pipe_that_outlives_its_reader_goes_on_under_its_header(fifo, tmp_path):
    for text, found in (("n,cost\n1,0.1\n2,0.2\n", [0.1, 0.2]), ("2,0.2\n3,0.3\n", [0.3])):
        sender = send(fifo, text)
        session = watch(tmp_path / "s", source=str(fifo), number="n")
        assert costs(follow(session, fifo)) == found
        session.store.close()
        sender.join(LIMIT)
    sender = send(fifo, "x\n")
    session = watch(tmp_path / "s", source=str(fifo), number="n")
    with pytest.raises(InvalidCost):
        follow(session, fifo)
    sender.join(LIMIT)
    assert again(session, source=str(fifo), number="n").episodes == 3  # a fault keeps what was counted


def test_a_malformed_line_after_the_alarm_is_not_read_however_lines_come(tmp_path):
    for name, texts in {"at once": ["1 1 1 1 x"], "one by one": ["1", "1", "1", "1", "x"]}.items():
        session = watch(tmp_path / name, until_alarm=True)
        assert costs(run(session, *texts)) == [1, 1, 1]


def test_malformed_lines_after_the_last_one_counted_are_skipped_once(tmp_path):
    session = watch(tmp_path / "s", number="n", lenient=True)
    first, gap, last = '{"n":1,"cost":0.5}', '{"n":3,"cost":0.5}', '{"n":2,"cost":0.5}'
    with pytest.raises(InvalidSetting, match="missing"):
        run(session, f"{first} x {gap} y")
    assert (session.skipped, session.position.lines) == (0, 1)
    session = again(session, number="n", lenient=True)
    assert costs(run(session, f"x {last} {gap} y")) == [0.5, 0.5]
    assert (session.skipped, session.episodes) == (2, 3)


def test_a_device_is_neither_a_pipe_nor_a_file():
    assert not is_pipe("no/such/file")
    with pytest.raises(InvalidSetting, match="/dev/zero: is a device, not a file"):
        is_pipe("/dev/zero")
