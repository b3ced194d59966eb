"""What the demo does. Worlds, detectors, levels and number of trials are fixed here, before any flight."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.files import make_folder, write_costs, write_text
from boundwatch._support.parallel import progress_bar
from boundwatch.detectors import ConfidenceInterval, HypothesisTest, SequentialTest
from boundwatch.detectors.verdicts import TailName
from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.policy import logits_of
from boundwatch.tasks.navigation.train import QUICK, Draw, Recipe, Run, train
from boundwatch.tasks.navigation.world import Environments

WORLDS: Mapping[str, str] = {
    "training": "as trained: 9 obstacles",
    "harder": "smaller gaps: the best way through keeps less than 0.3 m",
    "easier": "6 obstacles, and a way through that keeps 0.3 m",
    "windy": "as trained, with a fan of 5 m/s across the way that the sensor cannot see",
    "task-irrelevant": "looks different, 4 obstacles, and is about as hard",
}
WORSE = frozenset({"harder", "windy"})  # made to be worse; ADVERSE for any other is a false alarm
TRIALS = 50
EXAMPLES = 3
_CAPITALS = {"adverse": "ADVERSE", "benign": "BENIGN"}
_WRONG = {"within": "missed", "BENIGN": "wrong"}  # in a world that is worse
# Every rule may be wrong in 5 % of all uses at most: tests get 0.04, and the certificate takes 0.01.
ALPHA, TOTAL = 0.04, 0.05


@dataclass(frozen=True, eq=False)
class Visit:
    """One world: the trials' costs, findings, evidence over trials, and the environments of some trials."""

    world: str
    shown: NDArray[np.intp]
    environments: Environments
    chosen: NDArray[np.intp]
    costs: NDArray[np.float64]
    findings: dict[str, dict[str, Any]]
    e_adverse: list[float]
    e_benign: list[float]


@dataclass(frozen=True, eq=False)
class Demo:
    """A finished demo."""

    run: Run
    visits: list[Visit]

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return what every detector said of each world, with what was wrong about it."""
        lines = []
        for visit in self.visits:
            said = [_CAPITALS.get(each["verdict"], "within") for each in visit.findings.values()]
            wrong = _WRONG if visit.world in WORSE else {"ADVERSE": "false alarm"}
            marked = [f"{each} ({wrong[each]})" if each in wrong else each for each in said]
            lines.append((f"{visit.costs.mean():.3f}", *marked, visit.world))
        return ("mean cost", *self.visits[0].findings, "world"), lines

    def to_dict(self) -> dict[str, Any]:
        """Return certificate and findings as plain JSON values."""
        certificate = self.run.certificate
        promise = {name: getattr(certificate, name) for name in ("lower", "upper", "delta", "n", "mean_cost")}
        worlds = [
            {"world": visit.world, "n": len(visit.costs), "mean_cost": float(visit.costs.mean())}
            | {"findings": visit.findings}
            for visit in self.visits
        ]
        return {"certificate": promise | {"fingerprint": certificate.fingerprint}, "worlds": worlds}


def run_demo(folder: str | Path, *, recipe: Recipe = QUICK, trials: int = TRIALS) -> Demo:
    """Train, certify, fly `trials` times in each world, judge; write all to the folder."""
    if trials < EXAMPLES:
        raise InvalidSetting(f"trials = {trials} is below {EXAMPLES}; the report shows that many flights")
    folder = Path(folder)
    run = train(recipe, folder / "run")
    visits = []
    with progress_bar("flying  ") as progress:
        task = progress.add_task("", total=len(WORLDS), note="")
        for number, world in enumerate(WORLDS):
            visits.append(_visit(run, world, trials, number))
            make_folder(folder / "costs")
            write_costs(folder / "costs" / f"{world}.csv", visits[-1].costs)
            progress.update(task, advance=1, note=world)
    demo = Demo(run, visits)
    write_text(folder / "findings.json", json.dumps(demo.to_dict(), indent=2, allow_nan=False) + "\n")
    return demo


def _visit(run: Run, world: str, trials: int, number: int) -> Visit:
    task = run.task(world)
    seed = (run.recipe.seed, Draw.DEPLOYMENT, number)
    environments = run.world.draw(task.distribution, trials, seed=seed, flights=True)
    logits = logits_of(run.policy, environments.images)
    costs = task.costs(logits, environments)
    shown = np.argsort(costs, kind="stable")[[trials // 4, trials // 2, 3 * trials // 4]]  # the quartiles
    watch = SequentialTest(run.certificate, alpha_adverse=ALPHA, alpha_benign=ALPHA)
    evidence = [watch.update(cost) for cost in costs.tolist()]
    return Visit(
        world=world,
        shown=shown,
        environments=environments.take(shown),
        chosen=logits.argmax(axis=1),
        costs=costs,
        findings=_judge(run, costs) | {"sequential": evidence[-1].to_dict()},
        e_adverse=[finding.e_adverse for finding in evidence],
        e_benign=[finding.e_benign for finding in evidence],
    )


def _judge(run: Run, costs: NDArray[np.float64]) -> dict[str, dict[str, Any]]:
    """Return what the detectors say that look at the costs once."""
    levels = {"alpha_adverse": ALPHA, "alpha_benign": ALPHA}
    rates = {"false_positive_rate": TOTAL, "false_negative_rate": TOTAL}
    tails: tuple[TailName, ...] = ("hoeffding", "betting")
    tests = {f"test, {tail}": HypothesisTest(run.certificate, tail=tail, **levels) for tail in tails}
    limits = {f"interval, {tail}": ConfidenceInterval(run.certificate, tail=tail, **rates) for tail in tails}
    return {name: detector.decide(costs).to_dict() for name, detector in (tests | limits).items()}
