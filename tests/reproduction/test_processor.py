"""One instruction set: asked for in time, recorded, and said to be missing where it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch  # noqa: F401  (too early for a pin)
from reproduction.processor import PINNED

from reproduction import processor

TELL = "print(processor.is_pinned(), processor.instructions())"
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
    pinned = told("from reproduction import processor; processor.pin()\n" + TELL)
    capability = pinned.split()[1]
    if capability == "AVX2":
        assert pinned.startswith(
            "True AVX2 (ATEN_CPU_CAPABILITY=avx2, ONEDNN_MAX_CPU_ISA=AVX2, MKL_CBWR=COMP"
        )
    else:  # a processor without it: said, not hidden
        assert pinned.startswith("False")


def test_a_pin_that_comes_too_late_is_said(monkeypatch):
    for name in PINNED:
        monkeypatch.delenv(name, raising=False)
    assert {"numpy", "torch"} <= sys.modules.keys()  # they are loaded
    processor.pin()
    assert not processor.is_pinned()
    assert "MKL_CBWR=any" in processor.instructions()


def test_another_choice_stays_and_is_said():
    stand_in = "import sys; from unittest import mock; sys.modules['torch'] = torch = mock.Mock()\n"
    stand_in += "torch.backends.cpu.get_cpu_capability.return_value = 'AVX2'\n"  # as on any processor
    pin = "from reproduction import processor; processor.pin()\n"
    assert told(pin + stand_in + TELL).startswith("True AVX2")
    found = told(pin + stand_in + TELL, MKL_CBWR="AUTO")
    assert found.startswith("False")
    assert "MKL_CBWR=AUTO" in found


@pytest.mark.slow
def test_pinned_training_does_not_depend_on_what_else_the_processor_offers():
    """The control: without the pin, another instruction set gives another policy."""
    pin = "from reproduction import processor; processor.pin()\n"
    fewer = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ"}
    assert told(pin + TRAIN) == told(pin + TRAIN, **fewer)
    assert told(pin + TRAIN) != told(TRAIN, ONEDNN_MAX_CPU_ISA="SSE41", MKL_CBWR="COMPATIBLE")
