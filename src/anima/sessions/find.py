"""The index of transcripts, one SQLite file: the list of sessions, and which entry of which session holds which words.

Promise: derived and never more than late; of a session that has grown only what is new is read, and what was forgotten
or removed leaves no word in the file. A file that is missing, damaged or of another version is begun again; where none
can be kept, the same is made in memory. Whose a session is, is filtered in the query, and no order depends on what a
hidden session holds. Safe to share by threads and processes. Not here: who may ask (transcripts), reading (replay).
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple, TypeVar

from anima.errors import HomeError
from anima.search import CUTTING
from anima.search.tables import IN_MEMORY, IndexDown, SqliteFile
from anima.sessions import replay
from anima.store import Logs, LogState
from anima.text import ask, cut, read_table

NAME = "talks.sqlite"
FORMAT = 5
SUMMARY = 80
INDEXED = 200_000  # characters of an entry whose words are in the index
MAX_WORDS = 32  # of a query
MAX_QUERY = 1000
_MANY = 100  # sessions that are read on at a time
_LEAST_STEM = 4
_SOUGHT = 16  # words of a query for which a preview is looked for
_SQL = dict[str, str]()
for _name, _statement in read_table("sessions", "talks").items():
    _SQL[_name] = _statement.format_map(_SQL)  # those above that it names
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
    def known(self) -> replay.Count:
        """Spares `read` from counting the entries again."""
        return replay.Count(self.bytes, self.lines, self.entries)


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
    backend: Literal["fts5", "packed", "plain"]
    notes: tuple[str, ...] = ()


class TranscriptIndex:
    """The list of sessions and their words. Lives as long as its home. `make` makes the file's folder; it is called
    when there is something to put in."""

    def __init__(self, path: str, *, redact: replay.Redact, make: Callable[[], object] = lambda: None) -> None:
        self._redact, self._make = redact, make
        self._kept, self._aside = (
            SqliteFile(
                place,
                lock=f"{place}.lock",
                schema=_SQL["tables"],
                version=zlib.crc32(f"{FORMAT} {CUTTING}".encode()) & 0x7FFFFFFF,
                wal=False,
                again="the index of transcripts was damaged ({}) and is made again",
            )
            for place in (path, IN_MEMORY)
        )
        self._file = self._kept  # or what is made in memory, where that cannot be used
        # The epoch of the file and the versions of the transcripts when it last was up to date, by folder.
        self._fresh: dict[str, tuple[str, dict[str, str]]] = {}
        self.check = self._kept.check

    def begin_again(self) -> None:
        if self._kept.exists:
            self._kept.begin_again()

    def close(self) -> None:
        self._kept.close()
        self._aside.close()

    def refresh(self, logs: Logs) -> int:
        """Brings list and words up to date, by what the transcripts have grown by; how many entries came in."""
        there = logs.versions()
        if not there and not self._kept.exists:
            return 0
        self._make()
        for _ in range(2):  # a file that turns out to be damaged is begun again, and then all of it is new
            if (epoch := self._epoch()) is None or self._fresh.get(logs.name) == (epoch, there):
                return 0
            known = self._tried(lambda db: dict(db.execute(_SQL["versions"], (logs.name,)).fetchall()))
            if known is None:
                continue
            late = [id for id, version in there.items() if known.get(id) != version]
            taken = self._take(logs, late, gone=known.keys() - there.keys())
            if taken is not None:
                self._fresh[logs.name] = (epoch, there)
                return taken
        return 0

    def _epoch(self) -> str | None:
        """Which file it is; where the one to be kept cannot be had, one in memory."""
        for file in (self._kept, self._aside):
            self._file = file
            try:
                return file.run(lambda db: str(db.execute("select epoch from made").fetchone()[0]))
            except IndexDown as down:
                self._kept.note(f"the index of transcripts cannot be kept ({down}); it is made in memory for now")
        return None

    def _take(self, logs: Logs, late: Sequence[str], gone: Collection[str] = ()) -> int | None:
        """Reads on in transcripts that have grown, some in one transaction; None when that failed."""
        total = 0
        for start in range(0, len(late) or len(gone), _MANY):
            some = partial(self._write, logs, late[start : start + _MANY], gone)
            if (taken := self._tried(some, writing=True)) is None:
                return None
            total += taken
        return total

    def _write(self, logs: Logs, late: Sequence[str], gone: Collection[str], db: sqlite3.Connection) -> int:
        erased, taken = sum(_erased(db, logs, id) for id in gone), 0
        for state in filter(None, map(logs.look, late)):
            row, before = db.execute(_SQL["held"], (logs.name, state.id)).fetchone(), None
            if row and row[-2] == state.of and row[-1] < state.size:  # the one it was, with more in it
                before = _listed([row[:-2]])[0]
            elif row:
                erased += _erased(db, logs, state.id)
            listed, turns = self._read_on(logs, state, before)
            db.execute(_SQL["put"], (logs.name, *listed, state.of, state.size, state.version))
            session = db.execute(_SQL["id"], (logs.name, state.id)).fetchone()[0]
            first = db.execute("select coalesce(max(id), 0) + 1 from turn").fetchone()[0]
            rows = [(id, turn, turn.words[:INDEXED]) for id, turn in enumerate(turns, first)]
            said = ((id, session, turn.number, time_said(turn), turn.role, turn.source_plugin) for id, turn, _ in rows)
            db.executemany("insert into turn values(?, ?, ?, ?, ?, ?)", said)
            db.executemany("insert into spoken values(?, ?)", ((id, text) for id, _, text in rows))
            words = ((id, " ".join(cut(text))) for id, _, text in rows)
            db.executemany("insert into words(rowid, text) values(?, ?)", words)
            taken += len(turns)
        if erased:
            db.execute("insert into words(words) values('optimize')")
        return taken

    def _read_on(self, logs: Logs, state: LogState, before: Listed | None) -> tuple[Listed, list[replay.Turn]]:
        """The row of a transcript, and the entries it has grown by. One that cannot be opened is in the list all the same,
        and without a readable header it is nobody's."""
        header, turns, last, end = None, list[replay.Turn](), None, before.known if before else replay.START
        with suppress(HomeError), logs.open(state.id) as file:
            header, since = replay.header_of(file, replay.agent_of(logs.name)), end
            end = replay.count(file, since=since)
            for item in replay.scan(file, since=since, end=end.offset):
                last = item.record if isinstance(item, replay.Placed) else None
                turns += [last] if isinstance(last, replay.Turn) else []
        row = _row(header or replay.Header(id="", timestamp="", agent_id=""), state, before, last, end)
        said = next((turn for turn in turns if turn.role == "user"), None)
        if said and not row.summary:  # the first words of the user, on one line
            text = self._redact(said.content.lstrip()[:4000])[0][: 4 * SUMMARY]
            if not (words := " ".join(text.split())).isprintable():
                words = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
            row = row._replace(summary=words if len(words) <= SUMMARY else words[: SUMMARY - 1] + "…")
        return row, turns if header else []

    def rows(self, logs: Logs, asker: replay.Asker, limit: int | None = None) -> Rows:
        """The sessions an asker may see, the latest first."""
        seen = _asked(logs, asker, -1 if limit is None else max(0, limit))

        def read(db: sqlite3.Connection) -> Rows:
            found = Rows(_listed(db.execute(_SQL["rows"], seen)))
            found.total = len(found) if limit is None else db.execute(_SQL["count"], seen).fetchone()[0]
            return found

        found = self._asked(logs, read)
        return Rows() if found is None else found

    def get(self, logs: Logs, id: str) -> Listed | None:
        """One session, up to date; None when there is none."""
        state = logs.look(id)
        if state is None:
            return None
        self._make()
        key = (logs.name, id, state.version)
        for is_taken in (False, True) if self._epoch() else ():
            if is_taken:
                self._take(logs, [id])
            if found := self._tried(lambda db: _listed(db.execute(_SQL["current"], key))):
                return found[0]
        return self._read_on(logs, state, None)[0]

    def find(self, logs: Logs, query: str, asker: replay.Asker, *, limit: int = 50, max_chars: int = 200) -> Quotes:
        """The entries that hold every word of the query, the latest first; where none does, those that hold some, the
        rarer words first. For a query without words, those that hold it as it is written."""
        words, written = ask(query[:MAX_QUERY])[:MAX_WORDS], json.dumps(query[:MAX_QUERY].split())
        seen = _asked(logs, asker, max(0, limit))

        def read(db: sqlite3.Connection) -> list[Quote]:
            asked = {"query": " AND ".join(map(_quoted, words)) if words else written}
            sql = _SQL["all_matching" if words else "all_written"]
            rows = db.execute(sql, seen | asked).fetchall() if words or query.strip() else []
            if len(words) > 1 and not rows:
                rows = _some(db, words, seen)
            near = sought(query)
            return [quote_of(*row, near=near, max_chars=max_chars) for row in rows]

        found = self._asked(logs, read)
        return Quotes(hits=tuple(found or ()), backend="fts5" if words else "plain", notes=self._kept.notes())

    def _asked(self, logs: Logs, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """What `work` reads once all is up to date; None where there is nothing to read. A file that turns out to be damaged
        is made anew first."""
        for _ in range(2):
            self.refresh(logs)
            if not self._file.exists or (found := self._tried(work)) is not None:
                return found if self._file.exists else None
        return None

    def _tried(self, work: Callable[[sqlite3.Connection], T], *, writing: bool = False) -> T | None:
        """What `work` gives, in one transaction; None when the file will not do. A damaged one is begun again."""
        try:
            return self._file.run(work, writing=writing, again=False)
        except IndexDown:
            return None


def _asked(logs: Logs, asker: replay.Asker, limit: int) -> dict[str, Any]:
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


def _erased(db: sqlite3.Connection, logs: Logs, name: str) -> int:
    """Takes a session out with all its words; how many there were."""
    row = db.execute(_SQL["id"], (logs.name, name)).fetchone()
    if row is None:
        return 0
    ids = "select id from turn where session = ?"
    for id, text in db.execute(f"select id, text from spoken where id in ({ids})", row).fetchall():
        db.execute("insert into words(words, rowid, text) values('delete', ?, ?)", (id, " ".join(cut(text))))
    db.execute(f"delete from spoken where id in ({ids})", row)
    db.execute("delete from turn where session = ?", row)
    db.execute("delete from session where id = ?", row)
    return 1


def _row(
    header: replay.Header, state: LogState, before: Listed | None, last: replay.Record | None, end: replay.Count
) -> Listed:
    started = replay.time_of(header.timestamp)
    written = replay.time_of(getattr(last, "timestamp", "")) or state.time
    latest = max(filter(None, [written, started, replay.time_of(before.updated_at) if before else None]))
    return Listed(
        id=state.id,
        summary=before.summary if before else "",
        updated_at=replay.stamp(latest),
        started_at=replay.stamp(started or latest),
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
        closed=isinstance(last, replay.Close),
    )


def _some(db: sqlite3.Connection, words: Sequence[str], seen: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Entries with any of the words. A word weighs the more, the fewer entries hold it among those that may be seen."""
    counts = {word: db.execute(_SQL["how_many"], seen | {"query": _quoted(word)}).fetchone()[0] for word in words}
    present = {word: number for word, number in counts.items() if number}
    if not present:
        return []
    most, given = sum(present.values()), dict(seen)
    for n, (word, number) in enumerate(present.items()):
        given |= {f"word{n}": _quoted(word), f"weight{n}": math.log(1 + most / number)}
    one = _SQL["weighed"]
    parts = [one.replace(":query", f":word{n}").replace(":weight", f":weight{n}") for n in range(len(present))]
    return db.execute(_SQL["best"].replace("WEIGHED", " union all ".join(parts)), given).fetchall()


def _quoted(word: str) -> str:
    """A word as FTS5 takes it for nothing but a word."""
    return '"' + word.replace('"', "") + '"'


def time_said(turn: replay.Turn) -> str:
    return replay.stamp(moment) if (moment := turn.time) else ""


def quote_of(
    session: str, entry: int, time: str, role: str, source: str, text: str, *, near: re.Pattern[str], max_chars: int
) -> Quote:
    """An entry as it is shown. Raises DatabaseError for one that cannot have been put in."""
    if not (isinstance(session, str) and isinstance(entry, int)):
        raise sqlite3.DatabaseError("a row is not what was put in")
    shown = preview(text, near, max_chars=max_chars)
    return Quote(session_id=session, entry=entry, timestamp=time, role=role, source_plugin=source, preview=shown)


def sought(query: str) -> re.Pattern[str]:
    """Where a word of the query stands in a text, or, since words are found by their stem, one that begins like it."""
    begun = (re.escape(word[: max(_LEAST_STEM, len(word) - 3)]) for word in query[:MAX_QUERY].split()[:_SOUGHT])
    return re.compile("|".join(begun) or "(?!)", re.IGNORECASE)


def preview(text: str, near: re.Pattern[str], *, max_chars: int) -> str:
    """One line of at most `max_chars` characters, around the first place in the text where what was `sought` is near."""
    line = " ".join(text[:INDEXED].split())
    if len(line) <= max_chars:
        return line
    found = near.search(line)
    start = max(0, min((found.start() if found else 0) - max_chars // 4, len(line) - max_chars))
    head, tail = "…" if start else "", "…" if start + max_chars < len(line) else ""
    room = max(0, max_chars - len(head) - len(tail))
    return (head + line[start + len(head) : start + len(head) + room] + tail)[:max_chars]
