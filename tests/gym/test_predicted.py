"""`watch` with predictions: asked once per episode, before it runs, and counted with its cost."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import InvalidSetting

CERTIFICATE = bw.Certificate.from_bounds(lower=0.0, upper=0.3, delta=0.01)


def run(env, episodes):
    for seed in range(episodes):
        env.reset(seed=seed)
        ended = False
        while not ended:
            *_, terminated, truncated, _ = env.step(0)
            ended = terminated or truncated


def test_predictions_reach_the_test_with_the_cost_of_their_episode():
    base, spare = gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")
    asked = []

    def predict(observations):
        asked.append(observations.shape)
        return 0.5 + observations[:, 2]  # leaning to the right is hard if you always push to the left

    seeds = iter(range(100, 200))
    options = {"unrun": lambda: bw.gym.first_observations(spare, 4, seed=next(seeds)), "predict": predict}
    env = bw.gym.watch(base, bw.PredictedTest(CERTIFICATE), cost=(0, 500), **options)
    run(env, 3)
    assert asked == [(5, 4)] * 3
    assert (env.finding.n, env.finding.predicted) == (3, 3)
    again, costs = (bw.PredictedTest(CERTIFICATE) for _ in range(2))
    for episode in range(3):
        first, _ = base.reset(seed=episode)
        others = bw.gym.first_observations(spare, 4, seed=100 + episode)
        steps, ended = 0, False
        while not ended:
            *_, terminated, truncated, _ = base.step(0)
            steps, ended = steps + 1, terminated or truncated
        predictions = predict(np.stack([first, *others]))
        cost = (500 - steps) / 500
        finding = again.update(cost, predicted=predictions[0], unlabeled=predictions[1:])
        costs.update(cost)
    assert finding.e_adverse == env.finding.e_adverse
    assert finding.e_adverse != costs.finding().e_adverse


def test_what_cannot_be_predicted_is_refused():
    single, batch = gymnasium.make("CartPole-v1"), gymnasium.make_vec("CartPole-v1", 2)
    for env, detector, unrun, message in (
        (single, bw.PredictedTest, None, "unrun"),
        (single, bw.SequentialTest, list, "SequentialTest"),
        (batch, bw.PredictedTest, list, "single environment"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            bw.gym.watch(env, detector(CERTIFICATE), cost=(0, 500), predict=len, unrun=unrun)
