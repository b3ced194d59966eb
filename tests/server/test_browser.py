"""The pages in a real browser: live, without JavaScript, narrow and wide, dark and light, with axe-core."""

from __future__ import annotations

import os

import pytest

from boundwatch.demo.drones import fill, load_flights
from boundwatch.server.bindings import bind_streams
from boundwatch.server.database import Database
from boundwatch.server.models import Bind

pytestmark = pytest.mark.browser
NASTY = "<script>alert(1)</script>'\"; DROP TABLE streams; --"


@pytest.fixture
def monitor(start):
    """Return a server with drones, an alarm, a second generation and nasty texts."""
    server = start("--silent-minutes", "30", bound=False)
    database = Database(server.database)
    fill(database, load_flights(), 80)
    with database.write() as connection:
        bind_streams(
            connection,
            Bind(["drone-3"], "drone", reason=f"new rotor {NASTY}", new_generation=True),
            by="admin",
        )
        bind_streams(connection, Bind(["drone-13"], "drone", detector="change-detector"), by="admin")
        bind_streams(connection, Bind(["judged"], "drone", detector="judged-test"), by="admin")
    database.close()
    server.report({"stream": "drone-3", "episode": NASTY, "cost": 0.3, "meta": {"note": NASTY}})
    link = {"clip": "https://example.org/clips/7.mp4", "note": NASTY}
    server.report(
        *({"stream": "judged", "episode": f"{i} {NASTY}", "cost": 0.9, "meta": link} for i in range(20))
    )
    return server


def pages(server):
    certificate = server.ask("GET", "/api/v1/certificates")[1]["certificates"][0]["fingerprint"]
    return {
        "streams": "/",
        "filtered": "/?verdict=adverse",
        "fleet": "/fleet",
        "adverse": "/streams/drone-7",
        "within": "/streams/drone-3",
        "no-episode": "/streams/drone-13",
        "judged": "/streams/judged",
        "labels": "/streams/judged/labels",
        "alarms": "/alarms",
        "certificates": "/certificates",
        "certificate": f"/certificates/{certificate}",
        "administration": "/administration",
        "sign-in": "/sign-in",
    }


def open_page(browser, url, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    page.problems = []
    page.on(
        "console", lambda message: page.problems.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: page.problems.append(f"dialog {dialog.message}"))
    page.goto(url)
    return page


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_is_accessible_and_keeps_the_policy(browser, axe, monitor, width, scheme):
    folder = os.environ.get("BOUNDWATCH_SCREENSHOTS")
    for name, path in pages(monitor).items():
        page = open_page(
            browser, monitor.url + path, viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.evaluate(axe)
        found = page.evaluate("axe.run().then(result => result.violations)")
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert serious == [], (name, serious)
        assert page.problems == [], name
        if folder:
            page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png", full_page=True)
        page.context.close()


def test_people_label_what_a_machine_judged(browser, start):
    server = start("--detector", "judged-test")
    server.report(*({"stream": "arm", "episode": f"e{i}", "success": False} for i in range(40)))
    drawn = [each["episode"] for each in server.ask("GET", "/api/v1/streams/arm/labels")[1]["episodes"]]
    page = open_page(
        browser, f"{server.url}/streams/arm", viewport={"width": 400, "height": 800}, has_touch=True
    )
    page.get_by_role("link", name="Label them").tap()
    for episode in drawn[:3]:
        page.wait_for_selector(f"dd:has-text('{episode},')")
        assert "machine says" in page.locator("main").inner_text()
        page.get_by_role("button", name="Success").tap()
    page.wait_for_selector(f"dd:has-text('{drawn[3]},')")
    page.wait_for_selector("text=3 labeled")
    page.get_by_role("link", name="arm", exact=True).tap()
    page.wait_for_selector("text=By 3 labels")
    assert page.problems == []
    page.context.close()


def test_the_first_page_tells_a_newcomer_what_to_do(browser, start):
    server = start(bound=False)
    page = open_page(browser, server.url)
    assert page.locator("h1").inner_text() == "Nothing is watched yet"
    assert "boundwatch report-episode arm-1" in page.locator("main").inner_text()
    if folder := os.environ.get("BOUNDWATCH_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/newcomer-light-1280.png", full_page=True)
    page.context.close()


def test_the_page_is_live_and_an_alarm_is_acknowledged(browser, start):
    from playwright.sync_api import expect

    server = start()
    server.report({"stream": "arm-1", "episode": "0", "success": True})
    page = open_page(browser, server.url)
    expect(page.locator("#live")).to_have_text("Live")
    server.report(*({"stream": "arm-1", "episode": str(i), "success": False} for i in range(1, 20)))
    expect(page.locator(".streams .badge")).to_contain_text("ADVERSE", timeout=15_000)
    page.goto(server.url + "/alarms")
    page.get_by_label("What did you find?").fill("gripper worn")
    page.get_by_role("button", name="Acknowledge").click()
    page.wait_for_selector("text=gripper worn")
    assert "No alarm waits" in page.locator("main").inner_text()
    page.context.close()


def test_everything_is_read_without_javascript(browser, monitor):
    page = open_page(browser, monitor.url, java_script_enabled=False)
    page.get_by_role("link", name="drone-7").click()
    assert "waits for somebody" in page.locator("main").inner_text()
    assert "changing anything needs it" in page.locator("main").inner_text()
    page.context.close()


def test_forms_bind_and_upload_and_say_what_is_refused(browser, monitor, certificate_file):
    page = open_page(browser, monitor.url + "/certificates")
    page.get_by_label("Streams, one name per line").fill("drone-7\ndrone-21")
    page.get_by_role("button", name="Watch", exact=True).click()
    page.wait_for_selector("[role=alert] >> text=is already watched")
    page.get_by_label("Streams, one name per line").fill("drone-20\n drone-21\n")
    page.get_by_label("Level of ADVERSE").fill("0.01")
    page.get_by_role("button", name="Watch", exact=True).click()
    page.wait_for_url("**/streams/drone-20")
    assert "levels 0.01 (ADVERSE)" in page.locator("main").inner_text()
    page.get_by_text("Start a new generation").click()
    page.get_by_label("Why?").fill(NASTY)
    page.get_by_role("button", name="Start generation 2").click()
    page.wait_for_selector("text=Start generation 3", state="attached")
    page.goto(monitor.url + "/certificates")
    page.get_by_label("File that boundwatch certify wrote").set_input_files(certificate_file)
    page.get_by_role("button", name="Upload and verify").click()
    page.wait_for_selector("h1 >> text=lab version 1")
    assert monitor.ask("GET", "/api/v1/streams/drone-21")[1]["alpha_adverse"] == 0.01
    page.context.close()


def test_the_keyboard_reaches_content_and_streams(browser, monitor):
    page = open_page(browser, monitor.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == "/streams/drone-7":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/streams/drone-7")
    page.context.close()


def test_signing_in_keeps_a_cookie_that_scripts_cannot_read(browser, start):
    server = start()
    token = server.token("admin", "administer")
    page = open_page(browser, server.url)
    page.wait_for_url("**/sign-in**")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("text=Nothing is watched yet")
    cookie = page.context.cookies()[0]
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert token not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    page.goto(server.url)
    page.wait_for_url("**/sign-in**")
    page.context.close()
