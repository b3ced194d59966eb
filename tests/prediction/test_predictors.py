"""Predictors made of real networks and a real Stable-Baselines3 model; always numbers in [0, 1]."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO, SAC
from torch import nn

import boundwatch as bw
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.prediction import Twin, calibrate, train_critic, value_function


def scenes_and_costs(n, seed):
    """Images of 8 x 8 pixels; a bright left half makes failure likely."""
    rng = np.random.default_rng(seed)
    images = rng.random((n, 8, 8), dtype=np.float32)
    brightness = rng.random(n, dtype=np.float32)
    images[:, :, :4] *= brightness[:, None, None]
    return images, (rng.random(n) < brightness**2).astype(float), brightness**2


def test_a_convolutional_critic_learns_from_images_and_is_calibrated():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 1)
    )
    before = {name: value.clone() for name, value in network.state_dict().items()}
    images, costs, _ = scenes_and_costs(1200, 0)
    critic = train_critic(network, images, costs, steps=300, learning_rate=3e-3)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    fresh, new_costs, truth = scenes_and_costs(1000, 1)
    predictions = critic(fresh)
    assert predictions.shape == (1000,)
    assert predictions.min() >= 0
    assert predictions.max() <= 1
    assert np.corrcoef(predictions, truth)[0, 1] > 0.8
    assert abs(predictions.mean() - new_costs.mean()) < 0.08  # 4.5 standard errors
    assert critic.correlation == pytest.approx(np.corrcoef(predictions, new_costs)[0, 1], abs=0.2)
    again = train_critic(network, images, costs, steps=300, learning_rate=3e-3)
    np.testing.assert_array_equal(again(fresh), predictions)


@pytest.mark.parametrize("kind", [np.uint8, np.float64])
def test_a_critic_takes_images_as_cameras_and_numpy_give_them(kind):
    images, costs, _ = scenes_and_costs(400, 3)
    stored = np.round(255 * images).astype(np.uint8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    critics = [
        train_critic(network, scenes, costs, steps=50)
        for scenes in ((stored / 255).astype(np.float32), stored if kind is np.uint8 else stored / 255)
    ]
    fresh = np.round(255 * scenes_and_costs(50, 4)[0]).astype(np.uint8)
    expected = critics[0]((fresh / 255).astype(np.float32))
    np.testing.assert_allclose(critics[1](fresh if kind is np.uint8 else fresh / 255), expected, atol=1e-5)


def test_a_critic_keeps_integers_that_are_no_pixels():
    rng = np.random.default_rng(5)
    numbers = rng.integers(4, size=(400, 1))  # which of four bins: an embedding's input
    costs = (rng.random(400) < np.array([0.1, 0.3, 0.6, 0.9])[numbers[:, 0]]).astype(float)
    critic = train_critic(nn.Embedding(4, 1), numbers, costs, steps=200, learning_rate=0.05)
    assert (np.diff(critic(np.arange(4)[:, None])) > 0).all()


def test_a_critic_without_anything_to_see_says_so():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(800, 3)).astype(np.float32)
    critic = train_critic(nn.Linear(3, 1), noise, rng.integers(0, 2, 800), steps=100)
    assert abs(critic.correlation) < 0.35  # 5 standard errors of 200 held-out pairs
    assert np.abs(critic(noise) - 0.5).max() < 0.5


@pytest.mark.parametrize("sign", [1, -1])
def test_calibration_finds_scale_and_direction(sign):
    rng = np.random.default_rng(3)
    scores = 1000 * sign * rng.normal(size=4000) + 7
    rates = 1 / (1 + np.exp(-(sign * (scores - 7) / 1000 - 1)))
    predict = calibrate(lambda scenes: scenes, scores, (rng.random(4000) < rates).astype(float))
    assert np.abs(predict(scores) - rates).max() < 0.08
    constant = calibrate(lambda scenes: np.ones(len(scenes)), scores, rates)
    assert constant.correlation == 0
    np.testing.assert_allclose(constant(scores), rates.mean(), atol=0.01)


def test_scores_that_separate_the_costs_stay_finite():
    predict = calibrate(lambda scenes: scenes, np.arange(20.0), (np.arange(20) >= 10).astype(float))
    assert np.isfinite([predict.slope, predict.offset]).all()
    assert ((predict(np.array([-1e9, 1e9])) >= 0) & (predict(np.array([-1e9, 1e9])) <= 1)).all()


def test_what_is_no_prediction_is_refused():
    with pytest.raises(InvalidCost, match="returned nan for scene 1"):
        calibrate(lambda _: np.array([0.0, np.nan]), [0, 1], [0, 1])
    with pytest.raises(InvalidSetting, match="shape \\(2, 3\\); return one number per scene"):
        calibrate(lambda _: np.zeros((2, 3)), [0, 1], [0, 1])
    with pytest.raises(InvalidSetting, match="2 scores, 3 costs"):
        calibrate(lambda _: np.zeros(2), [0, 1], [0, 1, 1])
    with pytest.raises(InvalidSetting, match="4 scenes, 4 costs"):
        train_critic(nn.Linear(1, 1), np.zeros((4, 1), np.float32), [0, 1, 0, 1])
    with pytest.raises(InvalidSetting, match="repeats = 0 is below 1"):
        Twin(slip, nn.Identity(), repeats=0)
    with pytest.raises(InvalidSetting, match="backend = 'dask' is unknown; choose one of loky, ray"):
        Twin(slip, nn.Identity(), backend="dask")


def slip(policy, scene, rng):
    """A trial fails with the probability that the policy gives to the scene."""
    return float(rng.random() < float(policy(torch.tensor([scene]))))


def test_a_twin_predicts_the_mean_of_its_rollouts_and_repeats_itself():
    policy = nn.Sigmoid()
    twin = Twin(slip, policy, repeats=400)
    scenes = [-2.0, 0.0, 2.0]
    predictions = twin(scenes)
    np.testing.assert_allclose(predictions, torch.sigmoid(torch.tensor(scenes)), atol=0.12)  # 5 errors
    np.testing.assert_array_equal(twin(scenes[:1]), predictions[:1])  # alone or with others: the same
    assert not np.array_equal(Twin(slip, policy, repeats=400, seed=1)(scenes), predictions)


@pytest.mark.parametrize("algorithm", [PPO, SAC])
def test_the_value_of_a_model_is_read_and_calibrated(algorithm):
    env = gymnasium.make("Pendulum-v1")
    model = algorithm("MlpPolicy", env, seed=0, device="cpu", policy_kwargs={"net_arch": [16]})
    costs = bw.gym.rollout(env, model.predict, 12, cost=(-3300, 0))
    scenes = bw.gym.first_observations(env, 12)
    predict = value_function(model, scenes, costs)
    predictions = predict(bw.gym.first_observations(env, 10, seed=5))
    assert predictions.shape == (10,)
    assert predictions.min() > 0
    assert predictions.max() < 1
    assert abs(predict(scenes).mean() - costs.mean()) < 0.02
    with torch.no_grad():
        tensors, _ = model.policy.obs_to_tensor(scenes)
        if algorithm is PPO:
            values = model.policy.predict_values(tensors)[:, 0]
        else:
            actions = model.policy._predict(tensors, True)
            values = torch.stack(model.policy.critic(tensors, actions)).amin(0)[:, 0]
    np.testing.assert_allclose(predict.score(scenes), -values.double().numpy(), rtol=1e-6)


def test_a_model_without_a_state_value_is_refused():
    model = DQN("MlpPolicy", "CartPole-v1", device="cpu", buffer_size=10)
    with pytest.raises(InvalidSetting, match="DQN has no policy with predict_values or a critic"):
        value_function(model, np.zeros((1, 4)), [0.5])


def test_first_observations_are_those_of_the_rollouts():
    env = gymnasium.make("Pendulum-v1")
    seen = []

    def policy(observation):
        seen.append(observation)
        return np.zeros(1)

    bw.gym.rollout(env, policy, 3, cost=(-3300, 0), seed=9)
    np.testing.assert_array_equal(bw.gym.first_observations(env, 3, seed=9), seen[::200])
    batch = gymnasium.make_vec("Pendulum-v1", 2)
    with pytest.raises(InvalidSetting, match="takes a single environment"):
        bw.gym.first_observations(batch, 3)
