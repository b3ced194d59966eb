"""Environments in quantity: drawn block by block, on every core, the same ones for everybody.

A block of 1,024 accepted environments has a random stream of its own, derived from the seed and the block's
number. Which environments come out therefore depends on the seed alone: not on how many are asked for, nor on
the workers.

An environment is accepted when M, the clearance of the best primitive (with the rollouts drawn for it, in
calm air), lies in an interval; it and the number of obstacles make the difficulty of a distribution. Wind
changes the flight, not the acceptance.
"""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.describing import one_line
from boundwatch.errors import InvalidSetting, shown
from boundwatch.tasks.navigation import scene as scenes
from boundwatch.tasks.navigation.drone import DroneSettings, Wind, fly, recorded_noise
from boundwatch.tasks.navigation.recordings import Recordings
from boundwatch.tasks.navigation.scene import Floats, Scene

BLOCK = 1024
CANDIDATES = 1280  # a little more than BLOCK / 0.878, the acceptance rate in training: mostly one round does
HOPELESS = 2000  # rounds without a full block: acceptance below 4e-4
ALONE = 0x5EED  # numpy pads seeds with zeros, so that 0 would be the same as (0, 0); this tells them apart


@dataclass(frozen=True)
class Distribution:
    """A distribution over environments."""

    name: str
    """What the command line calls it."""
    obstacles: int = 9
    """Cylinders in the field."""
    gap_above: float = 0.1
    """Accepted when the best primitive keeps more than this, meters."""
    gap_below: float = np.inf
    """And at most this, meters."""
    wind: Wind | None = None
    """What blows, unseen by the sensor."""

    def __post_init__(self) -> None:
        if self.obstacles < 0:
            raise InvalidSetting(f"obstacles = {self.obstacles} is below 0")
        if not self.gap_above < self.gap_below:
            raise InvalidSetting(f"gap_above = {self.gap_above} is not below gap_below = {self.gap_below}")


TRAINING = Distribution("training")
NAMED = {
    "training": TRAINING,
    "easier": Distribution("easier", obstacles=6, gap_above=0.3),
    "harder": Distribution("harder", gap_above=0.0, gap_below=0.3),
    "task-irrelevant": Distribution("task-irrelevant", obstacles=4, gap_below=0.55),
    "windy": Distribution("windy", wind=Wind(speed=5.0)),
}


def difficulty(v: float) -> Distribution:
    """Return one point of the difficulty sweep.

    9 + round(v) obstacles; accepted for v < 0 if M > 100 - 10 v mm, else if 100 - 12 v < M < 100 max(20 -
    v^2, 1) mm.
    """
    if not -9.0 <= v <= 9.0:
        raise InvalidSetting(f"difficulty = {v} is outside [-9, 9]")
    name, obstacles = f"difficulty:{v:g}", 9 + round(v)
    if v < 0.0:
        return Distribution(name, obstacles, gap_above=(100.0 - 10.0 * v) / 1000.0)
    below = 100.0 * max(20.0 - v * v, 1.0) / 1000.0
    return Distribution(name, obstacles, gap_above=(100.0 - 12.0 * v) / 1000.0, gap_below=below)


def distribution(name: str) -> Distribution:
    """Return the distribution of that name.

    Names are those in `NAMED`, ``difficulty:V`` with V in [-9, 9], ``windy:SPEED`` with a speed in [0, 5]
    m/s, ``windy:SPEED@PLACE`` with a fan that stands elsewhere along the way (meters; 3 otherwise), and
    ``obstacles:K``, the training distribution with another number of them.

    Examples
    --------
    >>> distribution("windy:2.5").wind.speed, distribution("windy:5@4").wind.center
    (2.5, 4.0)
    """
    if name in NAMED:
        return NAMED[name]
    kind, _, value = name.partition(":")
    try:
        if kind == "difficulty":
            return difficulty(float(value))
        if kind == "windy":
            speed, _, place = value.partition("@")
            wind = Wind(speed=float(speed), center=float(place)) if place else Wind(speed=float(speed))
            return replace(NAMED["windy"], name=name, wind=wind)
        if kind == "obstacles":
            return replace(TRAINING, name=name, obstacles=int(value))
    except InvalidSetting:
        raise
    except ValueError as error:
        raise InvalidSetting(f"distribution = {name!r}: {value!r} is not a number") from error
    raise InvalidSetting(
        f"distribution = {name!r} is unknown; choose {', '.join(NAMED)}, "
        "difficulty:V with V from -9 to 9, windy:SPEED with 0 to 5 m/s, or obstacles:K"
    )


