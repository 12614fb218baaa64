"""The index of one home: documents cut into units, with words and vectors, over any `Tables`.

Promise: a pure function of the documents put in; it may be late or lost, never wrong, and putting the same documents
again gives the same rows and the same scores. Of a document whose beginning is held already only what comes after is cut
and embedded, with the outcome of cutting it whole. What a filter hides takes no part in any answer, nor in the statistics
that scores are made of. Putting never raises because of an engine or an embedder.
Not here: which documents there are (`current`), ranking (`rank`), where rows lie (`tables`).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

import numpy as np

from anima.model import Embedder
from anima.search import CUTTING, PACKING, Place
from anima.search.embed.client import EmbedderDown
from anima.search.field import ALL_SCOPES, UNIT, Field, FieldView, Filter, HeldPart, Packed, hash_of, quantised
from anima.search.tables import DocumentRow, IndexDown, Mark, NewPart, ShownPart, Tables, Writing
from anima.search.units import Part, cut_parts, front_of
from anima.text import cut, first_person, tags, without_dates

Vectors = dict[int, bytes]  # of texts, by their hashes
LINES_A_BATCH: Final = 2000
ROUNDS: Final = 20  # how often a document is prepared again because another process changed it meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentIn:
    """A document as the index takes it. `digest` is whatever the caller wants compared by `known()`. `layer` says whose it is
    ("" the owner's, else a user's id, or any word the caller filters by); `scopes`, as bits, who sees it."""

    path: str
    digest: str
    text: str
    kind: str = "note"
    layer: str = ""
    date: date | None = None
    scopes: int = ALL_SCOPES
    trusted: bool = True


@dataclass(slots=True, kw_only=True)
class PutReport:
    """What a put did. `embedded` units were new, `missing` have no vector yet, and the others had one already."""

    documents: int = 0
    units: int = 0
    embedded: int = 0
    missing: int = 0
    notes: tuple[str, ...] = ()


class Index:
    """The index of one home over its tables, with one embedder (None for words only). Safe to share by threads."""

    def __init__(self, tables: Tables, embedder: Embedder | None, *, place: str = "") -> None:  # where alone it counts
        self._tables, self._embedder = tables, embedder
        self._made_for = f"{CUTTING}/{PACKING}@{place} {embedder.name if embedder is not None else 'none'}"
        self._mutex = threading.RLock()
        self._notes: list[str] = []
        self._begun = False
        self._forget()

    def known(self) -> dict[str, str]:
        """The digest of every document in the index, by path."""
        with self._reading():
            self._begin()
            return self._tables.known()
        return {}

    def put(self, documents: Iterable[DocumentIn], *, complete: bool = False) -> PutReport:
        """Takes documents in, each in place of what stood at its path, for the next `look`. With `complete`, units that have
        no vector because the embedder was away are made anew, too."""
        report = PutReport()
        for batch in _batches(documents):
            self._put_batch(batch, complete, report)
        return report

    def drop(self, paths: Iterable[str]) -> int:
        """Forgets documents, with their words and vectors; how many there were."""
        try:
            self._begin()
            return self._tables.drop(sorted(set(paths)))
        except IndexDown as down:
            self._note(f"dropping documents failed ({down}); the index catches up later")
            return 0

    def clear(self) -> None:
        """Forgets everything, and leaves nothing of it where it lay."""
        with self._mutex:
            self._tables.begin(self._made_for, anew=True)
            self._begun = True
            self._forget()

    def look(self, filter: Filter, words: Sequence[str] = ()) -> FieldView:
        """One consistent sight of all that the filter lets through, with the places of these words. Writes do not change it."""
        with self._mutex:
            field, _ = self.held()
            sight = field.sight(filter)
            return FieldView(
                sight=sight,
                total=len(field.units),
                model=self._mark.made_for.partition(" ")[2] if sight.embedded else None,
                missing=sight.count - sight.embedded if self._embedder is not None else 0,
                speakers=field.speakers,
                shown=self._shown,
                matrix=field.matrix,
                postings={word: sight.seen(field.posting(word)) for word in dict.fromkeys(words)},
            )

    def incomplete(self) -> dict[str, int]:
        """How many units have no vector, though there is an embedder, by the paths of their documents."""
        with self._mutex, suppress(IndexDown):
            return self._refreshed().incomplete() if self._embedder is not None else {}
        return {}

    def held(self) -> tuple[Field, Mark]:
        """All that is held, brought up to date, and of when it is; nothing where nothing can be read."""
        with self._mutex, self._reading():
            return self._refreshed(), self._mark
        return Field(), Mark()

    def notes(self) -> tuple[str, ...]:
        """What a person should know: rebuilt after damage, vectors missing, and so on. Each is said once."""
        with self._mutex:
            said, self._notes = self._notes, []
        return tuple(dict.fromkeys((*self._tables.notes(), *said)))

    def close(self) -> None:
        with self._mutex:
            self._begun = False
            self._forget()
            self._tables.close()

    @property
    def held_bytes(self) -> int:
        return self._field.held_bytes

    def _begin(self) -> None:
        with self._mutex:
            if not self._begun:
                self._tables.begin(self._made_for)
                self._begun = True

    def _forget(self) -> None:
        self._field, self._mark = Field(), Mark()

    def _refreshed(self) -> Field:
        """The field, brought to the generation of the tables."""
        self._begin()
        try:
            self._follow()
        except (ValueError, IndexError, TypeError, OverflowError, RecursionError) as error:
            self._note(f"the index was damaged ({error}) and is begun again from the documents")
            self.clear()
            self._follow()
        return self._field

    def _follow(self) -> None:
        changes = self._tables.since(self._mark, Packed.part)
        if changes.mark.epoch != self._mark.epoch:
            self._forget()
        self._field.follow(changes)
        self._mark = changes.mark

    def _shown(self, parts: Iterable[int]) -> dict[int, ShownPart]:
        with self._reading():
            return self._tables.shown(sorted(parts))
        return {}

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Passes over what cannot be read, and notes it."""
        try:
            yield
        except IndexDown as down:
            self._note(f"the index cannot be read ({down}); search has nothing to look at")

    def _note(self, text: str) -> None:
        with self._mutex:
            if text not in self._notes:
                self._notes.append(text)

    def _put_batch(self, batch: list[DocumentIn], complete: bool, report: PutReport) -> None:
        waiting, vectors = batch, dict[int, bytes]()
        try:
            for _ in range(ROUNDS):
                prepared, epoch = self._prepared(waiting, vectors, complete)
                embedded, note = self._embed(prepared, vectors)
                refused = self._tables.put(epoch, [one.writing(vectors) for one in prepared])
                done = [one for one in prepared if one.document.path not in refused]
                units = sum(one.units for one in done)
                have = sum(part.vectors for one in done for part in one.kept)
                have += sum(key in vectors for one in done for part in one.parts for key, _ in part.texts)
                report.documents += len(done)
                report.units += units
                report.embedded += embedded
                report.missing += units - have if self._embedder is not None else 0
                report.notes += (note,) if note and note not in report.notes else ()
                waiting = [one.document for one in prepared if one.document.path in refused]
                if not waiting:
                    return
            down = IndexDown("others wrote the same documents all the time")
        except IndexDown as error:
            down = error
        self._note(f"putting documents failed ({down}); the index catches up later")
        report.notes += self.notes()

    def _prepared(self, documents: list[DocumentIn], vectors: Vectors, complete: bool) -> tuple[list[_Prepared], str]:
        """Documents made ready, with the vectors of texts that have one; and the epoch they were compared with."""
        with self._mutex:
            field = self._refreshed()
            held = [(document, *field.parts_of(document.path)) for document in documents]
            epoch, with_vectors = self._mark.epoch, complete and self._embeds
        made = [_prepare(*each, with_vectors) for each in held]
        if self._embeds:
            wanted = {key for one in made for part in one.parts for key, _ in part.texts} - vectors.keys()
            with self._mutex:
                vectors |= self._field.vectors_of(wanted)
        return made, epoch

    @property
    def _embeds(self) -> bool:
        """Whether our embedder is the one these tables are made for: another process may have begun them for its own."""
        return self._embedder is not None and self._mark.made_for == self._made_for

    def _embed(self, prepared: list[_Prepared], vectors: Vectors) -> tuple[int, str]:
        """Adds the vectors that are missing; how many. Takes no lock: this may last."""
        texts = {key: text for one in prepared for part in one.parts for key, text in part.texts if key not in vectors}
        if self._embedder is None or not self._embeds or not texts:
            return 0, ""
        try:
            rows = quantised(np.asarray(self._embedder.embed(list(texts.values()), kind="document"), dtype=np.float32))
        except EmbedderDown as down:
            return 0, f"{down}; found by words until anima index --backfill makes the vectors"
        vectors |= {key: row.tobytes() for key, row in zip(texts, rows, strict=True)}
        return len(texts), ""


