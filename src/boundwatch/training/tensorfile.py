"""Tensors in a file: the safetensors layout, written so that equal tensors give equal bytes.

Eight bytes of header length, a JSON header, then the raw little-endian numbers. Nothing in such a file can
be executed, it holds no date, and its keys are sorted, so that hashes of two files can be compared.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping

import torch
from torch import Tensor

from boundwatch._support.files import read_bytes, write_bytes
from boundwatch.errors import SchemaMismatch

_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_DTYPES |= {"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8}
_DTYPES |= {"U8": torch.uint8, "BOOL": torch.bool}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


def encode(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a file that holds ``tensors`` and ``metadata``.

    **Guarantee.** Equal names, values, dtypes and metadata give equal bytes, whatever their order.
    """
    # Widest numbers first, so that every tensor is aligned to its own width.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    blocks, offset = [], 0
    for name in names:
        tensor = tensors[name].detach().cpu().contiguous()
        block = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        span = [offset, offset + len(block)]
        header[name] = {"dtype": _CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blocks)


def decode(data: bytes, source: str = "file") -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata that ``data`` holds, after checking every field."""
    try:
        return _decode(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaMismatch(f"{source} is not a tensor file ({error}); train again") from error


def _decode(data: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    if len(data) < 8:
        raise ValueError("shorter than 8 bytes")
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise ValueError("cut off in its header")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("its metadata is not text")
    body = data[8 + length :]
    tensors: dict[str, Tensor] = {}
    expected = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (start, stop) = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError(f"{name} has the shape {shape}")
        if start != expected or stop - start != math.prod(shape) * dtype.itemsize or stop > len(body):
            raise ValueError(f"{name} does not fit its place")
        block = bytearray(body[start:stop])
        flat = torch.frombuffer(block, dtype=dtype) if block else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(shape)
        expected = stop
    if expected != len(body):
        raise ValueError("it has bytes that belong to no tensor")
    return tensors, metadata


def sha256(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> str:
    """Return the SHA-256 of the file that `save` would write."""
    return hashlib.sha256(encode(tensors, metadata)).hexdigest()


def save(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> str:
    """Write ``tensors`` to ``path`` atomically and return the SHA-256 of the file."""
    data = encode(tensors, metadata)
    write_bytes(path, data)
    return hashlib.sha256(data).hexdigest()


def load(path: str | os.PathLike[str], kind: str | None = None) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what `save` wrote; refuse a file that is not of this kind, if one is given."""
    tensors, metadata = decode(read_bytes(path), str(path))
    if kind is not None and metadata.get("kind") != kind:
        raise SchemaMismatch(f"{path} holds no {kind}; give the file that boundwatch wrote")
    return tensors, metadata
