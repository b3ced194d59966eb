"""One policy whose trials were finished before the other's first: all of them count at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boundwatch.bounds.joint_evidence import references_of, sides_against
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS, alarm_line
from boundwatch.errors import InvalidCost


class Finished(NamedTuple):
    """Which policy was there first (0 or 1), its trials and its failures; the other's come one by one."""

    first: int
    n: int
    failures: int

    def check(self, of_first: bool) -> None:
        """Refuse numbers for which there is no line, and a trial of the policy that was finished."""
        if of_first or not 0 < self.n <= MOST_REFERENCE_TRIALS:
            problem = f"policy A must be finished before B begins, after {self.n} trials it is not"
            remedy = f"count all of its trials first, at most {MOST_REFERENCE_TRIALS}; or say finished=False"
            raise InvalidCost(problem, remedy=remedy)

    def decides(self, side: int, trials: int, failures: int, alpha: float) -> bool:
        """Return whether so many failures of the new policy say that A (0) or B (1) is better."""
        # If the new one is to be better, the same is asked of its successes.
        new, old = (
            (failures, self.failures) if side == self.first else (trials - failures, self.n - self.failures)
        )
        return bool(new >= alarm_line(self.n, old, alpha).needed(trials)[trials])

    def limit(self, trials: int, failures: int, alpha: float, side: int) -> float:
        """Return a limit on the difference, by bets on both at the least favorable common rate."""
        points = np.array([0.0, 1.0])
        old, new = (np.array([n - k, k], float) for n, k in (self[1:], (trials, failures)))
        sides = sides_against(references_of(points, old), (alpha, alpha), None, binary=True)
        lower = sides[int(side != self.first)].difference_lower(points, new)
        return -lower if side else lower
