"""lerobot-eval's eval_info.json in its shapes, and damaged ones."""

import copy
import json
import math

import pytest

from boundwatch.readers import read_costs
from boundwatch.errors import InvalidCost, InvalidSetting


def task(group, index, successes, **counts):
    """One entry of per_task, as lerobot-eval writes it."""
    return {
        "task_group": group,
        "task_id": index,
        "metrics": {
            "sum_rewards": [2.0 * success for success in successes],
            "max_rewards": [float(success) for success in successes],
            "successes": successes,
            "video_paths": [f"videos/{group}_{index}/eval_episode_0.mp4"],
        },
        **counts,
    }


MANY = {
    "per_task": [task("libero_goal", 0, [True, False, True]), task("libero_goal", 1, [False, True])],
    "per_group": {
        "libero_goal": {"avg_sum_reward": 1.2, "pc_success": 60.0, "n_episodes": 5, "video_paths": []}
    },
    "overall": {"avg_sum_reward": 1.2, "avg_max_reward": math.nan, "pc_success": 60.0, "n_episodes": 5},
}
NEWER = {
    "per_task": [
        task("pusht", 0, [True, True, False], n_episodes=3, n_success=2, pc_success_ci95=[20.8, 93.9])
    ],
    "per_group": {
        "pusht": {"n_episodes": 3, "n_success": 2, "pc_success": 66.7, "pc_success_ci95": [20.8, 93.9]}
    },
    "overall": {"n_episodes": 3, "n_success": 2, "pc_success": 66.7, "pc_success_ci95": [20.8, 93.9]},
}
OLDER = {
    "per_episode": [
        {"episode_ix": 0, "sum_reward": 81.5, "max_reward": 0.97, "success": True, "seed": 1000},
        {"episode_ix": 1, "sum_reward": 12.25, "max_reward": 0.31, "success": False, "seed": 1001},
        {"episode_ix": 2, "sum_reward": 60.0, "max_reward": 1.0, "success": True, "seed": 1002},
    ],
    "aggregated": {"avg_sum_reward": 51.25, "avg_max_reward": 0.76, "pc_success": 66.7, "eval_s": 9.1},
    "video_paths": [],
}


@pytest.fixture
def read(tmp_path):
    def read_content(content, **options):
        path = tmp_path / "eval_info.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return read_costs(path, **options)

    return read_content


@pytest.mark.parametrize("forced", [None, "lerobot-eval"])
@pytest.mark.parametrize(
    ("content", "costs"),
    [(MANY, [0, 1, 0, 1, 0]), (NEWER, [0, 0, 1]), (OLDER, [0, 1, 0])],
    ids=["many", "newer", "older"],
)
def test_successes_become_binary_costs(read, content, costs, forced):
    episodes = read(content, file_format=forced)
    assert episodes.costs.tolist() == costs
    assert (episodes.binary, episodes.meaning, episodes.column) == (True, "success", "success")
    assert episodes.file_format == "lerobot-eval"


def test_compact_and_sorted_files_are_recognized(read):
    assert read(json.dumps(MANY, separators=(",", ":"))).file_format == "lerobot-eval"
    assert read(json.dumps(OLDER, sort_keys=True)).file_format == "lerobot-eval"


def test_episodes_know_their_task(read):
    episodes = read(MANY, by="task")
    assert {name: costs.tolist() for name, costs in episodes.by_task().items()} == {
        "libero_goal/0": [0, 1, 0],
        "libero_goal/1": [1, 0],
    }
    assert read(MANY, by="task_id").tasks == ("0", "0", "0", "1", "1")
    assert set(read(MANY, by="task_group").tasks) == {"libero_goal"}


def test_several_tasks_are_not_pooled_in_silence(read):
    assert "2 different values of task in a row are taken for one mixture" in " ".join(read(MANY).warnings)
    assert read(MANY, by="task").warnings == ()
    assert read(NEWER).warnings == ()


def test_rewards_need_their_range(read):
    with pytest.raises(InvalidSetting, match="'sum_reward' holds rewards; pass their least and greatest"):
        read(OLDER, reward="sum_reward")
    assert read(OLDER, reward="sum_reward", cost_range=(0, 100)).costs == pytest.approx([0.185, 0.8775, 0.4])
    assert read(MANY, reward="max_reward", cost_range=(0, 1)).costs.tolist() == [0, 1, 0, 1, 0]


