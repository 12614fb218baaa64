"""The field: what an index knows of its units as arrays in memory, and a view of it through a filter.

Promise: a `View` is what an index holding only the visible units would give: counts, neighbours and averages are taken
over visible units alone, so a hidden line changes no score. Vectors are small whole numbers, so that a product of two
is exact and does not depend on the machine, on the order of the rows or on how they are added up.
Not here: where rows are kept (`sqlite`), and what scores are made of (`search`).
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anima.search.index import Filter, UnitRow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Vectors = NDArray[np.int16]
Posting = tuple[Ints, Floats]

# Unit vectors times this are rounded to whole numbers. (SCALE + rounding)**2 stays below 2**24, where float32 is exact.
SCALE: Final = 4000
REACH: Final = 2  # neighbours on either side that a window covers
MANY_DEAD: Final = 0.25
SHIFT: Final = 24  # a unit's key is its part's, shifted, plus its number in that part

UNIT = np.dtype(
    [
        ("key", "<i8"),  # what an index finds it by; -1 when it is gone
        ("doc", "<i8"),
        ("n", "<i4"),  # its number in the document, from 0
        ("start", "<i4"),
        ("end", "<i4"),
        ("length", "<i4"),  # words of the unit and half of its trail's, times two
        ("first", "<i2"),  # words in the first person
        ("speaker", "<i4"),
        ("scopes", "<i4"),
        ("trusted", "?"),
        ("heading", "?"),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocRow:
    """A document's row as a view needs it. `day` is the date's ordinal, 0 when it has none."""

    id: int
    path: str
    kind: str
    layer: str
    day: int


def _room(rows: int, columns: int) -> NDArray[np.float32]:
    """Zeros in pages of their own, taken when first written to, and given back whole when nobody looks any more.

    From the allocator a matrix of some megabytes would come out of the heap of whichever thread asked for it, and
    every such heap keeps a hole of that size for ever: a crowd of threads that search and write grew without end.
    """
    if not rows * columns:
        return np.zeros((rows, columns), dtype=np.float32)
    return np.frombuffer(mmap.mmap(-1, 4 * rows * columns), dtype=np.float32).reshape(rows, columns)


def quantised(matrix: NDArray[np.float32]) -> Vectors:
    """Rows of length one as whole numbers; a row of zeros stays zero."""
    return np.rint(matrix * SCALE).astype(np.int16)


class Field:
    """All units of an index in this process. Grows with every refresh; views made before stay as they were."""

    def __init__(self) -> None:
        self.docs: dict[int, DocRow] = {}
        self.units: NDArray[Any] = np.zeros(0, dtype=UNIT)
        self.words: list[str] = [""]  # speakers, by number
        self._numbers: dict[str, int] = {"": 0}
        self._matrix: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._filled = 0
        self._sights: dict[Filter, Sight] = {}

    def number_of(self, speaker: str) -> int:
        number = self._numbers.get(speaker)
        if number is None:
            number = self._numbers[speaker] = len(self.words)
            self.words.append(speaker)
        return number

    def keep(self, parts: Mapping[int, int]) -> None:
        """Takes out what stands in no part any more; `parts` gives the document of each.

        Rows stay until there are many of them: a document of -1 is never visible.
        """
        held = self.units["key"] >> SHIFT
        alive = np.fromiter(sorted(parts), dtype=np.int64, count=len(parts))
        dead = (held >= 0) & ~np.isin(held, alive)
        documents = set(parts.values())
        if len(documents) < len(self.docs) or not self.docs.keys() <= documents:
            self.docs = {key: row for key, row in self.docs.items() if key in documents}
            self._sights = {}
        if not dead.any():
            return
        self._sights = {}
        self.units = self.units.copy()
        self.units["doc"][dead] = self.units["key"][dead] = -1
        if np.count_nonzero(self.units["doc"] < 0) > MANY_DEAD * len(self.units):
            self._compact()

    def add(self, docs: Sequence[DocRow], units: NDArray[Any], vectors: Vectors | None) -> None:
        """Adds units, whose keys are above all before, and the documents that are new. A missing vector is zeros."""
        self._sights = {}
        self.docs = {**self.docs, **{row.id: row for row in docs}}
        if vectors is None and self._filled:
            vectors = np.zeros((len(units), self._matrix.shape[1]), dtype=np.int16)
        if vectors is not None:
            self._append(vectors, len(self.units))
        self.units = np.concatenate([self.units, units])

    def starts(self) -> tuple[Ints, Ints]:
        """The parts, ascending, and where the units of each begin."""
        held = self.units["key"] >> SHIFT
        fresh = np.ones(len(held), dtype=np.bool_)
        fresh[1:] = held[1:] != held[:-1]
        begin: Ints = np.flatnonzero(fresh & (held >= 0))
        return held[begin], begin

    def _append(self, vectors: Vectors, at: int) -> None:
        need = at + len(vectors)
        if self._matrix.shape[1] != vectors.shape[1] or need > len(self._matrix):
            grown = _room(max(need, min(2 * need, need + 65536)), vectors.shape[1])
            if self._matrix.shape[1] == vectors.shape[1]:
                grown[: self._filled] = self._matrix[: self._filled]
            self._matrix = grown
        self._matrix[at:need] = vectors
        self._filled = need

    def _compact(self) -> None:
        keep = np.flatnonzero(self.units["doc"] >= 0)
        if self._filled:
            kept = _room(2 * len(keep), self._matrix.shape[1])
            inside = keep[keep < self._filled]
            np.take(self._matrix, inside, axis=0, out=kept[: len(inside)])
            self._matrix, self._filled = kept, len(keep)
        self.units = self.units[keep]

    @property
    def has_vectors(self) -> bool:
        return self._filled > 0

    @property
    def matrix(self) -> NDArray[np.float32]:
        return self._matrix[: len(self.units)]

    def sight(self, filter: Filter) -> Sight:
        if filter not in self._sights:
            if len(self._sights) > 8:
                self._sights = {}
            self._sights[filter] = Sight(self, filter)
        return self._sights[filter]


class Sight:
    """What a filter lets through of a field, as arrays over the visible units in document and line order."""

    def __init__(self, whole: Field, filter: Filter) -> None:
        shown = _shown_documents(whole.docs.values(), filter)
        units = whole.units
        ids = np.fromiter(sorted(shown), dtype=np.int64, count=len(shown))
        slot = np.searchsorted(ids, units["doc"]) if len(ids) else np.zeros(len(units), dtype=np.int64)
        mask = (
            (ids[np.minimum(slot, len(ids) - 1)] == units["doc"]) if len(ids) else np.zeros(len(units), dtype=np.bool_)
        )
        mask &= (units["scopes"] & filter.scope) != 0
        if filter.trusted_only:
            mask &= units["trusted"]
        seen = np.flatnonzero(mask)
        self.at = _in_order(units, seen)
        self.is_straight = self.at is seen  # the field has the visible units in their order
        self.rows = units[self.at]
        self.place = np.full(len(units), -1, dtype=np.int64)
        self.place[self.at] = np.arange(len(self.at))
        self.doc_ids: Ints = self.rows["doc"].astype(np.int64)
        self._number_documents(shown)
        self._measure()

    def _number_documents(self, shown: Mapping[int, DocRow]) -> None:
        """Visible documents numbered 0.. in the order of their units; one without a visible unit is not there."""
        fresh = np.ones(len(self.doc_ids), dtype=np.bool_)
        fresh[1:] = self.doc_ids[1:] != self.doc_ids[:-1]
        self.doc: Ints = np.cumsum(fresh) - 1
        self.starts: Ints = np.flatnonzero(fresh)
        self.documents = [shown[int(key)] for key in self.doc_ids[self.starts]]
        self.path_rank: Ints = np.zeros(len(self.documents), dtype=np.int64)
        order = sorted(range(len(self.documents)), key=lambda n: self.documents[n].path)
        self.path_rank[order] = np.arange(len(order))
        self.days: Ints = np.array([row.day for row in self.documents], dtype=np.int64)

    def _measure(self) -> None:
        self.count = len(self.at)
        self.length: Floats = self.rows["length"] / 2.0
        self.is_text: Bools = ~self.rows["heading"]
        self.same = [self.doc[step:] == self.doc[:-step] for step in range(1, REACH + 1)]
        self.window_length = self.windowed(self.length)
        self.window_count = np.maximum(self.windowed(np.ones(self.count)), 1.0)
        sums = np.add.reduceat(self.length, self.starts) if self.count else np.zeros(0)
        self.document_length: Floats = sums

    def windowed(self, values: Floats) -> Floats:
        """For each unit the sum over itself and its neighbours in the same document.

        A heading has no part in it: it stands in the trail of what is below it, and says nothing of what is above.
        """
        values = np.where(self.is_text, values, 0.0)
        total = values.copy()
        for step, same in enumerate(self.same, 1):
            total[:-step] += np.where(same, values[step:], 0.0)
            total[step:] += np.where(same, values[:-step], 0.0)
        return total


def _in_order(units: NDArray[Any], at: Ints) -> Ints:
    """Units by document and number. What was added to a document later stands at the end of the field."""
    order = (units["doc"][at] << SHIFT) + units["n"][at]
    if len(at) < 2 or bool((order[1:] > order[:-1]).all()):
        return at
    sorted_: Ints = at[np.argsort(order, kind="stable")]  # nearly sorted: one pass and a little
    return sorted_


def _shown_documents(docs: Any, filter: Filter) -> dict[int, DocRow]:
    since = filter.since.toordinal() if filter.since else 0
    until = filter.until.toordinal() if filter.until else 0
    shown = {}
    for row in docs:
        if row.layer not in filter.layers or (filter.kinds is not None and row.kind not in filter.kinds):
            continue
        if (since and row.day < since) or (until and not 0 < row.day <= until):
            continue
        shown[row.id] = row
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One consistent sight of an index. `postings` holds the words that were asked for; positions are 0..count-1."""

    sight: Sight
    total: int  # units in the index, visible or not
    model: str | None  # what made the vectors; None when there are none
    missing: int  # units that still have no vector
    speakers: Sequence[str]
    fetch: Callable[[Sequence[int]], list[UnitRow | None]]
    matrix: NDArray[np.float32] | None
    postings: Mapping[str, Posting]
    notes: tuple[str, ...] = field(default=())

    @property
    def count(self) -> int:
        return self.sight.count

    def match(self, word: str) -> Posting:
        """Where a word stands: the positions of visible units, ascending, and how often (a trail counts half)."""
        slots, counts = self.postings.get(word, _NOWHERE)
        places = self.sight.place[slots]
        seen = places >= 0
        places, counts = places[seen], counts[seen]
        if self.sight.is_straight:
            return places, counts
        order = np.argsort(places, kind="stable")
        return places[order], counts[order]

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

    def rows(self, positions: Sequence[int]) -> list[UnitRow | None]:
        """The units as they are shown; None for one that was dropped since this view was made."""
        return self.fetch(self.sight.rows["key"][np.asarray(positions, dtype=np.int64)].tolist())


_NOWHERE: Final[Posting] = (np.zeros(0, dtype=np.int64), np.zeros(0))
