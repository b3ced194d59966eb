"""torch stays out until training is imported, and is named as an extra when it is missing."""

import subprocess
import sys

LIGHT = """
import sys, boundwatch, boundwatch.tasks.base
heavy = {"torch", "joblib", "ray", "matplotlib"} & set(sys.modules)
sys.exit(", ".join(sorted(heavy)))
"""
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from boundwatch.errors import MissingExtra
try:
    import boundwatch.training
except MissingExtra as error:
    sys.exit(str(error))
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    ).stderr.strip()


def test_importing_boundwatch_does_not_import_torch():
    assert run(LIGHT) == ""


def test_training_without_torch_names_the_extra():
    assert "boundwatch.training needs an optional dependency" in run(WITHOUT_TORCH)
    assert "pip install 'boundwatch[train]'" in run(WITHOUT_TORCH)
