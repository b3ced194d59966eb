"""A real judge: a network that looks at depth images of drone flights and says which collided.

The policy is a small convolutional network that was taught which way is clear. The judge has the same shape
and was trained on other flights in calm air: from the depth image at the start and the way flown it says
whether the drone hit something. Then it judges 1,000 new flights at home and 1,000 in wind, which no
image shows; an audit with 50 labels says how many of them collided. Settings were fixed by flights at home.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import boundwatch as bw
from boundwatch.tasks.navigation import TRAINING, World
from boundwatch.tasks.navigation.policy import Policy
from boundwatch.tasks.navigation.world import distribution
from boundwatch.training.determinism import single_thread

TAUGHT = {"policy": (2_000, 2), "judge": (12_000, 12)}  # by so many flights, seen so often
BATCH = 64
TEMPERATURE = 0.1  # meters of clearance, of the ways that the policy is taught
JUDGED = 1_000
LABELS = 50
DRAWS = 200  # of which episodes are labeled
PLACES = ("training", "windy:2.5", "windy")
SEED = 31


def run() -> dict[str, Any]:
    """Train both networks, and return what the judge says, what an audit says and what is true."""
    with single_thread():
        world = World()
        policy = trained(world, SEED, "policy", taught)
        judge = trained(world, SEED + 1, "judge", lambda *batch: collided(policy, *batch))
        rows = {name: judged(world, name, SEED + 10 + i, policy, judge) for i, name in enumerate(PLACES)}
    return {"seed": SEED, "flights": JUDGED, "labels": LABELS, "draws": DRAWS, "places": rows}


def trained(world: World, seed: int, kind: str, loss: Callable[[Any, Any, Any], Any]) -> Policy:
    """Return a network trained on flights at home."""
    flights, epochs = TAUGHT[kind]
    seen = world.draw(TRAINING, flights, seed=seed)
    torch.manual_seed(seed)
    network, rng = Policy(world.primitives), np.random.default_rng(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in np.split(rng.permutation(flights), range(BATCH, flights, BATCH)):
            images = torch.from_numpy(seen.images[rows])
            optimizer.zero_grad()
            loss(network(images), images, seen.clearances[rows]).backward()
            optimizer.step()
    return network.eval()


def taught(scores: Any, _: Any, clearances: Any) -> Any:
    """Teach the policy which ways are clear."""
    targets = torch.from_numpy(clearances / np.float32(TEMPERATURE)).softmax(dim=1)
    return torch.nn.functional.cross_entropy(scores, targets)


def collided(policy: Policy, scores: Any, images: Any, clearances: Any) -> Any:
    """Teach the judge whether the way that was flown ended in a collision."""
    rows, ways = np.arange(len(images)), flown(policy, images)
    hit = torch.from_numpy((clearances[rows, ways] < 0).astype(np.float32))
    return torch.nn.functional.binary_cross_entropy_with_logits(scores[rows, ways], hit)


def flown(policy: Policy, images: Any) -> Any:
    """Return the way that the policy chooses in each environment."""
    with torch.no_grad():
        return policy(images).argmax(dim=1).numpy()


def judged(world: World, place: str, seed: int, policy: Policy, judge: Policy) -> dict[str, Any]:
    """Judge flights at a place, audit the judge many times, and return what each of them says."""
    seen = world.draw(distribution(place), JUDGED, seed=seed)
    images, rows = torch.from_numpy(seen.images), np.arange(JUDGED)
    ways = flown(policy, images)
    failed = (seen.clearances < 0)[rows, ways]
    with torch.no_grad():
        called = judge(images).numpy()[rows, ways] > 0
    share = float(called.mean())
    spread = 1.96 * np.sqrt(share * (1 - share) / JUDGED)
    found, held = None, 0
    for draw in range(DRAWS):
        audit = bw.Audit(called.astype(float), seed=draw)
        labels = {episode: float(failed[episode]) for episode in audit.draw(LABELS)}
        finding = audit.finding(labels)
        held += finding.lower <= failed.mean() <= finding.upper
        found = found or (finding, audit.certificate(labels))
    assert found is not None
    finding, certificate = found
    return {
        "collided": float(failed.mean()),
        "judge_says": share,
        "believed": [share - float(spread), share + float(spread)],
        "misses": float((~called[failed]).mean()),
        "false_alarms": float(called[~failed].mean()),
        "audit": [finding.lower, finding.upper],
        "policy": [certificate.lower, certificate.upper],
        "misses_within": finding.misses,
        "false_alarms_within": finding.false_alarms,
        "limits_held": float(held / DRAWS),
    }


def show(results: dict[str, Any]) -> None:
    """Print what was believed, what an audit says and what is true."""
    print(f"a judge of drone flights: {results['flights']} at each place, {results['labels']} labels")
    print(f"{'place':<12}{'collided':>10}{'judge':>8}{'believed':>16}{'audit':>16}{'policy':>16}  misses")
    for name, row in results["places"].items():
        pairs = "".join(
            f"{f'{a:.1%}-{b:.1%}':>16}" for a, b in (row[k] for k in ("believed", "audit", "policy"))
        )
        errors = f"  {row['misses']:.1%}, {row['false_alarms']:.1%}; held {row['limits_held']:.3f}"
        print(f"{name:<12}{row['collided']:>10.1%}{row['judge_says']:>8.1%}{pairs}{errors}")
