"""The trial sheet on the screen of a phone, in a real browser: run with ``-m browser``.

``BOUNDWATCH_SCREENSHOTS`` names a folder for pictures of every view.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from contextlib import contextmanager
from urllib.parse import quote

import numpy as np
import pytest
import uvicorn
from benchmarks.kill_page import start

from boundwatch import Evaluation, Protocol
from boundwatch.evaluation import phones as sheet
from network import wait_until

pytestmark = pytest.mark.browser
NAMES = ["act-7f3a", "diffusion-99c1"]
PHONE = {"width": 390, "height": 844}
TOKENS = ["first-token-of-two", "other%token#of-two"]
LARGE_ENOUGH = """() => [...document.querySelectorAll("button, input, .toggle")].filter((each) => {
  if (each.closest(".toggle") && !each.matches(".toggle")) return false;  // its label is touched
  const { width, height } = each.getBoundingClientRect();
  return each.checkVisibility() && (width < 64 || height < 64);
}).map((each) => each.outerHTML)"""


@contextmanager
def serving(evaluation, token=None, port=0):
    """Serve a page from a thread, and yield its port; what holds a connection is cut at the end."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(
            sheet.application(evaluation, token), log_level="error", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def begin(path=None, **settings):
    given = {"question": "compare", "policies": NAMES, "tasks": ["mug", "bowl"], "most_rounds": 20, "seed": 3}
    return Evaluation.start(path, Protocol(**given | {"scenes": 4} | settings))


