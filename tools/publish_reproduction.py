"""Write a page of results and its figures: ``python tools/publish_reproduction.py DIR RUN [PAGE]``.

DIR is what ``python -m reproduction all -o DIR`` wrote; RUN says in one sentence when, from which commit
and on what it ran, and what it took. The page is ``docs/reproduction-results.md``, or PAGE for a run of some
experiments.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from reproduction.certification import LABELS
from reproduction.figure import Claim, Judged, style_of, told
from reproduction.index import PRINTED, counts, votes_of
from reproduction.runner import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reproduction-results.md"
FIGURES = DOCS / "assets" / "reproduction"
WORDS = 24
"""Of what was found, in the table of claims."""


def page(found: dict[str, Any], run: str) -> Iterator[str]:
    """Yield the lines of the page: the answer, the figures with what is behind each, and the claims."""
    judged = [(name, one) for name, result in found.items() for one in map(read_claim, result["claims"])]
    paper = [(name, one) for name, one in judged if not one.claim.beyond]
    ours = [(name, one) for name, one in judged if one.claim.beyond]
    alone = EXPERIMENTS[next(iter(found))].TITLE if len(found) == 1 else None
    yield "---\nhide: [navigation]\n---\n"  # the table of claims is wide
    yield f"# {alone or 'What came out'}\n"
    yield "<!-- Written by tools/publish_reproduction.py. Change the generator, not this page. -->\n"
    table = counts(paper)
    yield f"{table.title} ([claim by claim](#claims)):\n"
    yield from rows(list(table.header), [list(row) for row in table.rows])
    yield f"{run} [The paper, reproduced](reproduction.md) says how to run it and how claims are judged.\n"
    for name, result in found.items():
        title = EXPERIMENTS[name].TITLE
        yield from figure(name, "The trials" if alone else title, title, result["caption"])
    yield "## The paper's claims { #claims }\n"
    yield f"{CLAIMS}\n"
    yield from claims_table("the paper's claim", as_rows(paper))
    yield "## Beyond the paper\n"
    yield from claims_table("our claim", as_rows(ours))


CLAIMS = (
    "These do not simply hold; the others hold wherever they can be checked. Numbers are the first policy's. "
    "[claims.json](assets/reproduction/claims.json) has all with what was found, and "
    "[captions.json](assets/reproduction/captions.json) the numbers behind each figure, and what differs "
    "from the paper there. Click on a column's head to sort."
)


def figure(name: str, heading: str, title: str, caption: dict[str, str]) -> Iterator[str]:
    """Yield a figure and what to see in it."""
    yield f"## {heading} {{ #{name} }}\n"
    yield f"![{title}](assets/reproduction/{name}.png)\n"
    printed = f"{name}-theorem-1.png"
    beside = f" [With Theorem 1 as printed](assets/reproduction/{printed})." * (FIGURES / printed).exists()
    yield f"{caption['see']} [Tables](assets/reproduction/{name}.json).{beside}\n"


def read_claim(content: dict[str, Any]) -> Judged:
    """Return a claim as it was written, its votes in the order of the columns."""
    votes = {kind: content["votes"][kind] for kind in ("", *LABELS) if kind in content["votes"]}
    return Judged(Claim(**{name: value for name, value in content.items() if name != "votes"}), votes)


def as_rows(claims: list[tuple[str, Judged]]) -> list[dict[str, str]]:
    """Return each claim, what was found, its figure, and the verdict with each kind of certificate."""
    kinds = list(dict.fromkeys(kind for _, one in claims for kind in one.votes if kind)) or [""]
    lines = []
    for name, one in claims:
        why = f" *{one.claim.why}*" if one.claim.why else ""
        votes = {LABELS.get(kind, kind): votes_of(one, kind) for kind in kinds}
        verdicts = {kind: "yes" if style_of(each) == "yes" else told(each) for kind, each in votes.items()}
        lines.append({"claim": one.claim.paper, "found": one.claim.ours + why, "figure": name, **verdicts})
    return lines


def claims_table(title: str, claims: list[dict[str, str]]) -> Iterator[str]:
    """Yield the claims that do not simply hold as a table, with a verdict for each certificate."""
    kinds = [kind for kind in claims[0] if kind not in ("claim", "found", "figure")]
    lines = []
    for one in claims:
        verdicts = [one[kind] for kind in kinds]
        numbers, _, why = one["found"].rstrip("*").partition(" *")
        if set(verdicts) <= {"yes", "–", "not checkable here"} and "yes" in verdicts:
            continue
        lines.append([one["claim"], short(why or numbers), *verdicts, f"[{one['figure']}](#{one['figure']})"])
    heads = [f"holds? ({kind})" if kind else "holds?" for kind in kinds]
    yield from rows([title, "what we found", *heads, "figure"], lines)


def short(text: str) -> str:
    """Return the first words of a text; ``claims.json`` has all."""
    words = text.split()
    return text if len(words) <= WORDS else f"{' '.join(words[:WORDS])} …"


def as_json(claims: list[dict[str, str]]) -> str:
    """Return claims, one per line."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in claims)
    return f"[\n{lines}\n]\n"


def tables(result: dict[str, Any]) -> str:
    """Return the tables of a figure, one row per line."""
    text = json.dumps(result["tables"], ensure_ascii=False, indent=1)
    return re.sub(r"\[\n\s+(\"[^\[\]{}]*?)\n\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"


def rows(header: list[str], lines: list[list[str]]) -> Iterator[str]:
    """Yield a table."""
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for line in lines:
        yield f"| {' | '.join(line)} |"
    yield ""


def main(folder: Path, run: str, target: Path = PAGE) -> None:
    """Write page and figures."""
    names = [name for name in EXPERIMENTS if target != PAGE and (folder / name).exists()] or list(EXPERIMENTS)
    found = {name: json.loads((folder / name / "results.json").read_text()) for name in names}
    for name, result in found.items():
        if result["settings"] != json.loads(json.dumps(dataclasses.asdict(EXPERIMENTS[name].FULL))):
            sys.exit(f"{folder / name} was not made with the full settings; run `python -m reproduction all`")
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in names:
        for drawn, file in (("figure.png", f"{name}.png"), (f"{PRINTED}.png", f"{name}-theorem-1.png")):
            if (folder / name / drawn).exists():
                # Few colors are drawn: a palette makes the files a third of the size, and looks the same.
                picture = Image.open(folder / name / drawn).convert("RGB")
                picture.quantize(128, dither=Image.Dither.NONE).save(FIGURES / file, optimize=True)
        (FIGURES / f"{name}.json").write_text(tables(found[name]), encoding="utf-8")
    claims = [(name, one) for name, result in found.items() for one in map(read_claim, result["claims"])]
    captions = {name: result["caption"] for name, result in found.items()}
    (FIGURES / "captions.json").write_text(json.dumps(captions, ensure_ascii=False, indent=1) + "\n")
    (FIGURES / "claims.json").write_text(as_json(as_rows(claims)), encoding="utf-8")
    target.write_text("\n".join(page(found, run)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:]))
