"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch.cli import output as out
from boundwatch.cli.judge import Judging, judge
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.detectors import FamilyTest
from boundwatch.reporting import families as words
from boundwatch.reporting import wording
from boundwatch.reporting.looks import earlier_looks, read_ledger


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
    ledger: Path | None = None,
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
    ledger FILE: Ledger of `check --ledger`; its looks are put into the page.
    """
    from boundwatch.reporting.report import render_family_report, render_report

    files.protect(output, [certificate, costs], force=force)
    out.require_html(output)
    found = judge(certificate, costs, judging, reading, by, ledger=ledger)
    page: dict[str, Any] = {"finding": found.finding, "title": title, "facts": {"robot": robot, "site": site}}
    page |= {"source": "; ".join(map(out.describe_source, found.sources))}
    warnings = list(dict.fromkeys(warning for each in found.sources for warning in each.warnings))
    out.print_warnings(*found.sources)
    if isinstance(found.test, FamilyTest) or found.finding.tasks:
        html = render_family_report(found.test, found.costs, warnings=warnings, **page)
        said = [words.in_words(found.test, found.finding).headline]
    else:
        if ledger is not None:
            own = found.test.certificate.fingerprint
            looks = [look for look in read_ledger(ledger) if look.certificate == own]
            shorter = [look for look in looks if look.n < len(found.costs)]  # one at all of them was this one
            warnings += earlier_looks(shorter, own, found.costs)
            page["looks"] = [look.describe() for look in looks]
        html = render_report(found.test, found.costs, warnings=warnings, **page)
        said = [wording.answer(page["finding"]), wording.comparison(found.test.certificate, page["finding"])]
    files.write_text(output, html)
    print("\n".join([f"Wrote {output}", *said]))
