"""The training recipe: a prior on some environments, a posterior and a certificate on others; what came out.

1. Prior: the network learns, by plain supervised learning, to score primitives by their clearance.
2. Posterior: Algorithm 3 on other environments, over the adapter's few directions.
3. One policy is drawn from the posterior and certified on the posterior's environments.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from boundwatch._support.describing import one_line
from boundwatch._support.files import read_bytes, write_bytes
from boundwatch._support.validation import check_choices, check_level
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting, SchemaMismatch
from boundwatch.tasks import folder as folders
from boundwatch.tasks.navigation.drone import DroneSettings, Primitive
from boundwatch.tasks.navigation.policy import BATCH, Navigation, Policy, logits_of
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Scene
from boundwatch.tasks.navigation.world import Environments, World, distribution
from boundwatch.training import (
    GaussianPosterior,
    History,
    check_disjoint,
    load_policy,
    train_backprop,
    train_prior,
)
from boundwatch.training.determinism import single_thread
from boundwatch.training.policies import draw_first_weights

_NAME, _LOGITS = "navigation", "logits.npy"
_FAR = 100.0  # meters: a field without obstacles is clear at any distance, which no softmax can say


class Draw(IntEnum):
    """What environments are drawn for; different purposes are independent under the same seed."""

    PRIOR = 0
    TRAINING = 1
    DEPLOYMENT = 2


@dataclass(frozen=True)
class Recipe:
    """Everything about one training; the defaults are the full setting."""

    d_thresh: float = 0.5
    """Clearance from which a flight costs nothing, meters."""
    distribution: str = "training"
    """Where the policy is trained and certified."""
    environments: int = 10_000
    """Training environments, for posterior and certificate."""
    prior_distribution: str = "training"
    """Where the prior is trained."""
    prior_environments: int = 10_000
    """Environments for the prior; disjoint from the training environments."""
    label_temperature: float | None = None
    """Of the softmax labels, meters; a fifth of d_thresh if left out. The paper's is 1."""
    clip_labels: bool = True
    """Whether labels see no clearance beyond d_thresh; the paper's do."""
    prior_steps: int = 1600
    """Steps of the prior's training; the last third runs at a tenth of the learning rate."""
    prior_batch: int = 128
    """Environments in each of them."""
    prior_rate: float = 2e-3
    """Learning rate."""
    directions: int = 0
    """Principal components in the posterior, besides one offset per primitive."""
    posterior: Literal["adapter", "weights"] = "adapter"
    """Over what: the adapter's directions, or all weights of the network, as in the paper."""
    prior_log_variance: float = -5.0
    """Logarithm of the prior's variance along each direction."""
    steps: int = 300
    """Steps of Algorithm 3."""
    samples: int = 4
    """Policies in each of them."""
    rate: float = 0.02
    """Learning rate, in standard deviations of the prior."""
    sharpness: float = 4.0
    """The surrogate cost is the expected cost under a softmax of this many times the logits."""
    bound: Bound = "pointwise"
    """What is minimized and certified."""
    delta: float = 0.01
    """Probability with which the certificate may fail."""
    seed: int = 1
    """Of everything random."""

    def __post_init__(self) -> None:
        for name in ("environments", "prior_environments"):
            if getattr(self, name) < 100:
                raise InvalidSetting(f"{name} = {getattr(self, name)} is below 100; training needs more")
        if self.seed < 0:
            raise InvalidSetting(f"seed = {self.seed} is below 0; choose 0 or more")
        if not 0.0 < self.d_thresh < math.inf:
            raise InvalidSetting(f"d_thresh = {self.d_thresh} is not above 0; give it in meters")
        if self.label_temperature is not None and not 0.0 < self.label_temperature < math.inf:
            raise InvalidSetting(
                f"label_temperature = {self.label_temperature} is not above 0; give it in meters"
            )
        check_choices(self)
        check_level(self.delta, "delta")
        for name in (self.distribution, self.prior_distribution):
            distribution(name)  # refuses what it does not know


PAPERS_LABELS: dict[str, Any] = {"label_temperature": 1.0, "clip_labels": False}
PAPERS_LABELS |= {"sharpness": 40.0, "prior_log_variance": -5.0 + 2 * math.log(0.1)}
"""What makes a recipe learn the paper's labels: scores ten times smaller, and all else in their units."""
QUICK = Recipe(environments=4_000, prior_environments=4_000, prior_steps=600, steps=150)
"""Small enough to wait for: a third of the time, for bounds 0.01 looser."""


@dataclass(frozen=True)
class Deployment:
    """What happened in new environments, one entry each."""

    costs: NDArray[np.float64]
    """From the clearance of the primitive flown."""
    logits: NDArray[np.float64]
    """The network's outputs, shape (n, primitives)."""
    columns: Mapping[str, Sequence[object]] = field(default_factory=dict)
    """Nothing: the cost says it all."""

    def __repr__(self) -> str:
        return one_line(self, {"n": self.costs.size, "mean_cost": float(self.costs.mean())})


