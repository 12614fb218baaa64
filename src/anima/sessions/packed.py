"""The index of transcripts of a home on a server: parts in its database, packed and held like those of its documents.

Promise: answers are those that `find` gives over a file, whichever server of a fleet is asked, and what one has taken
in no other reads again. Of a session that has grown only what is new is read. Whose a session is, is filtered before
anything is counted. Where the index cannot be had, nothing is found, and it is said. Not here: parts and arrays
(search).
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np

from anima.search import Place, hash_bytes
from anima.search.field import SHIFT, UNIT, Bools, Field, HeldPart, Ints, Packed
from anima.search.index import Index
from anima.search.rows import RowTables
from anima.search.tables import DocumentRow, IndexDown, Mark, NewPart, Tables, Writing
from anima.search.units import PART
from anima.sessions import find
from anima.sessions.replay import Asker, Header, Redact, Turn
from anima.store import Logs, LogState
from anima.store.rows.transaction import HomeRows
from anima.text import ask, cut

_MANY = 100  # sessions that are put in at a time
_READ = 1000  # entries whose texts are looked through at a time


class PackedTranscripts(find.TranscriptIndex):
    """The same list and the same words, in tables. A document is a session, a unit an entry; the last part of a put knows
    where reading ended, and what the list says of the session by then."""

    def __init__(self, tables: Tables, *, redact: Redact) -> None:
        self._tables, self._index, self._redact, self._mutex = tables, Index(tables, None), redact, threading.RLock()
        self._known = (Mark(), dict[str, str]())  # the versions that are in, as of a mark

    def begin_again(self) -> None:
        self._index.clear()

    def close(self) -> None:
        self._index.close()

    def refresh(self, logs: Logs) -> int:
        with self._mutex:
            return self._followed(logs)[1]

    def _followed(self, logs: Logs) -> tuple[Field, int]:
        """What is held once all is up to date, and how many entries came in."""
        there, taken = {f"{logs.name}/{id}": version for id, version in logs.versions().items()}, 0
        field, mark = self._index.held()
        if not mark.epoch:
            return field, 0
        if self._known[0] != mark:
            self._known = (mark, self._index.known())
        known = {path: version for path, version in self._known[1].items() if path.startswith(f"{logs.name}/")}
        late = [path[len(logs.name) + 1 :] for path, version in there.items() if known.get(path) != version]
        if gone := known.keys() - there.keys():
            self._index.drop(gone)
        for start in range(0, len(late), _MANY):
            with suppress(IndexDown):
                now, mark = self._index.held()
                states = filter(None, map(logs.look, late[start : start + _MANY]))
                every = [self._writing(logs, state, now) for state in states]
                self._tables.put(mark.epoch, [each for each, _ in every])  # where somebody was first, it stands already
                taken += sum(count for _, count in every)
        return self._index.held()[0] if gone or late else field, taken

    def _writing(self, logs: Logs, state: LogState, field: Field) -> tuple[Writing, int]:
        path = f"{logs.name}/{state.id}"
        row, held = field.parts_of(path)
        kept = _still_right(held, state)
        listed, turns = self._read_on(logs, state, _listed(kept) if kept else None)
        about = (json.dumps([listed.agent_id, listed.scope]), listed.layer, 0)
        if kept and row is not None and row[2:] != about:
            kept, (listed, turns) = [], self._read_on(logs, state, None)
        pieces = [turns[at : at + PART] for at in range(0, len(turns), PART)] or [[]]
        ends = ["" for _ in pieces[1:]] + [json.dumps([state.of, state.size, listed])]
        writing = Writing(
            row=DocumentRow(0, path, *about),
            digest=state.version,
            before=tuple(part.id for part in held),
            kept=len(kept),
            parts=tuple(map(_part, pieces, ends)),
        )
        return writing, len(turns)

    def rows(self, logs: Logs, asker: Asker, limit: int | None = None) -> find.Rows:
        with self._mutex:
            field, _ = self._followed(logs)
            every = [_listed(field.parts_of(row.path)[1]) for row in _seen(field, logs, asker)]
        every.sort(key=lambda row: (row.updated_at, row.id), reverse=True)
        found = find.Rows(every if limit is None else every[: max(0, limit)])
        found.total = len(every)
        return found

    def get(self, logs: Logs, id: str) -> find.Listed | None:
        if (state := logs.look(id)) is None:
            return None
        with self._mutex:
            held = self._followed(logs)[0].parts_of(f"{logs.name}/{id}")[1]
        return _listed(held) if held else self._read_on(logs, state, None)[0]

    def find(self, logs: Logs, query: str, asker: Asker, *, limit: int = 50, max_chars: int = 200) -> find.Quotes:
        words, written = ask(query[: find.MAX_QUERY])[: find.MAX_WORDS], query[: find.MAX_QUERY].split()
        with self._mutex:
            field, _ = self._followed(logs)
            names = {row.id: row.path[len(logs.name) + 1 :] for row in _seen(field, logs, asker)}
            seen = np.isin(field.units["doc"], np.fromiter(names, dtype=np.int64, count=len(names)))
            hits, near = list[find.Quote](), find.sought(query)
            slots = _holding(field, seen, words)[: limit if words else None]
            for start in range(0, len(slots) if words or written else 0, _READ):
                for row, (entry, time, role, source, text) in self._said(field, slots[start : start + _READ]):
                    if len(hits) < limit and (words or all(word in text for word in written)):
                        said = names[int(row["doc"])], entry, time, role, source, text
                        hits.append(find.quote_of(*said, near=near, max_chars=max_chars))
        return find.Quotes(hits=tuple(hits), backend="packed" if words else "plain", notes=self._index.notes())

    def _said(self, field: Field, slots: Ints) -> Iterator[tuple[Any, list[Any]]]:
        rows = field.units.take(slots)
        parts = self._tables.shown(sorted({key >> SHIFT for key in rows["key"].tolist()}))
        texts = {key: json.loads(part.said) for key, part in parts.items()}
        for row in rows:
            if (part := texts.get(int(row["key"]) >> SHIFT)) is not None:
                yield row, part[int(row["key"]) & ((1 << SHIFT) - 1)]


def _seen(field: Field, logs: Logs, asker: Asker) -> list[DocumentRow]:
    def sees(row: DocumentRow) -> bool:
        agent, scope = json.loads(row.kind)
        return asker.sees(Header(id="", timestamp="", agent_id=agent, layer=row.layer, scope=scope))

    return [row for row in field.docs.values() if row.path.startswith(f"{logs.name}/") and sees(row)]


def _holding(field: Field, seen: Bools, words: Sequence[str]) -> Ints:
    """The entries with every word, the latest first; where there is none, those with any, the rarer words first. Without
    words, all of them."""
    found = [slots[seen[slots]] for slots, _ in map(field.posting, words)] or [np.flatnonzero(seen)]
    score, most = np.zeros(len(seen)), sum(map(len, found))
    every = reduce(np.intersect1d, found)
    if words and not len(every):
        for slots in found:
            score[slots] += math.log(1 + most / max(1, len(slots)))
        every = np.flatnonzero(score)
    return every[np.lexsort((every, field.units["text"][every], score[every]))[::-1]]


def second_tables(rows: HomeRows) -> RowTables:
    """Tables beside those of a home's documents: where its number is the negative one."""
    return RowTables(HomeRows(rows.engine, rows.tenant, -rows.home))


