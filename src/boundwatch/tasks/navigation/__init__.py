"""Vision-based obstacle avoidance with a drone: simulation, policy, training.

Open `world` first: it draws environments (`scene`) from distributions and flies every primitive through them
(`drone`, `recordings`). `policy` sees depth images and chooses a primitive; `train` follows a recipe and
certifies what it drew, and loads it again. The guide is ``docs/navigation.md``.
"""

from boundwatch.tasks.navigation.drone import DroneSettings, Primitive, Wind, fly
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import (
    THRESHOLDS,
    Scene,
    clearance,
    cost,
    depth_images,
    place_obstacles,
)
from boundwatch.tasks.navigation.world import (
    DIFFICULTIES,
    NAMED,
    TRAINING,
    Distribution,
    Environments,
    World,
    difficulty,
    distribution,
)

__all__ = ["DIFFICULTIES", "NAMED", "THRESHOLDS", "TRAINING", "Distribution", "DroneSettings", "Environments"]
__all__ += ["Primitive", "Recordings", "Scene", "Wind", "World", "clearance", "cost", "depth_images"]
__all__ += ["difficulty", "distribution", "fly", "place_obstacles"]
