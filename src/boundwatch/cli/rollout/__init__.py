"""boundwatch rollout: deploy a trained policy of a task; costs to a file."""

from boundwatch.cli.rollout import navigation as navigation

from boundwatch.cli.rollout import grasping as grasping  # isort: skip  (--help lists them in this order)
