"""Break the code that guarantees rest on, one place at a time, and see whether a test notices: `make mutate`.

    python tools/mutate.py [--rooms bounds detectors comparison] [--sample 60] [--seed 1] [--minutes 60]

Every mutant is one changed operator, number or call. First the tests run once, to see which of them call
which function, and how long they take; this is kept in `.mutants/` and done again only for files of tests
that changed. Then every mutant is tried in a process of its own, which already has numpy and scipy: by the
tests that call the changed function, the shortest first, until one fails. Outcomes are kept as well: a run
that was ended goes on where it stood, and `--again` tries the survivors once more. What survives is printed
with its line: kill it with a test, or list it in `tools/harmless.toml` with the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "boundwatch"
TESTS = ("bounds", "detectors", "comparison", "guarantees")
KEPT, HARMLESS = ROOT / ".mutants", ROOT / "tools" / "harmless.toml"
ROOMS = ("bounds", "detectors", "comparison")
LONGEST = 240.0
"""Seconds of tests that one mutant is tried by; the longest of a function's tests are left out beyond."""

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


class Mutant(NamedTuple):
    """One change: of which file, in which outermost function ("" for the module), and where."""

    file: str
    function: str
    line: int
    text: str
    change: str
    column: int
    place: tuple[int, int]

    @property
    def key(self) -> str:
        """What names it in `harmless.toml`: no number of a line, which changes with every line above."""
        return f"{self.file}: {self.text}: {self.change} at {self.column}"


def mutants(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    source = (PACKAGE / file).read_text(encoding="utf-8")
    tree, lines = ast.parse(source), source.splitlines()
    owners = dict(_functions(tree))
    for number, node in enumerate(ast.walk(tree)):
        for change in range(_changes(node)):
            twin = copy.deepcopy(node)
            _apply(twin, change)
            line = lines[(row := node.lineno) - 1]
            text, column = line.strip(), node.col_offset - (len(line) - len(line.lstrip()))
            said = f"{ast.unparse(node)} -> {ast.unparse(twin)}"
            yield Mutant(file, owners.get(node, ""), row, text, said, column, (number, change))


def mutated(mutant: Mutant) -> CodeType:
    """Return the code of the file with the change."""
    path = PACKAGE / mutant.file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    number, change = mutant.place
    _apply(list(ast.walk(tree))[number], change)
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


def digest_of(content: bytes) -> str:
    """Return a short name of some bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


def _functions(tree: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            yield from ((node, f"{name}{child.name}") for node in ast.walk(child))
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{name}{child.name}.")


def _changes(node: ast.AST) -> int:
    """Return how many changes a node can have."""
    if isinstance(node, ast.Compare):
        return len(node.ops) if all(type(op) in SWAPS for op in node.ops) else 0
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return int(type(node.op) in SWAPS)
    if isinstance(node, ast.Constant):
        return int(type(node.value) in (int, float))
    if isinstance(node, ast.UnaryOp):
        return int(isinstance(node.op, ast.Not) or not isinstance(node.operand, ast.Constant))
    if isinstance(node, ast.Call):
        return int(getattr(node.func, "id", getattr(node.func, "attr", "")) in NAMES)
    return 0


def _apply(node: Any, change: int) -> None:
    if isinstance(node, ast.Compare):
        node.ops[change] = SWAPS[type(node.ops[change])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Constant):
        value: Any = node.value
        node.value = value * 1.25 if isinstance(value, float) and value else value + 1
    elif isinstance(node, ast.UnaryOp):  # twice is not at all
        node.operand = ast.UnaryOp(node.op, node.operand)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        node.func.id = NAMES[node.func.id]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node.func.attr = NAMES[node.func.attr]


class Failures:
    """A plugin of pytest that notes which tests fail."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a failure."""
        if report.failed:
            self.failed.append(report.nodeid)


class Calls:
    """A plugin of pytest that notes which functions of the package each test calls, and how long it takes."""

    def __init__(self) -> None:
        self.tests: dict[str, Any] = {}
        self._shared: defaultdict[str, set[str]] = defaultdict(set)
        self._called: set[str] = set()

    def _see(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)):
            name = code.co_qualname.split(".<locals>")[0]
            self._called.add(f"{Path(code.co_filename).relative_to(PACKAGE)}:{name}")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        """Keep what the setup calls that several tests share."""
        before, self._called = self._called, set()
        found = yield
        if fixturedef.scope != "function":
            self._shared[request.node.nodeid.split("::")[0]] |= self._called
        self._called |= before
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        """Note what one test calls."""
        _forget_caches()  # or only the first test would be seen to call what keeps its answers
        self._called, start = set(), time.monotonic()
        threading.settrace(self._see)  # type: ignore[arg-type]
        sys.settrace(self._see)  # type: ignore[arg-type]
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            seconds = round(time.monotonic() - start, 3)
            self.tests[item.nodeid] = {"seconds": seconds, "calls": sorted(self._called)}

    def found(self) -> dict[str, Any]:
        """Return every test with what it and the fixtures of its file call."""
        for test, each in self.tests.items():
            each["calls"] = sorted({*each["calls"], *self._shared[test.split("::")[0]]})
        return self.tests


