"""The index of transcripts, one SQLite file: the list of sessions, and which entry of which session holds which words.

Promise: derived from the transcripts and never more than late; of a session that has grown only what is new is read, and
what was forgotten or removed leaves no word in the file. A file that is missing, damaged or of another version is begun
again; where none can be had, transcripts are listed and searched as they are. Whose a session is, is filtered in the
query, and no order depends on what a hidden session holds. Safe to share by threads and processes.
Not here: who may ask (transcripts), how lines are read (replay).
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import unicodedata
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any, Literal, NamedTuple, TypeVar

from anima.errors import HomeError
from anima.search.tables import IndexDown, SqliteFile
from anima.search.units import CUTTING
from anima.sessions.record import Redact, stamp
from anima.sessions.replay import (
    START,
    Asker,
    Close,
    Count,
    Header,
    Placed,
    Turn,
    agent_of,
    count,
    header_of,
    last_record,
    scan,
    time_of,
)
from anima.store import Logs, LogState, Readable
from anima.store.logs import BLOCK
from anima.text.words import ask, cut, fold

NAME = "talks.sqlite"
FORMAT = 4
SUMMARY = 80
INDEXED = 200_000  # characters of an entry whose words are in the index
MAX_WORDS = 32  # of a query
MAX_QUERY = 1000
_BATCH = 1000  # entries that are put in at a time
_MANY = 200  # sessions at a time
_LEAST_STEM = 4
_SOUGHT = 16  # words of a query for which a preview is looked for
_BEGINNING = 200  # records in which a first word of the user is looked for
# Every word of ours is one word to SQLite: any letter beyond ASCII belongs to one, and so do these signs. The words are
# not stored beside their postings: cutting an entry's text again gives them, when they have to go.
_TABLES = """
create table made(epoch text not null);
create table session(
    id integer primary key, folder text not null, name text not null, summary text not null, updated text not null,
    started text not null, entries integer not null, bytes integer not null, lines integer not null,
    agent text not null, source text not null, scope text not null, sender text, layer text not null, persona text,
    parent text, closed integer not null, of text not null, size integer not null, version text not null,
    heard text not null default '', heard_bytes integer not null default 0, heard_lines integer not null default 0,
    heard_entries integer not null default 0, unique(folder, name));
create index session_version on session(folder, name, version);
create index session_latest on session(folder, updated, name);
create table turn(
    id integer primary key, session integer not null, entry integer not null, time text not null, role text not null,
    source text not null);
