"""The options by which commands read costs, and the one way in which they do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load, no_certificate
from boundwatch.cli.family import METRIC, is_of_metrics, measures, of_column, tasks_of_metrics
from boundwatch.cli.options import (
    AsIs,
    Cluster,
    CostColumn,
    CostRange,
    Episode,
    Evaluation,
    FileFormat,
    Reduce,
    RewardColumn,
    Sheet,
    Strata,
    SuccessColumn,
    SuccessValues,
    Where,
)
from boundwatch.cli.spelling import flag
from boundwatch.episodes.design import Design
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import KINDS, Kind
from boundwatch.errors import (
    Argument,
    BoundwatchError,
    InvalidCost,
    InvalidSetting,
    Place,
    ProvenanceMismatch,
)
from boundwatch.readers import read_costs

LINE_FORMATS = (None, "csv", "jsonl")
"""The formats that can be named where lines are read one by one; None if none is."""


@dataclass(frozen=True)
class Read:
    """What was read: all episodes as one, or those of each task and metric by themselves.

    Attributes
    ----------
    sources
        What was read as a whole, once for each column.
    parts
        What is judged separately, by its name; the only one has none.
    by
        What the parts are of, as in `CertificateFamily`; None if there is only one.
    """

    sources: tuple[Episodes, ...]
    parts: Mapping[str, Episodes]
    by: str | None


@dataclass(frozen=True)
class Reading:
    """How to read costs; a command that takes one has an option for each field."""

    success: SuccessColumn = None
    cost: CostColumn = None
    reward: RewardColumn = None
    cost_range: CostRange = None
    success_values: SuccessValues = None
    where: Where = None
    strata: Strata = None
    cluster: Cluster = None
    episode: Episode = None
    reduce: Reduce = None
    as_is: AsIs = False
    file_format: FileFormat = None
    sheet: Sheet = None
    evaluation: Evaluation = None

    @property
    def columns(self) -> dict[Kind, str]:
        """The columns that were named, by what they hold."""
        named = {kind: getattr(self, kind) for kind in KINDS}
        return {kind: column for kind, column in named.items() if column is not None}

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `read_costs`."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return given | {"success_values": self.success_values or (), "where": conditions(self.where)}

    def answers(self, *arguments: str) -> tuple[str, ...]:
        """Return the arguments by which tasks must be declared where lines are read; none with --as-is."""
        return () if self.as_is else arguments

    def design(self, **others: Any) -> Design:
        """Return how rows relate, as far as options say so; `others` are further fields."""
        where = conditions(self.where) or {}
        return Design(
            strata=self.strata,
            cluster=self.cluster,
            episode=self.episode,
            reduce=self.reduce,
            where=where,
            **others,
        )

    def read(
        self,
        path: str,
        *,
        certificate: Certificate | Mapping[str, Certificate] | None = None,
        allow_own: bool | None = None,
        **others: Any,
    ) -> Episodes:
        """Read costs, for a certificate to judge them if there is one; its own with `allow_own`.

        That is None for a command without the option. `others` are further arguments of `read_costs`.
        """
        self.refuse_several(None)
        settings = self.settings | others
        try:
            episodes = read_costs(path, certificate=certificate, allow_own=bool(allow_own), **settings)
        except ProvenanceMismatch as error:
            if allow_own is not None:
                error.remedy += (" (", Argument("allow_own", True), " shows what it would say)")
            raise
        except (InvalidCost, InvalidSetting):
            if path != "-" and is_certificate(path):
                raise InvalidSetting(
                    "is a certificate, not costs",
                    where=Place(path),
                    remedy="give the file of the episodes",
                ) from None
            raise
        known = {"strata", "cluster"} - set(others.get("answers", ()))
        pooled = [name for name in sorted(known) if getattr(episodes.design, name) is not None]
        if not pooled:
            return episodes
        note = f"{episodes.source}: {' and '.join(pooled)} are kept, but all trials are judged as one sample"
        return dataclasses.replace(episodes, notes=(*episodes.notes, note))

    def refuse_several(self, metrics: CertificateFamily | None) -> None:
        """Refuse several columns without certificates of several, and one of the columns with them."""
        if metrics is None and len(self.columns) > 1:
            given = " and ".join(map(flag, self.columns))
            raise typer.BadParameter(
                f"{given} go together with the certificates of several columns (certify with both first); "
                "name one column"
            )
        if metrics is not None and 0 < len(self.columns) < len(known := measures(metrics)):
            remedy: list[str | Argument] = ["name none, or the same ones:"]
            for measure in known:
                remedy += [" ", Argument(measure.kind, measure.column)]
            raise InvalidSetting("these are certificates of several columns", remedy=tuple(remedy))

    def read_all(
        self,
        path: str,
        *,
        by: str | None = None,
        certificates: Certificate | CertificateFamily | None = None,
        allow_own: bool | None = None,
        **others: Any,
    ) -> Read:
        """Read each column that was named, or that certificates are of, and take tasks apart.

        The costs of a metric are named by its column, those of a task by task and column; so are the
        certificates that judge them, if there are any. The other arguments are those of `read`.
        """
        reading, metrics = self, None
        if isinstance(certificates, CertificateFamily):
            metrics = certificates if is_of_metrics(certificates) else None
            by = (by or certificates.by) if metrics is None else tasks_of_metrics(certificates)
        if metrics is not None:
            reading = self.of_metrics(metrics)
        settings: dict[str, Any] = {"by": by, "allow_own": allow_own, **others}
        if len(reading.columns) < 2 or (metrics is None and certificates is not None):
            episodes = reading.read(path, certificate=certificates, **settings)
            return Read((episodes,), {"": episodes} if by is None else episodes.split(), by)
        if path == "-":
            raise typer.BadParameter("several columns are read one after the other; give a file, not -")
        sources: list[Episodes] = []
        parts: dict[str, Episodes] = {}
        for kind, column in reading.columns.items():
            other = "cost_range" if kind == "success" else "success_values"
            changes: dict[str, Any] = dict.fromkeys((*KINDS, other))
            one = dataclasses.replace(reading, **changes | {kind: column})
            judge = None if metrics is None else of_column(metrics, column, by)
            sources.append(episodes := one.read(path, certificate=judge, **settings))
            tasks = {} if by is None else episodes.split()
            parts |= {f"{task}/{column}": part for task, part in tasks.items()} or {column: episodes}
        for name in [] if metrics is None else set(parts).difference(metrics):
            raise InvalidSetting(no_certificate(name, metrics or ()), where=Place(path))
        return Read(tuple(sources), parts, METRIC if by is None else f"{by}/{METRIC}")

    def of_metrics(self, family: CertificateFamily) -> Reading:
        """Return the same with the columns, range and words of certificates of several, unless given."""
        self.refuse_several(family)
        known = measures(family)
        columns: Any = self.columns or {each.kind: each.column for each in known}
        ranges = [each.cost_range for each in known if each.cost_range is not None]
        words = [list(each.success_values) for each in known if each.success_values]
        return dataclasses.replace(
            self,
            **columns,
            cost_range=self.cost_range or next(iter(ranges), None),
            success_values=self.success_values or next(iter(words), None),
        )

    def refuse_without_costs(self, **others: object) -> None:
        """Refuse options of reading where nothing is read: they would be ignored."""
        refuse(dataclasses.asdict(self) | others, "goes with --costs; give them, or leave it out")

    def refuse_strata(self, instead: str) -> None:
        """Refuse strata where trials are judged as they come: their mean is not judged there yet."""
        if self.strata is not None:
            raise typer.BadParameter(instead)

    def refuse_whole_files(self, where: str) -> None:
        """Refuse options that are about a whole file, where lines are read one by one."""
        given = {name: getattr(self, name) for name in ("sheet", "episode", "reduce", "evaluation")}
        if self.file_format not in LINE_FORMATS:
            given["file_format"] = self.file_format
        refuse(given, f"does not go with {where}, where trials are read line by line")


def is_certificate(path: str) -> bool:
    """Return whether a file holds certificates."""
    try:
        load(path)
    except (BoundwatchError, OSError):
        return False
    return True


def conditions(given: Sequence[str] | None) -> dict[str, str] | None:
    """Return ``COL=VALUE``, given several times, as a mapping; None if it was not given.

    Examples
    --------
    >>> conditions(["site=lab", "day=2"])
    {'site': 'lab', 'day': '2'}
    """
    if given is None:
        return None
    found: dict[str, str] = {}
    for each in given:
        column, equals, value = each.partition("=")
        if not column or not equals:
            raise typer.BadParameter(f"--where {each}: write COL=VALUE")
        if column in found:
            raise typer.BadParameter(f"--where {column} is given twice; no row can have both values")
        found[column] = value
    return found


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option, by its parameter's name, that was given."""
    for name, value in options.items():
        if not (value is None or value is False or value == []):
            raise typer.BadParameter(f"{flag(name)} {why}")
