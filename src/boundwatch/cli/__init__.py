"""The command line: one executable, ``boundwatch``, one file per command (`tasks` has two).

Every command reads, makes one call into the library, and prints. `root` says how to add one.
"""

from boundwatch.cli.root import app, main

# Importing a command registers it; --help lists them in this order, the order of the work.
# isort: off
from boundwatch.cli import demo as demo
from boundwatch.cli import tasks as tasks
from boundwatch.cli import certify as certify
from boundwatch.cli import audit as audit
from boundwatch.cli import keygen as keygen
from boundwatch.cli import verify as verify
from boundwatch.cli import show as show
from boundwatch.cli import check as check
from boundwatch.cli import compare as compare
from boundwatch.cli import evaluate as evaluate
from boundwatch.cli import report as report
from boundwatch.cli import card as card
from boundwatch.cli import watch as watch
from boundwatch.cli import scenes as scenes
from boundwatch.cli import serve as serve
from boundwatch.cli import token as token
from boundwatch.cli import report_episode as report_episode
from boundwatch.cli import plan as plan
from boundwatch.cli import selftest as selftest
# isort: on

__all__ = ["app", "main"]
