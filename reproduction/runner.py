"""All experiments, in the paper's order, and the way from nothing to a folder of figures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from boundwatch._support.files import read_bytes, write_text
from boundwatch.errors import InvalidSetting
from boundwatch.reporting import plots
from reproduction import (
    baselines,
    certificates,
    cost_function,
    difficulty,
    hardware,
    index,
    irrelevant_shift,
    mug_placement,
    mugs_and_bowls,
    power,
    rates,
    theorem_3,
    wind,
)
from reproduction.artifacts import Artifact, Cache
from reproduction.figure import Experiment, Results, to_json
from reproduction.processor import instructions

_MODULES: tuple[Experiment, ...] = (
    difficulty,
    rates,
    baselines,
    irrelevant_shift,
    cost_function,
    wind,
    hardware,
    theorem_3,
    mug_placement,
    mugs_and_bowls,
    power,
    certificates,
)
EXPERIMENTS: dict[str, Experiment] = {module.NAME: module for module in _MODULES}
"""The experiments by name, in the order of the page."""


@dataclass(frozen=True)
class Computed:
    """The results of an experiment, as an artifact: computed once for the same settings."""

    kind: ClassVar[str] = "results"
    parallel: ClassVar[bool] = False
    experiment: str
    settings: Any

    @property
    def module(self) -> str:
        """The experiment's own."""
        return EXPERIMENTS[self.experiment].__name__

    def needs(self) -> Sequence[Artifact]:
        """Return what the experiment takes from the cache."""
        return EXPERIMENTS[self.experiment].artifacts(self.settings)

    def make(self, folder: Path, cache: Cache) -> None:
        """Run the experiment."""
        results = EXPERIMENTS[self.experiment].run(self.settings, cache)
        write_text(folder / "results.json", to_json(results))

    def load(self, cache: Cache) -> Results:
        """Return the results."""
        results: Results = json.loads(read_bytes(cache.folder(self) / "results.json"))
        return results


def full_settings() -> dict[str, Any]:
    """Return the settings of the full reproduction, by experiment.

    Examples
    --------
    >>> full_settings()["difficulty"].sizes
    (10, 50)
    """
    return {name: experiment.FULL for name, experiment in EXPERIMENTS.items()}


def quick_settings() -> dict[str, Any]:
    """Return small settings, by experiment.

    Examples
    --------
    >>> quick_settings()["difficulty"].sweep.datasets
    40
    """
    return {name: experiment.QUICK for name, experiment in EXPERIMENTS.items()}


def reproduce(
    names: Sequence[str],
    folder: str | Path,
    settings: Mapping[str, Any],
    *,
    jobs: int = 1,
    started: Callable[[int], None] = lambda total: None,  # noqa: ARG005  (names the argument for callers)
    done: Callable[[str], None] = lambda what: None,  # noqa: ARG005
) -> Path:
    """Run experiments and write their figures, numbers and the page.

    Parameters
    ----------
    names
        Of experiments; empty means all.
    folder
        Where the page, one folder an experiment, and the cache go. What an earlier run left in the cache is
        used; the same settings never run twice.
    settings
        By experiment, as `full_settings` returns them.
    jobs
        Processes.
    started, done
        Called once with the number of things to compute, and after each with its kind.

    Returns
    -------
    The path of ``index.html``.
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InvalidSetting(f"figure = {unknown[0]!r} is unknown; choose all or {', '.join(EXPERIMENTS)}")
    if jobs < 1:
        raise InvalidSetting(f"jobs = {jobs} is below 1; give the number of processes")
    out = Path(folder)
    cache = Cache(out / "cache", jobs=jobs)
    wanted = [Computed(name, settings[name]) for name in (names or EXPERIMENTS)]
    started(sum(len(level) for level in cache.missing(wanted)))
    cache.build(wanted, lambda artifact: done(artifact.kind))
    # The page shows everything that is there at these settings, not only what was asked for this time.
    shown = {}
    for name, experiment in EXPERIMENTS.items():
        computed = Computed(name, settings[name])
        if computed in wanted or not cache.missing([computed]):
            shown[name] = results = computed.load(cache)
            _write(experiment, results, settings[name], out / name)
    page = out / "index.html"
    write_text(page, index.render({name: EXPERIMENTS[name] for name in shown}, shown, settings, out))
    return page


def _write(experiment: Experiment, results: Results, settings: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "experiment": experiment.NAME,
        "instructions": instructions(),
        "settings": dataclasses.asdict(settings),
        "results": results,
        "caption": dataclasses.asdict(experiment.caption(results)),
        "tables": [dataclasses.asdict(table) for table in experiment.tables(results)],
        "claims": [dataclasses.asdict(claim) for claim in experiment.claims(results)],
    }
    write_text(folder / "results.json", to_json(content))
    figure = experiment.draw(results)
    for ending in ("png", "svg"):
        plots.save_figure(figure, folder / f"figure.{ending}")
