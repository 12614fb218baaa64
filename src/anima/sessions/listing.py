"""The list of sessions, `sessions/sessions.json`: what each is about, how long, when, and whose.

Promise: derived from the transcripts and never more than late. A row holds as long as its file's stat is the same; of a
file that has grown only the new bytes are read. A list that is missing, or has one byte changed, is made again. It is
replaced atomically, so writers need no lock: whoever loses a race is only late. There is one row to a line, the latest
first, so that listing thousands of sessions parses only the rows that are looked at.
Not here: which rows somebody may see (the caller says agent, layers and scopes).
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple, overload

from anima.errors import HomeError
from anima.sessions.record import Redact, stamp
from anima.sessions.replay import (
    START,
    Close,
    Count,
    Header,
    Placed,
    Turn,
    count,
    header_of,
    last_record,
    scan,
    time_of,
)
from anima.store.logs import BLOCK, LineFolder, Readable, Seen

FILE = "sessions.json"
SUMMARY = 80
_VERSION = 1
_MANY = 16  # so many changed rows are worth a new file, even when their sessions are still open
_FEW = 64  # rows that are parsed at first
_SOUGHT = 200  # records in which a first word of the user is looked for
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Listed(NamedTuple):
    """One session as the list shows it. `bytes` and `lines` are how far its transcript was read."""

    id: str
    summary: str
    updated_at: str
    started_at: str
    entries: int
    bytes: int
    lines: int
    inode: int
    agent_id: str
    source_plugin: str
    scope: str
    sender_id: str | None
    layer: str
    persona: str | None
    parent: str | None
    closed: bool

    @property
    def known(self) -> Count:
        """Spares `read` from counting the entries again."""
        return Count(self.bytes, self.lines, self.entries)


class Rows(Sequence[Listed]):
    """Rows of the list, each parsed when it is looked at."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Listed]:
        yield from _parsed(self._lines[:_FEW])  # whoever wants the first few does not pay for the others
        for start in range(_FEW, len(self._lines), 16 * _FEW):
            yield from _parsed(self._lines[start : start + 16 * _FEW])

    @overload
    def __getitem__(self, at: int) -> Listed: ...
    @overload
    def __getitem__(self, at: slice) -> Rows: ...
    def __getitem__(self, at: int | slice) -> Listed | Rows:
        return Rows(self._lines[at]) if isinstance(at, slice) else _row(self._lines[at])


