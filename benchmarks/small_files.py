"""What `boundwatch certify` takes of memory and time for small files that claim to be large.

Each is a process of its own. It ends with a certificate or with one line of refusal; both are counted.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pyarrow.parquet

MOST_MB, MOST_SECONDS = 1000, 10.0
_PROGRAM = "from boundwatch.cli import main; main()"
# A process begins with the memory of the one that starts it, which must be small.
_START = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
said = process.stdout.read()
_, status, used = os.wait4(process.pid, 0)
found = {"mb": used.ru_maxrss // 1024, "seconds": round(time.perf_counter() - began, 2)}
print(json.dumps({**found, "exit": os.waitstatus_to_exitcode(status), "said": said[-300:]}))
"""


def huge_array() -> bytes:
    """Return 128 bytes that claim to be 800 GB of costs."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }"
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def far_cell() -> bytes:
    """Return a workbook of 5 kB with a value in the last cell that there is."""
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(["cost"])
    sheet.append([0.5])
    sheet["XFD1048576"] = 1
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def unread_column() -> bytes:
    """Return 2,000 costs beside a column that would take 2 GB, and that nobody asked for."""
    text = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 2000, pyarrow.int32()), pyarrow.array(["x" * 1_000_000])
    )
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"cost": [0.5] * 2000, "big": text}), out)
    return out.getvalue()


FILES: dict[str, tuple[Callable[[], bytes], int | None]] = {
    "an array of 800 GB in 128 bytes": (huge_array, None),
    "the cell XFD1048576": (far_cell, 1),
    "gzip of 800 MB of rows": (
        lambda: gzip.compress(b"cost\n") + 20 * gzip.compress(b"0\n" * 20_000_000),
        None,
    ),
    "gzip of 800 MB of zeros": (lambda: 20 * gzip.compress(b"\0" * 40_000_000), None),
    "Parquet with 2 GB that is not read": (unread_column, 2000),
    "a header 20,000 times": (lambda: b"cost\n0.5\n" * 20_000, 20_000),
    "12 MB behind a quote that stays open": (lambda: b'cost,note\n0,"\n' + b"0,0\n" * 3_000_000, None),
    "3 million quotes that open a line": (lambda: b"cost\n" + b'"0\n' * 3_000_000, None),
    "12 MB of quotes": (lambda: b"cost\n" + b'"' * 12_000_000, None),
    "a line of 9 MB": (lambda: b"cost\n" + b"0" * 9_000_000, None),
}
"""What makes each file, and how many episodes it has; None if it is refused."""


def run() -> dict[str, Any]:
    """Certify each file and return what that took."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, _) in FILES.items():
            path, to = Path(folder) / "hostile", Path(folder) / "certificate.json"
            path.write_bytes(make())
            command = [sys.executable, "-c", _PROGRAM, "certify", str(path), "-o", str(to)]
            done = subprocess.run([sys.executable, "-c", _START, *command], capture_output=True, check=True)
            to.unlink(missing_ok=True)
            found[name] = {"bytes": path.stat().st_size, **json.loads(done.stdout)}
    return {"limit_mb": MOST_MB, "limit_seconds": MOST_SECONDS, "files": found}


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    for name, row in result["files"].items():
        is_fine = row["mb"] < result["limit_mb"] and row["seconds"] < result["limit_seconds"]
        ended = "certified" if row["exit"] == 0 else "refused"
        print(
            f"  {name:34} {row['bytes']:>10,} bytes  {row['mb']:5} MB  {row['seconds']:5.2f} s  {ended}"
            f"{'' if is_fine else '  ABOVE THE LIMIT'}"
        )
