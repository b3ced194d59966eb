"""The options by which commands read costs, what they say about the costs, and how new ones compare."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli.options import (
    CostColumn,
    CostRange,
    Episode,
    Evaluation,
    FileFormat,
    Reduce,
    RewardColumn,
    Sheet,
    SuccessColumn,
    SuccessValues,
)
from boundwatch.episodes import Episodes, certified_column, certified_meaning, read_costs
from boundwatch.episodes.formats import LINE_FORMATS
from boundwatch.episodes.table import Meaning
from boundwatch.episodes.words import normal
from boundwatch.errors import InvalidSetting, ProvenanceMismatch

_MEANINGS: tuple[Meaning, ...] = ("success", "cost", "reward")
METRIC = "metric"
"""What the certificates of several columns are of: a family whose members are metrics."""


@dataclass(frozen=True)
class Reading:
    """How to read costs; a command that takes one has an option for each field."""

    success: SuccessColumn = None
    cost: CostColumn = None
    reward: RewardColumn = None
    cost_range: CostRange = None
    success_values: SuccessValues = None
    file_format: FileFormat = None
    sheet: Sheet = None
    episode: Episode = None
    reduce: Reduce = None
    evaluation: Evaluation = None

    def read(
        self,
        path: str,
        *,
        binary: bool | None = None,
        by: str | None = None,
        certificate: Certificate | CertificateFamily | None = None,
        allow_own: bool | None = None,
        judged: bool = True,
    ) -> Episodes:
        """Read the costs, for a certificate to judge them if there is one; its own with `allow_own`.

        That is None for a command without the option. What `judged` does, `read_costs` says.
        """
        self.refuse_several(None)
        settings = self._settings() | {"binary": binary, "judged": judged}
        with offering_own(allow_own) as allowed:
            return read_costs(path, by=by, certificate=certificate, allow_own=allowed, **settings)

    def refuse_several(self, metrics: CertificateFamily | None) -> None:
        """Refuse several columns without certificates of several, and one column with them."""
        if metrics is not None and len(self.columns) < 2:
            flags = {
                f"--{certified_meaning(one.provenance.measured or '')}": (
                    name if metrics.by == METRIC else _without_task(name, one)
                )
                for name, one in metrics.items()
            }
            given = " ".join(f"{flag} {shlex.quote(column)}" for flag, column in flags.items())
            raise InvalidSetting(f"these are certificates of several columns; name the same ones: {given}")
        if metrics is None and len(self.columns) > 1:
            given = " and ".join(f"--{name}" for name in self.columns)
            raise typer.BadParameter(
                f"{given} go together with the certificates of several columns (certify with both first); "
                "name one column"
            )

    def metrics(
        self,
        path: str,
        *,
        by: str | None = None,
        family: CertificateFamily | None = None,
        allow_own: bool | None = None,
        judged: bool = True,
    ) -> dict[str, Episodes]:
        """Read each column that was named, if there are several; nothing otherwise.

        The costs of a metric are named by its column, those of a task by task and column; so are the
        certificates that judge them, if there are any.
        """
        found: dict[str, Episodes] = {}
        if len(self.columns) < 2:
            return found
        for meaning, column in self.columns.items():
            settings = self._settings() | dict.fromkeys(_MEANINGS) | {meaning: column, "judged": judged}
            if meaning == "success":
                settings["cost_range"] = None
            else:
                settings["success_values"] = ()
            certificate = None if family is None else _of_column(family, column, by, self.columns.values())
            with offering_own(allow_own) as allowed:
                episodes = read_costs(path, by=by, certificate=certificate, allow_own=allowed, **settings)
            tasks = {} if by is None else episodes.split()
            found |= {f"{task}/{column}": part for task, part in tasks.items()} or {column: episodes}
        return found

    @property
    def columns(self) -> dict[Meaning, str]:
        """The columns that were named, by what they hold."""
        named = {name: getattr(self, name) for name in _MEANINGS}
        return {name: column for name, column in named.items() if column is not None}

    def rule(self) -> dict[str, Any]:
        """Return what says how to read a stream line by line."""
        names = ("success", "cost", "reward", "cost_range")
        return {name: getattr(self, name) for name in names} | {
            "success_values": tuple(self.success_values or ())
        }

    def _settings(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"success_values": self.success_values or ()}

    def refuse_without_costs(self, **others: object) -> None:
        """Refuse options of reading where nothing is read: they would be ignored."""
        refuse(dataclasses.asdict(self) | others, "goes with --costs; give them, or leave it out")

    @property
    def is_of_whole_files(self) -> bool:
        """Whether there is an option that is about a whole file."""
        return any(value not in (None, "") for value in self._of_whole_files().values())

    def _of_whole_files(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("sheet", "episode", "reduce", "evaluation")}

    def refuse_whole_files(self, where: str) -> None:
        """Refuse options that are about a whole file, where lines are read one by one."""
        given = self._of_whole_files()
        if self.file_format not in LINE_FORMATS:
            given["file_format"] = self.file_format
        refuse(given, f"does not go with {where}, which reads line by line")


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option, by its parameter's name, that was given."""
    for name, value in options.items():
        if value not in (None, []):
            flag = "--format" if name == "file_format" else f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"{flag} {why}")


def _of_column(
    family: CertificateFamily, column: str, by: str | None, columns: Collection[str]
) -> Certificate | dict[str, Certificate] | None:
    """Return the certificate of a metric, or those of its tasks; None if it has none."""
    if by is None:
        return family.get(column)
    # Of the columns b and a/b, the second is the one of task/a/b.
    longer = tuple(f"/{other}" for other in columns if other.endswith(f"/{column}"))
    names = [name for name in family if name.endswith(f"/{column}") and not name.endswith(longer)]
    return {name.removesuffix(f"/{column}"): family[name] for name in names} or None


def _without_task(name: str, certificate: Certificate) -> str:
    """Return the column of ``task/column``: both may have slashes, so what the certificate keeps decides."""
    known = certified_column([certificate]).column
    parts = name.split("/")
    columns = ("/".join(parts[start:]) for start in range(1, len(parts)))
    # A customary column is not kept, and has no slash.
    return next((column for column in columns if normal(column) == known), parts[-1])


@contextmanager
def offering_own(allow_own: bool | None) -> Iterator[bool]:
    """Name the option by which a command judges a certificate's own costs, if it has one (not None)."""
    try:
        yield bool(allow_own)
    except ProvenanceMismatch as error:
        if allow_own is None:
            raise
        raise ProvenanceMismatch(f"{error} (--allow-own shows what it would say)") from None
