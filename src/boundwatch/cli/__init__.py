"""The command line: one executable, ``boundwatch``, one file per command, or for some that are alike.

Every command reads, makes one call into the library, and prints. `root` says how to add one.
"""

from boundwatch.cli.root import app, load, main

__all__ = ["app", "load", "main"]
