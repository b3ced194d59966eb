"""The authors' published curves and grasps as results of ours: the same rules judge them.

Where a claim holds for us and not for them, or the reverse, our numbers differ; where it holds for neither,
our rule is strict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reproduction import baselines, cost_function, difficulty, mug_placement, rates, recorded
from reproduction.certification import Limits
from reproduction.judging import PAPERS_N, Tally, both_tails, margin, tally
from reproduction.recorded import Published

DELTA, ALPHA = 0.01, 0.05
DATASETS = 2000
USUAL = (ALPHA, ALPHA)


def results(name: str) -> list[Any]:
    """Return the authors' results of an experiment, as its own kind; none where they published no numbers.

    Examples
    --------
    >>> [len(results(name)) for name in ("difficulty", "wind")]
    [1, 0]
    """
    return [_BUILDERS[name]()] if name in _BUILDERS else []


def _limits() -> Limits:
    mine = recorded.thresholds()["500"]
    return Limits("theorem-1", mine["lower"], mine["upper"], DELTA, mine["upper"], mine["upper"])


def _rows(
    curve: Mapping[str, Published],
    detector: str,
    *,
    rates: tuple[float, float] = USUAL,
    verdicts: tuple[str, ...] = ("adverse", "benign"),
    d_thresh: float | None = None,
) -> list[Tally]:
    """Return a curve as tallies; their setting of difficulty 0 is the training distribution itself."""
    if detector == "hypothesis-test":
        rates = (rates[0] + DELTA, rates[1] + DELTA)
    rows = []
    for setting, point in curve.items():
        counts = {verdict: round(DATASETS * point.share(detector, verdict)) for verdict in verdicts}
        adverse, benign = counts["adverse"], counts.get("benign", 0)
        rows.append(
            Tally(
                setting="training" if setting == "difficulty:0" else setting,
                detector=detector,
                tail="hoeffding",
                n=PAPERS_N,
                datasets=DATASETS,
                adverse=adverse,
                benign=benign,
                within=DATASETS - adverse - benign,
                shift=point.shift,
                shift_error=0.0,  # not published
                false_positive_rate=rates[0],
                false_negative_rate=rates[1],
                d_thresh=d_thresh,
            )
        )
    return rows


def _difficulty() -> difficulty.Results:
    curve = recorded.published("figure_4_difficulty")
    rows = [row for detector in difficulty.DETECTORS for row in _rows(curve, detector)]
    benign = {str(PAPERS_N): margin(PAPERS_N, ALPHA - DELTA)}
    return difficulty.Results(rows, _limits(), cost_function.authors_cost(), benign)


def _rates() -> rates.Results:
    curves = {USUAL: recorded.published("figure_4_difficulty")}
    curves |= {pair: recorded.published("figure_5_rates", key) for pair, key in rates.PUBLISHED.items()}
    rows = [row for pair, curve in curves.items() for row in _rows(curve, "confidence-interval", rates=pair)]
    return rates.Results(rows, _limits(), rates.FULL.rates, USUAL)


def _baselines() -> baselines.Results:
    curve = recorded.published("figure_6_baselines")
    ours, theirs = (
        [row for name in names for row in _rows(curve, name, verdicts=("adverse",))]
        for names in (baselines.OURS, baselines.THEIRS)
    )
    return baselines.Results(ours, ALPHA, _limits(), theirs)


def _cost_function() -> cost_function.Results:
    tallies, certificates = [], []
    for name, mine in recorded.thresholds().items():
        d_thresh, curve = float(name) / 1000, recorded.published("figure_4_difficulty", name)
        for detector in baselines.OURS:
            tallies += _rows(curve, detector, d_thresh=d_thresh)
        certificates.append(
            cost_function.Threshold(
                d_thresh=d_thresh,
                lower=mine["lower"],
                upper=mine["upper"],
                training_cost=mine["training_cost"],
                expected_cost=cost_function.authors_cost(name),
                standard_error=0.0,  # not published
                bounds={"upper_pinsker": mine["upper"]},
            )
        )
    return cost_function.Results(tallies, "theorem-1", ALPHA, DELTA, certificates)


def _mug_placement() -> mug_placement.Results:
    certificate, grasps = recorded.certificate("arm"), recorded.simulated_placements()
    replayed = mug_placement.replayed(ALPHA)
    tallies = [
        tally(detector, costs, row.setting, shift)
        for (shift, row), costs in zip(replayed, grasps.values(), strict=True)
        for detector in both_tails(certificate, ALPHA)
    ]
    placements = [row for _, row in replayed]
    reference = grasps[1].ravel()
    limits = mug_placement.MugLimits(
        "theorem-1",
        certificate.lower,
        certificate.upper,
        DELTA,
        theorem_1=mug_placement.LEAST,
        pointwise=certificate.upper,
        n=500,
        mean_cost=float(reference.mean()),
    )
    return mug_placement.Results(tallies, limits, ALPHA, reference.size, placements)


_BUILDERS: dict[str, Callable[[], Any]] = {
    difficulty.NAME: _difficulty,
    rates.NAME: _rates,
    baselines.NAME: _baselines,
    cost_function.NAME: _cost_function,
    mug_placement.NAME: _mug_placement,
}
