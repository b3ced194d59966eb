"""Pipes, and what is taken for one."""

import os
import sys

import pytest

from batches import texts
from boundwatch.errors import InvalidSetting
from boundwatch.watching import pipes
from boundwatch.watching.pipes import PipeSource, is_pipe


def test_a_pipe_that_cannot_be_waited_for_is_read(monkeypatch):
    """As on Windows, where only sockets can."""
    reading, writing = os.pipe()
    os.write(writing, b"0.1\n0.2\n")
    os.close(writing)

    def refuse(*_):
        raise OSError

    with os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        monkeypatch.setattr(pipes.select, "select", refuse)
        source = PipeSource("-")
        source.restless = True
        assert texts(source.batches()) == ["0.1", "0.2"]


def test_devices_are_refused():
    with pytest.raises(InvalidSetting, match="/dev/zero: is a device"):
        is_pipe("/dev/zero")
