"""Run the benchmarks named on the command line, or all; print tables and write benchmarks/results.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import (
    alarms,
    calibrate_drone,
    campaign,
    comparison,
    drone,
    evaluation,
    fixed_sample,
    grasping,
    joint,
    judges,
    kill_evaluation,
    kill_page,
    kill_server,
    kill_training,
    kill_watch,
    level,
    load,
    mixture,
    mutation,
    navigation_detection,
    navigation_speed,
    navigation_training,
    navigation_validity,
    navigation_wind,
    predicted,
    robust_drone,
    rounds,
    saved,
    serve,
    small_files,
    speed,
    step_weights,
    tails,
    today,
    trials,
    workers,
)

BENCHMARKS = {
    "level": level,
    "trials": trials,
    "today": today,
    "joint": joint,
    "judges": judges,
    "saved": saved,
    "tails": tails,
    "campaign": campaign,
    "rounds": rounds,
    "mixture": mixture,
    "speed": speed,
    "predicted": predicted,
    "step_weights": step_weights,
    "grasping": grasping,
    "fixed_sample": fixed_sample,
    "comparison": comparison,
    "evaluation": evaluation,
    "drone": drone,
    "calibrate_drone": calibrate_drone,
    "navigation_speed": navigation_speed,
    "navigation_training": navigation_training,
    "navigation_detection": navigation_detection,
    "navigation_validity": navigation_validity,
    "navigation_wind": navigation_wind,
    "robust_drone": robust_drone,
    "serve": serve,
    "workers": workers,
    "alarms": alarms,
    "small_files": small_files,
    "mutation": mutation,
    "load": load,
    "kill_watch": kill_watch,
    "kill_training": kill_training,
    "kill_server": kill_server,
    "kill_page": kill_page,
    "kill_evaluation": kill_evaluation,
}
RESULTS = Path(__file__).with_name("results.json")


def main(names: list[str]) -> None:
    """Run, print, write."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(BENCHMARKS)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or BENCHMARKS:
        print(f"\n== {name} ==", flush=True)
        results[name] = BENCHMARKS[name].run()
        BENCHMARKS[name].show(results[name])
        RESULTS.write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
