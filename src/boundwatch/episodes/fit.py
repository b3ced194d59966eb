"""Whether new episodes can be judged by a certificate at all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.provenance import costs_digest
from boundwatch.errors import ProvenanceMismatch

if TYPE_CHECKING:
    from boundwatch.episodes import Episodes


def fit(
    episodes: Episodes, certificates: Mapping[str, Certificate] | Certificate, *, allow_own: bool = False
) -> Episodes:
    """Return new episodes with warnings if no verdict should be built on them.

    Raises
    ------
    ProvenanceMismatch
        If they are those that the certificate was made from, unless `allow_own`: it cannot judge them.
    """
    if isinstance(certificates, Certificate):
        pairs = [("", certificates, episodes.costs)]
    else:
        new = episodes.by_task()
        pairs = [(f"{t}: ", certificate, new[t]) for t, certificate in certificates.items() if t in new]
    found: list[str] = []
    for task, certificate, costs in pairs:
        if certificate.provenance.costs_sha256 == costs_digest(costs):
            own = f"{episodes.source}: {task}these are the costs that the certificate was made from"
            if not allow_own:
                raise ProvenanceMismatch(
                    f"{own}; it cannot judge them, so give new episodes (--allow-own to see what it would "
                    f"say)"
                )
            found.append(f"{own}, and they cannot be judged by it")
        else:
            found += (
                f"{episodes.source}: {task}{warning}"
                for warning in _differences(episodes, certificate, costs)
            )
    return dataclasses.replace(episodes, warnings=(*episodes.warnings, *dict.fromkeys(found)))


def _differences(episodes: Episodes, certificate: Certificate, costs: NDArray[np.float64]) -> Iterator[str]:
    certified, now = certificate.provenance.measured, episodes.measured
    if certified not in (None, now):
        yield (
            f"these costs are not measured the way the certificate's were (now {now}; certified "
            f"{certified}); a "
            "verdict means nothing unless they agree"
        )
    if (share := _shared(certificate, costs)) >= 0.5:
        yield (
            f"{100 * share:.0f} % of these costs are also among those that the certificate was made from, "
            f"to the "
            "last digit; only episodes that it has not seen can be judged"
        )
    if episodes.cost_range is not None and episodes.cost_range == certificate.cost_range:
        low, high = episodes.cost_range
        readings = high - costs * (high - low) if episodes.meaning == "reward" else low + costs * (high - low)
        # Fractions where percentages were certified would look like a wonderful improvement.
        if (
            high - low >= 10
            and low >= 0
            and readings.max() <= 1
            and (certificate.mean_cost or 0) * (high - low) > 2
        ):
            yield (
                f"all values are at most 1 in the certificate's range of {shortest(low)} to "
                f"{shortest(high)}; are "
                "they in another unit?"
            )


def _shared(certificate: Certificate, costs: NDArray[np.float64]) -> float:
    """Return the share of costs that the certificate has, too; 0 where that may be chance."""
    record = certificate.record
    # Few different values are shared by any two files.
    if record is None or certificate.n is None or len(record.values) < 0.9 * certificate.n or costs.size < 5:
        return 0.0
    if np.unique(costs).size < 0.9 * costs.size:
        return 0.0
    return float(np.isin(costs, record.values).mean())
