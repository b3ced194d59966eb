"""What is promised of the mean over scenes, however much the repeats of a scene are alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from boundwatch import bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import Verdict
from boundwatch.selftest.worlds import Claim, Levels

CORRELATION = 0.3
_SCENES, _REPEATS, _MEAN = 10, 10, 0.2
_AT_ONCE = 2000  # labs; more would fill the memory


def claims_of_clusters(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised of limits from repeats: as many as the certificate has, if it has any."""
    scenes, repeats, mean, spent = _SCENES, _REPEATS, _MEAN, levels
    if certificate.method == "tuned" and certificate.trials is not None and certificate.n is not None:
        scenes, repeats = certificate.n, max(1, round(certificate.trials.n / certificate.n))
        mean = min(max(certificate.mean_cost or 0.0, 0.01), 0.99)
        spent = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
    for verdict, delta in spent.items():
        side = "upper" if verdict is Verdict.ADVERSE else "lower"
        world = f"mean {mean:.3g}, trials of a scene correlated by {CORRELATION:g}"
        count = partial(_count_failed, (scenes, repeats), mean, verdict, delta)
        name = f"repeated scenes, {side} limit from {scenes} x {repeats}"
        yield Claim(name, verdict, world, delta, count, scale=max(1.0, 0.05 / delta))


def _count_failed(
    shape: tuple[int, int], mean: float, verdict: Verdict, delta: float, rng: np.random.Generator, runs: int
) -> int:
    """Count labs whose limit excludes the mean over scenes."""
    (scenes, repeats), precision, failed = shape, (1 - CORRELATION) / CORRELATION, 0
    for start in range(0, runs, _AT_ONCE):
        rates = rng.beta(mean * precision, (1 - mean) * precision, (min(_AT_ONCE, runs - start), scenes))
        shares = rng.binomial(repeats, rates) / repeats
        if verdict is Verdict.ADVERSE:
            failed += int(np.sum(bounds.tuned_upper(shares, delta) < mean))
        else:
            failed += int(np.sum(bounds.tuned_lower(shares, delta) > mean))
    return failed
