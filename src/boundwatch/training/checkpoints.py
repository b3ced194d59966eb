"""What an interrupted training continues from: its last finished step, in one file that is replaced whole."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from boundwatch._support.files import make_folder
from boundwatch.errors import ProvenanceMismatch, SchemaMismatch
from boundwatch.training import tensorfile

Groups = Mapping[str, Mapping[str, Tensor]]
_KIND = "boundwatch.checkpoint/1"


class Checkpoint:
    """A file that keeps one training, and refuses every other.

    Parameters
    ----------
    path
        Where it is; None keeps nothing.
    settings
        All that decides how the training goes besides where it starts, as JSON values.
    start
        Fingerprint of what is trained, as it is now: before the first step, or after the last one kept.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, settings: Mapping[str, object], start: str
    ) -> None:
        self.path = None if path is None else Path(path)
        self._settings = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
        self._start = start
        if self.path is not None:
            make_folder(self.path.parent)

    def save(self, groups: Groups, *, step: int, state: str) -> None:
        """Replace the file; ``state`` is the fingerprint of what is trained after this step."""
        if self.path is not None:
            tensors = {
                f"{group}.{name}": value for group, parts in groups.items() for name, value in parts.items()
            }
            metadata = {"settings": self._settings, "start": self._start, "state": state, "step": str(step)}
            tensorfile.save(self.path, tensors, {"kind": _KIND} | metadata)

    def load(self) -> tuple[int, dict[str, dict[str, Tensor]]] | None:
        """Return the last finished step and its tensors by group; None if there is no file."""
        if self.path is None or not self.path.exists():
            return None
        tensors, metadata = tensorfile.load(self.path, _KIND)
        # The state after the last step, too: the same object, given again after an interruption.
        known = metadata.get("start"), metadata.get("state")
        if metadata.get("settings") != self._settings or self._start not in known:
            raise ProvenanceMismatch(
                f"{self.path} belongs to a training with another start, other data or other settings; "
                "give the same ones to continue it, or another path to start over"
            )
        self._start = metadata["start"]
        groups: dict[str, dict[str, Tensor]] = {}
        for place, value in tensors.items():
            group, _, name = place.partition(".")
            groups.setdefault(group, {})[name] = value
        if not metadata.get("step", "").isdecimal():
            raise self.damaged()
        return int(metadata["step"]), groups

    def damaged(self) -> SchemaMismatch:
        """Return the refusal of a file that lacks something."""
        return SchemaMismatch(f"{self.path} is not a whole checkpoint; remove it to start over")
