"""How commands declare options: a typed parameter each, and one entry about it in a docstring.

Below the heading ``Options``, an entry is ``name METAVAR: help``. Keyword-only parameters are options, others
are arguments. A parameter whose type is a dataclass stands for an option per field, with their entries in
the docstring of that class; what several commands have has its entry here. ``Annotated[int, AT_LEAST_1]``
is a number in a range. Refusals name arguments, which become flags here and nowhere else.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import math
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from boundwatch.errors import NOTHING, Argument, Refusal, sentence

AT_LEAST_1 = (1, math.inf)
AT_LEAST_0 = (0, math.inf)
NEEDED = inspect.Parameter.empty
"""The default of what must be given."""
PANELS = ("Arguments", "The verdict", "The file", "The output", "Options")
_AS_IT_IS = "\0"  # before a word that follows --; no shell hands on a word that has it
_REQUIRED = "the following arguments are required: "
_HEADING = "\n\nOptions\n-------\n"
_SHORT = {"output": ("-o",)}
_SHARED = """
certificate CERTIFICATE: Certificate, as `boundwatch certify` writes it.
costs COSTS: A row per episode: CSV, XLSX, JSON, logs; - is stdin.
evaluation EVAL: What `boundwatch evaluate start` wrote.
station NAME: Who runs the trial, where there are several.
by COL: Column of tasks or robots: a verdict on each.
margin COST: Also say whether the cost rose by at most this much.
key PUB: Refuse what its holder did not sign.
allow_own: Judge its own costs, as a rehearsal.
no_title: Draw no title.
force: Replace a file that boundwatch did not write; never an input.
as_json: Print JSON.
exit_code: Exit with 3 on ADVERSE, or if --margin is not shown.
database URL: SQLite file, or postgresql://user@host/name. [default: boundwatch.sqlite]
config FILE: TOML file with the same settings.
"""
RARE = re.compile(
    "success_values|successes|failures|trials|count|timeout_as|empty_as|fill_down|weights|episode|reduce|as_is"
    "|file_format|sheet|key|allow_own|sign|policy_file|no_title|force|label|rates"
)
"""Options that few people need: of commands that read a file, a few words each, together."""
_OF_OUTPUT = re.compile(
    "output|plot|no_title|report|title|robot|site|sign|policy_file|force|as_json|exit_code|on_alarm"
)
_OF_FILE = re.compile(
    "by|policy|costs|follow|tasks|state|number|allow_gaps|skip_.*|predicted|unlabeled|against"
)
"""What is about the output and the file, besides the options of `Reading`; all else is about the verdict."""

_FLAGS = {"file_format": "format", "as_json": "json", "number": "id", "restore": "import"}
_PLACEHOLDERS = {
    "success_values": "WORD,WORD",
    "cost_range": "LOW HIGH",
    "where": "COL=VALUE",
    "pair_by": "COL,COL",
    **dict.fromkeys(("success", "cost", "reward", "strata", "cluster", "by", "policy", "episode"), "COL"),
    **dict.fromkeys(("successes", "failures", "trials", "count", "fill_down"), "COL"),
    "reduce": "RULE",
    "empty_as": "X",
    "sheet": "NAME",
}

Texts = dict[str, tuple[str, str]]
"""The metavar and the help of an option, by the name of its parameter."""


class WrongUsage(Exception):
    """A command line that cannot be meant; `path` is the command, once it is known."""

    path = ""


@dataclass(frozen=True)
class Option:
    """A parameter of a command: an option with its flags, or an argument without."""

    name: str
    kind: Any
    default: Any
    flags: tuple[str, ...]
    metavar: str
    text: str
    panel: str
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def heading(self) -> str:
        """How it is written."""
        return " ".join([", ".join(self.flags), *([] if self.kind is bool else [self.metavar])]).strip()

    @property
    def help(self) -> str:
        """What it means."""
        if self.default is NEEDED:
            return f"{self.text} [required]" if self.flags else self.text
        told = self.default is None or self.default is False or "[default" in self.text
        return self.text if told else f"{self.text} [default: {self.default}]"

    def add_to(self, parser: Any) -> None:
        """Let argparse read it."""
        origin, inner = get_origin(self.kind), get_args(self.kind)
        needed = self.default is NEEDED
        settings: dict[str, Any] = {
            "metavar": None if self.flags else self.metavar,
            "default": None if needed else self.default,
        }
        if self.flags:
            settings |= {"dest": self.name, "action": _Given}  # `Parser.read` asks for those that are needed
        elif origin is list:
            settings["nargs"] = "+" if needed else "*"
        elif not needed:
            settings["nargs"] = "?"
        if self.kind is bool:
            settings["nargs"] = 0
        elif origin is tuple:
            settings["nargs"] = len(inner)
        elif origin is Literal:
            settings["choices"] = inner
        parser.add_argument(*(self.flags or [self.name]), type=self._read, **settings)

    def _read(self, text: str) -> Any:
        if self.flags and text.startswith(_AS_IT_IS):
            raise argparse.ArgumentTypeError("needs its value before --")
        text = text.removeprefix(_AS_IT_IS)
        inner = get_args(self.kind)
        kind: Any = str if get_origin(self.kind) is Literal else inner[0] if inner else self.kind
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        least, most = self.limits
        if self.limits != Option.limits and not least <= value <= most:
            within = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{text} is not {within}")
        return value


class _Given(argparse.Action):
    """Take an option: each once, but for lists; a flag without a value."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        before = parser.given.get(self.dest)
        values = tuple(values) if isinstance(values, list) else values
        if self.dest in parser.lists:
            values = [*(before or ()), values]
        elif before is not None:
            raise argparse.ArgumentError(self, "can be given once")
        if self.nargs == 0:
            values = not str(option_string).startswith("--no-") or len(self.option_strings) == 1
        parser.given[self.dest] = values
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Reads the words of a command line; errors are exceptions."""

    def __init__(self, options: Sequence[Option], help: Callable[[], str]) -> None:  # noqa: A002
        super().__init__(allow_abbrev=False, usage="")
        self.format_help = help  # type: ignore[method-assign]
        self.given: dict[str, Any] = {}
        self.lists: set[str] = set()
        self._needed: dict[str, str] = {}
        for each in options:
            each.add_to(self)
            if get_origin(each.kind) is list:
                self.lists.add(each.name)
            if each.flags and each.default is NEEDED:
                self._needed[each.name] = "/".join(each.flags)
        self._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)")  # argparse knows no exponents

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the values of a command line; what follows -- is no option, whatever it begins with."""
        end = [*words, "--"].index("--")  # argparse forgets where it was
        after = [_AS_IT_IS + word for word in words[end + 1 :]]
        found = vars(self.parse_intermixed_args([*words[:end], *after]))
        if self._needed.keys() - self.given.keys():
            self.error(_REQUIRED)
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the option that takes what this one does not: `--format markdown` means `--table`."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as wrong:
            others = [each.option_strings[0] for each in self._actions if value in (each.choices or ())]
            wrong.message += f"; {others[0]} takes it" if others else ""
            raise

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        if message.startswith(_REQUIRED):  # of arguments: argparse knows of no options that are needed
            missing = (flags for name, flags in self._needed.items() if name not in self.given)
            message = _REQUIRED + ", ".join(filter(None, [message.removeprefix(_REQUIRED), *missing]))
        raise WrongUsage(message.removeprefix("argument ").replace(_AS_IT_IS, ""))


