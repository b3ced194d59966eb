"""Fail if a room of the package has more lines than pyproject.toml allows it: python tools/check_size.py."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "boundwatch"


def main() -> int:
    """Print every room that is too large; return how many there are."""
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["boundwatch"]["lines"]
    longest = limits.pop("file")
    rooms: Counter[str] = Counter()
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        rooms[inside.parts[0] if len(inside.parts) > 1 else "."] += lines
        if lines > longest:
            faults.append(f"src/boundwatch/{inside} has {lines} lines; a file may have {longest}")
    for room, lines in rooms.items():
        if lines > limits.get(room, 0):
            faults.append(f"{room} has {lines} lines; pyproject.toml allows it {limits.get(room, 0)}")
    print(f"{rooms.total()} lines in {len(rooms)} rooms", *faults, sep="\n")
    return len(faults)


if __name__ == "__main__":
    sys.exit(main())
