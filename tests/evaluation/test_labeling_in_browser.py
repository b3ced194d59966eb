"""The page for labels in a real browser, by keys and by touch: run with ``-m browser``.

``BOUNDWATCH_SCREENSHOTS`` names a folder for pictures of every view.
"""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from boundwatch.evaluation.labeling import Labels
from evaluation.test_labeling import TOKEN, serving, sheet
from evaluation.test_page_in_browser import Screen

pytestmark = pytest.mark.browser


def begin(folder, n=4):
    """Write a sheet with an image that can be seen for each episode, but for one that is a broken video."""
    audit, path = sheet(folder, n, lambda i: f"clips/{i}.png")
    for place in audit.drawn:
        picture = Image.new("RGB", (640, 400), "#30506b")
        ImageDraw.Draw(picture).ellipse((280, 160, 360, 240), fill="#e0a030")
        picture.save(folder / f"clips/{place}.png")
    broken = audit.drawn[2]
    (folder / f"clips/{broken}.mp4").write_bytes(b"no video")
    path.write_text(path.read_text().replace(f"clips/{broken}.png", f"clips/{broken}.mp4"))
    return Labels(path, folder / "labeled.csv")


def labeled(folder):
    return [line.split(",")[2:] for line in (folder / "labeled.csv").read_text().splitlines()[1:]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_key_or_one_tap_per_episode(browser, axe, scheme, tmp_path):
    with serving(begin(tmp_path), TOKEN) as port:
        phone = Screen(
            browser, f"http://localhost:{port}/#{TOKEN}", axe, scheme, "label", {"width": 400, "height": 800}
        )
        phone.page.wait_for_selector("text=Who labels?")
        phone.look("who")
        phone.page.get_by_label("Your name").fill("Ana")
        phone.tap("Begin")
        phone.page.wait_for_selector("#shown img")
        phone.look("image")
        assert phone.page.url == f"http://localhost:{port}/"
        size = phone.page.evaluate("document.querySelector('#shown img').naturalWidth")
        assert size == 640
        for key, title in (
            ("y", "Episode 2"),
            ("n", "Episode 3"),
            ("ArrowLeft", "Episode 2"),
            ("n", "Episode 3"),
        ):
            phone.page.wait_for_timeout(450)  # a second key at once is not taken for the next episode
            phone.page.keyboard.press(key)
            phone.page.wait_for_selector(f"#trial h1:has-text('{title}')")
        phone.page.wait_for_selector("text=cannot be shown here")
        phone.look("broken")
        phone.page.wait_for_timeout(450)
        phone.tap("Failure")
        phone.page.wait_for_selector("#trial h1:has-text('Episode 4')")
        phone.page.reload()
        phone.page.wait_for_selector("#trial h1:has-text('Episode 4')")
        phone.page.wait_for_timeout(450)
        phone.tap("Success")
        phone.page.wait_for_selector("text=All labeled")
        phone.look("done")
        assert labeled(tmp_path) == [["label Ana"], ["yes"], ["no"], ["no"], ["yes"]]
        phone.page.get_by_role("button", name="Ana", exact=True).first.tap()
        phone.page.get_by_label("Your name").fill("Ben")
        phone.tap("Begin")
        for i in range(4):
            phone.page.wait_for_selector(f"#trial h1:has-text('Episode {i + 1}')")
            phone.page.wait_for_timeout(450)
            phone.tap("Success")
        phone.page.wait_for_selector("text=they disagree on 2 of 4 episodes")
        phone.close()


def test_a_link_opens_elsewhere_and_nothing_else_is_loaded(browser, axe, tmp_path):
    _, path = sheet(tmp_path, 4, lambda i: f"https://videos.invalid/{i}.mp4")
    with serving(Labels(path, tmp_path / "labeled.csv")) as port:
        asked = []
        phone = Screen(browser, f"http://localhost:{port}", axe, name="link")
        phone.page.on("request", lambda request: asked.append(request.url))
        phone.page.get_by_label("Your name").fill("Ana")
        phone.tap("Begin")
        link = phone.page.get_by_role("link")
        link.wait_for()
        phone.look("link")
        assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener noreferrer")
        assert all(url.startswith(f"http://localhost:{port}/") for url in asked)
        phone.close()