create index turn_session on turn(session, id);
create table spoken(id integer primary key, text text not null);
create virtual table words using fts5(text, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_#'")
"""
_LISTED = "name, summary, updated, started, entries, bytes, lines, agent, source, scope, sender, layer, persona, parent, closed"
_SEEN = """
    folder = :folder and (:agent is null or agent = :agent)
    and (:any_layer or layer in (select value from json_each(:layers)))
    and (:any_scope or scope in (select value from json_each(:scopes)))
"""
_ROWS = f"select {_LISTED} from session where {_SEEN} order by updated desc, name desc limit :limit"
_COUNT = f"select count(*) from session where {_SEEN}"
_PUT = f"""
    insert into session(folder, {_LISTED}, of, size, version) values({", ".join("?" * 19)})
    on conflict(folder, name) do update set
    {", ".join(f"{name} = excluded.{name}" for name in [*_LISTED.split(", ")[1:], "of", "size", "version"])}
"""
_MATCHING = f"""
    from words cross join turn on turn.id = words.rowid
    where words match :query and turn.session in (select id from session where {_SEEN})
"""
_HOW_MANY = f"select count(*) {_MATCHING}"
_SHOWN = """
    select session.name, turn.entry, turn.time, turn.role, turn.source, spoken.text
    from top cross join turn on turn.id = top.id cross join session on session.id = turn.session
    cross join spoken on spoken.id = top.id order by top.score desc, turn.time desc, turn.id desc
"""
_ALL = f"""
    with top as materialized (
        select turn.id as id, 0 as score {_MATCHING} order by turn.time desc, turn.id desc limit :limit)
    {_SHOWN}
"""

T = TypeVar("T")


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


class Rows(tuple[Listed, ...]):
    """Some rows of the list, of `total` there are."""

    total: int = 0


_MAYBE = (str, type(None))
_SHAPES = frozenset(product(*[[str]] * 4, *[[int]] * 3, *[[str]] * 3, _MAYBE, [str], _MAYBE, _MAYBE, [int]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """An entry that was found, with a line of its text around the first word that was asked for."""

    session_id: str
    entry: int
    timestamp: str
    role: str
    source_plugin: str
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """What a search gave, by which means, and what a person should know of them."""

    hits: tuple[Quote, ...]
    backend: Literal["fts5", "plain"]
    notes: tuple[str, ...] = ()


class _Mark(NamedTuple):
    """How far a transcript's words are in the index, and of which one."""

    of: str
    bytes: int
    lines: int
    entries: int


class _Part(NamedTuple):
    """Some entries of a session, how far it was and is then in the index, and its version once all are in. A row is what
    the tables hold of an entry: number, time, role and source, its text, and the words of that."""

    session: str
    rows: Sequence[tuple[int, str, str, str, str, str]]
    since: _Mark
    now: _Mark
    heard: str


class TranscriptIndex:
    """The list of sessions and their words. Lives as long as its home.

    `make` makes the file's folder; it is called when there is something to put in.
    """

    def __init__(self, path: str, *, redact: Redact, make: Callable[[], object] = lambda: None) -> None:
        self._redact, self._make = redact, make
        self._file = SqliteFile(
            path,
            lock=f"{path}.lock",
            schema=_TABLES,
            version=zlib.crc32(f"{FORMAT} {CUTTING}".encode()) & 0x7FFFFFFF,
            wal=False,
            again="the index of transcripts was damaged ({}) and is made again",
            fill=lambda db: db.execute("insert into made values(hex(randomblob(8)))"),
        )
        # The epoch of the file and the versions of the transcripts when list and words last were up to date, by folder.
        self._listed: dict[str, tuple[str, dict[str, str]]] = {}
        self._heard: dict[str, tuple[str, dict[str, str]]] = {}
        self.check, self.close = self._file.check, self._file.close

    def begin_again(self) -> None:
        """An index without anything, in a new file, if there was one."""
        if self._file.exists:
            self._file.begin_again()

    # -- the list -------------------------------------------------------------------------------------------------------

    def rows(self, logs: Logs, asker: Asker, limit: int | None = None) -> Rows:
        """The sessions an asker may see, the latest first."""
        self.refresh(logs)
        if not self._file.exists and not logs.versions():
            return Rows()
        seen = _asked(logs, asker, -1 if limit is None else max(0, limit))

        def read(db: sqlite3.Connection) -> Rows:
            found = Rows(_listed(db.execute(_ROWS, seen)))
            found.total = len(found) if limit is None else db.execute(_COUNT, seen).fetchone()[0]
            return found

        found = self._tried(read)
        return self._rows_as_they_are(logs, asker, limit) if found is None else found

    def get(self, logs: Logs, id: str) -> Listed | None:
        """One session, up to date; None when there is none."""
        state = logs.look(id)
        if state is None:
            return None
        self._make()
        at = (logs.name, id, state.version)
        sql = f"select {_LISTED} from session where folder = ? and name = ? and version = ?"
        found = self._tried(lambda db: _listed(db.execute(sql, at)))
        if not found:
            self._take_rows(logs, [id])
            found = self._tried(lambda db: _listed(db.execute(sql, at)))
        return found[0] if found else self._summed(logs, state, None)

    def refresh(self, logs: Logs) -> bool:
        """Brings the list up to date, by the transcripts that have changed; whether it is."""
        there = logs.versions()
        if not there and not self._file.exists:
            return True
        self._make()
        epoch = self._tried(lambda db: str(db.execute("select epoch from made").fetchone()[0]))
        if epoch is None or self._listed.get(logs.name) == (epoch, there):
            return epoch is not None
        sql = "select name, version from session where folder = ?"
        known = self._tried(lambda db: dict(db.execute(sql, (logs.name,)).fetchall())) or {}
        changed = [id for id, version in there.items() if known.get(id) != version]
        is_done = self._take_rows(logs, changed, gone=known.keys() - there.keys())
        if is_done:
            self._listed[logs.name] = (epoch, there)
        return is_done

    def _take_rows(self, logs: Logs, changed: Sequence[str], gone: Collection[str] = ()) -> bool:
        if not changed and not gone:
            return True
        states = [state for id in changed if (state := logs.look(id)) is not None]
        held = f"select {_LISTED}, of, size from session where folder = ? and name = ?"

        def write(db: sqlite3.Connection) -> bool:
            erased = sum(_erased(db, logs, id, whole=True) for id in gone)
            for state in states:
                row, before = db.execute(held, (logs.name, state.id)).fetchone(), None
                if row and row[-2] == state.of and row[-1] < state.size:  # the one it was, with more in it
                    before = _listed([row[:-2]])[0]
                elif row:
                    erased += _erased(db, logs, state.id, whole=False)
                summed = self._summed(logs, state, before)
                db.execute(_PUT, (logs.name, *summed, state.of, state.size, state.version))
            if erased:
                db.execute("insert into words(words) values('optimize')")
            return True

        return self._tried(write, writing=True) or False

    def _summed(self, logs: Logs, state: LogState, before: Listed | None) -> Listed:
        """A row made from a transcript, by the bytes it has grown by where that is enough."""
        try:
            with logs.open(state.id) as file:
                small = state.size <= BLOCK
                whole: Readable = _Bytes(file.read(0, state.size)) if small else file
                return self._row(whole, agent_of(logs.name), state, before)
        except HomeError:  # one that cannot be opened is in the list all the same
            return self._row(_Bytes(b""), "", state, None)

    def _row(self, file: Readable, agent: str, state: LogState, before: Listed | None) -> Listed:
        since = before.known if before else START
        end = count(file, since=since)
        # Without a readable header it is nobody's.
        header, last = header_of(file, agent) or Header(id="", timestamp="", agent_id=""), last_record(file, end)
        started = time_of(header.timestamp)
        written = time_of(getattr(last, "timestamp", "")) or state.time
        latest = max(filter(None, [written, started, time_of(before.updated_at) if before else None]))
        return Listed(
            id=state.id,
            summary=(before.summary if before else "") or self._summary(file, since),
            updated_at=stamp(latest),
            started_at=stamp(started or latest),
            entries=end.entries,
            bytes=end.offset,
            lines=end.lines,
            agent_id=header.agent_id,
            source_plugin=header.source_plugin,
            scope=header.scope or "",
            sender_id=header.sender_id,
            layer=header.layer or "",
            persona=header.persona,
            parent=header.parent,
            closed=isinstance(last, Close),
        )

    def _summary(self, file: Readable, since: Count) -> str:
        """The first words of the user, on one line."""
        for item in islice(scan(file, since=since), _BEGINNING):
            if isinstance(item, Placed) and isinstance(item.record, Turn) and item.record.role == "user":
                text = self._redact(item.record.content.lstrip()[:4000])[0][: 4 * SUMMARY]
                words = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
                return words if len(words) <= SUMMARY else words[: SUMMARY - 1] + "…"
        return ""

    def _rows_as_they_are(self, logs: Logs, asker: Asker, limit: int | None) -> Rows:
        """The list where no index can be had: every transcript is read."""
        states = (logs.look(id) for id in logs.versions())
        rows = [self._summed(logs, state, None) for state in states if state]
        seen = [row for row in rows if asker.sees_row(row.agent_id, row.layer, row.scope)]
        found = Rows(sorted(seen, key=lambda row: (row.updated_at, row.id), reverse=True)[:limit])
        found.total = len(seen)
        return found

    # -- words ----------------------------------------------------------------------------------------------------------

    def catch_up(self, logs: Logs) -> int:
        """Brings the words up to date, so much at a time that nobody waits long; how many entries came in."""
        sql = """select name, of, heard_bytes, heard_lines, heard_entries from session
                 where folder = ? and heard != version"""
        if not self.refresh(logs) or (now := self._listed.get(logs.name)) is None or self._heard.get(logs.name) == now:
            return 0
        late = self._tried(lambda db: db.execute(sql, (logs.name,)).fetchall()) or ()
        done, batch = list[int | None](), list[_Part]()
        for part in chain.from_iterable(_parts(logs, name, _Mark(*mark)) for name, *mark in late):
            batch.append(part)
            if sum(len(each.rows) for each in batch) >= _BATCH or len(batch) >= _MANY:
                done.append(self._put(logs, batch))
                batch = []
        done.append(self._put(logs, batch))
        if None not in done:
            self._heard[logs.name] = now
        return sum(number or 0 for number in done)

    def _put(self, logs: Logs, parts: Sequence[_Part]) -> int | None:
        """Takes entries in, in one transaction; None when that failed."""
        return self._tried(lambda db: sum(_put_part(db, logs, part) for part in parts), writing=True) if parts else 0

    def find(self, logs: Logs, query: str, asker: Asker, *, limit: int = 50, max_chars: int = 200) -> Quotes:
        """The entries that hold every word of the query, the latest first; where none does, those that hold some, the
        rarer words first. Where the index cannot say, or the query has no words, entries are looked through for the
        query as it is written. Catch up first."""
        words = ask(query[:MAX_QUERY])[:MAX_WORDS]
        seen = _asked(logs, asker, max(0, limit))

        def read(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = db.execute(_ALL, seen | {"query": " AND ".join(map(_quoted, words))}).fetchall()
            return rows if rows or len(words) == 1 else _some(db, words, seen)

        found = self._tried(read, again=False) if words and self._file.exists else None
        if found is None:
            hits = tuple(self._plainly(query, logs, asker, limit, max_chars))
            # An index is made with the first transcript, which may be one that the asker must not know of.
            as_if_made = bool(words) and not hits and not self._file.exists
            return Quotes(hits=hits, backend="fts5" if as_if_made else "plain", notes=self._file.notes())
        hits = tuple(
            _mention(name, entry, time, role, source, preview(text, query, max_chars=max_chars))
            for name, entry, time, role, source, text in found
        )
        return Quotes(hits=hits, backend="fts5", notes=self._file.notes())

    def _plainly(self, query: str, logs: Logs, asker: Asker, limit: int, max_chars: int) -> Iterator[Quote]:
        """Entries that hold every part of the query as it is written, whatever case or accents; latest session first."""
        parts = [_bare(part) for part in query[:MAX_QUERY].split()]
        for row in self.rows(logs, asker) if parts else ():
            found = _holding(logs, row.id, asker, parts, limit)
            limit -= len(found)
            for turn in reversed(found):
                shown = preview(turn.words, query, max_chars=max_chars)
                yield _mention(row.id, turn.number, _time(turn), turn.role, turn.source_plugin, shown)
            if limit <= 0:
                return

    def _tried(self, work: Callable[[sqlite3.Connection], T], *, writing: bool = False, again: bool = True) -> T | None:
        """What `work` gives, in one transaction; None when the file will not do. A damaged file is begun again, and
        `work` done `again` on the new one if that makes sense."""
        try:
            return self._file.run(work, writing=writing, again=again)
        except IndexDown as down:
            self._file.note(f"the index of transcripts cannot be used ({down}); they are searched as they are")
            return None


# -- rows -----------------------------------------------------------------------------------------------------------------


def _asked(logs: Logs, asker: Asker, limit: int) -> dict[str, Any]:
    return {
        "folder": logs.name,
        "agent": asker.agent,
        "any_layer": asker.layers is None,
        "any_scope": asker.scopes is None,
        "layers": json.dumps(sorted(asker.layers or ())),
        "scopes": json.dumps(sorted(asker.scopes or ())),
        "limit": limit,
    }


def _listed(rows: Iterable[tuple[Any, ...]]) -> Sequence[Listed]:
    """Rows of the table, if they are what was put in; in a damaged file a number can have become a text."""
    found = list(rows)
    if not {tuple(map(type, row)) for row in found} <= _SHAPES:
        raise sqlite3.DatabaseError("a row is not what was put in")
    return tuple(Listed._make((*row[:-1], bool(row[-1]))) for row in found)


def _erased(db: sqlite3.Connection, logs: Logs, name: str, *, whole: bool) -> int:
    """Takes a session's words out, or the `whole` session; how many there were."""
    row = db.execute("select id from session where folder = ? and name = ?", (logs.name, name)).fetchone()
    if row is None:
        return 0
    ids = "select id from turn where session = ?"
    for id, text in db.execute(f"select id, text from spoken where id in ({ids})", row).fetchall():
        db.execute("insert into words(words, rowid, text) values('delete', ?, ?)", (id, _words(text)))
    db.execute(f"delete from spoken where id in ({ids})", row)
    db.execute("delete from turn where session = ?", row)
    if whole:
        db.execute("delete from session where id = ?", row)
    else:
        db.execute(
            "update session set heard = '', heard_bytes = 0, heard_lines = 0, heard_entries = 0 where id = ?", row
        )
    return 1


class _Bytes:
    """A small file, read once."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self) -> int:
        return len(self._data)

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]


# -- words ----------------------------------------------------------------------------------------------------------------


def _parts(logs: Logs, name: str, mark: _Mark) -> Iterator[_Part]:
    """What of a transcript is not in the index yet."""
    try:
        with logs.open(name) as file:
            state, rows = file.state(), list[tuple[int, str, str, str, str, str]]()
            if state.of != mark.of:
                return
            at = Count(mark.bytes, mark.lines, mark.entries)
            for item in scan(file, since=at) if header_of(file, "any") else ():  # without a header nobody finds it
                if not isinstance(item, Placed):
                    continue
                at = item.after
                if isinstance(turn := item.record, Turn):
                    text = turn.words[:INDEXED]
                    rows.append((turn.number, _time(turn), turn.role, turn.source_plugin, text, _words(text)))
                if len(rows) >= _BATCH:
                    now = _Mark(mark.of, *at)
                    yield _Part(name, rows, mark, now, "")
                    mark, rows = now, []
            yield _Part(name, rows, mark, _Mark(mark.of, *at), state.version)
    except HomeError:
        return


def _put_part(db: sqlite3.Connection, logs: Logs, part: _Part) -> int:
    """How many entries were taken in: none when the session is no longer at `since`, because somebody else was faster."""
    sql = "select of, heard_bytes, heard_lines, heard_entries, id from session where folder = ? and name = ?"
    row = db.execute(sql, (logs.name, part.session)).fetchone()
    if row is None or _Mark(*row[:4]) != part.since:
        return 0
    number, first = row[4], db.execute("select coalesce(max(id), 0) + 1 from turn").fetchone()[0]
    db.execute(
        "update session set heard = ?, heard_bytes = ?, heard_lines = ?, heard_entries = ? where id = ?",
        (part.heard, *part.now[1:], number),
    )
    rows = list(enumerate(part.rows, first))
    db.executemany("insert into turn values(?, ?, ?, ?, ?, ?)", ((id, number, *row[:4]) for id, row in rows))
    db.executemany("insert into spoken values(?, ?)", ((id, row[4]) for id, row in rows))
    db.executemany("insert into words(rowid, text) values(?, ?)", ((id, row[5]) for id, row in rows))
    return len(rows)


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


def _holding(logs: Logs, id: str, asker: Asker, parts: Collection[str], limit: int) -> deque[Turn]:
    """The last entries of a session that hold all the parts."""
    found: deque[Turn] = deque(maxlen=max(0, limit))
    try:
        with logs.open(id) as file:
            for item in scan(file) if asker.sees(header_of(file, agent_of(logs.name))) else ():
                turn = item.record if isinstance(item, Placed) else None
                if isinstance(turn, Turn) and all(part in _bare(turn.words) for part in parts):
                    found.append(turn)
    except HomeError:
        pass
    return found


def _bare(text: str) -> str:
    return fold(unicodedata.normalize("NFKC", text))


def _time(turn: Turn) -> str:
    return stamp(moment) if (moment := turn.time) else ""


# -- what is shown --------------------------------------------------------------------------------------------------------


def _mention(session: str, entry: int, time: str, role: str, source: str, preview: str) -> Quote:
    if not (isinstance(session, str) and isinstance(entry, int)):
        raise sqlite3.DatabaseError("a row is not what was put in")
    return Quote(session_id=session, entry=entry, timestamp=time, role=role, source_plugin=source, preview=preview)


def preview(text: str, query: str, *, max_chars: int) -> str:
    """One line of at most `max_chars` characters, around the first word of the query that stands in the text, or, since
    words are found by their stem, one that begins like it."""
    line = " ".join(text[:INDEXED].split())
    if len(line) <= max_chars:
        return line
    words = query[:MAX_QUERY].split()[:_SOUGHT]
    begun = "|".join(re.escape(word[: max(_LEAST_STEM, len(word) - 3)]) for word in words)
    found = re.search(begun, line, re.IGNORECASE) if words else None
    start = max(0, min((found.start() if found else 0) - max_chars // 4, len(line) - max_chars))
    head, tail = "…" if start else "", "…" if start + max_chars < len(line) else ""
    room = max(0, max_chars - len(head) - len(tail))
    return (head + line[start + len(head) : start + len(head) + room] + tail)[:max_chars]
