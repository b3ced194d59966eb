"""The program: its commands, their help, and the way it ends.

A command lives in a file of its own, is listed in `COMMANDS`, and is one function::

    @command(example="boundwatch show certificate.json")
    def show(certificate: Path, *, as_json: bool = False) -> None: ...

`boundwatch.cli.options` says how its options are declared. Its file is imported when somebody asks for it.
Heavy packages (torch, matplotlib, pyarrow) are imported inside functions.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from boundwatch._support.describing import printable
from boundwatch._version import __version__
from boundwatch.cli.options import PANELS, RARE, WrongUsage, declared, parsed, said
from boundwatch.errors import BoundwatchError, Refusal

COMMANDS = (
    *(
        "demo",
        "audit",
        "certify",
        "keygen",
        "verify",
        "show",
        "check",
        "compare",
        "evaluate",
        "report",
        "card",
    ),
    *("watch", "serve", "token", "report-episode", "plan", "selftest", "train", "rollout"),
)
"""The order of the work, and of --help."""
_FILES = {"train": "tasks", "rollout": "tasks", "check": "judging", "report": "judging"}
_FILES |= dict.fromkeys(("show", "verify", "keygen"), "verifying")
_FILES |= dict.fromkeys(("serve", "token", "report-episode"), "monitor")
"""The files of commands that are not called as they are."""
_ABOUT = "Tell, with a guaranteed error rate, whether a policy does worse in a new place than in testing."
_ENDS = """--version prints the version.

