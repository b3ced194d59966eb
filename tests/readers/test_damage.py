"""Logs with arbitrary damage: refused in one line with a remedy, never a traceback."""

import copy
import json
import random
import shutil
from pathlib import Path

import pytest

from boundwatch.readers import read_costs
from boundwatch.errors import BoundwatchError, InvalidSetting

DATA = Path(__file__).parents[2] / "examples" / "data"
JUNK = [None, True, 0, -1, 3.5, float("nan"), "", "x", [], {}, [[]], {"a": 1}, 10**400]
READINGS = [{}, {"by": "task"}, {"by": "task_id"}, {"reward": "sum_reward", "cost_range": (0, 5)}]
OLDER = {
    "per_episode": [{"success": i % 2 == 0, "sum_reward": i, "seed": i} for i in range(5)],
    "aggregated": {},
}


def refuses_or_reads(path, **options):
    """Return whether the file was refused, in one clear line; any other exception fails."""
    try:
        read_costs(path, **options)
    except BoundwatchError as error:
        message = str(error)
    else:
        return False
    assert "\n" not in message
    assert ";" in message, "no remedy"
    return True


def seeded(seed):
    return random.Random(seed)  # noqa: S311  (damage is no secret)


def with_junk(content, rng):
    """Return a copy with a random entry, at any depth, removed or replaced."""
    content = copy.deepcopy(content)
    node = content
    while True:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if rng.random() < 0.3 or not isinstance(node[key], dict | list) or not node[key]:
            break
        node = node[key]
    if rng.random() < 0.3:
        del node[key]
    else:
        node[key] = copy.deepcopy(rng.choice(JUNK))
    return content


def with_bad_bytes(data, rng):
    """Return the bytes with up to four of them changed, or cut short."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(1, len(changed))] if rng.random() < 0.3 else changed)


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_evaluations_of_lerobot(tmp_path, reading):
    rng, path = seeded(1), tmp_path / "eval_info.json"
    newer = json.loads((DATA / "lerobot/after_update.json").read_text())
    refused = 0
    for _ in range(300):
        path.write_text(json.dumps(with_junk(rng.choice([newer, OLDER]), rng)))
        refused += refuses_or_reads(path, **reading)
    assert refused > 30


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("sb3/0.monitor.csv", {"cost_range": (-4000, 0)}),
        ("sb3/evaluations.npz", {"cost_range": (-4000, 0)}),
        ("robot.mcap", {"success": "/episode/result.success", "by": "robot"}),
    ],
)
def test_other_files(tmp_path, name, reading):
    rng, path, data = seeded(2), tmp_path / "log", (DATA / name).read_bytes()
    assert not refuses_or_reads(DATA / name, **reading)
    refused = 0
    for _ in range(150):
        path.write_bytes(with_bad_bytes(data, rng))
        refused += refuses_or_reads(path, **reading)
    assert refused > 50


def test_datasets_of_lerobot(tmp_path):
    rng, source = seeded(3), DATA / "lerobot/dataset"
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    assert not refuses_or_reads(source, by="task")
    refused = 0
    for number in range(100):
        root = tmp_path / str(number)
        shutil.copytree(source, root)
        name = rng.choice(names)
        (root / name).write_bytes(with_bad_bytes((source / name).read_bytes(), rng))
        refused += refuses_or_reads(root, by="task")
    assert refused > 50


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((None,), {}, "path = None is not the path of a file"),
        (([0, 1],), {}, r"path = .*is not the path of a file; costs that are not in a file need no reading"),
        (("x.csv",), {"cost": 2}, "cost = 2 is not a text; give a name, or a number as text such as '1'"),
        (("x.csv",), {"sheet": 2}, "sheet = 2 is not a text"),
        (("x.csv",), {"success_values": 1}, "success_values = 1 is not a list of words"),
        (("x.csv",), {"certificate": "c.json"}, "certificate = 'c.json' is neither a certificate nor"),
    ],
)
def test_a_mistake_in_a_call_is_not_blamed_on_the_file(tmp_path, monkeypatch, arguments, options, said):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("cost\n0.1\n0.2\n")
    with pytest.raises(InvalidSetting, match=said):
        read_costs(*arguments, **options)
    with pytest.raises(TypeError, match=r"^read_costs\(\) got an unexpected keyword argument 'column'$"):
        read_costs("x.csv", column="cost")
