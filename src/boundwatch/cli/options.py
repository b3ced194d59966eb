"""How commands declare options: a typed parameter each, and one entry about it in a docstring.

Below the heading ``Options``, an entry is ``name METAVAR: help``. Keyword-only parameters are options, others
are arguments. A parameter whose type is a dataclass stands for an option per field, with their entries in
the docstring of that class; what several commands have has its entry here. ``Annotated[int, AT_LEAST_1]``
hands further arguments to typer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from boundwatch.cli.spelling import flag

AT_LEAST_1 = {"min": 1}
AT_LEAST_0 = {"min": 0}
_HEADING = "\n\nOptions\n-------\n"
_SHORT = {"output": "-o"}
_SHARED = """
certificate CERTIFICATE: Certificate, as `boundwatch certify` writes it.
costs COSTS: A row per episode: CSV, XLSX, JSON, ..., or a log; - is standard input.
evaluation EVAL: What `boundwatch evaluate start` wrote.
station NAME: Who runs the trial, where there are several.
by COL: Column of tasks or robots, judged one by one under one error rate.
margin COST: Also: do the data show that the cost rose by at most this much?
key PUB: Public key; refuse a certificate that its holder did not sign.
allow_own: Judge even the certificate's own costs, as a rehearsal.
no_title: Leave the title out of the figure, for a paper that has a caption.
force: Replace a file that boundwatch did not write; never an input.
as_json: Print JSON.
exit_code: Exit with 3 on ADVERSE or, with --margin, until it is shown.
database URL: SQLite file, or postgresql://user@host/name. [default: boundwatch.sqlite]
config FILE: TOML file with the same settings.
"""
RARE = re.compile("failures|trials|count|timeout_as|empty_as|fill_down|weights|reduce|file_format")
"""Options of a file that few people need: a few words each, together."""
PANELS = ("Arguments", "The verdict", "The file", "The output")
_OF_OUTPUT = re.compile(
    "output|plot|no_title|report|title|robot|site|sign|policy_file|force|as_json|exit_code|on_alarm|interval"
)
_OF_FILE = re.compile(
    "by|policy|costs|follow|tasks|state|number|allow_gaps|skip_.*|predicted|unlabeled|against"
)
"""What is about the output and the file, besides the options of `Reading`; all else is about the verdict."""

Texts = dict[str, tuple[str | None, str]]
"""The metavar and the help of an option, by the name of its parameter."""


def as_options(function: Callable[..., Any], takes: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return a command for typer: what its docstring says becomes the help of it and of its options.

    If it takes ``**options``, those are the keyword-only parameters of `takes`, whose docstring is the help.
    """
    said, texts = _split(function.__doc__)
    said = said if takes is None else _split(takes.__doc__)[0]
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[str]]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and takes is not None:
            parameters += _keywords(takes)
        elif is_dataclass(kind := hints[name]):
            own = [each for each in fields(kind) if each.name not in hints]
            about, types = _split(kind.__doc__)[1], get_type_hints(kind, include_extras=True)
            panel = getattr(kind, "panel", None)
            option = parameter.replace(kind=parameter.KEYWORD_ONLY)
            parameters += [
                _option(option.replace(name=each.name, default=each.default), types[each.name], about, panel)
                for each in own
            ]
            groups[name] = (kind, [each.name for each in own])
        else:
            parameters.append(_option(parameter, kind, texts))

    if unknown := set(texts) - set(hints):
        raise TypeError(f"{function.__name__} says something about {unknown}, which it does not take")

    def run(**arguments: Any) -> Any:
        for name, (build, names) in groups.items():
            arguments[name] = build(**{each: arguments.pop(each) for each in names})
        return function(**arguments)

    run.__name__, run.__doc__ = function.__name__.rstrip("_"), said
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


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
        found[name] = (metavar or None, " ".join(text.split()))
    return found


def _option(
    parameter: inspect.Parameter, hint: Any, texts: Texts, panel: str | None = None
) -> inspect.Parameter:
    """Return a parameter as typer wants it, unless it is that already."""
    kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    name, is_argument = parameter.name, parameter.kind is not parameter.KEYWORD_ONLY
    if not more or isinstance(more[0], dict):
        metavar, text = texts.get(name) or _entries(_SHARED).get(name) or (None, None)
        settings: dict[str, Any] = {"metavar": metavar, "help": text, **(more[0] if more else {})}
        about = "output" if _OF_OUTPUT.fullmatch(name) else "file" if _OF_FILE.fullmatch(name) else "verdict"
        settings["rich_help_panel"] = panel or f"The {about}"
        flags = [f"-{name}"] if len(name) == 1 else [flag(name), *filter(None, [_SHORT.get(name)])]
        if kind == bool | None:
            flags = [f"{flag(name)}/{flag(f'no_{name}')}"]
        hint = Annotated[
            kind, typer.Argument(**settings) if is_argument else typer.Option(*flags, **settings)
        ]
    return parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)


def _keywords(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yield the keyword-only parameters of a function as options, with what its docstring says of them."""
    texts = _split(function.__doc__)[1]
    wanted = [
        each for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY
    ]
    for each in wanted:  # one by one, as a return type may be known to type checkers only
        kinds = type("Kinds", (), {"__annotations__": {each.name: each.annotation}})
        hints = get_type_hints(kinds, inspect.unwrap(function).__globals__, include_extras=True)
        yield _option(each, hints[each.name], texts)


def refuse(options: Mapping[str, object], why: str) -> None:
    """Refuse the first option, by its parameter's name, that was given."""
    for name, value in options.items():
        if not (value is None or value is False or value == []):
            raise typer.BadParameter(f"{flag(name)} {why}")


def refuse_if(faults: Mapping[str, bool]) -> None:
    """Refuse options that do not go together: the first sentence that is true."""
    for fault, is_true in faults.items():
        if is_true:
            raise typer.BadParameter(fault)