@dataclass(frozen=True)
class Run:
    """A finished training."""

    recipe: Recipe
    world: World
    policy: nn.Module
    """The one that was drawn and certified."""
    certificate: Certificate
    logits: NDArray[np.float32]
    """Its outputs on the training environments: what the baselines take their thresholds from."""
    summary: dict[str, dict[str, float]]
    """Training cost, divergences and all three bounds, of the certified policy and of an untrained draw."""

    def __repr__(self) -> str:
        return one_line(self, {"recipe": self.recipe, "certificate": self.certificate})

    def __str__(self) -> str:
        return f"A drone trained in {self.recipe.environments} environments. {self.certificate}"

    def task(self, name: str | None = None) -> Navigation:
        """Return the task in the distribution of that name; by default the one that was trained in."""
        return Navigation(self.world, distribution(name or self.recipe.distribution), self.recipe.d_thresh)

    def deploy(self, name: str, n: int, *, seed: int | tuple[int, ...] = 0) -> Deployment:
        """Fly n new environments of a distribution, independent of the training's whatever the seed."""
        seeds = (seed,) if isinstance(seed, int) else seed
        stream = (self.recipe.seed, Draw.DEPLOYMENT, *seeds)
        return Deployment(*self.task(name).deploy(self.policy, n, seed=stream))

    @property
    def notes(self) -> Sequence[str]:
        """The other bounds, and what an untrained draw pays."""
        untrained = self.summary["prior_draw"]
        return (
            folders.compare_bounds(self.summary["trained"], self.recipe.bound),
            f"An untrained draw from the prior: training cost {untrained['cost']:.4f}, pointwise limit "
            f"{untrained['upper_pointwise']:.4f}.",
        )


def load_run(folder: str | Path) -> Run:
    """Load what `train` wrote; see `boundwatch.tasks.folder.load`."""
    folder = Path(folder)
    saved = folders.load(folder, _NAME)
    with folders.whole(folder, _NAME):
        recipe = Recipe(**saved.settings["recipe"])
        world = _world(saved.settings, folder)
        logits = np.load(io.BytesIO(read_bytes(folder / _LOGITS)), allow_pickle=False)
        policy = load_policy(saved.policy, network(recipe, world))
    return Run(recipe, world, policy, saved.certificate, logits, saved.summary)


def _world(settings: dict[str, Any], folder: Path) -> World:
    ranges = {name: tuple(settings["scene"][name]) for name in ("x_range", "y_range")}
    scene = Scene(**settings["scene"] | ranges)
    if settings["drone"] is None:
        world = World(scene, recordings=Recordings.load(folder / "recordings.npz"))
    else:
        primitives = tuple(Primitive(**primitive) for primitive in settings["drone"]["primitives"])
        world = World(scene, DroneSettings(**settings["drone"] | {"primitives": primitives}))
    if world.recordings.sha256() != settings["recordings"]:
        raise SchemaMismatch(f"the flights in {folder} are not those of the training; train again")
    return world


def network(recipe: Recipe, world: World) -> Policy:
    """Return the policy's network, not yet trained."""
    return Policy(world.primitives, world.scene.pixels, world.scene.depth_range, recipe.directions)


def train(recipe: Recipe, folder: str | Path, world: World | None = None) -> Run:
    """Train, draw and certify a policy in a world, by default the published one; write all to a folder.

    A folder that holds another training is refused; one that holds this one is loaded, or continued if it was
    interrupted: see `boundwatch.tasks.folder.claim`.

    **Guarantee**: with probability at least 1 - delta over the training environments and the policy drawn,
    the policy's expected cost in `recipe.distribution` lies between the certificate's limits.
    The same recipe and world give the same files, byte for byte, on one kind of machine; the certificate's
    date is that of the first start, whatever interruption follows.
    **Assumes**: the recipe, its seed among it, was not chosen by trying on the training environments.
    """
    world = World() if world is None else world
    settings = {
        "recipe": asdict(recipe),
        "scene": asdict(world.scene),
        "drone": None if world.drone is None else asdict(world.drone),
        "recordings": world.recordings.sha256(),
    }
    with folders.claim(folder, _NAME, settings) as claimed:
        if not claimed.finished:
            _train(claimed, recipe, world)
    return load_run(folder)


def _train(claimed: folders.Claim, recipe: Recipe, world: World) -> None:
    if world.drone is None:
        world.recordings.save(claimed.folder / "recordings.npz")
    task = Navigation(world, distribution(recipe.distribution), recipe.d_thresh)
    prior_distribution = distribution(recipe.prior_distribution)
    prior_set = world.draw(prior_distribution, recipe.prior_environments, seed=(recipe.seed, Draw.PRIOR))
    policy = _prior_policy(recipe, world, prior_set, claimed.checkpoints)
    training_set = world.draw(task.distribution, recipe.environments, seed=(recipe.seed, Draw.TRAINING))
    _check_disjoint(prior_set, training_set)
    posterior, history = _posterior(
        recipe, policy, training_set, claimed.checkpoints / "posterior.safetensors"
    )
    rule = {"bound": recipe.bound, "delta": recipe.delta, "seed": recipe.seed}
    trained = claimed.certify(posterior, lambda drawn: task.rollout(drawn, training_set), **rule)
    history.save(claimed.folder / "training.json")
    certified = load_policy(claimed.folder / folders.POLICY, network(recipe, world))
    save_logits(claimed.folder, logits_of(certified, training_set.images))
    # The draw is a stream of its own: comparing with it tells nothing about the certified one.
    noise = np.random.default_rng([recipe.seed, len(Draw)]).standard_normal(posterior.dim)
    untrained = posterior.prior_mean + posterior.prior_variance.sqrt() * torch.from_numpy(noise)
    cost = float(task.rollout(posterior.policy(untrained), training_set).mean())
    prior = folders.three_bounds(cost, recipe.environments, recipe.delta, renyi=0.0, log_ratio=0.0)
    claimed.finish({"trained": trained, "prior_draw": prior})


