"""The page for labels: each label at once on the disk, nobody let in, nothing served that is not listed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
from contextlib import closing, contextmanager

import numpy as np
import pytest
import uvicorn

from boundwatch import Audit
from boundwatch._support.files import locked
from boundwatch.errors import InvalidSetting
from boundwatch.evaluation import labeling
from boundwatch.evaluation.labeling import Labels, _Label, _Next, _Undo, application
from network import wait_until
from program import PROGRAM, started

TOKEN = "-".join(["nobody", "guesses", "this"])
PIXEL = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde"
JUDGED = (np.arange(40) < 10).astype(float)


def sheet(folder, n=8, cell=lambda i: f"clips/{i}.png"):
    """Write a sheet of a draw, and an image for each episode."""
    (folder / "clips").mkdir(exist_ok=True)
    for i in range(40):
        (folder / f"clips/{i}.png").write_bytes(PIXEL + bytes([i]))
    audit = Audit(JUDGED, seed=3)
    audit.draw(n)
    path = folder / "to_label.csv"
    path.write_text(audit.sheet(range(2, 42), {"clip": [cell(i) for i in range(40)]}))
    return audit, path


@contextmanager
def serving(labels, token=None):
    """Serve the page from a thread, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(application(labels, token), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def ask(port, path, body=None, method="POST", **headers):
    """Send one message, and return the status, the content and the headers."""
    connection = http.client.HTTPConnection("localhost", port, timeout=10)
    given = {"Content-Type": "application/json", **headers}
    connection.request(method, path, None if body is None else json.dumps(body), given)
    with closing(connection), connection.getresponse() as answer:
        content = answer.read()
    is_json = answer.headers["Content-Type"] == "application/json"
    return answer.status, json.loads(content) if is_json else content, answer.headers


def label(port, labeler, episode, success, **headers):
    said = {"labeler": labeler, "episode": episode, "success": success}
    return ask(port, "/api/label", said, **headers)


def test_a_label_that_the_disk_refuses_is_not_known(tmp_path, monkeypatch):
    _, path = sheet(tmp_path)
    labels = Labels(path, tmp_path / "labeled.csv")
    labels.label(_Label("ana", 0, True))

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(labeling.files, "write_text", full)
        for act, what in ((labels.label, _Label("ana", 1, True)), (labels.undo, _Undo("ana", 0))):
            with pytest.raises(OSError, match="No space"):
                act(what)
    assert labels.next(_Next("ana"))["done"] == 1
    assert labels.label(_Label("ana", 1, True))["done"] == 2
    assert Labels(path, tmp_path / "labeled.csv").next(_Next("ana"))["done"] == 2


def test_one_page_at_a_time_keeps_labels(tmp_path):
    _, path = sheet(tmp_path)
    with locked(tmp_path, "page for labels"), pytest.raises(InvalidSetting, match="another page for labels"):
        labeling.serve(path, tmp_path / "labeled.csv", ("127.0.0.1", 0, None))


def test_two_people_label_and_the_file_is_what_certify_reads(tmp_path):
    audit, path = sheet(tmp_path)
    with serving(Labels(path, tmp_path / "labeled.csv")) as port:
        for episode in range(8):
            status, state, _ = label(port, "ana", episode, episode > 0)
            assert (status, state["done"]) == (200, episode + 1)
            text = (tmp_path / "labeled.csv").read_text()  # at once, whatever happens next
            assert text.count("yes") + text.count("no") == episode + 1
        assert (state["complete"], state["disagreed"]) == (1, 0)
        for episode in range(8):
            state = label(port, "ben", episode, episode != 2)[1]
        assert (state["complete"], state["disagreed"]) == (2, 2)
    assert "judge" not in json.dumps(state)
    again, labels = Audit.from_sheet(judged_episodes(), (tmp_path / "labeled.csv").read_text(), "labeled.csv")
    assert again.drawn == audit.drawn
    assert [labels[place] for place in again.drawn][:3] == [[1, 0], [0, 0], [0, 1]]
    assert again.finding(labels).disagreed == 2
    assert path.read_text().count("yes") == 0  # what is read is not written


def judged_episodes():
    from boundwatch import Episodes

    return Episodes(JUDGED, binary=True, numbers=range(2, 42))


def test_a_repeated_message_counts_once_and_the_last_label_can_be_taken_back(tmp_path):
    _, path = sheet(tmp_path)
    with serving(Labels(path, tmp_path / "labeled.csv")) as port:
        label(port, "ana", 0, True)
        assert label(port, "ana", 0, True)[1]["done"] == 1
        assert label(port, "ana", 0, False)[0] == 409
        assert label(port, "ana", 2, False)[0] == 409  # nobody skips
        undo = {"labeler": "ana", "episode": 0}
        assert ask(port, "/api/undo", undo)[1]["done"] == 0
        assert ask(port, "/api/undo", undo)[1]["done"] == 0
        label(port, "ana", 0, False)
        assert label(port, "ana", 1, True)[1]["done"] == 2
        assert ask(port, "/api/undo", undo)[0] == 409
        for wrong in ("", "a\nb", "=1+1", "x" * 41, 3):
            assert label(port, wrong, 0, True)[0] == 422
        assert label(port, None, 0, True)[0] == 422
    assert Labels(path, tmp_path / "labeled.csv").next(type("S", (), {"labeler": "ana"}))["done"] == 2


def test_only_images_and_videos_that_the_sheet_lists_are_served(tmp_path):
    (tmp_path / "secret.txt").write_text("no")
    (tmp_path / "page.html").write_text("<script>alert(1)</script>")
    cells = ["clips/5.png", "../secret.txt", "secret.txt", "page.html", "clips/no.png", "https://a.b/c.mp4"]
    audit, path = sheet(tmp_path, cell=lambda i: cells[i % 6])
    with serving(Labels(path, tmp_path / "labeled.csv"), TOKEN) as port:
        key = {"Authorization": f"Bearer {TOKEN}"}
        for episode, place in enumerate(audit.drawn):
            status, content, headers = ask(port, f"/api/file/{episode}/1", method="GET", **key)
            assert status == (200 if place % 6 == 0 else 404), cells[place % 6]
            assert status == 404 or (headers["Content-Type"], content[-1]) == ("image/png", 5)
            assert headers["X-Content-Type-Options"] == "nosniff"
        for other in ("/api/file/0/0", "/api/file/99/1", "/api/file/0/../../secret.txt", "/secret.txt"):
            assert ask(port, other, method="GET", **key)[0] == 404
        assert ask(port, "/api/file/0/1", method="GET")[0] == 401
        assert ask(port, "/api/next", {"labeler": None})[0] == 401
        assert label(port, "ana", 0, True, Origin="http://other.site", **key)[0] == 403
        assert ask(port, "/", method="GET")[0] == 200


def test_another_sheet_and_files_with_gaps_are_refused(tmp_path):
    _, path = sheet(tmp_path)
    output = tmp_path / "labeled.csv"
    lines = path.read_text().splitlines()
    output.write_text("\n".join([lines[0].replace("seed 3", "seed 4"), *lines[1:]]))
    with pytest.raises(InvalidSetting, match="labels of another draw"):
        Labels(path, output)
    output.write_text("\n".join([*lines[:3], lines[3] + "yes", *lines[4:]]))
    with pytest.raises(InvalidSetting, match="has a gap"):
        Labels(path, output)
    output.write_text("row,label\n1,yes\n")
    with pytest.raises(InvalidSetting, match="does not say which episodes were drawn"):
        Labels(path, output)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_labels_survive_a_kill(tmp_path):
    sheet(tmp_path)
    command = [*PROGRAM, "audit", "to_label.csv", "--label", "-o", "labeled.csv", "--port", "0"]
    for episode in range(2):
        with started(command, cwd=tmp_path) as process:
            line = process.stdout.readline()
            port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
            assert ask(port, "/api/next", {"labeler": "ana"})[1]["done"] == episode
            assert label(port, "ana", episode, True)[0] == 200
            process.send_signal(signal.SIGKILL)
    assert (tmp_path / "labeled.csv").read_text().count("yes") == 2
