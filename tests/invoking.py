"""A command line that is run in this process."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from boundwatch.cli import app, main


class Done(NamedTuple):
    exit_code: int
    out: str
    err: str

    @property
    def output(self):
        return self.out + self.err


def invoke(words, application=app, stdin=""):
    """Return how it ended, and what it printed."""
    said, warned = io.StringIO(), io.StringIO()
    arguments = ["boundwatch", *map(str, words)]
    with (
        mock.patch.multiple(sys, argv=arguments, stdin=io.StringIO(stdin)),
        redirect_stdout(said),
        redirect_stderr(warned),
    ):
        try:
            main(application)
        except SystemExit as end:
            return Done(end.code or 0, said.getvalue(), warned.getvalue())
    raise AssertionError("a program ends")
