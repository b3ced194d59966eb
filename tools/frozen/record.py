"""Records the numbers of a tree that a refactoring must not change; `compare.py` compares two recordings.

Run it with the Python of the tree's environment: ``.venv/bin/python tools/frozen/record.py before.json``. It
uses the public API and the commands only. `--part` records some parts, `--rename
certify--policy=--policy-file` gives a flag of a command the name that it has in this tree.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = {
    "streams": ("streams", "record_streams"),
    "certificates": ("library", "record_certificates"),
    "comparisons": ("library", "record_comparisons"),
    "plans": ("library", "record_plans"),
    "commands": ("commands", "record_commands"),
    "monitor": ("monitor", "record_monitor"),
}


def main() -> None:
    """Record the parts that were asked for, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--part", action="append", choices=list(PARTS), help="only this part; may be repeated"
    )
    parser.add_argument("--rename", action="append", default=[], metavar="COMMAND--OLD=--NEW")
    arguments = parser.parse_args()
    recording = {}
    for name in arguments.part or PARTS:
        module, function = PARTS[name]
        record: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), function)
        start = time.perf_counter()
        recording[name] = record(arguments.rename) if name == "commands" else record()
        numbers = sum(len(each) for each in recording[name].values())
        spent = time.perf_counter() - start
        print(f"{name}: {len(recording[name])} entries, {numbers} numbers, {spent:.0f} s", file=sys.stderr)
    arguments.out.write_text(json.dumps(recording, indent=0) + "\n")


if __name__ == "__main__":
    main()
