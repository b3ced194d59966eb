"""What starts the program for other tests: if nobody can tell how it ended, that is no success."""

import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import program


@pytest.fixture(params=[0, 1])
def dying(request):
    """Return a folder with the socket of a process that dies after so many of its two answers."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        connections = []

        def answer():
            connections.append(listener.accept()[0])
            connections[0].recv(8)  # and drop the open files that come along
            connections[0].sendall((12345).to_bytes(8, "big") * request.param)
            connections[0].shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=answer)
        thread.start()
        yield Path(folder)
        thread.join(program.LIMIT)
        connections[0].close()


def test_an_end_that_nobody_saw_is_an_error(dying, monkeypatch, tmp_path):
    monkeypatch.setattr(program, "forked", lambda: dying)
    with (tmp_path / "log").open("wb") as log, pytest.raises(ChildProcessError, match="has ended"):
        program.Forked([], env={}, output=log).poll(60)


def test_an_end_that_nobody_saw_is_an_error_in_a_shell(dying):
    client = [sys.executable, "-IS", "-c", program.CLIENT, dying / "socket"]
    done = subprocess.run(client, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "has ended" in done.stderr


ENDLESS = [sys.executable, "-c", "print('here', flush=True)\nwhile True: pass"]


def test_what_a_test_waits_for_ends():
    with program.started(ENDLESS, seconds=2) as endless:
        assert endless.stdout.read() in ("here\n", "")
    assert endless.returncode == -signal.SIGKILL


def test_what_a_failing_test_has_started_ends_with_it():
    with pytest.raises(AssertionError), program.started(ENDLESS) as endless:
        assert endless.stdout.readline() == "there\n"
    assert endless.returncode == -signal.SIGKILL
