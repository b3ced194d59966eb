"""Text from files, shown to people: nothing in it may move the cursor, hide a line or make up a new one."""

from __future__ import annotations

import unicodedata

# Control characters, direction overrides and other invisible ones, halves of a pair, ends of lines.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str, *, keep: str = "") -> str:
    r"""Return a text with everything escaped that a terminal would act upon rather than show.

    Parameters
    ----------
    text
        Any text: a name from a file, a path, a message that quotes one.
    keep
        Characters to leave as they are, such as the newlines of a page.

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


def shown(value: object) -> str:
    """Return a value as an error shows it: on one line, and cut if it is long.

    Examples
    --------
    >>> shown("high")
    "'high'"
    >>> import numpy as np
    >>> shown(np.zeros((9, 9)))
    'array([[0., 0., 0., 0., 0., 0., 0., 0...'
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end, or a number of thousands of digits
        text = f"a {type(value).__name__}"
    text = " ".join(text.splitlines())
    return text if len(text) <= 40 else f"{text[:37]}..."
