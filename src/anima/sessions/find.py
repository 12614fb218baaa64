"""Searching in transcripts: keeping their index up to date, and turning what it finds into what is shown.

Promise: after `catch_up`, a hit is an entry that stands in its transcript, of the agent, layers and scopes asked for, and
what was forgotten or removed is in no file of the index any more. Without an index, and for a query without words (an
emoji, a sign), entries are looked through one by one for the query as it is written. No file is loaded whole.
Not here: the index (index.talks), and who may ask (sessions).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from anima.errors import HomeError
from anima.sessions.listing import SessionList
from anima.sessions.record import stamp
from anima.sessions.replay import Count, Header, Placed, Turn, header_of, scan
from anima.sessions.talks import Heard, Mark, Part, Said, Talk, Talks
from anima.store.logs import LineFile, LineFolder, Seen
from anima.text.words import fold

INDEXED = 200_000  # characters of an entry whose words are in the index
_BATCH = 1000  # entries that are put in at a time
_MANY = 200  # sessions at a time
_LEAST_STEM = 4
_SOUGHT = 16  # words of a query for which a preview is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry that was found, with a line of its text around the first word that was asked for."""

    session_id: str
    entry: int
    timestamp: str
    role: str
    source_plugin: str
    preview: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search gave, by which means, and what a person should know of them."""

    hits: tuple[Hit, ...]
    backend: Literal["fts5", "plain"]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whose transcripts may be seen: one agent's, of these layers and scopes, or of any (None)."""

    agent: str
    layers: frozenset[str] | None = frozenset({""})
    scopes: frozenset[str] | None = None

    def sees(self, header: Header | None) -> bool:
        if header is None or header.agent_id != self.agent:
            return False
        in_layer = self.layers is None or (header.layer or "") in self.layers
        return in_layer and (self.scopes is None or (header.scope or "") in self.scopes)


class Finder:
    """The search of one folder's transcripts. Lives as long as its home; safe to share by threads.

    Without `talks` nothing is indexed, and transcripts are searched as they are.
    """

    def __init__(self, folder: LineFolder, listing: SessionList, talks: Talks | None) -> None:
        self._folder, self._listing, self._talks = folder, listing, talks
        self._mutex = threading.Lock()
        self._seen: set[str] = set()  # the files' stats when the index last was up to date
        self._epoch = ""  # the index that was

    def catch_up(self, only: Iterable[str] | None = None) -> int:
        """Brings the index up to date with all transcripts, or with `only` these; how many entries came in.

        A transcript that is gone, or was written anew because something in it was forgotten, leaves the index first.
        """
        if self._talks is None:
            return 0
        if only is not None:
            return _taken_in(self._talks, self._folder, only)[0]
        with self._mutex:
            return self._caught_up(self._talks)

    def _caught_up(self, talks: Talks) -> int:
        stats, epoch = set(self._folder.stats()), talks.epoch()
        if not epoch:
            return 0
        changed = self._changed(talks, stats) if epoch == self._epoch else self._stale(talks)
        taken, is_whole = _taken_in(talks, self._folder, changed)
        self._seen, self._epoch = stats, epoch if is_whole else ""
        return taken

    def _changed(self, talks: Talks, stats: set[str]) -> list[str]:
        """What has changed since the index last was up to date; what is gone leaves it."""
        changed = [_id_of(stat) for stat in stats - self._seen]
        gone = {_id_of(stat) for stat in self._seen - stats}.difference(changed)
        talks.drop(self._folder.path_of(id) for id in gone if self._folder.look(id) is None)
        return changed

    def _stale(self, talks: Talks) -> list[str]:
        """What is not as the index says; what is gone leaves it."""
        known = talks.known() or {}
        there = {self._folder.path_of(each.id): each for each in self._folder.walk()}
        talks.drop(place for place in known if _is_in(self._folder, place) and place not in there)
        return [each.id for place, each in there.items() if not _is_current(known.get(place), each)]

    def search(self, query: str, *, asker: Asker, limit: int = 50, max_chars: int = 200) -> Found:
        """The entries that hold the words of a query, with a preview of each. Catch up first."""
        heard, talks = None, self._talks
        if talks is not None:
            heard = talks.search(query, agent=asker.agent, layers=asker.layers, scopes=asker.scopes, limit=limit)
        notes = talks.notes() if talks else ()
        if heard is None:
            hits = _plainly(query, self._folder, self._listing, asker, limit, max_chars)
            return Found(hits=tuple(hits), backend="plain", notes=notes)
        place = _place(query)
        hits = (_heard(one, place, max_chars) for one in heard if _is_in(self._folder, one.place))
        return Found(hits=tuple(hits), backend="fts5", notes=notes)


# -- keeping up ---------------------------------------------------------------------------------------------------------


def _taken_in(talks: Talks, folder: LineFolder, ids: Iterable[str]) -> tuple[int, bool]:
    """Puts in what is new of some transcripts, so much at a time that nobody waits long; how many, and whether all."""
    done: list[int | None] = []
    batch: list[Part] = []
    for part in chain.from_iterable(_parts(talks, folder, id) for id in ids):
        batch.append(part)
        if sum(len(each.said) for each in batch) >= _BATCH or len(batch) >= _MANY:
            done.append(talks.put(batch))
            batch = []
    done.append(talks.put(batch))
    return sum(number or 0 for number in done), None not in done


