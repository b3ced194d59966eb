"""The page on which people label what an audit drew: one episode after the other, blind to the judge.

Each labeler has a column of the sheet, and labels in its order without gaps. Every label is in the file
before it is acknowledged, so whoever ends the process, or the machine, loses none.
"""

from __future__ import annotations

import mimetypes
import threading
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from boundwatch._support import files
from boundwatch._support.describing import written
from boundwatch.errors import InvalidSetting, Place
from boundwatch.evaluation.audit import COLUMN, table_of
from boundwatch.evaluation.phones import acting, guarded, run

from starlette.exceptions import HTTPException  # isort: skip  # the page has refused where it is missing
from starlette.requests import Request  # isort: skip
from starlette.responses import FileResponse  # isort: skip
from starlette.routing import Route  # isort: skip
from starlette.types import ASGIApp  # isort: skip

_VIDEOS = "video/mp4", "video/webm", "video/quicktime", "video/ogg"
_IMAGES = "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"
_WORDS = {True: "yes", False: "no"}
_Name = Annotated[str, Meta(max_length=40, pattern=r"^[^\W_](?:[\w .-]*\w)?$")]


@dataclass(frozen=True)
class _Next:
    """Who asks for an episode; without a labeler, who has labeled."""

    labeler: _Name | None


@dataclass(frozen=True)
class _Undo(_Next):
    """Which label is taken back, the last one of its labeler."""

    episode: Annotated[int, Meta(ge=0)]


@dataclass(frozen=True)
class _Label(_Undo):
    """What somebody says of an episode, counted from 0."""

    success: bool


