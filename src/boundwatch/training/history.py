"""What training went through: cost, divergence and bound at every step."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field

from boundwatch._support.describing import one_line
from boundwatch._support.figures import new_figure, save_figure
from boundwatch._support.files import write_text
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.errors import InvalidSetting


@dataclass
class History:
    """Numbers of a training, one of each per step, estimated from the policies and environments of that step.

    They guide the eye. Only `boundwatch.training.certify` issues a guarantee.

    Attributes
    ----------
    bound
        Which bound was minimized.
    cost
        Mean training cost of the sampled policies; the true cost where the surrogate gave it.
    divergence
        D₂(P‖P₀). For the pointwise bound, ln P(w)/P₀(w): the mean over the sampled policies in
        Algorithm 3, the expectation KL(P‖P₀) in Algorithm 4.
    upper
        The mean of the sampled policies' bounds, or the bound at their mean cost and that divergence.
    """

    bound: Bound
    cost: list[float] = field(default_factory=list)
    divergence: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.upper)

    def __repr__(self) -> str:
        last = {name: getattr(self, name)[-1] for name in ("cost", "divergence", "upper") if len(self)}
        return one_line(self, {"bound": self.bound, "steps": len(self)} | last)

    def __str__(self) -> str:
        if not len(self):
            return f"History of a training by the {self.bound} bound, before its first step"
        costs = f"training cost {self.cost[0]:.4g} at first, {self.cost[-1]:.4g} at last"
        return f"History of {len(self)} steps: {costs}; {self.bound} bound {self.upper[-1]:.4g}"

    def append(self, *, cost: float, divergence: float, upper: float) -> None:
        """Add the numbers of one step."""
        self.cost.append(cost)
        self.divergence.append(divergence)
        self.upper.append(upper)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers as JSON."""
        write_text(path, json.dumps(asdict(self), indent=1) + "\n")

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw bound, cost and divergence over the steps (extra ``plot``); write them as JSON beside it."""
        if len(self) == 0:
            raise InvalidSetting("the history has no steps to plot; train first")
        figure = new_figure(7, 5)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        steps = range(1, len(self) + 1)
        above.plot(steps, self.upper, color="black", label=f"upper bound ({self.bound})")
        above.plot(steps, self.cost, color="#0072B2", linestyle="--", label="training cost")
        above.set(ylabel="cost", ylim=(0, None))
        above.legend(frameon=False)
        below.plot(steps, self.divergence, color="#D55E00")
        below.set(xlabel="step", ylabel="ln P(w)/P₀(w)" if self.bound == "pointwise" else "D₂(P‖P₀)")
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.3)
        save_figure(figure, path)
        self.save(os.path.splitext(path)[0] + ".json")  # noqa: PTH122 - keeps the type of the path