def _forget_caches() -> None:
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", "")).startswith(str(ROOT)):
            for each in list(vars(module).values()):
                if callable(getattr(each, "cache_clear", None)):
                    each.cache_clear()


class Changed(importlib.abc.MetaPathFinder, SourceFileLoader):
    """Imports one module with a change."""

    def __init__(self, mutant: Mutant) -> None:
        name = "boundwatch." + mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        super().__init__(name, str(PACKAGE / mutant.file))
        self.mutant = mutant

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Return this as the loader of its module."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, _: str) -> CodeType:
        """Return the changed code, which no file keeps."""
        return mutated(self.mutant)


def forked(work: Callable[[], object], seconds: float) -> Any:
    """Return what a child process answers, or None if it does not end in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        code = 1
        with contextlib.suppress(BaseException), os.fdopen(writing, "w") as answer:
            json.dump(work(), answer)
            code = 0
        os._exit(code)
    os.close(writing)
    alarm = threading.Timer(seconds, os.killpg, (child, signal.SIGKILL))
    alarm.start()
    with os.fdopen(reading) as answer:
        text = answer.read()
    alarm.cancel()
    with contextlib.suppress(ProcessLookupError):  # what a test left behind
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def run(tests: list[str], *, mutant: Mutant | None = None, first: bool = True) -> dict[str, Any]:
    """Run tests in this process, with a change if there is one; return what failed and what was called."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    if mutant is not None:
        sys.meta_path.insert(0, Changed(mutant))
    failures, calls = Failures(), Calls()
    options = ["-q", "-p", "no:cacheprovider", *(["-x"] if first else [])]
    options += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *tests], plugins=[failures, *([] if first else [calls])])
    return {"code": int(code), "failed": failures.failed, "tests": calls.found()}


def trace(*, anew: bool) -> dict[str, Any]:
    """Return all tests, with what they call: as kept, except for files of tests that changed since."""
    kept = KEPT / "tests.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() and not anew else {}
    found = {}
    for path in (each for room in TESTS for each in sorted((ROOT / "tests" / room).glob("test_*.py"))):
        name, digest = str(path.relative_to(ROOT)), digest_of(path.read_bytes())
        if known.get(name, {}).get("digest") != digest:
            print(f"which functions {name} calls", flush=True)
            ran = forked(lambda name=name: run([name], first=False), 3600)  # type: ignore[misc]
            if ran is None or ran["failed"] or ran["code"]:
                sys.exit(f"{name} fails without a change: {ran and ran['failed']}")
            known[name] = {"digest": digest, "tests": ran["tests"]}
            kept.write_text(json.dumps(known))
        found |= known[name]["tests"]
    return found


def tests_of(mutant: Mutant, tests: dict[str, Any], longest: float) -> tuple[list[str], float]:
    """Return the tests that call the changed function, the shortest first, and their seconds."""
    called = f"{mutant.file}:{mutant.function}"
    chosen, total = [], 0.0
    for test, each in sorted(tests.items(), key=lambda pair: float(pair[1]["seconds"])):
        calls: list[str] = each["calls"]
        if called in calls or (not mutant.function and any(call.startswith(called) for call in calls)):
            total += each["seconds"]
            if chosen and total > longest:
                break
            chosen.append(test)
    return chosen, total


