"""Ctrl-C and SIGTERM: they end a watch while it waits, never between counting a line and storing it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from boundwatch.readers.lines import Batch


@dataclass
class Interrupted:
    """Whether Ctrl-C was pressed, and whether it may end the wait at once."""

    now: bool = False
    waiting: bool = False

    def while_waiting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches; only the wait for the next one is cut short."""
        while not self.now:
            self.waiting = True
            batch = next(batches, None)
            self.waiting = False
            if batch is None:
                return
            yield batch


@contextmanager
def interrupted_between_batches() -> Iterator[Interrupted]:
    """End at Ctrl-C and SIGTERM, but never between counting a line and storing it."""
    interrupted = Interrupted()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def stop(*_: object) -> None:
        interrupted.now = True
        if interrupted.waiting:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    except KeyboardInterrupt:
        pass  # the usual end of a file that is followed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
