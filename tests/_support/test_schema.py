"""Plain values become instances of types, or are refused with the path of the field."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch._support.schema import Digest, Level, Probability, convert, decode
from boundwatch.errors import NOTHING, SchemaMismatch


@dataclass(frozen=True)
class Inner:
    share: Probability
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outer:
    level: Level
    inner: Inner
    others: list[Inner]
    loads: Mapping[str, float]
    digest: Digest | None = None


GOOD = {"level": 0.5, "inner": {"share": 1}, "others": [{"share": 0.0}], "loads": {"arm": 3}}
INNERS = st.builds(Inner, st.floats(0, 1), st.lists(st.text(), max_size=3).map(tuple))
OUTERS = st.builds(
    Outer,
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    INNERS,
    st.lists(INNERS, max_size=3),
    st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)


@given(OUTERS)
def test_what_was_written_is_read(outer):
    assert convert(Outer, decode(json.dumps(asdict(outer)).encode())) == outer


BAD = [
    ({"level": 1}, "x.level", 1),
    ({"level": "0.5"}, "x.level", "0.5"),
    ({"level": True}, "x.level", True),
    ({"inner": {"share": 2}}, "x.inner.share", 2),
    ({"inner": {"share": 0.5, "names": ["a", 3]}}, "x.inner.names[1]", 3),
    ({"inner": {}}, "x.inner.share", NOTHING),  # it is missing
    ({"inner": {"share": 0.5, "more": 1}}, "x.inner.more", NOTHING),
    ({"more": 1}, "x.more", NOTHING),
    ({"others": [{"share": 0.5}, {"share": 0.5, "more": 1}]}, "x.others[1].more", NOTHING),
    ({"loads": {"arm": float("inf")}}, "x.loads.arm", float("inf")),
    ({"digest": "0" * 64 + "\n"}, "x.digest", "0" * 64 + "\n"),
    ({"digest": "G" * 64}, "x.digest", "G" * 64),
]


@pytest.mark.parametrize(("change", "name", "value"), BAD)
def test_what_does_not_fit_is_refused_with_its_path(change, name, value):
    assert convert(Outer, GOOD).inner == Inner(1.0)
    with pytest.raises(SchemaMismatch) as refused:
        convert(Outer, GOOD | change, "x")
    assert (refused.value.name, refused.value.value) == (name, value)


@pytest.mark.parametrize("content", [{}, [1], 3, None, "text"])
def test_what_has_no_fields_is_refused(content):
    with pytest.raises(SchemaMismatch):
        convert(Outer, content)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000, b"1" * 5000],
)
def test_what_is_no_plain_json_is_refused(data):
    with pytest.raises(SchemaMismatch):
        decode(data)
