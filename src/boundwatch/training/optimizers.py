"""Adam and plain gradient descent on ψ, in coordinates where a step has the same meaning for every parameter.

Gradients and steps are (2, d) tensors: the first row for the shift (μ - μ₀)/√s₀, the second for ln(s/s₀). So
learning rates are in standard deviations of the prior. The state is a few tensors, replaced and never changed
in place, which is what a checkpoint needs.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from boundwatch._support.validation import check_choice
from boundwatch.errors import InvalidSetting

OptimizerName = Literal["adam", "sgd"]

_DECAY_FIRST, _DECAY_SECOND, _EPSILON = 0.9, 0.999, 1e-12


class Optimizer:
    """Adam (Kingma and Ba, 2015) or plain gradient descent.

    Examples
    --------
    >>> optimizer = Optimizer("adam", learning_rate=0.1, variance_rate=0.01, dim=1)
    >>> optimizer.step(torch.tensor([[1e-3], [-2.0]], dtype=torch.float64)).T
    tensor([[ 0.1000, -0.0100]], dtype=torch.float64)
    """

    def __init__(
        self, name: OptimizerName, *, learning_rate: float, variance_rate: float | None, dim: int
    ) -> None:
        check_choice(name, "optimizer", get_args(OptimizerName))
        variance_rate = learning_rate if variance_rate is None else variance_rate
        for label, rate in (("learning_rate", learning_rate), ("variance_rate", variance_rate)):
            if not 0 <= rate < float("inf"):
                raise InvalidSetting(f"{label} = {rate!r} is not a number >= 0; choose e.g. 0.05")
        self._name = name
        self.settings = [name, learning_rate, variance_rate]
        self._rates = torch.tensor([[learning_rate], [variance_rate]], dtype=torch.float64)
        moments = {"first": (2, dim), "second": (2, dim), "count": ()} if name == "adam" else {}
        self.state = {key: torch.zeros(shape, dtype=torch.float64) for key, shape in moments.items()}

    def step(self, gradient: Tensor) -> Tensor:
        """Return what to subtract from (shift, log ratio) for this gradient, and update the state."""
        if self._name == "sgd":
            return self._rates * gradient
        count = self.state["count"] + 1
        first = _DECAY_FIRST * self.state["first"] + (1 - _DECAY_FIRST) * gradient
        second = _DECAY_SECOND * self.state["second"] + (1 - _DECAY_SECOND) * gradient**2
        self.state = {"first": first, "second": second, "count": count}
        first = first / (1 - _DECAY_FIRST**count)
        second = second / (1 - _DECAY_SECOND**count)
        return self._rates * first / (second.sqrt() + _EPSILON)
