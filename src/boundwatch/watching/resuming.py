"""Going on where a watch stopped: what its store must agree with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from boundwatch._support.schema import convert
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch, Refusal, SchemaMismatch
from boundwatch.watching.loop import Progress, Watch

_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


def resume(watch: Watch, levels: Mapping[str, float]) -> None:
    """Go on from the store, if anything is in it; it must be about the same stream, settings and levels."""
    facts = watch.store.facts
    if "settings" not in facts:
        return
    where = Place(str(watch.store.path))
    try:
        _refuse_others(watch, facts)
        for stream, detector in watch.detectors.items():
            if (state := facts.get(f"detector {stream}")) is not None:
                _refuse_levels(watch, detector, state["settings"], levels)
                watch.detectors[stream] = type(detector).from_content(state, detector.certificate)
        known = {each.name: facts["progress"][each.name] for each in fields(Progress)}
        vars(watch).update(vars(convert(Progress, known, "progress")))
        if watch.reader is not None and facts["text"] is not None:
            watch.reader.restore(facts["text"])
        watch.alarms.told = dict(facts["told"])
        watch.likeness = {stream: list(costs) for stream, costs in facts["likeness"].items()}
    except Refusal as error:
        raise error.at(where) from None
    except _DAMAGE:
        raise SchemaMismatch("is damaged", where=where, remedy="restore it, or start a new one") from None
    watch.resumed = True


def _refuse_others(watch: Watch, facts: Mapping[str, Any]) -> None:
    certificates = {name: one.certificate.fingerprint for name, one in watch.detectors.items()}
    if sorted(facts["certificates"]) != sorted(certificates):
        raise InvalidSetting("watches other tasks or robots", remedy="start a new state")
    for stream, fingerprint in facts["certificates"].items():
        if fingerprint != certificates[stream]:
            problem = f"belongs to certificate {fingerprint[:12]}, not to {certificates[stream][:12]}"
            raise ProvenanceMismatch(problem, remedy="use that certificate, or start a new state")
    for name, value in watch.settings.items():
        if (stored := facts["settings"][name]) != value:
            problem = f"was begun with {_said(name, stored)}, not with {_said(name, value)}"
            raise InvalidSetting(problem, remedy="go on as it was begun, or start a new state")


def _refuse_levels(watch: Watch, detector: object, was: Mapping[str, Any], levels: Mapping[str, Any]) -> None:
    for name in (*levels, *({"sharing"} & set(was))):
        if was[name] != getattr(detector, name):
            share = 1 if name in ("margin", "sharing") or was[name] is None else len(watch.detectors)
            begun = _said(name, was[name] and was[name] * share)
            remedy = ("leave out ", Argument(name), ", or start a new state")
            raise InvalidSetting(f"was begun with {begun}", remedy=remedy)


def _said(name: str, value: object) -> str:
    return f"no {name}" if value in (None, [], "") else str(Argument(name, value))
