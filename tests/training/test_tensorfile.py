"""Files of tensors: equal content gives equal bytes, and a damaged file is refused."""

import contextlib
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.errors import BoundwatchError, SchemaMismatch
from boundwatch.training import tensorfile

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32]
DTYPES += [torch.int16, torch.int8, torch.uint8, torch.bool]
TENSORS = {str(d): torch.arange(6).reshape(2, 3).to(d) for d in DTYPES} | {
    "scalar": torch.tensor(1.5),
    "empty": torch.zeros(0, 3),
}


def test_round_trip_of_every_dtype_and_shape():
    tensors, metadata = tensorfile.decode(tensorfile.encode(TENSORS, {"a": "b"}))
    assert metadata == {"a": "b"}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
        assert torch.equal(tensors[name], tensor)


def test_bytes_do_not_depend_on_the_order_or_the_strides():
    turned = {name: TENSORS[name] for name in reversed(TENSORS)}
    turned[str(torch.float32)] = TENSORS[str(torch.float32)].T.contiguous().T
    data = tensorfile.encode(TENSORS, {"x": "1", "y": "2"})
    assert tensorfile.encode(turned, {"y": "2", "x": "1"}) == data


def test_layout_is_the_published_one():
    data = tensorfile.encode({"b": torch.tensor([1.0]), "a": torch.tensor([True])}, {"k": "v"})
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"k": "v"},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "a": {"dtype": "BOOL", "shape": [1], "data_offsets": [4, 5]},
    }
    assert data[8 + length :] == b"\x00\x00\x80\x3f\x01"


def file_of(header, body=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 20,
        file_of([]),
        file_of({"__metadata__": {"a": 1}}),
        file_of({"a": ENTRY}, b"\0" * 3),
        file_of({"a": ENTRY}, b"\0" * 5),
        file_of({"a": ENTRY | {"dtype": "OBJECT"}}, b"\0" * 4),
        file_of({"a": ENTRY | {"shape": [2]}}, b"\0" * 4),
        file_of({"a": ENTRY | {"shape": [-1]}}, b"\0" * 4),
        file_of({"a": ENTRY | {"data_offsets": [-4, 0]}}, b"\0" * 4),
        file_of({"a": ENTRY, "b": ENTRY}, b"\0" * 4),
    ],
)
def test_damaged_files_are_refused(data):
    with pytest.raises(SchemaMismatch, match="is not a tensor file"):
        tensorfile.decode(data)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_never_crashes(position, value):
    data = bytearray(tensorfile.encode(TENSORS, {"a": "b"}))
    data[position % len(data)] = value
    with contextlib.suppress(BoundwatchError):
        tensorfile.decode(bytes(data))
