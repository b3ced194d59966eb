"""Bets on episodes that a machine judges, of which people label those that a coin chooses.

It is declared beforehand with which probability an episode is labeled that the machine calls a success, and
one that it calls a failure. Let pi be that of the episode at hand, xi = 1 if the coin came up, and h its cost
by the label. With a guess g of the cost of such episodes, from earlier labels, x = g + xi (h - g) / pi has
the mean of h, whatever the machine does, so 1 + s (x - m) is a bet against "the mean is at most m" that no
judge makes unfair. The largest s is that at which the worst label takes the whole capital. A part of the
capital guesses m, whatever the machine says, and bets on labels alone; the rest learns how often it is wrong.
"""

from __future__ import annotations

import numpy as np

from boundwatch.bounds.bets import SMALLEST_BOUND, Array, Bets

_PRIOR = np.array([0.1, 0.7])  # mean cost of episodes that the judge calls successes and failures, at first,
_WORTH = 4  # as if so many labels had shown it
_SHARES = np.array([0.4, 0.6])  # of the capital: on labels alone, and with what was learned of the judge


class JudgedBets:
    """The wealth of both sides against each of some means: "it is at most (at least) means[i]".

    **Guarantee**: at the true mean either wealth ever reaches 1/alpha with probability at most alpha, for any
    judge. **Assumes**: costs of labels in [0, 1] whose expected value, given all earlier episodes, is at
    most (at least) the mean; a coin that neither the episode, the judge nor the label depends on.

    >>> bets = JudgedBets(np.array([0.1]), (0.2, 0.5))
    >>> for _ in range(12):
    ...     _ = bets.step(True, 1.0)  # called a failure, drawn, and so labeled
    ...     _ = bets.step(True, None)  # called a failure, and not drawn
    >>> float(bets.best[0, 0].round(2)), float(bets.best[1, 0].round(2))
    (16.25, 0.0)
    """

    def __init__(self, means: Array, rates: tuple[float, float]) -> None:
        sizes = Bets.for_costs(binary=False)
        self._sizes, self._rates = sizes.sizes, np.array(rates)
        self._bounds = np.maximum(np.stack([means, 1 - means]), SMALLEST_BOUND)[:, :, None]
        self._logs: Array = np.log(np.multiply.outer(_SHARES, sizes.shares)) + np.zeros((2, means.size, 1, 1))
        self.best: Array = np.zeros((2, means.size))
        """The largest log wealth so far, of both sides and each mean."""
        self._seen: Array = np.zeros((2, 2))  # labels, and the sum of their costs, by what the judge said

    def guesses(self) -> Array:
        """Return the mean costs of what the judge calls successes and failures, by the labels so far."""
        return np.asarray((_WORTH * _PRIOR + self._seen[1]) / (_WORTH + self._seen[0]))

    def step(self, failed: bool, label: float | None) -> float:
        """Count an episode that the judge calls failed or not, with its label if it was drawn; return x."""
        call, guesses = int(failed), self.guesses()
        rate, found = self._rates[call], float(guesses[call])
        for side, bounds in enumerate(self._bounds):
            learned = np.broadcast_to(1 - guesses if side else guesses, (bounds.size, 2))
            both = np.stack([np.repeat(bounds, 2, axis=1), learned], axis=1)
            most = 1 / (bounds + (both * (1 / self._rates - 1)).max(axis=2))
            guess, value = both[:, :, call], 0.0
            if label is not None:
                value = ((1 - label if side else label) - guess) / rate
            gains = most * (guess - bounds + value)
            with np.errstate(divide="ignore"):  # a bet may lose everything
                self._logs[side] += np.log(np.maximum(1 + gains[:, :, None] * self._sizes, 0.0))
            self.best[side] = np.maximum(self.best[side], self.wealth(side))
        if label is not None:
            found += (label - found) / float(rate)
            self._seen[:, call] += 1, label
        return found

    def wealth(self, side: int) -> Array:
        """Return the log wealth of a side now, against each mean."""
        return np.asarray(np.logaddexp.reduce(self._logs[side], axis=(1, 2)))
