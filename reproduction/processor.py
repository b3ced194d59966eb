"""One instruction set for everybody: the same seeds should give the same numbers on another processor.

PyTorch, oneDNN, MKL and NumPy choose their kernels by what the processor offers, and different kernels round
differently. Training amplifies that: the policies, and with them rows near their limit, change.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

PINNED = {
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch's own kernels
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # its convolutions
    "MKL_CBWR": "COMPATIBLE",  # its matrix products; MKL's AVX2 branch is for Intel's processors alone
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",  # NumPy's sines and exponentials
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy's and SciPy's matrix products
}
"""What is set before any of the libraries is loaded; each reads its variable once. AVX2 with FMA is what
every x86-64 processor has that is newer than 2015."""


def pin() -> None:
    """Ask the libraries for AVX2; whatever is set already stays as it is.

    Processes that are started later inherit it. Too late once a library is loaded: `instructions` says so.
    """
    if not {"numpy", "torch"} & sys.modules.keys():
        for name, value in PINNED.items():
            os.environ.setdefault(name, value)


def is_pinned() -> bool:
    """Tell whether another processor should give the numbers of this process.

    Not on one without AVX2, nor after another choice by whoever started it, nor if `pin` came too late.
    """
    return instructions() == f"AVX2 ({_listed(PINNED)})"


def instructions() -> str:
    """Say what this process computes with; part of every artifact's key.

    Examples
    --------
    >>> instructions().split()[0] in ("AVX512", "AVX2", "DEFAULT", "NO", "SVE256")
    True
    """
    import torch

    found = {name: os.environ.get(name, "any") for name in PINNED}
    return f"{torch.backends.cpu.get_cpu_capability()} ({_listed(found)})"


def _listed(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in variables.items())
