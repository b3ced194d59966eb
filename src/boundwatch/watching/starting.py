"""What a watch starts with: its detectors, the state that it goes on from, and the source of its lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.errors import CertificateError, InvalidSetting
from boundwatch.watching.files import FileSource, beginning
from boundwatch.watching.lines import Position
from boundwatch.watching.pipes import PipeSource, is_pipe
from boundwatch.watching.sources import Source, name_of
from boundwatch.watching.spool import SpooledPipe
from boundwatch.watching.watch import Detector, Watch

DETECTORS: dict[str, type[Detector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
    "predicted-test": PredictedTest,
}


def build_detectors(
    certificate: Certificate | CertificateFamily, detector: str, levels: Mapping[str, float]
) -> dict[str, Detector]:
    """Return a detector for the one stream ``""``, or one per task of a family at its share of the level.

    Examples
    --------
    >>> import boundwatch as bw
    >>> family = bw.CertificateFamily.from_held_out({"arm-1": [0, 1], "arm-2": [0, 0]}, binary=True)
    >>> build_detectors(family, "sequential-test", {})["arm-2"].alpha_adverse
    0.02
    """
    build: Callable[..., Detector] = DETECTORS[detector]
    if isinstance(certificate, Certificate):
        return {"": build(certificate, **levels)}
    detectors: dict[str, Detector] = {}
    for stream, promise in certificate.items():
        one = build(promise, **levels)
        shares = {name: getattr(one, name) / len(certificate) for name in ("alpha_adverse", "alpha_benign")}
        if "margin" in levels:
            shares["margin"] = levels["margin"]
        detectors[stream] = build(promise, **shares)
    return detectors


def open_source(watch: Watch, stream: str, *, spool: Path | None = None, follow: bool = False) -> Source:
    """Return where the lines of a watch come from, at the place where it left off.

    Raises
    ------
    InvalidSetting
        When there is a state, and the stream could be counted twice or lost.
    """
    if spool is not None:
        if not is_pipe(stream):
            raise InvalidSetting(f"{name_of(stream)}: is a file, which needs no --spool; leave it out")
        source = SpooledPipe(str(spool), watch.position, watch.pipe)
        watch.pipe = source.pipe
        watch.save()  # before the first byte: whose line it is that may be cut off
        return source
    if not is_pipe(stream):
        if watch.state is not None and stream != "-" and watch.position == Position():
            watch.position = beginning(stream)  # it may be rotated before its first line is counted
            watch.save()
        return FileSource(stream, watch.position, follow=follow, once=watch.state is None)
    by_line = watch.rows.rule.id == "line"
    if watch.state is not None and watch.rows.rule.id is None:
        raise InvalidSetting(
            f"{name_of(stream)}: is a pipe, and what is read from it when this process is killed is lost; "
            "with --state, number the episodes (--id FIELD), or keep the lines (--spool FILE)"
        )
    return PipeSource(stream, replayed=watch.position if by_line else None, once=watch.state is None)


def resume(watch: Watch, levels: Mapping[str, float]) -> bool:
    """Go on from the watch's state, if there is one, and return whether there was."""
    if watch.state is None or (content := watch.state.read()) is None:
        return False
    try:
        asked = {
            stream: {name: getattr(detector, name) for name in levels}
            for stream, detector in watch.detectors.items()
        }
        watch.restore(content)
        for stream, detector in watch.detectors.items():
            for name, value in asked[stream].items():
                if (was := getattr(detector, name)) != value:
                    flag = f"--{name.replace('_', '-')}"
                    if was is None:
                        raise InvalidSetting(f"was begun without {flag}; leave it out, or start a new state")
                    begun = was if name == "margin" else was * len(watch.detectors)
                    raise InvalidSetting(f"was begun with {flag} {begun:g}; leave {flag} out, or give that")
    except (CertificateError, InvalidSetting) as error:
        raise type(error)(f"{watch.state.path}: {error}") from error
    return True


def source_key(stream: str, spool: Path | None) -> str:
    """Return the name under which a state keeps its source: the same from every folder."""
    if spool is not None:
        return f"spool {spool.absolute()}"
    return stream if stream == "-" else str(Path(stream).absolute())
