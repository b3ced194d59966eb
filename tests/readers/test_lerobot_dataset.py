"""LeRobotDataset v3 folders, written with pyarrow by the documented format, and damaged ones."""

import json
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from boundwatch.readers import read_costs
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra

TASKS = ["Put the cup on the plate.", "Open the drawer."]


def write_dataset(
    root,
    lengths=(3, 2, 4),
    success=(True, False, True),
    same_start=False,
    files=2,
    named_index=True,
    **changes,
):
    """Write a dataset: success in the last frame only, reward 0.5 in every frame, tasks in turn."""
    rng = np.random.default_rng(7)
    frames = {
        name: [] for name in ("observation.state", "action", "next.reward", "next.success", "next.done")
    }
    frames |= {name: [] for name in ("timestamp", "frame_index", "episode_index", "index", "task_index")}
    for episode, length in enumerate(lengths):
        start = np.zeros(2) if same_start else rng.normal(size=2)
        for frame in range(length):
            last = frame == length - 1
            values = [
                (start + frame).astype(np.float32).tolist(),
                [0.0],
                0.5,
                success[episode] and last,
                last,
            ]
            values += [frame / 10, frame, episode, len(frames["index"]), episode % len(TASKS)]
            for column, value in zip(frames.values(), values, strict=True):
                column.append(value)
    state = pyarrow.list_(pyarrow.float32(), 2)
    table = pyarrow.table(frames | {"observation.state": pyarrow.array(frames["observation.state"], state)})
    table = changes.pop("edit", lambda unchanged: unchanged)(table)
    for number, part in enumerate(np.array_split(np.arange(table.num_rows), files)):
        path = root / f"data/chunk-000/file-{number:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table.take(part), path)
    info = {
        "codebase_version": "v3.0",
        "robot_type": "so101_follower",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 2,
        "fps": 10,
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "features": {"next.success": {"dtype": "bool", "shape": [1], "names": None}},
    } | changes
    (root / "meta").mkdir(parents=True, exist_ok=True)
    (root / "meta/info.json").write_text(json.dumps(info, indent=4))
    index = "task" if named_index else "__index_level_0__"
    tasks = pyarrow.table({"task_index": [0, 1], index: TASKS})
    pyarrow.parquet.write_table(tasks, root / "meta/tasks.parquet")
    return root


def test_an_episode_succeeds_if_any_frame_does(tmp_path):
    episodes = read_costs(write_dataset(tmp_path))
    assert episodes.costs.tolist() == [0, 1, 0]
    assert (episodes.file_format, episodes.column, episodes.binary) == (
        "lerobot-dataset",
        "next.success",
        True,
    )
    assert episodes.detail == "9 frames"


def test_rewards_are_summed(tmp_path):
    episodes = read_costs(write_dataset(tmp_path), reward="next.reward", cost_range=(0, 2))
    assert episodes.costs.tolist() == [0.25, 0.5, 0.0]


def test_other_columns_need_a_rule(tmp_path):
    write_dataset(tmp_path)
    with pytest.raises(InvalidSetting, match=r"'timestamp' has a cost for every step .*reduce='mean'"):
        read_costs(tmp_path, cost="timestamp")
    assert read_costs(tmp_path, cost="timestamp", reduce="max").costs == pytest.approx([0.2, 0.1, 0.3])
    assert read_costs(tmp_path, success="next.success", reduce="last").costs.tolist() == [0, 1, 0]


@pytest.mark.parametrize("named_index", [True, False], ids=["task", "__index_level_0__"])
def test_tasks_have_their_texts(tmp_path, named_index):
    episodes = read_costs(write_dataset(tmp_path, named_index=named_index), by="task")
    assert episodes.tasks == (TASKS[0], TASKS[1], TASKS[0])
    assert read_costs(tmp_path, by="task_index").tasks == ("0", "1", "0")


