"""Draw the figure of docs/navigation.md: flights in calm air and in wind, a field, its depth image.

Run it from the repository's root: ``python tools/navigation_figure.py``.
"""

import json
from pathlib import Path

import numpy as np
from matplotlib.patches import Circle, Rectangle

from boundwatch._support.figures import new_figure
from boundwatch.tasks.navigation import TRAINING, DroneSettings, Wind, World, fly
from boundwatch.tasks.navigation.drone import recorded_noise

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
SEED = 3
SHADES = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7")


def fan(axes, world, wind, title):
    """Draw every recording, flown in this wind."""
    drone = DroneSettings()
    noise = recorded_noise(drone)
    primitive = np.broadcast_to(np.arange(7)[:, None], noise.shape[:2])
    for flights, shade in zip(
        fly(drone, primitive, noise, wind, np.random.default_rng(SEED)), SHADES, strict=True
    ):
        for flight in flights:
            axes.plot(*flight.T, color=shade, linewidth=0.8)
    (left, right), (near, far) = world.scene.x_range, world.scene.y_range
    axes.add_patch(Rectangle((left, near), right - left, far - near, fill=False, linestyle=":"))
    axes.set(title=title, xlim=(-4, 4), ylim=(0, 9), aspect="equal", xlabel="x (m)")


if __name__ == "__main__":
    world = World()
    environments = world.draw(TRAINING, 1, seed=SEED, flights=True)
    figure = new_figure(13, 4.2)
    calm, windy, field, depth = figure.subplots(1, 4)
    fan(calm, world, None, "35 recordings, calm")
    fan(windy, world, Wind(speed=5.0), "the same in a fan of 5 m/s")
    calm.set_ylabel("y (m)")
    for flight, shade in zip(environments.flights[0], SHADES, strict=True):
        field.plot(*flight.T, color=shade, linewidth=1.2)
    for center in environments.obstacles[0]:
        field.add_patch(Circle(center, world.scene.obstacle_radius, color="#555555"))
    field.set(title="an environment", xlim=(-4, 4), ylim=(0, 9), aspect="equal", xlabel="x (m)")
    shown = depth.imshow(environments.images[0], origin="lower", extent=(-60, 60, -60, 60), cmap="Greys_r")
    depth.set(title="what the policy sees of it", xlabel="azimuth (deg)", ylabel="elevation (deg)")
    figure.colorbar(shown, ax=depth, label="depth (m)", shrink=0.8)
    figure.savefig(ASSETS / "navigation.png", dpi=110)
    numbers = {
        "seed": SEED,
        "obstacles_m": environments.obstacles[0].tolist(),
        "clearances_m": environments.clearances[0].tolist(),
    }
    (ASSETS / "navigation.json").write_text(json.dumps(numbers, indent=1) + "\n")
    print(f"Wrote {ASSETS / 'navigation.png'} and its numbers")