def _batches(documents: Iterable[DocumentIn]) -> Iterator[list[DocumentIn]]:
    """Documents in batches of bounded size; of two with one path the later counts."""
    batch: dict[str, DocumentIn] = {}
    size = 0
    for document in documents:
        batch[document.path] = document
        size += document.text.count("\n") + 1
        if size >= LINES_A_BATCH:
            yield list(batch.values())
            batch, size = {}, 0
    if batch:
        yield list(batch.values())


class _PreparedPart(NamedTuple):
    """A part cut and counted, but for its vectors. `texts` are what its units are embedded by, each with its hash."""

    packed: Packed
    said: str
    texts: list[tuple[int, str]]

    def finished(self, vectors: Vectors) -> NewPart:
        units = np.frombuffer(self.packed.units, dtype=UNIT).copy()
        units["embedded"] = [key in vectors for key, _ in self.texts]
        width = next((len(vectors[key]) for key, _ in self.texts if key in vectors), 0)
        rows = b"".join(vectors.get(key, bytes(width)) for key, _ in self.texts)
        return NewPart(self.packed._replace(units=units.tobytes()).pack(), rows, self.said)


class _Prepared(NamedTuple):
    """A document ready to be written: the parts that stay as they are held, and those that come after them."""

    document: DocumentIn
    row: DocumentRow
    held: list[HeldPart]
    kept: list[HeldPart]
    parts: list[_PreparedPart]

    @property
    def units(self) -> int:
        return sum(part.units for part in self.kept) + sum(len(part.texts) for part in self.parts)

    def writing(self, vectors: Vectors) -> Writing:
        before, parts = tuple(part.id for part in self.held), tuple(part.finished(vectors) for part in self.parts)
        return Writing(row=self.row, digest=self.document.digest, before=before, kept=len(self.kept), parts=parts)


