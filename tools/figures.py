"""Draw the figure on the README's first screen, costs, bound, evidence and alarm; and that of a stated shift.

Run it from the repository's root: ``python tools/figures.py``.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import boundwatch as bw
from boundwatch._support.figures import new_figure
from boundwatch.detectors.change import ChangeDetector
from boundwatch.reporting import wording
from boundwatch.reporting.plots import save_figure

SEED, STABLE, SHIFTED = 4, 60, 25
ASSETS = Path(__file__).parents[1] / "docs" / "assets"


def draw_under_shift(certificate: bw.Certificate, largest: float = 0.5) -> Figure:
    """Draw the worst expected cost against the distance of the new world from the certified one."""
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    distances = np.linspace(0, largest, 201)
    nats = [certificate.under_shift(kl=d) for d in distances]
    size = [certificate.under_shift(tv=min(d, 1.0)) for d in distances]
    axes.plot(distances, nats, color="#D55E00", lw=2, label="within a relative entropy of that many nats")
    label = "within a total variation of that size"
    axes.plot(distances, size, color="#0072B2", lw=2, linestyle=(0, (6, 2)), label=label)
    axes.axhline(certificate.upper, color="#333333", linewidth=1, linestyle=(0, (1, 2)))
    said, place = f"certified: at most {wording.ceiling(certificate.upper)}", (largest, certificate.upper)
    axes.annotate(said, place, (0, 4), textcoords="offset points", ha="right", fontsize=9)
    axes.set(xlabel="distance from the certified world", ylabel="worst expected cost", xlim=(0, largest))
    axes.set_ylim(0, min(1.02, 1.1 * max(*nats, *size)))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def draw_watch() -> Figure:
    """Watch a policy whose world becomes worse after sixty episodes."""
    rng = np.random.default_rng(SEED)
    certificate = bw.Certificate.from_held_out(rng.beta(1.0, 5.0, 500), delta=0.01)
    costs = np.concatenate([rng.beta(1.0, 5.0, STABLE), rng.beta(2.0, 2.5, SHIFTED)])
    detector = ChangeDetector(certificate, alpha_adverse=1 / 2000)
    findings = [detector.update(float(cost)) for cost in costs]
    evidence = np.array([finding.statistic_adverse for finding in findings])
    alarm = next(n for n, finding in enumerate(findings, 1) if finding.verdict is bw.Verdict.ADVERSE)

    figure = new_figure(8, 4.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    episodes = np.arange(1, costs.size + 1)
    above.axhspan(
        certificate.lower,
        certificate.upper,
        color="#0072B2",
        alpha=0.3,
        lw=0,
        label="certified expected cost",
    )
    shifted = episodes > STABLE
    above.plot(episodes[~shifted], costs[~shifted], "o", ms=4, color="#444444", label="cost of an episode")
    above.plot(episodes[shifted], costs[shifted], "^", ms=5, color="#D55E00", label="after the world changed")
    above.set(ylabel="cost", ylim=(-0.03, 1.03))
    above.legend(loc="upper left", frameon=False, ncols=3)
    below.semilogy(episodes, evidence, color="black", lw=1.5)
    below.axhline(2000, color="#0072B2", ls="--", lw=1.2)
    below.text(
        1, 2000 * 1.6, "at most one false alarm in 2,000 episodes on average", color="#004c78", va="bottom"
    )
    below.set(ylabel="evidence", xlabel="episode", ylim=(0.3, 3e5), xlim=(0, costs.size + 1))
    for axes, height in ((above, 0.85), (below, 1.0)):  # short of the legend
        axes.axvline(alarm, ymax=height, color="#D55E00", lw=1.5)
        axes.spines[["top", "right"]].set_visible(False)
    below.text(
        alarm - 1, 2e4, f"alarm, {alarm - STABLE} episodes after the change", ha="right", color="#a04600"
    )
    return figure


if __name__ == "__main__":
    ASSETS.mkdir(exist_ok=True)
    draw_watch().savefig(ASSETS / "watch.png", dpi=150)
    certificate = bw.Certificate.from_held_out([0] * 92 + [1] * 8, delta=0.01, binary=True)
    save_figure(draw_under_shift(certificate), ASSETS / "under-shift.png")
    print(f"Wrote {ASSETS / 'watch.png'} and under-shift.png")
