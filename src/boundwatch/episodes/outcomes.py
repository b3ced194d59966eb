"""Words for how a trial went, as people write them into sheets: one table, in all languages at once."""

from __future__ import annotations

import unicodedata
from typing import Literal, NamedTuple


class Outcome(NamedTuple):
    """What a word says, and whether it is good or bad by itself.

    Yes and no answer a question, so they mean something in a column of costs, too; pass and failed judge.
    """

    success: bool
    judges: bool


def normal(text: str) -> str:
    """Return a text as it is compared with others: in any case, with any spaces, accents and ticks."""
    plain = unicodedata.normalize("NFKC", text).replace("\ufe0f", "")  # the mark of a picture, not of a word
    return " ".join(plain.casefold().split())


_TABLE = {
    Outcome(
        True, judges=False
    ): "yes y true t ja j wahr oui vrai si sí sì verdadero vero sim verdadeiro tak 是",
    Outcome(False, judges=False): "no n false f nein falsch non faux falso não nao nee nej nie 否",
    Outcome(True, judges=True): (
        "success successful succeeded succes succès pass passed ok okay good erfolg erfolgreich bestanden "
        "gelungen io i.o. i.o réussi réussite éxito exito exitoso successo riuscito sucesso 成功 "
        "✓ ✔ ✅ ☑ ○ 👍"
    ),
    Outcome(False, judges=True): (
        "failure fail failed unsuccessful nok ko bad aborted not_ok no_success not_successful not_passed "
        "misserfolg fehlgeschlagen fehler durchgefallen nicht_erfolgreich nicht_bestanden nio n.i.o. "
        "n.i.o n.io échec echec échoué fallo fracaso fallito fallimento falha 失败 失敗 ✗ ✘ ✖ ❌ × 👎"
    ),
}
_OUTCOMES = {
    normal(word.replace("_", " ")): outcome for outcome, words in _TABLE.items() for word in words.split()
}

INITIALS: dict[str, bool] = {"s": True, "f": False}
"""Success and failure by one letter each: only where a column has no other word."""


def outcome(text: str) -> Outcome | None:
    """Return what a word says; None if it is not known."""
    return _OUTCOMES.get(normal(text))


def succeeded(text: str) -> bool | None:
    """Return whether a word in a column of successes says success; None if it is not known."""
    found = outcome(text)
    return None if found is None else found.success


def answer(text: str) -> bool | Literal["judges"] | None:
    """Return whether a word in a column of costs says that it happened; a word may judge instead."""
    found = outcome(text)
    if found is None:
        return None
    return "judges" if found.judges else found.success
