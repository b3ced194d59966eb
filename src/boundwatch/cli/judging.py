"""boundwatch check and report: the verdict on new episodes with its evidence, in a terminal or as a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.audit import Labeling, doubted
from boundwatch.cli.file_options import Loaded, Reading
from boundwatch.cli.options import refuse
from boundwatch.cli.root import command
from boundwatch.detectors.family_test import FamilyFinding, FamilyTest
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.verdicts import Finding, TailName, Verdict
from boundwatch.episodes.compatibility import by_chance
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch
from boundwatch.reporting import families as words

EXIT_WORSE = 3
_BY_COSTS = Labeling()


@dataclass(frozen=True)
class Judging:
    """How to judge new costs, which is the same for both commands.

    Options
    -------
    alpha_adverse P: Level of ADVERSE; the certificate's delta is added. [default: 0.05]
    alpha_benign P: Level of BENIGN; the certificate's delta is added. [default: 0.05]
    tail NAME: joint, with the certificate's costs; hoeffding, kl, exact or betting, with its limits.
        [default: joint if it has costs; exact if they are binary; else betting]
    """

    margin: float | None = None
    alpha_adverse: float | None = None
    alpha_benign: float | None = None
    tail: TailName | None = None
    key: Path | None = None
    allow_own: bool = False


@dataclass(frozen=True)
class Judged:
    """New costs, what judged them, and what it found: of one certificate, or of several tasks."""

    test: HypothesisTest | FamilyTest
    costs: Any
    finding: Finding | FamilyFinding
    sources: tuple[Episodes, ...]
    said: tuple[str, ...] = ()
    """What an audit says besides."""


def judge(
    certificate: Path,
    costs: str,
    judging: Judging,
    reading: Reading,
    by: str | None,
    labeling: Labeling = _BY_COSTS,
) -> Judged:
    """Load what judges, read what is judged, and decide."""
    loaded = out.load_trusted(certificate, judging.key)
    levels = {name: getattr(judging, name) for name in ("alpha_adverse", "alpha_benign")}
    out.warn_of_levels(levels)
    given = {name: level for name, level in levels.items() if level is not None}
    settings: dict[str, Any] = {"tail": judging.tail, "margin": judging.margin, **given}
    own = judging.allow_own
    if labeling != _BY_COSTS:
        refuse({"by": by, "allow_own": own}, "does not go with --judge; leave it out")
        return _judge_audit(loaded, costs, settings, reading, labeling)
    if isinstance(loaded, Certificate) and by is None:
        test = HypothesisTest(loaded, **settings)
        try:
            episodes = reading.read(costs, certificate=loaded, allow_own=own)
        except InvalidSetting as error:
            if loaded.source == "audit" and Argument("success") in error.remedy:
                ways = ("if a machine judged, give ", Argument("judge"), " ", Argument("labels"))
                error.remedy = (*ways, " (see boundwatch audit); else ", *error.remedy)
            raise
        new: Any = episodes.costs
        if loaded.strata:
            new = {task: new[rows] for task, rows in rows_of(episodes.keys["strata"]).items()}
        return Judged(test, new, test.decide(new), (episodes,))
    read = reading.read_all(costs, by=by, certificates=loaded, allow_own=own)
    tasks = {name: part.costs for name, part in read.parts.items()}
    if isinstance(loaded, Certificate):
        loaded = CertificateFamily.shared(loaded, tasks, by=str(read.by))
    several = FamilyTest(loaded, **settings)
    finding = several.decide(tasks)
    first, *others = read.sources
    missing = [f"{first.source}: {each}" for each in words.not_judged(loaded, finding)]
    first = replace(first, warnings=(*first.warnings, *missing))
    return Judged(several, tasks, finding, (first, *others))


def _judge_audit(
    loaded: Loaded, path: str, settings: dict[str, Any], reading: Reading, labeling: Labeling
) -> Judged:
    """Judge episodes by the labels of an audit; say what the judge alone would say."""
    if not isinstance(loaded, Certificate):
        problem, remedy = "holds the certificates of several tasks", "check the audit of each task alone"
        raise InvalidSetting(problem, name="certificate", remedy=remedy)
    audit, labels, judged = labeling.read(path, reading)
    test = HypothesisTest(loaded, **settings)
    finding = test.decide(audit.record(labels))
    if audit.digest == loaded.provenance.costs_sha256 and not by_chance(audit.judged):
        raise ProvenanceMismatch("are the episodes that the certificate was made from", where=Place(path))
    alone = test.decide(audit.judged).verdict.name
    said = (*audit.finding(labels).sentences(), f"By the judge alone, which is no evidence: {alone}.")
    return Judged(test, audit.judged, finding, (doubted(judged, loaded),), said)


def exit_if_worse(verdict: Verdict, no_worse: bool | None) -> None:
    """End with 3 on ADVERSE, or while a margin that was given (so not None) is not shown to be kept."""
    if verdict is Verdict.ADVERSE or no_worse is False:
        raise SystemExit(EXIT_WORSE)


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
    if labeling != _BY_COSTS:
        refuse({"plot": plot}, "does not go with --judge; leave it out")
    found = judge(certificate, costs, judging, reading, by, labeling)
    test, finding = found.test, found.finding
    drawn: tuple[str, Any] = ("plot_tasks", test)
    if isinstance(test, HypothesisTest) and not finding.tasks:
        drawn = "plot_check", test.certificate
    out.draw(plot, *drawn, finding, found.costs, title=not no_title)
    out.print_warnings(*found.sources)
    if as_json:
        out.print_json(finding.to_dict() | out.source_fields(*found.sources) | _promises(test))
    else:
        out.print_finding(words.in_words(test, finding), found.sources)
        if found.said:
            out.print_section("Audit", found.said)
    if exit_code:
        exit_if_worse(finding.verdict, finding.no_worse)


def _promises(test: HypothesisTest | FamilyTest) -> dict[str, Any]:
    """Return the certificates that judged, for JSON."""
    names = ("lower", "upper", "delta", "fingerprint")
    several = test.family if isinstance(test, FamilyTest) else {"": test.certificate}
    promises = {task: {name: getattr(one, name) for name in names} for task, one in several.items()}
    return {"certificates": promises} if isinstance(test, FamilyTest) else {"certificate": promises[""]}


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
