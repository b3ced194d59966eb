"""Logs as their own programs write them: MCAP in every way, ROS 2, Stable-Baselines3."""

import io
import json

import gymnasium
import numpy as np
import pytest
from mcap.writer import CompressionType, IndexType, Writer
from mcap_ros2.writer import Writer as Ros2Writer

from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.readers import read_costs

RESULTS = [{"success": n != 1, "task": "pick"} for n in range(4)]
NO_SUMMARY = ("use_statistics", "use_summary_offsets", "repeat_channels", "repeat_schemas")


def write_log(path, messages, encoding="json", **options):
    with path.open("wb") as file:
        writer = Writer(file, **options)
        writer.start()
        schema = writer.register_schema("episode", "jsonschema", b'{"type": "object"}')
        channel = writer.register_channel("/a", encoding, schema)
        for time, message in enumerate(messages):
            data = json.dumps(message).encode()
            writer.add_message(channel, log_time=time, publish_time=time, data=data)
        writer.finish()
    return path


@pytest.mark.parametrize("compression", CompressionType)
@pytest.mark.parametrize("index", [IndexType.ALL, IndexType.NONE], ids=["index", "no index"])
@pytest.mark.parametrize("chunks", [True, False], ids=["chunks", "no chunks"])
def test_every_way_to_write_a_log(tmp_path, compression, index, chunks):
    options = {"compression": compression, "index_types": index, "use_chunking": chunks}
    assert read_costs(write_log(tmp_path / "log", RESULTS, **options)).costs.tolist() == [0, 1, 0, 0]


def test_a_log_without_summary(tmp_path):
    path = write_log(
        tmp_path / "log", RESULTS, index_types=IndexType.NONE, **dict.fromkeys(NO_SUMMARY, False)
    )
    assert read_costs(path).costs.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(("messages", "encoding"), [(RESULTS, "protobuf"), ([], "json")])
def test_a_log_that_cannot_be_read(tmp_path, messages, encoding):
    with pytest.raises(InvalidCost, match="no field of"):
        read_costs(write_log(tmp_path / "log", messages, encoding))


def test_no_damaged_log_has_other_costs(tmp_path):
    data, path = write_log(tmp_path / "log", RESULTS).read_bytes(), tmp_path / "damaged"
    found = set()
    for place in range(8, len(data), 5):
        for changed in (data[:place], data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]):
            path.write_bytes(changed)
            try:
                found.add(tuple(read_costs(path).costs.tolist()))
            except (InvalidCost, InvalidSetting):
                found.add("refused")
    assert "refused" in found
    assert found <= {"refused", (0, 1, 0, 0)}


def test_messages_of_ros_2(tmp_path):
    path, rule = tmp_path / "bag.mcap", "=" * 16
    definition = f"bool success\nstring task\nbench/Detail detail\n{rule}\nMSG: bench/Detail\nfloat64 force"
    with path.open("wb") as file:
        writer = Ros2Writer(file)
        schema = writer.register_msgdef("bench/msg/Result", definition)
        for time, success in enumerate([True, False, True]):
            message = {"success": success, "task": "pick", "detail": {"force": 0.25 * time}}
            writer.write_message("/result", schema, message, log_time=time, publish_time=time)
        writer.finish()
    assert read_costs(path, by="task").costs.tolist() == [0, 1, 0]
    assert read_costs(path, cost="/result.detail.force").costs.tolist() == [0, 0.25, 0.5]


class Reach(gymnasium.Env):
    """Three steps of random reward; success if they sum to more than 0."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.steps, self.total = 0, 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action):  # noqa: ARG002
        reward = float(self.np_random.uniform(-1, 1))
        self.steps, self.total = self.steps + 1, self.total + reward
        return np.zeros(1, np.float32), reward, self.steps == 3, False, {"is_success": self.total > 0}


@pytest.mark.parametrize("successes", [True, False])
def test_files_of_stable_baselines(tmp_path, successes):
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    model = PPO("MlpPolicy", Monitor(Reach()), n_steps=64, batch_size=64, n_epochs=1, seed=0)
    model.learn(64, EvalCallback(Monitor(Reach()), eval_freq=64, log_path=tmp_path, verbose=0))
    keys = ("is_success",) if successes else ()
    monitored = Monitor(Reach(), str(tmp_path / "0"), info_keywords=keys)
    returns, _ = evaluate_policy(model, monitored, n_eval_episodes=5, return_episode_rewards=True)
    monitored.close()
    path = tmp_path / "0.monitor.csv"
    rewards = read_costs(path, reward="r", cost_range=(-3, 3))
    assert rewards.costs[:5] == pytest.approx((3 - np.array(returns)) / 6, abs=1e-6)
    if successes:
        assert read_costs(path).costs[:5].tolist() == [float(value <= 0) for value in returns]
    else:
        assert read_costs(path, cost_range=(-3, 3)).costs.tolist() == rewards.costs.tolist()
    arrays = np.load(tmp_path / "evaluations.npz")
    found = read_costs(tmp_path / "evaluations.npz", reward="results", cost_range=(-3, 3))
    assert found.costs == pytest.approx((3 - arrays["results"][-1]) / 6)


def test_no_cut_archive_passes_for_a_whole_one(tmp_path):
    file, path = io.BytesIO(), tmp_path / "evaluations.npz"
    np.savez(file, timesteps=[10, 20], results=[[1.0, 2.0], [3.0, 4.0]])
    data = file.getvalue()
    for end in range(4, len(data), 7):
        path.write_bytes(data[:end])
        with pytest.raises(InvalidCost):
            read_costs(path, cost_range=(0, 4))
