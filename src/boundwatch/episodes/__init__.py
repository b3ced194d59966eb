"""Episodes: how their cells become costs, how they relate to each other, and what the data say about them.

`measure` and `design` are what is declared; `declared` finds those columns in a file; `costs` makes costs of
cells, with `outcomes` for words and `decimals` for numbers; `episodes` has the result. `notes` says what the
costs show about the assumptions, `compatibility` whether a certificate can judge them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_FORMER = {"Episodes", "Format", "Reduction", "binary_note", "certified_column", "certified_ranges"}
_FORMER |= {"holds_lines", "looks_binary", "measured", "read_costs"}


def __getattr__(name: str) -> Any:
    # Until everybody imports from the modules: what this package was before.
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("boundwatch.episodes.former"), name)
