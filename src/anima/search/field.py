"""The field: what an index knows of its units as arrays in memory, and a view of it through a filter.

Promise: a `FieldView` is what an index holding only the visible units would give: counts, neighbours and averages are taken
over visible units alone, so a hidden line changes no score. Vectors are small whole numbers, so that a product of two
is exact and does not depend on the machine, on the order of the rows or on how they are added up.
Not here: where rows are kept (`tables`), and what scores are made of (`rank`).
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anima.search import ROW, Place, hash_bytes, opened
from anima.search.tables import Changes, DocumentRow, PartRow, ShownPart

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Posting = tuple[Ints, Floats]

ALL_SCOPES: Final = 0x7FFFFFFF
# Unit vectors times this are rounded to whole numbers. (SCALE + rounding)**2 stays below 2**24, where float32 is exact.
SCALE: Final = 4000
REACH: Final = 2  # neighbours on either side that a window covers
MANY_DEAD: Final = 0.25
MANY_NEW: Final = 1.25
MANY_BYTES: Final = 32 << 20
FACE: Final = "\t"  # stands in no path; behind it, whose sight of the document it is
SHIFT: Final = 24  # a unit's key is its part's, shifted, plus its number in that part

UNIT = np.dtype([(name, f"<{code}") for name, code in ROW.items()])  # a unit as a part packs it
# The same in memory, with speakers numbered over all parts: `key` finds the row, -1 when it is gone; `n` is its number
# in the document, from 0.
_FIELDS = [(name, np.dtype("<i4") if name == "speaker" else UNIT[name]) for name in UNIT.names or ()]
_HELD = np.dtype([("key", "<i8"), ("doc", "<i8"), ("n", "<i4"), *_FIELDS])


def path_of(key: str) -> str:
    """The document that a key of the index speaks of."""
    return key.partition(FACE)[0]


def hash_of(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(hash_bytes(text), "little")


def quantised(matrix: NDArray[np.float32]) -> NDArray[np.int16]:
    """Rows of length one as whole numbers; a row of zeros stays zero."""
    return np.rint(matrix * SCALE).astype("<i2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What may be seen. `scope` is the listener's bit; `kinds` None means every kind; with `since`, only documents of
    that day and later ones."""

    scope: int = ALL_SCOPES
    layers: frozenset[str] = frozenset({""})
    kinds: Collection[str] | None = None
    trusted_only: bool = False
    since: date | None = None

    def shows(self, row: DocumentRow) -> bool:
        if row.layer not in self.layers or (self.kinds is not None and row.kind not in self.kinds):
            return False
        return self.since is None or row.day >= self.since.toordinal()


class HeldPart(NamedTuple):
    """A part that an index holds. `print` says all it was made from; `vectors` is how many of its units have one."""

    id: int
    place: Place
    units: int
    chars: int
    print: bytes
    vectors: int


class Packed(NamedTuple):
    """A part as tables keep it: a header, the rows of its units, and the places of its words."""

    place: Place
    first_unit: int  # its number in the document, from 0
    chars: int
    print: bytes
    speakers: Sequence[str]
    units: bytes
    places: bytes

    def pack(self) -> bytes:
        place = (self.place.line, self.place.front, self.place.above)
        header = json.dumps([*place, self.first_unit, self.chars, self.print.hex(), self.speakers, len(self.units)])
        return header.encode() + b"\n" + self.units + self.places

    @staticmethod
    def part(id: int, document: int, packed: bytes, vectors: bytes) -> PartRow[Packed]:
        """A part as tables give it, opened."""
        (line, front, above, first, chars, print_, speakers), units, places = opened(packed)
        place = Place(line=line, front=front, above=above)
        found = Packed(place, first, chars, bytes.fromhex(print_), speakers, units, places)
        return PartRow(id, document, found, vectors)


