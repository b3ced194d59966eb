"""How the command line writes the arguments that refusals name: the one place where they become flags."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Collection, Mapping

from boundwatch.errors import NOTHING, Argument, Refusal, sentence

_FLAGS = {"file_format": "format", "as_json": "json", "number": "id", "restore": "import"}
_PLACEHOLDERS = {
    "success_values": "WORD,WORD",
    "cost_range": "LOW HIGH",
    "where": "COL=VALUE",
    "pair_by": "COL,COL",
    **dict.fromkeys(("success", "cost", "reward", "strata", "cluster", "by", "policy", "episode"), "COL"),
    **dict.fromkeys(("successes", "failures", "trials", "count", "fill_down"), "COL"),
    "reduce": "RULE",
    "empty_as": "X",
    "sheet": "NAME",
}


def flag(name: str) -> str:
    """Return the option of an argument.

    Examples
    --------
    >>> flag("cost_range"), flag("file_format"), flag("n"), flag("CERTIFICATE")
    ('--cost-range', '--format', '-n', 'CERTIFICATE')
    """
    dashes = "" if name.isupper() else "-" if len(name) == 1 else "--"
    return f"{dashes}{_FLAGS.get(name, name).replace('_', '-')}"


def spell(argument: Argument) -> str:
    """Return an argument as it is typed in a shell.

    Examples
    --------
    >>> spell(Argument("cost_range", (0, 100))), spell(Argument("success_values"))
    ('--cost-range 0 100', '--success-values WORD,WORD')
    >>> spell(Argument("once", True)), spell(Argument("binary", False))
    ('--once', '--no-binary')
    >>> spell(Argument("where", {"site": "new lab"}))
    "--where 'site=new lab'"
    """
    name, value = argument.name, argument.value
    if value is True:
        return flag(name)
    if value is False:
        return flag(f"no_{name}")
    if value is NOTHING or value is None:
        return " ".join(filter(None, [flag(name), _PLACEHOLDERS.get(name)]))
    if isinstance(value, Mapping):
        return " ".join(f"{flag(name)} {shlex.quote(f'{key}={each}')}" for key, each in value.items())
    if isinstance(value, tuple | list) and all(isinstance(each, str) for each in value):
        return f"{flag(name)} {shlex.quote(','.join(value))}"
    values = value if isinstance(value, tuple | list) else [value]
    return " ".join(
        [flag(name), *(f"{v:g}" if isinstance(v, float) else shlex.quote(str(v)) for v in values)]
    )


def said(refusal: Refusal, options: Collection[str] = ()) -> str:
    """Return the line for a refusal in a command with these options.

    Examples
    --------
    >>> said(Refusal("is outside (0, 1)", name="alpha_adverse", value=2), ["alpha_adverse"])
    '--alpha-adverse = 2 is outside (0, 1)'
    """
    if refusal.name in options and (refusal.where is None or refusal.where.unit != "line"):  # in a file
        refusal = copy.copy(refusal)
        refusal.name = flag(str(refusal.name))
    return sentence(refusal, spell)
