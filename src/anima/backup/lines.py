"""A home as lines of JSON: one line a file, the last with a digest of all.

Promise: what `LineWriter` gives, `read` takes back byte for byte; a file that was cut, altered, put together or is not
ours raises BadText with the line and what is wrong, at the latest at its end, so that whoever reads it once before using
it is safe. One line is held at a time. Format 1:

    {"anima":"export","format":1,"dialect":"anima","sessions":"sessions"}
    {"path":"MEMORY.md","text":"# Memory\\n","sha256":"…","mode":"600"}         text, where it is UTF-8
    {"path":"avatar.png","base64":"…","sha256":"…","mode":"600"}                 else its bytes
    {"end":true,"files":2,"sha256":"…"}                                          of every byte before this line

Not here: files (store.outside), and what becomes of what is read (import_).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from anima.backup.archive import MOST_FILES
from anima.errors import BadPath, BadText, NewerFormat, printable
from anima.model import DocPath

FORMAT = 1
MOST = 64 * 2**20  # of a file that is one line
LINE = 2 * MOST
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class FirstLine(NamedTuple):
    """The dialect of the paths, and the folder of the transcripts."""

    dialect: str
    sessions: str = "sessions"


class FileLine(NamedTuple):
    """One file; its digest was right."""

    path: str
    data: bytes
    mode: int = 0o600


class LineWriter:
    """Makes the lines of one export."""

    def __init__(self) -> None:
        self._all, self._files = hashlib.sha256(), 0

    def first(self, dialect: str, sessions: str) -> bytes:
        return self._line({"anima": "export", "format": FORMAT, "dialect": dialect, "sessions": sessions})

    def file(self, path: str, data: bytes, *, mode: int) -> bytes:
        self._files += 1
        rest = {"sha256": hashlib.sha256(data).hexdigest(), "mode": f"{mode:o}"}
        try:
            line = _encode({"path": path, "text": data.decode("utf-8"), **rest})
        except UnicodeDecodeError:
            line = ""
        if not line or len(line) > MOST:  # no text, or one that is nothing but escapes
            line = _encode({"path": path, "base64": base64.b64encode(data).decode("ascii"), **rest})
        return self._told(line)

    def end(self) -> bytes:
        return self._line({"end": True, "files": self._files, "sha256": self._all.hexdigest()})

    def _line(self, fields: dict[str, Any]) -> bytes:
        return self._told(_encode(fields))

    def _told(self, line: str) -> bytes:
        raw = line.encode("utf-8") + b"\n"
        self._all.update(raw)
        return raw


# -- reading ------------------------------------------------------------------------------------------------------------


def read(lines: Iterable[bytes], *, name: str) -> Iterator[FirstLine | FileLine]:
    """The first line, then every file in order. `lines` end with their newline and are at most LINE bytes long.

    Raises BadText, or NewerFormat. Until the end nobody knows that all of it is what was written.
    """
    reader = _Reader(name)
    for number, line in enumerate(lines, start=1):
        reader.number = number
        if (found := reader.take(line)) is not None:
            yield found
    if not reader.ended:
        raise BadText(
            name,
            "it is cut: the line that ends it is missing, so nothing was read from it",
            hint="export the home again",
        )


class _Reader:
    """Follows the lines of one file, and knows what may come next."""

    def __init__(self, name: str) -> None:
        self.name, self.number, self.ended = name, 0, False
        self._all = hashlib.sha256()
        self._seen: set[str] = set()

    def take(self, line: bytes) -> FirstLine | FileLine | None:
        if self.ended:
            raise self._wrong("there is more after the line that ends it")
        fields = self._fields(line)
        found: FirstLine | FileLine | None = None
        if self.number == 1:
            found = self._first(fields)
        elif fields.get("end") is True:
            if fields.get("files") != len(self._seen) or fields.get("sha256") != self._all.hexdigest():
                raise self._wrong("the digest of the whole file is another: it was altered")
            self.ended = True
        else:
            found = self._file(fields)
        self._all.update(line)
        return found

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

    def _first(self, fields: dict[str, Any]) -> FirstLine:
        dialect, sessions, number = fields.get("dialect"), fields.get("sessions"), fields.get("format")
        if fields.get("anima") != "export" or type(number) is not int:
            raise BadText(
                self.name, "it is not an export of a home", hint="anima export TARGET --format jsonl makes one"
            )
        if number > FORMAT:
            raise NewerFormat(self.name, found=number, known=FORMAT)
        if not isinstance(dialect, str) or not isinstance(sessions, str):
            raise self._wrong("it does not say which dialect it is")
        return FirstLine(dialect, sessions)

    def _file(self, fields: dict[str, Any]) -> FileLine:
        path = fields.get("path")
        try:
            DocPath.parse(path)  # type: ignore[arg-type]
            mode = int(str(fields.get("mode", "600")), 8) & 0o777
        except BadPath as error:
            raise self._wrong(str(error)) from None
        except ValueError:
            raise self._wrong("its mode is no number") from None
        data = self._data(fields)
        if fields.get("sha256") != hashlib.sha256(data).hexdigest():
            raise self._wrong(f"{printable(str(path))}: its digest is another: it was altered")
        if path in self._seen:
            raise self._wrong(f"{printable(str(path))} stands there twice")
        if len(self._seen) >= MOST_FILES:
            raise self._wrong(f"it holds more than {MOST_FILES:,} files, and no more are taken in at once")
        self._seen.add(str(path))
        return FileLine(str(path), data, mode)

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
