"""Robotic grasping: a Panda arm lifts mugs and bowls, in the MuJoCo physics engine.

Open `attempt` first: it simulates one grasp (`motion`), an expert's or a policy's, of one object that stands
somewhere on the table (`scenes`), in a `world` with gravity, friction and the arm (`panda`). A `policy` sees
the object from above (`camera`). `train` clones, trains and certifies one by a recipe, and loads it again;
`pictures` draws what happened. The guide is ``docs/grasping.md``.
"""

from boundwatch.errors import MissingExtra

try:
    import joblib as _joblib  # noqa: F401
    import mujoco as _mujoco  # noqa: F401
except ImportError as error:
    raise MissingExtra("boundwatch.tasks.grasping", "sim") from error

from boundwatch.tasks.grasping.attempt import Outcome, attempt, expert_grasp
from boundwatch.tasks.grasping.camera import photograph
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.scenes import DRAWS, PLACEMENTS, Bowl, Mug, Scene, VariedMug, draw_scenes
from boundwatch.tasks.grasping.world import Physics

__all__ = ["DRAWS", "PLACEMENTS", "Bowl", "Grasp", "Mug", "Outcome", "Physics", "Scene", "VariedMug"]
__all__ += ["attempt", "draw_scenes", "expert_grasp", "photograph"]
