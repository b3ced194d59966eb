"""Monitor's CSV and EvalCallback's NPZ, written by stable-baselines3 itself, and damaged ones."""

import io

import gymnasium
import numpy as np
import pytest

from boundwatch.episodes import read_costs
from boundwatch.errors import InvalidCost, InvalidSetting

EPISODES = 5


class Reach(gymnasium.Env):
    """Three steps of random reward; success if they sum to more than 0."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, reports_success):
        self.reports_success = reports_success

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps, self.total = 0, 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action):  # noqa: ARG002
        reward = float(self.np_random.uniform(-1, 1))
        self.steps, self.total = self.steps + 1, self.total + reward
        info = {"is_success": self.total > 0} if self.reports_success else {}
        return np.zeros(1, np.float32), reward, self.steps == 3, False, info


@pytest.fixture(scope="module", params=[True, False], ids=["successes", "rewards only"])
def logs(request, tmp_path_factory):
    """Return a folder with both files, and the returns of the monitored episodes."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    folder = tmp_path_factory.mktemp("sb3")
    evaluated = Monitor(Reach(request.param))
    model = PPO("MlpPolicy", Monitor(Reach(request.param)), n_steps=64, batch_size=64, n_epochs=1, seed=0)
    model.learn(
        128, EvalCallback(evaluated, eval_freq=64, n_eval_episodes=EPISODES, log_path=folder, verbose=0)
    )
    keys = ("is_success",) if request.param else ()
    monitored = Monitor(Reach(request.param), str(folder / "0"), info_keywords=keys)
    returns, _ = evaluate_policy(model, monitored, n_eval_episodes=EPISODES, return_episode_rewards=True)
    monitored.close()
    return folder, request.param, returns[:EPISODES]


def test_monitor(logs):
    folder, reports_success, returns = logs
    path = folder / "0.monitor.csv"
    rewards = read_costs(path, reward="r", cost_range=(-3, 3))
    assert rewards.costs[:EPISODES] == pytest.approx((3 - np.array(returns)) / 6, abs=1e-6)
    assert (rewards.meaning, rewards.file_format) == ("reward", "sb3-monitor")
    if reports_success:
        episodes = read_costs(path)
        assert episodes.costs[:EPISODES].tolist() == [float(value <= 0) for value in returns]
        assert (episodes.column, episodes.binary) == ("is_success", True)
    else:
        with pytest.raises(InvalidSetting, match="column 'r' holds rewards; pass their least"):
            read_costs(path)


def test_evaluations(logs):
    folder, reports_success, _ = logs
    path = folder / "evaluations.npz"
    arrays = np.load(path)
    last = read_costs(path, reward="results", cost_range=(-3, 3))
    assert last.costs == pytest.approx((3 - arrays["results"][-1]) / 6)
    assert last.detail == "evaluation 2 of 2, after 128 steps"
    first = read_costs(path, reward="results", cost_range=(-3, 3), evaluation=1)
    assert first.costs == pytest.approx((3 - arrays["results"][0]) / 6)
    assert first.detail == "evaluation 1 of 2, after 64 steps"
    again = read_costs(path, reward="results", cost_range=(-3, 3), evaluation=-2)
    assert again.costs.tolist() == first.costs.tolist()
    if reports_success:
        assert read_costs(path).costs.tolist() == (1.0 - arrays["successes"][-1]).tolist()
        assert read_costs(path).binary
    assert read_costs(path, cost="ep_lengths", cost_range=(0, 10)).costs.tolist() == [0.3] * EPISODES


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


GOOD = {
    "timesteps": [10, 20],
    "results": [[1.0, 2.0], [3.0, 4.0]],
    "successes": [[True, False], [True, True]],
}
MONITOR = '#{"t_start": 1.5, "env_id": "Reach-v0"}\nr,l,t,is_success\n1.5,3,0.1,True\n-2,3,0.2,False\n'
DAMAGED = {
    "cut in the archive": (npz(**GOOD)[:300], {}, "the NPZ data is damaged or cut short"),
    "no results": (npz(timesteps=[1], lengths=[1]), {}, "is a ZIP archive|has no array 'results'"),
    "mixed lengths": (
        npz(**GOOD | {"successes": [[True, False]]}),
        {},
        r"successes has shape \(1, 2\), results",
    ),
    "flat results": (npz(**GOOD | {"results": [1.0, 2.0]}), {}, r"results \(2,\)"),
    "objects": (npz(timesteps=[1], results=np.array([[{}]], dtype=object)), {}, "holds Python objects"),
    "no evaluation": (npz(timesteps=[], results=np.zeros((0, 5))), {}, "holds no evaluation"),
    "no episodes": (
        npz(timesteps=[5], results=np.zeros((1, 0))),
        {"cost_range": (0, 1)},
        "holds no episodes",
    ),
    "NaN": (
        npz(timesteps=[5], results=[[1.0, np.nan]]),
        {"cost_range": (0, 1)},
        r"results\[0, 1\] = nan is not finite",
    ),
    "out of range": (
        npz(**GOOD),
        {"reward": "results", "cost_range": (0, 3)},
        r"results\[1, 1\] = 4 is outside",
    ),
    "another archive": (npz(costs=[0.1]), {}, "is a ZIP archive"),
    "first line cut": ('#{"t_start": 1.5, "env\n', {}, "line 1 is not the '#{...}' of a Monitor"),
    "no episodes in a Monitor": (MONITOR.split("r,l")[0], {}, "holds no episodes"),
    "only names in a Monitor": ("\n".join(MONITOR.splitlines()[:2]), {}, "holds no episodes"),
    "other columns": ('#{"t_start": 1}\nreward,steps\n1,2\n', {}, "line 2 has no column 'r'"),
    "row cut": (MONITOR[:-9], {}, r"line 4 has 3 fields, the header has 4"),
    "text": (MONITOR.replace("True", "perhaps"), {}, r"row 1 \(line 3\), column 'is_success' = 'perhaps'"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused(tmp_path, case):
    data, options, fault = DAMAGED[case]
    path = tmp_path / "log"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(InvalidCost, match=fault) as refused:
        read_costs(path, **options)
    assert ";" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("evaluation", [0, 3, -3])
def test_an_evaluation_that_is_not_there(tmp_path, evaluation):
    (tmp_path / "evaluations.npz").write_bytes(npz(**GOOD))
    with pytest.raises(InvalidSetting, match=f"evaluation = {evaluation} is not among its 2; choose 1 to 2"):
        read_costs(tmp_path / "evaluations.npz", evaluation=evaluation)


def test_evaluation_goes_with_evaluations_only(tmp_path):
    (tmp_path / "log.csv").write_text("cost\n0.1\n")
    with pytest.raises(InvalidSetting, match=r"evaluation goes with sb3-evaluations, this is csv"):
        read_costs(tmp_path / "log.csv", evaluation=1)


def test_no_cut_file_passes_for_a_whole_one(tmp_path):
    """Wherever the archive is cut, it is refused: none of its prefixes is read as fewer episodes."""
    data, path = npz(**GOOD), tmp_path / "evaluations.npz"
    for end in range(4, len(data), 7):
        path.write_bytes(data[:end])
        with pytest.raises(InvalidCost):
            read_costs(path)
