"""The full-text index of transcripts, one SQLite file: which entry of which session holds which words.

Promise: derived from the transcripts; of a session that has grown only what is new is put in. A file that is missing,
damaged or of another version is begun again, and nothing here raises because of it. Agent, layer and scope are filtered
in the query, and the order of hits depends on nothing that a hidden session could change. Words are cut by
`index.words`; a query is data. What is dropped leaves no word in the file. Safe to share by threads and processes.
Not here: parsing transcripts, knowing which have changed, previews (transcript).
"""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from anima.search.sqlite import SqliteFile
from anima.search.tables import IndexDown
from anima.search.units import CUTTING
from anima.text.words import ask, cut

FORMAT = 1
VERSION = zlib.crc32(f"{FORMAT} {CUTTING}".encode()) & 0x7FFFFFFF
MAX_WORDS = 32  # of a query
MAX_QUERY = 1000
# Every word of ours is one word to SQLite: any letter beyond ASCII belongs to one, and so do these signs. The words are
# not stored beside their postings: cutting an entry's text again gives them, when they have to go.
_TABLES = """
create table made(epoch text not null);
create table session(
    id integer primary key, place text not null unique, name text not null, agent text not null, layer text not null,
    scope text not null, inode integer not null, size integer not null, mtime integer not null,
    offset integer not null, lines integer not null, entries integer not null);
create table turn(
    id integer primary key, session integer not null, entry integer not null, time text not null, role text not null,
    source text not null);
create index turn_session on turn(session, id);
create table spoken(id integer primary key, text text not null);
create virtual table words using fts5(text, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_#'")
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
        self._file = SqliteFile(
            path,
            lock=f"{path}.lock",
            schema=_TABLES,
            version=VERSION,
            wal=False,
            again="the index of transcripts was damaged ({}) and is made again",
            fill=lambda db: db.execute("insert into made values(hex(randomblob(8)))"),
        )
        self.notes, self.check = self._file.notes, self._file.check

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

    def close(self) -> None:
        self._file.close()

    def _tried(
        self, work: Callable[[sqlite3.Connection], Answer], *, writing: bool = False, again: bool = True
    ) -> Answer | None:
        """What `work` gives, in one transaction; None when the file will not do. A damaged file is begun again, and
        `work` done `again` on the new one if that makes sense."""
        try:
            return self._file.write(work) if writing else self._file.read(work, again=again)
        except IndexDown as down:
            self._file.note(f"the index of transcripts cannot be used ({down}); they are searched as they are")
            return None


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
