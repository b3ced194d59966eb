"""Do the new scenes look like the certified ones? A notice about inputs, never a verdict about the policy.

Predictions on scenes of the certified world and on new scenes, none of which need be run, are compared by
rank: if all of them are exchangeable, a new prediction is equally likely to take any rank among those before
it. Three capitals bet that it does not, see `boundwatch.bounds.ranks`: on high ranks (the scenes look
harder), on low ranks (easier), and on both ends (different).
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_costs, check_level
from boundwatch.bounds import ranks

Look = Literal["harder", "easier", "different"]
_LOOKS: tuple[Look, ...] = ("harder", "easier", "different")
NOT_A_VERDICT = "This is not a verdict: only trials show whether the policy does worse."


@dataclass(frozen=True)
class SceneNotice:
    """How new scenes look to a predictor, compared with those of the certified world; not a verdict."""

    look: Look | None
    """None until there is evidence that they differ; then whichever explains them best so far."""
    n: int
    reference_n: int
    """Scenes of the certified world; ``n`` are new."""
    mean: float
    reference_mean: float
    """Of the predictions, there and here."""
    p_value: float
    """Against "all these scenes come from one world"; valid whenever it is read."""
    first_notice: int | None
    """The scene, counted from 1, at which the evidence sufficed."""

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """What to tell people."""
        found = "There is no evidence that the scenes look different to the predictor"
        if self.look is not None:
            found = f"The scenes look {self.look} to the predictor"
        return (
            f"{found}: mean predicted cost {self.mean:.3f} in {self.n} new scenes, {self.reference_mean:.3f} "
            f"in {self.reference_n} of the certified world (p = {self.p_value:.2g}). {NOT_A_VERDICT}"
        )


class SceneWatch:
    """Compares predictions on new scenes with those on scenes of the certified world; no trial is needed.

    **Guarantee**: if the scenes, certified and new, are exchangeable, it ever notices something with
    probability at most `alpha`, however often you look. **Assumes**: the predictor was fitted without the
    reference scenes and treats all scenes alike. It says nothing about costs: scenes may look different and
    the policy cope, or look alike and the policy fail.

    Parameters
    ----------
    reference
        Predictions, in [0, 1], on scenes of the certified world that the predictor was not fitted to.
    alpha
        Level of the notice.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scenes = SceneWatch(rng.beta(2, 8, 200))
    >>> scenes.update(rng.beta(2, 8, 50)).look is None
    True
    >>> notice = scenes.update(rng.beta(5, 5, 30))
    >>> notice.look, notice.first_notice
    ('harder', 61)
    """

    def __init__(self, reference: ArrayLike, *, alpha: float = 0.05) -> None:
        values = check_costs(reference, name="reference")
        self.alpha = check_level(alpha, "alpha")
        self._sorted = sorted(values.tolist())
        self._reference_n, self._reference_mean = values.size, float(values.mean())
        self._logs = ranks.first_logs()
        self._best, self._total, self.n = 0.0, 0.0, 0
        self.look: Look | None = None
        self.first_notice: int | None = None

    def __repr__(self) -> str:
        shown = {"reference_n": self._reference_n, "alpha": self.alpha, "n": self.n, "look": self.look}
        return one_line(self, shown | {"first_notice": self.first_notice})

    def __str__(self) -> str:
        found = "no evidence that they differ" if self.look is None else f"they look {self.look}"
        return f"SceneWatch: {found}, after {self.n} scenes compared with {self._reference_n} certified ones"

    def update(self, predictions: ArrayLike) -> SceneNotice:
        """Count predictions on new scenes, in the order of their observation, and return the notice."""
        values = check_costs(np.atleast_1d(predictions), name="predictions").tolist()
        places = np.array([self._place(value) for value in values])
        logs = np.cumsum([self._logs, *ranks.log_gains(*places.T)], axis=0)[1:]
        capitals = np.logaddexp.reduce(logs, axis=2)
        wealth = np.logaddexp.reduce(capitals, axis=1)
        enough = np.flatnonzero(wealth >= math.log(1 / self.alpha))
        if self.first_notice is None and enough.size:
            self.first_notice = self.n + int(enough[0]) + 1
        if self.first_notice is not None:  # the name may change with more scenes, the notice stands
            self.look = _LOOKS[int(capitals[-1].argmax())]
        self._logs, self._best = logs[-1], max(self._best, float(wealth.max()))
        self.n += len(values)
        for value in values:
            self._total += value
        seen = self.n, self._reference_n, self._total / self.n, self._reference_mean
        return SceneNotice(self.look, *seen, math.exp(-self._best), self.first_notice)

    def _place(self, prediction: float) -> tuple[int, int, int]:
        """Put a prediction among the others; return how many are above it, how many equal it, and all."""
        below, not_above = (find(self._sorted, prediction) for find in (bisect.bisect_left, bisect.bisect))
        above = len(self._sorted) - not_above
        self._sorted.insert(below, prediction)
        return above, not_above - below, len(self._sorted)