def declared(
    function: Callable[..., Any], takes: Callable[..., Any] | None = None
) -> tuple[str, list[Option], Callable[..., Any]]:
    """Return what the docstring of a command says of it, its options, and the function that takes them all.

    If it takes ``**options``, those are the keyword-only parameters of `takes`, whose docstring is the help.
    """
    said, texts = _split(function.__doc__)
    said = said if takes is None else _split(takes.__doc__)[0]
    hints = get_type_hints(function, include_extras=True)
    options: list[Option] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and takes is not None:
            options += _keywords(takes)
        elif is_dataclass(kind := hints[name]):
            own = [each for each in fields(kind) if each.name not in hints]
            about, types = _split(kind.__doc__)[1], get_type_hints(kind, include_extras=True)
            options += [_option(each.name, types[each.name], each.default, about, kind) for each in own]
            groups[name] = (kind, [each.name for each in own])
        else:
            options.append(_of(parameter, hints[name], texts))
    if unknown := set(texts) - set(hints):
        raise TypeError(f"{function.__name__} says something about {unknown}, which it does not take")

    def run(arguments: dict[str, Any]) -> Any:
        for name, (build, names) in groups.items():
            arguments[name] = build(**{each: arguments.pop(each) for each in names})
        return function(**arguments)

    return said, options, run


def _split(doc: str | None) -> tuple[str, Texts]:
    """Return what a docstring says, and its own entries about options."""
    said, _, listed = inspect.cleandoc(doc or "").partition(_HEADING)
    return said, _entries(listed)


