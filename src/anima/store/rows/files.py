"""The files of a home as rows: documents for people, small things of the machine's own beneath `.anima/`, append-only lines
(transcripts), and the ledger's bytes.

Promise: bytes as they were given; a name is found in any case or Unicode form, but for names beneath `.anima/`. A file is
its body and the lines after it, so adding to one writes nothing anew. What would grow beyond a tenant's quota is refused
before anything of it is written. An append is one transaction under the log's own row, so nothing is torn. The ledger is
read as the bytes it would be in a file. Not here: history, whether a document may change, what a line means.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from anima.errors import BadArguments, BadPath, BadText, NoSuchDocument, NoSuchSession, OverQuota
from anima.model import MAX_BYTES, DocPath, Document, Entry, fold
from anima.store import ID, MACHINE, Documents, Logs, LogState, Mend, OpenFile, OpenLog, State, text_of
from anima.store.rows.transaction import HomeRows, Transaction

_BLOCK, _ALL = 1 << 20, 1 << 31


def key_of(path: str) -> str:
    return path if path.startswith(f"{MACHINE}/") else fold(path)


class Found(NamedTuple):
    """A file's row without its bytes."""

    path: str
    size: int
    mode: int
    time: datetime
    version: str


class FileRows:
    """Every file of one home. What writes is called within a transaction."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self.revision = rows, rows.revision

    def look(self, path: str) -> Found | None:
        return Found(*found) if (found := self._rows.one("file", key=key_of(path))) else None

    def content(self, path: str) -> bytes | None:
        found = self._rows.one("select [content] from anima.file where [own] and key = %(key)s", key=key_of(path))
        return found[0] if found else None

    def whole(self, path: str, most: int) -> tuple[Found, bytes] | None:
        """A file's row and its bytes, or none of them where there are more than `most`."""
        found = self._rows.one("file_whole", key=key_of(path), most=most)
        return (Found(*found[:5]), found[5]) if found else None

    def contents(self, paths: Iterable[str]) -> dict[str, tuple[str, bytes]]:
        """(path as it is spelt, bytes) of those of some files that are there, by key."""
        sql = "select key, path, [content] from anima.file where [own] and key = any(%(keys)s)"
        return {row[0]: (row[1], row[2]) for row in self._rows.ask(sql, keys=[key_of(path) for path in paths])}

    def beneath(self, folder: str, *, limit: int | None = None) -> list[Found]:
        low = key_of(f"{folder}/") if folder else ""
        high = f"{low[:-1]}0" if folder else None  # what comes after a slash
        return [Found(*row) for row in self._rows.ask("files_beneath", low=low, high=high, limit=limit or _ALL)]

    def put(
        self,
        path: str,
        data: bytes,
        *,
        version: int | None = None,
        mode: int = 0o600,
        time: datetime | None = None,
        only_new: bool = False,
    ) -> None:
        """Puts a whole file in its place, a document with the home's new version; with `only_new`, where none is."""
        key, ended = key_of(path), not data or data.endswith(b"\n")
        row = {"path": path, "version": version or 0, "is_document": version is not None, "size": len(data)}
        if not only_new:
            self._rows.tell("delete from anima.line where [own] and key = %(key)s", key=key)
        sql = "file_new" if only_new else "file_put"
        self._rows.tell(sql, key=key, ended=ended, mode=mode, time=time, body=data, **row)

    def add(self, path: str, at: int, data: bytes, *, version: int | None = None) -> None:
        key = key_of(path)
        self._rows.tell("line_new", key=key, at=at, data=data)
        self._rows.tell("file_grown", key=key, size=at + len(data), version=version, ended=data.endswith(b"\n"))

    def remove(self, path: str) -> None:
        self._rows.tell("delete from anima.line where [own] and key = %(key)s", key=key_of(path))
        self._rows.tell("delete from anima.file where [own] and key = %(key)s", key=key_of(path))

    def read(self, path: str, start: int, end: int) -> bytes:
        found = self._rows.ask("file_range", key=key_of(path), start=start, end=end, span=max(0, end - start))
        return b"".join(data[max(0, start - at) : end - at] if is_line else data or b"" for is_line, at, data in found)


