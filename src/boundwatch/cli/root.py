"""The application that commands register with, and the way it ends.

A command lives in a file of its own and is one function::

    @command(example="boundwatch show certificate.json")
    def show(certificate: Path, *, as_json: bool = False) -> None: ...

`boundwatch.cli.options` says how its options are declared. `boundwatch.cli` imports the file. Heavy packages
(torch, matplotlib, pyarrow) are imported inside functions: every command pays for what files import at their
top.
"""

from __future__ import annotations

import gc
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar, cast

import typer
from typer.core import TyperCommand

from boundwatch._support.describing import printable
from boundwatch._version import __version__
from boundwatch.cli.options import PANELS, RARE, as_options
from boundwatch.cli.spelling import said
from boundwatch.errors import BoundwatchError, Refusal


def new_app(**settings: Any) -> typer.Typer:
    """Return a program whose help can be piped and pasted, to which `command` adds commands."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )


app = new_app(name="boundwatch", no_args_is_help=True)

# Typer carries click inside or needs it beside, according to its version, and exports of its errors this one.
_WrongUsage = cast("type[Exception]", typer.BadParameter.__base__)
Function = TypeVar("Function", bound=Callable[..., Any])


class _Command(TyperCommand):
    """A command that refuses an option given twice, of which the first would be ignored.

    Its help fits on a screen: options that judge, read and write, each on a line, and the rare ones of a file
    in a paragraph.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options: in groups if the command reads a file."""
        reads = any(each.name == "success_values" for each in self.params)
        groups: dict[str, list[Any]] = {name: [] for name in (*PANELS, "Options")}
        for each in self.get_params(ctx):
            panel = getattr(each, "rich_help_panel", None) or PANELS[-1] if reads else "Options"
            groups[PANELS[0] if each.param_type_name == "argument" else panel].append(each)
        formatter.write_paragraph()
        for title, options in groups.items():
            if records := list(filter(None, (each.get_help_record(ctx) for each in options))):
                formatter.write(f"{title}:\n")
                rare = [each.get_help_record(ctx) for each in options if reads and RARE.fullmatch(each.name)]
                listed = ", ".join(f"{flag} ({text})" for flag, text in rare)
                with formatter.indentation():
                    formatter.write_dl([each for each in records if each not in rare], col_max=26)
                if rare:
                    fill = textwrap.TextWrapper(formatter.width, "  ", "  ", break_on_hyphens=False).fill
                    formatter.write(fill(f"Also: {listed}.") + "\n")

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        formatter.write("Example:\n" + "".join(f"    {each}\n" for each in str(self.epilog).splitlines()))

    def make_parser(self, ctx: Any) -> Any:
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            found = parse(args)
            for given, times in Counter(found[2]).items():
                if times > 1 and given.param_type_name == "option" and not given.multiple:
                    raise typer.BadParameter("can be given once", ctx=ctx, param=given)
            return found

        parser.parse_args = parse_once
        return parser


def command(
    *,
    example: str,
    group: typer.Typer = app,
    takes: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Register a function as a command whose help ends with an example, one shell command per line.

    `takes` is what its ``**options`` go to, and what its help is about.
    """
    add = group.command(cls=_Command, epilog=example)

    def register(function: Function) -> Function:
        add(as_options(function, takes))
        return function

    return register


def main(application: typer.Typer = app, name: str = "boundwatch") -> None:
    """Run a command line; an error that was foreseen is one line on stderr and exit code 1."""
    # Large files make many objects without cycles: rarely look for garbage among them.
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 50, 50)
    try:
        try:
            # Not standalone, in which mode it says what is wrong in four lines of its own.
            sys.exit(built(application)(prog_name=name, standalone_mode=False))
        finally:
            gc.set_threshold(*usual)
            sys.stdout.flush()
    except KeyboardInterrupt:  # before typer waits for it, or after
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
    except BoundwatchError as error:
        commands = getattr(built(application), "commands", {}).values()
        options = {
            str(each.name) for one in commands for each in one.params if each.param_type_name == "option"
        }
        message = " ".join((said(error, options) if isinstance(error, Refusal) else str(error)).split())
    except _WrongUsage as wrong:
        _say_usage(wrong, name)
    except MemoryError:
        message = "there is not enough memory for this; give fewer episodes, or a larger machine"
    except RecursionError:
        message = "something in a file is nested too deeply to be read; check what was given"
    except OSError as error:
        if error.filename is not None:  # not known of the streams
            message = f"{error.filename}: cannot be used, {error.strerror}; check the path"
        else:
            message = f"cannot print the result, {error.strerror}; free some disk space, or check the pipe"
            # What is left in the buffer would fail once more when Python ends, with a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    print(f"{name}: {printable(message)}", file=sys.stderr)
    sys.exit(1)


def _say_usage(wrong: Any, name: str) -> NoReturn:
    """End with 2 after one line that says what is wrong, or after the help of a group without a command."""
    where = name if wrong.ctx is None else wrong.ctx.command_path
    text = wrong.format_message()
    if "\n" in text.strip():  # the message is the help
        print(text, file=sys.stderr)
    else:
        text = text.replace("Value error, ", "")  # whatever checks choices for typer adds that
        end = "" if text.endswith((".", "?", ")")) else "."
        print(f"{where}: {printable(text)}{end} Try {where} --help.", file=sys.stderr)
    sys.exit(2)


@cache
def built(application: typer.Typer) -> Any:
    """Return the program with all of its commands; typer would build them again at every call."""
    return typer.main.get_command(application)


def _print_version(value: bool) -> None:
    if value:
        print(f"boundwatch {__version__}")
        raise typer.Exit


@app.callback(
    epilog="Exit codes: 0 done; 1 error, an alarm that was not delivered, or a broken promise in selftest; "
    "2 wrong usage; 3 check, watch or compare, with --exit-code, found a worse world or policy, or did not "
    "show that it is worse by at most the --margin."
)
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Tell, with a guaranteed error rate, whether a policy does worse in a new place than in testing."""