def _parts(talks: Talks, folder: LineFolder, id: str) -> Iterator[Part]:
    """What of a transcript is not in the index yet."""
    seen = folder.look(id)
    mark = talks.mark(folder.path_of(id)) if seen else None
    if seen is None or mark is None or _is_current(mark, seen):
        return
    if mark != Mark() and _is_new(mark, seen):
        talks.drop([folder.path_of(id)])
        mark = Mark()
    try:
        with folder.open(id) as file:
            yield from _cut(folder.path_of(id), file, mark)
    except HomeError:
        return


def _cut(place: str, file: LineFile, mark: Mark) -> Iterator[Part]:
    seen, header = file.seen(), header_of(file)
    if header is None:  # nobody's, so nobody finds it
        yield Part(Talk(place, file.id, "", "", ""), (), mark, Mark(seen.inode, seen.size, seen.mtime))
        return
    talk = Talk(place, file.id, header.agent_id, header.layer or "", header.scope or "")
    said: list[Said] = []
    at = Count(mark.offset, mark.lines, mark.entries)
    for item in scan(file, since=at):
        if not isinstance(item, Placed):
            continue
        at = item.after
        if isinstance(item.record, Turn):
            said.append(_said(item.record))
        if len(said) >= _BATCH:
            now = Mark(seen.inode, 0, 0, *at)
            yield Part(talk, said, mark, now)
            mark, said = now, []
    yield Part(talk, said, mark, Mark(seen.inode, seen.size, seen.mtime, *at))


def _said(turn: Turn) -> Said:
    moment = turn.time
    return Said(
        entry=turn.number,
        time=stamp(moment) if moment else "",
        role=turn.role,
        source=turn.source_plugin,
        text=turn.content[:INDEXED],
    )


def _id_of(stat: str) -> str:
    return stat.rpartition(":")[0]


def _is_in(folder: LineFolder, place: str) -> bool:
    return place.rpartition("/")[0] == folder.folder and place.endswith(folder.suffix)


def _is_new(mark: Mark, seen: Seen) -> bool:
    """Whether a file is another one than was taken in, or was changed rather than added to."""
    changed = mark.size == seen.size and mark.mtime != seen.mtime
    return mark.inode != seen.inode or mark.offset > seen.size or changed


def _is_current(mark: Mark | None, seen: Seen) -> bool:
    return mark is not None and (mark.inode, mark.size, mark.mtime) == (seen.inode, seen.size, seen.mtime)


# -- what is shown --------------------------------------------------------------------------------------------------------


def _heard(one: Heard, place: re.Pattern[str] | None, max_chars: int) -> Hit:
    return Hit(
        session_id=one.session,
        entry=one.entry,
        timestamp=one.time,
        role=one.role,
        source_plugin=one.source,
        preview=_shown(one.text, place, max_chars),
    )


def _plainly(
    query: str, folder: LineFolder, listing: SessionList, asker: Asker, limit: int, max_chars: int
) -> Iterator[Hit]:
    """Entries that hold every part of the query as it is written, whatever case or accents; latest session first."""
    parts, place = [_bare(part) for part in query[:1000].split()], _place(query)
    if not parts:
        return
    for row in listing.rows(agent=asker.agent, layers=asker.layers, scopes=asker.scopes):
        if limit <= 0:
            return
        found = _holding(folder, row.id, asker, parts, limit)
        limit -= len(found)
        yield from (_hit(row.id, turn, place, max_chars) for turn in reversed(found))


def _holding(folder: LineFolder, id: str, asker: Asker, parts: Collection[str], limit: int) -> deque[Turn]:
    """The last entries of a session that hold all the parts."""
    found: deque[Turn] = deque(maxlen=limit)
    try:
        with folder.open(id) as file:
            if not asker.sees(header_of(file)):
                return found
            for item in scan(file):
                turn = item.record if isinstance(item, Placed) else None
                if isinstance(turn, Turn) and _holds(turn.content, parts):
                    found.append(turn)
    except HomeError:
        pass
    return found


def _holds(text: str, parts: Collection[str]) -> bool:
    bare = _bare(text)
    return all(part in bare for part in parts)


def _bare(text: str) -> str:
    return fold(unicodedata.normalize("NFKC", text))


def _hit(session: str, turn: Turn, place: re.Pattern[str] | None, max_chars: int) -> Hit:
    moment = turn.time
    return Hit(
        session_id=session,
        entry=turn.number,
        timestamp=stamp(moment) if moment else "",
        role=turn.role,
        source_plugin=turn.source_plugin,
        preview=_shown(turn.content[:INDEXED], place, max_chars),
    )


def preview(text: str, query: str, *, max_chars: int) -> str:
    """One line of at most `max_chars` characters, around the first word of the query that stands in the text."""
    return _shown(text[:INDEXED], _place(query), max_chars)


def _shown(text: str, place: re.Pattern[str] | None, max_chars: int) -> str:
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    found = place.search(line) if place else None
    start = max(0, min((found.start() if found else 0) - max_chars // 4, len(line) - max_chars))
    head, tail = "…" if start else "", "…" if start + max_chars < len(line) else ""
    room = max(0, max_chars - len(head) - len(tail))
    return (head + line[start + len(head) : start + len(head) + room] + tail)[:max_chars]


def _place(query: str) -> re.Pattern[str] | None:
    """Where a word of the query stands, or, since words are found by their stem, one that begins like it."""
    words = query[:1000].split()[:_SOUGHT]
    begun = (word[: max(_LEAST_STEM, len(word) - 3)] for word in words)
    return re.compile("|".join(map(re.escape, begun)), re.IGNORECASE) if words else None
