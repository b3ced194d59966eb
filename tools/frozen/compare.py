"""Compares two recordings of `record.py` bit for bit; exits with 1 if a number, verdict or exit code differs.

A value that only the new recording has is listed, and is no difference unless `--strict` is given: findings
that are merged gain fields. A value that is gone is one, unless it was None.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

GONE = "(nothing)"


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the values of an entry that are not the same, with their key; a tilde marks mere reasons."""
    found = []
    for key, value in old.items():
        if key.endswith("~"):
            continue
        now = new.get(key, None if value is None else GONE)
        if type(now) is not type(value) or now != value:
            found.append((key, value, now))
    if found:
        found += [
            (key, old.get(key, ""), new[key]) for key in new if key.endswith("~") and old.get(key) != new[key]
        ]
    return found


def compare_part(name: str, old: dict[str, Any], new: dict[str, Any], most: int) -> tuple[int, Counter[str]]:
    """Print what differs in a part; return the number of entries that do, and what only the new one has."""
    differing, shown, added = 0, 0, Counter[str]()
    for entry, values in old.items():
        found = differences(values, new[entry]) if entry in new else [("", "an entry", GONE)]
        differing += bool(found)
        for key, before, now in found:
            shown += 1
            if shown <= most:
                print(f"  {name} / {entry} / {key}: {before!r} -> {now!r}")
        fresh = [key for key in new.get(entry, {}) if key not in values and not key.endswith("~")]
        added.update(re.sub(r"\d+", "N", key) for key in fresh if new[entry][key] is not None)
    added.update(f"entry {entry}" for entry in new if entry not in old)
    if shown > most:
        print(f"  … and {shown - most} more values")
    numbers = sum(len(values) for values in old.values())
    print(f"{name}: {len(old) - differing} of {len(old)} entries agree ({numbers} values, {shown} differ)")
    for key, count in added.most_common(20):
        print(f"  only in the new one: {key} ({count} x)")
    return differing, added


def main() -> None:
    """Compare two files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--part", action="append", help="compare only this part; may be repeated")
    parser.add_argument(
        "--most", type=int, default=1000, help="differences to print per part (default: 1000)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="what only the new one has is a difference, too"
    )
    arguments = parser.parse_args()
    old, new = (json.loads(path.read_text()) for path in (arguments.old, arguments.new))
    wrong = False
    for part in arguments.part or old:
        if part not in old or part not in new:
            print(f"{part}: not in both recordings")
            wrong = True
            continue
        differing, added = compare_part(part, old[part], new[part], arguments.most)
        wrong |= bool(differing) or (arguments.strict and bool(added))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
