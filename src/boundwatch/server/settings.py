"""How a server is set up: options, then environment variables, then defaults."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_type_hints

from msgspec import Meta

from boundwatch._support.schema import Level
from boundwatch.detectors.verdicts import DISCOVERY_RATE
from boundwatch.errors import InvalidSetting
from boundwatch.server.models import Count, Detector, check
from boundwatch.server.outbox import Channel

NotNegative = Annotated[float, Meta(ge=0)]
Tell = Literal["streams", "discoveries"]

_SEVERAL = ("allow_host", "proxy", "webhook", "on_alarm")
_PREFIX = "BOUNDWATCH_"
# Variables of the client, of the server's own processes, and of the repository's tests and benchmarks.
_OTHERS = ("TOKEN", "URL", "INTERNAL_SETTINGS", "SCREENSHOTS", "MLFLOW")
_OF_KUBERNETES = re.compile(r"(.+_)?(SERVICE_(HOST|PORT)(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_.+)?)")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything about a server that is not in its database; options of ``boundwatch serve`` say what it is.

    Beyond these: the false discovery rate of the fleet page, the requests per second that one client may
    send, how many streams one token may begin, and what signs webhooks.
    """

    database: str = "boundwatch.sqlite"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    allow_host: tuple[str, ...] = ()
    proxy: tuple[str, ...] = ()
    public_url: Annotated[str, Meta(pattern="^(https?://.*)?$")] = ""
    certificate: str | None = None
    detector: Detector = "sequential-test"
    alpha_adverse: Level | None = None
    alpha_benign: Level | None = None
    tell: Tell = "streams"
    discovery_rate: Level = DISCOVERY_RATE
    fleet_size: Annotated[int, Meta(ge=1)] | None = None
    silent_minutes: NotNegative = 0.0
    rate_limit: Annotated[float, Meta(gt=0)] = 5000.0
    streams_per_token: Count = 1000
    tls_certificate: str | None = None
    tls_key: str | None = None
    webhook: tuple[str, ...] = field(default=(), repr=False)
    webhook_secret: str = field(default="", repr=False)
    on_alarm: tuple[str, ...] = ()

    @classmethod
    def gather(cls, options: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings from all places; an option that is None was not given."""
        values = _from_environment(os.environ if environment is None else environment)
        for name, value in options.items():
            if value not in (None, (), []):
                plain = os.fspath(value) if isinstance(value, os.PathLike) else value
                values[name] = _typed(name, plain, name)
        return cls(**values)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """Where alarms go; checked once, so that one that breaks later keeps nothing from the others."""
        # Behind a proxy only `public_url` says what people open.
        monitor = self.public_url.rstrip("/") or ("" if self.allow_host else self.url)
        given = {"webhook": self.webhook, "command": self.on_alarm}
        return tuple(
            Channel(kind, target, self.webhook_secret if kind == "webhook" else "", monitor)
            for kind, targets in given.items()
            for target in targets
        )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The address to open."""
        scheme = "https" if self.tls_certificate else "http"
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - compared
        host = f"[{host}]" if ":" in host else host
        return f"{scheme}://{host}:{self.port}"

    @property
    def silent_before(self) -> float | None:
        """The moment before which a stream's last episode makes it silent; None if none ever is."""
        return time.time() - 60 * self.silent_minutes if self.silent_minutes > 0 else None


_TYPES = get_type_hints(Settings, include_extras=True)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    settings = {f"{_PREFIX}{name.upper()}": name for name in _TYPES}
    for variable, text in environment.items():
        if not variable.startswith(_PREFIX) or _is_of_others(variable.removeprefix(_PREFIX), text):
            continue
        if variable not in settings:
            short = [name.upper() for name in _TYPES]
            alike = difflib.get_close_matches(variable.removeprefix(_PREFIX).upper(), short, n=1)
            meant = _PREFIX + alike[0] if alike else f"one of {', '.join(settings)}"
            remedy = f"correct it to {meant}, or unset it"
            raise InvalidSetting("is not a setting", name=variable, remedy=remedy)
        name, value = settings[variable], text.strip()
        several = value.splitlines() if name == "on_alarm" else value.split()  # commands have spaces
        values[name] = _typed(name, several if name in _SEVERAL else value, variable, strict=False)
    return values


def _is_of_others(name: str, text: str) -> bool:
    """Return whether a variable is not for the server: any other that is ignored could silence an alarm."""
    # For a Service named boundwatch, Kubernetes sets BOUNDWATCH_PORT to such an address in all pods; for
    # boundwatch-db, BOUNDWATCH_DB_PORT.
    is_address = name.endswith("PORT") and text.startswith("tcp://")
    return is_address or name in _OTHERS or _OF_KUBERNETES.fullmatch(name) is not None


def _typed(name: str, value: Any, where: str, *, strict: bool = True) -> Any:
    if name not in _TYPES:
        raise InvalidSetting("is unknown", name=where, remedy=f"known are {', '.join(_TYPES)}")
    return check(_TYPES[name], value, where, field=name, strict=strict)
