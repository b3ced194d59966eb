"""An artifact that is made at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from reproduction.artifacts import Artifact, Cache


@dataclass(frozen=True)
class Number(Artifact):
    kind: ClassVar[str] = "number"
    module: ClassVar[str] = "boundwatch._support.files"
    value: int
    changes: str = ""

    def make(self, folder: Path, cache: Cache) -> None:  # noqa: ARG002  (every artifact may use the cache)
        (folder / "number.txt").write_text(str(self.value))
        if self.changes:
            Path(self.changes).write_text("new")
