"""The marks of nights: what was dreamed from which line, for whoever forgets one; how many nights there were.

Promise: every line a night wrote (memory, past, kept, diary) is named with every line it was made of, by digest alone;
reading follows lines that were dreamed from dreamed lines to the end. A page of the bank is not here: reflection makes
it anew from the logs as they stand. Not here: forgetting itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from anima.dream.diary import LONGEST
from anima.dream.material import Held, LogNote, SweepPlan
from anima.ledger.chain import Key

if TYPE_CHECKING:
    from anima.store.place import FolderStore

Place = tuple[str, str]  # a path, and the digest of a line in it
KINDS = ("dreaming", "sweep")  # a night as it was about to be written, and its mark


def dreamed_from(books: FolderStore) -> dict[Place, frozenset[str]]:
    """For each line that a dream was made of, as (path, digest), the digests of all lines that came of it."""
    if not books.begun:
        return {}
    places: dict[Place, set[str]] = defaultdict(set)
    further: dict[str, set[str]] = defaultdict(set)
    for record in books.ledger.records(kinds=KINDS):
        for path, source, dreamed in record.fields.get("from", ()):
            places[path, source].add(dreamed)
            further[source].add(dreamed)
    return {place: _closed(found, further) for place, found in places.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreams:
    """All nights of a home that were not taken back: when the last one was, and how many lines they brought into memory."""

    nights: int = 0
    kept: int = 0
    last: datetime | None = None


def dreams(books: FolderStore) -> Dreams:
    """The nights of a home, from their marks."""
    found: dict[str, tuple[int, datetime]] = {}
    for record in books.ledger.records(kinds=("sweep", "intent")) if books.begun else ():
        if record.kind == "sweep":
            kept = record.fields.get("kept", len(record.fields.get("promoted", ())))
            found[str(record.fields.get("change", f"mark {record.n}"))] = int(kept), record.time
        elif record.fields.get("what") == "undo":
            found.pop(str(record.fields.get("of")), None)
    last = max((time for _, time in found.values()), default=None)
    return Dreams(nights=len(found), kept=sum(kept for kept, _ in found.values()), last=last)


def _closed(found: set[str], further: dict[str, set[str]]) -> frozenset[str]:
    """These, and what was dreamed from them in turn."""
    seen, waiting = set(found), list(found)
    while waiting:
        more = further.get(waiting.pop(), set()) - seen
        seen |= more
        waiting += more
    return frozenset(seen)


def traces(made: SweepPlan, *, key: Key, memory: str, prose: str = "") -> list[list[str]]:
    """The rows of a mark: path, digest of a line there, digest of a line this night writes. `memory` is MEMORY.md's path."""
    diary = [line for line in made.diary.split("\n") if line.strip()]
    spoken = [line for line in prose.split("\n") if line.strip()]
    rows: dict[tuple[str, str, str], None] = {}
    for places, facts, lines in _written(made, memory):
        quoting = [line for line in diary if any(_quotes(line, fact) for fact in facts)]
        for path, raw in places:
            for line in (*lines, *quoting, *spoken):
                rows[path, key.line(raw), key.line(line)] = None
    return [[*row] for row in rows if row[1] and row[2]]


Written = tuple[
    list[tuple[str, str]], tuple[str, ...], tuple[str, ...]
]  # lines they come from, what they say, new lines


def _written(made: SweepPlan, memory: str) -> Iterator[Written]:
    for p in made.promotions:
        notes = (p.candidate.note, *(c.note for c in p.also))
        yield [*_noted(notes), *_lines(memory, p.held)], (p.fact,), (p.line,)
    for one in made.reworded:
        yield _lines(memory, one.held), (one.fact,), (one.line,)
    past, moved = made.past.splitlines(), made.moved.splitlines()
    for r in made.retirements:
        told = tuple(line for line in past if line.startswith(f"- {r.held.fact} _("))
        yield [*_lines(memory, (r.held,)), *_noted((r.by,))], (r.held.fact,), told
    for held in made.moves:
        told = tuple(line for line in moved if line.startswith(f"- {held.fact} _("))
        yield _lines(memory, (held,)), (held.fact,), told
    for wish in made.wishes:
        yield _lines(memory, (wish.held,)), (wish.held.fact,), ()
    for truth in made.truths:
        yield _noted((truth.note,)), (truth.fact,), ()


def _noted(notes: Iterable[LogNote]) -> list[tuple[str, str]]:
    return [(note.path, raw) for note in notes for raw in note.raws]


def _lines(memory: str, held: Iterable[Held]) -> list[tuple[str, str]]:
    return [(memory, one.raw) for one in held]


def _quotes(line: str, fact: str) -> bool:
    return f"“{fact[: LONGEST - 1].rstrip()}" in line
