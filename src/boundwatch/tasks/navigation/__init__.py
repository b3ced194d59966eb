"""Vision-based obstacle avoidance with a drone: simulation, policy, training.

Open `world` first: it draws environments (`scene`) from distributions and flies every primitive through them
(`drone`, `recordings`). `policy` sees depth images and chooses a primitive; `train` follows a recipe and
certifies what it drew, and loads it again. The guide is ``docs/navigation.md``.
"""

from boundwatch.tasks.navigation.drone import DroneSettings, Primitive, Wind, fly
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Scene, clearance, cost, depth_images, place_obstacles
from boundwatch.tasks.navigation.world import (
    NAMED,
    TRAINING,
    Distribution,
    Environments,
    World,
    difficulty,
    distribution,
)

__all__ = ["NAMED", "TRAINING", "Distribution", "DroneSettings", "Environments", "Primitive", "Recordings"]
__all__ += ["Scene", "Wind", "World", "clearance", "cost", "depth_images", "difficulty", "distribution"]
__all__ += ["fly", "place_obstacles"]
