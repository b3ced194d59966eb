"""The source code that determines an artifact: one module, and all of our own code that it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path


def _package(name: str) -> Path:
    spec = find_spec(name)  # an import would make all of the package a source of this module
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    return Path(spec.origin).parent


PACKAGES = (Path(__file__).parent, _package("boundwatch"))


@cache  # once per process: the code that runs is the code that was imported
def source_digest(module: str, packages: tuple[Path, ...] = PACKAGES) -> str:
    """Return the SHA-256 of a module's `sources`.

    Examples
    --------
    >>> policy, figure = "reproduction.navigation", "reproduction.wind"
    >>> len(source_digest(policy)), source_digest(policy) == source_digest(figure)
    (64, False)
    """
    digest = hashlib.sha256()
    for name, file in sorted(sources(module, packages).items()):
        content = file.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def sources(module: str, packages: tuple[Path, ...] = PACKAGES) -> dict[str, Path]:
    """Return the files of a module and of everything in our packages that it imports, by dotted name.

    Imports are followed to the end, those inside functions included.

    Parameters
    ----------
    module
        Its dotted name.
    packages
        The folders of our packages, whose names are the first parts of modules' names.

    Examples
    --------
    >>> sorted(sources("boundwatch._support.files"))
    ['boundwatch._support.files', 'boundwatch.errors']
    """
    found: dict[str, Path] = {}
    seen, todo = {module}, [module]
    while todo:
        name = todo.pop()
        if file := _file(name, packages):
            found[name] = file
            new = set(_imports(file, file.read_bytes(), packages)) - seen
            seen |= new
            todo += new
    return found


@cache  # every artifact asks about nearly the same files; parsing them takes a second
def _imports(file: Path, content: bytes, packages: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(_names(file, content, packages))


def _names(file: Path, content: bytes, packages: tuple[Path, ...]) -> Iterator[str]:
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ImportError(f"{file}, line {node.lineno}: relative imports are not followed")
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _file(inner, packages) else node.module


def _file(module: str, packages: tuple[Path, ...]) -> Path | None:
    """Return the file of a module of our packages; nothing for what is not one."""
    first, *rest = module.split(".")
    places = [package.joinpath(*rest) for package in packages if package.name == first]
    files = (f for place in places for f in (place / "__init__.py", place.with_suffix(".py")))
    return next((f for f in files if f.is_file()), None)
