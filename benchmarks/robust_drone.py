"""Distributionally robust training of the drone: one policy for a range of winds and difficulties.

Prior and posterior are trained, and the certificate issued, on a mixture: each environment is drawn from one
of the components with equal chances, and the policy is not told which. It and the ordinary policy are then
judged, each by its own certificate, in the paper's 21 settings and in winds from 0 to 5 m/s.
`python -m benchmarks.robust_drone FIGURE` draws what `python -m benchmarks robust_drone` has measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.recorded import DIFFICULTIES

import boundwatch as bw
from benchmarks import trained
from boundwatch._support.figures import new_figure, save_figure
from boundwatch.tasks.navigation import train as training
from boundwatch.tasks.navigation.policy import logits_of
from boundwatch.tasks.navigation.scene import cost
from boundwatch.tasks.navigation.train import Draw, Recipe, network
from boundwatch.tasks.navigation.world import Environments, World, distribution
from boundwatch.training import certify, load_policy

COMPONENTS = (
    "training", "difficulty:1", "difficulty:2", "difficulty:3", "difficulty:3.5",
    "windy:1", "windy:2", "windy:3",
)  # fmt: skip
WINDS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
FLIGHTS = 1024
SEED = 21
_FAR = 1e3  # meters: where an obstacle that is not there stands
_MOST = 13  # obstacles of the hardest component


def draw_mixture(world: World, n: int, seed: tuple[int, ...]) -> Environments:
    """Draw n environments independently, each from a component that is drawn for it."""
    rng = np.random.default_rng([*seed, SEED])
    chosen = rng.integers(len(COMPONENTS), size=n)
    parts = []
    for number, name in enumerate(COMPONENTS):
        drawn = world.draw(distribution(name), max(int((chosen == number).sum()), 1), seed=(*seed, number))
        missing = _MOST - drawn.obstacles.shape[1]
        absent = np.full((len(drawn), missing, 2), _FAR, dtype=np.float32)
        obstacles = np.concatenate([drawn.obstacles, absent], axis=1)
        parts.append(replace(drawn, obstacles=obstacles, flights=np.empty((len(drawn), 0), np.float32)))
    joined = Environments.join([part.head(int((chosen == i).sum())) for i, part in enumerate(parts)])
    return joined.take(np.argsort(np.argsort(chosen, kind="stable"), kind="stable"))


def train_robust(recipe: Recipe, folder: Path) -> None:
    """Train as `boundwatch.tasks.navigation.train` does, on the mixture."""
    world = World()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as checkpoints:
        prior_set = draw_mixture(world, recipe.prior_environments, (recipe.seed, Draw.PRIOR))
        policy = training._prior_policy(recipe, world, prior_set, Path(checkpoints))
        training_set = draw_mixture(world, recipe.environments, (recipe.seed, Draw.TRAINING))
        training._check_disjoint(prior_set, training_set)
        posterior, _ = training._posterior(recipe, policy, training_set, Path(checkpoints) / "p.safetensors")

    def costs(drawn: Any) -> np.ndarray:
        table = cost(training_set.clearances, recipe.d_thresh)
        return np.take_along_axis(table, logits_of(drawn, training_set.images).argmax(1)[:, None], 1)[:, 0]

    certify(posterior, costs, folder, bound=recipe.bound, delta=recipe.delta, seed=recipe.seed)


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    home = trained.drone()
    ordinary = trained.folder(training.__name__, home.recipe)
    robust = ordinary.with_name(f"robust-{ordinary.name}")
    if not (robust / "certificate.json").exists():
        train_robust(home.recipe, robust)
    policies = {
        "ordinary": (home.policy, home.certificate),
        "robust": (
            load_policy(robust / "policy.safetensors", network(home.recipe, home.world)),
            bw.Certificate.load(robust / "certificate.json"),
        ),
    }
    settings = {f"difficulty:{v:g}": v for v in DIFFICULTIES} | {f"windy:{speed:g}": speed for speed in WINDS}
    result: dict[str, Any] = {
        "policy_seed": home.recipe.seed,
        "seed": SEED,
        "flights": FLIGHTS,
        "components": COMPONENTS,
        "policies": {},
    }
    for name, (policy, certificate) in policies.items():
        rows = {}
        for world in settings:
            costs, _ = home.task(world).deploy(
                policy, FLIGHTS, seed=(home.recipe.seed, Draw.DEPLOYMENT, SEED)
            )
            finding = bw.HypothesisTest(certificate).decide(costs)
            error = float(costs.std() / np.sqrt(FLIGHTS))
            rows[world] = {"cost": float(costs.mean()), "error": error, "verdict": finding.verdict.value}
        at_home, _ = home.task().deploy(
            policy, 10 * FLIGHTS, seed=(home.recipe.seed, Draw.DEPLOYMENT, SEED + 1)
        )
        result["policies"][name] = {
            "certified": [certificate.lower, certificate.upper],
            "home": [float(at_home.mean()), float(at_home.std() / np.sqrt(at_home.size))],
            "worlds": rows,
        }
    return result


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    for name, found in result["policies"].items():
        low, high = found["certified"]
        cost, error = found["home"]
        verdicts = [row["verdict"] for row in found["worlds"].values()]
        counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in ("adverse", "within", "benign"))
        print(f"{name}: certified {low:.3f} to {high:.3f}, at home {cost:.3f} +- {error:.3f}; {counts}")
        print("  " + ", ".join(f"{world} {row['cost']:.2f}" for world, row in found["worlds"].items()))


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw costs and verdicts over the settings."""
    looks = {"adverse": ("v", "#D55E00"), "within": ("o", "#57606A"), "benign": ("^", "#009E73")}
    labels = [f"{v:g}" for v in DIFFICULTIES], [f"{speed:g}" for speed in WINDS]
    figure = new_figure(10, 5.6)
    axes = figure.subplots(2, 2, sharey=True, width_ratios=[21, 9])
    for row, (name, found) in enumerate(result["policies"].items()):
        for column, kind in enumerate(("difficulty", "windy")):
            axis = axes[row, column]
            cells = [cell for world, cell in found["worlds"].items() if world.startswith(kind)]
            low, high = found["certified"]
            axis.axhspan(low, high, color="#cccccc", zorder=0)
            for verdict, (marker, color) in looks.items():
                at = [i for i, cell in enumerate(cells) if cell["verdict"] == verdict]
                axis.plot(
                    at, [cells[i]["cost"] for i in at], marker, color=color, ms=7, label=verdict.upper(),
                    linestyle="none",
                )  # fmt: skip
            axis.set_xticks(range(len(cells)), labels[column], rotation=90 if column == 0 else 0, fontsize=8)
            axis.set_ylim(-0.03, 1)
            axis.grid(axis="y", alpha=0.3)
        axes[row, 0].set_ylabel(f"{name} policy\nmean cost")
    axes[1, 0].set_xlabel("difficulty (0 is training)")
    axes[1, 1].set_xlabel("wind, m/s")
    axes[0, 0].legend(loc="upper left", title="gray: certified range", fontsize=8, title_fontsize=8)
    save_figure(figure, path)


if __name__ == "__main__":
    measured = json.loads(Path(__file__).with_name("results.json").read_text())["robust_drone"]
    draw(measured, Path(sys.argv[1]))