@cache
def _entries(listed: str) -> Texts:
    found: Texts = {}
    for entry in re.split(r"\n(?=\w)", listed.strip()) if listed else ():
        head, _, text = entry.partition(": ")
        name, _, metavar = head.partition(" ")
        found[name] = (metavar, " ".join(text.split()))
    return found


def _of(parameter: inspect.Parameter, hint: Any, texts: Texts) -> Option:
    is_option = parameter.kind is parameter.KEYWORD_ONLY
    return _option(parameter.name, hint, parameter.default, texts, is_option=is_option)


def _option(
    name: str, hint: Any, default: Any, texts: Texts, group: Any = None, *, is_option: bool = True
) -> Option:
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if is_optional := get_origin(kind) in (Union, UnionType):
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    metavar, text = texts.get(name) or _entries(_SHARED).get(name) or ("", "")
    flags: list[str] = []
    if is_option:
        flags = [*_SHORT.get(name, ()), flag(name)]
        flags += [flag(f"no_{name}")] if is_optional and kind is bool else []
    if get_origin(kind) is Literal:
        metavar = metavar or "|".join(get_args(kind))
    about = "output" if _OF_OUTPUT.fullmatch(name) else "file" if _OF_FILE.fullmatch(name) else "verdict"
    panel = getattr(group, "panel", f"The {about}")
    return Option(name, kind, default, tuple(flags), metavar or name.upper(), text, panel, *more)


def _keywords(function: Callable[..., Any]) -> list[Option]:
    """Return the keyword-only parameters of a function as options, with what its docstring says of them."""
    texts, found = _split(function.__doc__)[1], []
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.KEYWORD_ONLY:  # one by one, as a return type may be known to type checkers only
            kinds = type("Kinds", (), {"__annotations__": {each.name: each.annotation}})
            hints = get_type_hints(kinds, inspect.unwrap(function).__globals__, include_extras=True)
            found.append(_of(each, hints[each.name], texts))
    return found


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option, by its parameter's name, that was given."""
    for name, value in options.items():
        if not (value is None or value is False or value == []):
            raise WrongUsage(f"{flag(name)} {why}")


def refuse_if(faults: Mapping[str, bool]) -> None:
    """Refuse options that do not go together: the first sentence that is true."""
    for fault, is_true in faults.items():
        if is_true:
            raise WrongUsage(fault)


def flag(name: str) -> str:
    """Return the option of an argument.

    Examples
    --------
    >>> flag("cost_range"), flag("file_format"), flag("n"), flag("CERTIFICATE")
    ('--cost-range', '--format', '-n', 'CERTIFICATE')
    """
    dashes = "" if name.isupper() else "-" if len(name) == 1 else "--"
    return f"{dashes}{_FLAGS.get(name, name).replace('_', '-')}"


def spell(argument: Argument) -> str:
    """Return an argument as it is typed in a shell.

    Examples
    --------
    >>> spell(Argument("cost_range", (0, 100))), spell(Argument("success_values"))
    ('--cost-range 0 100', '--success-values WORD,WORD')
    >>> spell(Argument("once", True)), spell(Argument("binary", False))
    ('--once', '--no-binary')
    >>> spell(Argument("where", {"site": "new lab"}))
    "--where 'site=new lab'"
    """
    name, value = argument.name, argument.value
    if value is True:
        return flag(name)
    if value is False:
        return flag(f"no_{name}")
    if value is NOTHING or value is None:
        return " ".join(filter(None, [flag(name), _PLACEHOLDERS.get(name)]))
    if isinstance(value, Mapping):
        return " ".join(f"{flag(name)} {shlex.quote(f'{key}={each}')}" for key, each in value.items())
    if isinstance(value, tuple | list) and all(isinstance(each, str) for each in value):
        return f"{flag(name)} {shlex.quote(','.join(value))}"
    values = value if isinstance(value, tuple | list) else [value]
    return " ".join(
        [flag(name), *(f"{v:g}" if isinstance(v, float) else shlex.quote(str(v)) for v in values)]
    )


def said(refusal: Refusal, options: Collection[str] = ()) -> str:
    """Return the line for a refusal in a command with these options.

    Examples
    --------
    >>> said(Refusal("is outside (0, 1)", name="alpha_adverse", value=2), ["alpha_adverse"])
    '--alpha-adverse = 2 is outside (0, 1)'
    """
    if refusal.name in options and (refusal.where is None or refusal.where.unit != "line"):  # in a file
        refusal = copy.copy(refusal)
        refusal.name = flag(str(refusal.name))
    return sentence(refusal, spell)
