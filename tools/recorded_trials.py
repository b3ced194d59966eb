"""Write the recorded hardware trials as CSV files for the docs: ``python tools/recorded_trials.py``.

The numbers are the paper's authors'; ``reproduction/recordings/README.md`` has the source and its license.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "reproduction" / "recordings" / "hardware.json"
FOLDER = ROOT / "examples" / "data" / "flights"
NAMES = {
    "no wind": "no-wind",
    "wind 100 %": "wind-100",
    "easier: 6 obstacles": "easier",
    "harder: 9 obstacles, smaller gaps": "harder",
}


def main() -> None:
    """Write one file per setting, one flight per row."""
    settings = json.loads(RECORDINGS.read_text(encoding="utf-8"))["drone"]["settings"]
    FOLDER.mkdir(exist_ok=True)
    for setting, name in NAMES.items():
        rows = "".join(f"{number},{cost}\n" for number, cost in enumerate(settings[setting], 1))
        (FOLDER / f"{name}.csv").write_text("flight,cost\n" + rows, encoding="utf-8")
        print(f"wrote examples/data/flights/{name}.csv")


if __name__ == "__main__":
    main()
