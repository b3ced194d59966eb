"""Going on where a watch stopped: what its store must agree with, and where its source goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boundwatch.episodes.compatibility import Likeness
from boundwatch.errors import Argument, InvalidSetting, Place, ProvenanceMismatch, Refusal, SchemaMismatch
from boundwatch.readers.lines import Batch, Position
from boundwatch.watching.sources import KeptPipe, is_pipe, open_lines
from boundwatch.watching.trials import Trial
from boundwatch.watching.watch import COUNTS, Watch

_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


def resume(watch: Watch, levels: Mapping[str, float]) -> None:
    """Go on from the store, if anything is in it; it must be about the same stream, settings and levels."""
    facts = watch.store.facts
    if "settings" not in facts:
        return
    where = Place(str(watch.store.path))
    try:
        _refuse_others(watch, facts)
        for stream in watch.detectors:
            if (state := facts.get(f"detector {stream}")) is not None:
                _restore_detector(watch, stream, state, levels)
        _restore(watch, facts)
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


def _restore_detector(watch: Watch, stream: str, state: dict[str, Any], levels: Mapping[str, float]) -> None:
    detector, was = watch.detectors[stream], state["settings"]
    for name in (*levels, *({"sharing"} & set(was))):
        if was[name] != getattr(detector, name):
            share = 1 if name in ("margin", "sharing") or was[name] is None else len(watch.detectors)
            begun = _said(name, was[name] and was[name] * share)
            remedy = ("leave out ", Argument(name), ", or start a new state")
            raise InvalidSetting(f"was begun with {begun}", remedy=remedy)
    known = {**state, "certificate": detector.certificate.to_dict()}
    watch.detectors[stream] = type(detector).from_state_dict(known, detector.certificate)


def _restore(watch: Watch, facts: Mapping[str, Any]) -> None:
    watch.position = Position.from_dict(facts["position"])
    watch.sender = None if facts["sender"] is None else (facts["sender"][0], facts["sender"][1])
    if watch.reader is not None and facts["text"] is not None:
        watch.reader.restore(facts["text"])
    for name in COUNTS:
        setattr(watch, name, int(facts["counts"][name]))
    watch.highest = {stream: int(number) for stream, number in facts["highest"].items()}
    if facts["last"] is not None:
        number, costs, name = facts["last"]
        watch.last = Trial(int(number), tuple(map(float, costs)), id=name)
    watch.alarms.told = dict(facts["told"])
    for stream, state in facts["likeness"].items():
        measure = watch.measure_of(stream)
        if measure is None:
            raise ValueError
        watch.likeness[stream] = Likeness(watch.detectors[stream].certificate, measure, state)


def _said(name: str, value: object) -> str:
    return f"no {name}" if value in (None, [], "") else str(Argument(name, value))


def open_source(watch: Watch, stream: str, *, follow: bool = False) -> Iterable[Batch]:
    """Return where the lines of a watch come from, at the place where it left off."""
    state = watch.store.path
    if not is_pipe(stream):
        if state is not None and watch.position == Position() and Path(stream).exists():
            named = Path(stream).stat()  # it may be rotated before its first line is counted
            watch.position = Position(device=named.st_dev, inode=named.st_ino)
            watch.save()
        return open_lines(stream, watch.position, follow=follow)
    replayed = watch.settings.get("id") == "line"
    if state is None or replayed:
        return open_lines(stream, watch.position, replayed=replayed)
    kept = state.with_name(f"{state.name}-pipe")
    if not kept.exists() or kept.stat().st_size == watch.position.offset:  # all of it was counted
        kept.unlink(missing_ok=True)
        watch.position = Position()
    watch.save()
    source = KeptPipe(stream, kept, watch.position, watch.sender)
    watch.sender = source.sender
    watch.save()  # before the first byte: whose line it is that may be cut off
    return source
