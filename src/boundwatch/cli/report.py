"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch.cli import output as out
from boundwatch.cli.file_options import Reading
from boundwatch.cli.judging import Judging, judge
from boundwatch.cli.root import command
from boundwatch.reporting import families as words


@command(
    example="boundwatch report certificate.json new.csv -o report.html\n"
    "boundwatch report certificates.json new_eval_info.json --by task -o report.html"
)
def report(
    certificate: Path,
    costs: str,
    *,
    output: Path,
    judging: Judging,
    reading: Reading,
    by: str | None = None,
    title: str | None = None,
    robot: str | None = None,
    site: str | None = None,
    force: bool = False,
) -> None:
    """Write a report on new episodes that can be signed.

    One self-contained HTML file: what was promised, what was seen, the verdict, its guarantee and
    assumptions, what would have been noticed, and hashes. The verdict is that of `boundwatch check`.
    With the certificates of several tasks, or with --by, the page has a verdict on each, corrected for their
    number.

    Options
    -------
    output FILE: Where to write the HTML page.
    title TEXT: Title of the page.
    robot TEXT: Which robot, for the page.
    site TEXT: Where it ran, for the page.
    """
    from boundwatch.reporting.report import render_report

    files.protect(output, [certificate, costs], force=force)
    out.require_html(output)
    found = judge(certificate, costs, judging, reading, by)
    out.print_warnings(*found.sources)
    page: dict[str, Any] = {"finding": found.finding, "title": title, "facts": {"robot": robot, "site": site}}
    page["source"] = "; ".join(map(out.describe_source, found.sources))
    page["warnings"] = list(dict.fromkeys(warning for each in found.sources for warning in each.warnings))
    files.write_text(output, render_report(found.test, found.costs, **page))
    said = words.in_words(found.test, found.finding)
    print("\n".join([f"Wrote {output}", said.headline, *said.lines]))
