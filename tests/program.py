"""The program, started as a shell does (`PROGRAM`), or without importing everything once more (`forked`).

Behind `forked` a process has imported the program and waits at a socket. What a shell starts hands it its
arguments, folder, environment and open files; the process forks, and its child is the program from `main` on.
SIGINT and SIGTERM are passed on. `Forked` does the same without a shell. Tests of starting, and of dying by
SIGKILL, use `PROGRAM`. A program ends with whoever asked for it, and all end with the tests,
however these end. `started` is for processes that a test waits for: no such wait is longer than `LIMIT`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import marshal
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

PROGRAM = [sys.executable, "-c", "from boundwatch.cli import main; main()"]
LIMIT = 50.0  # seconds that a process of a test may take

CLIENT = """
import marshal, os, signal, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
request = marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ)))
socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
connection.sendall(request)
def told():
    answer = connection.recv(8)
    return int.from_bytes(answer, "big") if answer else sys.exit("the process that starts programs has ended")
program = told()
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(program, number))
os._exit(told())
"""


@contextlib.contextmanager
def started(command: list[Any], seconds: float = LIMIT, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process that writes text; kill it after so many seconds, and when the test fails before.

    Whoever waits for its end or its output then goes on, and fails.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    limit = threading.Timer(seconds, process.kill)
    limit.start()
    try:
        with process:  # whose end is waited for
            try:
                yield process
            except BaseException:
                process.kill()
                raise
    finally:
        limit.cancel()


@cache
def forked() -> Path:
    """Return a folder with an executable ``boundwatch``, for a shell's PATH."""
    folder = Path(tempfile.mkdtemp(prefix="boundwatch-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "client.py").write_text(CLIENT)
    words = [sys.executable, "-IS", folder / "client.py", folder / "socket"]
    (folder / "boundwatch").write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
    (folder / "boundwatch").chmod(0o755)
    waiting = subprocess.Popen(
        [sys.executable, __file__, folder / "socket"],
        stdin=subprocess.PIPE,  # which ends with this process
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
    )
    atexit.register(waiting.kill)
    assert waiting.stdout.read(1) == b"."  # it has imported the program
    return folder


class Forked:
    """A program that begins with `main`; as much of `subprocess.Popen` as the tests of servers need."""

    def __init__(self, arguments: list[str], *, env: dict[str, str], output: IO[bytes]) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(forked() / "socket"))
        request = marshal.dumps((arguments, str(Path.cwd()), env))
        with Path(os.devnull).open() as nothing:
            files = [nothing.fileno(), output.fileno(), output.fileno()]
            socket.send_fds(self._connection, [len(request).to_bytes(8, "big")], files)
        self._connection.sendall(request)
        self.pid = self._told()  # of a group of its own, too
        self.returncode: int | None = None

    def poll(self, seconds: float = 0) -> int | None:
        """Return how it ended, if it did within so many seconds."""
        if self.returncode is None and select.select([self._connection], [], [], seconds)[0]:
            self.returncode = self._told()
            self._connection.close()
        return self.returncode

    def _told(self) -> int:
        if not (answer := self._connection.recv(8)):
            self._connection.close()
            raise ChildProcessError("the process that starts programs for the tests has ended")
        return int.from_bytes(answer, "big")


def wait_for_work(path: str) -> None:
    """Return in a child of this process whenever somebody asks for one."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those end that answer
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        os.write(1, b".")
        while True:
            if sys.stdin in select.select([listener, sys.stdin], [], [])[0]:
                os._exit(0)
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        header, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
        request = b""
        while len(request) < int.from_bytes(header, "big"):
            request += connection.recv(1 << 20)
        program = os.fork()
        if program:
            connection.sendall(program.to_bytes(8, "big"))
            threading.Thread(target=end_with, args=(connection, program), daemon=True).start()
            code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
            with contextlib.suppress(ConnectionError):  # nobody wants to know
                connection.sendall((code if code >= 0 else 128 - code).to_bytes(8, "big"))
            os._exit(0)
        os.setsid()
    arguments, there, environment = marshal.loads(request)  # noqa: S302  (from ourselves)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(there)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["boundwatch", *arguments]
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def end_with(connection: socket.socket, program: int) -> None:
    """Kill a program, and all that it started, when whoever asked for it is gone."""
    with contextlib.suppress(ConnectionError):
        connection.recv(1)  # nothing is ever sent
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program, signal.SIGKILL)


def run_and_end() -> None:
    """Run the program; end without tearing down what was imported, which takes longer than most programs."""
    try:
        main()
        code = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise  # Python prints what it says
        code = ended.code or 0
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import scipy.linalg  # noqa: F401  (the detectors' first update imports it)

    from boundwatch.cli import app, main
    from boundwatch.server import application  # noqa: F401  (most of what `serve` imports)

    app.help("boundwatch")
    gc.collect()
    gc.freeze()
    wait_for_work(sys.argv[1])
    run_and_end()
