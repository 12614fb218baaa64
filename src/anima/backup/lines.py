"""A home as lines of JSON: one line a file, the last with a digest of all.

Promise: what `write` gives, `read` takes back byte for byte; a file that was cut, altered, put together or is not ours
raises BadText with the line and what is wrong, at the latest at its end, so that whoever reads it once before using it is
safe. One line is held at a time. Format 1:

    {"anima":"export","format":1,"dialect":"anima","sessions":"sessions"}
    {"path":"MEMORY.md","text":"# Memory\\n","sha256":"…","mode":"600"}         text, where it is UTF-8
    {"path":"avatar.png","base64":"…","sha256":"…","mode":"600"}                 else its bytes
    {"path":"film.mp4","at":0,"base64":"…","more":true}                          a long file comes in pieces
    {"end":true,"files":3,"sha256":"…"}                                          of every byte before this line

Not here: files (store.outside), and what becomes of what is read (arriving).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from anima.errors import BadPath, BadText, NewerFormat, printable
from anima.model import DocPath

FORMAT = 1
LINE = 64 * 2**20  # a document of 8 MiB that is nothing but escapes fits
WHOLE = 8 * 2**20  # up to here a file is one line
PIECE = 4 * 2**20
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The first line: the dialect of the paths, and the folder of the transcripts."""

    dialect: str
    sessions: str = "sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of a file's bytes. `last` is the piece that ends it; the digest of the whole file was right then."""

    path: str
    data: bytes
    at: int = 0
    last: bool = True
    mode: int = 0o600


class Writer:
    """Makes the lines of one export."""

    def __init__(self) -> None:
        self._all, self._files = hashlib.sha256(), 0

    def heading(self, dialect: str, sessions: str) -> bytes:
        return self._line({"anima": "export", "format": FORMAT, "dialect": dialect, "sessions": sessions})

    def file(self, path: str, pieces: Iterable[bytes], *, size: int, mode: int) -> Iterator[bytes]:
        """The lines of a file of about so many bytes."""
        self._files += 1
        if size <= WHOLE:
            data = b"".join(pieces)
            if len(data) <= WHOLE:
                yield self._line(
                    {"path": path, **_body(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": f"{mode:o}"}
                )
                return
            pieces = (data,)
        at, digest = 0, hashlib.sha256()
        for data in _evenly(pieces):
            digest.update(data)
            yield self._line({"path": path, "at": at, "base64": _based(data), "more": True})
            at += len(data)
        yield self._line({"path": path, "at": at, "base64": "", "sha256": digest.hexdigest(), "mode": f"{mode:o}"})

    def end(self) -> bytes:
        return self._line({"end": True, "files": self._files, "sha256": self._all.hexdigest()})

    def _line(self, fields: dict[str, Any]) -> bytes:
        line = _encode(fields).encode("utf-8") + b"\n"
        self._all.update(line)
        return line


def _body(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": _based(data)}


def _based(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _evenly(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), PIECE):
            yield piece[start : start + PIECE]


# -- reading ------------------------------------------------------------------------------------------------------------


def read(lines: Iterable[bytes], *, name: str) -> Iterator[Heading | Piece]:
    """The heading, then every piece in order. `lines` end with their newline and are at most LINE bytes long.

    Raises BadText, or NewerFormat. What was given before the end may belong to a file that is not whole.
    """
    reader = _Reader(name)
    for number, line in enumerate(lines, start=1):
        reader.number = number
        if (found := reader.take(line)) is not None:
            yield found
    reader.finish()


class _Reader:
    """Follows the lines of one file, and knows what may come next."""

    def __init__(self, name: str) -> None:
        self.name, self.number = name, 0
        self._all = hashlib.sha256()
        self._seen: set[str] = set()
        self._files, self._ended = 0, False
        self._open: tuple[str, int] | None = None  # a file in pieces: its path, and how far it is
        self._digest = hashlib.sha256()

    def take(self, line: bytes) -> Heading | Piece | None:
        if self._ended:
            raise self._wrong("there is more after the line that ends it")
        fields = self._fields(line)
        found: Heading | Piece | None = None
        if self.number == 1:
            found = self._heading(fields)
        elif fields.get("end") is True:
            self._end(fields)
        else:
            found = self._piece(fields)
        self._all.update(line)
        return found

    def finish(self) -> None:
        if not self._ended:
            raise BadText(
                self.name,
                "it is cut: the line that ends it is missing, so nothing was read from it",
                hint="export the home again",
            )

    def _wrong(self, why: str) -> BadText:
        return BadText(self.name, f"line {self.number}: {why}", hint="nothing was read from it; export the home again")

    def _fields(self, line: bytes) -> dict[str, Any]:
        if not line.endswith(b"\n"):
            raise self._wrong("it is cut, or longer than a line of an export")
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise self._wrong("it is not JSON") from None
        if not isinstance(found, dict):
            raise self._wrong("it is not a line of an export")
        return found

    def _heading(self, fields: dict[str, Any]) -> Heading:
        dialect, sessions, number = fields.get("dialect"), fields.get("sessions"), fields.get("format")
        if fields.get("anima") != "export" or type(number) is not int:
            raise BadText(
                self.name, "it is not an export of a home", hint="anima export TARGET --format jsonl makes one"
            )
        if number > FORMAT:
            raise NewerFormat(self.name, found=number, known=FORMAT)
        if not isinstance(dialect, str) or not isinstance(sessions, str):
            raise self._wrong("it does not say which dialect it is")
        return Heading(dialect=dialect, sessions=sessions)

    def _end(self, fields: dict[str, Any]) -> None:
        if self._open is not None:
            raise self._wrong(f"{printable(self._open[0])} is not whole")
        if fields.get("files") != self._files or fields.get("sha256") != self._all.hexdigest():
            raise self._wrong("the digest of the whole file is another: it was altered")
        self._ended = True

    def _piece(self, fields: dict[str, Any]) -> Piece:
        path, data, mode = self._path(fields.get("path")), self._data(fields), self._mode(fields)
        at, last = fields.get("at", 0), fields.get("more") is not True
        if self._open is None:
            self._begin(path)
        if self._open != (path, at):
            raise self._wrong(f"{printable(path)}: its pieces do not follow one another")
        self._digest.update(data)
        self._open = None if last else (path, at + len(data))
        if last and fields.get("sha256") != self._digest.hexdigest():
            raise self._wrong(f"{printable(path)}: its digest is another: it was altered")
        self._files += last
        return Piece(path=path, data=data, at=at, last=last, mode=mode)

    def _begin(self, path: str) -> None:
        if path in self._seen:
            raise self._wrong(f"{printable(path)} stands there twice")
        self._seen.add(path)
        self._open, self._digest = (path, 0), hashlib.sha256()

    def _path(self, raw: object) -> str:
        try:
            DocPath.parse(raw)  # type: ignore[arg-type]
            return str(raw)
        except BadPath as error:
            raise self._wrong(str(error)) from None

    def _data(self, fields: dict[str, Any]) -> bytes:
        text, based = fields.get("text"), fields.get("base64")
        try:
            if isinstance(text, str) and based is None:
                return text.encode("utf-8")
            if isinstance(based, str) and text is None:
                return base64.b64decode(based, validate=True)
        except ValueError:
            pass
        raise self._wrong("it holds neither text nor base64")

    def _mode(self, fields: dict[str, Any]) -> int:
        try:
            return int(str(fields.get("mode", "600")), 8) & 0o777
        except ValueError:
            raise self._wrong("its mode is no number") from None


__all__ = ["FORMAT", "LINE", "Heading", "Piece", "Writer", "read"]
