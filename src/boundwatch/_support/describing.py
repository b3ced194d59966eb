"""How objects describe themselves, and how text from files is shown: on one line, with nothing hidden."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Mapping
from typing import Any

# Control characters, direction overrides and other invisible ones, halves of a pair, ends of lines.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def one_line(subject: object, fields: Mapping[str, Any]) -> str:
    """Return the class and some fields on one line, numbers to six digits and what is None left out.

    Examples
    --------
    >>> one_line("", {"n": 3, "mean_cost": 1 / 3, "first_alarm": None, "tail": "kl"})
    "str(n=3, mean_cost=0.333333, tail='kl')"
    """
    parts = [f"{name}={_brief(value)}" for name, value in fields.items() if value is not None]
    return f"{type(subject).__name__}({', '.join(parts)})"


def arguments(subject: object) -> dict[str, Any]:
    """Return what an object was made with, for one that keeps its arguments under their names."""
    names = list(inspect.signature(type(subject)).parameters)
    return {name: getattr(subject, name) for name in names if hasattr(subject, name)}


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"<{len(value)} of {type(value[0]).__name__}>"
    if isinstance(value, tuple) and all(isinstance(item, float) for item in value):
        return f"({', '.join(map(_brief, value))})"
    text = repr(getattr(value, "value", value))  # of a verdict, its name
    if "\n" not in text and len(text) <= 300:
        return text
    return f"<{type(value).__name__}{' of shape ' + str(value.shape) if hasattr(value, 'shape') else ''}>"


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text with everything escaped that a terminal would act upon rather than show, but for `keep`.

    Examples
    --------
    >>> print(printable("arm\x1b[2J\nverdict: \ud800WITHIN"))
    arm\x1b[2J\nverdict: \ud800WITHIN
    >>> printable("größer"), printable("a\nb", keep="\n")
    ('größer', 'a\nb')
    """
    if text.isascii() and text.isprintable():  # the usual case
        return text
    return "".join(
        letter
        if letter in keep or unicodedata.category(letter) not in _UNPRINTABLE
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
