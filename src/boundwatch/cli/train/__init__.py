"""boundwatch train: policy, posterior and certificate of a task, in one folder."""

from boundwatch.cli.train import navigation as navigation

from boundwatch.cli.train import grasping as grasping  # isort: skip  (--help lists them in this order)
