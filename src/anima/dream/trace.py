"""The marks of sweeps: what was dreamed from which line, for whoever forgets one; how many sweeps there were.

Promise: every line a sweep wrote (memory, past, kept, diary) is named with every line it was made of, by digest alone;
reading follows lines that were dreamed from dreamed lines to the end. No page of the bank is named: reflection makes
the bank anew from the logs as they stand. Not here: forgetting itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from anima.dream.diary import LONGEST
from anima.dream.material import Held, LogNote, SweepPlan
from anima.ledger.chain import Key
from anima.model import Nights
from anima.store.place import FolderStore

Place = tuple[str, str]  # a path, and the digest of a line in it, or the line itself


def dreamed_from(store: FolderStore) -> dict[Place, frozenset[str]]:
    """For each line that a dream was made of, as (path, digest), the digests of all lines that came of it."""
    if not store.begun:
        return {}
    places: dict[Place, set[str]] = defaultdict(set)
    further: dict[str, set[str]] = defaultdict(set)
    for record in store.ledger.records(kinds=("dreaming", "sweep")):  # about to be written, and its mark
        for path, source, dreamed in record.fields.get("from", ()):
            places[path, source].add(dreamed)
            further[source].add(dreamed)
    return {place: _closed(found, further) for place, found in places.items()}


def _closed(found: set[str], further: dict[str, set[str]]) -> frozenset[str]:
    """These, and what was dreamed from them in turn."""
    seen, waiting = set(found), list(found)
    while waiting:
        more = further.get(waiting.pop(), set()) - seen
        seen |= more
        waiting += more
    return frozenset(seen)


def nights(store: FolderStore) -> Nights:
    """The sweeps of a home, from their marks."""
    found: dict[str, tuple[int, datetime]] = {}
    for record in store.ledger.records(kinds=("sweep", "intent")) if store.begun else ():
        if record.kind == "sweep":
            kept = record.fields.get("kept", len(record.fields.get("promoted", ())))
            found[str(record.fields.get("change", f"mark {record.n}"))] = int(kept), record.time
        elif record.fields.get("what") == "undo":
            found.pop(str(record.fields.get("of")), None)
    last = max((time for _, time in found.values()), default=None)
    return Nights(nights=len(found), kept=sum(kept for kept, _ in found.values()), last=last)


def traces(made: SweepPlan, *, key: Key, memory: str, prose: str = "") -> list[list[str]]:
    """The rows of a mark: path, digest of a line there, digest of a line this sweep writes. `memory` is MEMORY.md's path."""
    diary = [line for line in made.diary.split("\n") if line.strip()]
    spoken = [line for line in prose.split("\n") if line.strip()]
    rows: dict[tuple[str, str, str], None] = {}
    for sources, fact, new in _written(made, memory):
        quote = f"“{fact[: LONGEST - 1].rstrip()}"
        lines = [new, *(line for line in diary if quote in line), *spoken]
        for path, raw in sources:
            rows |= {(path, key.line(raw), key.line(line)): None for line in lines}
    return [[*row] for row in rows if row[1] and row[2]]


def _written(made: SweepPlan, memory: str) -> Iterator[tuple[list[Place], str, str]]:
    """The lines that something comes from, the fact it states, and its new line; "" where only the diary tells of it."""
    for p in made.promotions:
        notes = (p.candidate.note, *(c.note for c in p.also))
        yield [*_noted(notes), *_lines(memory, p.held)], p.fact, p.line
    for rewording in made.reworded:
        yield _lines(memory, rewording.held), rewording.fact, rewording.line
    for gone in made.retirements:
        yield [*_lines(memory, [gone.held]), *_noted([gone.by])], gone.held.fact, gone.line
    for held in made.moves:
        yield _lines(memory, [held]), held.fact, made.moved_line(held)
    for wish in made.wishes:
        yield _lines(memory, [wish.held]), wish.held.fact, ""
    for truth in made.truths:
        yield _noted([truth.note]), truth.fact, ""


def _noted(notes: Iterable[LogNote]) -> list[Place]:
    return [(note.path, raw) for note in notes for raw in note.raws]


def _lines(memory: str, held: Iterable[Held]) -> list[Place]:
    return [(memory, one.raw) for one in held]