def test_numbers_in_lists_of_one_are_read(tmp_path):
    def wrap(table):
        position = table.column_names.index("next.success")
        wrapped = [[value] for value in table["next.success"].to_pylist()]
        return table.set_column(position, "next.success", pyarrow.array(wrapped))

    assert read_costs(write_dataset(tmp_path, edit=wrap)).costs.tolist() == [0, 1, 0]


def test_warns_when_all_episodes_start_alike(tmp_path):
    alike = write_dataset(tmp_path / "alike", same_start=True)
    assert "all 3 episodes start from the same recorded state" in read_costs(alike, by="task").warnings[0]
    assert read_costs(write_dataset(tmp_path / "different"), by="task").warnings == ()


def test_episodes_may_lie_across_files(tmp_path):
    whole = read_costs(write_dataset(tmp_path / "one", files=1)).costs
    assert read_costs(write_dataset(tmp_path / "five", files=5)).costs.tolist() == whole.tolist()


def mixed_tasks(table):
    return table.set_column(
        table.column_names.index("task_index"),
        "task_index",
        pyarrow.array([0, 1] + [0] * (table.num_rows - 2)),
    )


def no_outcome(table):
    return table.drop_columns(["next.success", "next.reward"])


DAMAGED = {
    "no episodes": ({"total_episodes": 0}, "holds no episodes"),
    "half of it missing": (
        {"total_episodes": 50},
        "total_episodes = 50, but the data hold 3; fetch the whole",
    ),
    "frames missing": ({"total_frames": 10}, "total_frames = 10, but the data hold 9"),
    "older version": (
        {"codebase_version": "v2.1"},
        "codebase_version = 'v2.1' is not read, only v3; convert",
    ),
    "no version": ({"codebase_version": None}, "has no text 'codebase_version'"),
    "text for a number": ({"total_frames": "9"}, "total_frames = '9' is not a whole number"),
    "no episode index": (
        {"edit": lambda t: t.drop_columns(["episode_index"])},
        "has no column 'episode_index'",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_datasets_are_refused(tmp_path, case):
    changes, fault = DAMAGED[case]
    with pytest.raises(InvalidCost, match=fault) as refused:
        read_costs(write_dataset(tmp_path, **changes))
    assert "\n" not in str(refused.value)


def test_damaged_files_in_a_dataset_are_named(tmp_path):
    write_dataset(tmp_path)
    data = tmp_path / "data/chunk-000/file-001.parquet"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(InvalidCost, match=r"file-001\.parquet: the Parquet data is damaged"):
        read_costs(tmp_path)
    data.unlink()
    (tmp_path / "data/chunk-000/file-000.parquet").unlink()
    with pytest.raises(InvalidCost, match="has no data/chunk-"):
        read_costs(tmp_path)
    (tmp_path / "meta/info.json").write_text('{"codebase_version": "v3.0", "total_')
    with pytest.raises(InvalidCost, match=r"info\.json: is not valid JSON"):
        read_costs(tmp_path)


def test_tasks_that_cannot_be_told_are_refused(tmp_path):
    write_dataset(tmp_path, edit=mixed_tasks)
    with pytest.raises(InvalidCost, match=r"episode 0 has task = 'Put the cup .*' and 'Open the drawer.'"):
        read_costs(tmp_path, by="task")
    (tmp_path / "meta/tasks.parquet").unlink()
    with pytest.raises(InvalidCost, match=r"tasks\.parquet: is missing"):
        read_costs(tmp_path, by="task")
    assert read_costs(tmp_path).costs.tolist() == [0, 1, 0]


def test_a_dataset_without_outcomes_and_a_folder_that_is_none(tmp_path):
    with pytest.raises(InvalidSetting, match="no column is called cost, success, is_success or reward"):
        read_costs(write_dataset(tmp_path / "demonstrations", edit=no_outcome))
    with pytest.raises(InvalidSetting, match=r"has no meta/info\.json; give the root folder"):
        read_costs(tmp_path, file_format="lerobot-dataset")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    write_dataset(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"boundwatch\[io\]"):
        read_costs(tmp_path)
