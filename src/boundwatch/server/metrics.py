"""Prometheus metrics, read from the database when they are asked for: every process gives the same answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Request, Response
from sqlalchemy.engine import Connection

from boundwatch.server import outbox, queries
from boundwatch.server.api import reading, settings_of

router = APIRouter(include_in_schema=False)
MOST_STREAMS = 2000
_VERDICTS = {"within": 0, "benign": -1, "adverse": 1}
_TOTALS = {
    "episodes": "Episodes counted in the current generations",
    "episodes_waiting": "Episodes on the disk that wait to be counted",
    "open_alarms": "Alarms that nobody has acknowledged",
    "silent_streams": "Streams without an episode for too long; not a verdict",
    "deliveries_waiting": "Alarms and notices that have not reached their receiver",
    "delivery_lag_seconds": "Age of the oldest of them",
}
_PER_STREAM = {
    "n": ("episodes", "Episodes of the current generation"),
    "evidence_adverse": ("evidence", "Evidence that costs have risen: an e-value"),
    "threshold_adverse": ("threshold", "Evidence at which it alarms; none if at an exact line of failures"),
    "verdict": ("verdict", "1 ADVERSE, 0 WITHIN, -1 BENIGN"),
    "last_seen": ("last_seen_seconds", "When its last episode came, since 1970"),
}


def collect(connection: Connection, silent_before: float | None = None) -> Iterator[str]:
    """Yield the families of metrics as Prometheus reads them."""
    found: dict[str, float] = {**queries.totals(connection, silent_before)}
    found["silent_streams"] = found["silent"]
    found["deliveries_waiting"], found["delivery_lag_seconds"] = outbox.lag(connection)
    for name, text in _TOTALS.items():
        yield _family(name, text, [("", found[name])])
    verdicts = [(f'{{verdict="{verdict}"}}', found[verdict]) for verdict in _VERDICTS]
    yield _family("streams", "Streams by verdict", verdicts)
    listed = queries.list_streams(connection, size=MOST_STREAMS)[0]
    rows = [queries.standing(row) | {"verdict": _VERDICTS[row["verdict"]]} for row in listed]
    for column, (name, text) in _PER_STREAM.items():  # names hold nothing that would have to be escaped
        values = [(f'{{stream="{row["name"]}"}}', row[column]) for row in rows if row[column] is not None]
        yield _family(f"stream_{name}", text, values)


def _family(name: str, text: str, values: Iterable[tuple[str, float]]) -> str:
    head = f"# HELP boundwatch_{name} {text}\n# TYPE boundwatch_{name} gauge\n"
    return head + "".join(f"boundwatch_{name}{labels} {float(value)}\n" for labels, value in values)


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Say where everything stands, for Prometheus; of more than 2,000 streams, those with most evidence."""
    with reading(request) as connection:
        text = "".join(collect(connection, settings_of(request).silent_before))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
