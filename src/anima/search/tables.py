"""The tables of the index: what an engine keeps of the units of one home, and the engine that is a SQLite file.

Promise: an engine keeps rows and knows nothing of words, scopes or scores; the same rows in any engine give the same
answers, which `anima.testing.tables.TablesContract` holds. A number of a part or a document is never used twice within an
epoch; a document's path, kind, layer and day never change under one number. A SQLite file of ours is derived: on any
doubt it is deleted and begun again, and said in the notes. Writers and checkpoints of all processes stand in one line behind
a lock file. Not here: cutting, counting, vectors (`index`), arrays (`field`), other files' rows (`sessions.find`).
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

from anima.errors import HomeError
from anima.model import Remark
from anima.store.lock import flock
from anima.text import read_statements

T = TypeVar("T")
FORMAT: Final = 4
CHECKPOINT_BYTES: Final = 4 << 20
IN_MEMORY: Final = ":memory:"  # a path at which nothing is kept
_ENDINGS: Final = ("", "-wal", "-shm", "-journal")  # of the files of one database
_PRAGMAS: Final = """
    busy_timeout=10000 trusted_schema=off cell_size_check=on synchronous=normal temp_store=memory cache_size=-65536
""".split()
_WAL: Final = ("journal_mode=wal", "wal_autocheckpoint=0")
_TRUNCATE: Final = ("journal_mode=truncate", "secure_delete=on")
# What a damaged file can bring about, texts that are no text among it; and the codes that say nothing about the file.
_TROUBLE = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError, OSError)
_CODES: Final = "PERM BUSY LOCKED NOMEM READONLY INTERRUPT IOERR FULL CANTOPEN PROTOCOL"
_PASSING: Final = {getattr(sqlite3, f"SQLITE_{name}") for name in _CODES.split()}


class IndexDown(HomeError):
    """A derived index can be neither read nor written just now. What it holds is as it was."""


class DocumentRow(NamedTuple):
    """A document. `id` is 0 before it is put; `day` is the date's ordinal, 0 when it has none."""

    id: int
    path: str
    kind: str
    layer: str
    day: int


class PartRow(NamedTuple, Generic[T]):
    """Some dozens of units of a document, opaque to an engine. `vectors`: numbers of 16 bits, one vector a unit, or nothing."""

    id: int
    document: int
    packed: T
    vectors: bytes


class NewPart(NamedTuple):
    """A part to be written. `said` is what is shown of it, and is only read to be shown."""

    packed: bytes
    vectors: bytes
    said: str


class ShownPart(NamedTuple):
    """What is shown of a part, and the digest of its document as it stands now."""

    digest: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A document to be written. The first `kept` of the parts that were there `before` stay, `parts` follow them."""

    row: DocumentRow
    digest: str
    before: tuple[int, ...]
    kept: int
    parts: tuple[NewPart, ...]


class Mark(NamedTuple):
    """How far somebody has read: what the rows were made for, and the last generation, part and document seen."""

    epoch: str = ""
    made_for: str = ""
    generation: int = -1
    part: int = 0
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed since a mark; in another epoch everything is new. `alive` gives the document of every part there is, None
    when nothing changed; rows come by their numbers. `parts` are what was made of each new one."""

    mark: Mark
    alive: Mapping[int, int] | None = None
    documents: Sequence[DocumentRow] = ()
    parts: Sequence[Any] = ()


