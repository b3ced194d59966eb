"""All experiments, in the paper's order, and the way from nothing to a folder of figures."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, get_args

from boundwatch._support.files import read_bytes, write_text
from boundwatch.errors import InvalidSetting
from boundwatch.reporting import plots
from reproduction import (
    baselines,
    certificates,
    cost_function,
    difficulty,
    gradients,
    hardware,
    index,
    irrelevant_shift,
    labels,
    mug_placement,
    mugs_and_bowls,
    posterior,
    power,
    rates,
    stronger_baselines,
    theirs,
    theorem_3,
    wind,
)
from reproduction.artifacts import Artifact, Cache
from reproduction.certification import AUTHORS, RECORDED, CertificateName, Certified
from reproduction.figure import Experiment, Judged, from_json, to_json
from reproduction.index import PRINTED
from reproduction.navigation import Sweep
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
    gradients,
    posterior,
    labels,
    stronger_baselines,
    power,
    certificates,
)
EXPERIMENTS: dict[str, Experiment] = {module.NAME: module for module in _MODULES}
"""The experiments by name, in the order of the page."""


@dataclass(frozen=True)
class Computed(Artifact):
    """The results of an experiment, as an artifact: computed once for the same settings."""

    kind: ClassVar[str] = "results"
    experiment: str
    settings: Any

    @property
    def module(self) -> str:
        """The experiment's own."""
        return EXPERIMENTS[self.experiment].__name__

    def needs(self) -> Sequence[Artifact]:
        """Return what the experiment takes from the cache."""
        artifacts: Sequence[Artifact] = self.settings.artifacts()
        return artifacts

    def make(self, folder: Path, cache: Cache) -> None:
        """Run the experiment."""
        results = EXPERIMENTS[self.experiment].run(self.settings, cache)
        write_text(folder / "results.json", to_json(results))

    def load(self, cache: Cache) -> Any:
        """Return the results."""
        content = json.loads(read_bytes(cache.folder(self) / "results.json"))
        return from_json(EXPERIMENTS[self.experiment].Results, content)


def all_settings(*, quick: bool) -> dict[str, Any]:
    """Return the settings of the full reproduction, or small ones, by experiment.

    Examples
    --------
    >>> [all_settings(quick=quick)["difficulty"].sweep.datasets for quick in (False, True)]
    [2000, 40]
    """
    return {name: one.QUICK if quick else one.FULL for name, one in EXPERIMENTS.items()}


def variants(
    settings: Any,
    policies: int,
    certificate: CertificateName = "pointwise",
    *,
    recorded_flights: bool = False,
) -> dict[str, list[Any]]:
    """Return settings with every certificate and several policies: what the paper's claims are judged over.

    Parameters
    ----------
    settings
        Of an experiment. The first variant is these, with the certificate that is drawn.
    policies
        How many, trained alike with consecutive seeds. The first is drawn, and has twice the flights and
        grasps of each of the others, except in the wind.
    certificate
        The one that is drawn, and comes first.
    recorded_flights
        Whether to add a policy of the authors' recorded flights, where there is no wind to fly in.

    Examples
    --------
    >>> found = variants(difficulty.FULL, 3)
    >>> list(found), [each.sweep.policy.recipe.seed for each in found["theorem-1"]]
    (['pointwise', 'theorem-1'], [70, 71, 72])
    >>> list(variants(hardware.FULL, 3))
    ['']
    """
    if not isinstance(settings, Certified) or isinstance(
        settings, (labels.Settings, posterior.Settings, power.Settings, stronger_baselines.Settings)
    ):
        return {"": [settings]}  # no policy, or no claim of the paper's
    seeds = range(policies) if not isinstance(settings, cost_function.Settings) else (0,)
    found = {
        kind: [_with_seed(replace(settings, certificate=kind), offset) for offset in seeds]
        for kind in sorted(get_args(CertificateName), key=lambda kind: kind != certificate)
    }
    if recorded_flights and hasattr(settings, "sweep"):
        found[RECORDED] = [_on_recorded_flights(settings)]
    return found


def _on_recorded_flights(settings: Any) -> Any:
    """Return settings with a policy that is trained and deployed on the authors' recorded flights."""
    policy = settings.sweep.policy.on_recorded_flights()
    return replace(settings, sweep=replace(settings.sweep, policy=policy))


def _with_seed(settings: Any, offset: int) -> Any:
    """Return settings with a policy of another seed, with half the flights and grasps if it is not the first.

    What decides its claims, levels and numbers of trials, stays the same. How failures depend on friction is
    a table of the first policy: the others go without.
    """
    if hasattr(settings, "sweep"):
        return replace(settings, sweep=_with_seed(settings.sweep, offset))
    if not offset:
        return settings
    recipe = settings.policy.recipe
    changes: dict[str, Any] = {
        "policy": replace(settings.policy, recipe=replace(recipe, seed=recipe.seed + offset))
    }
    if hasattr(settings, "environments"):
        changes["environments"] = settings.environments // 2
    if isinstance(settings, Sweep):
        changes["datasets"] = settings.datasets // 2
    if isinstance(settings, mugs_and_bowls.Settings):
        changes["frictions"] = ()
    return replace(settings, **changes)


