"""The records of a transcript: what each line says, and how it is written and read.

Promise: keys and their order are those of the format, header and entries first of all. A line ends in a seal, 32 blanks
and tabs that any JSON reader passes over and that tell a flipped byte; a line without a seal is read as it stands, so
that transcripts of other programs are readable. `parse` never raises, whatever the bytes. Pure.
Not here: files, and where in a file a record stands (reading).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from anima.errors import BadArguments
from anima.model import Finding

VERSION = 1
Role = Literal["user", "assistant", "tool", "system"]
ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system")
Redact = Callable[[str], tuple[str, tuple[Finding, ...]]]

# No string can hold these bytes, because its quotes are escaped: where they stand, a record begins.
MARK = b'{"type":"'
ENTRY_MARK = b'{"type":"entry"'

_SEAL = 32
_BITS = tuple(format(byte, "08b").replace("0", " ").replace("1", "\t").encode() for byte in range(256))
_SURROGATE = re.compile("[\ud800-\udfff]")
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: whose session it is, who listens, and what the prompt showed. Times are text, as written."""

    id: str
    timestamp: str
    agent_id: str
    source_plugin: str = ""
    scope: str | None = None
    sender_id: str | None = None
    layer: str | None = None
    persona: str | None = None
    manifest: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None  # the session of which this is a sub-session
    version: int = VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry. `number` counts entries from 0 and `offset` is its byte in the file; both -1 before it is written.
    `redacted` names the kinds of secrets that were taken out; only the writer knows them."""

    timestamp: str
    role: str
    content: str
    message_id: str | None = None
    source_plugin: str = ""
    sender_id: str | None = None
    number: int = -1
    offset: int = -1
    redacted: tuple[str, ...] = ()

    @property
    def time(self) -> datetime | None:
        return time_of(self.timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The context was compacted here: everything before `turn_index` is now only in the log, or in the summary."""

    uuid: str
    timestamp: str
    token_count: int
    turn_index: int
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What must outlive the process: untrusted origins that were read, and the flow rules that are awake."""

    timestamp: str
    taint: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Memory was flushed here. `fields` is the flusher's own, without text; it is not redacted."""

    timestamp: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """Here stood entries that the owner had forgotten."""

    timestamp: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    timestamp: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A record of a kind we do not know: passed over when read, kept on disk."""

    kind: str


Record = Header | Turn | Boundary | State | Flush | Forgotten | Close | Other


# -- writing ------------------------------------------------------------------------------------------------------------


def encode(record: Record) -> bytes:
    """The line of a record, with seal and newline. Raises BadArguments for what cannot be written as JSON."""
    if isinstance(record, Other):
        raise BadArguments("a record of an unknown kind is not ours to write")
    try:
        body = _write(_fields(record)).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(f"a transcript cannot hold this: {error}") from None
    if body.count(MARK) != 1:
        raise BadArguments("no part of a record may begin with a `type` of its own")
    return body + seal(body) + b"\n"


def seal(body: bytes) -> bytes:
    """Blanks and tabs that stand for the CRC of a record: invisible, and nothing to a JSON reader."""
    return b"".join([_BITS[byte] for byte in zlib.crc32(body).to_bytes(4, "big")])


def stamp(moment: datetime) -> str:
    """A time as it is written: UTC, milliseconds, always 24 characters."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clean(text: str) -> str:
    """The text with half characters (lone surrogates) replaced, which no file can hold; pairs become what they mean."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _fields(record: Record) -> dict[str, Any]:
    """Keys in the order of the format; what is not known is left out."""
    match record:
        case Header():
            return _known(
                type="session",
                version=record.version,
                id=record.id,
                timestamp=record.timestamp,
                agent_id=record.agent_id,
                source_plugin=record.source_plugin,
                scope=record.scope,
                sender_id=record.sender_id,
                layer=record.layer,
                persona=record.persona,
                manifest=[dict(row) for row in record.manifest] or None,
                parent=record.parent,
            )
        case Turn():
            return _known(
                type="entry",
                timestamp=record.timestamp,
                role=record.role,
                content=record.content,
                message_id=record.message_id,
                source_plugin=record.source_plugin,
                sender_id=record.sender_id,
            )
        case Boundary():
            return _known(
                type="compact_boundary",
                uuid=record.uuid,
                timestamp=record.timestamp,
                token_count=record.token_count,
                turn_index=record.turn_index,
                summary=record.summary,
            )
        case State():
            return {"type": "state", "timestamp": record.timestamp, "taint": record.taint, "flows": record.flows}
        case Flush():
            return {"type": "flush", "timestamp": record.timestamp} | _own(record.fields)
        case Forgotten():
            return {"type": "forgotten", "timestamp": record.timestamp, "entries": record.entries}
        case Close():
            return {"type": "close", "timestamp": record.timestamp, "reason": record.reason}
    raise AssertionError(record)


def _known(**fields: Any) -> dict[str, Any]:
    return {
        key: clean(value) if isinstance(value, str) else value for key, value in fields.items() if value is not None
    }


def _own(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in ("type", "timestamp")}


# -- reading ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A line that could be read."""

    record: Record
    sealed: bool


