"""Compute the regions of counts that the package ships: ``python tools/generate_regions.py``; two minutes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from boundwatch import comparison
from boundwatch._support.files import write_bytes
from boundwatch.comparison.region import LAST_PAIR, TABLES, design_region

ALPHAS = (0.1, 0.05, 0.04, 0.025, 0.02, 0.0125, 0.01, 0.005, 0.0025, 0.001)
# Rankings of three to six policies at 0.1 and 0.05: the first pair that is decided, and the others.
SHARED = tuple(alpha / n for alpha in (0.1, 0.05) for k in (3, 4, 5, 6) for n in (k * (k - 1), (k - 1) ** 2))


def main() -> None:
    """Write them beside the module that reads them."""
    regions = []
    alphas = sorted({*ALPHAS, *SHARED})
    for alpha in alphas:
        regions.append(design_region(alpha, LAST_PAIR, open_ended=True))
        print(f"alpha {alpha:g}: level at most {regions[-1].level:.6f}", flush=True)
    needed = [np.concatenate(region.needed) for region in regions]
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        alphas=np.array(alphas),
        levels=np.array([region.level for region in regions]),
        needed=np.array(needed, dtype=np.uint16),
    )
    write_bytes(Path(comparison.__file__).with_name(TABLES), buffer.getvalue())


if __name__ == "__main__":
    main()
