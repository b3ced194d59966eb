"""What people and programs may know: read from stored columns, so that many streams cost little."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import ColumnElement, RowMapping, Select, and_, case, func, literal, or_, select
from sqlalchemy.engine import Connection

from boundwatch.bounds.multiple import e_bh_rows
from boundwatch.certificates.judged import AUDIT_RATES, is_drawn
from boundwatch.detectors import Verdict
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.server.bindings import fleet_size
from boundwatch.server.live_detectors import load_certificate, load_detector
from boundwatch.server.models import Label, Refused, Report, cost_of
from boundwatch.server.tables import alarms, audit, certificates, episodes, log, streams, watches

PAGE = 50
_SHOWN = (
    "stream generation certificate detector alpha_adverse alpha_benign verdict first_alarm n labeled "
    "mean_cost evidence_adverse evidence_benign threshold_adverse threshold_benign last_seen silent closed"
)
_CURRENT = watches.c.closed.is_(None)
_KEPT = watches.c.n + watches.c.labeled
_WATCHED = watches.join(streams).join(certificates)
_STANDING = select(
    streams.c.name,
    watches,
    certificates.c.name.label("certificate"),
    certificates.c.version.label("certificate_version"),
    certificates.c.fingerprint,
    certificates.c.binary,
).select_from(_WATCHED)


def _all(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _is_silent(before: float) -> ColumnElement[bool]:
    return or_(watches.c.last_seen < before, and_(watches.c.last_seen.is_(None), watches.c.created < before))


def list_streams(
    connection: Connection,
    *,
    verdict: str = "",
    search: str = "",
    silent_before: float | None = None,
    page: int = 1,
    size: int = PAGE,
) -> tuple[list[RowMapping], int]:
    """Return one page of streams, the strongest evidence first, and how many there are in all."""
    asked = [
        (verdict, watches.c.verdict == verdict),
        (search, streams.c.name.icontains(search, autoescape=True)),
        (silent_before, _is_silent(silent_before or 0.0)),
    ]
    clauses = [clause for is_asked, clause in asked if is_asked]
    count = select(func.count()).select_from(_WATCHED).where(_CURRENT, *clauses)
    is_adverse = watches.c.verdict == Verdict.ADVERSE.value
    order = is_adverse.desc(), watches.c.evidence_adverse.desc(), streams.c.name
    query = _STANDING.where(_CURRENT, *clauses).order_by(*order).limit(size).offset((page - 1) * size)
    return _all(connection, query), connection.execute(count).scalar_one()


def totals(connection: Connection, silent_before: float | None = None) -> dict[str, int]:
    """Return how many streams have each verdict, how many are silent, episodes, and alarms that wait."""
    counted = {verdict.value: 0 for verdict in Verdict} | {"streams": 0, "episodes": 0, "silent": 0}
    is_silent = literal(False) if silent_before is None else _is_silent(silent_before)
    numbers = func.count(), func.sum(watches.c.n), func.sum(case((is_silent, 1), else_=0))
    query = select(watches.c.verdict, *numbers).where(_CURRENT).group_by(watches.c.verdict)
    for verdict, *sums in connection.execute(query):
        counted[verdict] = sums[0]
        for name, number in zip(("streams", "episodes", "silent"), sums, strict=True):
            counted[name] += int(number)
    waiting = select(func.count()).select_from(alarms).where(alarms.c.acknowledged.is_(None))
    behind = select(select(log.c.last).scalar_subquery() - func.coalesce(func.sum(_KEPT), 0)).select_from(
        watches
    )
    asked = {"open_alarms": waiting, "episodes_waiting": behind}
    return counted | {name: int(connection.execute(each).scalar_one()) for name, each in asked.items()}


class Fleet(NamedTuple):
    """Which streams' costs have risen, at one false discovery rate.

    **Guarantee**: the expected share of streams listed although their world is not worse is at most `rate`
    plus `delta`, whatever the dependence between streams, for the list at one look, also when streams and
    generations are added after looks. **Assumes**: as in `boundwatch.Fleet`; and when you look does not
    depend on costs after the last point of a stream's curve, where its evidence is computed.
    """

    rate: float
    delta: float
    """The `delta_upper` of the certificates whose costs are not judged jointly with the new ones, in all."""
    size: int
    streams: int
    left_out: int
    discoveries: list[RowMapping]


def fleet(connection: Connection, rate: float) -> Fleet:
    """Return the discoveries among all streams that a sequential test watches."""
    columns = "id evidence_adverse place certificate_id threshold_adverse"
    query = select(*(watches.c[name] for name in columns.split())).where(_CURRENT)
    rows = connection.execute(query).all()
    tested = [row for row in rows if row.place is not None]
    size = fleet_size(connection)
    e_values, places = [row.evidence_adverse for row in tested], [row.place for row in tested]
    keys = [tested[index].id for index in select_discoveries(e_values, places, size=size, rate=rate)]
    found = {row["id"]: row for row in _all(connection, _STANDING.where(watches.c.id.in_(keys)))}
    limited = {row.certificate_id for row in tested if row.threshold_adverse is not None}
    delta = min(1.0, sum(load_certificate(connection, key).delta_upper for key in limited))
    listed = [found[key] for key in keys]
    return Fleet(rate, delta, size, len(tested), len(rows) - len(tested), listed)


def select_discoveries(
    e_values: Sequence[float], places: Sequence[int], *, size: int, rate: float
) -> list[int]:
    """Return which tests are discoveries (e-BH), the strongest first, at a false discovery rate.

    Of each test its e-value counts, and whether it began as the first, second, …: the first `size` tests
    divide one half of the rate; those that began later divide the other.

    Examples
    --------
    >>> select_discoveries([1.0, 200.0, 90.0, 0.2], [1, 2, 3, 4], size=4, rate=0.05)
    [1, 2]
    >>> select_discoveries([1.0, 200.0, 90.0, 0.2], [1, 2, 17, 4], size=4, rate=0.05)
    [1]
    """
    if not e_values:
        return []
    roll = DiscoveryShares()
    roll.look(size)
    total = max(size, *places)
    roll.add(size, total)
    shares = roll.look(total)[np.asarray(places) - 1]
    with np.errstate(divide="ignore"):  # an e-value may have been rounded to 0
        found: list[int] = e_bh_rows(np.log(np.asarray(e_values)), shares, rate).tolist()
    return found


def find_stream(connection: Connection, name: str, generation: int | None = None) -> RowMapping:
    """Return a stream's watch, the current one or that of a generation."""
    which_one = _CURRENT if generation is None else watches.c.generation == generation
    query = _STANDING.where(streams.c.name == name, which_one)
    if (row := connection.execute(query).mappings().first()) is None:
        problem = "is not watched here" if generation is None else f"has no generation {generation} here"
        remedy = "GET /api/v1/streams lists them"
        raise Refused(404, problem, name="stream", value=name[:80], remedy=remedy)
    return row