def parse(raw: bytes, *, number: int = -1, offset: int = -1) -> Parsed | str:
    """The record of a line (without its newline), or why there is none. `number` and `offset` are an entry's place."""
    body = raw.rstrip(b" \t\r")
    tail = raw[len(body) :]
    sealed = tail not in (b"", b"\r")
    if sealed and tail != seal(body):
        return "it is not what was written: its seal is broken"
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(found, dict):
        return "it is not a record"
    try:
        record = _record(_cleaned(found) if b"\\u" in body else found, number, offset)
    except (KeyError, TypeError, ValueError, RecursionError):
        return "it lacks what a record of its kind has"
    return Parsed(record=record, sealed=sealed)


def mended(tail: bytes, before: bytes) -> bytes | None:
    """What an unfinished last line lacks: a newline, when another program wrote it whole; None when it is torn.

    `before` are the bytes in front of it. Ours are written with their newline in one go: without it, they are torn.
    """
    ours = not before[-1 - _SEAL : -1].strip(b" \t") and len(before) > _SEAL
    torn = ours or tail != tail.rstrip(b" \t\r") or isinstance(parse(tail), str)
    return None if torn else b"\n"


def time_of(text: str) -> datetime | None:
    """A written time as a moment, or None. One without a zone is taken as UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _record(found: dict[str, Any], number: int, offset: int) -> Record:
    kind = found.get("type")
    if kind == "entry":
        return Turn(
            timestamp=_text(found, "timestamp"),
            role=_text(found, "role"),
            content=_text(found, "content"),
            message_id=_maybe(found, "message_id"),
            source_plugin=_maybe(found, "source_plugin") or "",
            sender_id=_maybe(found, "sender_id"),
            number=number,
            offset=offset,
        )
    read = _READERS.get(kind) if isinstance(kind, str) else None
    return read(found) if read else Other(kind=kind if isinstance(kind, str) else "")


def _header(found: dict[str, Any]) -> Header:
    return Header(
        id=_text(found, "id"),
        timestamp=_text(found, "timestamp"),
        agent_id=_text(found, "agent_id"),
        source_plugin=_maybe(found, "source_plugin") or "",
        scope=_maybe(found, "scope"),
        sender_id=_maybe(found, "sender_id"),
        layer=_maybe(found, "layer"),
        persona=_maybe(found, "persona"),
        manifest=tuple(row for row in _list(found, "manifest") if isinstance(row, dict)),
        parent=_maybe(found, "parent"),
        version=_whole(found, "version"),
    )


def _boundary(found: dict[str, Any]) -> Boundary:
    return Boundary(
        uuid=_text(found, "uuid"),
        timestamp=_text(found, "timestamp"),
        token_count=_whole(found, "token_count"),
        turn_index=_whole(found, "turn_index"),
        summary=_maybe(found, "summary"),
    )


def _state(found: dict[str, Any]) -> State:
    return State(
        timestamp=_text(found, "timestamp"),
        taint=tuple(str(word) for word in _list(found, "taint")),
        flows=tuple(str(word) for word in _list(found, "flows")),
    )


def _flush(found: dict[str, Any]) -> Flush:
    return Flush(timestamp=_text(found, "timestamp"), fields=_own(found))


def _forgotten(found: dict[str, Any]) -> Forgotten:
    return Forgotten(timestamp=_text(found, "timestamp"), entries=_whole(found, "entries"))


def _close(found: dict[str, Any]) -> Close:
    return Close(timestamp=_text(found, "timestamp"), reason=_maybe(found, "reason") or "")


_READERS: dict[str, Callable[[dict[str, Any]], Record]] = {
    "session": _header,
    "compact_boundary": _boundary,
    "state": _state,
    "flush": _flush,
    "forgotten": _forgotten,
    "close": _close,
}


def _text(found: dict[str, Any], key: str) -> str:
    if not isinstance(value := found[key], str):
        raise TypeError(key)
    return value


def _maybe(found: dict[str, Any], key: str) -> str | None:
    return _text(found, key) if found.get(key) is not None else None


def _whole(found: dict[str, Any], key: str) -> int:
    if not isinstance(value := found[key], int):
        raise TypeError(key)
    return value


def _list(found: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(value := found.get(key, []), list):
        raise TypeError(key)
    return value


def _cleaned(value: Any) -> Any:
    """JSON can spell half characters as escapes; nothing we hand out may hold one."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    return value
