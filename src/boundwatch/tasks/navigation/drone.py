"""The drone: a point mass that flies open-loop maneuvers, with drag relative to the air.

The Parrot Swing holds a commanded attitude and nothing else: no position, no velocity is fed back. Seen from
above it is a point mass with three forces per unit of mass: forward thrust, the sideways component of thrust
that a bank angle gives (``g tan(bank)``), and quadratic drag against its velocity *relative to the air*. A
wind therefore moves it, and nothing on board notices. A motion primitive is a bank command over time: out to
one side, back, level. Two rollouts of one primitive differ in three numbers, drawn once a flight: how late
the motors start, a trim error of the bank angle, an error of the thrust.
Units are meters, seconds and degrees; x points right, y ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundwatch.errors import InvalidSetting

GRAVITY = 9.81


@dataclass(frozen=True)
class Primitive:
    """One open-loop maneuver: bank to one side, bank back, fly level."""

    bank_out: float
    """Bank angle of the first phase, degrees; negative is to the left."""
    bank_back: float
    """Bank angle of the second phase, degrees."""
    time_back: float
    """Length of the second phase, seconds."""
    trim_noise: float
    """Standard deviation between rollouts of the bank angle's trim error, degrees."""


# Fitted by ``benchmarks/calibrate_drone.py`` to the lateral positions at y = 4.0, 5.5 and 7.0 m, and to the
# spread between rollouts at 5.5 m, of the published motion-capture recordings of the Parrot Swing
# (docs/navigation.md has the targets and what the model reaches, side by side).
SWING_PRIMITIVES = (
    Primitive(bank_out=-27.2, bank_back=10.2, time_back=0.91, trim_noise=0.63),
    Primitive(bank_out=-19.3, bank_back=6.4, time_back=0.94, trim_noise=0.93),
    Primitive(bank_out=-11.8, bank_back=8.4, time_back=0.60, trim_noise=1.26),
    Primitive(bank_out=-0.3, bank_back=0.5, time_back=0.50, trim_noise=0.29),
    Primitive(bank_out=9.7, bank_back=-10.5, time_back=0.53, trim_noise=0.45),
    Primitive(bank_out=18.3, bank_back=-8.2, time_back=0.79, trim_noise=0.31),
    Primitive(bank_out=25.6, bank_back=-10.6, time_back=1.07, trim_noise=0.67),
)


@dataclass(frozen=True)
class DroneSettings:
    """Everything about the drone's motion; the defaults are calibrated to the Parrot Swing."""

    time_step: float = 0.01
    """Seconds between two recorded positions."""
    steps: int = 341
    """Recorded positions per flight."""
    start_delay: float = 0.34
    """Mean delay between command and motion, seconds."""
    start_delay_noise: float = 0.06
    """Standard deviation between rollouts of the delay, seconds."""
    boost: float = 4.9
    """Forward acceleration while speeding up, m/s^2."""
    boost_time: float = 1.15
    """Length of that phase, seconds."""
    cruise: float = 3.85
    """Forward acceleration afterward, m/s^2: in balance with drag at about 4.3 m/s."""
    thrust_noise: float = 0.02
    """Relative standard deviation between rollouts of the forward acceleration."""
    drag: float = 0.2
    """Drag per unit of mass, 1/m: air density x drag area / (2 x mass), with 75 g and 0.025 m^2 (wings
    broadside)."""
    bank_start: float = 0.4
    """Start of the bank command after motion starts, seconds."""
    time_out: float = 0.75
    """Length of the first bank phase, seconds."""
    bank_lag: float = 0.1
    """Time constant with which the bank angle follows its command, seconds."""
    primitives: tuple[Primitive, ...] = SWING_PRIMITIVES
    """The maneuvers, from the leftmost to the rightmost."""
    rollouts: int = 5
    """Recorded rollouts of each primitive."""
    seed: int = 1
    """Seed of the recorded rollouts' noise."""