class RowDocuments(Documents):
    """The documents of one home in the database. `name` and `identity` are the home's."""

    def __init__(self, files: FileRows, *, name: str, identity: str) -> None:
        self._files, self.name, self.identity, self.revision = files, name, identity, files.revision

    def read(self, path: DocPath) -> Document:
        found, data = self._found(path, MAX_BYTES)
        text, digest = text_of(path, data), hashlib.sha256(data).hexdigest()
        return Document(path=DocPath.parse(found.path), text=text, digest=digest, time=found.time)

    def raw(self, path: DocPath, *, most: int) -> bytes:
        return self._found(path, most)[1]

    def _found(self, path: DocPath, most: int) -> tuple[Found, bytes]:
        found = self._files.whole(path.key, most)
        if found is None:
            if self._files.beneath(path.key, limit=1):
                raise BadPath(path.text, "this is a folder, not a document")
            raise NoSuchDocument(path.text)
        if found[0].size > most:
            why = f"it has {found[0].size:,} bytes, and at most {most:,} are read"
            raise BadText(path.text, why, hint="move what need not be remembered out of it, or split it")
        return found

    def exists(self, path: DocPath) -> bool:
        return self._files.look(path.key) is not None

    def actual(self, path: DocPath) -> str | None:
        if (found := self._files.look(path.key)) is not None:
            return found.path
        inside = self._files.beneath(path.key, limit=1)
        return "/".join(inside[0].path.split("/")[: len(path.parts)]) if inside else None

    def version(self, path: str) -> str | None:
        found = self._files.look(path)
        return found.version if found and found.path == path else None

    def versions(self) -> dict[str, str]:
        return {found.path: found.version for found in self._files.beneath("")}

    def kind_of(self, path: str) -> str | None:
        found = self._files.look(path)
        if found is not None:
            return "file" if found.path == path else None
        return "folder" if self._files.beneath(path, limit=1) else None

    def raw_names(self, folder: str) -> Sequence[str]:
        depth = folder.count("/") + 1 if folder else 0
        return list(dict.fromkeys(found.path.split("/")[depth] for found in self._files.beneath(folder)))

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        path = DocPath.parse(folder.rstrip("/")) if folder else None
        found = self._files.beneath(path.key if path else "")
        if path is not None and not found:
            if self.exists(path):
                raise BadPath(folder, "this is a file, not a folder")
            raise NoSuchDocument(path.text)
        depth, entries = len(path.parts) + 1 if path else 1, dict[str, Entry]()
        for file in found:
            parts = file.path.split("/")
            if any(part.startswith(".") for part in parts[:depth]):
                continue
            at, is_folder = "/".join(parts[:depth]), len(parts) > depth
            time = max(entries[at].time, file.time) if at in entries else file.time
            entries[at] = Entry(path=at, is_folder=is_folder, size=0 if is_folder else file.size, time=time)
        return tuple(sorted(entries.values(), key=lambda entry: (not entry.is_folder, entry.path)))

    def list_all(self, folder: str = "") -> Iterator[Entry]:
        if folder:
            self.list(folder)  # says what is wrong with it
        for file in self._files.beneath(DocPath.parse(folder.rstrip("/")).key if folder else ""):
            if not any(part.startswith(".") for part in file.path.split("/")):
                yield Entry(path=file.path, is_folder=False, size=file.size, time=file.time)

    @contextmanager
    def opened(self, path: str) -> Iterator[OpenFile]:
        if (there := self._files.whole(path, MAX_BYTES)) is None or there[0].path != path:
            raise BadText(path, "it cannot be read (there is no such file)")
        (_, size, mode, *_), whole = there
        large = (self._files.read(path, at, min(at + _BLOCK, size)) for at in range(0, size, _BLOCK))
        yield OpenFile(size, mode, iter([whole]) if size <= MAX_BYTES else large)  # old or new, never mixed


class RowState:
    """Small things of the machine's own. `special` are names that are kept elsewhere: (bytes, version) of each."""

    def __init__(self, rows: HomeRows, files: FileRows, special: Callable[[str], tuple[bytes, str] | None]) -> None:
        self._rows, self._files, self._special = rows, files, special

    def get(self, name: str) -> bytes | None:
        if (found := self._special(name)) is not None:
            return found[0]
        return self._files.content(f"{MACHINE}/{name}")

    def version(self, name: str) -> str | None:
        if (found := self._special(name)) is not None:
            return found[1]
        return there.version if (there := self._files.look(f"{MACHINE}/{name}")) else None

    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        with self._rows.transaction():
            if not (only_new and self._files.look(f"{MACHINE}/{name}") is not None):
                self._files.put(f"{MACHINE}/{name}", data, only_new=only_new)

    def remove(self, name: str) -> bool:
        with self._rows.transaction():
            was_there = self._files.look(f"{MACHINE}/{name}") is not None
            self._files.remove(f"{MACHINE}/{name}")
        return was_there

    def names(self, folder: str) -> list[str]:
        top = f"{MACHINE}/{folder}"
        inside = (found.path.removeprefix(f"{top}/") for found in self._files.beneath(top))
        return [name for name in inside if "/" not in name and not name.startswith(".")]


