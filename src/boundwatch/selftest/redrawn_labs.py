"""What is promised in all, the certificate's delta included: here the lab's trials are drawn again, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import Fleet, SequentialTest, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import Findings, FixedSampleDetector
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.selftest.given_limits import (
    EPISODES,
    LOOKS,
    MARGIN,
    RATE,
    ROBOTS,
    STREAMS,
    Array,
    Claim,
    Flags,
    Levels,
    chance_of_high,
    count_found,
    count_lists,
    count_missed,
    declares,
    is_declared,
    is_tried_alone,
    limit_of,
    run_fleet,
    shows_no_worse,
    two_costs,
)

Counts = NDArray[np.int64]
MakeDetector = Callable[[Certificate], FixedSampleDetector]


@dataclass(frozen=True)
class Lab:
    """A world of two costs from which both the lab's trials and the new ones come."""

    certificate: Certificate
    verdict: Verdict
    low: float
    high: float
    mean: float

    @property
    def name(self) -> str:
        """The world in words."""
        return f"{self.low:.3g} or {self.high:.3g}, mean {self.mean:.3g}, lab drawn, too"

    def certify(self, rng: np.random.Generator, runs: int) -> Iterator[tuple[Certificate, int]]:
        """Yield certificates from trials drawn again, and how many of the runs have each."""
        like, size = self.certificate, self.certificate.n or 1
        # Labs with as many high costs have the same certificate.
        counts = rng.multinomial(runs, self.chances(size))
        for highs in np.flatnonzero(counts).tolist():
            yield (
                Certificate.from_held_out(
                    self.costs(np.array([highs]), size)[0],
                    method=cast("Any", like.method),
                    binary=like.binary,
                    delta_upper=like.delta_upper,
                    delta_lower=like.delta_lower,
                ),
                int(counts[highs]),
            )

    def chance(self, more: float = 0.0) -> float:
        """Return the chance of the high cost where the mean is so much higher than in the lab."""
        return chance_of_high(self.verdict, self.low, self.high, self.mean + more)

    def chances(self, n: int) -> Array:
        """Return the chances of 0 to n high costs among n: as many runs as one likes take no memory."""
        chances = binom.pmf(np.arange(n + 1), n, self.chance())
        return np.asarray(chances / chances.sum())

    def costs(self, highs: Counts, n: int) -> Array:
        """Return datasets of n costs, one per number of high ones."""
        return np.where(np.arange(n) < highs[:, None], self.high, self.low)

    def streams(self, rng: np.random.Generator, shape: tuple[int, int], more: float = 0.0) -> Array:
        """Return new costs."""
        return np.where(rng.random(shape) < self.chance(more), self.high, self.low)