def _prepare(document: DocumentIn, held_as: DocumentRow | None, held: list[HeldPart], with_vectors: bool) -> _Prepared:
    """With `with_vectors` a part that lacks one is not kept."""
    front, day = front_of(document.text), document.date.toordinal() if document.date else 0
    row = DocumentRow(0, document.path, document.kind, document.layer, day)
    is_same = held_as is not None and held_as[2:] == row[2:]
    count, at = _still_right(document, held, front, with_vectors) if is_same else (0, 0)
    kept = held[:count]
    made = list[_PreparedPart]()
    if not kept or len(kept) < len(held):
        first = sum(part.units for part in kept)
        for part in cut_parts(document.text[at:], held[len(kept)].place if kept else Place(front=front)):
            made.append(_counted(document, part, first))
            first += len(part.units)
    return _Prepared(document, row, held, kept, made)


def _still_right(document: DocumentIn, held: list[HeldPart], front: int, with_vectors: bool) -> tuple[int, int]:
    """How many parts, from the first on, cutting would give again, and where the text goes on."""
    at, text = 0, document.text
    for number, part in enumerate(held):
        end, is_last = at + part.chars, number == len(held) - 1
        stop = text.find("\n", end)
        ahead = None if is_last else text[end : stop if stop >= 0 else len(text)]
        if (
            part.place.front != front
            or end > len(text)
            or (is_last and end != len(text))
            or (with_vectors and part.vectors < part.units)
            or _print(document, part.place, text[at:end], ahead) != part.print
        ):
            return number, at
        at = end
    return len(held), at


def _print(document: DocumentIn, place: Place, text: str, ahead: str | None) -> bytes:
    """Everything a part's rows are made from: two parts with one print have the same rows."""
    seen = (document.scopes, document.trusted, place, ahead)
    made = hashlib.blake2b(repr(seen).encode("utf-8", "backslashreplace"))
    made.update(text.encode("utf-8", "surrogatepass"))
    return made.digest()[:16]


def _counted(document: DocumentIn, part: Part, first_unit: int) -> _PreparedPart:
    """A part with its words counted: a unit's own words count two, those of the headings above it one."""
    counted: dict[str, list[int]] = {}
    units, texts, speakers = np.zeros(len(part.units), dtype=UNIT), [], {"": 0}
    above, trail, place = "", list[str](), part.place
    for n, unit in enumerate(part.units):
        own, dateless = cut(unit.text), without_dates(unit.trail)
        if unit.trail != above:
            above, trail = unit.trail, cut(dateless)
        for word, count in Counter(own * 2 + trail).items():
            counted.setdefault(word, []).append((n << 8) | min(count, 255))
        head = dateless.strip(" >")
        text = f"{head}\n{unit.text}" if head else unit.text
        texts.append((hash_of(text), text))
        speaker = speakers.setdefault(next(iter(cut(unit.speaker)), ""), len(speakers))
        length, first = 2 * len(own) + len(trail), min(first_person(unit.text), 32767)
        seen = document.scopes, first, speaker, document.trusted
        units[n] = (unit.start_line, unit.end_line, length, *seen, False, texts[-1][0])
    hashes = [(hash_of(word), at) for word, found in counted.items() for at in found]
    places = np.array([(h & 0xFFFFFFFF, h >> 32, at) for h, at in hashes], dtype="<u4").tobytes()
    print_ = _print(document, place, part.text, part.ahead)
    packed = Packed(place, first_unit, len(part.text), print_, list(speakers)[1:], units.tobytes(), places)
    trails, tagged = [unit.trail for unit in part.units], [" ".join(tags(unit.text)) for unit in part.units]
    return _PreparedPart(packed, json.dumps([place.line, part.text, trails, tagged]), texts)