class Room:
    """How much a tenant may still keep. One without a quota is asked about once in a while and costs nothing else."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self._free = rows, 0.0 if rows.engine.needs_tenant else float("inf")

    def need(self, *, bytes: int, documents: int = 0, slack: float = 1.0) -> None:
        """Raises OverQuota where so much more would be too much; with `slack`, beyond so many times the quota."""
        if (bytes <= 0 and documents <= 0) or time.monotonic() < self._free:
            return
        wanted, quotas = {"bytes": bytes, "documents": documents}, self._rows.ask("quotas")
        for kind, most, used in quotas:
            if wanted[kind] > 0 and used + wanted[kind] > most * slack:
                raise OverQuota(kind, used=int(used), most=int(most))
        if not quotas:
            self._free = time.monotonic() + 5.0  # for so long no quota stays no quota


class RowLogs(Logs):
    """The logs of one folder of a home."""

    def __init__(
        self, rows: HomeRows, files: FileRows, state: State, room: Room, folder: str, suffix: str, mend: Mend
    ) -> None:
        self.rows, self.files, self.state, self.room = rows, files, state, room
        self.folder, self.suffix, self.mend = DocPath.parse(folder).text, suffix, mend

    def versions(self) -> dict[str, str]:
        cut, found = len(self.folder) + 1, dict[str, str]()
        for file in self.files.beneath(self.folder):
            id = file.path[cut:].removesuffix(self.suffix)
            if file.path.endswith(self.suffix) and ID.match(id):
                found[id] = file.version
        return found

    def look(self, id: str) -> LogState | None:
        found = self.rows.one("log_state", key=key_of(self.path_of(id))) if ID.match(id) else None
        return LogState(id, str(found[0]), int(found[1]), f"{found[0]}.{found[2]}", found[3]) if found else None

    def open(self, id: str) -> RowLog:
        state = self.look(id) if self.path_of(id) else None
        if state is None:
            raise NoSuchSession(f"{id}: there is no such session")
        return RowLog(self, state, writes=False)

    def append_to(self, id: str) -> RowLog:
        log = self.open(id)
        log.writes = True
        return log

    def made(self, id: str) -> RowLog:
        with self.rows.transaction():
            self.files.put(self.path_of(id), b"", only_new=True)
        return self.append_to(id)

    def drop(self, id: str) -> bool:
        path = self.path_of(id)
        with self.rows.transaction():
            was_there = self.files.look(path) is not None
            self.files.remove(path)
        return was_there

    def get(self, name: str) -> bytes | None:
        return self.files.content(f"{self.folder}/{name}")

    def put(self, name: str, data: bytes) -> bool:
        with self.rows.transaction():
            self.files.put(f"{self.folder}/{name}", data)
        return True


class RowLog(OpenLog):
    """One log that is open. Nothing is held between two calls."""

    def __init__(self, logs: RowLogs, state: LogState, *, writes: bool) -> None:
        self.logs: RowLogs
        self.logs, self.id, self._of, self.writes = logs, state.id, state.of, writes
        self.replaced, self._is_open = 0, True
        self._path = logs.path_of(state.id)

    def close(self) -> None:
        self._is_open = False

    def state(self) -> LogState:
        if not self._is_open:
            raise BadArguments(f"the log of session {self.id} is closed")
        state = self.logs.look(self.id)
        if state is None:
            raise NoSuchSession(f"{self.id}: its transcript was removed")
        if state.of != self._of:
            self._of, self.replaced = state.of, self.replaced + 1
        return state

    def read(self, start: int, end: int) -> bytes:
        return self.logs.files.read(self._path, start, end)

    def follow(self) -> None:
        self.state()

    sync = follow  # what was appended was committed

    def append(self, record: bytes, *, sync: bool) -> int:
        self.logs.room.need(bytes=len(record), slack=1.1)  # a conversation goes on a little longer than documents
        rows = self.logs.rows  # what was committed is on the disk
        return rows.tried(rows.transaction, lambda _: OpenLog.append(self, record, sync=False))

    def _ended(self, size: int) -> int:
        return size if self._ends else super()._ended(size)

    def add(self, data: bytes, at: int) -> None:
        self.logs.files.add(self._path, at, data)
        if (held := self.logs.rows.held) is not None:
            given = {"key": key_of(self._path), "at": at, "data": data}
            held.proof = [("file_locked", given), ("line_there", given)]  # whoever still writes is waited for

    def cut(self, size: int) -> None:
        self.logs.files.put(self._path, self.logs.files.read(self._path, 0, size))
        found = self.logs.rows.one("log_state", key=key_of(self._path))
        self._of = str(found[0]) if found else self._of

    def rewrite(self, make: Callable[[], Iterable[bytes]]) -> None:
        with self.alone():
            self.logs.files.put(self._path, b"".join(make()))
        self.follow()

    @contextmanager
    def alone(self) -> Iterator[int]:
        """Once no other writer can come in between, by the log's row."""
        if not (self.writes and self._is_open):
            raise BadArguments(f"the log of session {self.id} is closed, or was opened to be read")
        with self.logs.rows.transaction():
            found = self.logs.rows.one("file_locked", key=key_of(self._path))
            if found is None:
                raise NoSuchSession(f"{self.id}: its transcript was removed")
            if str(found[1]) != self._of:
                self._of, self.replaced = str(found[1]), self.replaced + 1
            self._ends = bool(found[2])
            yield found[0]