def reproduce(  # noqa: PLR0913  (the options of the command)
    names: Sequence[str],
    folder: str | Path,
    settings: Mapping[str, Any],
    *,
    policies: int = 1,
    certificate: CertificateName = "pointwise",
    recorded_flights: bool = False,
    jobs: int = 1,
    started: Callable[[Sequence[str]], None] = lambda kinds: None,  # noqa: ARG005  (names it for callers)
    done: Callable[[str], None] = lambda what: None,  # noqa: ARG005
) -> Path:
    """Run experiments and write their figures, numbers and the page.

    Parameters
    ----------
    names
        Of experiments; empty means all.
    folder
        Where the page, one folder per experiment, and the cache go. What an earlier run left in the cache is
        used; the same settings never run twice.
    settings
        By experiment, as `all_settings` returns them.
    policies
        Over how many policies the paper's claims are judged; the figures are of the first.
    certificate
        What the figures' detectors compare with; claims are judged with every certificate.
    recorded_flights
        Whether the drone's claims are also judged for a policy of the authors' recorded flights.
    jobs
        Processes.
    started, done
        Called once with the kinds of all that is to be computed, and after each with its kind.

    Returns
    -------
    The path of ``index.html``.
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InvalidSetting(f"figure = {unknown[0]!r} is unknown; choose all or {', '.join(EXPERIMENTS)}")
    for name, value in (("jobs", jobs), ("policies", policies)):
        if value < 1:
            raise InvalidSetting(f"{name} = {value} is below 1; give how many")
    out = Path(folder)
    cache = Cache(out / "cache", jobs=jobs)
    every = {
        name: {
            kind: [Computed(name, each) for each in found]
            for kind, found in variants(
                settings[name], policies, certificate, recorded_flights=recorded_flights
            ).items()
        }
        for name in EXPERIMENTS
    }
    computed = {name: [one for found in kinds.values() for one in found] for name, kinds in every.items()}
    wanted = [one for name in (names or EXPERIMENTS) for one in computed[name]]
    started([artifact.kind for level in cache.missing(wanted) for artifact in level])
    cache.build(wanted, lambda artifact: done(artifact.kind))
    # The page shows everything that is there at these settings, not only what was asked for this time.
    shown = []
    for name, experiment in EXPERIMENTS.items():
        if all(one in wanted for one in computed[name]) or not cache.missing(computed[name]):
            drawn = computed[name][0]
            found = {k: [one.load(cache) for one in v] for k, v in every[name].items()}
            judged = judge(experiment, found, theirs.results(name))
            printed = next(iter(found.get("theorem-1", [])), None) if certificate == "pointwise" else None
            shown.append(index.Shown(experiment, drawn.settings, drawn.load(cache), judged, printed))
            _write(shown[-1], out / name)
    page = out / "index.html"
    write_text(page, index.render(shown, out))
    return page


def judge(
    experiment: Experiment, results: Mapping[str, Sequence[Any]], authors: Sequence[Any] = ()
) -> list[Judged]:
    """Judge an experiment's claims for every policy and certificate; the first ones' numbers are told.

    Beside them the paper's claims are judged by what its ``authors`` published, if they did.
    """
    claims = {kind: [experiment.claims(one) for one in found] for kind, found in results.items()}
    (first, *_), *_ = claims.values()
    theirs = {AUTHORS: [experiment.claims(one) for one in authors]} if authors else {}
    return [
        Judged(
            claim,
            {
                kind: [found[place].holds for found in all_of]
                for kind, all_of in (claims if claim.beyond else claims | theirs).items()
            },
        )
        for place, claim in enumerate(first)
    ]


def _write(shown: index.Shown, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    experiment, results = shown.experiment, shown.results
    content = {
        "experiment": experiment.NAME,
        "instructions": instructions(),
        "settings": dataclasses.asdict(shown.settings),
        "results": results,
        "caption": dataclasses.asdict(experiment.caption(results)),
        "tables": [dataclasses.asdict(table) for table in experiment.tables(results)],
        "claims": [dataclasses.asdict(one.claim) | {"votes": one.votes} for one in shown.judged],
    }
    write_text(folder / "results.json", to_json(content))
    drawn = {"figure": results} | ({PRINTED: shown.printed} if shown.printed else {})
    for name, one in drawn.items():
        figure = experiment.draw(one)
        for ending in ("png", "svg"):
            plots.save_figure(figure, folder / f"{name}.{ending}")
