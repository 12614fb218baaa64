"""Documents made ready for an index: cut, counted, labelled and hashed. Every engine writes just this.

Promise: pure; the same document gives the same rows, words and hashes on every machine.
Not here: where they are written (`sqlite`), vectors (`embed`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from anima.index import DocumentIn, PutReport
from anima.index.units import Unit, cut_units
from anima.index.words import cut, without_dates

UNITS_A_BATCH: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A document cut and counted, ready to be written."""

    document: DocumentIn
    units: list[Unit]
    labels: list[tuple[int, bool]]
    lengths: list[int]
    postings: dict[str, bytes]
    texts: list[str]
    hashes: list[bytes]


def prepare(document: DocumentIn) -> Prepared:
    borders = sorted({edge for label in document.labels for edge in (label.start, label.end + 1)})
    units = cut_units(document.text, borders=borders)
    counted: dict[str, list[int]] = {}
    lengths, texts = [], []
    above, trail = "", list[str]()
    for n, unit in enumerate(units):
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
    return Prepared(
        document=document,
        units=units,
        labels=[_label(document, unit) for unit in units],
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
