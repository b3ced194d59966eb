"""Text from files, shown to people: nothing in it may move the cursor, hide a line or make up a new one."""

from __future__ import annotations

import unicodedata

# Control characters, direction overrides and other invisible ones, halves of a pair, ends of lines.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


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
