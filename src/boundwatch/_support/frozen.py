"""A mapping that cannot be changed and can be hashed."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(dict[Key, Value]):
    """What a mapping held when this was made.

    Examples
    --------
    >>> versions = FrozenMapping({"numpy": "2.4"})
    >>> versions["numpy"], versions == {"numpy": "2.4"}, hash(versions) == hash(FrozenMapping(versions))
    ('2.4', True, True)
    >>> versions["numpy"] = "1.0"
    Traceback (most recent call last):
    TypeError: FrozenMapping cannot be changed; make another one
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be changed; make another one")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:  # a dict is copied and unpickled by setting its items
        return type(self), (dict(self),)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))