def test_nan_is_read_but_never_taken_for_a_cost(read):
    broken = copy.deepcopy(MANY)
    broken["per_task"][1]["metrics"]["sum_rewards"][0] = math.nan
    assert read(broken).costs.sum() == 2
    with pytest.raises(InvalidCost, match=r"per_task\[1\]\.metrics\.sum_rewards\[0\] = nan is not finite"):
        read(broken, reward="sum_reward", cost_range=(0, 2))


def test_warns_of_seeds_that_episodes_share(read):
    shared = copy.deepcopy(OLDER)
    for entry in shared["per_episode"]:
        entry["seed"] = 7
    assert "3 episodes have only 1 different seed;" in read(shared).warnings[0]
    unseeded = copy.deepcopy(OLDER)
    for entry in unseeded["per_episode"]:
        entry["seed"] = None
    assert read(unseeded).warnings == ()


def test_warns_when_success_may_not_have_been_reported(read):
    assert "no episode succeeded" in read({"per_task": [task("gym", 0, [False, False])]}).warnings[0]


def changed(content, *path, value=None):
    """Return a copy with one value changed or, for None, removed."""
    copied = copy.deepcopy(content)
    *parents, last = path
    place = copied
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copied


DAMAGED = {
    "cut short": (json.dumps(MANY, indent=2)[:180], r"line \d+ is not valid JSON; .*fetch it again"),
    "empty list": ({"per_task": [], "overall": {}}, "per_task is empty; at least one episode"),
    "no episodes of a task": ({"per_task": [task("a", 0, [])]}, r"sum_rewards is empty|successes is empty"),
    "not a list": ({"per_episode": [1]}, r"per_episode = \[1\] is not a list of objects"),
    "no metrics": (changed(MANY, "per_task", 1, "metrics"), r"per_task\[1\] has no 'metrics'"),
    "no group": (changed(MANY, "per_task", 0, "task_group"), r"per_task\[0\] has no 'task_group'"),
    "wrong type of id": (
        changed(MANY, "per_task", 0, "task_id", value=[1]),
        r"task_id = \[1\] is of the wrong type",
    ),
    "an average": (
        changed(MANY, "per_task", 0, "metrics", "successes", value=0.6),
        r"per_task\[0\].metrics.successes = 0.6 is not a list",
    ),
    "mixed lengths": (
        changed(MANY, "per_task", 0, "metrics", "sum_rewards", value=[1.0]),
        r"metrics.sum_rewards has 1 values, successes has 3",
    ),
    "counts that differ": (
        changed(NEWER, "per_task", 0, "n_success", value=3),
        r"n_success = 3, but .* hold 2",
    ),
    "text for a success": (
        changed(MANY, "per_task", 1, "metrics", "successes", 1, value="maybe"),
        r"per_task\[1\].metrics.successes\[1\] = 'maybe' is not a word for success or failure",
    ),
    "a rate for a success": (
        changed(OLDER, "per_episode", 1, "success", value=0.5),
        r"per_episode\[1\].success = 0.5 is neither 0 nor 1",
    ),
    "an episode without success": (
        changed(OLDER, "per_episode", 2, "success"),
        r"per_episode\[2\] has no 'success', unlike per_episode\[0\]",
    ),
    "twice the same task": ({"per_task": [task("a", 0, [True])] * 2}, "has 'a/0' more than once"),
    "one task lacks the metric": (
        changed(MANY, "per_task", 1, "metrics", "successes"),
        r"per_task\[1\].metrics has no 'successes'; every task needs it",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_files_are_refused_with_place_and_remedy(read, case):
    content, fault = DAMAGED[case]
    with pytest.raises(InvalidCost, match=fault) as refused:
        read(content)
    message = str(refused.value)
    assert "eval_info.json: " in message
    assert ";" in message
    assert "\n" not in message


def test_another_json_file_is_no_evaluation(read):
    with pytest.raises(InvalidCost, match="has neither 'per_task' nor 'per_episode'"):
        read('{"cost": 0.1}', file_format="lerobot-eval")
