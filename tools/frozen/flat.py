"""Turns findings, answers and JSON into flat dicts of numbers and verdicts that can be compared."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FINDING = """
    verdict n mean_cost p_adverse p_benign e_adverse e_benign shift_lower shift_upper shift_size
    false_positive_rate false_negative_rate detector tail binary margin no_worse first_alarm predicted
    statistic_adverse statistic_benign change_began mean_run_length_adverse mean_run_length_benign
    false_alarm_probability adjusted_adverse adjusted_benign control
    n_a n_b pairs mean_cost_a mean_cost_b difference_lower difference_upper e_a_better e_b_better
    p_a_better p_b_better alpha paired horizon
"""
"""Every number that a finding of any kind may have; a kind has those that it has."""

ALTERNATIVES: dict[str, tuple[str, ...]] = {"unlabelled": ("unlabeled",)}
"""Names of the tree that was recorded first, and what later trees call them. The first names are recorded."""

WORDS = "verdict verdicts detector tail method control question better worse letters next_pair best"
"""Keys whose texts are results. All other texts are sentences, names or paths, which may change."""

NOISE = """
    provenance created time received last_seen last_sent applied due sent versions version schema
    schema_version fingerprint notes warnings seconds elapsed
"""
"""Keys that differ between two runs of one tree, or say which release wrote a file."""

_WORDS, _NOISE = set(WORDS.split()), set(NOISE.split())
_FIRST_NAME = {later: first for first, names in ALTERNATIVES.items() for later in names}
_MISSING = object()


def encode(value: Any) -> Any:
    """Return a scalar as JSON keeps it: floats as their shortest exact text, so that 1 and 1.0 differ."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    return value


def look_up(thing: Any, name: str) -> Any:
    """Return an attribute by its first name or a later one; `_MISSING` if there is none."""
    for each in (name, *ALTERNATIVES.get(name, ())):
        found = getattr(thing, each, _MISSING)
        if found is not _MISSING:
            return found
    return _MISSING


def attributes(thing: Any, names: str = FINDING) -> dict[str, Any]:
    """Return the numbers that an object has of these names, flat."""
    found = {name: look_up(thing, name) for name in names.split()}
    return flatten(
        {name: value for name, value in found.items() if value is not _MISSING and not callable(value)}
    )


def flatten(content: Any, path: str = "") -> dict[str, Any]:
    """Return numbers, flags and verdicts of nested content by key path; lists also with their length."""
    found: dict[str, Any] = {}
    if hasattr(content, "_asdict"):
        content = content._asdict()
    if isinstance(content, Mapping):
        for key, value in content.items():
            name = _FIRST_NAME.get(str(key), str(encode(key)))
            if name not in _NOISE and not name.endswith("sha256"):
                found |= flatten(value, f"{path}.{name}" if path else name)
    elif isinstance(content, np.ndarray | list | tuple):
        values = content.tolist() if isinstance(content, np.ndarray) else list(content)
        found[f"{path}.#"] = len(values)
        for place, value in enumerate(values):
            found |= flatten(value, f"{path}.{place}")
    else:
        value = encode(content)
        if (
            not isinstance(value, str)
            or isinstance(content, float | np.floating)
            or _last_name(path) in _WORDS
        ):
            found[path] = value
    return found


def _last_name(path: str) -> str:
    return next((name for name in reversed(path.split(".")) if not name.isdigit()), "")


def entry(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the entry that `work` makes; a refusal is one, too; its words (~) are never compared."""
    try:
        return work()
    except Exception as error:  # whatever it is called in that tree
        return {"refused": True, "~": f"{type(error).__name__}: {error}"}
