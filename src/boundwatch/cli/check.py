"""boundwatch check: the verdict on new episodes, with its evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boundwatch.cli import output as out
from boundwatch.cli.audit import Labeling
from boundwatch.cli.file_options import Reading
from boundwatch.cli.judging import Judging, judge
from boundwatch.cli.options import refuse
from boundwatch.cli.root import command
from boundwatch.detectors.family_test import FamilyTest
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.reporting import families as words


@command(
    example="boundwatch check certificate.json new.csv\n"
    "boundwatch check certificate.json new.csv --margin 0.05 --exit-code\n"
    "boundwatch check certificate.json - --json --exit-code < new.csv\n"
    "boundwatch check certificates.json new_eval_info.json"
)
def check(
    certificate: Path,
    costs: str,
    *,
    judging: Judging,
    reading: Reading,
    labeling: Labeling,
    by: str | None = None,
    plot: Path | None = None,
    no_title: bool = False,
    force: bool = False,
    as_json: bool = False,
    exit_code: bool = False,
) -> None:
    """Compare the costs of new episodes with a certificate.

    The verdict is ADVERSE, BENIGN or WITHIN (no evidence of a shift; it does not mean "safe"). Its error
    rates hold for one look at a number of episodes that was fixed in advance. With the certificates of
    several tasks, or with --by, there is a verdict on each, corrected for their number. Where a machine
    judged the episodes, the labels of an audit decide (`boundwatch audit`), whatever the judge is like.

    Options
    -------
    plot FILE: Draw costs and limits, or each task: .png, .svg, .pdf.
    """
    out.protect({"plot": plot}, [certificate, costs], force=force, no_title=no_title)
    if any(vars(labeling).values()):
        refuse({"plot": plot}, "does not go with --judge; leave it out")
    found = judge(certificate, costs, judging, reading, by, labeling)
    kind = "plot_tasks" if found.in_tasks else "plot_check"
    out.draw(plot, kind, found.subject, found.finding, found.costs, title=not no_title)
    out.print_warnings(*found.sources)
    if as_json:
        out.print_json(found.finding.to_dict() | out.source_fields(*found.sources) | _promises(found.test))
    else:
        out.print_finding(words.in_words(found.test, found.finding), found.sources)
        if found.said:
            out.print_section("Audit", found.said)
    if exit_code:
        found.exit_if_worse()


def _promises(test: HypothesisTest | FamilyTest) -> dict[str, Any]:
    """Return the certificates that judged, for JSON."""
    names = ("lower", "upper", "delta", "fingerprint")
    several = test.family if isinstance(test, FamilyTest) else {"": test.certificate}
    promises = {task: {name: getattr(one, name) for name in names} for task, one in several.items()}
    return {"certificates": promises} if isinstance(test, FamilyTest) else {"certificate": promises[""]}
