"""Documents made ready for an index: cut, counted, labelled and hashed. Every engine writes just this.

Promise: pure; the same document gives the same rows, words and hashes on every machine. Where an index holds the
beginning of a document already, only what comes after is cut; the outcome is the same as that of cutting it whole.
Not here: where they are written (`sqlite`), vectors (`embed`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from anima.search.index import DocumentIn, Label, PutReport
from anima.search.units import Part, Place, Unit, cut_parts, front_of
from anima.text.words import cut, without_dates

UNITS_A_BATCH: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPart:
    """A part as an index holds it. `print` says all it was made from; `vectors` is how many of its units have one."""

    id: int
    place: Place
    first_unit: int
    units: int
    chars: int
    print: bytes
    vectors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPart:
    """A part cut and counted, ready to be written."""

    part: Part
    first_unit: int  # the number of its first unit in the document, from 0
    print: bytes
    labels: list[tuple[int, bool]]
    lengths: list[int]
    postings: dict[str, bytes]
    texts: list[str]
    hashes: list[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A document ready to be written: the parts that stay as they are held, and those that come after them."""

    document: DocumentIn
    kept: tuple[HeldPart, ...]
    parts: tuple[PreparedPart, ...]

    @property
    def hashes(self) -> list[bytes]:
        return [key for one in self.parts for key in one.hashes]

    @property
    def texts(self) -> list[str]:
        return [text for one in self.parts for text in one.texts]

    @property
    def units(self) -> int:
        return sum(one.units for one in self.kept) + sum(len(one.hashes) for one in self.parts)


def prepare(document: DocumentIn, held: Sequence[HeldPart] = ()) -> Prepared:
    front = front_of(document.text)
    kept, at = _still_right(document, held, front)
    if at < 0:
        return Prepared(document=document, kept=kept, parts=())
    place = held[len(kept)].place if 0 < len(kept) < len(held) else Place(front=front)
    first = sum(one.units for one in kept)
    borders = [edge for label in document.labels for edge in (label.start, label.end + 1)]
    made = []
    for part in cut_parts(document.text[at:], place, borders=borders):
        made.append(_counted(document, part, first))
        first += len(part.units)
    return Prepared(document=document, kept=kept, parts=tuple(made))


def _still_right(document: DocumentIn, held: Sequence[HeldPart], front: int) -> tuple[tuple[HeldPart, ...], int]:
    """The parts, from the first on, that cutting would give again, and where the text goes on; -1 when all are right."""
    at, text = 0, document.text
    for number, one in enumerate(held):
        end, is_last = at + one.chars, number == len(held) - 1
        ahead = None if is_last else text[end : _line_end(text, end)]
        if one.place.front != front or end > len(text) or (is_last and end != len(text)):
            return tuple(held[:number]), at
        if _print(document, one.place, text[at:end], ahead) != one.print:
            return tuple(held[:number]), at
        at = end
    return tuple(held), -1 if held else 0


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return found if found >= 0 else len(text)


def _print(document: DocumentIn, place: Place, text: str, ahead: str | None) -> bytes:
    """Everything a part's rows are made from: two parts with one print have the same rows."""
    last = place.line + text.count("\n")  # the line ahead, or the last one of all
    labels = [
        (max(label.start, place.line), min(label.end, last), label.scopes, label.trusted)
        for label in _labels_in(document.labels, place.line, last)
    ]
    made = hashlib.blake2b(repr((document.scopes, labels, place, ahead)).encode("utf-8", "backslashreplace"))
    made.update(text.encode("utf-8", "surrogatepass"))
    return made.digest()[:16]


def _labels_in(labels: Sequence[Label], first: int, last: int) -> list[Label]:
    return [label for label in labels if label.start <= last and first <= label.end]


def _counted(document: DocumentIn, part: Part, first_unit: int) -> PreparedPart:
    counted: dict[str, list[int]] = {}
    lengths, texts = [], []
    above, trail = "", list[str]()
    for n, unit in enumerate(part.units):
        own = cut(unit.text)
        if unit.trail != above:
            above, trail = unit.trail, cut(without_dates(unit.trail))
        lengths.append(2 * len(own) + len(trail))
        texts.append(_text_to_embed(unit))
        counts: dict[str, int] = {}
        for word in own:
            counts[word] = counts.get(word, 0) + 2
        for word in trail:
            counts[word] = counts.get(word, 0) + 1
        for word, count in counts.items():
            counted.setdefault(word, []).append((n << 8) | min(count, 255))
    near = _labels_in(document.labels, part.place.line, part.place.line + part.text.count("\n"))
    clipped = replace(document, text="", labels=tuple(near))
    return PreparedPart(
        part=part,
        first_unit=first_unit,
        print=_print(document, part.place, part.text, part.ahead),
        labels=[_label(clipped, unit) for unit in part.units],
        lengths=lengths,
        postings={word: np.array(places, dtype="<u4").tobytes() for word, places in counted.items()},
        texts=texts,
        hashes=[text_hash(text) for text in texts],
    )


def _text_to_embed(unit: Unit) -> str:
    trail = without_dates(unit.trail).strip(" >")
    return f"{trail}\n{unit.text}" if trail else unit.text


def _label(document: DocumentIn, unit: Unit) -> tuple[int, bool]:
    """Who may see a unit. Where labels overlap the narrowest wins: only scopes that all of them allow."""
    scopes, trusted, labelled = document.scopes, True, False
    for label in document.labels:
        if label.start <= unit.end_line and unit.start_line <= label.end:
            scopes = scopes & label.scopes if labelled else label.scopes
            trusted, labelled = trusted and label.trusted, True
    return scopes, trusted


def text_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def batches(documents: Iterable[DocumentIn]) -> Iterator[list[DocumentIn]]:
    """Documents in batches of bounded size; of two with one path the later counts."""
    batch: dict[str, DocumentIn] = {}
    size = 0
    for document in documents:
        batch[document.path] = document
        size += document.text.count("\n") + 1
        if size >= UNITS_A_BATCH:
            yield list(batch.values())
            batch, size = {}, 0
    if batch:
        yield list(batch.values())


def added(one: PutReport, other: PutReport) -> PutReport:
    return PutReport(
        documents=one.documents + other.documents,
        units=one.units + other.units,
        embedded=one.embedded + other.embedded,
        reused=one.reused + other.reused,
        missing=one.missing + other.missing,
        notes=tuple(dict.fromkeys(one.notes + other.notes)),
    )
