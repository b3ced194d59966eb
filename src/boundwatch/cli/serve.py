"""boundwatch serve: the live monitor."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from boundwatch.cli.options import AT_LEAST_0, AT_LEAST_1
from boundwatch.cli.root import command
from boundwatch.errors import BoundwatchError, InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from boundwatch.server.database import Database
    from boundwatch.server.settings import Settings


@command(
    example="boundwatch serve --certificate lab.json\n"
    "boundwatch serve --demo\n"
    "boundwatch serve --database postgresql://monitor@db/boundwatch --host 0.0.0.0 --workers 4\n"
    "boundwatch serve --verify"
)
def serve(
    *,
    database: str | None = None,
    certificate: Path | None = None,
    detector: Literal["sequential-test", "change-detector", "judged-test"] | None = None,
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    host: str | None = None,
    port: Annotated[int | None, (1, 65535)] = None,
    workers: Annotated[int | None, (1, 64)] = None,
    allow_host: list[str] | None = None,
    proxy: list[str] | None = None,
    public_url: str | None = None,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    webhook: list[str] | None = None,
    on_alarm: list[str] | None = None,
    tell: Literal["streams", "discoveries"] | None = None,
    fleet_size: Annotated[int | None, AT_LEAST_1] = None,
    silent_minutes: Annotated[float | None, AT_LEAST_0] = None,
    demo: bool = False,
    verify: bool = False,
    export: Path | None = None,
    restore: Path | None = None,
) -> None:
    """Run the live monitor: robots report episodes, people look at one page, alarms reach them.

    Options up to --silent-minutes can also be set as variables such as BOUNDWATCH_PORT.

    Options
    -------
    certificate FILE: Bind every new stream to this certificate, before its first episode.
    detector: What new streams are watched with; judged-test if a machine judges. [default: sequential-test]
    alpha_adverse P: Level of ADVERSE for new streams. [default: 0.04; change-detector: 0.001]
    alpha_benign P: Level of BENIGN for new streams. [default: the same]
    host: Address to listen on; beyond this machine only with a token. [default: 127.0.0.1]
    port: Port. [default: 8080]
    workers: Processes; more than 1 needs PostgreSQL. [default: 1]
    allow_host NAME: Host name that clients may use for this server, such as the name of a proxy.
    proxy ADDRESS: Proxy in front, whose X-Forwarded-For and -Proto are believed: an address or a network.
    public_url URL: Address that people open, for the links in alarms, if a proxy is in front.
    tls_certificate FILE: PEM file, for HTTPS.
    tls_key FILE: Its key.
    webhook URL: POST alarms here; signed with BOUNDWATCH_WEBHOOK_SECRET if it is set.
    on_alarm COMMAND: Run this at an alarm, which it reads as JSON from standard input.
    tell: Of what people hear: alarms of all streams, or discoveries at one rate. [default: streams]
    fleet_size N: About how many streams there will be; the first N divide one half of the false discovery
        rate. Set it once, before the first stream is bound. [default: 20]
    silent_minutes N: Call a stream silent after N minutes without an episode.
    demo: Fill a temporary database with drones, one of which meets wind.
    verify: Replay all episodes, compare with what is shown, and exit.
    export FILE: Write a backup as JSON lines, and exit.
    restore FILE: Read a backup into an empty database, and exit.
    """
    given = dict(locals())
    try:
        from sqlalchemy.exc import SQLAlchemyError

        from boundwatch.server import application
        from boundwatch.server.settings import Settings
    except ImportError as error:
        raise MissingExtra("boundwatch serve", "serve") from error

    known = {field.name for field in fields(Settings)}
    settings = Settings.gather({name: value for name, value in given.items() if name in known})
    if demo:
        from boundwatch.demo.drones import serve_demo

        serve_demo(settings, partial(print, flush=True))
        return
    # A backup of a database that is not there would be missed when it is needed.
    opened = application.prepare(settings, create=restore is not None or (export is None and not verify))
    try:
        if _maintain(opened, verify=verify, export=export, restore=restore):
            return
        application.settle(settings, opened)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        problem = f"{opened.shown}: cannot be read, {reason}"
        raise InvalidSetting(problem, remedy="restore a backup") from error
    finally:
        opened.close()
    _greet(settings)
    application.run(settings)


def _maintain(database: Database, *, verify: bool, export: Path | None, restore: Path | None) -> bool:
    """Do what ends without serving; return whether anything did."""
    from boundwatch.server import live_detectors, transfer

    if restore is not None:
        print(f"restored {transfer.restore(database, restore)} rows from {restore}")
    if export is not None:
        print(f"wrote {transfer.export(database, export)} rows to {export}")
    if verify:
        checked = list(live_detectors.verify(database))
        faults = [each for each in checked if each.fault]
        for each in faults:
            print(f"DIFFERS  {each.stream}, generation {each.generation}: {each.fault}")
        watched = f"{sum(each.n for each in checked)} episodes of {len(checked)} watches"
        print(f"replayed {watched}: {len(faults)} differ\n{live_detectors.UNSEEN}")
        if faults:
            problem = f"{len(faults)} watches differ from a replay; restore a backup, or report a bug"
            raise BoundwatchError(problem)
    return verify or export is not None or restore is not None


def _greet(settings: Settings) -> None:
    from boundwatch.server.database import Database

    print(f"boundwatch serve: {settings.url}  (database {Database(settings.database).shown}; Ctrl+C ends it)")
    if settings.certificate is None:
        print("  no --certificate: bind streams to a certificate on the page before they report")
    print("  report an episode:")
    print(f"    boundwatch report-episode arm-1 --success true --url {settings.url}", flush=True)
