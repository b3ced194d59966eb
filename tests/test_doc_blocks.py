"""Every code block in README and docs runs, and prints what the page says."""

from __future__ import annotations

import os
import pwd
import socket
import time
from pathlib import Path

import psutil
import pytest

from doc_blocks import PAGES, ROOT, RUN, find_blocks, run_page

NOT_RUN = 16  # blocks, over all pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(encoding="utf-8"), tmp_path)


def test_few_blocks_are_left_out():
    blocks = [block for page in PAGES for block in find_blocks(page.read_text(encoding="utf-8"))]
    run = [block for block in blocks if block.language in RUN and not block.reason]
    left_out = [block for block in blocks if block.reason]
    assert len(run) > 4 * len(left_out)
    assert len(left_out) <= NOT_RUN


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\n1 / 0\n```\n", "line 1: ZeroDivisionError"),
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3\nGot:\n    2"),
        ("```sh\nfalse\n```\n", "exit 1"),
        ("text\n\n```sh\nboundwatch nonsense\n```\n", "(?s)line 3: .*No such command"),
        ("```console\n$ echo one\ntwo\n```\n", r"\$ echo one\nprints\none\n\nnot\ntwo"),
        ("```\nx = 1\n```\n", "line 1: name the language of the block"),
        ("- item\n\n  ```sh\n  true\n  ```\n", "line 3: a block in a list is not run"),
        ("```sh\ntrue\n", "a fence is left open"),
        ("```text\nboundwatch demo\n```\n", "line 1: commands are sh; say <!-- not run: reason -->"),
        (
            "<!-- not run: slow -->\n```sh\nboundwatch demo --nonsense\n```\n",
            "unrecognized arguments: --nonsense",
        ),
        (
            "<!-- not run: slow -->\n```sh\nboundwatch nonsense\n```\n",
            "No module named 'boundwatch.cli.nonsense'",
        ),
        ("```yaml\njobs:\n  a:\n    steps:\n      - run: exit 3\n```\n", "exit 3"),
    ],
)
def test_what_is_wrong_is_noticed(text, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=complaint):
        run_page(text, tmp_path)


def test_blocks_follow_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = """
```python title="module.py"
value = 3
```

```python
n = 2
```

```python
>>> n + 1
3
```

```console
$ python -c 'import module; print(module.value + 1)'
4
```

<!-- not run: it is wrong -->
```sh
false
```
"""
    run_page(page, tmp_path)


def test_a_page_that_fails_leaves_no_process_and_touches_no_port_that_it_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started = "boundwatch serve --port 8471 > log 2>&1 &\nsleep 1000 > sleep.log 2>&1 & echo $! > pid\n"
    ready = "until curl --silent --fail http://127.0.0.1:8471/readyz; do sleep 0.1; done\n"
    named = "echo 127.0.0.1:8471 > address\n"
    with pytest.raises(AssertionError, match="exit 3"):
        run_page(f"```sh\n{started}{ready}{named}```\n\n```sh\nexit 3\n```\n", tmp_path)
    host, _, port = (tmp_path / "address").read_text().strip().partition(":")
    assert port != "8471"
    deadline = time.monotonic() + 30
    for is_gone in (
        lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())),
        lambda: not _listens(host, int(port)),
    ):
        while not is_gone():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def _listens(host, port):
    with socket.socket() as tried:
        return tried.connect_ex((host, port)) == 0


def test_the_home_folder_of_a_test_is_not_the_user_s(tmp_path, monkeypatch):
    from boundwatch.server.client import _open_default

    theirs = Path(pwd.getpwuid(os.getuid()).pw_dir)
    with _open_default("127.0.0.1:8471") as spool:
        ours = [Path.home(), Path("~").expanduser(), spool.path]
    assert not any(each == theirs or each.is_relative_to(theirs / ".local") for each in ours)
    assert not [name for name in os.environ if name.startswith("BOUNDWATCH_")]
    monkeypatch.chdir(tmp_path)
    run_page("```sh\necho $HOME $XDG_STATE_HOME > where\n```\n", tmp_path)
    assert (tmp_path / "where").read_text().split() == [str(Path.home()), str(tmp_path / "state")]
