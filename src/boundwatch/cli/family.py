"""Certificates of several tasks, or of several metrics of the same episodes, as commands see them."""

from __future__ import annotations

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.episodes.cells import normal
from boundwatch.episodes.measure import Measure
from boundwatch.reporting import family as words
from boundwatch.reporting import wording

METRIC = "metric"
"""What the certificates of several columns are of: a family whose members are metrics."""


def is_of_metrics(family: CertificateFamily) -> bool:
    """Return whether the members are metrics, or the metrics of tasks, instead of tasks."""
    return family.by.split("/")[-1] == METRIC


def tasks_of_metrics(family: CertificateFamily) -> str | None:
    """Return the column of the tasks whose metrics these are, if there is one."""
    return family.by.removesuffix(METRIC).rstrip("/") or None


def measures(family: CertificateFamily) -> list[Measure]:
    """Return how each metric is measured, once for all tasks."""
    known = [one.measure for one in family.values() if one.measure is not None]
    return list({(measure.kind, normal(measure.column or "")): measure for measure in known}.values())


def of_column(
    family: CertificateFamily, column: str, by: str | None
) -> Certificate | dict[str, Certificate] | None:
    """Return the certificate of a metric, or those of its tasks; None if it has none."""
    if by is None:
        return family.get(column)
    found = {
        name.removesuffix(f"/{one.measure.column}"): one
        for name, one in family.items()
        if one.measure is not None and normal(one.measure.column or "") == normal(column)
    }
    return found or None


def print_promise(loaded: Certificate | CertificateFamily, *basis: str) -> None:
    """Print what certificates promise, and what they stand on."""
    if isinstance(loaded, Certificate):
        said = {"Promise": wording.promise(loaded), "Basis": [*wording.basis(loaded), *basis]}
        for title, sentences in said.items():
            out.print_section(title, sentences)
        return
    out.print_section("Promise", words.promise(loaded))
    print()
    out.print_table(*words.promises(loaded))
    if notes := words.vacuous(loaded):
        out.print_section("Note", notes)
    if basis:
        out.print_section("Basis", basis)
