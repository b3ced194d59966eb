"""A certificate for others: a section of a model card, a badge, a result for the Hub, a board of many.

All of it follows from the certificate, so `verify` can tell whether a badge says what the certificate says.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from html import escape
from typing import Any

from boundwatch._support.describing import written
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison.ranking import letter_display
from boundwatch.errors import InvalidSetting, Place
from boundwatch.reporting import page, wording
from boundwatch.reporting.page import Html

_BY = "Written by boundwatch card."
_LETTER = 6.1  # width of a letter of the badge
_STYLE = "font:11px Verdana,DejaVu Sans,sans-serif"


def badge_text(certificate: Certificate) -> str:
    """Say a certificate in the few words of a badge, rounded so that they promise no more than it does."""
    sure = f"{wording.percent(1 - certificate.delta, 'down')} confidence"
    what = f"costs at most {wording.ceiling(certificate.upper)}"
    if wording.in_failures(certificate):
        what = f"fails at most {wording.percent(certificate.upper, 'up')}"
    over = f", mean over {wording.count(len(certificate.strata), 'task')}" if certificate.strata else ""
    return f"{what}, {sure}, {_trials(certificate)}{over}"


def badge(certificate: Certificate) -> str:
    """Return a badge as SVG, which names the certificate that it is of."""
    name, said = "boundwatch", badge_text(certificate)
    left, right = (round(_LETTER * len(part)) + 12 for part in (name, said))
    label = f"{name}: {said}"
    texts = "".join(
        f'<text x="{x:g}" y="14" textLength="{width - 12}" text-anchor="middle">{escape(text)}</text>'
        for x, width, text in ((left / 2, left, name), (left + right / 2, right, said))
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{escape(label)}"><title>{escape(label)}</title>'
        f"<desc>certificate {certificate.fingerprint}</desc>"
        f'<rect width="{left + right}" height="20" rx="3" fill="#1f5f8b"/>'
        f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#444"/>'
        f'<g fill="#fff" style="{_STYLE}">{texts}</g></svg>\n'
    )


def section(certificate: Certificate, compared: Mapping[str, Any] | None = None, badge: str = "") -> str:
    """Return a section of a model card in Markdown; `compared` is what ``compare --json`` printed."""
    promise, *rest = wording.promise(certificate)
    title = "## How often it fails" if wording.in_failures(certificate) else "## What it costs"
    lines = [f"<!-- {_BY} -->", title, ""]
    if badge:
        lines += [f"![{badge_text(certificate)}]({badge})", ""]
    lines += [f"**{promise}** {' '.join(wording.basis(certificate))}", "", *rest, ""]
    if compared is not None:
        lines += [_comparison(compared), ""]
    lines += ["The promise holds if:", "", *(f"- {each}" for each in wording.assumptions(certificate)), ""]
    lines += ["It is not:", "", *(f"- {each}" for each in wording.MISREADINGS), ""]
    check = "`boundwatch verify certificate.json --badge badge.svg` derives every number again"
    return "\n".join([*lines, f"{check}. Certificate `{certificate.fingerprint}`.", ""])


def hub_result(certificate: Certificate, dataset: str, task: str, source: str | None = None) -> str:
    """Return the YAML that Hugging Face's Hub reads in ``.eval_results/``: its number, and ours beside it."""
    if certificate.mean_cost is None:
        problem = "has no mean, which the Hub shows: its limits were proved elsewhere"
        raise InvalidSetting(problem, remedy="certify from trials")
    about = f"{badge_text(certificate)}; certificate {certificate.fingerprint}"
    # A JSON text is a YAML text, whatever characters it holds.
    lines = [f"# {_BY}", "- dataset:", f"    id: {json.dumps(dataset)}", f"    task_id: {json.dumps(task)}"]
    lines += [f"  value: {100 * (1 - certificate.mean_cost):.6g}"]
    lines += [f"  date: {json.dumps(certificate.provenance.created)}"]
    lines += ["  source:", f"    url: {json.dumps(source)}"] if source else []
    return "\n".join([*lines, f"  notes: {json.dumps(about, ensure_ascii=False)}", ""])


def board(certificates: Mapping[str, Certificate], title: str) -> tuple[str, str]:
    """Return a table of certified policies, best first, as Markdown and as a page.

    Two share a letter if their intervals overlap. All intervals hold at once with probability at least 1
    minus the sum of the deltas, and then no two policies without a common letter are in the wrong order.
    """
    measures = {(each.binary, each.measure and each.measure.cost_range) for each in certificates.values()}
    if len(measures) > 1:
        problem = "these certificates measure different things"
        raise InvalidSetting(problem, remedy="put those that measure the same into one folder")
    ranked = dict(sorted(certificates.items(), key=lambda each: (each[1].upper, each[1].lower)))
    pairs = itertools.permutations(ranked, 2)
    apart = [(one, other) for one, other in pairs if ranked[one].upper < ranked[other].lower]
    letters = letter_display(list(ranked), apart)
    first = next(iter(ranked.values()))
    what = "fails in" if wording.in_failures(first) else "expected cost"
    heads = ("policy", "group", what, "seen", "confidence")
    rows = [
        (name, letters[name], wording.limits(each), _seen(each), wording.percent(1 - each.delta, "down"))
        for name, each in ranked.items()
    ]
    sure = max(0.0, 1 - sum(each.delta for each in ranked.values()))
    said = (
        "Policies that share a letter cannot be told apart. All intervals hold at once, and no two policies "
        f"without a common letter are in the wrong order, with probability at least "
        f"{wording.percent(sure, 'down')}."
    )
    table = written([heads, *rows], "markdown")
    parts: list[Html] = [page.heading(title, 1), page.table(heads, rows), page.paragraph(said)]
    parts.append(page.paragraph("For two policies on the same tasks, boundwatch compare tells more apart."))
    return f"<!-- {_BY} -->\n# {title}\n\n{table}\n\n{said}\n", page.page(title, parts)


def _trials(certificate: Certificate) -> str:
    if certificate.n is None or certificate.audit is not None:
        return str(certificate.audit or "proved elsewhere")
    unit = certificate.design.cluster or ("trial" if wording.in_failures(certificate) else "episode")
    return wording.count(certificate.n, unit)


def _seen(certificate: Certificate) -> str:
    if certificate.failures is not None:
        return f"{certificate.failures} of {certificate.n} failed"
    mean = "" if certificate.mean_cost is None else f", mean {certificate.mean_cost:.4f}"
    return f"{_trials(certificate)}{mean}"


def _comparison(compared: Mapping[str, Any]) -> str:
    try:
        seen = "; ".join(f"{name}: {said}" for name, said in compared["seen"].items())
        tasks = [f"{each['task']} {each['call'].upper()}" for each in compared.get("by_task", ())]
        sure = wording.percent(1 - float(compared["alpha"]), "down")
        said = f"**{compared['headline']}** ({sure} confidence for either direction). {seen}."
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem, remedy = "is not what `boundwatch compare --json` prints", "give its output"
        raise InvalidSetting(problem, where=Place("the comparison"), remedy=remedy) from error
    return said + (f" Its tasks: {', '.join(tasks)}." if tasks else "")