@dataclass(frozen=True, eq=False)
class Environments:
    """Some environments: obstacles, the rollouts drawn for the primitives, and what follows from them."""

    obstacles: Floats
    """Centers, shape (n, obstacles, 2), meters."""
    rollouts: NDArray[np.intp]
    """Which recording each primitive would fly, shape (n, primitives)."""
    clearances: Floats
    """How close each primitive would come to an obstacle, shape (n, primitives), meters; negative in a
    collision."""
    images: Floats
    """What the policy sees, shape (n, pixels, pixels), meters; n = 0 when they were not asked for."""
    flights: Floats
    """The paths behind the clearances, shape (n, primitives, steps, 2); n = 0 when not asked for."""

    def __len__(self) -> int:
        return len(self.obstacles)

    def __repr__(self) -> str:
        return one_line(self, {"n": len(self), "obstacles": self.obstacles.shape[1]})

    def costs(self, d_thresh: float) -> NDArray[np.float64]:
        """Return every primitive's cost, shape (n, primitives)."""
        return scenes.cost(self.clearances, d_thresh)

    def head(self, n: int) -> Environments:
        """Return the first `n`."""
        return self.take(slice(n))

    def take(self, numbers: slice | NDArray[np.intp]) -> Environments:
        """Return those with these numbers."""
        return Environments(*(part[numbers] for part in vars(self).values()))

    @staticmethod
    def join(parts: Sequence[Environments]) -> Environments:
        """Put blocks together."""
        return Environments(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


class World:
    """Draws environments and flies every primitive through them.

    Recorded flights may take the place of the drone's model; winds then cannot be flown.
    """

    def __init__(
        self,
        scene: Scene | None = None,
        drone: DroneSettings | None = None,
        recordings: Recordings | None = None,
    ) -> None:
        if drone is not None and recordings is not None:
            raise InvalidSetting("drone and recordings were both given; recordings replace a drone: pass one")
        self.scene = Scene() if scene is None else scene
        self.drone: DroneSettings | None = None
        if recordings is None:
            self.drone = DroneSettings() if drone is None else drone
            self.recordings, self._flights = _modeled(self.scene, self.drone)
        else:
            self.recordings, self._flights = recordings, _cut(self.scene, recordings)

    def __repr__(self) -> str:
        return one_line(self, {"scene": self.scene, "drone": self.drone, "recordings": self.recordings})

    def __str__(self) -> str:
        flown = "recorded flights" if self.drone is None else "a model of the drone"
        return f"World of obstacle fields for {self.primitives} primitives, with {flown}"

    @property
    def primitives(self) -> int:
        """How many the policy can choose from."""
        return len(self.recordings.paths)

    def draw(self, distribution: Distribution, n: int, **options: Any) -> Environments:
        """Draw `n` environments at once, as `stream` does block by block (10 kB each with images)."""
        return Environments.join(list(self.stream(distribution, n, **options)))

    def stream(
        self,
        distribution: Distribution,
        n: int,
        *,
        seed: int | Sequence[int],
        images: bool = True,
        flights: bool = False,
        workers: int | None = None,
    ) -> Iterator[Environments]:
        """Draw `n` environments, yielding blocks of at most 1,024; with one thread per core unless told.

        The seed is one number or several, of any type of integer; different seeds give independent
        environments. Several that hold one number are that number; zeros at the end of more do not count.
        Depth images are computed, and the paths flown are kept, where asked for.
        """
        if n < 1:
            raise InvalidSetting(f"n = {n} is below 1; ask for at least one environment")
        entropy = _entropy(seed)
        if distribution.wind is not None and self.drone is None:
            raise InvalidSetting(
                f"distribution = {distribution.name!r} has wind, which recorded trajectories cannot fly; "
                "leave them out to use the model, or choose a distribution without wind"
            )
        workers = (os.cpu_count() or 1) if workers is None else workers
        waiting: deque[Future[Environments]] = deque()
        with ThreadPoolExecutor(max_workers=workers) as pool:
            for block, start in enumerate(range(0, n, BLOCK)):
                waiting.append(pool.submit(self._block, distribution, entropy, block, images, flights))
                last = start + BLOCK >= n
                while waiting and (last or len(waiting) > 2 * workers):  # bounds the memory
                    full = waiting.popleft().result()
                    yield full if waiting or not last else full.head(n - start)

    def _block(
        self, distribution: Distribution, entropy: Sequence[int], block: int, images: bool, flights: bool
    ) -> Environments:
        """Draw candidates until a block is full of accepted ones."""
        rng = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(block,)))
        kept: list[tuple[Floats, NDArray[np.intp], Floats]] = []
        found = 0
        for _ in range(HOPELESS):
            obstacles = scenes.place_obstacles(self.scene, CANDIDATES, distribution.obstacles, rng)
            rollouts = self.recordings.draw(CANDIDATES, rng)
            clearances = self._clearances(obstacles, rollouts)
            best = clearances.max(axis=1)
            ok = (best > distribution.gap_above) & (best <= distribution.gap_below)
            kept.append((obstacles[ok], rollouts[ok], clearances[ok]))
            found += int(ok.sum())
            if found >= BLOCK:
                break
        else:
            raise InvalidSetting(
                f"distribution = {distribution.name!r} accepts {found} of {HOPELESS * CANDIDATES} "
                "environments; widen gap_above and gap_below or change the number of obstacles"
            )
        obstacles, rollouts, clearances = (np.concatenate(part)[:BLOCK] for part in zip(*kept, strict=True))
        seen = scenes.depth_images(self.scene, obstacles if images else obstacles[:0])
        if distribution.wind is None or self.drone is None:  # `stream` refuses wind without a drone
            paths = self._recorded(rollouts if flights else rollouts[:0])
        else:
            paths = _in_wind(self.drone, distribution.wind, rollouts, rng)
            columns = [scenes.clearance(self.scene, paths[:, p], obstacles) for p in range(self.primitives)]
            clearances = np.stack(columns, axis=1)
        return Environments(obstacles, rollouts, clearances, seen, paths if flights else paths[:0])

    def _clearances(self, obstacles: Floats, rollouts: NDArray[np.intp]) -> Floats:
        """Fly every environment's rollouts: all the environments that drew one recording at a time."""
        result = np.full(rollouts.shape, np.nan, dtype=np.float32)
        for primitive, flights in enumerate(self._flights):
            for rollout, flight in enumerate(flights):
                drew = np.flatnonzero(rollouts[:, primitive] == rollout)
                result[drew, primitive] = scenes.clearance(self.scene, flight, obstacles[drew])
        return result

    def _recorded(self, rollouts: NDArray[np.intp]) -> Floats:
        """Return the recordings that were drawn."""
        paths = [flights[rollouts[:, p]] for p, flights in enumerate(self.recordings.paths)]
        return np.stack(paths, axis=1).astype(np.float32)


