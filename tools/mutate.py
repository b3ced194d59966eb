"""Break the code that guarantees rest on, one place at a time, and see whether a test notices: `make mutate`.

    python tools/mutate.py [--rooms bounds detectors comparison] [--sample 40] [--seed 1] [--timeout 300]

Every mutant is one changed operator or number in a copy of the package. The tests that name its module, or a
function or class of it, are run on the copy until one fails; without a change, all of them must pass. What
survives is printed with its line: kill it with a test, or list it in `HARMLESS` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
HARMLESS = {
    "margin.py: alpha <= 0.5 -> alpha < 0.5": "nobody takes a level of exactly one half",
    "margin.py: 16 -> 17": "how many tables are kept",
    "margin.py: 1 - margin ** 2 -> 1 + margin ** 2": "how long a table is; its level is computed",
    "run_length.py: 1e-09 -> 1.25e-09": "an allowance for rounding, which is 1e-15",
    "change.py: statistics[side] >= 1 / alpha -> statistics[side] > 1 / alpha": "no tie has a chance",
    "rate_difference.py: 20 * _STEP -> 20 / _STEP": "where a search begins, not where it ends",
    "rate_difference.py: min(1.0, 1 - margin) -> max(1.0, 1 - margin)": "rates above 1 are halved away",
}
"""A change, with the name of its file, to the reason why no test need notice it."""


def mutants(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what is changed, and the text of the file with that change."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    spots = [node for node in ast.walk(tree) if not _is_prose(node)]
    for place, node in enumerate(spots):
        for change in _changes(node):
            twin = copy.deepcopy(tree)
            target = [each for each in ast.walk(twin) if not _is_prose(each)][place]
            before = ast.unparse(node) if hasattr(node, "lineno") else type(node).__name__
            after = _apply(target, change)
            line = getattr(node, "lineno", 0)
            yield f"{path.name}:{line}: {before} -> {after}", ast.unparse(twin)


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare):
        return [f"op{i}" for i, op in enumerate(node.ops) if type(op) in SWAPS]
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        return ["op"]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return ["number"]
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        return ["name"] if name in NAMES else []
    return []


def _apply(node: ast.AST, change: str) -> str:
    if isinstance(node, ast.Compare):
        place = int(change[2:])
        node.ops[place] = SWAPS[type(node.ops[place])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1 if isinstance(node.value, int) else node.value * 1.25
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            node.func.id = NAMES[node.func.id]
        elif isinstance(node.func, ast.Attribute):
            node.func.attr = NAMES[node.func.attr]
    return ast.unparse(node)


def tests_of(path: Path) -> list[str]:
    """Return the tests that name a module or something in it, those of its own room first."""
    names = [node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if hasattr(node, "name")]
    word = re.compile(rf"\b({'|'.join([path.stem, *(n for n in names if not n.startswith('_'))])})\b")
    rooms = [ROOT / "tests" / path.parent.name, ROOT / "tests" / "guarantees"]
    return [
        str(each)
        for room in rooms
        for each in sorted(room.glob("test_*.py"))
        if word.search(each.read_text())
    ]


def is_killed(path: Path, text: str, timeout: float) -> bool:
    """Run the tests on a copy of the package with one file changed; a run without end is noticed, too."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(
            ROOT / "src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
        (Path(folder) / path.relative_to(ROOT / "src")).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests_of(path)]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode != 0


def main() -> None:
    """Draw mutants, try them, print those that survive and the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rooms", nargs="+", default=["bounds", "detectors", "comparison"])
    parser.add_argument("--files", nargs="*", default=[], help="only these stems")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=300)
    asked = parser.parse_args()
    paths = [path for room in asked.rooms for path in sorted((ROOT / "src/boundwatch" / room).glob("*.py"))]
    paths = [path for path in paths if tests_of(path) and (not asked.files or path.stem in asked.files)]
    found = [(path, *mutant) for path in paths for mutant in mutants(path)]
    drawn = random.Random(asked.seed).sample(found, min(asked.sample, len(found)))  # noqa: S311
    counts = dict.fromkeys(("killed", "harmless", "SURVIVED"), 0)
    sound: set[Path] = set()
    for number, (path, change, text) in enumerate(drawn, 1):
        if path not in sound and is_killed(path, path.read_text(encoding="utf-8"), asked.timeout):
            sys.exit(f"the tests of {path.name} fail, or take too long, without a change")
        sound.add(path)
        outcome = "killed" if is_killed(path, text, asked.timeout) else "SURVIVED"
        if outcome == "SURVIVED" and re.sub(r":\d+:", ":", change, count=1) in HARMLESS:
            outcome = "harmless"
        counts[outcome] += 1
        print(f"{number:4} {outcome:8} {change}", flush=True)
    print(f"{counts}; {len(drawn)} drawn from {len(found)} (seed {asked.seed})")


if __name__ == "__main__":
    main()
