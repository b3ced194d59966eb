"""What a watch starts with: its detectors, the state that it goes on from, and the source of its lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.episodes import Episodes, certified_column, certified_meaning, certified_ranges, holds_lines
from boundwatch.episodes.formats import LINE_FORMATS
from boundwatch.episodes.opening import is_log, refuse_document
from boundwatch.episodes.steps import in_turns
from boundwatch.errors import CertificateError, InvalidSetting
from boundwatch.watching.files import FileSource, beginning, is_text
from boundwatch.watching.lines import Position
from boundwatch.watching.pipes import PipeSource, is_pipe
from boundwatch.watching.rows import Rows, Rule
from boundwatch.watching.sources import RowSource, Source, name_of
from boundwatch.watching.spool import SpooledPipe
from boundwatch.watching.state import StateFile
from boundwatch.watching.watch import Detector, Watch

DETECTORS: dict[str, type[Detector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
    "predicted-test": PredictedTest,
}


class Opened(NamedTuple):
    """A watch, the source of its lines, and whether it goes on from a state."""

    watch: Watch
    source: Source
    resumed: bool


def open_watch(
    certificate: Certificate | CertificateFamily,
    stream: str,
    rule: Rule,
    *,
    episodes: Episodes | None = None,
    detector: str = "sequential-test",
    levels: Mapping[str, float] | None = None,
    state: StateFile | None = None,
    spool: Path | None = None,
    follow: bool = False,
) -> Opened:
    r"""Return a watch that is ready to run, at the place where its state left off.

    Parameters
    ----------
    certificate
        What to compare with.
    stream
        The file, or ``-`` for standard input.
    rule
        How lines are read, as the user has said it; what follows from the certificate is added.
    episodes
        Those of the stream, if it was read as a whole.
    detector
        A name in `DETECTORS`; where lines have predictions, it is the one that takes them.
    levels
        Those that were given, and the margin; left out, the detector's own.
    state
        What to go on from, locked.
    spool, follow
        As in `open_source`.

    Raises
    ------
    InvalidSetting
        When the state is about something else, when the stream could be counted twice or lost, or when
        `episodes` list one task after the other, or take them in turn in a fixed order.

    Examples
    --------
    >>> import tempfile
    >>> promise = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> log = Path(tempfile.mkdtemp()) / "log"
    >>> _ = log.write_text("0.7\n0.4\n0.9\n0.8\n")
    >>> opened = open_watch(promise, str(log), Rule())
    >>> [events[-1].finding.verdict.name for events in opened.watch.run(opened.source)]
    ['ADVERSE']
    """
    _refuse_fixed_order(stream, episodes)
    levels = {} if levels is None else levels
    watch = Watch(
        build_detectors(certificate, detector if rule.predicted is None else "predicted-test", levels),
        _rows(certificate, rule, episodes),
        source_key(stream, spool),
        state=state,
        name=stream if spool is None else str(spool),
        compared=episodes is not None,
    )
    resumed = resume(watch, levels)
    if episodes is not None:
        return Opened(watch, RowSource(_as_lines(episodes), episodes.lines), resumed)
    return Opened(watch, open_source(watch, stream, spool=spool, follow=follow), resumed)


def _refuse_fixed_order(stream: str, episodes: Episodes | None) -> None:
    """Refuse tasks whose order somebody chose: a mixture is watched in random order."""
    if episodes is None or episodes.by is not None:
        return
    turns = (column for column, tasks in episodes.labels.items() if in_turns(tasks))
    if column := episodes.blocks_of:
        said = f"lists one {column} after the other"
    elif column := next(turns, None):
        said = f"takes each {column} in turn, always in the same order"
    else:
        return
    raise InvalidSetting(
        f"{stream}: {said}, so a hard one would alarm because of its place in the file; watch one at a time, "
        f"or use check with --by {column}"
    )


def is_read_by_line(
    stream: str,
    certificate: Certificate | CertificateFamily,
    *,
    columns: Collection[str] = (),
    file_format: str | None = None,
    needed: bool = False,
) -> bool:
    """Return whether a stream is read line by line: if that is `needed`, or if it cannot be read otherwise.

    Parameters
    ----------
    stream, certificate
        As in `open_watch`.
    columns
        Those that were named.
    file_format
        The format that was named, if one was.
    needed
        Whether something was asked for that a file read as a whole does not have, such as a state.

    Raises
    ------
    InvalidSetting
        When lines are needed, and the stream is one JSON document.
    """
    if not needed:
        return file_format is None and holds_lines(stream)
    by_line = holds_lines(stream) or (is_text(stream) and not is_log(stream))
    if by_line:
        refuse_document(stream, [*columns, certified_column(_each(certificate)).column or ""])
    return file_format in LINE_FORMATS and by_line


def _each(certificate: Certificate | CertificateFamily) -> list[Certificate]:
    return [certificate] if isinstance(certificate, Certificate) else list(certificate.values())


def _rows(certificate: Certificate | CertificateFamily, rule: Rule, episodes: Episodes | None) -> Rows:
    """Return what reads lines by a rule and by what the certificate remembers."""
    each = _each(certificate)
    binary = all(one.binary for one in each)
    if episodes is not None:
        return Rows(Rule(binary=binary, by=episodes.by))  # they are costs by now
    # Under others, a number without a name could be a success or a reward.
    bare_costs = all(certified_meaning(one.provenance.measured or "") == "cost" for one in each)
    whole = replace(rule, binary=binary, bare_costs=bare_costs)
    return Rows(whole, certified_column(each), certified_ranges(each))


def _as_lines(episodes: Episodes) -> list[str]:
    costs = episodes.costs.tolist()
    if episodes.by is None:
        return [repr(cost) for cost in costs]
    names = zip(costs, episodes.tasks, strict=True)
    return [json.dumps({"cost": cost, episodes.by: task}) for cost, task in names]


def build_detectors(
    certificate: Certificate | CertificateFamily, detector: str, levels: Mapping[str, float]
) -> dict[str, Detector]:
    """Return a detector for the one stream ``""``, or one per task of a family at its share of the level.

    **Guarantee**: any stream of a family that is not worse is ever called ADVERSE with probability at most
    the level of all plus the family's `delta_upper`, in which a certificate that several share counts once;
    and likewise BENIGN. (That of a `ChangeDetector` is in `Watch`.)

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
    sharing = Counter(map(id, certificate.values()))
    for stream, promise in certificate.items():
        one = build(promise, **levels)
        shares = {name: getattr(one, name) / len(certificate) for name in ("alpha_adverse", "alpha_benign")}
        if "margin" in levels:
            shares["margin"] = levels["margin"]
        if build is SequentialTest:  # the others judge by the limits, which pay their delta once
            shares["sharing"] = sharing[id(promise)]
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