def _in_wind(
    drone: DroneSettings, wind: Wind, rollouts: NDArray[np.intp], rng: np.random.Generator
) -> Floats:
    """Fly the rollouts that were drawn once more, in the wind."""
    primitive = np.broadcast_to(np.arange(len(drone.primitives)), rollouts.shape)
    noise = recorded_noise(drone)[primitive, rollouts]
    return fly(drone, primitive, noise, wind, rng).astype(np.float32)


def _entropy(seed: int | Sequence[int]) -> tuple[int, ...]:
    """Return what a seed gives to the random streams: never one number alone, which zeros would pad."""
    try:
        numbers = tuple(map(operator.index, [seed] if np.ndim(seed) == 0 else seed))  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidSetting(f"seed = {shown(seed)} is not made of integers; give one or several") from error
    if not numbers or min(numbers) < 0:
        raise InvalidSetting(f"seed = {shown(seed)} is empty or below 0; choose 0 or more")
    return (*numbers, ALONE) if len(numbers) == 1 else numbers


@lru_cache(maxsize=8)  # a tenth of a second each, and most worlds have the same drone
def _modeled(scene: Scene, drone: DroneSettings) -> tuple[Recordings, list[list[Floats]]]:
    """Return the flights of the model, whole and cut."""
    recordings = Recordings.from_drone(drone)
    for path in recordings.paths:
        path.flags.writeable = False  # everybody has the same
    return recordings, _cut(scene, recordings)


def _cut(scene: Scene, recordings: Recordings) -> list[list[Floats]]:
    flown = (flights.astype(np.float32) for flights in recordings.paths)
    return [[_relevant(scene, flight) for flight in flights] for flights in flown]


def _relevant(scene: Scene, flight: Floats) -> Floats:
    """Cut a flight to the steps that can be the nearest to some obstacle: faster, and the same distances.

    The places nearest to one step form a convex cell around it, so that only steps inside the obstacle region
    and the nearest steps of its border matter; three steps more at either end cover what lies between the
    border's sampled points. With ``distance="sensor"`` an obstacle is seen before it is nearest.
    """
    if scene.distance == "sensor":
        return flight
    xs, ys = np.linspace(*scene.x_range, 400), np.linspace(*scene.y_range, 200)
    sides = [np.stack([xs, np.full_like(xs, y)], axis=1) for y in scene.y_range]
    sides += [np.stack([np.full_like(ys, x), ys], axis=1) for x in scene.x_range]
    border = np.concatenate(sides).astype(np.float32)
    x, y = border.T[:, :, None] - flight.T[:, None]
    nearest = np.unique((x**2 + y**2).argmin(axis=1))
    low, high = np.transpose([scene.x_range, scene.y_range]).astype(np.float32)
    inside = np.flatnonzero(((flight >= low) & (flight <= high)).all(axis=1))
    steps = np.concatenate([nearest, inside])
    return flight[max(int(steps.min()) - 3, 0) : int(steps.max()) + 4]
