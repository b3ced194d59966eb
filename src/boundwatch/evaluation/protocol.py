"""What an evaluation asks, of which policies and tasks, and by which rule it stops: a page of TOML."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from inspect import cleandoc
from typing import Annotated, Any, Literal, cast, get_type_hints

from msgspec import Meta

from boundwatch._support import schema
from boundwatch._support.files import read_bytes, write_text
from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import check_flag, check_number, shortest
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidSetting, Place, Refusal, SchemaMismatch
from boundwatch.reporting.wording import count

_Name = Annotated[str, Meta(max_length=80, pattern=r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$")]
_Count = Annotated[int, Meta(ge=1, le=1_000_000)]
_Points = Annotated[float, Meta(gt=0, le=1e9)]
_Width = Annotated[float, Meta(gt=0, le=1)]
_POLICIES = {"compare": (2, 2), "rank": (2, 26), "certify": (1, 1), "check": (1, 1)}  # each has a letter
_ONLY = {  # settings that go with some questions
    "margin": ("compare", "check"),
    "until_width": ("certify",),
    "certificate": ("check",),
}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What an evaluation asks and how it stops, fixed before the first trial.

    Parameters
    ----------
    question
        ``compare`` two policies, ``rank`` several (those that are beaten drop out, until the best is known),
        ``certify`` one, or ``check`` one against a certificate.
    policies
        Final before the first trial; with a margin, the second is to be no worse than the first.
    most_rounds
        The end, if the question is not answered before; a round is each task with each policy.
    tasks
        A fixed set, the mean over them is meant; numbers are trials per round, and so weights.
    scenes
        Start positions, or how many; in a round of a task all policies meet the same one.
    measure
        ``success``; ``score`` (with score_range); or ``rubric`` (with milestones).
    score_range
        The worst and the best score.
    milestones
        Of a rubric, with the points of each.
    alpha
        Probability of a wrong answer: per side (compare, check), of any (rank), of limits (certify).
    margin
        How much worse is acceptable, in expected cost; 0 asks which is better.
    until_width
        Certify stops when the limits are this close.
    certificate
        The file to check against; its content is sealed, too.
    block
        Rounds of a task that are run together, where changing the task is expensive.
    blind
        Operators see letters: true, ``"round"`` (new ones each round), or false.
    aborted
        What a trial that was stopped counts as: ``failure``, or ``repeat`` (if none can see it coming).
    discarded
        The same for one that was not usable.
    seed
        Makes order and letters reproducible, by operators, too; without one it is drawn.

    Examples
    --------
    >>> protocol = Protocol(question="compare", policies=["act", "dp"], tasks=["mug", "bowl"], most_rounds=60)
    >>> protocol.most_trials, protocol.fingerprint[:8]
    (240, '...')
    >>> Protocol(question="compare", policies=["act"], most_rounds=60)
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: policies = ('act',) is not what compare takes; name 2
    """

    question: Literal["compare", "rank", "certify", "check"]
    policies: Sequence[_Name]
    most_rounds: _Count
    tasks: Sequence[_Name] | Mapping[_Name, _Count] = ()
    scenes: _Count | Sequence[_Name] = ()
    measure: Literal["success", "score", "rubric"] = "success"
    score_range: tuple[float, float] | None = None
    milestones: Mapping[_Name, _Points] | None = None
    alpha: schema.Level = 0.05
    margin: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    until_width: _Width | None = None
    certificate: str | None = None
    block: _Count = 1
    blind: bool | Literal["round"] = True
    aborted: Literal["failure", "repeat"] = "failure"
    discarded: Literal["failure", "repeat"] = "failure"
    seed: int | None = None

    def __post_init__(self) -> None:
        given = {name: _plain(value) for name, value in vars(self).items()}
        for name in ("policies", "tasks", "scenes"):
            listed = given[name] if isinstance(given[name], list) else []
            if twice := [each for each in listed if listed.count(each) > 1]:
                raise InvalidSetting("is named twice", name=name, value=twice[0], remedy="use two names")
        typed: Any = schema.convert(_settings(), given)
        for name, value in given.items():
            kept = getattr(typed, name)
            if name == "scenes" and isinstance(kept, int):
                kept = [str(i + 1) for i in range(kept)]
            elif name == "tasks":
                kept = kept if isinstance(value, dict) else dict.fromkeys(kept, 1)
                kept = kept or {"": 1}
            kept = tuple(kept) if isinstance(kept, list) else kept
            object.__setattr__(self, name, FrozenMapping(kept) if isinstance(kept, dict) else kept)
        self._check_question()
        self._check_measure()

    def __str__(self) -> str:
        on = f" on {', '.join(self.weights)}" if any(self.weights) else ""
        return f"{self.question} {', '.join(self.policies)}{on} in at most {count(self.most_rounds, 'round')}"

    def _check_question(self) -> None:
        least, most = _POLICIES[self.question]
        if not least <= len(self.policies) <= most:
            problem, remedy = f"is not what {self.question} takes", f"name {least}"
            remedy += "" if least == most else f" to {most}"
            raise InvalidSetting(problem, name="policies", value=self.policies, remedy=remedy)
        for name, questions in _ONLY.items():
            if getattr(self, name) and self.question not in questions:
                problem = f"goes with {' and '.join(questions)}, and the question is {self.question}"
                raise InvalidSetting(problem, name=name, value=getattr(self, name), remedy="leave it out")
        for question, name in (("check", "certificate"), ("certify", "until_width")):
            if self.question == question and not getattr(self, name):
                raise InvalidSetting("is missing", name=name, remedy=f"{question} needs it")
        if self.question in ("certify", "check") and self.slots > len(self.weights):
            problem = f"{self.question} takes each task once per round"
            raise InvalidSetting(problem, name="tasks", remedy="leave their numbers out")

    def _check_measure(self) -> None:
        for name, kind in (("score_range", "score"), ("milestones", "rubric")):
            if (getattr(self, name) is None) == (self.measure == kind):
                problem, remedy = f"goes with the measure {kind}", f"and that is {self.measure}"
                raise InvalidSetting(problem, name=name, value=getattr(self, name), remedy=remedy)
        if (ends := self.score_range) is not None and not ends[0] < ends[1]:
            remedy = "give the worst score and the best"
            raise InvalidSetting("is not a range", name="score_range", value=ends, remedy=remedy)
        if self.milestones == {}:
            raise InvalidSetting("is empty", name="milestones", remedy="name at least one, with its points")

    @property
    def weights(self) -> Mapping[str, int]:
        """Trials per round of each task; without tasks, of one that has no name."""
        return cast("Mapping[str, int]", self.tasks)

    @property
    def slots(self) -> int:
        """Trials of a policy in one round: one per task, or as many as each task weighs."""
        return sum(self.weights.values())

    @property
    def most_trials(self) -> int:
        """The number of trials if no policy drops out before the last round."""
        return self.most_rounds * self.slots * len(self.policies)

    @property
    def measured(self) -> Measure:
        """How an outcome becomes a cost, as certificates and tables say it."""
        if self.score_range is not None:
            return Measure("reward", "score", self.score_range)
        if self.milestones is not None:
            return Measure("reward", "points", (0.0, sum(self.milestones.values())))
        return Measure("success", "success")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that it says."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()

    def cost(
        self,
        *,
        success: bool | None = None,
        score: float | None = None,
        milestones: Iterable[str] | None = None,
    ) -> float:
        """Return the cost in [0, 1] of an outcome of the declared measure."""
        given = {"success": success, "score": score, "milestones": milestones}
        wanted = "milestones" if self.measure == "rubric" else self.measure
        if [name for name, value in given.items() if value is not None] != [wanted]:
            raise InvalidSetting("is what this protocol measures", name=wanted, remedy="give that alone")
        if success is not None:
            return 0.0 if check_flag(success, "success") else 1.0
        low, high = self.measured.ends
        if self.measure == "score":
            between = f"from {shortest(low)} to {shortest(high)}"
            number = check_number(score, "score", between, low, high, remedy="give one")
            return (high - number) / (high - low)
        points, reached = self.milestones or {}, sorted(set(milestones or ()))
        if unknown := [name for name in reached if name not in points]:
            remedy = f"choose from {', '.join(points)}"
            raise InvalidSetting("is not known", name="milestones", value=unknown[0], remedy=remedy)
        return 1 - sum(points[name] for name in reached) / high

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Protocol:
        """Return the protocol that plain values describe, or say what does not fit."""
        schema.convert(_settings(), content)
        return cls(**content)

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return what each setting means, as comments of the file and questions of the terminal say it."""
        listed = cleandoc(cls.__doc__ or "").partition("----------\n")[2].partition("\n\n")[0]
        found = re.findall(r"^(\w+)\n((?:    .*\n?)+)", listed, re.MULTILINE)
        return {name: " ".join(said.replace("``", "").split()) for name, said in found}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as TOML."""
        lines = ["# What this evaluation asks. `boundwatch evaluate start` seals it; no change counts later."]
        for name, value in self.to_dict().items():
            lines.append(f"\n# {self.meanings()[name]}")
            lines.append(f"# {name} = ..." if value is None else f"{name} = {_toml(value)}")
        write_text(path, "\n".join(lines) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Protocol:
        """Read a TOML file; what does not fit is refused with its line."""
        try:
            text = read_bytes(path).decode("utf-8")
            content = tomllib.loads(text)
        except UnicodeDecodeError:
            raise SchemaMismatch("is not a text file", where=Place(os.fspath(path))) from None
        except tomllib.TOMLDecodeError as error:
            found = re.search(r"line (\d+)", str(error))
            line = int(found.group(1)) if found else len(text.splitlines())
            problem = f"is not TOML: {str(error).partition(' (at ')[0]}"
            raise SchemaMismatch(problem, where=Place(os.fspath(path), "line", line)) from None
        try:
            return cls.from_dict(content)
        except Refusal as error:
            raise error.at(Place(os.fspath(path), "line", _line_of(error.name, text))) from None


def canonical(content: object) -> bytes:
    """Return the bytes of JSON values that hashes are made from."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _line_of(name: str | None, text: str) -> int | None:
    """Return the line of a TOML file where a setting is."""
    for number, line in enumerate(text.splitlines(), 1):
        if name and re.match(rf"\s*\[?{re.escape(name)}\s*[=.\]]", line):
            return number
    return None


@cache
def _settings() -> type:
    """Return the type of all settings, by which they are checked wherever they come from."""
    types = get_type_hints(Protocol, include_extras=True)
    settings = [(each.name, types[each.name], field(default=each.default)) for each in fields(Protocol)]
    return make_dataclass("Settings", settings, kw_only=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {} if tuple(value) == ("",) else dict(value)
    return list(value) if isinstance(value, tuple) else value


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return shortest(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
