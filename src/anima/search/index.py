"""The index: what search needs of every document, derived from the files and never more than they say.

Promise: an `Index` is a pure function of the documents put into it; it may be late or lost, never wrong, and putting
the same documents again gives the same rows and the same scores. What a filter hides takes no part in any answer: not
in hits, not in neighbours, not in the statistics that scores are made of.
Not here: files (the caller walks and reads), ranking (`search`), vectors of texts (`embed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from anima.search.field import View

KINDS = ("curated", "daily", "topic", "bank", "knowledge", "session", "note")
ALL_SCOPES = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Lines `start`..`end` (from 1, both included) are visible to `scopes` (bits) and are trusted or not."""

    start: int
    end: int
    scopes: int
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentIn:
    """A document as the index takes it.

    `digest` is whatever the caller wants compared by `known()`: put the labels into it when they can change alone.
    `layer` says whose it is ("" the owner's, else a user's id, or any word the caller filters by). Lines outside every
    label have `scopes` and are trusted.
    """

    path: str
    digest: str
    text: str
    kind: str = "note"
    layer: str = ""
    date: date | None = None
    scopes: int = ALL_SCOPES
    labels: tuple[Label, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What may be seen. `scope` is the listener's bit; `kinds` None means every kind; dates are inclusive, and a
    document without a date is outside every span."""

    scope: int = ALL_SCOPES
    layers: frozenset[str] = frozenset({""})
    kinds: frozenset[str] | None = None
    trusted_only: bool = False
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """One unit as it is shown: the exact lines it stands on, and what the index knows of it."""

    path: str
    start_line: int
    end_line: int
    text: str  # the whole lines
    trail: str
    kind: str
    layer: str
    date: date | None
    trusted: bool
    document_id: str
    chunk_id: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutReport:
    """What a put did. `embedded` texts were new, `reused` had a vector already, `missing` have none yet."""

    documents: int = 0
    units: int = 0
    embedded: int = 0
    reused: int = 0
    missing: int = 0
    notes: tuple[str, ...] = ()


class Index(Protocol):
    """The seam. Every implementation passes `tests/index_contract.py`; an index is bound to one home when made."""

    def known(self) -> dict[str, str]:
        """The digest of every document in the index, by path."""
        ...

    def put(self, documents: Iterable[DocumentIn]) -> PutReport:
        """Takes documents in, each in place of what stood at its path. Seen by the next `look`."""
        ...

    def drop(self, paths: Iterable[str]) -> int:
        """Forgets documents, with their words and vectors; how many there were."""
        ...

    def look(self, filter: Filter, words: Sequence[str] = ()) -> View:
        """One consistent sight of all that the filter lets through, with the places of these words.

        Later writes do not change it.
        """
        ...

    def backfill(self, *, batch: int = 256) -> PutReport:
        """Makes vectors for units that have none because the embedder was away."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What a person should know: rebuilt after damage, vectors missing, and so on. Each is said once."""
        ...

    def close(self) -> None: ...
