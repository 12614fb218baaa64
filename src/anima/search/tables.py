"""The seam of the index: what an engine keeps of the units of one home, and the methods by which it gives them back.

Promise: an engine keeps rows and knows nothing of words, scopes or scores; the same rows in any engine give the same
answers. A number of a part or a document is never used twice within an epoch, so that a new one is known by a number
above all before; a document's path, kind, layer and day never change under one number. Every engine passes
`anima.testing.tables.TablesContract`. Bound to one home when made, and safe to share by threads.
Not here: cutting, counting and vectors (`index`), arrays (`field`), the engine itself (`sqlite`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from anima.errors import HomeError


class IndexDown(HomeError):
    """A derived index can be neither read nor written just now. What it holds is as it was."""


class DocumentRow(NamedTuple):
    """A document. `id` is 0 before it is put; `day` is the date's ordinal, 0 when it has none."""

    id: int
    path: str
    kind: str
    layer: str
    day: int


class PartRow(NamedTuple):
    """Some dozens of units of a document as arrays are made of them. Opaque to an engine, but for `vectors`: whole
    numbers of 16 bits, one vector a unit, or nothing."""

    id: int
    document: int
    packed: bytes
    vectors: bytes


class NewPart(NamedTuple):
    """A part to be written. `said` is what is shown of it, and is only read to be shown."""

    packed: bytes
    vectors: bytes
    said: str


class ShownPart(NamedTuple):
    """What is shown of a part, and the digest of its document as it stands now."""

    digest: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """A document to be written. The first `kept` of the parts that were there `before` stay, `parts` follow them."""

    row: DocumentRow
    digest: str
    before: tuple[int, ...]
    kept: int
    parts: tuple[NewPart, ...]


class Mark(NamedTuple):
    """How far somebody has read: what the rows were made for, and the last generation, part and document seen."""

    epoch: str = ""
    made_for: str = ""
    generation: int = -1
    part: int = 0
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed since a mark. In another epoch than the mark's everything is new.

    `alive` gives the document of every part there is, None when nothing changed; rows come by their numbers.
    """

    mark: Mark
    alive: Mapping[int, int] | None = None
    documents: Sequence[DocumentRow] = ()
    parts: Sequence[PartRow] = ()


class Tables(Protocol):
    """An engine. Each method is one transaction and sees one generation. Raises IndexDown when nothing can be had.

    What is damaged is begun again by the engine itself, empty, in a new epoch, and said in the notes.
    """

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept here. Asking makes nothing."""
        ...

    def begin(self, made_for: str, *, anew: bool = False) -> None:
        """Says what rows are made for; called before anything else. Rows made for something else, and with `anew` all
        of them, are dropped without a trace, and a new epoch begins."""
        ...

    def known(self) -> dict[str, str]:
        """The digest of every document, by path."""
        ...

    def since(self, mark: Mark) -> Changes: ...

    def put(self, epoch: str, documents: Sequence[Writing]) -> list[str]:
        """Writes documents, all in one transaction; the paths that were refused.

        A document is refused when the epoch is another, or when its parts are no longer those it had `before`. One that
        keeps no part gets a new number.
        """
        ...

    def drop(self, paths: Collection[str]) -> int:
        """Takes documents out with all their rows; how many there were."""
        ...

    def shown(self, parts: Collection[int]) -> dict[int, ShownPart]:
        """The texts of parts, by number; one that is gone is left out."""
        ...

    def notes(self) -> tuple[str, ...]:
        """What a person should know, such as that rows were lost and are begun again. Each is said once."""
        ...

    def close(self) -> None:
        """Lets go. Closing twice is fine; any method opens again."""
        ...
