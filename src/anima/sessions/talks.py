"""The full-text index of transcripts, one SQLite file: which entry of which session holds which words.

Promise: derived from the transcripts; of a session that has grown only what is new is put in. A file that is missing,
damaged or of another version is begun again, and nothing here raises because of it. Agent, layer and scope are filtered
in the query, and the order of hits depends on nothing that a hidden session could change. Words are cut by
`index.words`; a query is data. What is dropped leaves no word in the file. Safe to share by threads and processes.
Not here: parsing transcripts, knowing which have changed, previews (transcript).
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import sqlite3
import stat
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, TypeVar

from anima.search.units import CUTTING
from anima.text.words import ask, cut

FORMAT = 1
VERSION = zlib.crc32(f"{FORMAT} {CUTTING}".encode()) & 0x7FFFFFFF
MAX_WORDS = 32  # of a query
MAX_QUERY = 1000
_APPLICATION = 0x616E7461
_PRAGMAS = (
    "pragma busy_timeout = 10000",
    "pragma journal_mode = truncate",
    "pragma synchronous = normal",
    "pragma secure_delete = on",
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma temp_store = memory",
    "pragma cache_size = -32768",
)
# Every word of ours is one word to SQLite: any letter beyond ASCII belongs to one, and so do these signs. The words are
# not stored beside their postings: cutting an entry's text again gives them, when they have to go.
_TABLES = f"""
create table made(epoch text not null);
insert into made values(hex(randomblob(8)));
create table session(
    id integer primary key, place text not null unique, name text not null, agent text not null, layer text not null,
    scope text not null, inode integer not null, size integer not null, mtime integer not null,
    offset integer not null, lines integer not null, entries integer not null);
create table turn(
    id integer primary key, session integer not null, entry integer not null, time text not null, role text not null,
    source text not null);