def claims_over_labs(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised over the draw of the lab's trials and the new ones."""
    deltas = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
    means = _means(certificate)
    if certificate.method == "anytime":
        for lab in _labs(certificate, means):
            yield _limit_claim(
                lab, deltas[lab.verdict], f"campaign, looked at {LOOKS} times", _count_campaigns
            )
        return
    totals = {verdict: level + deltas[verdict] for verdict, level in levels.items()}
    test = partial(_hypothesis_test, levels)
    sizes = (10, 50) if certificate.binary else (10,)
    for lab in _labs(certificate, means):
        total, is_central = totals[lab.verdict], lab.mean == means[0]
        for n in sizes:
            yield _fixed_claim(f"hypothesis-test, total, n = {n}", lab, total, test, n, _is_declared)
        if is_central or certificate.binary:
            yield _stream_claim(f"fleet, total, {EPISODES} times", lab, total, levels, _declared_by_fleet)
            if is_tried_alone(lab.low, lab.high):
                name = f"sequential-test, total, {EPISODES} times"
                yield _stream_claim(name, lab, total, levels, _declared_by_test)
                if is_central:
                    yield _family_claim(lab, total, levels)
            if lab.verdict is Verdict.BENIGN and lab.mean + MARGIN < lab.high:
                yield from _margin_claims(lab, total, levels)
        if is_central:
            side = "upper" if lab.verdict is Verdict.ADVERSE else "lower"
            yield _limit_claim(lab, deltas[lab.verdict], f"certificate, {side} limit", _count_labs)
            interval, limit = partial(_interval, levels), limit_of(lab.verdict)
            name = f"confidence-interval, total, n = {sizes[-1]}"
            yield _fixed_claim(name, lab, total, interval, sizes[-1], _is_declared)
            name = f"hypothesis-test, total, {limit}"
            yield _fixed_claim(name, lab, total, test, sizes[-1], _is_excluded)
            yield _stream_claim(f"sequential-test, total, {limit}", lab, total, levels, _missed_by_limits)
            if lab.verdict is Verdict.ADVERSE:
                yield Claim(
                    f"discoveries, total, {STREAMS} streams",
                    lab.verdict,
                    lab.name,
                    RATE,
                    partial(_count_lists, lab),
                )


def _means(certificate: Certificate) -> list[float]:
    """Return means to try, the central one first; a lab without failures is tried at its upper limit."""
    mean_cost = certificate.mean_cost or 0.0
    means = {certificate.lower, mean_cost, certificate.upper}
    usable = [mean for mean in means if 0 < mean < 1] or [0.5]  # two costs have no other mean
    return sorted(usable, key=lambda mean: abs(mean - mean_cost))


def _labs(certificate: Certificate, means: list[float]) -> Iterator[Lab]:
    """Yield worlds with these means; those that are hardest for other costs, at the central one."""
    for mean in sorted(means):
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            pairs = two_costs(verdict, mean, binary=certificate.binary)
            for low, high in pairs if mean == means[0] else pairs[:1]:
                yield Lab(certificate, verdict, low, high, mean)


def _limit_claim(
    lab: Lab, delta: float, name: str, count: Callable[[Lab, np.random.Generator, int], int]
) -> Claim:
    """Promise that a certified limit fails with probability delta; so rarely that it takes more runs."""
    return Claim(name, lab.verdict, lab.name, delta, partial(count, lab), scale=max(1.0, 0.05 / delta))


def _count_labs(lab: Lab, rng: np.random.Generator, runs: int) -> int:
    return sum(count for redrawn, count in lab.certify(rng, runs) if _fails(lab, redrawn))


def _fails(lab: Lab, limits: Certificate | Campaign) -> bool:
    """Return whether the limit behind a verdict is beyond the true mean."""
    if lab.verdict is Verdict.ADVERSE:
        return limits.upper < lab.mean - 1e-12
    return limits.lower > lab.mean + 1e-12


def _count_campaigns(lab: Lab, rng: np.random.Generator, runs: int) -> int:
    """Count campaigns whose limit fails at any look."""
    like = lab.certificate
    ends = np.unique(np.linspace(0, like.n or 1, LOOKS + 1).round().astype(np.int64))
    held, failed = np.array([runs]), 0  # campaigns that did not fail yet, by their number of high costs
    for n, more in zip(ends[1:].tolist(), np.diff(ends).tolist(), strict=True):
        before, held = held, np.zeros(n + 1, dtype=np.int64)
        for number in np.flatnonzero(before).tolist():
            held[number : number + more + 1] += rng.multinomial(before[number], lab.chances(more))
        for number in np.flatnonzero(held).tolist():
            campaign = Campaign(
                delta_upper=like.delta_upper, delta_lower=like.delta_lower, binary=like.binary
            )
            if _fails(lab, campaign.update_many(lab.costs(np.array([number]), n)[0])):
                failed += int(held[number])
                held[number] = 0
    return failed


def _fixed_claim(
    name: str, lab: Lab, total: float, detector: MakeDetector, n: int, errs: Callable[[Lab, Findings], Flags]
) -> Claim:
    return Claim(name, lab.verdict, lab.name, total, partial(_count_datasets, lab, detector, n, 0.0, errs))


def _hypothesis_test(
    levels: Levels, certificate: Certificate, margin: float | None = None
) -> FixedSampleDetector:
    adverse, benign = levels[Verdict.ADVERSE], levels[Verdict.BENIGN]
    return HypothesisTest(certificate, alpha_adverse=adverse, alpha_benign=benign, margin=margin)


def _interval(levels: Levels, certificate: Certificate) -> FixedSampleDetector:
    return ConfidenceInterval(
        certificate,
        false_positive_rate=levels[Verdict.ADVERSE] + certificate.delta_upper,
        false_negative_rate=levels[Verdict.BENIGN] + certificate.delta_lower,
    )


def _count_datasets(
    lab: Lab,
    detector: MakeDetector,
    n: int,
    more: float,
    errs: Callable[[Lab, Findings], Flags],
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Draw the lab's trials, certify them alike, and judge n new ones: their order does not matter."""
    hits = 0
    for redrawn, count in lab.certify(rng, runs):
        highs, counts = np.unique(rng.binomial(n, lab.chance(more), count), return_counts=True)
        hits += int(counts[errs(lab, detector(redrawn).decide_many(lab.costs(highs, n)))].sum())
    return hits


def _is_declared(lab: Lab, found: Findings) -> Flags:
    return np.asarray(found.verdict == lab.verdict)


def _is_excluded(lab: Lab, found: Any) -> Flags:
    """Return where the limits exclude a shift of zero, which is the true one."""
    if lab.verdict is Verdict.ADVERSE:
        return np.asarray(found.shift_lower > 1e-9)
    return np.asarray(found.shift_upper < -1e-9)


def _is_shown(lab: Lab, found: Findings) -> Flags:  # noqa: ARG001  (as the others)
    return np.zeros(found.verdict.size, dtype=np.bool_) if found.no_worse is None else found.no_worse


def _stream_claim(
    name: str,
    lab: Lab,
    total: float,
    levels: Levels,
    errs: Callable[[Lab, Levels, Certificate, Array], int],
    more: float = 0.0,
) -> Claim:
    world = lab.name if not more else _with_margin(lab)
    return Claim(name, lab.verdict, world, total, partial(_count_streams, lab, levels, errs, more))


def _count_streams(
    lab: Lab,
    levels: Levels,
    errs: Callable[[Lab, Levels, Certificate, Array], int],
    more: float,
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Draw the lab's trials, certify them alike, and watch streams of the same world, one per column."""
    return sum(
        errs(lab, levels, redrawn, lab.streams(rng, (EPISODES, count), more))
        for redrawn, count in lab.certify(rng, runs)
    )


def _declared_by_fleet(lab: Lab, levels: Levels, certificate: Certificate, streams: Array) -> int:
    return int(is_declared(_fleet(levels, certificate, streams).verdicts, lab.verdict).sum())


def _shown_by_fleet(lab: Lab, levels: Levels, certificate: Certificate, streams: Array) -> int:  # noqa: ARG001
    return sum(_fleet(levels, certificate, streams, MARGIN).no_worse or [])


def _fleet(levels: Levels, certificate: Certificate, streams: Array, margin: float | None = None) -> Fleet:
    adverse, benign = levels[Verdict.ADVERSE], levels[Verdict.BENIGN]
    fleet = Fleet(certificate, alpha_adverse=adverse, alpha_benign=benign, margin=margin)
    return run_fleet(fleet, streams)


def _declared_by_test(lab: Lab, levels: Levels, certificate: Certificate, streams: Array) -> int:
    return count_found(_test(levels, certificate), streams, partial(declares, lab.verdict))


def _shown_by_test(lab: Lab, levels: Levels, certificate: Certificate, streams: Array) -> int:  # noqa: ARG001
    return count_found(_test(levels, certificate, MARGIN), streams, shows_no_worse)


def _missed_by_limits(lab: Lab, levels: Levels, certificate: Certificate, streams: Array) -> int:
    return count_missed(_test(levels, certificate), streams, partial(_is_excluded, lab))


def _test(
    levels: Levels, certificate: Certificate, margin: float | None = None, sharing: int = 1
) -> SequentialTest:
    adverse, benign = levels[Verdict.ADVERSE] / sharing, levels[Verdict.BENIGN] / sharing
    return SequentialTest(
        certificate, alpha_adverse=adverse, alpha_benign=benign, margin=margin, sharing=sharing
    )


def _family_claim(lab: Lab, total: float, levels: Levels) -> Claim:
    """Promise that no robot of many that share a certificate is wrongly called anything."""
    name = f"sequential-test, total, any of {ROBOTS} streams"
    return Claim(name, lab.verdict, lab.name, total, partial(_count_families, lab, levels))


def _count_families(lab: Lab, levels: Levels, rng: np.random.Generator, runs: int) -> int:
    hits, shares = 0, {verdict: level / ROBOTS for verdict, level in levels.items()}
    for redrawn, count in lab.certify(rng, runs):
        streams = lab.streams(rng, (EPISODES, ROBOTS * count))
        # A fleet is quick. Each of its streams spends the whole delta, which taken together is far too much.
        near = is_declared(_fleet(shares, redrawn, streams).verdicts, lab.verdict).reshape(count, ROBOTS)
        test, families = _test(levels, redrawn, sharing=ROBOTS), streams.reshape(EPISODES, count, ROBOTS)
        declared = partial(declares, lab.verdict)
        hits += sum(
            count_found(test, families[:, run, robots], declared) > 0
            for run, robots in enumerate(near)
            if robots.any()
        )
    return hits


def _margin_claims(lab: Lab, total: float, levels: Levels) -> Iterator[Claim]:
    """Try "no worse by more than a margin" at sites that are worse by just that."""
    n = 50 if lab.certificate.binary else 10
    detector = partial(_hypothesis_test, levels, margin=MARGIN)
    shown = partial(_count_datasets, lab, detector, n, MARGIN, _is_shown)
    name = f"hypothesis-test, total, margin {MARGIN:g}, n = {n}"
    yield Claim(name, lab.verdict, _with_margin(lab), total, shown)
    words = f"total, margin {MARGIN:g}, {EPISODES} times"
    yield _stream_claim(f"fleet, {words}", lab, total, levels, _shown_by_fleet, MARGIN)
    if is_tried_alone(lab.low, lab.high):
        yield _stream_claim(f"sequential-test, {words}", lab, total, levels, _shown_by_test, MARGIN)


def _with_margin(lab: Lab) -> str:
    return f"{lab.low:.3g} or {lab.high:.3g}, {lab.mean:.3g} to {lab.mean + MARGIN:.3g}, lab drawn, too"


def _count_lists(lab: Lab, rng: np.random.Generator, runs: int) -> int:
    return sum(
        count_lists(redrawn, lab.streams(rng, (EPISODES, STREAMS * count)))
        for redrawn, count in lab.certify(rng, runs)
    )
