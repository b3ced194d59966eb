"""The options by which commands read costs, what they say about the costs, and how new ones compare."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import typer

from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.cli.options import Column, CostRange, Episode, Evaluation, FileFormat, Reduce
from boundwatch.episodes import Episodes, read_costs

_CUSTOM = {("success", "any"), ("reward", "sum")}


@dataclass(frozen=True)
class Reading:
    """How to read costs; a command gets one by the decorator `reads_costs`, an option for each field."""

    column: Column = None
    cost_range: CostRange = None
    file_format: FileFormat = None
    episode: Episode = None
    reduce: Reduce = None
    evaluation: Evaluation = None

    def read(self, path: str, *, binary: bool = False, by: str | None = None) -> Episodes:
        """Read the costs."""
        return read_costs(path, binary=binary, by=by, **dataclasses.asdict(self))

    def refuse_without_costs(self, **others: object) -> None:
        """Refuse options of reading where nothing is read: they would be ignored."""
        for name, value in (dataclasses.asdict(self) | others).items():
            if value is not None:
                flag = "--format" if name == "file_format" else f"--{name.replace('_', '-')}"
                raise typer.BadParameter(f"{flag} goes with --costs; give them, or leave it out")

    def measured(self, episodes: Episodes) -> str:
        """Say in one line what the costs that were read are, for the certificate to keep.

        Names of columns count only where they were asked for: the success of one log is that of another,
        whatever their columns are called.
        """
        if episodes.meaning == "success":
            rule = "cost = 1 - success"
        elif episodes.meaning == "cost" and episodes.cost_range in (None, (0.0, 1.0)):
            rule = "cost as given"
        else:
            low, high = map(shortest, episodes.cost_range or (0.0, 1.0))  # a reward has one
            above = "high - reward" if episodes.meaning == "reward" else "reading - low"
            name = "reward" if episodes.meaning == "reward" else "reading"
            rule = f"cost = ({above})/(high - low), {name} in [{low}, {high}]"
        if self.column is not None and episodes.column not in (None, episodes.meaning):
            rule += f", column {episodes.column}"
        if self.reduce is not None and (episodes.meaning, self.reduce) not in _CUSTOM:
            rule += f", {self.reduce} over the steps of an episode"
        return rule

    def compare(self, episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate) -> Episodes:
        """Return new episodes with warnings if no verdict should be built on them.

        That is so if they are those of the certificate itself, or if their costs were measured otherwise.
        """
        if isinstance(certificates, Certificate):
            pairs = [("", certificates, episodes.costs)]
        else:
            new = episodes.by_task()
            pairs = [(f"{t}: ", certificate, new[t]) for t, certificate in certificates.items() if t in new]
        measured = self.measured(episodes)
        found = []
        for task, certificate, costs in pairs:
            made = certificate.provenance
            if made.measured not in (None, measured):
                found.append(
                    f"{episodes.source}: costs are measured otherwise than those of the certificate (now "
                    f"{measured}; certified {made.measured}); a verdict means nothing unless they agree"
                )
            if made.costs_sha256 == costs_digest(costs):
                found.append(
                    f"{episodes.source}: {task}these are the costs that the certificate was made from, and "
                    "they cannot be judged by it; give new episodes"
                )
        return dataclasses.replace(episodes, warnings=(*episodes.warnings, *dict.fromkeys(found)))


Command = TypeVar("Command", bound=Callable[..., Any])


def reads_costs(function: Command) -> Command:
    """Replace the parameter `reading` of a command by an option for each field of `Reading`."""
    hints = get_type_hints(Reading, include_extras=True)
    fields = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in hints.items()
    ]
    own = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        keyword = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own[name])
        parameters += fields if name == "reading" else [keyword]

    def run(**arguments: Any) -> Any:
        reading = Reading(**{name: arguments.pop(name) for name in hints})
        return function(**arguments, reading=reading)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run  # type: ignore[return-value]
