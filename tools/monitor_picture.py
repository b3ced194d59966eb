"""Write the tutorial's picture of the monitor, with Debian's chromium: ``python tools/monitor_picture.py``.

The robots and their outcomes are those of ``docs/tutorials/twenty-robots.md``.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

import boundwatch as bw

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "assets" / "monitor-streams.png"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
PORT = 8472


def main() -> None:
    """Serve, report, photograph."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = Path(folder) / "lab.json"
        program = [sys.executable, "-c", "from boundwatch.cli import main; main()"]
        subprocess.run([*program, "certify", ROOT / "examples/data/lab.csv", "-o", certificate], check=True)
        options = ["--database", f"{folder}/monitor.sqlite", "--certificate", str(certificate)]
        server = subprocess.Popen([*program, "serve", "--port", str(PORT), *options])
        try:
            _wait()
            _report(Path(folder) / "spool.sqlite")
            _photograph()
        finally:
            server.terminate()
            server.wait()
    print(f"wrote {TARGET.name}, {TARGET.stat().st_size} bytes")


def _wait() -> None:
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz").close()
            return
        except OSError:
            time.sleep(0.1)


def _report(spool: Path) -> None:
    draw = random.Random(20)  # noqa: S311 - the tutorial's robots
    client = bw.Client(f"http://127.0.0.1:{PORT}", spool=spool)
    for trial in range(40):
        for robot in range(1, 21):
            worn = robot == 13 and trial >= 5
            success = draw.random() > (0.6 if worn else 0.08)
            client.report(f"arm-{robot}", success=success, episode=f"trial {trial}")
    client.close(60)


def _photograph() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 760}, color_scheme="light")
        page.goto(f"http://127.0.0.1:{PORT}/")
        page.screenshot(path=str(TARGET))
        browser.close()


if __name__ == "__main__":
    main()