create index turn_session on turn(session, id);
create table spoken(id integer primary key, text text not null);
create virtual table words using fts5(text, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_#'");
pragma application_id = {_APPLICATION};
pragma user_version = {VERSION};
"""
_KNOWN = "select place, inode, size, mtime, offset, lines, entries from session"
_PUT_SESSION = """
    insert into session(place, name, agent, layer, scope, inode, size, mtime, offset, lines, entries)
    values(:place, :name, :agent, :layer, :scope, :inode, :size, :mtime, :offset, :lines, :entries)
    on conflict(place) do update set agent = excluded.agent, layer = excluded.layer, scope = excluded.scope,
        inode = excluded.inode, size = excluded.size, mtime = excluded.mtime, offset = excluded.offset,
        lines = excluded.lines, entries = excluded.entries
    returning id
"""
_MATCHING = """
    from words cross join turn on turn.id = words.rowid
    where words match :query and turn.session in (
        select id from session where agent = :agent
        and (:any_layer or layer in (select value from json_each(:layers)))
        and (:any_scope or scope in (select value from json_each(:scopes))))
"""
_HOW_MANY = f"select count(*) {_MATCHING}"
_SHOWN = """
    select session.place, session.name, turn.entry, turn.time, turn.role, turn.source, spoken.text
    from top cross join turn on turn.id = top.id cross join session on session.id = turn.session
    cross join spoken on spoken.id = top.id order by top.score desc, turn.time desc, turn.id desc
"""
_ALL = f"""
    with top as materialized (
        select turn.id as id, 0 as score {_MATCHING} order by turn.time desc, turn.id desc limit :limit)
    {_SHOWN}
"""

Answer = TypeVar("Answer")
# What a damaged file can bring about, texts that are no text among it; and the codes that say nothing about the file.
_TROUBLE = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, OverflowError, OSError)
_PASSING = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
    }
)


class Mark(NamedTuple):
    """How far a transcript is in the index, and which file it was then."""

    inode: int = 0
    size: int = 0
    mtime: int = 0
    offset: int = 0
    lines: int = 0
    entries: int = 0


class Talk(NamedTuple):
    """A session as the index takes it. `place` is its file beneath the home, which no two sessions share."""

    place: str
    name: str
    agent: str
    layer: str
    scope: str


class Said(NamedTuple):
    """An entry as the index takes it."""

    entry: int
    time: str
    role: str
    source: str
    text: str


class Part(NamedTuple):
    """Some entries of a session, and how far it was and is then in the index."""

    talk: Talk
    said: Sequence[Said]
    since: Mark
    now: Mark


class Heard(NamedTuple):
    """An entry that a search found."""

    place: str
    session: str
    entry: int
    time: str
    role: str
    source: str
    text: str


class Talks:
    """The index in one file. Lives as long as its home."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._notes: list[str] = []

    def known(self) -> dict[str, Mark] | None:
        """How far each session is in, by its place; None when there is no index to be had."""

        def read(db: sqlite3.Connection) -> dict[str, Mark]:
            return {_sound(row[:1], str)[0]: Mark(*_sound(row[1:], int)) for row in db.execute(_KNOWN)}

        return self._tried(read)

    def mark(self, place: str) -> Mark | None:
        """How far one session is in; None when there is no index to be had."""
        return self._tried(lambda db: _mark_of(db, place))

    def epoch(self) -> str:
        """Another word whenever the index was begun again, by whomever; "" when there is none to be had."""
        return self._tried(lambda db: str(db.execute("select epoch from made").fetchone()[0])) or ""

    def put(self, parts: Sequence[Part]) -> int | None:
        """Takes entries in, in one transaction; how many, or None when that failed. A part is left out when its session
        is no longer at `since`: somebody else was faster."""
        words = [[_words(one.text) for one in part.said] for part in parts]

        def write(db: sqlite3.Connection) -> int:
            return sum(_put(db, part, cut_words) for part, cut_words in zip(parts, words, strict=True))

        return self._tried(write, writing=True) if parts else 0

    def drop(self, places: Iterable[str]) -> int:
        """Forgets sessions, and leaves none of their words in the file; how many there were."""
        wanted = sorted(set(places))

        def write(db: sqlite3.Connection) -> int:
            gone = sum(_erased(db, place) for place in wanted)
            if gone:
                db.execute("insert into words(words) values('optimize')")
            return gone

        return self._tried(write, writing=True) or 0 if wanted else 0

    def search(
        self, query: str, *, agent: str, layers: Collection[str] | None, scopes: Collection[str] | None, limit: int
    ) -> tuple[Heard, ...] | None:
        """The entries that hold every word of the query, the latest first; where none does, those that hold some, the
        rarer words first. None when the index cannot say: it is not to be had, or the query has no words in it."""
        words = ask(query[:MAX_QUERY])[:MAX_WORDS]
        if not words:
            return None
        seen = {
            "agent": agent,
            "limit": max(0, limit),
            "any_layer": layers is None,
            "any_scope": scopes is None,
            "layers": _listed(layers),
            "scopes": _listed(scopes),
        }

        def read(db: sqlite3.Connection) -> tuple[Heard, ...]:
            rows = db.execute(_ALL, seen | {"query": " AND ".join(map(_quoted, words))}).fetchall()
            if not rows and len(words) > 1:
                rows = _some(db, words, seen)
            return tuple(Heard(*_sound(row[:2], str), *_sound(row[2:3], int), *_sound(row[3:], str)) for row in rows)

        return self._tried(read, again=False)

    def notes(self) -> tuple[str, ...]:
        """What a person should know, such as that the index was begun again. Each is said once."""
        with self._mutex:
            said, self._notes = tuple(self._notes), []
        return said

    def close(self) -> None:
        with self._mutex:
            self._shut()

    # -- the file -------------------------------------------------------------------------------------------------------

    def _tried(
        self, work: Callable[[sqlite3.Connection], Answer], *, writing: bool = False, again: bool = True
    ) -> Answer | None:
        """What `work` gives, in one transaction; None when the file will not do. A damaged file is begun again, and
        `work` done `again` on the new one if that makes sense."""
        with self._mutex:
            try:
                return self._done(work, writing)
            except _TROUBLE as error:
                if not self._begun_again(error):
                    self._give_up(error)
                    again = False
            try:
                return self._done(work, writing) if again else None
            except _TROUBLE as error:
                self._give_up(error)
        return None

    def _done(self, work: Callable[[sqlite3.Connection], Answer], writing: bool) -> Answer:
        with self._alone() if writing else nullcontext():
            db = self._opened()
            db.execute("begin immediate" if writing else "begin")
            try:
                found = work(db)
                db.execute("commit")
            finally:
                if db.in_transaction:
                    db.execute("rollback")
        return found

    def _give_up(self, error: Exception) -> None:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        self._note(f"the index of transcripts cannot be used ({why}); they are searched as they are")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Whoever writes, or removes a damaged file, is alone: a journal must never meet another file than its own."""
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _opened(self) -> sqlite3.Connection:
        """The connection, anew when the file at our path is another one than we opened."""
        if self._db is not None and _inode(self._path) == self._inode:
            return self._db
        self._shut()
        self._make()
        db = sqlite3.connect(self._path, timeout=10.0, isolation_level=None, check_same_thread=False)
        self._db, self._inode = db, _inode(self._path)
        for pragma in _PRAGMAS:
            db.execute(pragma)
        _prepare(db)
        return db

    def _make(self) -> None:
        """The file, ours alone. A link in its place is not followed but removed, as is anything that is no file."""
        try:
            found = os.lstat(self._path)
            if not stat.S_ISREG(found.st_mode):
                os.unlink(self._path)
        except FileNotFoundError:
            pass
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        os.fchmod(fd, 0o600)
        os.close(fd)

    def _begun_again(self, error: Exception) -> bool:
        """Removes a damaged file. One that is only busy, or on a disk that is full, is left alone."""
        code = getattr(error, "sqlite_errorcode", None)
        if (
            isinstance(error, OSError)
            or (code is not None and code & 0xFF in _PASSING)
            or "no such module" in str(error)
        ):
            return False
        self._shut()
        with self._alone():
            for ending in ("", "-journal", "-wal", "-shm"):
                try:
                    os.unlink(self._path + ending)
                except OSError:
                    pass
        self._note(f"the index of transcripts was damaged ({error}) and is made again")
        return True

    def _shut(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


def _prepare(db: sqlite3.Connection) -> None:
    """Tables in a new file; an error for a file that is not ours, or of another version."""
    version = _pragma(db, "user_version")
    if version == 0 and db.execute("select count(*) from sqlite_schema").fetchone()[0] == 0:
        db.execute("begin immediate")
        try:
            if _pragma(db, "user_version") == 0:
                for statement in _TABLES.split(";\n"):
                    db.execute(statement)
            db.execute("commit")
        finally:
            if db.in_transaction:
                db.execute("rollback")
    elif version != VERSION or _pragma(db, "application_id") != _APPLICATION:
        raise sqlite3.DatabaseError("it was made by another version")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])


def _mark_of(db: sqlite3.Connection, place: str) -> Mark:
    row = db.execute(f"{_KNOWN} where place = ?", (place,)).fetchone()
    return Mark(*_sound(row[1:], int)) if row else Mark()


def _put(db: sqlite3.Connection, part: Part, words: Sequence[str]) -> int:
    if _mark_of(db, part.talk.place) != part.since:
        return 0
    said, number = part.said, db.execute(_PUT_SESSION, part.talk._asdict() | part.now._asdict()).fetchone()[0]
    first = db.execute("select coalesce(max(id), 0) + 1 from turn").fetchone()[0]
    turns = ((id, number, one.entry, one.time, one.role, one.source) for id, one in enumerate(said, first))
    db.executemany("insert into turn values(?, ?, ?, ?, ?, ?)", turns)
    db.executemany("insert into spoken values(?, ?)", ((id, one.text) for id, one in enumerate(said, first)))
    db.executemany("insert into words(rowid, text) values(?, ?)", enumerate(words, first))
    return len(said)


def _sound(values: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
    """The values, if they are what was put in; in a damaged file a number can have become a text."""
    if not all(isinstance(value, kind) for value in values):
        raise sqlite3.DatabaseError("a row is not what was put in")
    return values


def _erased(db: sqlite3.Connection, place: str) -> int:
    row = db.execute("select id from session where place = ?", (place,)).fetchone()
    if row is None:
        return 0
    ids = "select id from turn where session = ?"
    for id, text in db.execute(f"select id, text from spoken where id in ({ids})", row).fetchall():
        db.execute("insert into words(words, rowid, text) values('delete', ?, ?)", (id, _words(text)))
    db.execute(f"delete from spoken where id in ({ids})", row)
    db.execute("delete from turn where session = ?", row)
    db.execute("delete from session where id = ?", row)
    return 1


def _some(db: sqlite3.Connection, words: Sequence[str], seen: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Entries with any of the words. A word weighs the more, the fewer entries hold it among those that may be seen."""
    counts = {word: db.execute(_HOW_MANY, seen | {"query": _quoted(word)}).fetchone()[0] for word in words}
    present = {word: number for word, number in counts.items() if number}
    if not present:
        return []
    most, given = sum(present.values()), dict(seen)
    for n, (word, number) in enumerate(present.items()):
        given |= {f"word{n}": _quoted(word), f"weight{n}": math.log(1 + most / number)}
    parts = [
        f"select turn.id as id, turn.time as time, :weight{n} as weight {_MATCHING.replace(':query', f':word{n}')}"
        for n in range(len(present))
    ]
    top = f"select id, sum(weight) as score from ({' union all '.join(parts)}) group by id order by score desc, time desc, id desc"
    return db.execute(f"with top as materialized ({top} limit :limit) {_SHOWN}", given).fetchall()


def _words(text: str) -> str:
    return " ".join(cut(text))


def _quoted(word: str) -> str:
    """A word as FTS5 takes it for nothing but a word."""
    return '"' + word.replace('"', "") + '"'


def _listed(names: Collection[str] | None) -> str:
    return json.dumps(sorted(names or ()))


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
