"""boundwatch report: promise, costs, verdict and provenance on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.family import read_tasks
from boundwatch.cli.judge import Judging, load_judge
from boundwatch.cli.options import AllowOwn, CertificateFile, CostsFile, Force, Key
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.reporting import wording
from boundwatch.reporting.ledger import earlier_looks, read_ledger


@command(
    example="boundwatch report certificate.json new.csv -o report.html\n"
    "boundwatch report certificates.json new_eval_info.json --by task -o report.html"
)
def report(
    certificate: CertificateFile,
    costs: CostsFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the HTML page.")
    ],
    *,
    judging: Judging,
    key: Key = None,
    reading: Reading,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    robot: Annotated[str | None, typer.Option(metavar="TEXT", help="Which robot, for the page.")] = None,
    site: Annotated[str | None, typer.Option(metavar="TEXT", help="Where it ran, for the page.")] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ledger of `check --ledger`; its looks are put into the page."),
    ] = None,
    allow_own: AllowOwn = False,
    force: Force = False,
) -> None:
    """Write a report on new episodes that can be signed.

    One self-contained HTML file: what was promised, what was seen, the verdict, its guarantee and
    assumptions, what would have been noticed, and hashes. The verdict is that of `boundwatch check`.
    With the certificates of several tasks, or with --by, the page has a verdict on each, corrected for their
    number.
    """
    from boundwatch.reporting.family import member, render_family_report
    from boundwatch.reporting.report import render_report

    files.protect(output, [certificate, costs], force=force)
    loaded = load_judge(certificate, costs, key)
    out.print_trust(loaded, key)
    facts = {"robot": robot, "site": site}
    if not isinstance(loaded, Certificate) or judging.by is not None:
        judging.refuse_with_tasks(ledger=ledger)
        tasks = read_tasks(loaded, costs, reading, judging.by, allow_own=allow_own)
        test = judging.of_tasks(tasks.family)
        found = test.decide(tasks.costs)
        tasks = tasks.with_missing(found)
        html = render_family_report(
            test,
            tasks.costs,
            source="; ".join(map(out.describe_source, tasks.sources)),
            warnings=tasks.warnings,
            title=title,
            facts=facts,
        )
        files.write_text(output, html)
        out.print_warnings(*tasks.sources)
        print(f"Wrote {output}\n{wording.headline(found, member(tasks.family))}")
        return
    judge = judging.of_one(loaded)
    episodes = reading.read(costs, certificate=loaded, allow_own=allow_own)
    looks = [] if ledger is None else read_ledger(ledger)
    looks = [look for look in looks if look.certificate == loaded.fingerprint]
    shorter = [look for look in looks if look.n < len(episodes)]  # one at all of them was this one
    earlier = earlier_looks(shorter, loaded.fingerprint, episodes.costs)
    html = render_report(
        judge,
        episodes.costs,
        source=out.describe_source(episodes),
        warnings=(*episodes.warnings, *earlier),
        title=title,
        facts=facts,
        looks=[look.describe() for look in looks],
    )
    files.write_text(output, html)
    out.print_warnings(episodes)
    finding = judge.decide(episodes.costs)
    print(f"Wrote {output}\n{wording.answer(finding)}\n{wording.comparison(loaded, finding)}")
