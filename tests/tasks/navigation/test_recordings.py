"""Trajectory files: round trips, and one clear line for each thing that can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from boundwatch.errors import InvalidSetting
from boundwatch.tasks.navigation.drone import DroneSettings
from boundwatch.tasks.navigation.recordings import Recordings

HEADER = "primitive,rollout,x,y\n"


@pytest.fixture(scope="module")
def recordings():
    whole = Recordings.from_drone(DroneSettings())
    return Recordings((whole.paths[0], whole.paths[3][:4]))  # of different numbers, as the published ones are


def save_csv(recordings, path):
    rows = [
        f"{number},{rollout},{x!r},{y!r}\n"
        for number, flights in enumerate(recordings.paths)
        for rollout, flight in enumerate(flights)
        for x, y in flight.tolist()
    ]
    path.write_text(HEADER + "".join(rows))


@pytest.mark.parametrize(("suffix", "save"), [("csv", save_csv), ("npz", Recordings.save)])
def test_round_trip(recordings, tmp_path, suffix, save):
    save(recordings, tmp_path / f"flights.{suffix}")
    again = Recordings.load(tmp_path / f"flights.{suffix}")
    assert again.counts == (5, 4)
    assert again.sha256() == recordings.sha256()
    for a, b in zip(again.paths, recordings.paths, strict=True):
        assert np.array_equal(a, b)


def test_heights_and_further_columns_are_ignored(recordings, tmp_path):
    positions = np.stack([recordings.paths[0][:4], recordings.paths[1]])
    heights = np.ones((*positions.shape[:3], 1))
    np.savez(tmp_path / "high.npz", positions=np.concatenate([positions, heights], axis=3))
    assert np.array_equal(Recordings.load(tmp_path / "high.npz").paths[1], recordings.paths[1])
    rows = "".join(f"{p},0,{0.1 * t},{t},7\n" for p in range(2) for t in range(3))
    (tmp_path / "extra.csv").write_text("primitive,rollout,x,y,yaw\n" + rows)
    assert Recordings.load(tmp_path / "extra.csv").paths[1].tolist() == [[[0, 0], [0.1, 1], [0.2, 2]]]


def test_a_changed_position_changes_the_fingerprint(recordings):
    moved = recordings.paths[0].copy()
    moved[0, 10, 0] += 0.001
    assert Recordings((moved, recordings.paths[1])).sha256() != recordings.sha256()


CALM = "0,0,0,0\n0,0,0,1\n"  # a whole primitive
BAD_CSV = {
    "": "'primitive'",
    "primitive,rollout,x\n0,0,1\n": "'y'",
    HEADER: "0 primitives",
    HEADER + CALM: "1 primitives",
    HEADER + "0,0,0,0\n0,0,left,1\n": "line 3",
    HEADER + "0,0,0\n": "line 2",
    HEADER + CALM + "2,0,0,0\n2,0,0,1\n": r"\[0, 2\]",
    HEADER + CALM + "1,0,0,0\n": "primitive 1, rollout 0 has 1 steps",
    HEADER + CALM.replace("0,1\n", "0,nan\n") + "1,0,0,0\n1,0,0,1\n": "primitive 0, rollout 0, step 1",
    HEADER + CALM.replace("0,1\n", "0,11000\n") + "1,0,0,0\n1,0,0,1\n": "millimeters",
}
BAD_NPZ = [
    ({"paths": np.zeros((2, 2, 3, 2))}, "'positions'"),
    ({"positions": np.zeros((2, 3, 2))}, r"shape \(2, 3, 2\)"),
    ({"positions": np.zeros((2, 2, 3, 4))}, r"shape \(2, 2, 3, 4\)"),
    ({"positions": np.array(["left"])}, "'positions'"),
    ({"positions": np.full((2, 2, 3, 2), np.nan)}, "primitive 0 has shape"),
    ({"positions": np.array([{}], dtype=object)}, "'positions'"),  # pickled: never loaded
]
WRONG = [("flights.mat", b"MATLAB"), ("flights.npz", b"not a zip")]
WRONG += [("flights.csv", b"\xff\xfe\x00"), ("flights.txt", b""), ("missing.csv", None)]


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        *(("flights.csv", content.encode(), named) for content, named in BAD_CSV.items()),
        *(("flights.npz", *case) for case in BAD_NPZ),
        *((name, content, name) for name, content in WRONG),
    ],
)
def test_files_that_hold_no_flights_are_refused_in_one_line(tmp_path, name, content, named):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    with pytest.raises(InvalidSetting, match=named) as raised:
        Recordings.load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
