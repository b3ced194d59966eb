"""How the code in the documentation is found and run.

Blocks of a page run in their order, in one folder that holds a copy of ``examples/data``:

- ``python``: executed, or run as a doctest if it has prompts; names live on from block to block;
- ``sh``: given to bash, must succeed;
- ``console``: every line after ``$`` is given to bash, and what it prints must be what the page shows;
- ``yaml`` with ``jobs``: the commands of its steps are given to bash;
- any language with ``title="name"``: written to that file, for the blocks that follow;
- ``text``, ``json``, ``csv`` and ``yaml`` otherwise: shown, not run.

A block after ``<!-- not run: reason -->`` is not run; its ``boundwatch`` commands are parsed all the same.
Ports of this machine that a page names are replaced by free ones, what the user's own programs keep in the
home folder is out of sight, and whatever a page leaves running is killed.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml

from boundwatch.cli import app
from boundwatch.cli.options import parsed
from program import forked

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SHOWN = ("text", "json", "csv", "yaml")
RUN = ("python", "sh", "console")
_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?"
    r"(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n`]*)\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"(?:\$ )?(?:boundwatch|pip|make|python3?|git) ")
_PORT = re.compile(r"(?:127\.0\.0\.1:|localhost:|--port )(\d{4,5})\b")
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    title: str | None
    code: str
    reason: str | None


def find_blocks(text):
    """Return the blocks of a page; refuse those whose language is missing, unknown or indented away."""
    blocks = []
    for match in _FENCE.finditer(text):
        line = text[: match.start("language")].count("\n") + 1
        language, title = match["language"], re.search(r'title="([^"]+)"', match["info"])
        assert language in SHOWN + RUN, f"line {line}: name the language of the block, not {language!r}"
        assert not match["indent"], f"line {line}: a block in a list is not run; move it out"
        hidden = language == "text" and _COMMAND.match(match["code"])
        assert not hidden, f"line {line}: commands are sh; say <!-- not run: reason --> if they cannot be run"
        blocks.append(Block(line, language, title and title[1], match["code"], match["reason"]))
    assert len(blocks) * 2 == len(re.findall(r"^ *```", text, re.MULTILINE)), "a fence is left open"
    return blocks


def run_page(text, folder):
    """Run the blocks of a page in a folder; raise `AssertionError` with the line of the first that fails."""
    shutil.copytree(ROOT / "examples" / "data", folder / "examples" / "data")
    names, groups = {"__name__": "__page__"}, []
    try:
        with mock.patch.dict(os.environ, XDG_STATE_HOME=str(folder / "state")):
            for block in find_blocks(_with_free_ports(text)):
                try:
                    _run(block, folder, names, groups)
                except Exception as error:
                    raise AssertionError(f"line {block.line}: {type(error).__name__}: {error}") from error
    finally:
        for group in groups:
            with contextlib.suppress(ProcessLookupError):  # it left nothing behind
                os.killpg(group, signal.SIGKILL)


def _with_free_ports(text):
    for port in sorted(set(_PORT.findall(text))):
        with socket.create_server(("127.0.0.1", 0)) as free:
            text = re.sub(rf"(?<!\d){port}(?!\d)", str(free.getsockname()[1]), text)
    return text


def _run(block, folder, names, groups):  # noqa: C901  (one branch per kind of block)
    if block.reason:
        _check_commands(block.code)
        return
    if block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.code, encoding="utf-8")
    elif block.language == "python" and ">>> " in block.code:
        _run_doctest(block, names)
    elif block.language == "python":
        exec(compile(block.code, f"<line {block.line}>", "exec"), names)  # noqa: S102  (our own pages)
    elif block.language == "sh":
        _bash(block.code, folder, groups)
    elif block.language == "console":
        _run_console(block.code, folder, groups)
    elif block.language == "yaml":
        for job in ((yaml.safe_load(block.code) or {}).get("jobs") or {}).values():
            for step in job["steps"]:
                if "run" in step and not step["run"].startswith("pip install"):
                    _bash(step["run"], folder, groups)


def _check_commands(code):
    """Parse the arguments of every ``boundwatch`` command, as the program would, without running it."""
    for line in code.splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[:1] == ["boundwatch"]:
            command, arguments = app, words[1:]
            while hasattr(command, "find"):
                command = command.find(arguments.pop(0))
            parsed(command.options, arguments)


def _run_doctest(block, names):
    test = doctest.DocTestParser().get_doctest(block.code, names, "page", "page", block.line)
    output = []
    failed, _ = doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=output.append, clear_globs=False)
    names |= test.globs
    assert not failed, "".join(output)


def _run_console(code, folder, groups):
    commands = re.split(r"^\$ ", code, flags=re.MULTILINE)
    assert commands[0] == "", "the block must begin with a command after $"
    for command in commands[1:]:
        lines = command.splitlines(keepends=True)
        last = next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
        expected = "".join(lines[last + 1 :])
        printed = _bash("".join(lines[: last + 1]), folder, groups, check=False)
        same = doctest.OutputChecker().check_output(expected, printed, _FLAGS)
        assert same, f"$ {lines[0]}prints\n{printed}\nnot\n{expected}"


def _bash(script, folder, groups, check=True):
    programs = forked(), Path(sys.executable).parent
    started = subprocess.Popen(
        ["bash", "-euo" if check else "-uo", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # what it leaves running is known by its group
    )
    groups.append(started.pid)
    with started:
        printed, _ = started.communicate(timeout=300)  # what takes minutes is to be marked as not run
    assert not check or started.returncode == 0, f"exit {started.returncode}: {printed}"
    return printed
