"""Words that people write into sheets: what a cell says about a trial, and what a column's name promises."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal


def normal(text: str) -> str:
    r"""Return a text as it is compared with others: any case, any spaces, any way to write an accent.

    Examples
    --------
    >>> normal("  Is\xa0Success ") == normal("is success")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _words(text: str) -> frozenset[str]:
    return frozenset(map(normal, text.split()))


# Words that agree or deny: whether that is good depends on the question, so on the column.
_YES_WORDS = _words("yes y true t ja j wahr oui vrai si sí sì verdadero vero sim verdadeiro tak 是")
_NO_WORDS = _words("no n false f nein falsch non faux falso não nao nee nej nie 否")
# Words that judge: they are good or bad whatever the column is called.
_GOOD_WORDS = _words(
    "success successful succeeded succes succès pass passed ok okay good "
    "erfolg erfolgreich bestanden gelungen io i.o. i.o réussi réussite éxito exito exitoso successo riuscito "
    "sucesso ✓ ✔ ✅ ☑"
)
_BAD_WORDS = _words(
    "failure fail failed unsuccessful nok ko bad aborted misserfolg fehlgeschlagen fehler "
    "durchgefallen nio n.i.o. n.i.o n.io échec echec échoué fallo fracaso fallito fallimento falha ✗ ✘ ❌ ×"
) | {"not ok", "no success", "not successful", "not passed", "nicht erfolgreich", "nicht bestanden"}

# What the words of a column's name speak of.
_GOOD_NAMES = _words(
    "success successes successful succeeded succeed reward rewards return returns accuracy solved reached "
    "achieved completed completion passed pass win wins won ok good correct survived grasped lifted placed "
    "picked stacked inserted delivered docked opened arrived landed erfolg erfolgreich bestanden gelungen "
    "succes succès réussi réussite reussi exito éxito successo sucesso quality"
)
_BAD_NAMES = _words(
    "cost costs loss losses error errors err fail fails failed failure failures fault faults collision "
    "collisions collided collide crash crashes crashed violation violations drop dropped drops fell fall "
    "falls "
    "fallen abort aborted aborts timeout timeouts stuck miss missed slip slipped lost broken broke damage "
    "damaged intervention interventions estop unsuccessful penalty regret takeover takeovers disengagement "
    "disengagements unsafe hazard incident incidents misserfolg fehler fehlgeschlagen fehlversuch kollision "
    "absturz abbruch sturz échec echec erreur chute fallo fracaso falha fallimento errore"
)
# These turn a name round, or leave it open: no_collision, collision_free, failure avoided.
_TURNS = _words(
    "no not non none never without free avoided avoid un kein keine ohne nicht sans pas sin "
    "before after until since time steps"
)
# Compounds and inflections, without accents. The first that fits decides: Misserfolg holds Erfolg, fehlerfrei
# holds Fehler. Stems as short as miss and drop stay whole words above: a mission is no miss.
_STEMS: tuple[tuple[Literal["good", "bad"], re.Pattern[str]], ...] = (
    ("good", re.compile(r".*(fehler|kollisions|unfall|sturz)(frei|los)")),
    (
        "bad",
        re.compile(
            r"fail|erro|crash|colli[ds]|abort|timeout|unsuccess|fehl|.*(fehler|misserfolg|erfolglos|fehlschlag)"
            r"|.*(scheiter|abbruch|abgebrochen|kollision|kollidiert|absturz|abgesturzt|misslungen|unfall)"
            r"|echec|echou|erreur|fallo|fallid|fracas|colision|falli|falh|mislukt|gefaald|fout(en)?$"
            r"|fejl|mislyk|misslyck|porazk|blad|.*失败"
        ),
    ),
    (
        "good",
        re.compile(
            r"succe(ss(?!i[ov]|or)|ed|s$)|.*erfolg|.*(geschafft|gelungen)|reussi|exito|lograd|riuscit|sucesso"
            r"|geslaagd|gelukt|lyckad|sukces|.*成功"
        ),
    ),
)
# Names that say that an episode ended, not how.
_ENDS = {"done", "terminated", "truncated", "finished", "ended", "end"}


def judged(text: str) -> bool | None:
    """Return whether a word in a column of successes says success; None if the word is not known.

    Examples
    --------
    >>> judged("Yes"), judged("n.i.O."), judged("WAHR"), judged("maybe")
    (True, False, True, None)
    """
    word = normal(text)
    if word in _YES_WORDS or word in _GOOD_WORDS:
        return True
    return False if word in _NO_WORDS or word in _BAD_WORDS else None


def affirmed(text: str) -> bool | None:
    """Return whether a word says yes to what its column asks; None for words that judge, and others.

    Examples
    --------
    >>> affirmed("ja"), affirmed("FALSE"), affirmed("pass")
    (True, False, None)
    """
    word = normal(text)
    return True if word in _YES_WORDS else False if word in _NO_WORDS else None


def looks_like_outcome(text: str) -> bool:
    """Return whether a cell is a word for how a trial went.

    Examples
    --------
    >>> looks_like_outcome("nok"), looks_like_outcome("operator")
    (True, False)
    """
    return judged(text) is not None


def is_judgment(text: str) -> bool:
    """Return whether a word is good or bad by itself, such as pass or failure.

    Examples
    --------
    >>> is_judgment("pass"), is_judgment("yes")
    (True, False)
    """
    return normal(text) in _GOOD_WORDS | _BAD_WORDS


def close_to(word: str, wanted: Iterable[str]) -> str | None:
    """Return the word that this one is probably a slip of; None if it only contains it, or is another.

    Examples
    --------
    >>> close_to("graspd", ["grasped"]), close_to("not grasped", ["grasped"]), close_to("missed", ["grasped"])
    ('grasped', None, None)
    """
    found = get_close_matches(word, list(wanted), n=1, cutoff=0.8)
    return found[0] if found and found[0] not in word else None


def sense(name: str) -> Literal["good", "bad", "end"] | None:
    """Return whether a column by this name would be good or bad when it is high; None if that is open.

    Examples
    --------
    >>> sense("isSuccess"), sense("collision_count"), sense("no_collision"), sense("gap"), sense("done")
    ('good', 'bad', None, None, 'end')
    """
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Ý])", " ", name)
    words = [word for word in re.split(r"[\W_\d]+", normal(spaced)) if word]
    senses = [_word_sense(word) for word in words]
    for place, (said, following) in enumerate(zip(senses, words[1:], strict=False)):
        if said == "bad" and following == "free":  # failure-free
            senses[place], words[place + 1] = "good", ""
    good, bad = "good" in senses, "bad" in senses
    if good != bad and not _TURNS & set(words):
        return "good" if good else "bad"
    return "end" if words and set(words) <= _ENDS | {"is", "episode"} else None


def _word_sense(word: str) -> Literal["good", "bad"] | None:
    if word in _GOOD_NAMES:
        return "good"
    if word in _BAD_NAMES:
        return "bad"
    parts = unicodedata.normalize("NFKD", word)
    bare = "".join(part for part in parts if not unicodedata.combining(part))
    if re.fullmatch("ratée?s?", word):  # without its accent it would be a rate
        return "bad"
    return next((said for said, stem in _STEMS if stem.match(bare)), None)
