"""Change detection: the shift may begin at any time, and the promise is how rare false alarms are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boundwatch.bounds.bets import Bets, Rows, bet_bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.anytime_detector import AnytimeDetector
from boundwatch.detectors.verdicts import CHANGE_LEVEL, Finding, refuse_tasks

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
        The episode at which the change most likely began, for the side of the verdict; None while WITHIN. It
        is an estimate, without a guarantee.
    mean_run_length_adverse, mean_run_length_benign
        The guaranteed average number of episodes until a false alarm of each side, if the certificate holds.
        (If it does not, which has a chance of at most its delta, there is no such number.)
    false_alarm_probability
        That of ADVERSE by episode n in a world that never gets worse, at most; `delta_upper` is included.
    """

    statistic_adverse: float
    statistic_benign: float
    change_began: int | None
    mean_run_length_adverse: float
    mean_run_length_benign: float
    false_alarm_probability: float


class ChangeDetector(AnytimeDetector[ChangeFinding]):
    """Watches a stream for a shift that may begin at any time.

    Every episode starts new bets that the world has changed just now, and their capitals are added up
    (Shiryaev-Roberts). For costs of 0 and 1 only the best start of each of two bets counts (CUSUM), and the
    threshold is calibrated, which alarms sooner. The memory does not grow.

    **Guarantee**: if the certificate holds and the world never gets worse, the average number of episodes
    until ADVERSE is declared is at least 1/`alpha_adverse`, and ADVERSE is declared within N episodes with
    probability at most N `alpha_adverse`; likewise BENIGN and `alpha_benign`. Sooner or later every change
    detector alarms falsely: for a promise over unlimited time take `SequentialTest`. **Assumes**: as there.

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

    def __init__(
        self,
        certificate: Certificate,
        *,
        alpha_adverse: float = CHANGE_LEVEL,
        alpha_benign: float = CHANGE_LEVEL,
    ) -> None:
        self._accept(certificate, alpha_adverse, alpha_benign)
        refuse_tasks(self.certificate)
        bounds = bet_bounds(certificate.lower, certificate.upper)
        alphas = self.alpha_adverse, self.alpha_benign
        bets, starts = zip(*map(self._bets, bounds, alphas), strict=True)
        sizes, shares = np.concatenate([each.sizes for each in bets]), [each.shares for each in bets]
        self._shares, self._best_start = np.concatenate(shares), np.repeat(starts, list(map(len, shares)))
        side = np.repeat([0, 1], list(map(len, shares)))
        # The adverse side bets on the cost x against the bound, the benign one on 1 - x.
        self._slope = sizes / np.array(bounds)[side] * np.where(side, -1.0, 1.0)
        self._intercept = 1 - sizes - np.minimum(self._slope, 0.0)
        self._sides = np.stack([side == 0, side == 1], axis=1).astype(np.float64)
        nothing = np.zeros(sizes.size)
        self._rows = Rows(
            {
                "statistics": np.zeros(2),
                "capitals": nothing,  # of all starts, or of the best one
                "best": nothing,  # of the best start, relative to its share
                "began": nothing.astype(np.int64),  # that start
                "change_began": np.array(0),  # 0 while WITHIN
            },
            size=1,
        )
        self.reset()

    def _bets(self, bound: float, alpha: float) -> tuple[Bets, bool]:
        """Return the bets of a side, whose sum alarms at 1/alpha, and whether only best starts count."""
        from boundwatch.detectors.run_length import calibrated  # with scipy.optimize, which is large

        found = calibrated(bound, alpha) if self.certificate.binary else None
        if found is None:  # also if the chain would be too large
            return Bets.for_costs(binary=self.certificate.binary), False
        lattices, threshold = found
        shares = np.array([each.share for each in lattices]) / (alpha * threshold)
        return Bets(np.array([each.size for each in lattices]), shares), True

    @property
    def change_began(self) -> int | None:
        """The episode at which the change most likely began; None while WITHIN."""
        return int(self._rows["change_began"][0]) or None

    def false_alarm_probability(self, episodes: int) -> float:
        """Bound the probability of a false ADVERSE within so many episodes, the certificate's delta included.

        Episodes count from the beginning or the last `reset`.
        """
        return min(1.0, episodes * self.alpha_adverse + self.certificate.delta_upper)

    def _step(self, cost: float) -> None:
        factor = self._slope * cost
        factor += self._intercept
        self.n += 1
        self._total += cost
        best, capitals, began = (self._rows[name][0] for name in ("best", "capitals", "began"))
        # Where yesterday's best start has lost money, today is the better one.
        np.copyto(began, self.n, where=best <= 1)
        np.maximum(best, 1.0, out=best)
        best *= factor
        np.minimum(best, _CEILING, out=best)
        capitals += self._shares
        capitals *= factor
        np.copyto(capitals, best * self._shares, where=self._best_start)
        np.minimum(capitals, _CEILING, out=capitals)
        self._rows["statistics"][0] = statistics = capitals.dot(self._sides)
        for side, alpha in enumerate((self.alpha_adverse, self.alpha_benign)):
            if statistics[side] >= 1 / alpha and self._alarm(side):
                self._rows["change_began"][0] = self._likeliest_start(side)

    def _likeliest_start(self, side: int) -> int:
        likely = self._rows["best"][0] * self._shares * self._sides[:, side]
        return int(self._rows["began"][0, np.argmax(likely)])

    def _finding(self) -> ChangeFinding:
        adverse, benign = self._rows["statistics"][0].tolist()
        certificate, false_alarm = self.certificate, self.false_alarm_probability(self.n)
        known = self._known() | {
            "false_positive_rate": false_alarm,
            "false_negative_rate": min(1.0, self.n * self.alpha_benign + certificate.delta_lower),
        }
        return ChangeFinding(
            **known,
            statistic_adverse=adverse,
            statistic_benign=benign,
            change_began=self.change_began,
            mean_run_length_adverse=1 / self.alpha_adverse,
            mean_run_length_benign=1 / self.alpha_benign,
            false_alarm_probability=false_alarm,
            p_adverse=1.0,
            p_benign=1.0,
            shift_lower=-certificate.upper,
            shift_upper=1 - certificate.lower,
            detector="change-detector",
        )
