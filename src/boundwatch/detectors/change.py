"""Change detection: the shift may begin at any time, and the promise is how rare false alarms are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from boundwatch._support.validation import check_choice
from boundwatch.bounds.bets import Bets, bet_bounds, linear_factors
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import saving
from boundwatch.detectors.anytime import AnytimeDetector
from boundwatch.detectors.base import CHANGE_LEVEL, Finding
from boundwatch.errors import SchemaMismatch

Method = Literal["shiryaev-roberts", "cusum"]
METHODS: tuple[Method, ...] = get_args(Method)
# Lowering the statistic keeps the promise; without a ceiling it would overflow long after the alarm.
_CEILING = 1e250


@dataclass(frozen=True, kw_only=True)
class ChangeFinding(Finding):
    """What a `ChangeDetector` knows after an episode.

    `false_positive_rate` and `false_negative_rate` are those of an alarm by episode n. There is no one shift
    whose size could be limited, so the limits are those that no cost exceeds, and the p-values are 1.

    Attributes
    ----------
    statistic_adverse, statistic_benign
        The evidence that costs rose, or fell, at some time; an alarm is at 1/alpha of its side.
    change_began
        The episode at which the change most likely began, for the side of the verdict; None while WITHIN.
        It is an estimate, without a guarantee.
    mean_run_length_adverse, mean_run_length_benign
        The average number of episodes until a false alarm of each side that is guaranteed if the certificate
        holds. (If it does not, which has a chance of at most its delta, there is no such number.)
    false_alarm_probability
        Upper bound on the probability that ADVERSE is declared by episode n in a world that never gets worse;
        the certificate's `delta_upper` is included.
    """

    statistic_adverse: float
    statistic_benign: float
    change_began: int | None
    mean_run_length_adverse: float
    mean_run_length_benign: float
    false_alarm_probability: float


class ChangeDetector(AnytimeDetector[ChangeFinding]):
    """Watches a stream for a shift that may begin at any time.

    Every episode starts a new set of bets that the world has changed just now; the Shiryaev-Roberts statistic
    is the sum of their capitals, the CUSUM statistic takes the best start of each bet. Either is updated from
    its last value, so the memory does not grow.

    **Guarantee**: if the certificate holds and the world never gets worse, the average number of episodes
    until ADVERSE is declared is at least 1/`alpha_adverse`, and ADVERSE is declared within N episodes with
    probability at most N `alpha_adverse`; likewise BENIGN and `alpha_benign`. (After n episodes the expected
    Shiryaev-Roberts statistic is at most n; CUSUM is never larger.) Sooner or later every change detector
    alarms falsely: for a promise over an unlimited time take `SequentialTest`. **Assumes**: as there.

    Parameters
    ----------
    certificate
        The promise to compare with.
    alpha_adverse, alpha_benign
        One over the average run length to a false alarm of each side, if the certificate holds.
    method
        ``"shiryaev-roberts"`` (alarms sooner) or ``"cusum"`` (fewer false alarms than promised).

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.05, upper=0.15, delta=0.01, binary=True)
    >>> detector = bw.ChangeDetector(certificate)
    >>> finding = detector.update_many([0, 0, 0, 1, 0, 0, 0, 0, 0, 0] * 5 + [1, 0, 1, 1, 1, 0, 1, 1, 1])
    >>> finding.verdict.value, finding.first_alarm, finding.change_began
    ('adverse', 58, 51)
    >>> round(detector.false_alarm_probability(100), 6)  # 100 alpha + delta
    0.11
    """

    _kind = "ChangeDetector"

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = CHANGE_LEVEL,
        alpha_benign: float = CHANGE_LEVEL,
        method: Method = "shiryaev-roberts",
    ) -> None:
        check_choice(method, "method", METHODS)
        self._accept(certificate, alpha_adverse, alpha_benign)
        self.method = method
        bets = Bets.for_costs(binary=certificate.binary)
        upper, rest = bet_bounds(certificate.lower, certificate.upper)
        self._intercept, self._slope = linear_factors(bets, upper, rest)
        self._shares = np.tile(bets.shares, 2)
        size = bets.sizes.size
        self._sides = np.zeros((2 * size, 2))
        self._sides[:size, 0] = self._sides[size:, 1] = 1.0
        self.reset()

    def _forget(self) -> None:
        self.change_began: int | None = None
        self._statistics = [0.0, 0.0]
        self._capitals = np.zeros(self._shares.size)  # of all starts, or of the best one
        self._best = np.zeros(self._shares.size)  # of the best start, relative to its share
        self._began = np.zeros(self._shares.size, dtype=np.int64)  # that start

    def false_alarm_probability(self, episodes: int) -> float:
        """Bound the probability of a false ADVERSE within so many episodes, the certificate's delta included.

        Parameters
        ----------
        episodes
            How many, counted from the beginning or the last `reset`.
        """
        return min(1.0, episodes * self.alpha_adverse + self.certificate.delta_upper)

    def _step(self, cost: float) -> None:
        factor = self._slope * cost
        factor += self._intercept
        self.n += 1
        self._total += cost
        # Where yesterday's best start has lost money, today is the better one.
        np.copyto(self._began, self.n, where=self._best <= 1)
        np.maximum(self._best, 1.0, out=self._best)
        self._best *= factor
        np.minimum(self._best, _CEILING, out=self._best)
        if self.method == "cusum":
            np.multiply(self._best, self._shares, out=self._capitals)
        else:
            self._capitals += self._shares
            self._capitals *= factor
            np.minimum(self._capitals, _CEILING, out=self._capitals)
        self._statistics = self._capitals.dot(self._sides).tolist()
        for side, alpha in enumerate((self.alpha_adverse, self.alpha_benign)):
            if self._statistics[side] >= 1 / alpha and self._alarm(side):
                self.change_began = self._likeliest_start(side)

    def _likeliest_start(self, side: int) -> int:
        size = self._shares.size // 2
        rows = slice(side * size, (side + 1) * size)
        return int(self._began[rows][np.argmax(self._best[rows] * self._shares[rows])])

    def _finding(self) -> ChangeFinding:
        adverse, benign = self._statistics
        certificate, false_alarm = self.certificate, self.false_alarm_probability(self.n)
        return ChangeFinding(
            verdict=self.verdict,
            n=self.n,
            mean_cost=self._total / self.n,
            statistic_adverse=adverse,
            statistic_benign=benign,
            first_alarm=self.first_alarm,
            change_began=self.change_began,
            mean_run_length_adverse=1 / self.alpha_adverse,
            mean_run_length_benign=1 / self.alpha_benign,
            false_alarm_probability=false_alarm,
            false_positive_rate=false_alarm,
            false_negative_rate=min(1.0, self.n * self.alpha_benign + certificate.delta_lower),
            p_adverse=1.0,
            p_benign=1.0,
            shift_lower=-certificate.upper,
            shift_upper=1 - certificate.lower,
            detector="change-detector",
            tail="mixture",
            binary=certificate.binary,
        )

    def _settings(self) -> dict[str, Any]:
        return {"method": self.method}

    @classmethod
    def _settings_in(cls, state: Mapping[str, Any]) -> dict[str, Any]:
        if state.get("method") not in METHODS:
            raise SchemaMismatch(
                f"state['method'] = {state.get('method')!r} is unknown; the state is damaged"
            )
        return {"method": state["method"]}

    def _evidence_state(self) -> dict[str, Any]:
        arrays: dict[str, ArrayLike] = {
            "statistics": self._statistics,
            "capitals": self._capitals,
            "best": self._best,
        }
        return {
            "change_began": self.change_began,
            **{name: saving.pack(values) for name, values in arrays.items()},
            "began": saving.pack(self._began),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        size = self._shares.size
        self.change_began = saving.optional_count(state, "change_began")
        self._statistics = saving.unpack(state, "statistics", 2).tolist()
        self._capitals = saving.unpack(state, "capitals", size)
        self._best = saving.unpack(state, "best", size)
        self._began = saving.unpack(state, "began", size, dtype=np.int64)
