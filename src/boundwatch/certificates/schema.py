"""The shape of a certificate's file: what it must hold, of which type, in which range."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import datetime
from operator import eq, lt
from typing import Any, Literal, get_args

from boundwatch.bounds.pac_bayes import MIN_ENVIRONMENTS, Variant
from boundwatch.certificates.record import MOST_POINTS
from boundwatch.errors import SchemaMismatch

VERSION = 2
"""Version of the schema that this release writes; it reads this one and all before it.

Version 1 had neither `record` nor `cost_range`. A certificate of version 1 stays one when it is loaded: it is
written as it was read, so that its fingerprint, and every state that names it, stays valid.
"""

HeldOutMethod = Literal["betting", "kl", "hoeffding", "exact"]
"""How limits may follow from a number of held-out costs that was fixed in advance."""

Method = HeldOutMethod | Variant | Literal["anytime", "external"]
"""How limits may follow from costs."""

Source = Literal["held-out", "pac-bayes", "pointwise", "external"]
"""Where a certificate comes from."""

METHODS: dict[Source, tuple[Method, ...]] = {
    "held-out": (*get_args(HeldOutMethod), "anytime"),
    "pac-bayes": get_args(Variant),
    "pointwise": ("kl",),
    "external": ("external",),
}
"""The methods of each source of a certificate."""


def decode(data: bytes) -> object:
    """Return the JSON value in a file's bytes.

    Examples
    --------
    >>> decode(b'{"lower": 0.1')
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: line 1 is not JSON (Expecting ',' delimiter); ...
    """
    try:
        return json.loads(
            data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique_fields
        )
    except UnicodeDecodeError:
        raise SchemaMismatch(
            "not a text file; give the JSON file that certify or Certificate.save wrote"
        ) from None
    except json.JSONDecodeError as error:
        raise SchemaMismatch(
            f"line {error.lineno} is not JSON ({error.msg}); the file is truncated or not a certificate"
        ) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets nested without end
        raise SchemaMismatch(
            "not a certificate; give the file that certify or Certificate.save wrote"
        ) from None


def parse(content: object) -> dict[str, Any]:
    """Return the fields of a certificate, each checked on its own and against its source.

    Examples
    --------
    >>> parse({"schema_version": 99})
    Traceback (most recent call last):
    boundwatch.errors.SchemaMismatch: schema_version = 99 is newer than 2, ...
    """
    if not isinstance(content, dict) or "schema_version" not in content:
        raise SchemaMismatch("no schema_version; not a certificate, give the file that certify wrote")
    if "certificates" in content:
        raise SchemaMismatch(
            "holds the certificates of several tasks, but one is needed here; "
            "take it out with: boundwatch show FILE --task NAME -o OTHER_FILE"
        )
    version = content["schema_version"]
    if isinstance(version, int) and version > VERSION:
        raise SchemaMismatch(
            f"schema_version = {version} is newer than {VERSION}, the newest that this release knows; "
            "upgrade boundwatch"
        )
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SchemaMismatch(f"schema_version = {version!r} is unknown; it must be 1 or {VERSION}")
    shape = _CERTIFICATE if version >= 2 else _VERSION_1
    fields = {"record": None, "cost_range": None} | _fields(content, shape, "", version)
    fields["provenance"] = _fields(fields["provenance"], _PROVENANCE, "provenance.", version)
    if fields["record"] is not None:
        fields["record"] = _fields(fields["record"], _RECORD, "record.", version)
    _check_source(fields)
    return fields


def _check_source(fields: dict[str, Any]) -> None:
    """Check the fields that depend on where the certificate came from."""
    source, method = fields["source"], fields["method"]
    if method not in METHODS[source]:
        raise SchemaMismatch(
            f"method = {method!r} does not go with source = {source!r}; allowed: {METHODS[source]}"
        )
    if method == "exact" and not fields["binary"]:
        raise SchemaMismatch("method = 'exact' needs binary = true")
    wanted = {
        "n": source != "external",
        "mean_cost": source != "external",
        "renyi": source == "pac-bayes",
        "log_ratio": source == "pointwise",
        "record": source == "held-out" and not fields["binary"] and fields["schema_version"] > 1,
    }
    for name, needed in wanted.items():
        if needed != (fields[name] is not None):
            raise SchemaMismatch(
                f"{name} = {str(fields[name])[:40]} does not go with source = {source!r}; "
                f"it must {'' if needed else 'not '}be given"
            )
    if source in ("pac-bayes", "pointwise") and fields["n"] < MIN_ENVIRONMENTS:
        raise SchemaMismatch(
            f"n = {fields['n']} is too small for source = {source!r}; at least {MIN_ENVIRONMENTS}"
        )
    record = fields["record"]
    if record is not None and len(record["values"]) != len(record["weights"]):
        raise SchemaMismatch(
            f"record has {len(record['values'])} values but {len(record['weights'])} weights"
        )
    if fields["lower"] > fields["upper"]:
        raise SchemaMismatch(f"lower = {fields['lower']} is above upper = {fields['upper']}")


def _fields(content: object, shape: dict[str, Rule], prefix: str, version: int) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise SchemaMismatch(f"{prefix.rstrip('.')} is not an object with fields")
    if content.keys() != shape.keys():
        if missing := [name for name in shape if name not in content]:
            raise SchemaMismatch(f"{prefix}{missing[0]} is missing")
        unknown = next(name for name in content if name not in shape)
        raise SchemaMismatch(f"{prefix}{unknown} is not a field of schema {version}")
    for name, (allowed, test) in shape.items():
        if not test(content[name]):
            found = repr(content[name])
            found = found if len(found) <= 200 else f"{found[:200]}..."
            raise SchemaMismatch(f"{prefix}{name} = {found} is not allowed; it must be {allowed}")
    return dict(content)


Rule = tuple[str, Callable[[Any], bool]]
_LARGEST = sys.float_info.max
_HEAVIEST = 1e15  # costs of one value; their sum must stay a whole number that arithmetic can hold


def _number(value: object) -> bool:
    # The comparison, not isfinite: that would overflow on integers larger than any float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _or_null(rule: Rule) -> Rule:
    allowed, test = rule
    return f"{allowed}, or null", lambda value: value is None or test(value)


def _numbers(value: object) -> bool:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_POINTS:
        return False
    if set(map(type, value)) <= {int, float} and all(map(eq, value, value)):  # no nan: the ends tell
        return bool(-_LARGEST < min(value) <= max(value) < _LARGEST)
    return all(map(_number, value))


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise SchemaMismatch(f"{double} is given twice; the file was altered, certify again")
    return fields


def _refuse_constant(name: str) -> None:
    raise SchemaMismatch(f"{name} is not a number that a certificate may hold")


_PROBABILITY: Rule = ("a number in [0, 1]", lambda v: _number(v) and 0 <= v <= 1)
_LEVEL: Rule = ("a number in (0, 1)", lambda v: _number(v) and 0 < v < 1)
_DIGEST: Rule = (
    "a SHA-256 in hexadecimal",
    lambda v: isinstance(v, str) and re.fullmatch("[0-9a-f]{64}", v) is not None,
)
_VERSION_1: dict[str, Rule] = {
    "schema_version": ("a whole number", _integer),
    "lower": _PROBABILITY,
    "upper": _PROBABILITY,
    "delta": _LEVEL,
    "delta_upper": _LEVEL,
    "delta_lower": _LEVEL,
    "n": _or_null(("a whole number from 1 to 2^53", lambda v: _integer(v) and 1 <= v <= 1 << 53)),
    "mean_cost": _or_null(_PROBABILITY),
    "source": (f"one of {', '.join(METHODS)}", lambda v: isinstance(v, str) and v in METHODS),
    "method": ("a name", lambda v: isinstance(v, str)),
    "binary": ("true or false", lambda v: isinstance(v, bool)),
    "renyi": _or_null(("a number >= 0", lambda v: _number(v) and v >= 0)),
    "log_ratio": _or_null(("a finite number", _number)),
    "provenance": ("an object", lambda v: isinstance(v, dict)),
}
_CERTIFICATE: dict[str, Rule] = {
    **_VERSION_1,
    "record": _or_null(("an object", lambda v: isinstance(v, dict))),
    "cost_range": _or_null(
        (
            "two numbers, the lower first",
            lambda v: isinstance(v, list) and len(v) == 2 and all(map(_number, v)) and v[0] < v[1],
        )
    ),
}
_RECORD: dict[str, Rule] = {
    "values": (
        f"at most {MOST_POINTS} increasing numbers in [0, 1]",
        lambda v: _numbers(v) and v[0] >= 0 and v[-1] <= 1 and all(map(lt, v, v[1:])),
    ),
    "weights": (
        f"at most {MOST_POINTS} numbers > 0, each at most {_HEAVIEST:g}",
        lambda v: _numbers(v) and min(v) > 0 and max(v) <= _HEAVIEST,
    ),
}
_PROVENANCE: dict[str, Rule] = {
    "created": ("a time in ISO 8601 with its zone", _moment),
    "versions": (
        "an object of texts",
        lambda v: isinstance(v, dict) and all(isinstance(text, str) for text in v.values()),
    ),
    "seed": _or_null(("a whole number", _integer)),
    "costs_sha256": _or_null(_DIGEST),
    "policy_sha256": _or_null(_DIGEST),
    "measured": _or_null(("a text", lambda v: isinstance(v, str) and v.strip() != "")),
}
