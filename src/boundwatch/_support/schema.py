"""Plain values become instances of frozen types: what a field may hold is said by its annotation, once."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec

from boundwatch.errors import SchemaMismatch

Kind = TypeVar("Kind")
Key = TypeVar("Key")
Value = TypeVar("Value")

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Level = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
"""A SHA-256 in hexadecimal."""


class FrozenMapping(dict[Key, Value]):
    """What a mapping held when this was made: it cannot be changed, and can be hashed."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be changed; make another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:  # a dict is copied and unpickled by setting its items
        return type(self), (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def convert(kind: type[Kind], content: object, where: str = "") -> Kind:
    """Return the instance of a type that plain values describe, or raise `SchemaMismatch`.

    Types are dataclasses and what they are made of. Numbers are not made of text, nor truth values of
    numbers; names that the type does not have are refused, and so are numbers that are not finite. The
    refusal's `name` is the path of the first field that does not fit, below `where`.
    """
    try:
        found = msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise mismatch(str(error), content, where) from None
    _refuse_strangers(found, content, where)
    return found


def decode(data: bytes, what: str = "file") -> object:
    """Return the JSON value in a file's bytes; no name twice, no number that is none."""
    ours = f"give the {what} that boundwatch wrote"
    try:
        text = data.decode("utf-8")
        content = json.loads(
            text, parse_constant=_refuse_constant, parse_int=_whole_number, object_pairs_hook=_unique_names
        )
        if "\\ud" in text.lower():
            json.dumps(content, ensure_ascii=False).encode()  # half a pair of surrogates is no character
        return content
    except SchemaMismatch:
        raise
    except UnicodeEncodeError:
        raise SchemaMismatch("holds half a character", remedy="it was altered") from None
    except UnicodeDecodeError:
        raise SchemaMismatch("is not a text file", remedy=ours) from None
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno} is not JSON ({error.msg})"
        raise SchemaMismatch(problem, remedy=f"the {what} is truncated or another one") from None
    except (RecursionError, ValueError):  # brackets nested without end, a number of thousands of digits
        raise SchemaMismatch("is not JSON that can be read", remedy=ours) from None


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise SchemaMismatch("is given twice", name=double, remedy="the file was altered")
    return content


def _refuse_constant(name: str) -> None:
    raise SchemaMismatch(f"{name} is not a number that a file may hold")


def _whole_number(text: str) -> int:
    if len(text) > 300:
        _refuse_constant(f"{text[:20]}...")
    return int(text)


def mismatch(message: str, content: object, where: str = "") -> SchemaMismatch:
    """Return a refusal from what msgspec says, the only place that has the path of the field."""
    fault, _, path = message.partition(" - at `$")
    path = path.removesuffix("`")
    for said, problem in (("missing required", "is missing"), ("contains unknown", "is not known")):
        field = fault.partition(f"{said} field `")[2].removesuffix("`")
        if field:
            return SchemaMismatch(problem, name=f"{where}{path}.{field}".removeprefix("."))
    value = content
    for part in filter(None, path.replace("[", ".").replace("]", "").split(".")):
        value = _item(value, part)
    name = f"{where}{path}".removeprefix(".") or None
    return SchemaMismatch(f"does not fit: {fault[:1].lower()}{fault[1:]}", name=name, value=value)


def _item(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part, "...")
    return value[int(part)] if isinstance(value, Sequence) and part.isdigit() else value


def _refuse_strangers(found: object, content: object, where: str) -> None:
    """Refuse names that a type does not have, which msgspec passes over, and numbers that are not finite."""
    if isinstance(content, float) and not math.isfinite(content):
        raise SchemaMismatch("is not finite", name=where, value=content)
    if isinstance(content, Mapping):
        typed = dataclasses.is_dataclass(found)
        for name, value in content.items():
            path = f"{where}.{name}" if where else str(name)
            if typed and name not in found.__dataclass_fields__:  # type: ignore[attr-defined]
                raise SchemaMismatch("is not known", name=path)
            _refuse_strangers(getattr(found, name) if typed else None, value, path)
    elif isinstance(content, list | tuple) and not all(map(_is_plain, content)):
        inside = found if isinstance(found, list | tuple) else ()
        for place, (value, inner) in enumerate(zip_longest(content, inside)):
            _refuse_strangers(inner, value, f"{where}[{place}]")


def _is_plain(value: object) -> bool:
    """Return whether a value of a list needs no look inside, nor is infinite."""
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