class _Column:
    """Rows that grow at their end; what was given out before stays as it was. They lie in pages of their own, given back whole
    when nobody looks any more. From the allocator a matrix of some megabytes would come out of the heap of whichever thread
    asked for it, and every such heap keeps a hole of that size for ever: a crowd of threads grew without end."""

    def __init__(self, kind: str, *width: int) -> None:
        self._room: NDArray[Any] = np.zeros((0, *width), dtype=kind)
        self._count = 0

    @property
    def rows(self) -> NDArray[Any]:
        return self._room[: self._count]

    def grow(self, count: int) -> NDArray[Any]:
        """So many rows more, all zeros, to be filled."""
        need, held = self._count + count, self.rows
        if need > len(self._room):
            shape, kind = (min(2 * need, need + 65536), *held.shape[1:]), held.dtype
            size = int(np.prod(shape)) * kind.itemsize
            pages = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if size > MANY_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
                pages.madvise(mmap.MADV_HUGEPAGE)  # 100,000 vectors are 25,000 small pages, each with its price
            self._room = np.frombuffer(pages, dtype=kind, count=size // kind.itemsize).reshape(shape)
            self._room[: self._count] = held
        self._count = need
        return self._room[need - count : need]


class Field:
    """All units of an index in this process. Grows with every change; views made before stay as they were."""

    def __init__(self) -> None:
        self.docs: dict[int, DocumentRow] = {}
        self.units: NDArray[Any] = np.zeros(0, dtype=_HELD)
        self.speakers: dict[str, int] = {"": 0}  # their numbers
        self._ids: dict[str, int] = {}  # of documents, by path
        self._parts: dict[int, list[HeldPart]] = {}  # by document
        self._matrix = _Column("<f4", 0)
        self._clear_words()
        self._sights: dict[Filter, Horizon] = {}

    def _clear_words(self) -> None:
        self._low, self._high, self._place = _Column("<u4"), _Column("<u4"), _Column("<u4")
        self._sorted = 0  # how many of them stand in the order of `_low`; the others are few, and the newest

    def _add_words(self, low: NDArray[Any], high: NDArray[Any], place: NDArray[Any]) -> None:
        for column, values in ((self._low, low), (self._high, high), (self._place, place)):
            column.grow(len(values))[:] = values
        if len(self._low.rows) > self._sorted * MANY_NEW:
            self._sorted = len(self._low.rows)
            order = np.sort(self._low.rows.astype("<u8") << 32 | np.arange(self._sorted, dtype="<u8")) & 0xFFFFFFFF
            for column in (self._low, self._high, self._place):
                column.rows[:] = column.rows[order]

    @property
    def matrix(self) -> NDArray[np.float32] | None:
        """The vector of every row, None while nothing has one."""
        return self._matrix.rows if self._matrix.rows.shape[1] else None

    @property
    def held_bytes(self) -> int:
        """How many its arrays have."""
        columns = (self._low, self._high, self._place, self._matrix)
        return self.units.nbytes + sum(column.rows.nbytes for column in columns)

    def parts_of(self, path: str) -> tuple[DocumentRow | None, list[HeldPart]]:
        """A document's row and its parts in their order."""
        key = self._ids.get(path, 0)
        return self.docs.get(key), self._parts.get(key, [])

    def incomplete(self) -> dict[str, int]:
        """The paths of documents of which a unit has no vector, and how many of them have none."""
        lacking = {key: sum(part.units - part.vectors for part in parts) for key, parts in self._parts.items()}
        return {self.docs[key].path: count for key, count in lacking.items() if count}

    def vectors_of(self, texts: Collection[int]) -> dict[int, bytes]:
        """The vectors of texts that have one, by the texts' hashes."""
        if self.matrix is None or not texts:
            return {}
        wanted = np.fromiter(texts, dtype=np.uint64, count=len(texts))
        at = np.flatnonzero(np.isin(self.units["text"], wanted) & self.units["embedded"])
        hashes, rows = self.units["text"][at].tolist(), self.matrix[at].astype("<i2")
        return {key: row.tobytes() for key, row in zip(hashes, rows, strict=True)}

    def posting(self, word: str) -> Posting:
        """Where a word stands: rows of the field, ascending, and how often."""
        low, high = np.frombuffer(hash_bytes(word), dtype="<u4")
        sorted, new = np.split(self._low.rows, [self._sorted])
        first, last = np.searchsorted(sorted, low), np.searchsorted(sorted, low, side="right")
        at = np.concatenate([np.arange(first, last), len(sorted) + np.flatnonzero(new == low)])
        place = self._place.rows[at[self._high.rows[at] == high]]
        return (place >> 8).astype(np.int64), (place & 0xFF) / 2.0

    def sight(self, filter: Filter) -> Horizon:
        if filter not in self._sights:
            if len(self._sights) > 8:
                self._sights = {}
            self._sights[filter] = Horizon(self, filter)
        return self._sights[filter]

    def follow(self, changes: Changes) -> None:
        """Takes out what is gone and adds what is new. Raises ValueError or IndexError for rows that cannot be."""
        if changes.alive is None:
            return
        self._sights = {}
        self._keep(changes.alive)
        if changes.parts:
            self.docs = {**self.docs, **{row.id: row for row in changes.documents}}
            self._add(changes.parts)
        self._ids = {row.path: key for key, row in self.docs.items()}

    def _keep(self, alive: Mapping[int, int]) -> None:
        """Takes out what stands in no part any more. Rows stay until there are many of them: they are never visible."""
        documents = set(alive.values())
        self.docs = {key: row for key, row in self.docs.items() if key in documents}
        kept = {key: parts for key, parts in self._parts.items() if key in documents}
        self._parts = {key: [part for part in parts if part.id in alive] for key, parts in kept.items()}
        held = self.units["key"] >> SHIFT
        dead = (held >= 0) & ~np.isin(held, np.fromiter(sorted(alive), dtype=np.int64, count=len(alive)))
        if not dead.any():
            return
        self.units = self.units.copy()
        self.units["doc"][dead] = self.units["key"][dead] = -1
        if np.count_nonzero(self.units["key"] < 0) <= MANY_DEAD * len(self.units):
            return
        keep = np.flatnonzero(self.units["key"] >= 0)
        slots = np.full(len(self.units), -1, dtype=np.int64)
        slots[keep] = np.arange(len(keep))
        matrix, self._matrix = self._matrix.rows, _Column("<f4", self._matrix.rows.shape[1])
        np.take(matrix, keep, axis=0, out=self._matrix.grow(len(keep)))
        low, high, place = self._low.rows, self._high.rows, self._place.rows
        stay = np.flatnonzero(slots[place >> 8] >= 0)
        self._clear_words()
        moved = (slots[place[stay] >> 8].astype(np.uint32) << 8) | (place[stay] & 0xFF)
        self._add_words(low[stay], high[stay], moved)
        self.units = self.units.take(keep)

    def _add(self, rows: Sequence[PartRow[Packed]]) -> None:
        parts = [row.packed for row in rows]
        packed = np.frombuffer(b"".join(part.units for part in parts), dtype=UNIT)
        sizes: Ints = np.array([len(part.units) // UNIT.itemsize for part in parts], dtype=np.int64)
        ends: Ints = np.cumsum(sizes)
        within = np.arange(len(packed)) - np.repeat(ends - sizes, sizes)
        units = np.zeros(len(packed), dtype=_HELD)
        for name in UNIT.names or ():
            units[name] = packed[name]
        units["key"] = np.repeat([row.id << SHIFT for row in rows], sizes) + within
        units["doc"] = np.repeat([row.document for row in rows], sizes)
        units["n"] = np.repeat([part.first_unit for part in parts], sizes) + within
        runs = [units[end - size : end] for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]
        for part, run in zip(parts, runs, strict=True):
            if part.speakers:
                numbers = [self.speakers.setdefault(speaker, len(self.speakers)) for speaker in part.speakers]
                run["speaker"] = np.array([0, *numbers])[run["speaker"]]
        places = np.frombuffer(b"".join(part.places for part in parts), dtype="<u4").reshape(-1, 3)
        each = [len(part.places) // 12 for part in parts]
        if ((places[:, 2] >> 8) >= np.repeat(sizes, each)).any():
            raise ValueError("a word stands in a unit that is none")
        slots = (len(self.units) + ends - sizes).astype(np.uint32)
        self._add_words(places[:, 0], places[:, 1], places[:, 2] + np.repeat(slots << 8, each))
        self._add_vectors([row.vectors for row in rows], runs)
        embedded = np.concatenate([[0], np.cumsum(units["embedded"])])
        counted = zip(sizes.tolist(), (embedded[ends] - embedded[ends - sizes]).tolist(), strict=True)
        for row, part, (count, vectors) in zip(rows, parts, counted, strict=True):
            held = HeldPart(row.id, part.place, count, part.chars, part.print, vectors)
            self._parts.setdefault(row.document, []).append(held)
        self.units = np.concatenate([self.units, units])

    def _add_vectors(self, packed: Sequence[bytes], runs: Sequence[NDArray[Any]]) -> None:
        """Vectors as long as those there are; a unit without one has zeros."""
        if not self._matrix.rows.shape[1]:
            widths = (len(one) // (2 * len(run)) for one, run in zip(packed, runs, strict=True) if one)
            self._matrix = _Column("<f4", next(widths, 0))
            self._matrix.grow(len(self.units))
        matrix = self._matrix.grow(sum(map(len, runs)))
        at = 0
        for one, run in zip(packed, runs, strict=True):
            rows = matrix[at : at + len(run)]
            if one and len(one) == 2 * rows.size:
                rows[:] = np.frombuffer(one, dtype="<i2").reshape(rows.shape)
            else:
                run["embedded"] = False
            at += len(run)


class Horizon:
    """What a filter lets through of a field, as arrays over the visible units in document and line order."""

    def __init__(self, whole: Field, filter: Filter) -> None:
        shown = {key: row for key, row in whole.docs.items() if filter.shows(row)}
        units = whole.units
        ids = np.fromiter(shown, dtype=np.int64, count=len(shown))
        mask = np.isin(units["doc"], ids) & ((units["scopes"] & filter.scope) != 0)
        if filter.trusted_only:
            mask &= units["trusted"]
        seen = np.flatnonzero(mask)
        order = (units["doc"][seen] << SHIFT) + units["n"][seen]
        # By document and number: what was added to a document later stands at the end of the field. Nearly sorted already.
        self.at: Ints = seen[np.argsort(order, kind="stable")]
        self.rows = units.take(self.at)  # by an index in brackets whole rows are copied a hundred times slower
        self.place = np.full(len(units), -1, dtype=np.int64)
        self.place[self.at] = np.arange(len(self.at))
        fresh = [np.diff(self.rows[name], prepend=-1) != 0 for name in ("doc", "start", "end")]
        # Visible documents numbered 0.. in the order of their units; one without a visible unit is not there.
        self.doc: Ints = np.cumsum(fresh[0]) - 1
        # One number for units on the same lines, which are neighbours.
        self.lines: Ints = np.cumsum(np.any(fresh, axis=0))
        starts = np.flatnonzero(fresh[0])
        self.documents = [shown[key] for key in self.rows["doc"][starts].tolist()]
        ranks = {path: rank for rank, path in enumerate(sorted(row.path for row in self.documents))}
        self.path_rank: Ints = np.array([ranks[row.path] for row in self.documents], dtype=np.int64)
        self.days: Ints = np.array([row.day for row in self.documents], dtype=np.int64)
        self.count, self.embedded = len(self.at), int(np.count_nonzero(self.rows["embedded"]))
        self.length: Floats = self.rows["length"] / 2.0
        # Places with so much room between two documents that a window never reaches from one into the other.
        self.apart: Ints = np.arange(self.count) + REACH * (self.doc + 1)
        self.room = self.count + REACH * (len(self.documents) + 1)
        self.window_length = self.windowed(self.length)
        self.window_count = np.maximum(self.windowed(np.ones(self.count)), 1.0)
        self.document_length: Floats = np.add.reduceat(self.length, starts) if self.count else np.zeros(0)
        every = (self.length, self.window_length, self.document_length)
        self.means = [float(np.mean(each)) if self.count else 0.0 for each in every]

    def seen(self, posting: Posting) -> Posting:
        """What is visible of it, by positions, ascending."""
        places, counts = self.place[posting[0]], posting[1]
        order = np.argsort(places, kind="stable")
        order = order[places[order] >= 0]
        return places[order], counts[order]

    def windowed(self, values: Floats) -> Floats:
        """For each unit the sum over itself and its neighbours in the same document."""
        alone = np.zeros(self.room)
        alone[self.apart] = values
        total = alone.copy()
        for step in range(1, REACH + 1):
            total[:-step] += alone[step:]
            total[step:] += alone[:-step]
        return total.take(self.apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldView:
    """One consistent sight of an index. `postings` hold for each word that was asked for where it stands, as positions from 0
    to count - 1, ascending, and how often (a trail counts half)."""

    sight: Horizon
    total: int  # units in the index, visible or not
    model: str | None  # what made the vectors; None when none is visible
    missing: int  # visible units that still have no vector
    speakers: Mapping[str, int]
    shown: Callable[[Collection[int]], Mapping[int, ShownPart]]
    matrix: NDArray[np.float32] | None
    postings: Mapping[str, Posting]

    @property
    def count(self) -> int:
        return self.sight.count

    def nearest(self, vector: NDArray[np.float32]) -> Floats:
        """The cosine of every visible unit with a vector of length one; 0 where a unit has none."""
        if self.matrix is None or self.matrix.shape[1] != len(vector):
            return np.zeros(self.count)
        wanted = quantised(vector[None, :]).astype(np.float32)[0]
        # A product row by row, for exactness needs no order and a library's threads only wait for each other: with two
        # of them the product of a matrix of 10,000 rows took 8 ms instead of 0.4.
        product = np.vecdot(self.matrix, wanted)[self.sight.at]
        cosine: Floats = product.astype(np.float64) / (SCALE * SCALE)
        return cosine

    def rows(self, positions: Sequence[int] | Ints) -> list[tuple[str, str, tuple[str, ...]] | None]:
        """The units as they are shown, each with its name and its tags; None for one that was dropped since then."""
        rows = self.sight.rows.take(np.asarray(positions, dtype=np.int64))
        parts = self.shown({key >> SHIFT for key in rows["key"].tolist()})
        opened = dict[int, tuple[str, int, list[str], list[str]]]()
        for id, shown in parts.items():
            line, text, _, tags = json.loads(shown.said)
            opened[id] = shown.digest[:12], line, text.split("\n"), tags
        found = list[tuple[str, str, tuple[str, ...]] | None]()
        for key, start, end, n in zip(*(rows[name].tolist() for name in ("key", "start", "end", "n")), strict=True):
            if (part := opened.get(key >> SHIFT)) is None:
                found.append(None)
                continue
            digest, first, lines, tags = part
            text = "\n".join(line.rstrip("\r") for line in lines[start - first : end - first + 1])
            found.append((text, f"{digest}:{n}", tuple(tags[key & ((1 << SHIFT) - 1)].split())))
        return found