class SessionList:
    """The list of one folder's sessions. Lives as long as its home; safe to share by threads.

    `slim` is for a dialect whose `sessions.json` holds only summary and updatedAt: that file is kept up to date as
    well, rows of other programs are left in it, and the whole list stands in `.anima`.
    """

    def __init__(self, folder: LineFolder, *, redact: Redact, slim: bool = False) -> None:
        self._folder, self._redact, self._slim = folder, redact, slim
        self._mutex = threading.RLock()
        self._held: _Held | None = None
        self._is_saved = True
        self._is_theirs = slim  # `sessions.json` is another program's, so that our list stands aside

    def rows(
        self,
        *,
        agent: str | None = None,
        layers: Collection[str] | None = None,
        scopes: Collection[str] | None = None,
        limit: int | None = None,
    ) -> Rows:
        """The sessions, the latest first: those of one agent, of these layers and scopes, or of any (None)."""
        with self._mutex:
            lines = self._refreshed().lines
        for key, wanted in (("agent_id", None if agent is None else (agent,)), ("layer", layers), ("scope", scopes)):
            if wanted is not None:
                lines = _with(lines, key, wanted)
        return Rows(lines if limit is None else lines[: max(0, limit)])

    def get(self, id: str) -> Listed | None:
        """One session, up to date; None when there is none."""
        with self._mutex:
            seen, held = self._folder.look(id), self._loaded()
            if seen is None:
                return None
            line, old = held.find(id)
            return _row(line if line and old == _stat(seen) else self._looked(seen, line))

    def refresh(self) -> int:
        """Brings the list up to date, on the disk too; how many sessions there are. For when a session has closed, or
        something in one was forgotten."""
        with self._mutex:
            held = self._refreshed()
            if not self._is_saved:
                self._save(held)
            return len(held.lines)

    # -- keeping up -----------------------------------------------------------------------------------------------------

    def _refreshed(self) -> _Held:
        """What is held, brought up to date. It is written when something is settled: a session that is open will have
        changed again before anybody reads the file."""
        held, stats = self._loaded(), set(self._folder.stats())
        if stats == held.stats:
            return held
        rows, new = held.by_id(), {_id_of(stat): stat for stat in stats - held.stats}
        gone = {_id_of(stat) for stat in held.stats} - {_id_of(stat) for stat in stats}
        settled = bool(gone) or len(new) > _MANY
        for id in gone:
            rows.pop(id, None)
        for id, stat in new.items():
            seen = self._folder.look(id)
            if seen is None:
                continue
            settled |= id in rows and not _has_grown(_row(rows[id]), seen)
            rows[id] = self._looked(seen, rows.get(id))
            settled |= rows[id].endswith(b'"closed":true}')
            stats.discard(stat)
            stats.add(_stat(seen))
        self._held, self._is_saved = _Held(sorted(rows.values(), key=_updated, reverse=True), stats), False
        if settled:
            self._save(self._held)
        return self._held

    def _looked(self, seen: Seen, line: bytes | None) -> bytes:
        """A row made anew from the transcript, by the bytes it has grown by where that is enough."""
        before = _row(line) if line else None
        before = before if before and _has_grown(before, seen) else None
        try:
            with self._folder.open(seen.id) as file:
                small = seen.size <= BLOCK
                whole: Readable = _Bytes(file.read(0, seen.size)) if small else file
                return _line(self._summed(whole, seen, before))
        except HomeError:
            return _line(_nothing(seen))

    def _summed(self, file: Readable, seen: Seen, before: Listed | None) -> Listed:
        since = before.known if before else START
        end = count(file, since=since)
        header, last = header_of(file), last_record(file, end)
        written = time_of(getattr(last, "timestamp", ""))
        started = time_of(header.timestamp) if header else None
        latest = max(filter(None, [written or _moment(seen), started, time_of(before.updated_at) if before else None]))
        return Listed(
            id=seen.id,
            summary=(before.summary if before else "") or self._summary(file, since),
            updated_at=stamp(latest),
            started_at=stamp(started or latest),
            entries=end.entries,
            bytes=end.offset,
            lines=end.lines,
            inode=seen.inode,
            closed=isinstance(last, Close),
            **_of_header(header),
        )

    def _summary(self, file: Readable, since: Count) -> str:
        for number, item in enumerate(scan(file, since=since)):
            if isinstance(item, Placed) and isinstance(item.record, Turn) and item.record.role == "user":
                return _one_line(self._redact(item.record.content.lstrip()[:4000])[0])
            if number >= _SOUGHT:
                break
        return ""

    # -- the file -------------------------------------------------------------------------------------------------------

    def _loaded(self) -> _Held:
        if self._held is None:
            data = b"" if self._slim else self._folder.get(FILE) or b""
            found = _read(data)
            self._is_theirs = self._slim or (found is None and _is_foreign(data))
            if self._is_theirs:
                found = _read(self._folder.machine.get(self._aside) or b"")
            self._held = found or _Held([], set())
        return self._held

    @property
    def _aside(self) -> str:
        """Where the list stands when `sessions.json` is not ours to fill."""
        return f"lists/{self._folder.folder.replace('/', '.')}.json"

    def _save(self, held: _Held) -> None:
        """Writes the list. It can be made again, so a disk that will not take it is no error."""
        self._is_saved = True
        if not self._is_theirs:
            self._folder.put(FILE, _dumped(held))
            return
        try:
            self._folder.machine.put(self._aside, _dumped(held))
        except (HomeError, OSError):
            pass
        if self._slim:
            self._folder.put(FILE, _slimmed(self._folder.get(FILE) or b"", held))


# -- the file's form ----------------------------------------------------------------------------------------------------
# `"<id>":{"updatedAt":"<24 characters>",…,"closed":false}`, one to a line: the time has a fixed place, so that sorting
# needs no parsing. Then the stats of the files the rows were made from, and a checksum of all.

_CHECK = 11  # bytes of the checksum and what follows it
_HEAD, _MIDDLE, _FOOT = b'{"version":1,"sessions":{\n', b'\n},"seen":[\n', b'\n],"check":"'


class _Held:
    """The list as it is held: rows as lines, the latest first, and the stats of their files."""

    __slots__ = ("lines", "stats")

    def __init__(self, lines: list[bytes], stats: set[str]) -> None:
        self.lines, self.stats = lines, stats

    def by_id(self) -> dict[str, bytes]:
        return {line[1 : line.index(b'"', 1)].decode(): line for line in self.lines}

    def find(self, id: str) -> tuple[bytes | None, str | None]:
        """A session's line and stat."""
        begun = f'"{id}":'.encode()
        line = next((line for line in self.lines if line.startswith(begun)), None)
        return line, next((stat for stat in self.stats if stat.startswith(f"{id}:")), None)


def _dumped(held: _Held) -> bytes:
    stats = ",\n".join(f'"{stat}"' for stat in sorted(held.stats)).encode("utf-8", "replace")
    body = _HEAD + b",\n".join(held.lines) + _MIDDLE + stats + _FOOT
    return body + f'{zlib.crc32(body):08x}"}}\n'.encode()


def _read(data: bytes) -> _Held | None:
    """The list in a file; None when a byte of it is not as we wrote it."""
    check = f'{zlib.crc32(memoryview(data)[:-_CHECK]):08x}"}}\n'.encode()
    middle = data.rfind(_MIDDLE)
    if not data.endswith(check) or not data.startswith(_HEAD) or middle < 0:
        return None
    rows = data[len(_HEAD) : middle]
    stats = data[middle + len(_MIDDLE) + 1 : -len(_FOOT) - _CHECK - 1].decode("utf-8", "replace")
    return _Held(rows.split(b",\n"), set(stats.split('",\n"'))) if rows else _Held([], set())


