"""Every code block in README and docs runs, and prints what the page says."""

from __future__ import annotations

import pytest

import boundwatch as bw
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
        ("<!-- not run: slow -->\n```sh\nboundwatch demo --nonsense\n```\n", "No such option"),
        ("<!-- not run: slow -->\n```sh\nboundwatch nonsense\n```\n", "KeyError: 'nonsense'"),
        ("```yaml\njobs:\n  a:\n    steps:\n      - run: exit 3\n```\n", "exit 3"),
    ],
)
def test_what_is_wrong_is_noticed(text, complaint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=complaint):
        run_page(text, tmp_path)


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name in bw.__all__:
        if not name.startswith("__"):
            assert f"::: boundwatch.{name}\n" in text, name


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
