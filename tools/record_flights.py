"""Write the flights that ``boundwatch serve --demo`` shows: ``python tools/record_flights.py``.

Trains the quick setting, certifies it, and flies twelve drones in the world of training. From flight 41
on, drone-7 meets the wind of the world "windy". Everything follows from the seeds below, which were fixed
before any flight.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from boundwatch.tasks.navigation.train import QUICK, Draw, train

TARGET = Path(__file__).parents[1] / "src" / "boundwatch" / "demo" / "flights.json"
DRONES = 12
FLIGHTS = 120
WINDY = "drone-7"
CALM_FLIGHTS = 40


def main() -> None:
    """Fly, and write the costs."""
    with tempfile.TemporaryDirectory() as folder:
        run = train(QUICK, Path(folder) / "run")
    drones = {}
    for number in range(1, DRONES + 1):
        seed = (run.recipe.seed, Draw.DEPLOYMENT, 100 + number)
        costs, _ = run.task("training").deploy(run.policy, FLIGHTS, seed=seed)
        name = f"drone-{number}"
        if name == WINDY:
            windy, _ = run.task("windy").deploy(run.policy, FLIGHTS, seed=(*seed, 1))
            costs[CALM_FLIGHTS:] = windy[CALM_FLIGHTS:]
        drones[name] = [round(cost, 4) for cost in costs.tolist()]
    content = {
        "certificate": run.certificate.to_dict(),
        "windy": WINDY,
        "calm_flights": CALM_FLIGHTS,
        "drones": drones,
    }
    TARGET.write_text(json.dumps(content) + "\n")
    print(f"wrote {TARGET.name}: {DRONES} drones, {FLIGHTS} flights each, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
