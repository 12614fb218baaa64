"""One SQLite file as a database of homes, by the standard library: PostgreSQL's statements in SQLite's words.

Promise: one file at rest, a transaction durable when it ended, what was deleted overwritten; whoever writes waits for
whoever writes before. The tables are those of PostgreSQL without tenants and row policies: who can read the file reads its
homes. A file that was taken away or replaced while a home is open is said, never written to. Any libSQL can open it.
Not here: what the rows mean.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from anima.errors import BadArguments, Damaged, HomeBusy, MissingExtra, NewerFormat, NoSuchHome, Refused, printable
from anima.store.lock import flock
from anima.store.rows.transaction import WAIT, Engine, Row, Transaction, schema_texts, statements
from anima.store.safe_open import why
from anima.text import read_table

_MADE = "anima_made"  # the table that tells a file of ours, and which texts made it
_BOTH = re.compile(r"^(?:create table|create index|alter table \S+ add column)\b.*?;$", re.M | re.S)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def file_at(address: str) -> str:
    """The file an address names: `file:notes.db`, `file:///srv/notes.db`, `sqlite:notes.db`, `sqlite:///notes.db`."""
    scheme, _, rest = address.partition(":")
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        rest = rest if scheme == "sqlite" else f"/{rest}"
        if host or not rest.strip("/"):
            raise BadArguments(f"{address} names no file", hint=f"say {scheme}:/srv/aria.db")
    if not rest or "?" in rest:
        raise BadArguments(f"{address} names no file, or more than one", hint=f"say {scheme}:/srv/aria.db")
    return os.path.abspath(os.path.expanduser(rest))


def name_in(address: str, agent: str | None) -> str:
    """What a home in a file is called: the file, and the agent where it has a name of its own."""
    address, _, whose = address.partition("#")
    agent, scheme = agent or whose or "main", "libsql" if address.startswith("libsql:") else "file"
    return f"{scheme}:{file_at(address.partition('?sync=')[0])}" + (f" {agent}" if agent != "main" else "")


class OneFile(Engine):
    """One file as this process knows it: its connections, and the tables in it."""

    _raised: type[Exception] = sqlite3.Error  # what the driver raises

    def __init__(self, path: str) -> None:
        self.path, self.name = path, f"file:{path}"
        self._is, self._free, self._mutex = mark_of(path), list[sqlite3.Connection](), threading.RLock()
        self.mark = str(self._is[1]) if self._is else ""
        self._moment, self._head = 0, -1
        with self.connection() as db, self.translated(Transaction(db)):
            self._bring_up(db)

    def _bring_up(self, db: sqlite3.Connection) -> None:
        """Makes the tables, or brings them up to date. Raises Refused for others that are no engine's own, for views and triggers."""
        held = dict(db.execute("select name, type from sqlite_master where type <> 'index'").fetchall())
        others = [name for name in held if not name.startswith(("sqlite_", "libsql_", "_litestream"))]
        if {*held.values()} - {"table"} or (_MADE not in held and others):
            raise Refused(f"{self.name}: this is a file of another program's; nothing was written", rule="foreign-file")
        if (done := self._done(db) if _MADE in held else 0) > len(schema_texts()):
            raise NewerFormat("the file", found=done, known=len(schema_texts()))
        if done < len(schema_texts()):
            with self.sending(db):
                self.begin(db, 1, None)
                db.execute(f"create table if not exists {_MADE}(n integer not null)")
                for n, text in enumerate(schema_texts()[(done := self._done(db)) :], done + 1):
                    for statement in _BOTH.findall(text):
                        db.execute(_put("schema", statement))
                    db.execute(f"insert into {_MADE} values({n})")
                db.execute("commit")

    def _done(self, db: Any) -> int:
        return int(db.execute(f"select coalesce(max(n), 0) from {_MADE}").fetchall()[0][0])

    def pulse(self) -> tuple[int, ...] | None:
        """SQLite's own count of commits in the head of the file, with its time and size; None where the head does not count.
        Asking SQLite for it takes five times as long. The file is never closed: that would end this process's locks on it."""
        found = self._there()
        try:
            if self._head < 0:
                self._head = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            head = os.pread(self._head, 10, 18)
        except OSError as error:
            raise Damaged(f"{self.name} cannot be read: {error.strerror}") from None
        return (int.from_bytes(head[6:]), found.st_mtime_ns, found.st_size) if head[:2] == b"\1\1" else None

    def _there(self) -> os.stat_result:
        try:
            found = os.stat(self.path)
            if (found.st_dev, found.st_ino) == self._is:
                return found
            what = "is another file than the one that was opened"
        except OSError:
            what = "was taken away"
        raise Damaged(f"{self.name} {what}; nothing was written", hint="put it back, and open the home again")

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        self._there()
        with self._mutex:
            db = self._free.pop() if self._free else None
        try:
            db = db or self._opened()
        except sqlite3.Error as error:
            if _is_busy(error):
                raise HomeBusy("another connection", seconds=WAIT) from None
            raise Damaged(f"{self.name} cannot be opened: {error}") from None
        try:
            yield db
        finally:
            self._free.append(db)

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None, check_same_thread=False)
        for pragma in ("trusted_schema = off", "secure_delete = on", "synchronous = extra", "temp_store = memory"):
            db.execute(f"pragma {pragma}")
        return db

    def run(self, db: sqlite3.Connection, statement: str, given: Mapping[str, Any]) -> sqlite3.Cursor:
        told, names = _told(statement)
        return db.execute(told, self._values(names, given))

    def run_all(self, db: sqlite3.Connection, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        told, names = _told(statement)
        db.executemany(told, [self._values(names, row) for row in rows])

    def _values(self, names: Sequence[str], given: Mapping[str, Any]) -> tuple[Any, ...]:
        now = time.time_ns() // 1000
        self._moment = max(now, self._moment + 1)
        every = {"now": now, "moment": self._moment, **given}
        return tuple(_kept(every[name]) for name in names)

    def rows(self, found: sqlite3.Cursor) -> list[Row]:
        names = [column[0] for column in found.description or ()]
        if "time" not in names:
            return found.fetchall()
        at = names.index("time")
        return [(*row[:at], _EPOCH + timedelta(microseconds=row[at]), *row[at + 1 :]) for row in found.fetchall()]

    def begin(self, db: sqlite3.Connection, tenant: int, patience: float | None) -> None:
        wait = WAIT if patience is None else patience
        db.execute(f"pragma busy_timeout = {int(wait * 1000)}")
        try:
            db.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise HomeBusy("another connection", seconds=wait) from None
            raise
        finally:
            db.execute(f"pragma busy_timeout = {int(WAIT * 1000)}")

    @contextmanager
    def sending(self, db: sqlite3.Connection) -> Iterator[None]:
        try:
            yield
        finally:
            if db.in_transaction:
                db.rollback()

    @contextmanager
    def translated(self, held: Transaction) -> Iterator[None]:
        try:
            yield
        except self._raised as error:
            held.is_broken = True
            raise Damaged(f"{self.name}: {str(error)[:200]}; nothing was written") from error


class Replica(OneFile):
    """A file that follows a libSQL server, by the extra `libsql`: writes go to the server, reads are local. One process on
    one machine writes; whoever comes second is refused, since two would fork the chain. Untested against Turso's cloud."""

    _raised = ValueError

    def __init__(self, path: str, url: str) -> None:
        try:
            import libsql
        except ImportError:
            raise MissingExtra("libsql", "a file that follows a libSQL server") from None
        self.path, self.name, self.mark = path, f"libsql:{path}", "replica"
        self._mutex, self._moment = threading.RLock(), 0
        with ExitStack() as failing:
            # A word for this file on this machine, kept beside it and held for as long as the process lives.
            self._held = failing.enter_context(open(f"{self.path}.writer", "a+"))
            if not flock(self._held.fileno()):
                raise Refused(f"{self.name}: another process has it open", rule="several-writers")
            self._held.seek(0)
            if not (holder := self._held.read()):
                self._held.write(holder := secrets.token_hex(16))
                self._held.flush()
            with self.translated(Transaction(None)):
                token = os.environ.get("LIBSQL_AUTH_TOKEN", "")
                self._db = libsql.connect(path, sync_url=url, auth_token=token, isolation_level=None)
                self._db.sync()
                self._bring_up(self._db)
                sql = "insert into lease values(0, 0, 'writer', ?, 1, 0) on conflict do nothing"
                self._db.execute(sql, (holder,))
                self._db.sync()
                writer = self._db.execute("select holder from lease where tenant = 0 and name = 'writer'").fetchall()
            if writer[0][0] != holder:
                hint = "delete the row `writer` of the table lease on the server only when the other machine is gone"
                raise Refused(f"{self.name}: another machine writes to {url}", rule="several-writers", hint=hint)
            weakref.finalize(self, failing.pop_all().close)

    @contextmanager
    def connection(self) -> Iterator[Any]:
        with self._mutex:
            yield self._db

    def pulse(self) -> None:
        """Nothing: its one connection writes, too."""

    def run(self, db: Any, statement: str, given: Mapping[str, Any]) -> Any:
        found = super().run(db, statement, given)
        if statement == "commit":
            db.sync()
        return found

    def begin(self, db: Any, tenant: int, patience: float | None) -> None:
        db.execute("begin immediate")


@cache
def replica(address: str, process: int) -> Replica:
    """`libsql:/srv/replica.db?sync=https://…`, opened once in this process."""
    place, _, url = address.partition("?sync=")
    if not url:
        raise BadArguments(f"{address} names no server to follow", hint="libsql:/srv/replica.db?sync=https://…")
    return Replica(file_at(place), url)


def one_file(address: str, *, create: bool) -> OneFile:
    """The file at an address, opened once in this process; with `create` made where none is, for its owner alone."""
    if address.startswith("libsql:"):
        return replica(address, os.getpid())
    path = file_at(address)
    if (mark := mark_of(path)) is None:
        if not create:
            raise NoSuchHome(f"file:{path}: there is no such file", hint=f"anima init {shlex.quote(f'file:{path}')}")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except (OSError, ValueError) as error:
            raise Refused(f"file:{printable(path)}: the file cannot be made ({why(error)})") from None
        mark = mark_of(path)
    if os.path.isdir(path):
        raise Refused(f"file:{path}: this is a folder, and a home in one file is none", hint="leave `file:` away")
    return _one_file(path, mark, os.getpid())


@cache
def _one_file(path: str, mark: object, process: int) -> OneFile:
    return OneFile(path)


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def mark_of(path: str) -> tuple[int, int] | None:
    """What tells a file from another at its place; None where there is none."""
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _kept(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(microseconds=1)
    return json.dumps(value) if isinstance(value, list | tuple) else value


@cache
def _told(statement: str) -> tuple[str, tuple[str, ...]]:
    """A statement in SQLite's words, and which value stands at each of its marks."""
    told = _put("statements", statement.replace("[content]", statements()["content_in_sqlite"]))
    return re.sub(r"%\(\w+\)s", "?", told), tuple(re.findall(r"%\((\w+)\)s", told))


def _put(kind: str, text: str) -> str:
    """Statements, or a text of the schema, in SQLite's words."""
    for theirs, ours in read_table("store/rows", "sqlite")[kind].items():
        text = re.sub(theirs, ours, text)
    return text
