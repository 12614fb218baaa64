"""The list of sessions, `sessions/sessions.json`: what each is about, how long, when, and whose.

Promise: derived from the transcripts and never more than late. Each row holds as long as its file's stat is the same; of
a file that has grown only the new bytes are read. A list that is missing, or has one byte changed, is made again. It is
replaced atomically, so writers need no lock: whoever loses a race is only late. There is one row to a line, so that
listing thousands of sessions parses only the rows asked for.
Not here: which rows somebody may see (the caller says agent, layers and scopes).
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from anima.errors import HomeError
from anima.store.lines import BLOCK, LineFolder, Readable, Seen
from anima.transcript.reading import START, Count, Placed, count, header_of, last_record, scan
from anima.transcript.records import Close, Header, Redact, Turn, stamp, time_of

FILE = "sessions.json"
SUMMARY = 80
_VERSION = 1
_HEAD = '{"version":1,"sessions":{\n'
_FOOT = '\n},"check":"'
_MANY = 16  # so many changed rows are worth a new file, even when their sessions are still open
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


class SessionList:
    """The list of one folder's sessions. Lives as long as its home; safe to share by threads.

    `slim` is for a dialect whose `sessions.json` holds only summary and updatedAt: that file is kept up to date as
    well, rows of other programs are left in it, and the whole list stands in `.anima`.
    """

    def __init__(self, folder: LineFolder, *, redact: Redact, slim: bool = False) -> None:
        self._folder, self._redact, self._slim = folder, redact, slim
        self._mutex = threading.RLock()
        self._rows: dict[str, str] | None = None  # id -> its line of the file
        self._is_theirs = slim  # `sessions.json` is another program's, so that our list stands aside

    def rows(
        self, *, agent: str | None = None, layers: Collection[str] | None = None,
        scopes: Collection[str] | None = None, limit: int | None = None,
    ) -> tuple[Listed, ...]:  # fmt: skip
        """The sessions, the latest first: those of one agent, of these layers and scopes, or of any (None)."""
        found: list[Listed] = []
        for row in self._latest():
            if limit is not None and len(found) >= limit:
                break
            mine = (agent is None or row.agent_id == agent) and (layers is None or row.layer in layers)
            if mine and (scopes is None or row.scope in scopes):
                found.append(row)
        return tuple(found)

    def get(self, id: str) -> Listed | None:
        """One session, up to date; None when there is none."""
        with self._mutex:
            seen = self._folder.look(id)
            rows = self._held()
            if seen is None:
                rows.pop(id, None)
                return None
            rows[id] = _current(seen, rows.get(id)) or self._looked(seen, rows.get(id))
            return _row(rows[id])

    def note(self, id: str) -> None:
        """Brings one session up to date in the file; for when it closes."""
        with self._mutex:
            if self.get(id) is not None:
                self._save()

    def refresh(self) -> int:
        """Brings all up to date, in the file too; how many sessions there are."""
        with self._mutex:
            return len(self._refreshed())

    # -- keeping up -----------------------------------------------------------------------------------------------------

    def _latest(self) -> Iterator[Listed]:
        with self._mutex:
            rows = sorted(self._refreshed().items(), key=_updated, reverse=True)
        return (_row(line) for _, line in rows)

    def _refreshed(self) -> dict[str, str]:
        held, fresh = self._held(), dict[str, str]()
        changed: list[str] = []
        for seen in self._folder.walk():
            line = _current(seen, held.get(seen.id))
            if line is None:
                line = self._looked(seen, held.get(seen.id))
                changed.append(seen.id)
            fresh[seen.id] = line
        self._rows = fresh
        if len(changed) > _MANY or _is_settled(held, fresh, changed):
            self._save()
        return fresh

    def _looked(self, seen: Seen, line: str | None) -> str:
        """A row made anew from the transcript, by the bytes it has grown by where that is enough."""
        before = _row(line) if line and _inode(seen.id, line) == seen.inode else None
        try:
            with self._folder.open(seen.id) as file:
                seen = file.seen()
                small = seen.size <= BLOCK
                whole: Readable = _Bytes(file.read(0, seen.size)) if small else file
                return _line(self._summed(whole, seen, before), seen)
        except HomeError:
            return _line(_nothing(seen), seen)

    def _summed(self, file: Readable, seen: Seen, before: Listed | None) -> Listed:
        since = before.known if before and before.bytes <= seen.size else START
        before = before if since.offset else None
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

    def _held(self) -> dict[str, str]:
        if self._rows is None:
            self._rows = _loaded(self._read())
        return self._rows

    @property
    def _aside(self) -> str:
        """Where the list stands when `sessions.json` is not ours to fill."""
        return f"lists/{self._folder.folder.replace('/', '.')}.json"

    def _read(self) -> bytes:
        data = b"" if self._slim else self._folder.get(FILE) or b""
        self._is_theirs = self._slim or _is_foreign(data)
        return self._folder.machine.get(self._aside) or b"" if self._is_theirs else data

    def _save(self) -> None:
        """Writes the list. It can be made again, so a disk that will not take it is no error."""
        rows = self._held()
        data = _dumped(rows)
        if not self._is_theirs:
            self._folder.put(FILE, data)
            return
        try:
            self._folder.machine.put(self._aside, data)
        except (HomeError, OSError):
            pass
        if self._slim:
            self._folder.put(FILE, _slimmed(self._folder.get(FILE) or b"", rows))


# -- rows as lines ------------------------------------------------------------------------------------------------------
# `"<id>":{"updatedAt":"<24 characters>","seen":"<inode>.<mtime>.<size>",…}`: the time and the stat have fixed places, so
# that sorting and comparing need no parsing.


def _current(seen: Seen, line: str | None) -> str | None:
    """The line, when it is of the file as it is now."""
    if line is None:
        return None
    stat = f'","seen":"{seen.inode}.{seen.mtime}.{seen.size}"'
    return line if line.startswith(stat, len(seen.id) + 41) else None


def _is_settled(held: dict[str, str], fresh: dict[str, str], changed: list[str]) -> bool:
    """Whether something happened that will not happen again soon: a file is gone, was written anew, or has closed."""
    gone = any(id not in fresh for id in held)
    anew = any(id in held and _inode(id, held[id]) != _inode(id, fresh[id]) for id in changed)
    return gone or anew or any(fresh[id].endswith('"closed":true}') for id in changed)


def _inode(id: str, line: str) -> int:
    return int(line[len(id) + 51 :].partition(".")[0])


def _updated(row: tuple[str, str]) -> tuple[str, str]:
    id, line = row
    return line[len(id) + 17 : len(id) + 41], id


def _line(row: Listed, seen: Seen) -> str:
    fields = {
        "updatedAt": row.updated_at, "seen": f"{seen.inode}.{seen.mtime}.{seen.size}", "summary": row.summary,
        "startedAt": row.started_at, "entries": row.entries, "bytes": row.bytes, "lines": row.lines,
        "agent_id": row.agent_id, "source_plugin": row.source_plugin, "scope": row.scope, "sender_id": row.sender_id,
        "layer": row.layer, "persona": row.persona, "parent": row.parent, "closed": row.closed,
    }  # fmt: skip
    return f'"{row.id}":{_write(fields)}'


def _row(line: str) -> Listed:
    id = line[1 : line.index('"', 1)]
    found: dict[str, Any] = json.loads(line[len(id) + 3 :])
    return Listed(
        id, found["summary"], found["updatedAt"], found["startedAt"], found["entries"], found["bytes"], found["lines"],
        found["agent_id"], found["source_plugin"], found["scope"], found["sender_id"], found["layer"],
        found["persona"], found["parent"], found["closed"],
    )  # fmt: skip


def _dumped(rows: dict[str, str]) -> bytes:
    body = (_HEAD + ",\n".join(rows.values()) + _FOOT).encode("utf-8")
    return body + f'{zlib.crc32(body):08x}"}}\n'.encode()


def _loaded(data: bytes) -> dict[str, str]:
    """The rows of the file by id; none when a byte of it is not as we wrote it."""
    body, check = data[:-11], data[-11:]
    if check != f'{zlib.crc32(body):08x}"}}\n'.encode() or not body.startswith(_HEAD.encode()):
        return {}
    inside = body[len(_HEAD) : -len(_FOOT)].decode("utf-8")
    return {line[1 : line.index('"', 1)]: line for line in inside.split(",\n")} if inside else {}


def _is_foreign(data: bytes) -> bool:
    """A map of session keys, as OpenClaw keeps one under the same name: theirs, and not to be written over."""
    if not data or _loaded(data):
        return False
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and any(isinstance(row, dict) and "sessionId" in row for row in found.values())


def _slimmed(there: bytes, rows: dict[str, str]) -> bytes:
    """The other dialect's list: its own rows as they are, ours with summary and time."""
    try:
        found = json.loads(there)
        held = dict(found["sessions"])
    except (ValueError, KeyError, TypeError, RecursionError):
        found, held = {}, {}
    for line in rows.values():
        row = _row(line)
        old = held.get(row.id)
        held[row.id] = (old if isinstance(old, dict) else {}) | {"summary": row.summary, "updatedAt": row.updated_at}
    whole = found | {"version": found.get("version", _VERSION), "sessions": held}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")


# -- a row's parts ------------------------------------------------------------------------------------------------------


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
        return {"agent_id": "", "source_plugin": "", "scope": "", "sender_id": None, "layer": "", "persona": None,
                "parent": None}  # fmt: skip
    return {
        "agent_id": header.agent_id, "source_plugin": header.source_plugin, "scope": header.scope or "",
        "sender_id": header.sender_id, "layer": header.layer or "", "persona": header.persona, "parent": header.parent,
    }  # fmt: skip


def _nothing(seen: Seen) -> Listed:
    """A file that cannot be opened is in the list all the same."""
    moment = stamp(_moment(seen))
    return Listed(
        id=seen.id, summary="", updated_at=moment, started_at=moment, entries=0, bytes=0, lines=0, closed=False,
        **_of_header(None),
    )  # fmt: skip


def _moment(seen: Seen) -> datetime:
    try:
        return datetime.fromtimestamp(seen.mtime / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _one_line(text: str) -> str:
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return words if len(words) <= SUMMARY else words[: SUMMARY - 1] + "…"
