"""Searching in transcripts: keeping their index up to date, and turning what it finds into what is shown.

Promise: after `catch_up`, a hit is an entry that stands in its transcript, of the agent, layers and scopes asked for, and
what was forgotten or removed is in no file of the index any more. Without an index, and for a query without words (an
emoji, a sign), entries are looked through one by one for the query as it is written. No file is loaded whole.
Not here: the index (index.talks), and who may ask (sessions).
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from anima.errors import HomeError
from anima.index.talks import Mark, Said, Talk, Talks
from anima.index.words import fold
from anima.store.lines import LineFile, LineFolder, Seen
from anima.transcript.listing import SessionList
from anima.transcript.reading import Count, Placed, header_of, scan
from anima.transcript.records import Header, Turn, stamp

INDEXED = 200_000  # characters of an entry whose words are in the index
_BATCH = 1000
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


# -- keeping up ---------------------------------------------------------------------------------------------------------


def catch_up(talks: Talks, folder: LineFolder, *, only: Iterable[str] | None = None) -> int:
    """Brings the index up to date with all transcripts of a folder, or with `only` these; how many entries came in.

    A transcript that is gone, or was written anew because something in it was forgotten, leaves the index first.
    """
    if only is not None:
        return sum(_caught_up(talks, folder, seen) for id in only if (seen := folder.look(id)))
    known = talks.known()
    if known is None:
        return 0
    there = {folder.path_of(each.id): each for each in folder.walk()}
    ours = [place for place in known if _is_in(folder, place)]
    talks.drop(place for place in ours if place not in there or _is_new(known[place], there[place]))
    stale = [each for place, each in there.items() if not _is_current(known.get(place), each)]
    return sum(_caught_up(talks, folder, each) for each in stale)


def _caught_up(talks: Talks, folder: LineFolder, seen: Seen) -> int:
    place = folder.path_of(seen.id)
    mark = talks.mark(place)
    if mark is None or _is_current(mark, seen):
        return 0
    if mark != Mark() and _is_new(mark, seen):
        talks.drop([place])
        mark = Mark()
    try:
        with folder.open(seen.id) as file:
            return _taken_in(talks, place, file, mark)
    except HomeError:
        return 0


def _taken_in(talks: Talks, place: str, file: LineFile, mark: Mark) -> int:
    """Puts in what stands after the mark, a batch at a time, so that nobody waits long."""
    seen, header, taken = file.seen(), header_of(file), 0
    if header is None:  # nobody's, so nobody finds it
        talks.put(Talk(place, file.id, "", "", ""), [], since=mark, now=Mark(seen.inode, seen.size, seen.mtime))
        return 0
    talk = Talk(place, file.id, header.agent_id, header.layer or "", header.scope or "")
    batch: list[Said] = []
    at = Count(mark.offset, mark.lines, mark.entries)
    for item in scan(file, since=at):
        if not isinstance(item, Placed):
            continue
        at = item.after
        if isinstance(item.record, Turn):
            batch.append(_said(item.record))
        if len(batch) >= _BATCH:
            now = Mark(seen.inode, 0, 0, *at)
            if not talks.put(talk, batch, since=mark, now=now):
                return taken
            mark, taken, batch = now, taken + len(batch), []
    whole = Mark(seen.inode, seen.size, seen.mtime, *at)
    return taken + len(batch) if talks.put(talk, batch, since=mark, now=whole) else taken


def _said(turn: Turn) -> Said:
    moment = turn.time
    return Said(
        entry=turn.number,
        time=stamp(moment) if moment else "",
        role=turn.role,
        source=turn.source_plugin,
        text=turn.content[:INDEXED],
    )


def _is_in(folder: LineFolder, place: str) -> bool:
    return place.rpartition("/")[0] == folder.folder and place.endswith(folder.suffix)


def _is_new(mark: Mark, seen: Seen) -> bool:
    """Whether a file is another one than was taken in, or was changed rather than added to."""
    changed = mark.size == seen.size and mark.mtime != seen.mtime
    return mark.inode != seen.inode or mark.offset > seen.size or changed


def _is_current(mark: Mark | None, seen: Seen) -> bool:
    return mark is not None and (mark.inode, mark.size, mark.mtime) == (seen.inode, seen.size, seen.mtime)


# -- asking ---------------------------------------------------------------------------------------------------------------


def search(
    query: str, *, talks: Talks | None, folder: LineFolder, listing: SessionList, asker: Asker, limit: int = 50,
    max_chars: int = 200,
) -> Found:  # fmt: skip
    """The entries that hold the words of a query, with a preview of each. Catch up first."""
    heard = None
    if talks is not None:
        heard = talks.search(query, agent=asker.agent, layers=asker.layers, scopes=asker.scopes, limit=limit)
    if heard is None or talks is None:
        hits = tuple(_plainly(query, folder, listing, asker, limit, max_chars))
        return Found(hits=hits, backend="plain", notes=talks.notes() if talks else ())
    finder = _finder(query)
    hits = tuple(
        Hit(
            session_id=one.session,
            entry=one.entry,
            timestamp=one.time,
            role=one.role,
            source_plugin=one.source,
            preview=_shown(one.text, finder, max_chars),
        )
        for one in heard
        if _is_in(folder, one.place)
    )
    return Found(hits=hits, backend="fts5", notes=talks.notes())


def _plainly(
    query: str, folder: LineFolder, listing: SessionList, asker: Asker, limit: int, max_chars: int
) -> Iterator[Hit]:
    """Entries that hold every part of the query as it is written, whatever case or accents; latest session first."""
    parts, finder = [_bare(part) for part in query[:1000].split()], _finder(query)
    if not parts:
        return
    for row in listing.rows(agent=asker.agent, layers=asker.layers, scopes=asker.scopes):
        if limit <= 0:
            return
        found = _holding(folder, row.id, asker, parts, limit)
        limit -= len(found)
        yield from (_hit(row.id, turn, finder, max_chars) for turn in reversed(found))


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


def _hit(session: str, turn: Turn, finder: re.Pattern[str] | None, max_chars: int) -> Hit:
    moment = turn.time
    return Hit(
        session_id=session,
        entry=turn.number,
        timestamp=stamp(moment) if moment else "",
        role=turn.role,
        source_plugin=turn.source_plugin,
        preview=_shown(turn.content[:INDEXED], finder, max_chars),
    )


def preview(text: str, query: str, *, max_chars: int) -> str:
    """One line of at most `max_chars` characters, around the first word of the query that stands in the text."""
    return _shown(text[:INDEXED], _finder(query), max_chars)


def _shown(text: str, finder: re.Pattern[str] | None, max_chars: int) -> str:
    line = " ".join(text.split())
    if len(line) <= max_chars:
        return line
    found = finder.search(line) if finder else None
    start = max(0, min((found.start() if found else 0) - max_chars // 4, len(line) - max_chars))
    head, tail = "…" if start else "", "…" if start + max_chars < len(line) else ""
    room = max(0, max_chars - len(head) - len(tail))
    return (head + line[start + len(head) : start + len(head) + room] + tail)[:max_chars]


def _finder(query: str) -> re.Pattern[str] | None:
    """Where a word of the query stands, or, since words are found by their stem, one that begins like it."""
    words = query[:1000].split()[:_SOUGHT]
    begun = (word[: max(_LEAST_STEM, len(word) - 3)] for word in words)
    return re.compile("|".join(map(re.escape, begun)), re.IGNORECASE) if words else None
