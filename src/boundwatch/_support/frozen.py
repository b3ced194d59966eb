"""A mapping that cannot be changed and can be hashed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value]):
    """What a mapping held when this was made.

    Examples
    --------
    >>> versions = FrozenMapping({"numpy": "2.4"})
    >>> versions["numpy"], versions == {"numpy": "2.4"}, hash(versions) == hash(FrozenMapping(versions))
    ('2.4', True, True)
    >>> versions["numpy"] = "1.0"
    Traceback (most recent call last):
    TypeError: 'FrozenMapping' object does not support item assignment
    """

    __slots__ = ("_content",)
    _content: Mapping[Key, Value]

    def __init__(self, content: Mapping[Key, Value]) -> None:
        object.__setattr__(self, "_content", MappingProxyType(dict(content)))

    def __setattr__(self, name: str, value: Any = None) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed; make another one")

    __delattr__ = __setattr__

    def __reduce__(self) -> tuple[Any, ...]:  # a proxy can be neither pickled nor copied
        return type(self), (dict(self._content),)

    def __getitem__(self, key: Key) -> Value:
        return self._content[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return hash(frozenset(self._content.items()))

    def __repr__(self) -> str:
        return repr(dict(self._content))