@dataclass(frozen=True)
class Wind:
    """A steady wind with gusts; by default the jet of a fan across the drone's way.

    The paper used a fan; its place, width and gusts are not published and these are guesses. How much hangs
    on them is in ``docs/navigation.md``.
    """

    speed: float
    """Mean speed in the middle of the jet, m/s, in [0, 5]."""
    direction: float = 0.0
    """Where it blows to, degrees: 0 is to the right (+x), 90 ahead (+y)."""
    gust: float = 0.2
    """Standard deviation of the gusts, relative to the speed."""
    gust_time: float = 0.3
    """Correlation time of the gusts, seconds."""
    center: float = 3.0
    """Where along the way (y) the jet crosses it, meters."""
    width: float = 0.75
    """Standard deviation of the jet's Gaussian profile along y, meters; `inf` blows everywhere."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.speed <= 5.0:
            raise InvalidSetting(f"wind speed = {self.speed} is outside [0, 5] m/s, which the model covers")
        if not (self.gust >= 0.0 and self.gust_time > 0.0 and self.width > 0.0):
            given = f"gust = {self.gust}, gust_time = {self.gust_time}, width = {self.width}"
            raise InvalidSetting(f"{given}: gust must be at least 0, the other two above 0")


def recorded_noise(settings: DroneSettings) -> NDArray[np.float64]:
    """Draw the noise of the recorded rollouts: start delay, trim, thrust; shape (primitives, rollouts, 3).

    The draw is standardized over the rollouts of each primitive (mean 0, standard deviation 1, one noise
    uncorrelated with another), so that five recordings already have the mean and the spread that were
    calibrated.
    """
    if settings.rollouts < 4:
        raise InvalidSetting(f"rollouts = {settings.rollouts} is below 4; three noises need more")
    rng = np.random.default_rng(settings.seed)
    draw = rng.standard_normal((len(settings.primitives), settings.rollouts, 3))
    draw -= draw.mean(axis=1, keepdims=True)
    orthonormal, triangle = np.linalg.qr(draw)
    # QR leaves the signs open; keep the draw's.
    signs = np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :]
    noise: NDArray[np.float64] = orthonormal * signs * np.sqrt(settings.rollouts - 1)
    return noise


def fly(
    settings: DroneSettings,
    primitive: NDArray[np.intp],
    noise: NDArray[np.float64],
    wind: Wind | None = None,
    rng: np.random.Generator | None = None,
) -> NDArray[np.float64]:
    """Fly maneuvers and record the positions.

    Each flight uses a ``primitive``, an array of any shape; ``noise``, shape ``(*primitive.shape, 3)``,
    is in standard units, zeros fly as commanded. The wind is the same for all except for its gusts, which
    ``rng`` draws. Returns positions x, y in meters, shape ``(*primitive.shape, steps, 2)``.
    """
    table = np.array([(p.bank_out, p.bank_back, p.time_back, p.trim_noise) for p in settings.primitives])
    bank_out, bank_back, time_back, trim_noise = np.moveaxis(table[primitive], -1, 0)
    trim = trim_noise * noise[..., 1]
    start = np.maximum(settings.start_delay + settings.start_delay_noise * noise[..., 0], 0.0)
    thrust = 1.0 + settings.thrust_noise * noise[..., 2]
    dt = settings.time_step

    def share(begin: NDArray[np.float64], end: NDArray[np.float64], now: float) -> NDArray[np.float64]:
        """Return which share of the step at `now` lies between two times."""
        return np.clip((np.minimum(end, now + dt) - np.maximum(begin, now)) / dt, 0.0, 1.0)

    out_from = start + settings.bank_start
    back_from = out_from + settings.time_out
    level_from = back_from + time_back
    boost_until = start + settings.boost_time
    forever = np.full_like(start, np.inf)

    position = np.zeros((*primitive.shape, settings.steps, 2))
    x, y, vx, vy = (np.zeros(primitive.shape) for _ in range(4))
    bank = np.zeros(primitive.shape)
    gusts = _Gusts(wind, primitive.shape, dt, rng) if wind is not None else None
    for step in range(1, settings.steps):
        now = (step - 1) * dt
        airborne = share(start, forever, now)
        command = bank_out * share(out_from, back_from, now) + bank_back * share(back_from, level_from, now)
        bank += (command + trim * airborne - bank) * (dt / settings.bank_lag)
        boosting = share(start, boost_until, now)
        forward = thrust * (settings.boost * boosting + settings.cruise * (airborne - boosting))
        ax, ay = GRAVITY * np.tan(np.radians(bank)), forward
        air_x, air_y = (vx, vy) if gusts is None else gusts.relative(vx, vy, y)
        pull = settings.drag * np.hypot(air_x, air_y) * airborne  # held in place until the motors start
        vx = vx + dt * (ax - pull * air_x)
        vy = vy + dt * (ay - pull * air_y)
        x = x + dt * vx
        y = y + dt * vy
        position[..., step, 0] = x
        position[..., step, 1] = y
    return position


class _Gusts:
    """The wind at each flight's place and time: a jet, times an Ornstein-Uhlenbeck process around 1."""

    def __init__(
        self, wind: Wind, shape: tuple[int, ...], dt: float, rng: np.random.Generator | None
    ) -> None:
        if rng is None:
            raise InvalidSetting("rng = None, but a wind has gusts; pass a numpy.random.Generator")
        self._wind, self._rng = wind, rng
        angle = np.radians(wind.direction)
        self._mean_x, self._mean_y = wind.speed * np.cos(angle), wind.speed * np.sin(angle)
        self._keep = np.exp(-dt / wind.gust_time)
        self._fresh = wind.gust * np.sqrt(1.0 - self._keep**2)
        self._gust = wind.gust * rng.standard_normal(shape)

    def relative(
        self, vx: NDArray[np.float64], vy: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the velocity relative to the air, and let one time step pass."""
        strength = np.exp(-0.5 * ((y - self._wind.center) / self._wind.width) ** 2) * (1.0 + self._gust)
        self._gust = self._keep * self._gust + self._fresh * self._rng.standard_normal(self._gust.shape)
        return vx - strength * self._mean_x, vy - strength * self._mean_y