class Screen:
    """A phone: its page, and what an operator does and sees."""

    def __init__(self, browser, url, axe=None, scheme="light", name="phone", size=PHONE, before=""):
        self.context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=True, is_mobile=True)
        self.context.add_init_script(before)
        self.size, self.page = size, self.context.new_page()
        self.problems, self.axe, self.name, self.shots = [], axe, f"{name}-{scheme}", 0
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.goto(url)

    def look(self, what):
        """Check what is on the screen: it fits, can be touched, is accessible and names no policy."""
        self.settle()
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.size["width"], what
        assert self.page.evaluate(LARGE_ENOUGH) == [], what
        assert not any(name in self.page.content() for name in NAMES), what
        if self.axe:
            self.page.evaluate(self.axe)
            found = self.page.evaluate("axe.run().then(result => result.violations)")
            assert [(each["id"], each["impact"], each["nodes"][0]["html"]) for each in found] == [], what
        if folder := os.environ.get("BOUNDWATCH_SCREENSHOTS"):
            self.shots += 1
            self.page.screenshot(path=f"{folder}/sheet-{self.name}-{self.shots:02}-{what}.png")

    def choose(self, station):
        self.page.get_by_label("Name of the station").fill(station)
        self.tap("Begin")
        self.page.wait_for_selector("#trial:not([hidden])")

    def settle(self):
        """Wait until a tap is taken."""
        self.page.wait_for_selector("#trial:not(.settling), #trial[hidden]", state="attached")

    def tap(self, name):
        self.page.get_by_role("button", name=name, exact=True).tap()

    def outcome(self, name):
        """Record an outcome, and wait until the page has gone on."""
        self.settle()
        before = self.title
        self.tap(name)
        wait_until(lambda: self.page.wait_for_timeout(10) or self.title != before)

    def explain(self, button, reason, confirm):
        self.settle()
        before = self.title
        self.tap(button)
        self.page.get_by_label("Reason, for the report").fill(reason)
        self.page.get_by_role("dialog").get_by_role("button", name=confirm, exact=True).tap()
        wait_until(lambda: self.page.wait_for_timeout(10) or self.title != before)

    @property
    def title(self):
        return " ".join(self.page.locator("section:not([hidden]) h1").text_content().split())

    @property
    def connection(self):
        return self.page.locator("#connection").inner_text()

    def close(self):
        problems = [each for each in self.problems if "Failed to load resource" not in each]
        assert problems == []
        self.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_whole_evaluation_on_a_phone(browser, axe, scheme):
    evaluation = begin()
    better = evaluation.replay().schedule.letters(1)[NAMES[1]]
    with serving(evaluation) as port:
        phone = Screen(browser, f"http://localhost:{port}", axe, scheme, "success")
        phone.page.wait_for_selector("text=Which station is this?")
        phone.look("station")
        phone.choose("left")
        trial = evaluation.next("left")
        assert phone.title == str(trial)
        assert re.fullmatch(r"Trial 1 of at most 80: policy [AB], task \w+, scene \d", phone.title)
        phone.look("first")
        phone.outcome("Success")
        phone.page.wait_for_selector("#said:text-is('Trial 1: success. Kept.')")
        assert phone.page.evaluate("document.activeElement.tagName") == "H1"  # a screen reader reads it
        phone.tap("Undo trial 1")
        phone.look("undo")
        phone.page.get_by_role("button", name="wrong button").tap()
        phone.tap("Undo")
        phone.page.wait_for_selector("#said:has-text('taken back')")
        assert phone.title == str(trial)
        phone.page.get_by_label("Note (optional)").fill("the gripper squeaks")
        phone.outcome("Failure")
        phone.tap("Abort trial")
        phone.look("abort")
        phone.page.keyboard.press("Escape")
        phone.explain("Abort trial", "the camera froze", "Record")
        assert phone.title.startswith("Trial 3 of")

        phone.context.set_offline(True)
        phone.outcome("Success")
        phone.look("offline")
        assert phone.connection == "No network · 1 outcome waits"
        phone.page.wait_for_selector("#said:text-is('Trial 3: success. Waits on this phone.')")
        assert phone.title.startswith("Trial 4 of")  # the rest of the pair was handed out
        phone.outcome("Failure")
        assert phone.title == "Wait for the network"
        phone.look("wait")
        assert evaluation.status["trials"] == 2
        phone.page.reload()  # from the service worker; what Chromium lets through meanwhile counts once, too
        phone.page.wait_for_selector("text=Wait for the network")
        phone.context.set_offline(False)
        phone.page.wait_for_selector("text=Trial 5 of")
        assert (evaluation.status["trials"], phone.connection) == (4, "Connected")
        assert [len(evaluation.replay().attempts[number]) for number in (1, 2, 3, 4)] == [2, 1, 1, 1]

        while "Decided" not in phone.title:
            phone.outcome("Success" if f"policy {better}," in phone.title else "Failure")
        phone.look("decided")
        assert phone.page.locator("button:visible").all_inner_texts() == ["Station left"]
        phone.close()
    assert evaluation.status["state"] == "answered"
    said = "\n".join(evaluation.verify())
    for part in ("trial 1 was taken back: wrong button", "trial 2 was aborted", "the gripper squeaks"):
        assert part in said
    costs = [outcome.cost for *_, outcome in evaluation.replay().recorded]
    assert costs[:4] == [1, 1, 0, 1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scores_and_rubrics(browser, axe, scheme):
    few = begin(measure="score", score_range=(0, 5), discarded="repeat")
    with serving(few) as port:
        phone = Screen(browser, f"http://localhost:{port}", axe, scheme, "score")
        phone.choose("1")
        phone.settle()
        phone.tap("Record the score")  # nothing was chosen
        phone.tap("4")
        phone.look("keys")
        phone.outcome("Record the score")
        phone.page.get_by_label("Score, from 0 to 5").fill("2.5")
        phone.outcome("Record the score")
        phone.settle()
        phone.page.get_by_label("Score, from 0 to 5").fill("7")
        phone.tap("Record the score")  # the browser says why not
        phone.tap("Abort trial")
        phone.page.get_by_text("Discarded: it was finished").tap()
        phone.tap("scene disturbed")
        phone.look("discard")
        phone.tap("Record")
        phone.page.wait_for_selector("#said:has-text('discarded')")
        assert phone.title.startswith("Trial 3 of")  # to be run again
        phone.tap("0")
        phone.outcome("Record the score")
        phone.close()
    assert [outcome.cost for *_, outcome in few.replay().recorded] == [0.2, 0.5, 1]

    wide = begin(measure="score", score_range=(0, 100))
    with serving(wide) as port:
        phone = Screen(browser, f"http://localhost:{port}", axe, scheme, "slider")
        phone.choose("1")
        phone.page.get_by_role("slider", name="Score").fill("75")
        phone.look("slider")
        phone.outcome("Record the score")
        phone.close()
    assert [outcome.said["score"] for *_, outcome in wide.replay().recorded] == [75]

    rubric = begin(measure="rubric", milestones={"reached": 1, "grasped": 2, "lifted above the table": 1})
    with serving(rubric) as port:
        phone = Screen(browser, f"http://localhost:{port}", axe, scheme, "rubric")
        phone.choose("1")
        phone.page.get_by_text("grasped").tap()
        phone.page.get_by_label("reached").check()
        phone.look("rubric")
        phone.outcome("Record 2 of 3 milestones")
        phone.outcome("Record 0 of 3 milestones")
        phone.close()
    assert [outcome.cost for *_, outcome in rubric.replay().recorded] == [0.25, 1]


def test_a_second_tap_is_not_taken_for_the_next_trial(browser):
    evaluation = begin()
    with serving(evaluation) as port:
        phone = Screen(browser, f"http://localhost:{port}")
        phone.choose("1")
        button = phone.page.get_by_role("button", name="Success", exact=True)
        phone.settle()
        for _ in range(3):
            button.tap()
        phone.settle()
        assert evaluation.status["trials"] == 1
        button.tap()
        phone.page.wait_for_selector("text=Trial 3 of")
        phone.close()


def test_by_keyboard_alone(browser):
    evaluation = begin()
    with serving(evaluation) as port:
        phone = Screen(browser, f"http://localhost:{port}")
        phone.choose("1")
        active = "document.activeElement.textContent.trim() || document.activeElement.id"
        reached = []
        for _ in range(4):
            phone.page.keyboard.press("Tab")
            reached.append(phone.page.evaluate(active))
        assert reached == ["✓Success", "✗Failure", "note", "Abort trial"]
        phone.page.keyboard.press("Enter")
        assert phone.page.get_by_role("dialog", name="Abort or discard trial 1").is_visible()
        phone.page.keyboard.press("Escape")
        assert phone.page.evaluate(active) == "Abort trial"
        phone.settle()
        for _ in range(3):
            phone.page.keyboard.press("Shift+Tab")
        phone.page.keyboard.press("Enter")
        phone.page.wait_for_selector("text=Trial 2 of")
        phone.close()
    assert [outcome.cost for *_, outcome in evaluation.replay().recorded] == [0]


def test_stations_that_record_the_same_trial_are_told(browser, axe):
    evaluation = begin()
    with serving(evaluation) as port:
        one = Screen(browser, f"http://localhost:{port}")
        one.choose("left")
        two = Screen(browser, f"http://localhost:{port}", axe, name="refused")
        two.page.get_by_role("button", name="Station left").tap()
        two.page.wait_for_selector("#trial:not([hidden])")
        assert one.title == two.title
        two.context.set_offline(True)
        one.outcome("Success")
        two.outcome("Failure")
        two.context.set_offline(False)
        two.page.wait_for_selector("text=Trial 1 (failure) was not taken")
        two.look("refused")
        two.tap("Understood")
        assert two.page.locator("#refused").inner_text() == ""
        two.page.reload()
        two.page.wait_for_selector("text=Trial 2 of")
        assert two.page.locator("#refused").inner_text() == ""
        two.tap("Station left")
        two.choose("right")
        assert two.title.startswith("Trial 3 of")
        one.close()
        two.close()
    assert [outcome.cost for *_, outcome in evaluation.replay().recorded] == [0]


def test_on_plain_http_the_open_page_goes_on_without_network_and_after_a_restart(browser, axe, tmp_path):
    evaluation = begin(tmp_path / "e.db")
    with serving(evaluation, TOKENS[0]) as port:
        url = f"http://phone.test:{port}/"  # not localhost: no secure context, no service worker
        phone = Screen(browser, f"{url}#{TOKENS[0]}", axe, name="link")
        assert not phone.page.evaluate("window.isSecureContext")
        phone.choose("left")
        assert phone.page.url == url  # the token is not shown
        phone.page.reload()
        phone.page.wait_for_selector("text=Trial 1 of")
    evaluation.close()
    phone.outcome("Success")  # while nothing listens
    phone.outcome("Failure")
    assert phone.title == "Wait for the network"
    with Evaluation.open(tmp_path / "e.db") as evaluation, serving(evaluation, TOKENS[1], port):
        phone.page.wait_for_selector("text=This link is not valid any more")
        phone.look("link")
        assert evaluation.status["trials"] == 0
        phone.page.goto(f"{url}#{quote(TOKENS[1])}")
        phone.page.wait_for_selector("text=Trial 3 of")
        assert [outcome.cost for *_, outcome in evaluation.replay().recorded] == [0, 1]
        assert phone.context.cookies() == []
    with begin() as other, serving(other, TOKENS[1], port):  # another evaluation at the same address
        phone.page.wait_for_selector("text=Trial 1 of")
        assert other.status["trials"] == 0
        phone.close()


def test_what_waits_for_another_evaluation_stays_on_the_phone(browser, tmp_path):
    with begin(tmp_path / "one.db") as one, serving(one) as port:
        phone = Screen(browser, f"http://localhost:{port}")
        phone.choose("left")
    phone.outcome("Success")
    with begin(tmp_path / "two.db") as two, serving(two, port=port):
        phone.page.wait_for_selector("text=1 of another evaluation")
        assert phone.title.startswith("Trial 1 of")
        assert two.status["trials"] == 0
    with Evaluation.open(tmp_path / "one.db") as one, serving(one, port=port):
        phone.page.wait_for_selector("text=Trial 2 of")
        wait_until(lambda: one.status["trials"] == 1)
        phone.close()


LONG = "a very long name that somebody gave in a hurry_without_any_place_to_break_the_line"


@pytest.mark.parametrize("size", [{"width": 320, "height": 568}, {"width": 844, "height": 390}])
def test_long_names_and_small_screens(browser, axe, size):
    settings = {"policies": [LONG[:79] + "1", LONG[:79] + "2"], "tasks": [LONG[:80]], "scenes": [LONG[:80]]}
    evaluation = begin(**settings, blind=False, measure="rubric", milestones={LONG[:80]: 1.5, "placed": 100})
    with serving(evaluation) as port:
        phone = Screen(browser, f"http://localhost:{port}", axe, name=f"long-{size['width']}", size=size)
        phone.look("station")
        phone.choose(LONG[:40])
        phone.look("trial")
        phone.tap("Abort trial")
        phone.look("abort")
        phone.tap("Back")
        phone.context.set_offline(True)
        phone.outcome("Record 0 of 2 milestones")
        phone.look("offline")
        phone.close()


def test_two_stations_one_of_them_without_network_for_a_while(browser):
    evaluation = begin(alpha=1e-9, most_rounds=40)
    with serving(evaluation) as port:
        left, right = (Screen(browser, f"http://localhost:{port}") for _ in range(2))
        left.choose("left")
        right.choose("right")
        left.context.set_offline(True)
        left.outcome("Success")
        left.outcome("Failure")
        for number in range(9):
            right.outcome("Failure" if number % 2 else "Success")
        assert evaluation.status["trials"] == 9
        left.context.set_offline(False)
        left.page.wait_for_selector("text=/Trial 1[0-9] of/")
        assert evaluation.status["trials"] == 11
        left.close()
        right.close()
    known = evaluation.replay()
    assert {len(known.attempts[trial.number]) for trial, *_ in known.recorded} == {1}
    stations = [(trial.number, trial.station) for trial, *_ in known.recorded]
    assert stations[:3] == [(1, "left"), (2, "left"), (3, "right")]
    assert not evaluation.verify()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_browser_that_keeps_nothing_is_said(browser, at_once):
    evaluation = begin()
    full = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"
    with serving(evaluation, TOKENS[0]) as port:
        phone = Screen(browser, f"http://localhost:{port}/#{TOKENS[0]}", before=full if at_once else "")
        phone.choose("1")
        phone.outcome("Failure")
        phone.page.evaluate(f"() => {{ {full} }}")
        phone.context.set_offline(True)
        phone.outcome("Success")
        assert "this browser keeps nothing: do not close this page" in phone.connection
        phone.context.set_offline(False)
        wait_until(lambda: phone.page.wait_for_timeout(100) or evaluation.status["trials"] == 2)
        phone.close()
    assert [outcome.cost for *_, outcome in evaluation.replay().recorded] == [1, 0]


def test_a_station_without_a_trial_waits_for_the_others(browser, axe):
    evaluation = begin(tasks=["mug"], most_rounds=1)
    with serving(evaluation) as port:
        trial = evaluation.next("left")
        phone = Screen(browser, f"http://localhost:{port}", axe, name="last")
        phone.page.get_by_label("Name of the station").fill("right")
        phone.tap("Begin")
        phone.page.wait_for_selector("text=No trial for this station now")
        phone.look("last")
        evaluation.record(trial, success=True)
        evaluation.record(evaluation.next("left"), success=True)
        phone.page.wait_for_selector("h1:has-text('Ended')")
        phone.close()


def test_the_end_that_others_cause_is_shown(browser):
    evaluation = begin()
    with serving(evaluation) as port:
        phone = Screen(browser, f"http://localhost:{port}")
        phone.choose("left")
        phone.context.set_offline(True)
        phone.outcome("Success")
        evaluation.release("left", "its robot broke")
        phone.context.set_offline(False)
        phone.page.wait_for_selector("text=Trial 1 (success) was not taken: trial = 1 was released")
        evaluation.stop("the arm broke")
        phone.page.wait_for_selector("h1:has-text('Stopped')")
        phone.close()


def test_what_was_tapped_is_there_once_whenever_the_server_is_killed(browser, tmp_path):
    begin(tmp_path / "e.db", alpha=1e-9, most_rounds=40).close()
    draw, tapped = np.random.default_rng(5), []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server, phone = start(tmp_path / "e.db", port), None
    try:
        for _ in range(12):
            if phone is None:
                wait_until(lambda: _listens(port))
                phone = Screen(browser, f"http://localhost:{port}")
                phone.choose("left")
            phone.page.wait_for_selector("#trial:not([hidden]):not(.settling)")
            tapped.append((int(phone.title.split()[1]), bool(draw.random() < 0.5)))
            phone.tap("Success" if tapped[-1][1] else "Failure")
            phone.page.wait_for_timeout(draw.uniform(0, 30))
            server.kill()
            server.join()
            server = start(tmp_path / "e.db", port)
        phone.page.wait_for_selector("#connection:text-is('Connected')")
        phone.page.wait_for_selector("#trial:not([hidden])")
        upcoming = phone.title
        phone.close()
    finally:
        server.kill()
        server.join()
    with Evaluation.open(tmp_path / "e.db") as evaluation:
        kept = [(trial.number, outcome.said["success"]) for trial, _, outcome in evaluation.replay().recorded]
        assert str(evaluation.next("left")) == upcoming
    assert kept == tapped
    assert len(kept) == 12


def _listens(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
