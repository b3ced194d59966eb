"""How commands declare options: a typed parameter each, and one entry about it in a docstring.

Below the heading ``Options``, an entry is ``name METAVAR: help``. Keyword-only parameters are options, others
are arguments. A parameter whose type is a dataclass stands for an option per field, with their entries in
the docstring of that class; what several commands have has its entry here. ``Annotated[int, AT_LEAST_1]``
is a number in a range. Refusals name arguments, which become flags here and nowhere else.
"""

from __future__ import annotations

import copy
import inspect
import math
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from boundwatch.errors import NOTHING, Argument, Refusal, sentence

AT_LEAST_1 = (1, math.inf)
AT_LEAST_0 = (0, math.inf)
NEEDED = inspect.Parameter.empty
"""The default of what must be given."""
PANELS = ("Arguments", "The verdict", "The file", "The output", "Options")
_NEGATIVE = re.compile(r"-(\.?\d|inf|nan)").match
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
_FLAGS |= {"cost_a": "compare", "cost_b": "compare", "within": "width", "sizes": "n"}  # of the library
_PLACEHOLDERS = {
    "success_values": "WORD,WORD",
    "cost_range": "LOW HIGH",
    "where": "COL=VALUE",
    "pair_by": "COL,COL",
    **dict.fromkeys(("success", "cost", "reward", "strata", "cluster", "by", "policy", "episode"), "COL"),
    **dict.fromkeys(("successes", "failures", "trials", "count", "fill_down", "judge", "show"), "COL"),
    "labels": "FILE",
    "reduce": "RULE",
    "empty_as": "X",
    "sheet": "NAME",
}

Texts = dict[str, tuple[str, str]]
"""The metavar and the help of an option, by the name of its parameter."""
Groups = dict[str, tuple[Any, list[str]]]
"""Parameters that stand for several options: what is built, and of which."""


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

    @property
    def size(self) -> int:
        """How many words are its value."""
        return 0 if self.kind is bool else len(get_args(self.kind)) if get_origin(self.kind) is tuple else 1

    def read(self, text: str, others: Sequence[Option] = ()) -> Any:
        """Return the value of a word; refuse one that is none, and name which of the others takes it."""
        called = "/".join(self.flags) or self.metavar
        inner = get_args(self.kind)
        if get_origin(self.kind) is Literal and text not in inner:
            taken = [one.flags[0] for one in others if one.flags and text in get_args(one.kind)]
            choices = (
                f"(choose from {', '.join(map(repr, inner))}){f'; {taken[0]} takes it' if taken else ''}"
            )
            raise WrongUsage(f"{called}: invalid choice: {text!r} {choices}")
        kind: Any = str if get_origin(self.kind) is Literal else inner[0] if inner else self.kind
        try:
            value = kind(text)
        except ValueError:
            whole = "whole " if kind is int else ""
            raise WrongUsage(f"{called}: {text!r} is not a {whole}number") from None
        least, most = self.limits
        if self.limits != Option.limits and not least <= value <= most:
            within = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise WrongUsage(f"{called}: {text} is not {within}")
        return value


def parsed(options: Sequence[Option], words: Sequence[str]) -> dict[str, Any]:
    """Return the values of a command line, by the names of parameters; what follows -- is no option."""
    flags = {each: option for option in options for each in option.flags}
    found: dict[str, Any] = {}
    plain, unknown, rest = list[str](), list[str](), list(reversed(words))
    while rest and (word := rest.pop()) != "--":
        head, equals, value = word.partition("=")
        if head not in flags and word[:2] in flags:  # -n50
            head, equals, value = word[:2], "=", word[2:]
        if head in flags:
            found |= _taken(flags[head], head, [value] if equals else [], rest, found, options)
        else:
            (unknown if _is_option(word) else plain).append(word)
    plain += reversed(rest)
    for option in options:
        if not option.flags:
            several = get_origin(option.kind) is list
            values = [option.read(plain.pop(0)) for _ in range(len(plain) if several else len(plain[:1]))]
            found |= {option.name: values if several else values[0]} if values else {}
    missing = {option.name: option.default for option in options if option.name not in found}
    if NEEDED in missing.values():
        needed = [each for each in options if missing.get(each.name) is NEEDED]
        names = [each.metavar for each in needed if not each.flags]
        names += ["/".join(each.flags) for each in needed if each.flags]
        raise WrongUsage(f"the following arguments are required: {', '.join(names)}")
    if unknown or plain:
        raise WrongUsage(f"unrecognized arguments: {' '.join([*unknown, *plain])}")
    return missing | found


def _taken(
    option: Option,
    flag: str,
    values: list[str],
    rest: list[str],
    found: Mapping[str, Any],
    options: Sequence[Option],
) -> dict[str, Any]:
    """Take the words of an option: each once, but for lists; a flag takes none."""
    called, size = "/".join(option.flags), option.size
    while len(values) < size and rest and not _is_option(rest[-1]):
        values.append(rest.pop())
    if len(values) != size:
        problem = "expected one argument" if size == 1 else f"expected {size} arguments"
        if not size:
            problem = "takes no value"
        elif rest[-1:] == ["--"]:
            problem = "needs its value before --"
        raise WrongUsage(f"{called}: {problem}")
    read = [option.read(value, options) for value in values]
    if get_origin(option.kind) is list:
        return {option.name: [*found.get(option.name, ()), *read]}
    if option.name in found:
        raise WrongUsage(f"{called}: can be given once")
    if not size:
        return {option.name: not flag.startswith("--no-") or len(option.flags) == 1}
    return {option.name: tuple(read) if get_origin(option.kind) is tuple else read[0]}


def _is_option(word: str) -> bool:
    """Return whether a word stands for an option: not a dash, a number or a text with spaces."""
    return word.startswith("-") and word != "-" and " " not in word and not _NEGATIVE(word)


def declared(
    function: Callable[..., Any], takes: Callable[..., Any] | None = None
) -> tuple[str, list[Option], Groups]:
    """Return what a command says of itself, its options, and those that are one parameter together.

    If it takes ``**options``, those are the keyword-only parameters of `takes`, whose docstring is the help.
    """
    said, texts = _split(function.__doc__)
    said = said if takes is None else _split(takes.__doc__)[0]
    hints = get_type_hints(function, include_extras=True)
    options: list[Option] = []
    groups: Groups = {}
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
    return said, options, groups


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
    name = _FLAGS.get(name, name)
    dashes = "" if name.isupper() else "-" if len(name) == 1 else "--"
    return f"{dashes}{name.replace('_', '-')}"


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
    name = flag(str(refusal.name))
    if name in map(flag, options) and (refusal.where is None or refusal.where.unit != "line"):  # in a file
        refusal = copy.copy(refusal)
        refusal.name = name
    return sentence(refusal, spell)
