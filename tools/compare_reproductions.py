"""Say where two reproductions agree: ``python tools/compare_reproductions.py ONE OTHER``.

Both are folders that ``python -m reproduction -o`` wrote, with other instruction sets or on other machines.
Policies, costs and results are matched by their settings; dates and instruction sets do not count.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OF_THE_RUN = {"created", "instructions"}


def lines(one: Path, other: Path) -> Iterator[str]:
    """Yield two tables in Markdown, and then every claim that is judged otherwise."""
    yield "| made | in both | the same bytes |"
    yield "|---|---|---|"
    first, second = artifacts(one), artifacts(other)
    shared = sorted(first.keys() & second.keys())
    made, same = Counter(kind for kind, _ in shared), Counter[str]()
    for kind, settings in shared:
        same[kind] += digest(first[kind, settings]) == digest(second[kind, settings])
    yield from (f"| {kind} | {made[kind]} | {same[kind]} |" for kind in made)
    yield "\n| figure | the same numbers | the same picture | claims judged alike |"
    yield "|---|---|---|---|"
    otherwise = []
    for path in sorted(one.glob("*/results.json")):
        name, twin = path.parent.name, other / path.parent.name / "results.json"
        if not twin.exists():
            continue
        ours, theirs = json.loads(path.read_text()), json.loads(twin.read_text())
        pairs = list(zip(ours["claims"], theirs["claims"], strict=True))
        differ = [pair for pair in pairs if votes(pair[0]) != votes(pair[1])]
        numbers = yes(without(ours["results"]) == without(theirs["results"]))
        picture = yes(path.with_name("figure.png").read_bytes() == twin.with_name("figure.png").read_bytes())
        yield f"| {name} | {numbers} | {picture} | {len(pairs) - len(differ)} of {len(pairs)} |"
        otherwise += differ
    yield ""
    yield from (f"- {a['paper']} {votes(a)} against {votes(b)}." for a, b in otherwise)


def artifacts(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the folders of a cache by kind and settings."""
    found = {}
    for path in sorted((folder / "cache").glob("*/artifact.json")):
        about = json.loads(path.read_text())
        found[about["kind"], json.dumps(about["settings"], sort_keys=True)] = path.parent
    return found


def digest(folder: Path) -> str:
    """Hash all files of an artifact but the one that says what it is and by what code it was made."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name == "artifact.json":
            continue
        content = path.read_bytes()
        if path.suffix == ".json":
            content = json.dumps(without(json.loads(content)), sort_keys=True).encode()
        total.update(path.name.encode() + hashlib.sha256(content).digest())
    return total.hexdigest()


def without(value: Any) -> Any:
    """Leave out what is of a run and not of its numbers."""
    if isinstance(value, dict):
        return {key: without(each) for key, each in value.items() if key not in OF_THE_RUN}
    return [without(each) for each in value] if isinstance(value, list) else value


def votes(claim: dict[str, Any]) -> str:
    """Say how often a claim holds, with each certificate."""
    return json.dumps(claim["votes"]).replace('"', "")


def yes(same: bool) -> str:
    """Return a cell."""
    return "yes" if same else "no"


if __name__ == "__main__":
    print("\n".join(lines(Path(sys.argv[1]), Path(sys.argv[2]))))
