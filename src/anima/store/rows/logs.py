"""Append-only lines of a home in the database: transcripts, and the ledger's bytes.

Promise: an append is one transaction under the log's own row, so nothing is torn and writers stand in one line; a line
without its end, which only an import can bring, is completed or put aside first, as in a folder. The ledger is read as the
bytes it would be in a file; its end is held in memory, so that following it asks for what is new alone.
Not here: what a line means (sessions, ledger).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from typing import Any

from anima.errors import BadArguments, NoSuchSession, printable
from anima.ledger import MAX_LINE, last_line
from anima.model import DocPath
from anima.store import ID, Logs, LogState, Mend, OpenLog
from anima.store.folder import MACHINE
from anima.store.private import TORN
from anima.store.rows.files import FileRows, Room, key_of
from anima.store.rows.transaction import HomeRows, Transaction

_STATE = "select was, size, version, time from anima.file where [own] and key = %(key)s"
_PROOF = (  # whoever still writes is waited for
    "select 1 from anima.file where [own] and key = %(key)s for update",
    "select 1 from anima.line where [own] and key = %(key)s and at = %(at)s and data = %(data)s",
)
_SLACK = 1.1  # a conversation goes on a little longer than documents may grow
_BEFORE = 64  # bytes before a torn line that tell who wrote the log


class RowLogs(Logs):
    """The logs of one folder of a home."""

    def __init__(
        self, rows: HomeRows, files: FileRows, folder: str, suffix: str, mend: Mend, *, room: Room | None = None
    ) -> None:
        self.rows, self.files, self.mend, self.room = rows, files, mend, room or Room(rows)
        self.folder, self.suffix = DocPath.parse(folder).text, suffix

    def versions(self) -> dict[str, str]:
        cut, found = len(self.folder) + 1, dict[str, str]()
        for file in self.files.beneath(self.folder):
            id = file.path[cut:].removesuffix(self.suffix)
            if file.path.endswith(self.suffix) and ID.match(id):
                found[id] = file.version
        return found

    def look(self, id: str) -> LogState | None:
        found = self.rows.one(_STATE, key=key_of(self.path_of(id))) if ID.match(id) else None
        return _state(id, found) if found else None

    def open(self, id: str) -> RowLog:
        state = self.look(id) if self.path_of(id) else None
        if state is None:
            raise NoSuchSession(f"{id}: there is no such session")
        return RowLog(self, state, writes=False)

    def append_to(self, id: str) -> RowLog:
        log = self.open(id)
        log.writes = True
        return log

    def create(self, id: str) -> RowLog:
        if not ID.match(id):
            raise BadArguments(f"{printable(id)} cannot name a session: letters, digits, dots, dashes, 120 at most")
        with self.rows.transaction():
            self.files.put(self.path_of(id), b"", only_new=True)
        return self.append_to(id)

    def drop(self, id: str) -> bool:
        path = self.path_of(id)
        with self.rows.transaction():
            was_there = self.files.look(path) is not None
            self.files.remove(path)
        return was_there

    def torn(self, id: str) -> dict[str, bytes]:
        names = [found.path for found in self.files.beneath(f"{MACHINE}/{TORN}")]
        own = [name for name in names if name.rpartition("/")[2].rsplit(".", 2)[0] == id]
        return {name.removeprefix(f"{MACHINE}/"): self.files.content(name) or b"" for name in own}

    def drop_torn(self, name: str) -> None:
        with self.rows.transaction():
            self.files.remove(f"{MACHINE}/{name}")

    def get(self, name: str) -> bytes | None:
        return self.files.content(f"{self.folder}/{name}")

    def put(self, name: str, data: bytes) -> bool:
        with self.rows.transaction():
            self.files.put(f"{self.folder}/{name}", data)
        return True


class RowLog(OpenLog):
    """One log that is open. Nothing is held between two calls."""

    def __init__(self, logs: RowLogs, state: LogState, *, writes: bool) -> None:
        self._logs, self.id, self._of, self.writes = logs, state.id, state.of, writes
        self.replaced, self._is_open = 0, True
        self._path = logs.path_of(state.id)

    def close(self) -> None:
        self._is_open = False

    def state(self) -> LogState:
        if not self._is_open:
            raise BadArguments(f"the log of session {self.id} is closed")
        state = self._logs.look(self.id)
        if state is None:
            raise NoSuchSession(f"{self.id}: its transcript was removed")
        if state.of != self._of:
            self._of, self.replaced = state.of, self.replaced + 1
        return state

    def size(self) -> int:
        return self.state().size

    def read(self, start: int, end: int) -> bytes:
        return self._logs.files.read(self._path, start, end)

    def follow(self) -> None:
        self.state()

    def sync(self) -> None:
        """Nothing: what was appended was committed."""
        self.state()

    def append(self, record: bytes, *, sync: bool) -> int:
        if len(record) > MAX_LINE:
            raise BadArguments(f"a record has at most {MAX_LINE:,} bytes, and this one {len(record):,}")
        self._logs.room.need(bytes=len(record), slack=_SLACK)
        return self._logs.rows.tried(self._logs.rows.transaction, lambda _: self._append(record))

    def _append(self, record: bytes) -> int:
        at = self._ended()[0]
        self._logs.files.add(self._path, at, record)
        if (held := self._logs.rows.held) is not None:
            held.proof = [(sql, {"key": key_of(self._path), "at": at, "data": record}) for sql in _PROOF]
        return at

    def begin(self, record: bytes) -> None:
        with self._logs.rows.transaction():
            if self._taken()[0]:
                raise BadArguments(f"there is a session {self.id} already; it can be resumed")
            self.append(record, sync=True)

    def rewrite(self, make: Callable[[], Iterable[bytes]]) -> None:
        with self._logs.rows.transaction():
            self._taken()
            self._logs.files.put(self._path, b"".join(make()))
        self.follow()

    def _taken(self) -> tuple[int, bool]:
        """The log's size and whether it ends with a line's end, once no other writer can come in between."""
        if not (self.writes and self._is_open):
            raise BadArguments(f"the log of session {self.id} is closed, or was opened to be read")
        sql = "select size, ended, was from anima.file where [own] and key = %(key)s for update"
        found = self._logs.rows.one(sql, key=key_of(self._path))
        if found is None:
            raise NoSuchSession(f"{self.id}: its transcript was removed")
        if str(found[2]) != self._of:
            self._of, self.replaced = str(found[2]), self.replaced + 1
        return found[0], found[1]

    def _ended(self) -> tuple[int, bool]:
        """Where the next record goes, once the last line has an end; and whether it had none."""
        size, ended = self._taken()
        if ended:
            return size, False
        files, (start, tail) = self._logs.files, last_line(self, size)
        ending = self._logs.mend(tail, files.read(self._path, max(0, start - _BEFORE), start))
        if ending is None:
            mark = hashlib.sha256(tail).hexdigest()[:12]
            files.put(f"{MACHINE}/{TORN}/{self.id}.{start}.{mark}", tail)
            files.put(self._path, files.read(self._path, 0, start))
            found = self._logs.rows.one(_STATE, key=key_of(self._path))
            self._of = str(found[0]) if found else self._of
            return start, True
        files.add(self._path, size, ending)
        return size + len(ending), True


def _state(id: str, row: tuple[Any, ...]) -> LogState:
    was, size, version, time = row
    return LogState(id, str(was), int(size), f"{was}.{version}", time)


_TAIL = 1 << 16


class RecordLog:
    """The ledger of one home as the bytes of a file. What a transaction adds is sent with its COMMIT."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self._mutex = rows, threading.Lock()
        self._held = (0, b"")  # where the bytes begin that are held, and those bytes
        self._new: dict[int, _Added] = {}  # by transaction

    def forget(self) -> None:
        """Nothing that is held counts any more."""
        self._held = (0, b"")

    def size(self) -> int:
        if (held := self._rows.held) is not None and held.row is not None:
            return self._added(held).end
        found = self._rows.one("select bytes from anima.home where [own]")
        return int(found[0]) if found else 0

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
        """The last record this transaction adds."""
        held = self._rows.held
        added = self._new.get(id(held)) if held is not None else None
        return added.rows[-1] if added and added.rows else None

    def _added(self, held: Transaction | None) -> _Added:
        assert held is not None and held.row is not None, "the ledger is written under the home's lock"
        if (found := self._new.get(id(held))) is None:
            found = self._new[id(held)] = _Added(records=held.row[1], start=held.row[2])
            held.before.insert(0, lambda: self._send(held, found))
            held.after.append(lambda done: self._ended(held, found, done))
        return found

    def _send(self, held: Transaction, added: _Added) -> None:
        if not added.rows:
            return
        sql = "insert into anima.record values(%(tenant)s, %(home)s, %(at)s, %(n)s, %(line)s)"
        self._rows.tell_all(sql, added.rows)
        sql = "update anima.home set records = records + %(n)s, bytes = bytes + %(size)s where [own]"
        self._rows.tell(sql, n=len(added.rows), size=len(added.data))
        held.proof = [("select 1 from anima.record where [own] and at = %(at)s and line = %(line)s", added.rows[0])]

    def _ended(self, held: Transaction, added: _Added, done: bool) -> None:
        self._new.pop(id(held), None)
        if done and added.data:
            self._hold(added.start, bytes(added.data))

    def _committed(self, start: int, end: int) -> bytes:
        at, tail = self._held
        if at <= start and end <= at + len(tail):
            return tail[start - at : end - at]
        sql = """
            select at, line from anima.record where [own] and at < %(end)s and at >= coalesce((select max(at)
            from anima.record where [own] and at <= %(start)s), 0) order by at
        """
        found = self._rows.ask(sql, start=start, end=end)
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


class _Added:
    """Records that a transaction adds after the first `records`, which end at `start`."""

    def __init__(self, *, records: int, start: int) -> None:
        self.records, self.start = records, start
        self.rows: list[dict[str, Any]] = []
        self.data = bytearray()

    @property
    def end(self) -> int:
        return self.start + len(self.data)