def judge(mutant: Mutant, tests: dict[str, Any], longest: float, sound: set[str]) -> dict[str, str]:
    """Return whether a test notices a mutant, and which; one that never ends is noticed, too."""
    chosen, total = tests_of(mutant, tests, longest)
    if not chosen:
        return {"outcome": "SURVIVED", "by": "no test calls it"}
    ran = forked(lambda: run(chosen, mutant=mutant), 20 + 4 * total)
    if ran is None:
        return {"outcome": "killed", "by": "it did not end"}
    if ran["code"] == 0:
        return {"outcome": "SURVIVED", "by": f"{len(chosen)} tests"}
    if ran["failed"] and ran["failed"][0] not in sound:  # alone, and without a change, it must pass
        (test, *_) = ran["failed"]
        if "::" in test and forked(lambda: run([test]), 600)["code"]:
            sys.exit(f"{test} fails without a change")
        sound.add(test)
    return {
        "outcome": "killed",
        "by": ran["failed"][0] if ran["failed"] else f"pytest ended with {ran['code']}",
    }


def harmless() -> dict[str, str]:
    """Return the mutants that no test need notice, with the reasons; one that cannot be made is an error."""
    reasons: dict[str, str] = tomllib.loads(HARMLESS.read_text(encoding="utf-8"))
    possible = {each.key for file in {key.split(":")[0] for key in reasons} for each in mutants(file)}
    if gone := sorted(set(reasons) - possible):
        sys.exit("\n".join([f"{HARMLESS.name} lists what is not in the code:", *gone]))
    return reasons


def main() -> None:
    """Draw mutants, try them, print those that survive and the score of each room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rooms", nargs="+", default=ROOMS)
    parser.add_argument("--files", nargs="*", default=[], help="only these stems")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--longest", type=float, default=60, help="seconds of tests for each mutant")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--trace", action="store_true", help="see anew which test calls what")
    asked = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    reasons, started = harmless(), time.monotonic()
    kept = KEPT / "outcomes.json"
    outcomes: dict[str, dict[str, str]] = json.loads(kept.read_text()) if kept.exists() else {}
    tests, sound = trace(anew=asked.trace), set[str]()
    again = {name for name, each in outcomes.items() if asked.again and each["outcome"] == "SURVIVED"}
    for room in asked.rooms:
        files = [str(path.relative_to(PACKAGE)) for path in sorted((PACKAGE / room).glob("*.py"))]
        files = [file for file in files if not asked.files or Path(file).stem in asked.files]
        found = [mutant for file in files for mutant in mutants(file)]
        # By the hash of each: a change elsewhere leaves the others in the sample.
        found.sort(key=lambda each: digest_of(f"{asked.seed} {each.key}".encode()))
        drawn = found[: asked.sample or None]
        counts: Counter[str] = Counter()
        for mutant in drawn:
            name = f"{digest_of((PACKAGE / mutant.file).read_bytes())} {mutant.key}"
            if (name not in outcomes or name in again) and (time.monotonic() - started) / 60 < asked.minutes:
                again.discard(name)
                outcomes[name] = judge(mutant, tests, asked.longest, sound)
                kept.write_text(json.dumps(outcomes, indent=0))
            each = outcomes.get(name, {"outcome": "not tried", "by": ""})
            outcome = (
                "harmless" if each["outcome"] == "SURVIVED" and mutant.key in reasons else each["outcome"]
            )
            counts[outcome] += 1
            if outcome == "SURVIVED":
                print(f"line {mutant.line} in {mutant.key} ({each['by']})", flush=True)
        print(
            f"{room}: {dict(counts)} of {len(drawn)} drawn from {len(found)} (seed {asked.seed})", flush=True
        )


if __name__ == "__main__":
    import hypothesis.strategies  # noqa: F401  (imported once, and there in every child)
    import numpy as np  # noqa: F401
    import scipy.optimize
    import scipy.stats  # noqa: F401

    main()
