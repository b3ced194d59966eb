"""boundwatch card: what a certificate says, for a model card, a badge, the Hub, or a board of several."""

from __future__ import annotations

import json
from pathlib import Path

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli.options import WrongUsage, refuse
from boundwatch.cli.root import command
from boundwatch.errors import InvalidSetting, Place
from boundwatch.reporting import model_card as cards


@command(
    example="boundwatch card certificate.json -o card\n"
    "boundwatch card certificate.json --benchmark my-lab/kitchen --task-id mugs -o card\n"
    "boundwatch card certificates/ -o board"
)
def card(
    certificate: Path,
    comparison: Path | None = None,
    *,
    output: Path,
    benchmark: str | None = None,
    task_id: str | None = None,
    source: str | None = None,
    title: str | None = None,
    force: bool = False,
) -> None:
    """Write a model card's section and a badge about a certificate; of a folder of them, a board.

    CARD.md is a section in Markdown, badge.svg a picture whose words `boundwatch verify --badge` checks
    against the certificate, offline. With --benchmark, .eval_results/boundwatch.yaml is a result in the form
    that Hugging Face's Hub reads. A folder of certificates becomes board.md and board.html, in which policies
    that cannot be told apart share a letter.

    Options
    -------
    certificate CERTIFICATE: Certificate, or a folder of them (*.json), one for each policy.
    comparison FILE: What `boundwatch compare --json` printed, for the section.
    output DIR: Folder to write into.
    benchmark ID: Dataset on the Hub that the trials belong to, owner/name.
    task_id ID: Task of that dataset. [default: default]
    source URL: Where the trials can be seen.
    title TEXT: Title of a board. [default: Certified policies]
    """
    written: dict[Path, str] = {}
    if certificate.is_dir():
        alone = {"FILE": comparison, "benchmark": benchmark, "task_id": task_id, "source": source}
        refuse(alone, "goes with one certificate, not with a folder; leave it out")
        found = {path.stem: Certificate.load(path) for path in sorted(certificate.glob("*.json"))}
        if not found:
            remedy = "give a folder of certificates"
            raise InvalidSetting("holds no *.json", where=Place(str(certificate)), remedy=remedy)
        markdown, html = cards.board(found, title or "Certified policies")
        written |= {output / "board.md": markdown, output / "board.html": html}
    else:
        refuse({"title": title}, "goes with a folder of certificates; leave it out")
        one = Certificate.load(certificate)
        compared = None if comparison is None else _loaded(comparison)
        written[output / "badge.svg"] = cards.badge(one)
        written[output / "CARD.md"] = cards.section(one, compared, badge="badge.svg")
        if benchmark is not None:
            result = cards.hub_result(one, benchmark, task_id or "default", source)
            written[output / ".eval_results" / "boundwatch.yaml"] = result
        elif task_id or source:
            raise WrongUsage("--task-id and --source go with --benchmark; give it, or leave them out")
    for path in written:
        files.protect(path, [certificate, comparison], force=force)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, text)
        print(f"Wrote {path}")


def _loaded(path: Path) -> dict[str, object]:
    try:
        content = json.loads(files.read_bytes(path))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        problem, remedy = "is not JSON of a comparison", "give what boundwatch compare --json printed"
        raise InvalidSetting(problem, where=Place(str(path)), remedy=remedy)
    return content
