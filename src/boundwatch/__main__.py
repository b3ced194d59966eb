"""The executable `boundwatch`: it imports nothing before it can say in one line why that failed."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C while it starts is one line and exit code 130, as it is later."""
    usual = signal.signal(signal.SIGINT, _end)
    try:
        from boundwatch.cli import load
        from boundwatch.cli import main as run
        from boundwatch.cli.root import COMMANDS

        if sys.argv[1:] and sys.argv[1] in COMMANDS:
            load(sys.argv[1])
    except (MemoryError, ImportError, OSError) as error:
        # The system refuses memory to a library that is being loaded in words of its own.
        words = ("cannot allocate", "failed to map")
        if not isinstance(error, MemoryError) and not any(word in str(error).lower() for word in words):
            raise
        sys.exit("boundwatch: there is not enough memory to start; free some, or use a larger machine")
    finally:
        signal.signal(signal.SIGINT, usual)
    run()


def _end(_number: int, _frame: FrameType | None) -> None:
    # Not an exception: libraries that are being loaded turn it into errors of their own.
    os.write(2, b"boundwatch: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