def generations(connection: Connection, stream_id: int) -> list[RowMapping]:
    """Return all watches of a stream, the latest first."""
    query = _STANDING.where(watches.c.stream_id == stream_id).order_by(watches.c.generation.desc())
    return _all(connection, query)


def list_episodes(
    connection: Connection, watch: RowMapping, *, after: int = 0, limit: int = 500
) -> list[dict[str, Any]]:
    """Return the counted episodes of a watch after so many, in their order and numbered in it."""
    query = select(episodes).where(episodes.c.watch_id == watch["id"])
    query = query.where(episodes.c.number <= watch["counted"], episodes.c.labels.is_(None))
    if (left := watch["n"] - after) <= limit:  # the last ones are found from the end
        found = _all(connection, query.order_by(episodes.c.number.desc()).limit(max(0, left)))[::-1]
    else:
        found = _all(connection, query.order_by(episodes.c.number).limit(limit).offset(after))
    return [{**row, "number": number} for number, row in enumerate(found, after + 1)]


def list_waiting(connection: Connection, name: str, limit: int = 100) -> tuple[RowMapping, int, list[Any]]:
    """Return a judge's stream, how many of its episodes wait for a label, and the first of them."""
    row = find_stream(connection, name)
    if row["seed"] is None:
        remedy = "bind it with the detector judged-test"
        raise Refused(409, "is not bound to a judge", name="stream", value=name[:80], remedy=remedy)
    places: Sequence[int] = getattr(load_detector(connection, row).detector, "waiting", ())
    after, last = (places[0] - 1, places[:limit][-1]) if places else (0, 0)
    found = list_episodes(connection, row, after=after, limit=last - after)
    wanted = set(places[:limit])
    return row, len(places), [each for each in found if each["number"] in wanted]


