"""Prometheus metrics, read from the database when they are asked for: every process gives the same answer."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from sqlalchemy.engine import Connection

from boundwatch.server import outbox, queries
from boundwatch.server.api import reading, silent_before

router = APIRouter(include_in_schema=False)
MOST_STREAMS = 2000
_VERDICTS = {"within": 0, "benign": -1, "adverse": 1}
_PER_STREAM = {
    "n": ("episodes", "Episodes of the current generation"),
    "evidence_adverse": ("evidence", "Evidence that costs have risen: an e-value"),
    "threshold_adverse": (
        "threshold",
        "Evidence at which the stream alarms; none if at an exact line of failures",
    ),
    "verdict": ("verdict", "1 ADVERSE, 0 WITHIN, -1 BENIGN"),
    "last_seen": ("last_seen_seconds", "When its last episode came, since 1970"),
}


class _Standing(Collector):
    def __init__(self, connection: Connection, silent_before: float | None) -> None:
        self.connection = connection
        self.silent_before = silent_before

    def collect(self) -> Iterator[Metric]:
        counts = queries.totals(self.connection, self.silent_before)
        waiting, lag = outbox.lag(self.connection)
        for name, text, value in (
            ("episodes", "Episodes counted in the current generations", counts["episodes"]),
            ("open_alarms", "Alarms that nobody has acknowledged", counts["open_alarms"]),
            ("silent_streams", "Streams without an episode for too long; not a verdict", counts["silent"]),
            ("deliveries_waiting", "Alarms and notices that have not reached their receiver", waiting),
            ("delivery_lag_seconds", "Age of the oldest of them", lag),
        ):
            yield GaugeMetricFamily(f"boundwatch_{name}", text, value=value)
        verdicts = GaugeMetricFamily("boundwatch_streams", "Streams by verdict", labels=["verdict"])
        for verdict in _VERDICTS:
            verdicts.add_metric([verdict], counts[verdict])
        yield verdicts
        yield from self._per_stream()

    def _per_stream(self) -> Iterator[Metric]:
        families = {
            column: GaugeMetricFamily(f"boundwatch_stream_{name}", text, labels=["stream"])
            for column, (name, text) in _PER_STREAM.items()
        }
        for row in queries.list_streams(self.connection, queries.Filters(), size=MOST_STREAMS)[0]:
            said = {"verdict": _VERDICTS[row["verdict"]]}
            values = dict(row) | said | {"threshold_adverse": queries.threshold_of(row, "adverse")}
            for name, family in families.items():
                if values[name] is not None:
                    family.add_metric([row["name"]], values[name])
        yield from families.values()


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Say where everything stands, for Prometheus; of more than 2,000 streams, those with most evidence."""
    registry = CollectorRegistry()
    with reading(request) as connection:
        registry.register(_Standing(connection, silent_before(request)))
        text = generate_latest(registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