Exit codes: 0 done; 1 error, an alarm that was not delivered, or a broken promise in selftest; 2 wrong
usage; 3 check, watch or compare, with --exit-code, found a worse world or policy, or did not show that it is
worse by at most the --margin."""
_TOGETHER = ("certify", "verify", "show", "check", "report", "watch")
"""The commands around a certificate, which need nearly the same: they are imported together."""
_COLUMN = 24  # where the help of options begins
_SIGPIPE = 141  # what a shell says of a program that ended as nobody read on
Function = TypeVar("Function", bound=Callable[..., Any])


class Command:
    """A function as a command, whose help ends with an example, one shell command per line.

    `takes` is what its ``**options`` go to, and what its help is about.
    """

    def __init__(
        self, function: Callable[..., Any], example: str, takes: Callable[..., Any] | None = None
    ) -> None:
        self.about, self.options, self._groups = declared(function, takes)
        self._function, self.example = function, example

    def __call__(self, words: Sequence[str], path: str) -> None:
        """Run it with the words of a command line that follow its name."""
        if not {"-h", "--help"}.isdisjoint(words[: [*words, "--"].index("--")]):
            print(self.help(path), end="")
            return
        try:
            arguments = parsed(self.options, words)
            for name, (build, names) in self._groups.items():
                arguments[name] = build(**{each: arguments.pop(each) for each in names})
            self._function(**arguments)
        except WrongUsage as wrong:
            wrong.path = wrong.path or path
            raise

    def help(self, path: str) -> str:
        """Return what it does and its options: in groups, if it reads a file, rare ones at their ends."""
        panels: dict[str, list[str]] = {title: [] for title in PANELS}
        also: dict[str, list[str]] = {}
        reads = any(each.name == "success_values" for each in self.options)
        words = ["usage:", path]
        for each in self.options:
            if not each.flags:
                words.append(f"[{each.metavar.strip('[]')}]" if each.default is None else each.metavar)
            title = "Arguments" if not each.flags else each.panel if reads else "Options"
            if reads and RARE.fullmatch(each.name):
                text = f"{each.text[:1].lower()}{each.text[1:].removesuffix('.')}"
                also.setdefault(title, []).append(f"{each.heading} ({text})")
            else:
                panels[title].append(_entry(each.heading, each.help))
        last = _entry("-h, --help", "Show this message and exit.")
        words += [*self._first(), "..."] if reads else ["[OPTIONS]"]
        panels["The output" if reads else "Options"].append(last)
        lines = [_filled(" ".join(words), "", "  "), "", _filled(self.about)]
        for title in filter(panels.__getitem__, panels):
            lines += [f"{title}:", *panels[title]]
            if title in also:
                lines.append(_filled(f"Also: {', '.join(also[title])}.", "  ", "    "))
        return "\n".join([*lines, "Example:", *(f"    {line}" for line in self.example.splitlines()), ""])

    def _first(self) -> list[str]:
        """Return the three options that matter first: those of the example."""
        named = {flag: each for each in self.options for flag in each.flags}
        used = dict.fromkeys(filter(named.__contains__, self.example.split()))
        return [
            f"[{' '.join([flag, *[named[flag].metavar][named[flag].kind is bool :]])}]"
            for flag in [*used][:3]
        ]


class Group:
    """Commands by name, each found when somebody asks for it."""

    def __init__(
        self, about: str, names: Callable[[], Iterable[str]], find: Callable[[str], Any], ends: str = ""
    ) -> None:
        self.about, self.find, self.names, self._ends = about, find, names, ends

    def __call__(self, words: Sequence[str], path: str) -> None:
        """Run the command that the first word names, with the others."""
        name, *others = words or [""]
        if name in self.names():
            self.find(name)(others, f"{path} {name}")
        elif name in ("-h", "--help"):
            print(self.help(path))
        elif name == "--version" and self is app:
            print(f"boundwatch {__version__}")
        else:
            near = ", ".join(map(repr, get_close_matches(name, self.names())))
            wrong = WrongUsage(f"No such command {name!r}. {f'Did you mean {near}?' if near else ''}".strip())
            wrong.path = path
            raise wrong if name else WrongUsage(self.help(path))

    def help(self, path: str) -> str:
        """Return what the commands do, a line for each."""
        column = max(map(len, self.names())) + 4
        firsts = {name: self.find(name).about.split("\n\n")[0] for name in self.names()}
        lines = [f"usage: {path} [OPTIONS] COMMAND [ARGS]...", "", _filled(self.about), "", "Commands:"]
        lines += [
            f"  {name}".ljust(column) + textwrap.shorten(first, _width() - column, placeholder="...")
            for name, first in firsts.items()
        ]
        return "\n".join([*lines, "", _filled(self._ends)] if self._ends else lines)


PARTS: dict[str, Any] = {}
"""The commands, and groups of them, whose files were imported."""


def command(*, example: str, group: dict[str, Any] = PARTS) -> Callable[[Function], Function]:
    """Make a function a command, of the program or of a `group`; see `Command`."""

    def register(function: Function) -> Function:
        name = function.__name__.rstrip("_").replace("_", "-")
        group[name] = Command(function, example)
        return function

    return register


def load(name: str) -> Any:
    """Import the file of a command and return the command."""
    for each in _TOGETHER if name in _TOGETHER else (name,):
        import_module(f"boundwatch.cli.{_FILES.get(each, each.replace('-', '_'))}")
    return PARTS[name]


app = Group(_ABOUT, COMMANDS.__iter__, load, _ENDS)


def main(application: Callable[[Sequence[str], str], None] = app, name: str = "boundwatch") -> None:
    """Run a command line; an error that was foreseen is one line on stderr and exit code 1."""
    # Large files make many objects without cycles: rarely look for garbage among them.
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 50, 50)
    try:
        _refuse_closed()
        try:
            application(sys.argv[1:], name)
            sys.exit(0)
        finally:
            gc.set_threshold(*usual)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
    except WrongUsage as wrong:
        _say_usage(str(wrong), wrong.path or name)
        sys.exit(2)
    except BoundwatchError as error:
        message = " ".join(
            (said(error, _known_options()) if isinstance(error, Refusal) else str(error)).split()
        )
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
            _end_if_unread(error)
    print(f"{name}: {printable(message)}", file=sys.stderr)
    sys.exit(1)


def _refuse_closed() -> None:
    """Refuse to print where nobody can read: a file that is opened would take the place of the output."""
    if sys.stderr is None:  # else what is said there would get among the results
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end
    if sys.stdout is None:
        raise BoundwatchError("cannot print the result, standard output is closed; send it to a file")


def _end_if_unread(error: OSError) -> None:
    """End without a word, with a verdict's code, if a pipe's reader has what it wanted: ``| head -1``."""
    if isinstance(error, BrokenPipeError):
        ended = error.__context__  # a verdict that was still to be written when the program ended with it
        sys.exit((ended.code if isinstance(ended, SystemExit) else 0) or _SIGPIPE)


def _known_options() -> set[str]:
    single = (each for each in PARTS.values() if isinstance(each, Command))
    return {option.name for each in single for option in each.options if option.flags}


def _say_usage(text: str, path: str) -> None:
    """Say what is wrong in one line, or print the help of a group without a command."""
    if "\n" in text:  # the message is the help
        print(text, file=sys.stderr)
    else:
        end = "" if text.endswith((".", "?", ")")) else "."
        print(f"{path}: {printable(text)}{end} Try {path} --help.", file=sys.stderr)


def _width() -> int:
    return max(50, min(shutil.get_terminal_size().columns, 100))


def _entry(heading: str, text: str) -> str:
    """Return an option or an argument, with what it means in a column beside it."""
    return _filled(text, f"  {heading}  ".ljust(_COLUMN), " " * _COLUMN)


def _filled(text: str, first: str = "  ", indent: str = "  ") -> str:
    """Return paragraphs, each filled."""
    filled = textwrap.TextWrapper(_width(), first, indent, break_on_hyphens=False).fill
    return "\n\n".join(filled(" ".join(part.split())) for part in text.split("\n\n"))
