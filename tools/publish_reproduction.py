"""Write a page of results and its figures: ``python tools/publish_reproduction.py DIR RUN [PAGE]``.

DIR is what ``python -m reproduction all -o DIR`` wrote; RUN says in one sentence when, from which commit
and on what it ran, and what it took. The page is ``docs/reproduction-results.md``, or PAGE for a run of some
experiments: ``docs/reproduction-hardware.md`` is the replay of the recorded trials alone.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from reproduction.runner import EXPERIMENTS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reproduction-results.md"
FIGURES = DOCS / "assets" / "reproduction"


def page(found: dict[str, Any], run: str) -> Iterator[str]:
    """Yield the lines of the page."""
    claims = [(name, claim) for name, result in found.items() for claim in result["claims"]]
    paper = [(name, claim) for name, claim in claims if not claim["beyond"]]
    counts = Counter(claim["holds"] for _, claim in paper)
    alone = EXPERIMENTS[next(iter(found))].TITLE if len(found) == 1 else None
    yield f"# {alone or 'What came out'}\n"
    yield "<!-- Written by tools/publish_reproduction.py. Change the generator, not this page. -->\n"
    yield f"{run} [The paper, reproduced](reproduction.md) says how to run it and how claims are judged.\n"
    yield "## The paper's claims\n"
    yield (
        f"Of {len(paper)}, {counts['yes']} hold, {counts['partly']} hold in part, {counts['no']} do not, and "
        f"{counts['not checkable here']} cannot be checked here.\n"
    )
    yield from claims_table("the paper's claim", paper)
    yield "## Beyond the paper\n"
    yield from claims_table("our claim", [(name, claim) for name, claim in claims if claim["beyond"]])
    for name, result in found.items():
        caption = result["caption"]
        yield f"## {'The trials' if alone else EXPERIMENTS[name].TITLE} {{ #{name} }}\n"
        yield f"![{caption['see']}](assets/reproduction/{name}.png)\n"
        yield f"{caption['see']}\n"
        for title, key in (("Numbers", "numbers"), ("The paper", "paper"), ("What differs", "differs")):
            yield f"**{title}.** {caption[key]}\n"
        for table in result["tables"]:
            yield f"*{table['title']}*\n"
            yield from rows(table["header"], table["rows"])


def claims_table(title: str, claims: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Yield claims as a table."""
    lines = []
    for name, claim in claims:
        why = f" *{claim['why']}*" if claim["why"] else ""
        holds = claim["holds"] if claim["holds"] == "yes" else f"**{claim['holds']}**"
        lines.append([claim["paper"], claim["ours"] + why, holds, f"[{name}](#{name})"])
    yield from rows([title, "what we found", "holds?", "figure"], lines)


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
        # Few colors are drawn: a palette makes the files a third of the size, and looks the same.
        picture = (
            Image.open(folder / name / "figure.png").convert("RGB").quantize(128, dither=Image.Dither.NONE)
        )
        picture.save(FIGURES / f"{name}.png", optimize=True)
    target.write_text("\n".join(page(found, run)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:]))
