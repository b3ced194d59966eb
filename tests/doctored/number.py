"""An artifact that is made at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from reproduction.artifacts import Cache


@dataclass(frozen=True)
class Number:
    kind: ClassVar[str] = "number"
    slow: ClassVar[bool] = False
    module: ClassVar[str] = "boundwatch._support.files"
    value: int
    changes: str = ""

    def needs(self):
        return ()

    def make(self, folder: Path, _cache: Cache) -> None:
        (folder / "number.txt").write_text(str(self.value))
        if self.changes:
            Path(self.changes).write_text("new")