def is_sound(data: bytes) -> bool:
    """Whether a list is one that we wrote, to the byte, or another program's of the same name."""
    return _read(data) is not None or _is_foreign(data)


def _is_foreign(data: bytes) -> bool:
    """A map of session keys, as OpenClaw keeps one under the same name: theirs, and not to be written over."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(isinstance(row, dict) and "sessionId" in row for row in found.values())


def _slimmed(there: bytes, ours: _Held) -> bytes:
    """The other dialect's list: its own rows as they are, ours with summary and time."""
    try:
        found = json.loads(there)
        held = dict(found["sessions"])
    except (ValueError, KeyError, TypeError, RecursionError):
        found, held = {}, {}
    for row in Rows(ours.lines):
        old = held.get(row.id)
        held[row.id] = (old if isinstance(old, dict) else {}) | {"summary": row.summary, "updatedAt": row.updated_at}
    whole = found | {"version": found.get("version", _VERSION), "sessions": held}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _stat(seen: Seen) -> str:
    return f"{seen.id}:{seen.mtime}.{seen.size}"


def _id_of(stat: str) -> str:
    return stat.rpartition(":")[0]


# -- a row --------------------------------------------------------------------------------------------------------------


def _updated(line: bytes) -> tuple[bytes, bytes]:
    end = line.index(b'"', 1)
    return line[end + 16 : end + 40], line[1:end]


def _has_grown(before: Listed, seen: Seen) -> bool:
    """Whether a file is the one it was, with more in it; a change that adds nothing is no growth."""
    return before.inode == seen.inode and before.bytes < seen.size


def _with(lines: list[bytes], key: str, values: Collection[str]) -> list[bytes]:
    """The lines whose row has one of these values. No text in a row can look like a key: its quotes are escaped."""
    wanted = [f'"{key}":{_write(value)},'.encode("utf-8", "replace") for value in values]
    if len(wanted) == 1:
        only = wanted[0]
        return [line for line in lines if only in line]
    return [line for line in lines if any(each in line for each in wanted)]


def _line(row: Listed) -> bytes:
    fields = {
        "updatedAt": row.updated_at,
        "summary": row.summary,
        "startedAt": row.started_at,
        "entries": row.entries,
        "bytes": row.bytes,
        "lines": row.lines,
        "inode": row.inode,
        "agent_id": row.agent_id,
        "source_plugin": row.source_plugin,
        "scope": row.scope,
        "sender_id": row.sender_id,
        "layer": row.layer,
        "persona": row.persona,
        "parent": row.parent,
        "closed": row.closed,
    }
    return f'"{row.id}":{_write(fields)}'.encode("utf-8", "replace")


def _row(line: bytes) -> Listed:
    return _parsed([line])[0]


def _parsed(lines: Sequence[bytes]) -> list[Listed]:
    """Rows out of lines; many at once cost much less than one by one."""
    found: dict[str, dict[str, Any]] = json.loads(b"{%b}" % b",".join(lines))
    return [Listed(id, *_values(fields)) for id, fields in found.items()]


_values = itemgetter(
    "summary",
    "updatedAt",
    "startedAt",
    "entries",
    "bytes",
    "lines",
    "inode",
    "agent_id",
    "source_plugin",
    "scope",
    "sender_id",
    "layer",
    "persona",
    "parent",
    "closed",
)


class _Bytes:
    """A small file, read once."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]


def _of_header(header: Header | None) -> dict[str, Any]:
    """Whose session it is. Without a readable header it is nobody's."""
    if header is None:
        return {
            "agent_id": "",
            "source_plugin": "",
            "scope": "",
            "sender_id": None,
            "layer": "",
            "persona": None,
            "parent": None,
        }
    return {
        "agent_id": header.agent_id,
        "source_plugin": header.source_plugin,
        "scope": header.scope or "",
        "sender_id": header.sender_id,
        "layer": header.layer or "",
        "persona": header.persona,
        "parent": header.parent,
    }


def _nothing(seen: Seen) -> Listed:
    """A file that cannot be opened is in the list all the same."""
    moment = stamp(_moment(seen))
    return Listed(
        id=seen.id,
        summary="",
        updated_at=moment,
        started_at=moment,
        entries=0,
        bytes=0,
        lines=0,
        inode=0,
        closed=False,
        **_of_header(None),
    )


def _moment(seen: Seen) -> datetime:
    try:
        return datetime.fromtimestamp(seen.mtime / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _one_line(text: str) -> str:
    words = " ".join(text[: 4 * SUMMARY].split())
    if not words.isprintable():
        words = " ".join("".join(sign if sign.isprintable() else " " for sign in words).split())
    return words if len(words) <= SUMMARY else words[: SUMMARY - 1] + "…"
