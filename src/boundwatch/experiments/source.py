"""The source code that determines an artefact: one module, and all of this package that it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@cache  # once per process: the code that runs is the code that was imported
def source_digest(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a module's `sources`.

    Examples
    --------
    >>> policy, figure = "boundwatch.experiments.navigation", "boundwatch.experiments.wind"
    >>> len(source_digest(policy)), source_digest(policy) == source_digest(figure)
    (64, False)
    """
    digest = hashlib.sha256()
    for name, file in sorted(sources(module, package).items()):
        content = file.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def sources(module: str, package: Path = PACKAGE) -> dict[str, Path]:
    """Return the files of a module and of everything in its package that it imports, by dotted name.

    Imports are followed to the end, those inside functions included.

    Parameters
    ----------
    module
        Its dotted name.
    package
        The folder of the package, which gives the first part of the name.

    Examples
    --------
    >>> sorted(sources("boundwatch.files"))
    ['boundwatch.errors', 'boundwatch.files']
    """
    found: dict[str, Path] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        file = _file(name, package)
        if name not in found and file is not None:
            found[name] = file
            todo += _imports(file, package)
    return found


def _imports(file: Path, package: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ImportError(f"{file}, line {node.lineno}: relative imports are not followed")
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _file(inner, package) else node.module


def _file(module: str, package: Path) -> Path | None:
    """Return the file of a module of the package; nothing for what is not one."""
    first, *rest = module.split(".")
    if first != package.name:
        return None
    place = package.joinpath(*rest)
    return next((f for f in (place / "__init__.py", place.with_suffix(".py")) if f.is_file()), None)
