"""Trials of two policies that a key makes partners: matched by what they share, never by their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.episodes import Episodes
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place

PairBy = Sequence[str] | str | Mapping[str, Sequence[Any]] | None
Keys = tuple[str, ...]
_SHOWN = 5


@dataclass(frozen=True)
class Matched:
    """Where the partners are among the trials of A and of B, and the keys of those that have none."""

    rows_a: NDArray[np.int64]
    rows_b: NDArray[np.int64]
    alone_a: Keys
    alone_b: Keys


def keys_of(name: str, episodes: Episodes, pair_by: PairBy) -> Keys:
    """Return the key of each trial; refuse trials without one, and keys that repeat."""
    if isinstance(pair_by, Mapping):
        if len(given := tuple(map(str, pair_by.get(name, ())))) != len(episodes):
            problem = f"has {len(given)} keys for the {len(episodes)} trials of {name!r}"
            raise InvalidSetting(problem, name="pair_by", remedy="give one per trial of each policy")
        keys = given
    else:
        columns = pair_by.split(",") if isinstance(pair_by, str) else list(pair_by or ())
        declared = list(episodes.design.pair_by)
        if "pair" not in episodes.keys or (declared and declared != [each.strip() for each in columns]):
            problem = f"the trials of {name!r} were not read with these keys"
            remedy = ("pass ", Argument("pair_by"), " to read_costs, too, or a list of keys per policy")
            raise InvalidSetting(problem, name="pair_by", value=list(columns), remedy=remedy)
        keys = episodes.keys["pair"]
    repeated = [key for key, times in Counter(keys).items() if times > 1]
    if repeated:
        raise InvalidCost(
            f"{len(repeated)} keys occur more than once ({_listed(repeated)}): whose partner is whose?",
            where=Place(episodes.source or name),
            remedy=("add a column that tells them apart to ", Argument("pair_by"), ", or compare unpaired"),
        )
    return keys


def match(a: Keys, b: Keys, names: Sequence[str]) -> Matched:
    """Return who is whose partner; at least one trial must have one."""
    places = {key: place for place, key in enumerate(b)}
    both = [(place, places[key]) for place, key in enumerate(a) if key in places]
    if not both:
        one, other = names
        problem = f"no trial of {one} ({_listed(a)}) has a partner among those of {other} ({_listed(b)})"
        raise InvalidCost(problem, remedy="they share no key: compare them unpaired")
    rows_a, rows_b = np.array(both).T
    known = set(a)
    return Matched(
        rows_a,
        rows_b,
        tuple(key for key in a if key not in places),
        tuple(key for key in b if key not in known),
    )


def matched(policies: Mapping[str, Episodes], pair_by: PairBy) -> dict[str, Episodes]:
    """Return the trials of all policies whose key every policy has, in the order of the first policy."""
    keys = {name: keys_of(name, each, pair_by) for name, each in policies.items()}
    first, *others = keys.values()
    common = set(first).intersection(*others)
    shared = [key for key in first if key in common]
    if not shared:
        match(first, others[0], list(keys)[:2])
        raise InvalidCost("no key is shared by all policies", remedy="compare two of them")
    found = {}
    for name, each in policies.items():
        places = {key: place for place, key in enumerate(keys[name])}
        alone = [key for key in keys[name] if key not in common]
        said = f"{len(alone)} trials have no partner and are left out: {_listed(alone)}"
        warnings = (*each.warnings, f"{each.source or name}: {said}") if alone else each.warnings
        found[name] = each.take([places[key] for key in shared], warnings=warnings)
    return found


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")
