"""What an evaluation asks, of which policies and tasks, and by which rule it stops: a page of TOML."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import cleandoc
from typing import Any, Literal, cast

from boundwatch._support.files import read_bytes, write_text
from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import (
    check_choices,
    check_flag,
    check_level,
    check_margin,
    check_number,
    shortest,
)
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidSetting, Place, Refusal, SchemaMismatch
from boundwatch.reporting.wording import count

Question = Literal["compare", "rank", "certify", "check"]
Counting = Literal["failure", "repeat"]
Kind = Literal["success", "score", "rubric"]
MOST_POLICIES = 26
"""Each has a letter."""
_POLICIES = {"compare": (2, 2), "rank": (2, MOST_POLICIES), "certify": (1, 1), "check": (1, 1)}
_ONLY = {  # settings that go with some questions
    "margin": ("compare", "check"),
    "until_width": ("certify",),
    "until_upper": ("certify",),
    "certificate": ("check",),
}
_LONGEST = 80  # letters of a name
_LARGEST = 1_000_000  # rounds, scenes, trials of a task in a round


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
    until_upper
        Or when the upper limit on the expected cost is this low.
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

    question: Question
    policies: Sequence[str]
    most_rounds: int
    tasks: Sequence[str] | Mapping[str, int] = ()
    scenes: int | Sequence[str] = ()
    measure: Kind = "success"
    score_range: tuple[float, float] | None = None
    milestones: Mapping[str, float] | None = None
    alpha: float = 0.05
    margin: float = 0.0
    until_width: float | None = None
    until_upper: float | None = None
    certificate: str | None = None
    block: int = 1
    blind: bool | Literal["round"] = True
    aborted: Counting = "failure"
    discarded: Counting = "failure"
    seed: int | None = None

    def __post_init__(self) -> None:
        check_choices(self)
        scenes = self.scenes
        if isinstance(scenes, int):
            scenes = [str(i + 1) for i in range(_whole(scenes, "scenes"))]
        self._set(
            policies=_names(self.policies, "policies"),
            tasks=_weights(self.tasks),
            scenes=_names(scenes, "scenes"),
            most_rounds=_whole(self.most_rounds, "most_rounds"),
            block=_whole(self.block, "block"),
            alpha=check_level(self.alpha, "alpha"),
            margin=check_margin(self.margin, zero=True),
        )
        if self.blind != "round":
            check_flag(self.blind, "blind")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise InvalidSetting("is not a whole number", name="seed", value=self.seed, remedy="give one")
        self._check_question()
        self._check_measure()

    def __str__(self) -> str:
        on = f" on {', '.join(self.weights)}" if any(self.weights) else ""
        return f"{self.question} {', '.join(self.policies)}{on} in at most {count(self.most_rounds, 'round')}"

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

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
        if self.question == "check" and not (self.certificate and isinstance(self.certificate, str)):
            raise InvalidSetting("is missing", name="certificate", remedy="name the file to check against")
        for name in ("until_width", "until_upper"):
            if (value := getattr(self, name)) is not None:
                number = check_number(value, name, "in (0, 1)", 1e-9, 1, remedy="give a cost")
                self._set(**{name: number})
        if self.question == "certify" and self.until_width is None and self.until_upper is None:
            raise InvalidSetting("is missing", name="until_width", remedy="say when to stop, or until_upper")
        if self.question in ("certify", "check") and self.slots > len(self.weights):
            problem = f"{self.question} takes each task once per round"
            raise InvalidSetting(problem, name="tasks", remedy="leave their numbers out")

    def _check_measure(self) -> None:
        for name, kind in (("score_range", "score"), ("milestones", "rubric")):
            if (getattr(self, name) is None) == (self.measure == kind):
                problem, remedy = f"goes with the measure {kind}", f"and that is {self.measure}"
                raise InvalidSetting(problem, name=name, value=getattr(self, name), remedy=remedy)
        if (ends := self.score_range) is not None:
            remedy = "give the worst score and the best"
            if not isinstance(ends, list | tuple) or len(ends) != 2:
                raise InvalidSetting("is not two numbers", name="score_range", value=ends, remedy=remedy)
            low, high = (check_number(each, "score_range", "a number", remedy=remedy) for each in ends)
            if not low < high:
                raise InvalidSetting("is not a range", name="score_range", value=ends, remedy=remedy)
            self._set(score_range=(low, high))
        if (points := self.milestones) is not None:
            if not isinstance(points, Mapping) or not points:
                problem = "is empty" if points == {} else "is not points by name"
                raise InvalidSetting(problem, name="milestones", remedy="name at least one, with its points")
            remedy = "give points"
            worth = [
                check_number(each, "milestones", "a number of points", 1e-9, 1e9, remedy=remedy)
                for each in points.values()
            ]
            self._set(milestones=FrozenMapping(zip(_names(points, "milestones"), worth, strict=True)))

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
        points = self.milestones or {}
        reached = set(_names(milestones, "milestones"))
        if unknown := reached - set(points):
            remedy = f"choose from {', '.join(points)}"
            raise InvalidSetting("is not known", name="milestones", value=min(unknown), remedy=remedy)
        return 1 - sum(points[name] for name in sorted(reached)) / high

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _plain(value) for name, value in content.items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Protocol:
        """Return the protocol that plain values describe, or say what does not fit."""
        known = {each.name: each.default is MISSING for each in fields(cls)}
        for name in content:
            if name not in known:
                raise SchemaMismatch("is not known", name=name, remedy=f"the settings are {', '.join(known)}")
        for name, needed in known.items():
            if needed and name not in content:
                raise SchemaMismatch("is missing", name=name)
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


def _names(values: object, name: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidSetting("is not a list of names", name=name, value=values, remedy="give a list")
    found = tuple(values)
    for each in found:
        if not isinstance(each, str) or not each.strip() or not each.isprintable() or len(each) > _LONGEST:
            remedy = f"use printable, non-empty text of at most {_LONGEST} letters"
            raise InvalidSetting("is not a name", name=name, value=each, remedy=remedy)
        if found.count(each) > 1:
            raise InvalidSetting("is named twice", name=name, value=each, remedy="give each its own name")
    return found


def _weights(tasks: object) -> FrozenMapping[str, int]:
    """Return trials per round of each task; without tasks there is one that has no name."""
    if not isinstance(tasks, Mapping):
        return FrozenMapping(dict.fromkeys(_names(tasks, "tasks") or ("",), 1))
    if tuple(tasks) != ("",):
        _names(list(tasks), "tasks")
    return FrozenMapping({name: _whole(weight, "tasks") for name, weight in tasks.items()} or {"": 1})


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
        problem = f"is not a whole number from 1 to {_LARGEST}"
        raise InvalidSetting(problem, name=name, value=value, remedy="give one")
    return value


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
