"""A home as lines of JSON: one line a file, the last with a digest of all.

Promise: what `written` gives, `read` takes back byte for byte; a file that was cut, altered, put together or is not
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


def written(first: FirstLine, files: Iterable[FileLine]) -> Iterator[bytes]:
    """The lines of one export."""
    whole, count = hashlib.sha256(), 0
    line = _encode({"anima": "export", "format": FORMAT, **first._asdict()}).encode() + b"\n"
    for path, data, mode in files:
        yield line
        whole.update(line)
        count += 1
        rest = {"sha256": hashlib.sha256(data).hexdigest(), "mode": f"{mode:o}"}
        try:
            text = _encode({"path": path, "text": data.decode("utf-8"), **rest})
        except UnicodeDecodeError:
            text = ""
        if not text or len(text) > MOST:  # no text, or one that is nothing but escapes
            text = _encode({"path": path, "base64": base64.b64encode(data).decode("ascii"), **rest})
        line = text.encode("utf-8") + b"\n"
    yield line
    whole.update(line)
    yield _encode({"end": True, "files": count, "sha256": whole.hexdigest()}).encode() + b"\n"


def read(lines: Iterable[bytes], *, name: str) -> Iterator[FirstLine | FileLine]:
    """The first line, then every file in order. `lines` end with their newline and are at most LINE bytes long.

    Raises BadText, or NewerFormat. Until the end nobody knows that all of it is what was written.
    """
    whole, seen, ended = hashlib.sha256(), set[str](), False
    for number, line in enumerate(lines, start=1):
        try:
            if ended:
                raise ValueError("there is more after the line that ends it")
            fields = _fields(line)
            if number == 1:
                yield _first(fields, name)
            elif fields.get("end") is True:
                if fields.get("files") != len(seen) or fields.get("sha256") != whole.hexdigest():
                    raise ValueError("the digest of the whole file is another: it was altered")
                ended = True
            else:
                found = _file(fields)
                if found.path in seen:
                    raise ValueError(f"{printable(found.path)} stands there twice")
                if len(seen) >= MOST_FILES:
                    raise ValueError(f"it holds more than {MOST_FILES:,} files, and no more are taken in at once")
                seen.add(found.path)
                yield found
        except ValueError as error:
            hint = "nothing was read from it; export the home again"
            raise BadText(name, f"line {number}: {error}", hint=hint) from None
        whole.update(line)
    if not ended:
        why = "it is cut: the line that ends it is missing, so nothing was read from it"
        raise BadText(name, why, hint="export the home again")


def _fields(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ValueError("it is cut, or longer than a line of an export")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a line of an export")
    return found


def _first(fields: dict[str, Any], name: str) -> FirstLine:
    dialect, sessions, number = fields.get("dialect"), fields.get("sessions"), fields.get("format")
    if fields.get("anima") != "export" or type(number) is not int:
        raise BadText(name, "it is not an export of a home", hint="anima export TARGET --format jsonl makes one")
    if number > FORMAT:
        raise NewerFormat(name, found=number, known=FORMAT)
    if not isinstance(dialect, str) or not isinstance(sessions, str):
        raise ValueError("it does not say which dialect it is")
    return FirstLine(dialect, sessions)


def _file(fields: dict[str, Any]) -> FileLine:
    path, text, based = fields.get("path"), fields.get("text"), fields.get("base64")
    try:
        DocPath.parse(path)  # type: ignore[arg-type]
        mode = int(str(fields.get("mode", "600")), 8) & 0o777
    except BadPath as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("its mode is no number") from None
    try:
        if not (isinstance(text, str) and based is None) and not (isinstance(based, str) and text is None):
            raise ValueError
        data = text.encode("utf-8") if isinstance(text, str) else base64.b64decode(str(based), validate=True)
    except ValueError:
        raise ValueError("it holds neither text nor base64") from None
    if fields.get("sha256") != hashlib.sha256(data).hexdigest():
        raise ValueError(f"{printable(str(path))}: its digest is another: it was altered")
    return FileLine(str(path), data, mode)
