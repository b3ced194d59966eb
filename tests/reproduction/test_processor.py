"""One instruction set: asked for in time, recorded, and said to be missing where it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from reproduction.processor import PINNED

TELL = "; print(processor.is_pinned(), processor.instructions())"
TRAIN = """
import hashlib, sys, tempfile
from pathlib import Path
from boundwatch.tasks.navigation.train import train
from doctored.tiny import RECIPE
with tempfile.TemporaryDirectory() as folder:
    train(RECIPE, Path(folder))
    print(hashlib.sha256((Path(folder) / "policy.safetensors").read_bytes()).hexdigest())
"""


def told(code: str, **environment: str) -> str:
    """Return what a fresh process prints."""
    inherited = {name: value for name, value in os.environ.items() if name not in PINNED}
    paths = os.pathsep.join(path for path in sys.path if path)
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_the_instruction_set_is_pinned_before_the_libraries_load():
    pinned = told("from reproduction import processor; processor.pin()" + TELL)
    capability = pinned.split()[1]
    if capability == "AVX2":
        assert pinned.startswith(
            "True AVX2 (ATEN_CPU_CAPABILITY=avx2, ONEDNN_MAX_CPU_ISA=AVX2, MKL_CBWR=COMP"
        )
    else:  # a processor without it: said, not hidden
        assert pinned.startswith("False")


@pytest.mark.parametrize(
    ("code", "environment", "part"),
    [
        ("import numpy; from reproduction import processor; processor.pin()", {}, "MKL_CBWR=any"),
        ("from reproduction import processor; processor.pin()", {"MKL_CBWR": "AUTO"}, "MKL_CBWR=AUTO"),
    ],
)
def test_what_is_not_pinned_is_said(code, environment, part):
    found = told(code + TELL, **environment)
    assert found.startswith("False")
    assert part in found


@pytest.mark.slow
def test_pinned_training_does_not_depend_on_what_else_the_processor_offers():
    """The control: without the pin, another instruction set gives another policy."""
    pin = "from reproduction import processor; processor.pin()\n"
    fewer = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ"}
    assert told(pin + TRAIN) == told(pin + TRAIN, **fewer)
    assert told(pin + TRAIN) != told(TRAIN, ONEDNN_MAX_CPU_ISA="SSE41", MKL_CBWR="COMPATIBLE")
