"""What every detector answers with: a `Verdict`, and the `Finding` that holds its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch import bounds
from boundwatch._support.describing import InNotebook
from boundwatch._support.schema import FrozenMapping
from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.episodes import compatible
from boundwatch.errors import InvalidSetting

LOOK_LEVEL = 0.05
"""The default level of each side of a test that looks once."""
ANYTIME_LEVEL = 0.04
"""The default level of each side of a test that may be read after every episode."""
CHANGE_LEVEL = 0.001
"""One over the default run length to a false alarm of a change detector."""
DISCOVERY_RATE = 0.05
"""The default false discovery rate of a fleet."""

TailName = Literal["joint", "hoeffding", "kl", "exact", "betting"]
"""How a fixed-sample detector weighs new costs."""
EvidenceName = TailName | Literal["mixture"]
"""The same, or a mixture of bets against the certified limits, as anytime-valid detectors place them."""


class Verdict(StrEnum):
    """What the new costs say about the world, compared with the certificate."""

    ADVERSE = "adverse"
    """Evidence that the expected cost is higher than the certified one."""
    BENIGN = "benign"
    """Evidence that the expected cost is not higher than the certified one."""
    WITHIN = "within"
    """No evidence of a shift. It does not say that there is none, and it does not say "safe"."""


class ShiftSize(NamedTuple):
    """Lower limits on the distance between the certified and the new world."""

    tv: float
    """Total variation, in [0, 1]."""
    kl: float
    """Relative entropy KL(new world || certified world), in nats."""

    def __str__(self) -> str:
        return f"at least {self.tv:.4g} in total variation, and {self.kl:.4g} nats in relative entropy"


@dataclass(frozen=True, kw_only=True)
class Finding(InNotebook):
    """A verdict with its evidence.

    **Guarantee**: ADVERSE is declared with probability at most `false_positive_rate` in any world whose
    expected cost is at most the certified one, BENIGN with at most `false_negative_rate` in any whose
    expected cost is higher, and `no_worse` is True with at most the latter in any that is worse by more than
    the margin: over the draw of the certificate's data and of the new episodes, not given a verdict. From an
    anytime-valid detector this holds for "ever declared, however long you look", and each shift limit for all
    times at once, except with probability at most the total of its side. With binary costs its alarm may come
    before its limits exclude a shift of zero: the alarm is exact, the limits hold at every margin.

    Attributes
    ----------
    p_adverse, p_benign
        Upper bounds on the p-values of "the expected cost did not rise" and "it did rise": small is evidence.
        Valid over the joint draw if `tail` is ``"joint"``, else while the certificate's limits hold, and its
        delta comes on top.
    shift_lower, shift_upper
        Limits on (deployed minus certified expected cost); the paper's Delta C_A and -Delta C_B.
    false_positive_rate, false_negative_rate
        The guaranteed totals, with the certificate's own delta included.
    tail
        The tail bound, or ``"joint"`` if the new costs were judged together with those of the certificate.
    shares_of
        If costs are shares of failed trials: the cluster that each is of, ``"scene"``, say. `n` counts them.
    labels
        If a machine judged the `n` episodes: how many people labeled; `mean_cost` is then an estimate.
    margin, no_worse
        How much worse was declared acceptable, and whether it is shown that the expected cost rose by no more
        than that; both None without a margin.
    e_adverse, e_benign
        Of a detector that bets: e-values against the same hypotheses, large is evidence. Judged jointly,
        their expected value under the hypothesis is at most 1 over the draw of both, at any stopping time;
        else it is at most 1 while the certificate's limit of that side holds, and has no limit when it fails
        (a chance of at most its `delta`).
    first_alarm
        Of an anytime-valid detector: the episode, counted from 1, of the verdict; None while WITHIN.
    tasks
        If the mean over a fixed set of tasks was certified: the finding on each, under the same error rates.
        All other fields are then about all tasks together.
    """

    verdict: Verdict
    n: int
    mean_cost: float
    p_adverse: float
    p_benign: float
    shift_lower: float
    shift_upper: float
    false_positive_rate: float
    false_negative_rate: float
    detector: str
    tail: EvidenceName
    binary: bool
    margin: float | None = None
    no_worse: bool | None = None
    e_adverse: float | None = None
    e_benign: float | None = None
    first_alarm: int | None = None
    shares_of: str | None = None
    labels: int | None = None
    tasks: Mapping[str, Finding] = FrozenMapping()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = super().to_dict()
        tasks = [each.to_dict() for each in content.pop("tasks").values()]
        return content | ({"tasks": tasks} if tasks else {})

    def called(self, verdict: Verdict) -> list[str]:
        """Return the tasks with this verdict."""
        return [task for task, finding in self.tasks.items() if finding.verdict is verdict]

    @property
    def shift_size(self) -> ShiftSize:
        """How far the world has moved at least, judged by the costs alone.

        **Guarantee**: it overstates either distance with probability at most `false_positive_rate`. Zero says
        that the costs show no move for the worse; a world may move far without touching the cost.
        """
        return ShiftSize(
            tv=min(max(self.shift_lower, 0.0), 1.0), kl=float(bounds.shift_kl_lower(self.shift_lower))
        )


def refuse_tasks(certificate: Certificate) -> Certificate:
    """Return a certificate, unless it is of the mean over tasks: a single stream is not judged by that."""
    if certificate.strata:
        remedy = "use SequentialTest, or HypothesisTest for one look"
        raise InvalidSetting("is of the mean over tasks", name="certificate", remedy=remedy)
    return certificate


def new_costs(costs: ArrayLike, certificate: Certificate, *, single: bool = False) -> NDArray[np.float64]:
    """Return new costs as a certificate can judge them.

    What is suspicious about `Episodes` is said as a Python warning; the certificate's own are refused. A
    `single` cost may be given by itself.
    """
    known = compatible(costs, certificate)
    return certificate.check_costs(np.reshape(known, -1) if single else known)