def report_label(connection: Connection, name: str, sent: Label, *, by: str) -> Report:
    """Return a label as it is stored, or refuse one of an episode that was not drawn."""
    row, id_, cost = find_stream(connection, name), str(sent.episode), cost_of(sent)
    of_watch = (episodes.c.watch_id == row["id"]) & episodes.c.labels.is_(None)
    query = select(episodes.c.number, episodes.c.cost).where(of_watch, episodes.c.episode == id_)
    if row["seed"] is None or (episode := connection.execute(query).first()) is None:
        problem = "was not judged in this stream and generation"
        raise Refused(404, problem, name="episode", value=id_, remedy="label those that wait")
    before = select(func.count()).where(of_watch, episodes.c.number <= episode.number)
    number = connection.execute(before).scalar_one()
    if not is_drawn(row["seed"], AUDIT_RATES, number, episode.cost):
        remedy = "label those that wait: who chooses episodes chooses the outcome"
        raise Refused(409, "was not drawn", name="episode", value=id_, remedy=remedy)
    known = select(episodes.c.cost).where(episodes.c.watch_id == row["id"], episodes.c.labels == number)
    if connection.execute(known).scalar() not in (None, cost):
        raise Refused(409, "has another label", name="episode", value=id_, remedy="a label is final")
    said = json.dumps({"by": by})
    return Report(name, f"\t{row['id']} {number}", cost, None, said, (row["id"], number))  # no robot's id


def list_alarms(
    connection: Connection, *, waiting: bool | None = None, watch_id: int | None = None, limit: int = 200
) -> list[RowMapping]:
    """Return alarms, the latest first."""
    names = "generation", "n", "total", "closed", "detector"
    watched = *(watches.c[name] for name in names), certificates.c.binary
    query = select(alarms, streams.c.name.label("stream"), *watched)
    query = query.select_from(alarms.join(watches).join(streams).join(certificates))
    if waiting is not None:
        query = query.where(alarms.c.acknowledged.is_(None) == waiting)
    if watch_id is not None:
        query = query.where(alarms.c.watch_id == watch_id)
    return _all(connection, query.order_by(alarms.c.created.desc()).limit(limit))


def list_certificates(connection: Connection) -> list[RowMapping]:
    """Return the certificates with how many streams each watches now."""
    is_used = (watches.c.certificate_id == certificates.c.id) & _CURRENT
    used = select(func.count()).select_from(watches).where(is_used).scalar_subquery().label("streams")
    order = certificates.c.name, certificates.c.version.desc()
    return _all(connection, select(certificates, used).order_by(*order))


def list_audit(connection: Connection, limit: int = 200) -> list[RowMapping]:
    """Return the latest administrative acts."""
    return _all(connection, select(audit).order_by(audit.c.id.desc()).limit(limit))


def latest(connection: Connection) -> dict[str, int]:
    """Return numbers that only grow, at least one of them whenever what the pages show changes."""
    watched = select(func.coalesce(func.sum(_KEPT), 0), func.count()).select_from(watches)
    alarmed = select(func.count(), func.count(alarms.c.acknowledged)).select_from(alarms)
    found = [*connection.execute(watched).one(), *connection.execute(alarmed).one()]
    return dict(zip(("episodes", "watches", "alarms", "acknowledged"), map(int, found), strict=True))


def standing(row: RowMapping, silent_before: float | None = None) -> dict[str, Any]:
    """Return a row of a stream with what follows from it."""
    is_silent = silent_before is not None and (row["last_seen"] or row["created"]) < silent_before
    return {**row, "mean_cost": row["total"] / row["n"] if row["n"] else None, "silent": is_silent}


def as_json(row: RowMapping, silent_before: float | None = None) -> dict[str, Any]:
    """Return where a stream stands, for programs; no threshold: it alarms at an exact line of failures."""
    found = standing(row, silent_before)
    names = {"name": "certificate", "version": "certificate_version", "fingerprint": "fingerprint"}
    found |= {"stream": row["name"], "certificate": {name: row[column] for name, column in names.items()}}
    return {name: found[name] for name in _SHOWN.split()}
