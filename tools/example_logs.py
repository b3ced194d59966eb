"""Write the logs in ``examples/data`` that the documentation reads: ``python tools/example_logs.py``.

The outcomes are made up; the files are what the tools write: stable-baselines3 and mcap write theirs here,
those of LeRobot follow its documented formats.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from mcap.writer import Writer

DATA = Path(__file__).parents[1] / "examples" / "data"
TASKS = ["Put the cup on the plate.", "Open the drawer."]


def write_evaluation(path: Path, rates: list[float], episodes: int, seed: int) -> None:
    """Write an eval_info.json of lerobot-eval, with a task for each rate of success."""
    rng = np.random.default_rng(seed)
    successes = [(rng.random(episodes) < rate).tolist() for rate in rates]
    content = {
        "per_task": [
            {
                "task_group": "libero_goal",
                "task_id": task,
                "metrics": {
                    "sum_rewards": [float(value) for value in outcomes],
                    "max_rewards": [float(value) for value in outcomes],
                    "successes": outcomes,
                    "video_paths": [],
                },
            }
            for task, outcomes in enumerate(successes)
        ],
        "per_group": {"libero_goal": _aggregate(successes)},
        "overall": _aggregate(successes),
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def _aggregate(successes: list[list[bool]]) -> dict[str, float]:
    mean = float(np.mean(successes))
    return {
        "avg_sum_reward": mean,
        "avg_max_reward": mean,
        "pc_success": 100 * mean,
        "n_episodes": np.size(successes),
    }


def write_dataset(root: Path, episodes: int, frames: int, seed: int) -> None:
    """Write a LeRobotDataset v3 without images."""
    rng = np.random.default_rng(seed)
    success = rng.random(episodes) < 0.8
    last = np.arange(frames) == frames - 1
    table = pyarrow.table(
        {
            "observation.state": pyarrow.array(
                rng.normal(size=(episodes * frames, 2)).astype(np.float32).tolist(),
                pyarrow.list_(pyarrow.float32(), 2),
            ),
            "next.reward": np.outer(success, last).ravel().astype(np.float32),
            "next.success": np.outer(success, last).ravel(),
            "next.done": np.tile(last, episodes),
            "timestamp": np.tile(np.arange(frames, dtype=np.float32) / 10, episodes),
            "frame_index": np.tile(np.arange(frames), episodes),
            "episode_index": np.repeat(np.arange(episodes), frames),
            "index": np.arange(episodes * frames),
            "task_index": np.repeat(np.arange(episodes) % len(TASKS), frames),
        }
    )
    info = {
        "codebase_version": "v3.0",
        "robot_type": "so101_follower",
        "total_episodes": episodes,
        "total_frames": episodes * frames,
        "total_tasks": len(TASKS),
        "fps": 10,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "features": {name: {"dtype": str(table.schema.field(name).type)} for name in table.column_names},
    }
    for folder in ("data/chunk-000", "meta"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(table, root / "data/chunk-000/file-000.parquet")
    tasks = pyarrow.table({"task_index": range(len(TASKS)), "__index_level_0__": TASKS})
    pyarrow.parquet.write_table(tasks, root / "meta/tasks.parquet")
    (root / "meta/info.json").write_text(json.dumps(info, indent=4) + "\n")


def write_stable_baselines3(folder: Path) -> None:
    """Let stable-baselines3 train for a moment and write its evaluations, and Monitor 40 episodes more."""
    # Imported here because it takes seconds, and pytest imports this file.
    import gymnasium
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    folder.mkdir(parents=True, exist_ok=True)
    environment = Monitor(gymnasium.make("Pendulum-v1"))
    environment.reset(seed=1)
    model = PPO("MlpPolicy", gymnasium.make("Pendulum-v1"), seed=0, n_steps=512)
    callback = EvalCallback(environment, eval_freq=1024, n_eval_episodes=20, log_path=str(folder), verbose=0)
    model.learn(2048, callback)
    monitored = Monitor(gymnasium.make("Pendulum-v1"), str(folder / "0"))
    monitored.reset(seed=2)
    evaluate_policy(model, monitored, n_eval_episodes=40)
    monitored.close()


def write_mcap(path: Path, seed: int) -> None:
    """Write a log with one message an episode on /episode/result and ten on /safety."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("json", "jsonschema", b'{"type": "object"}')
        channels = [
            writer.register_channel(topic, "json", schema) for topic in ("/episode/result", "/safety")
        ]
        for episode in range(40):
            result = {
                "episode": episode,
                "success": bool(rng.random() < 0.85),
                "robot": f"arm-{episode % 2 + 1}",
            }
            steps = [{"episode": episode, "cost": round(cost, 3)} for cost in rng.beta(1, 9, 10)]
            for channel, messages in zip(channels, ([result], steps), strict=True):
                for step, message in enumerate(messages):
                    time = (20 * episode + step) * 10**8
                    writer.add_message(channel, time, json.dumps(message).encode(), time)
        writer.finish()


if __name__ == "__main__":
    (DATA / "lerobot").mkdir(exist_ok=True)
    write_evaluation(DATA / "lerobot/eval_info.json", [0.9, 0.8, 0.7, 0.85], episodes=50, seed=1)
    write_evaluation(DATA / "lerobot/after_update.json", [0.9, 0.8, 0.2, 0.85], episodes=20, seed=2)
    write_dataset(DATA / "lerobot/dataset", episodes=30, frames=8, seed=3)
    write_stable_baselines3(DATA / "sb3")
    write_mcap(DATA / "robot.mcap", seed=4)
    print(f"wrote the logs in {DATA}")