class Tables(Protocol):
    """An engine. Each method is one transaction and sees one generation. Raises IndexDown when nothing can be had. What is
    damaged is begun again by the engine itself, empty, in a new epoch, and said in the notes."""

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept here. Asking makes nothing."""

    def begin(self, made_for: str, *, anew: bool = False) -> None:
        """Says what rows are made for; called before anything else. Rows made for something else, and with `anew` all
        of them, are dropped without a trace, and a new epoch begins."""

    def known(self) -> dict[str, str]:
        """The digest of every document, by path."""

    def since(self, mark: Mark, made: Callable[..., Any] = PartRow) -> Changes:
        """What changed. `made` is given what a PartRow is made of, perhaps while the next are still on their way."""

    def put(self, epoch: str, documents: Sequence[Writing]) -> list[str]:
        """Writes documents, all in one transaction; the paths that were refused, because the epoch is another or their parts
        are no longer those they had `before`. A document that keeps no part gets a new number."""

    def drop(self, paths: Collection[str]) -> int:
        """Takes documents out with all their rows; how many there were."""

    def shown(self, parts: Collection[int]) -> dict[int, ShownPart]:
        """The texts of parts, by number; one that is gone is left out."""

    def notes(self) -> tuple[str, ...]:
        """What a person should know, such as that rows were lost and are begun again. Each is said once."""

    def close(self) -> None:
        """Lets go. Closing twice is fine; any method opens again."""


class SqliteFile:
    """A derived database file. Safe to share by threads and processes. `schema` are statements, the last of which puts the
    first row in, with `made_for`. With `wal` readers never wait; without, what is deleted leaves no byte in the file. `again`
    is what the notes say when the file is begun again, with a place for why."""

    def __init__(self, path: str, *, lock: str, schema: str, version: int, wal: bool, again: str) -> None:
        self._path, self._lock_path, self._version, self._wal, self._again = path, lock, version, wal, again
        *self._schema, self._first = schema.split(";")
        self._made_for = ""
        self._mutex, self._depth = threading.RLock(), 0
        self._db: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._notes: list[str] = []

    @property
    def exists(self) -> bool:
        return self._db is not None if self._path == IN_MEMORY else os.path.lexists(self._path)

    def run(self, work: Callable[[sqlite3.Connection], T], *, writing: bool = False, again: bool = True) -> T:
        """What `work` gives, in one transaction; one that is `writing` is alone among all processes. A damaged file is begun
        again, and `work` done on the new one unless `again` says that this makes no sense. Raises IndexDown."""
        with self._mutex:
            for is_new in (False, True):
                try:
                    return self._transacted(work, writing)
                except _TROUBLE as error:
                    is_damaged = not is_new and not _is_passing(error)
                    if is_damaged:
                        self.begin_again(error)
                    if not (is_damaged and again):
                        raise IndexDown(_reason(error)) from error
            raise AssertionError

    def begin_again(self, why: object = "") -> None:
        """Deletes the file, with all that stands beside it, and makes a new one. Raises IndexDown when that cannot be."""
        try:
            with self._mutex, self._alone():
                self._shut()
                for ending in _ENDINGS:
                    if os.path.lexists(self._path + ending):
                        os.unlink(self._path + ending)
                self._opened()
        except _TROUBLE as error:
            raise IndexDown(_reason(error)) from error
        if why:
            self.note(self._again.format(why))

    def note(self, text: str) -> None:
        with self._mutex:
            if text not in self._notes:
                self._notes.append(text)

    def notes(self) -> tuple[str, ...]:
        with self._mutex:
            said, self._notes = tuple(self._notes), []
        return said

    def close(self) -> None:
        """Lets go. Closing folds a log back into the file, so it happens behind the lock."""
        with self._mutex:
            if self._db is None:
                return
            try:
                with self._alone():
                    if self._wal:
                        self._db.execute("pragma wal_checkpoint(passive)")
                    self._shut()
            except _TROUBLE:
                self._shut()

    def check(self) -> str:
        """What is wrong with the file, in a few words; "" when nothing is, when there is no file, when somebody writes just
        now, and when a write was cut short: whoever opens it next begins it again. Changes nothing."""
        with self._quiet() as is_quiet:
            logged, is_cut = (bool(_identity(self._path + ending)[2]) for ending in ("-wal", "-journal"))
            if is_cut or not is_quiet or os.path.islink(self._path) or not os.path.isfile(self._path):
                return ""
            if logged and not os.path.lexists(self._path + "-shm"):
                return "its log is there without its shared memory"
            how = "mode=ro" if logged else "immutable=1"
            try:
                with closing(sqlite3.connect(f"file:{quote(self._path)}?{how}", uri=True, timeout=1.0)) as db:
                    self._is_new(db)
                    said = db.execute("pragma quick_check(1)").fetchone()[0]
                    self._look(db)
            except _TROUBLE as error:
                return "" if _is_passing(error) else str(error)
            return "" if said == "ok" else str(said).splitlines()[-1]

    def _look(self, db: sqlite3.Connection) -> None:
        """Raises DatabaseError for rows that are not what was put in."""

    def _transacted(self, work: Callable[[sqlite3.Connection], T], writing: bool) -> T:
        with self._alone() if writing else nullcontext():
            db = self._opened()
            db.execute("begin immediate" if writing else "begin")
            try:
                found = work(db)
                db.execute("commit")
            finally:
                if db.in_transaction:
                    db.execute("rollback")
            # SQLite's own moments are switched off: a checkpoint happens behind the lock.
            if writing and self._wal and _identity(self._path + "-wal")[2] > CHECKPOINT_BYTES:
                db.execute("pragma wal_checkpoint(truncate)")
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The writers' lock. Whoever holds the mutex may take it again."""
        self._depth += 1
        fd = -1
        try:
            if self._depth == 1 and self._path != IN_MEMORY:
                if os.path.islink(self._lock_path):
                    os.unlink(self._lock_path)
                fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                flock(fd, wait=True)
            yield
        finally:
            self._depth -= 1
            if fd >= 0:
                os.close(fd)

    @contextmanager
    def _quiet(self) -> Iterator[bool]:
        """Whether nobody writes, and nobody begins to while we look. A lock file that is not there is held by nobody."""
        try:
            fd = os.open(self._lock_path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            yield True
            return
        try:
            yield flock(fd)
        finally:
            os.close(fd)

    def _opened(self) -> sqlite3.Connection:
        """The connection, anew when the file at our path is another one than we opened."""
        if self._db is not None and self._file == _identity(self._path)[:2]:
            return self._db
        with self._alone():
            self._shut()
            if self._path != IN_MEMORY:
                self._make()
            self._db = sqlite3.connect(self._path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._file = _identity(self._path)[:2]
            for pragma in (*_PRAGMAS, *(_WAL if self._wal else _TRUNCATE)):
                self._db.execute(f"pragma {pragma}")
            if self._is_new(self._db):
                for statement in ("begin immediate", *self._schema):
                    self._db.execute(statement)
                self._db.execute(self._first, {"made_for": self._made_for})
                self._db.execute(f"pragma user_version = {self._version}")
                self._db.execute("commit")
        return self._db

    def _make(self) -> None:
        """The file, ours alone. What is no file of its own that we may write (a link of either kind, a pipe) is not opened
        but removed. A write that was cut short is doubt enough: a journal names a file to delete once it is played back."""
        for ending in _ENDINGS:
            try:
                found = Path(self._path + ending).lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or not os.access(self._path + ending, os.W_OK):
                os.unlink(self._path + ending)
            elif ending == "-journal" and found.st_size:
                raise sqlite3.DatabaseError("a write was cut short")
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)
        os.close(fd)

    def _is_new(self, db: sqlite3.Connection) -> bool:
        """Whether a file is still empty. Raises DatabaseError for one that is not ours, or of another version."""
        version, held = db.execute("pragma user_version").fetchone()[0], _schema_in(db)
        if version == 0 and not held:
            return True
        if version != self._version or held != _schema_of(*self._schema):
            raise sqlite3.DatabaseError("it was made by another version")
        return False

    def _shut(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()


@cache
def _schema_of(*statements: str) -> list[tuple[str, ...]]:
    """What SQLite itself makes of these statements."""
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in statements:
            db.execute(statement)
        return _schema_in(db)


def _schema_in(db: sqlite3.Connection) -> list[tuple[str, ...]]:
    return db.execute("select type, name, tbl_name, sql from sqlite_schema order by type, name limit 100").fetchall()


def _is_passing(error: Exception) -> bool:
    """Whether an error says nothing about the file: somebody else writes, or the disk is full."""
    code = getattr(error, "sqlite_errorcode", None)
    is_passing = code is not None and code & 0xFF in _PASSING
    return is_passing or isinstance(error, OSError) or "no such module" in str(error)


def _reason(error: Exception) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)


def _identity(path: str) -> tuple[int, int, int]:
    """Device, number and size of a file; zeros where there is none."""
    with suppress(OSError):
        found = Path(path).lstat()
        return found.st_dev, found.st_ino, found.st_size
    return 0, 0, 0


_SQL: Final = read_statements("search", "tables")


class SqliteTables(SqliteFile):
    """`Tables` in one file. Each part carries sums of its own, since SQLite has none and would not notice a changed byte."""

    def __init__(self, path: str, *, lock: str) -> None:
        again = "the index was damaged ({}) and is begun again from the documents"
        super().__init__(path, lock=lock, schema=_SQL["schema"], version=FORMAT, wal=True, again=again)

    def begin(self, made_for: str, *, anew: bool = False) -> None:
        self._made_for = made_for
        if anew:
            self.begin_again()
        if self.run(lambda db: db.execute("select made_for from made").fetchone()) != (made_for,):
            self.note("the index is being rebuilt for another model or cutting")
            self.begin_again()

    def known(self) -> dict[str, str]:
        return self.run(lambda db: dict(db.execute(_SQL["known"])))

    def since(self, mark: Mark, made: Callable[..., Any] = PartRow) -> Changes:
        def read(db: sqlite3.Connection) -> Changes:
            epoch, made_for, generation = db.execute("select epoch, made_for, generation from made").fetchone()
            if (epoch, generation) == (mark.epoch, mark.generation):
                return Changes(mark=mark)
            part, document = (mark.part, mark.document) if epoch == mark.epoch else (0, 0)
            documents = [DocumentRow(*row) for row in db.execute(_SQL["new_documents"], (document,))]
            parts = [made(*_sound(row, 2)) for row in db.execute(_SQL["new_parts"], (part,))]
            alive = dict(db.execute("select id, document from part"))
            seen = max((part, *alive)), max((document, *(row.id for row in documents)))
            now = Mark(epoch, made_for, generation, *seen)
            return Changes(mark=now, alive=alive, documents=documents, parts=parts)

        return self.run(read)

    def put(self, epoch: str, documents: Sequence[Writing]) -> list[str]:
        def write(db: sqlite3.Connection) -> list[str]:
            if db.execute("select epoch from made").fetchone()[0] != epoch:
                return [one.row.path for one in documents]
            refused = [one.row.path for one in documents if _parts_of(db, one.row.path) != list(one.before)]
            changed = [_replace(db, one) for one in documents if one.row.path not in refused]
            if any(changed):
                db.execute(_SQL["next"])
            return refused

        return self.run(write, writing=True)

    def drop(self, paths: Collection[str]) -> int:
        def write(db: sqlite3.Connection) -> int:
            gone = sum(_erase(db, path) for path in paths)
            if gone:
                db.execute(_SQL["next"])
            return gone

        return self.run(write, writing=True) if paths else 0

    def shown(self, parts: Collection[int]) -> dict[int, ShownPart]:
        def read(db: sqlite3.Connection) -> dict[int, ShownPart]:
            rows = db.execute(_SQL["shown"], (json.dumps(list(parts)),))
            return {key: ShownPart(*shown) for key, *shown in (_sound(row, 2) for row in rows)}

        return self.run(read)

    def _look(self, db: sqlite3.Connection) -> None:
        for row in db.execute(_SQL["new_parts"], (0,)):
            _sound(row, 2)
        for (key,) in db.execute("select id from part").fetchall():
            _sound(db.execute(_SQL["shown"], (f"[{key}]",)).fetchone(), 2)


def _parts_of(db: sqlite3.Connection, path: str) -> list[int]:
    return [row[0] for row in db.execute(_SQL["parts_of"], (path,))]


def _replace(db: sqlite3.Connection, one: Writing) -> bool:
    """Writes a document; whether a row changed that a search would see."""
    if one.kept:
        db.execute("update document set digest = ? where path = ?", (one.digest, one.row.path))
        db.executemany("delete from part where id = ?", ((key,) for key in one.before[one.kept :]))
    else:
        _erase(db, one.row.path)
        db.execute(_SQL["put_document"], (*one.row[1:], one.digest))
    key = db.execute("select id from document where path = ?", (one.row.path,)).fetchone()[0]
    rows = [(key, _sum(p.packed, p.vectors), p.packed, p.vectors, _sum(p.said), p.said) for p in one.parts]
    db.executemany(_SQL["put_part"], rows)
    return bool(one.parts or one.kept < len(one.before))


def _erase(db: sqlite3.Connection, path: str) -> int:
    db.executemany("delete from part where id = ?", ((key,) for key in _parts_of(db, path)))
    return db.execute("delete from document where path = ?", (path,)).rowcount


def _sum(*parts: bytes | str) -> int:
    return zlib.crc32(b"".join(part.encode() if isinstance(part, str) else part for part in parts))


def _sound(row: tuple[Any, ...], first: int) -> tuple[Any, ...]:
    """A row without its last column, if that is the sum of what stands before it, from column `first` on."""
    with suppress(TypeError, ValueError):
        if _sum(*row[first:-1]) == row[-1]:
            return row[:-1]
    raise sqlite3.DatabaseError("a row is not what was put in")


class CheckedIndex:
    """A derived SQLite file: on any doubt it is deleted, and made again when somebody asks for it."""

    def __init__(self, name: str, what: str, *, why: Callable[[], str], remove: Callable[[str], object]) -> None:
        self._name, self._what, self._why, self._remove = name, what, why, remove

    def check(self) -> Iterator[Remark]:
        if why := self._why():
            said = f"{self._what} will not do: {why}."
            yield Remark(name="index-damaged", about=self._name, message=said)

    def mend(self, found: Remark) -> str:
        for end in _ENDINGS:
            self._remove(f"{self._name}{end}")
        return "deleted; it is made again when somebody searches"
