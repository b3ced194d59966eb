import dataclasses

import numpy as np
import pytest
import torch

from boundwatch.tasks.grasping import draw_scenes, expert_grasp, photograph
from boundwatch.tasks.grasping.camera import VIEW
from boundwatch.tasks.grasping.policy import (
    LATENT,
    NETWORKS,
    SHARPNESS,
    GraspAutoencoder,
    Grasping,
    LatentCosts,
    spatial_softmax,
    to_action,
    to_grasp,
)
from boundwatch.training import GaussianPosterior, train_prior


def network(seed=0, kind="features"):
    return GraspAutoencoder(torch.Generator().manual_seed(seed), kind).network.eval().requires_grad_(False)


@pytest.mark.parametrize(("kind", "size"), [("features", 32_649), ("points", 13_385)])
def test_size(kind, size):
    assert sum(parameter.numel() for parameter in network(kind=kind).parameters()) == size


def test_actions_are_grasps():
    for scene in draw_scenes(20, np.random.default_rng(0)):
        grasp = expert_grasp(scene, 0.3)
        again = to_grasp(torch.tensor(to_action(grasp), dtype=torch.float64))
        assert (again.x, again.y, again.z) == pytest.approx((grasp.x, grasp.y, grasp.z))
        assert np.exp(1j * again.yaw) == pytest.approx(np.exp(1j * grasp.yaw))


def test_wild_outputs_stay_in_the_room():
    assert to_grasp(torch.tensor([0.0, 0.0, -50.0, 1.0, 0.0])).z == 0.005
    assert to_grasp(torch.tensor([0.0, 0.0, 50.0, 1.0, 0.0])).z == 0.25


def test_weights_come_from_the_generator_only():
    torch.manual_seed(1)
    first = network().state_dict()
    torch.manual_seed(2)
    second = network().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["hand.0.weight"], network(1).state_dict()["hand.0.weight"])


def test_points_follow_what_they_mark():
    # A bright spot that moves by a quarter of the image moves its point by half of the way from -1 to 1.
    maps = torch.zeros(2, 3, 64, 64)
    maps[0, :, 16, 8] = maps[1, :, 32, 40] = 40.0
    points = spatial_softmax(maps).reshape(2, 2, 3)  # image, direction, channel
    moved = (points[1] - points[0]) * 63 / 2
    torch.testing.assert_close(moved, torch.tensor([[16.0] * 3, [32.0] * 3]))


def points_of_a_mug_that_moves(net, sharpness):
    """Return by how much each of the network's points moves, over what the mug moves by."""
    scene = draw_scenes(1, np.random.default_rng(3))[0]
    images = [photograph(dataclasses.replace(scene, x=0.5, y=y)) for y in (-0.04, 0.04)]
    maps = net.eye(net.features(torch.from_numpy(np.stack(images))))
    down, right = spatial_softmax(sharpness * maps).reshape(2, 2, -1).diff(dim=0)[0].abs()
    return torch.maximum(down, right) / (0.08 / (0.5 * VIEW))


def test_points_of_an_untrained_network_move_with_the_mug():
    net = network(kind="points")
    plain, sharp = (points_of_a_mug_that_moves(net, sharpness).median() for sharpness in (1.0, SHARPNESS))
    assert plain < 0.005  # a plain softmax has nothing to learn from
    assert sharp > 10 * plain


def test_latent_numbers_are_channels_of_the_image():
    net = network(kind="points")
    images = torch.randint(0, 255, (3, 128, 128), dtype=torch.uint8)
    latents = torch.randn(3, LATENT)
    planes = latents[:, :2, None, None].expand(-1, -1, 128, 128)
    maps = net.eye(net.look(torch.cat([images[:, None] / 255.0, planes], dim=1)))
    plain = net.hand(torch.cat([spatial_softmax(SHARPNESS * maps), latents[:, 2:]], dim=1))
    torch.testing.assert_close(net(images, latents), plain)


def test_the_convolutions_of_the_papers_network_see_two_latent_numbers():
    net = network(kind="points")
    features = net.features(torch.randint(0, 255, (1, 128, 128), dtype=torch.uint8))
    seen = []
    net.eye.register_forward_hook(lambda _module, _inputs, maps: seen.append(maps))
    for changed in (None, 0, 1, 2, 9):
        latent = torch.zeros(LATENT)
        if changed is not None:
            latent[changed] = 1.0
        net.decode(features, latent)
    assert [bool(torch.equal(maps, seen[0])) for maps in seen[1:]] == [False, False, True, True]


@pytest.mark.parametrize("kind", NETWORKS)
def test_cached_features_give_the_costs_of_the_policy(kind):
    task = Grasping(placement=2)
    scenes = task.draw(6, np.random.default_rng(0))
    net = network(kind=kind)
    costs = LatentCosts(task, net, scenes, task.photographs(scenes))
    posterior = GaussianPosterior.over_latent(net, LATENT)
    weights = posterior.sample(2, np.random.default_rng(1))
    both = costs.costs(posterior, weights, np.tile(np.arange(6), (2, 1)))
    assert both.shape == (2, 6)
    for row, latent in zip(both, weights, strict=True):
        np.testing.assert_array_equal(row, costs(posterior.policy(latent)))
        np.testing.assert_array_equal(row, task.rollout(posterior.policy(latent), scenes))
    grasps = task.grasps(posterior.policy(weights[0]), task.photographs(scenes))
    cached = [
        to_grasp(net.decode(net.features(torch.from_numpy(i)[None]), weights[0].float())[0])
        for i in task.photographs(scenes)
    ]
    assert grasps == cached  # bit by bit


def test_fingerprint_tells_training_sets_and_cameras_apart():
    first, second = (Grasping().draw(2, np.random.default_rng(seed)) for seed in (0, 1))
    prints = {
        LatentCosts(task, network(), scenes, task.photographs(scenes)).fingerprint
        for scenes in (first, second, first)
        for task in (Grasping(), Grasping(depth_noise=True))
    }
    assert len(prints) == 4


def test_latent_vector_learns_where_on_the_rim_the_expert_grasped():
    task = Grasping()
    rng = np.random.default_rng(0)
    mugs = task.draw(8, rng)
    scenes = [scene for scene in mugs for _ in range(16)]  # a mug alone does not tell the angle
    angles = rng.uniform(-1.5, 1.5, len(scenes))
    images = torch.from_numpy(np.repeat(np.stack(task.photographs(mugs)), 16, axis=0))
    grasps = map(expert_grasp, scenes, angles.tolist())
    actions = torch.tensor([to_action(grasp) for grasp in grasps])
    generator = torch.Generator().manual_seed(0)
    autoencoder = GraspAutoencoder(generator)
    shown = torch.from_numpy(angles).float()
    options = {"steps": 400, "batch_size": 32, "learning_rate": 5e-3, "disjoint_from": ()}
    data = (images, actions, shown)
    losses = train_prior(autoencoder, lambda model, *batch: model.loss(*batch, generator), data, **options)
    assert np.mean(losses[-20:]) < 0.1 * np.mean(losses[:5])
    with torch.no_grad():
        features = autoencoder.network.features(images)
        told = autoencoder.encoder(shown[:, None])[:, :LATENT]
        right = autoencoder.network.decode(features, told)
        wrong = autoencoder.network.decode(features, told.flip(0))  # the code of another mug's angle
    errors = [float(((output - actions) ** 2).sum(1).mean()) for output in (right, wrong)]
    assert errors[0] < 0.2 * errors[1]