_TAIL = 1 << 16


class RecordLog:
    """The ledger of one home as the bytes of a file. What a transaction adds is sent with its COMMIT."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self._mutex = rows, threading.Lock()
        self._held = (0, b"")  # where the bytes begin that are held, and those bytes

    def forget(self) -> None:
        """Nothing that is held counts any more."""
        self._held = (0, b"")

    def size(self) -> int:
        if (held := self._rows.held) is not None and held.row is not None:
            return self._added(held).end
        return int(found[0]) if (found := self._rows.one("select bytes from anima.home where [own]")) else 0

    def read(self, start: int, end: int | None = None) -> bytes:
        end = self.size() if end is None else end
        if start >= end:
            return b""
        held = self._rows.held
        added = self._added(held) if held is not None and held.row is not None else None
        if added is None:
            return self._committed(start, end)
        at = added.start
        return (self._committed(start, min(end, at)) if start < at else b"") + added.data[max(0, start - at) : end - at]

    def append(self, data: bytes, *, sync: bool) -> None:
        added = self._added(self._rows.held)
        added.rows.append({"at": added.end, "n": added.records + len(added.rows) + 1, "line": data})
        added.data += data

    def truncate(self, size: int) -> None:
        """Nothing: a line that was cut short cannot have been committed."""

    def last(self) -> dict[str, Any] | None:
        added: _Added | None = held.kept.get("added") if (held := self._rows.held) is not None else None
        return added.rows[-1] if added and added.rows else None

    def _added(self, held: Transaction | None) -> _Added:
        assert held is not None and held.row is not None, "the ledger is written under the home's lock"
        if (kept := held.kept.get("added")) is not None:
            return kept  # type: ignore[no-any-return]
        added = held.kept["added"] = _Added(records=held.row[1], start=held.row[2])
        held.before.insert(0, lambda: self._send(held, added))
        held.after.append(lambda done: self._hold(added.start, bytes(added.data)) if done and added.data else None)
        return added

    def _send(self, held: Transaction, added: _Added) -> None:
        if not added.rows:
            return
        self._rows.tell_all("record_new", added.rows)
        self._rows.tell("records_grown", n=len(added.rows), size=len(added.data))
        held.proof = [("select 1 from anima.record where [own] and at = %(at)s and line = %(line)s", added.rows[0])]

    def _committed(self, start: int, end: int) -> bytes:
        at, tail = self._held
        if at <= start and end <= at + len(tail):
            return tail[start - at : end - at]
        found = self._rows.ask("records", start=start, end=end)
        data = b"".join(line for _, line in found)
        if found and end - start <= _TAIL:
            self._hold(found[0][0], data)
        return data[start - found[0][0] : end - found[0][0]] if found else b""

    def _hold(self, start: int, data: bytes) -> None:
        """Holds the end of the ledger: what was held, if this goes on from there, and this."""
        with self._mutex:
            at, tail = self._held
            if tail and at <= start <= at + len(tail):
                data, start = tail[: start - at] + data, at
            elif tail and start + len(data) < at + len(tail):
                return  # older than what is held
            cut = max(0, len(data) - _TAIL)
            self._held = (start + cut, data[cut:])


@dataclass
class _Added:
    """Records that a transaction adds after the first `records`, which end at `start`."""

    records: int
    start: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)

    @property
    def end(self) -> int:
        return self.start + len(self.data)