def _check_disjoint(prior_set: Environments, training_set: Environments) -> None:
    """Refuse sets that share an environment: obstacles and rollouts, for different ones may look the same.

    Without obstacles there are only as many environments as ways to draw rollouts, and independent draws
    do coincide; nothing could be told from that.
    """
    if training_set.obstacles.shape[1] > 0:
        prior_rows, training_rows = (
            zip(part.obstacles, part.rollouts, strict=True) for part in (prior_set, training_set)
        )
        check_disjoint(prior_rows, training_rows)


def _prior_policy(recipe: Recipe, world: World, prior_set: Environments, checkpoints: Path) -> Policy:
    """Train the network on the prior's environments."""
    policy = network(recipe, world)
    policy.adapter.requires_grad_(False)
    draw_first_weights(policy, torch.Generator().manual_seed(recipe.seed))
    images = torch.from_numpy(prior_set.images)
    targets = soft_labels(recipe, prior_set.clearances)
    slow = recipe.prior_steps // 3
    for name, steps, rate in (("fast", recipe.prior_steps - slow, 1.0), ("slow", slow, 0.1)):
        train_prior(
            policy,
            _cross_entropy,
            (images, targets),
            disjoint_from=(),  # images may be equal by chance; `_check_disjoint` has compared what they show
            steps=max(steps, 1),
            batch_size=recipe.prior_batch,
            learning_rate=rate * recipe.prior_rate,
            seed=recipe.seed,
            checkpoint=checkpoints / f"prior-{name}.safetensors",
        )
    policy.choose_directions(images)
    return policy.eval()


def soft_labels(recipe: Recipe, clearances: NDArray[np.float32]) -> Tensor:
    """Return what a network learns by cross-entropy: a softmax of the primitives' clearances."""
    most = recipe.d_thresh if recipe.clip_labels else _FAR
    clearances = np.clip(clearances, -most, most)
    temperature = recipe.label_temperature or 0.2 * recipe.d_thresh
    return torch.from_numpy(clearances / np.float32(temperature)).softmax(dim=1)


def _cross_entropy(policy: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(policy(images), targets)


def _posterior(
    recipe: Recipe, policy: Policy, training_set: Environments, checkpoint: Path
) -> tuple[GaussianPosterior, History]:
    """Run Algorithm 3 over the adapter, or over all other weights."""
    variance, images = math.exp(recipe.prior_log_variance), torch.from_numpy(training_set.images)
    costs = torch.from_numpy(training_set.costs(recipe.d_thresh)).float()
    if recipe.posterior == "weights":
        small = GaussianPosterior.over(policy, ["features", "head"], prior_variance=variance)
        seen, batch = [images], recipe.prior_batch
    else:  # what lies before the adapter is frozen, so it is computed once
        small = GaussianPosterior.over(policy.adapter, prior_variance=variance)
        with torch.no_grad(), single_thread():
            parts = [policy.embed(part) for part in torch.split(images, BATCH)]
        seen, batch = list(map(torch.cat, zip(*parts, strict=True))), max(recipe.environments // 4, 1)

    def surrogate(trained: Any, *batch: Tensor) -> tuple[Tensor, Tensor]:
        *seen, costs = batch
        logits = trained(*seen)
        expected = ((recipe.sharpness * logits).softmax(dim=1) * costs).sum(dim=1)
        return expected, costs.gather(1, logits.argmax(dim=1, keepdim=True))[:, 0]

    history = train_backprop(
        small,
        surrogate,
        (*seen, costs),
        steps=recipe.steps,
        bound=recipe.bound,
        delta=recipe.delta,
        samples=recipe.samples,
        batch_size=batch,
        learning_rate=recipe.rate,
        seed=recipe.seed,
        checkpoint=checkpoint,
    )
    if recipe.posterior == "weights":
        return small, history
    whole = GaussianPosterior.over(policy, ["adapter"], prior_variance=variance)
    whole.move(small.mean, small.log_variance)
    return whole, history


def save_logits(folder: Path, logits: NDArray[np.float64]) -> None:
    """Write the certified policy's outputs on the training environments."""
    buffer = io.BytesIO()
    np.save(buffer, logits.astype(np.float32), allow_pickle=False)
    write_bytes(folder / _LOGITS, buffer.getvalue())