def _listed(held: Sequence[HeldPart]) -> find.Listed:
    return find.Listed(*json.loads(held[-1].place.above)[2])


def _still_right(held: list[HeldPart], state: LogState) -> list[HeldPart]:
    """The parts that stay: all but a small last one, if the session is the one it was, with more in it."""
    if not held:
        return []
    of, size, _ = json.loads(held[-1].place.above)
    if of != state.of or size >= state.size:
        return []
    is_small = held[-1].units < PART and (len(held) == 1 or held[-2].place.above)
    return held[:-1] if is_small else held


def _part(turns: Sequence[Turn], above: str) -> NewPart:
    """Some entries. Instead of a text's hash a unit has its time, since nothing is embedded."""
    units, places, said = np.zeros(len(turns), dtype=UNIT), bytearray(), []
    units["text"] = [int(turn.time.timestamp() * 1e6) if turn.time else 0 for turn in turns]
    for n, turn in enumerate(turns):
        text = turn.words[: find.INDEXED]
        said.append([turn.number, find.time_said(turn), turn.role, turn.source_plugin, text])
        for word, count in Counter(cut(text)).items():
            places += hash_bytes(word) + (n << 8 | min(count, 255)).to_bytes(4, "little")
    packed = Packed(Place(above=above), 0, 0, b"", (), units.tobytes(), bytes(places))
    return NewPart(packed.pack(), b"", json.dumps(said))