class Labels:
    """A sheet that `boundwatch audit` wrote, and the file in which its labels are kept.

    Parameters
    ----------
    sheet
        What was drawn. It is read, never written; links and files in its columns are shown.
    output
        Where labels are kept; labeling goes on there if it is a file of this sheet.
    """

    def __init__(self, sheet: str | PathLike[str], output: str | PathLike[str]) -> None:
        self._folder, self._output, self._lock = Path(sheet).resolve().parent, output, threading.Lock()
        self._head, names, self._rows = _read(sheet)
        self._columns = [name for name in names if not name.startswith(COLUMN)]
        self._labels: dict[str, list[str]] = {}
        if Path(output).exists():
            self._go_on(*_read(output))

    def _go_on(self, head: str, names: list[str], rows: list[dict[str, str]]) -> None:
        """Take the labels of a file of the same sheet."""
        if head != self._head or [row["row"] for row in rows] != [row["row"] for row in self._rows]:
            remedy = "label into another file"
            raise InvalidSetting(
                "has labels of another draw", where=Place(fspath(self._output)), remedy=remedy
            )
        for name in (each for each in names if each.startswith(COLUMN)):
            said = [row[name] for row in rows]
            kept = said[: next((i for i, word in enumerate(said) if not word), len(said))]
            if any(said[len(kept) :]):
                raise InvalidSetting(
                    "has a gap", where=Place(fspath(self._output), column=name), remedy="fill it"
                )
            if kept:
                self._labels[name.removeprefix(COLUMN).strip() or "1"] = kept

    def next(self, sent: _Next) -> dict[str, Any]:
        """Say what a labeler sees."""
        with self._lock:
            return self._state(sent.labeler)

    def label(self, sent: _Label) -> dict[str, Any]:
        """Keep a label on the disk; once, though its message be sent again."""
        with self._lock:
            given = self._labels.get(_named(sent.labeler), [])
            if sent.episode == len(given) < len(self._rows):
                self._keep({sent.labeler: [*given, _WORDS[sent.success]]})
            elif given[sent.episode : sent.episode + 1] != [_WORDS[sent.success]]:
                raise HTTPException(409, "this episode has another label already; look at the next one")
            return self._state(sent.labeler)

    def undo(self, sent: _Undo) -> dict[str, Any]:
        """Take back the last label of a labeler."""
        with self._lock:
            given = self._labels.get(_named(sent.labeler), [])
            if given and sent.episode == len(given) - 1:
                self._keep({sent.labeler: given[:-1]})
            elif sent.episode != len(given):
                raise HTTPException(409, "only your last label can be taken back")
            return self._state(sent.labeler)

    def _keep(self, changed: dict[Any, list[str]]) -> None:
        """Write all labels, the whole file or none of it; what is not on the disk is not known here."""
        given = self._labels | changed
        lines = [[*self._columns, *(f"{COLUMN} {name}" for name in given)]]
        for i, row in enumerate(self._rows):
            said = (each[i] if i < len(each) else "" for each in given.values())
            lines.append([*(row[name] for name in self._columns), *said])
        files.write_text(self._output, f"{self._head}\n{written(lines, 'csv')}\n")
        self._labels = given

    def _state(self, labeler: str | None) -> dict[str, Any]:
        """Return how far a labeler is and what to look at; of the others only that they are there."""
        given, n = self._labels.get(labeler or "", []), len(self._rows)
        state: dict[str, Any] = {"done": len(given), "episodes": n, "labelers": list(self._labels)}
        if len(given) < n:
            return state | {"shown": [self._shown(len(given), name) for name in self._columns[1:]]}
        done = [each for each in self._labels.values() if len(each) == n]
        disagreed = sum(len(set(said)) > 1 for said in zip(*done, strict=True))
        return state | {"complete": len(done), "disagreed": disagreed}

    def _shown(self, episode: int, name: str) -> dict[str, str]:
        """Say how a cell is shown: a file that is there by its kind, a link as one, and the rest as text."""
        text = self._rows[episode][name]
        kind = mimetypes.guess_type(text)[0]
        if text.lower().startswith(("https://", "http://")):
            return {"name": name, "text": text, "kind": "link"}
        if kind in (*_VIDEOS, *_IMAGES) and (self._folder / text).is_file():
            file = f"/api/file/{episode}/{self._columns.index(name)}"
            return {"name": name, "text": text, "kind": kind.partition("/")[0], "file": file}
        return {"name": name, "text": text, "kind": "text"}

    def file(self, request: Request) -> FileResponse:
        """Send a video or an image that the sheet lists; no request can name any other file."""
        episode, column = request.path_params["episode"], request.path_params["column"]
        if not (episode < len(self._rows) and 0 < column < len(self._columns)):
            raise HTTPException(404, "the sheet has no such cell")
        text = self._rows[episode][self._columns[column]]
        if "file" not in self._shown(episode, self._columns[column]):
            raise HTTPException(404, "this cell is no file to show")
        return FileResponse(self._folder / text, media_type=mimetypes.guess_type(text)[0])


def application(labels: Labels, token: str | None = None) -> ASGIApp:
    """Return the page of a sheet; with a token, what it shows is for those who have that."""
    routes = [
        acting("/api/next", _Next, labels.next),
        acting("/api/label", _Label, labels.label),
        acting("/api/undo", _Undo, labels.undo),
        Route("/api/file/{episode:int}/{column:int}", labels.file),
    ]
    return guarded("label.html", routes, token)


def serve(
    sheet: str | PathLike[str], output: str | PathLike[str], where: tuple[str, int, str | None]
) -> None:
    """Serve the page of a sheet at (host, port, token), as `page.serve` does that of an evaluation."""
    with files.locked(Path(output).resolve().parent, "page for labels"):  # two would overwrite each other's
        labels, what = Labels(sheet, output), f"{fspath(sheet)}: the page for its labels"
        run(lambda token: application(labels, token), where, (what, "give labels"))


def _named(labeler: str | None) -> str:
    if labeler is None:
        raise HTTPException(422, "say who labels")
    return labeler


def _read(path: str | PathLike[str]) -> tuple[str, list[str], list[dict[str, str]]]:
    """Return the first line of a sheet, its columns and its rows."""
    text = files.read_bytes(path).decode("utf-8-sig", errors="replace")
    head, names, rows = table_of(text, fspath(path))
    return f"# {head[0]}", names, rows
