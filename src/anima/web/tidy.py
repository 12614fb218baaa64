"""What could be tidied up in a served home: the last look at it, and carrying out what was shown.

Promise: a look is made once, however many ask, and kept until documents change; where it takes long it is not made again
by itself, but what it found is shown only as far as it still stands. An act names suggestions by the digest of what they
would do, is one change, and does nothing when one of them no longer stands. Not here: finding and writing (tidying).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from anima.errors import BadArguments, HomeError, StaleWrite
from anima.home import Home
from anima.model import Document, Receipt
from anima.upkeep.hygiene import Line
from anima.upkeep.tidy import Suggestion, again, look

QUICK = 0.5  # seconds: a look that takes no longer is made whenever somebody asks


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A look at a home. `outdated` tells that documents changed since, and that only what still stands is in it."""

    at: datetime
    lines: int
    documents: int
    notes: tuple[str, ...]
    found: Mapping[str, Suggestion] = field(repr=False)  # by id
    outdated: bool
    stamp: str = field(repr=False)
    cost: float = field(repr=False)


class Tidiness:
    """The last look at one home. Safe to share by threads."""

    def __init__(self, home: Home, *, quick: float = QUICK) -> None:
        self._home, self._quick = home, quick
        self._seen: Looked | None = None
        self._looking = threading.Lock()

    def known(self) -> Looked | None:
        """The last look, if nothing changed since; nobody waits for it."""
        seen = self._seen
        return seen if seen is not None and seen.stamp == self._stamp() else None

    def look(self, *, afresh: bool = False) -> Looked:
        """What is found now. A look that took long is made again only when it is asked for, `afresh`."""
        with self._looking:
            seen, stamp = self._seen, self._stamp()
            if seen is None or (seen.stamp != stamp and seen.cost <= self._quick) or (seen.outdated and afresh):
                seen = self._looked(stamp)
            elif seen.stamp != stamp:
                seen = self._looked(stamp) if afresh else self._still(seen, stamp)
            self._seen = seen
            return seen

    def tidy(self, ids: Sequence[str], line: int | None = None) -> tuple[Receipt, ...]:
        """Carries out what was shown as one change; `line` (1 or 2) is the one that holds, of a choice."""
        chosen = self._chosen(ids)
        if line is not None:
            if len(chosen) != 1:
                raise BadArguments("a line is chosen in one contradiction at a time")
            chosen = [chosen[0].keeping(_line(chosen[0], line))]
        receipts = self._home.tidy(chosen)
        if all(receipt.status not in ("refused", "pending") for receipt in receipts):
            self._drop(ids)
        return receipts

    def keep(self, ids: Sequence[str]) -> int:
        """Notes that all lines of what was shown stay; none is noted where one of them is no line."""
        chosen = self._chosen(ids)
        if any(one.to for one in chosen):
            raise BadArguments("only lines can be kept; a log stays by itself until it is archived")
        for one in chosen:
            self._home.keep_all(one)
        self._drop(ids)
        return len(chosen)

    # -- what was shown -------------------------------------------------------------------------------------------------

    def _chosen(self, ids: Sequence[str]) -> list[Suggestion]:
        """What was shown under these ids, as it stands now. Raises StaleWrite for one that is not found any more."""
        seen = self._seen
        if seen is None or not all(id in seen.found for id in ids):
            seen = self.look()
        found = [seen.found.get(id) for id in dict.fromkeys(ids)]
        standing = [again(self._home, one) for one in found if one is not None]
        if len(standing) != len(found):
            raise StaleWrite("memory", theirs=None, ours=None)
        return standing

    def _drop(self, ids: Sequence[str]) -> None:
        """What is done is not shown again, also where the next look is far."""
        with self._looking:
            if self._seen is not None:
                left = {id: one for id, one in self._seen.found.items() if id not in ids}
                self._seen = replace(self._seen, found=left)

    # -- looking --------------------------------------------------------------------------------------------------------

    def _looked(self, stamp: str) -> Looked:
        began = time.monotonic()
        found = look(self._home)
        return Looked(
            at=self._home.clock(),
            lines=found.lines,
            documents=found.documents,
            notes=found.notes,
            outdated=False,
            found={one.id: one for one in found.suggestions},
            stamp=stamp,
            cost=time.monotonic() - began,
        )

    def _still(self, seen: Looked, stamp: str) -> Looked:
        """What of a look still stands. What was forgotten since is not in it, nor around it."""
        pages = {page.path.text: page for one in seen.found.values() for page in one.pages}
        touched = {path for path, page in pages.items() if self._differs(page)}
        left = {}
        for id, one in seen.found.items():
            try:
                left[id] = again(self._home, one) if any(page.path.text in touched for page in one.pages) else one
            except HomeError:
                continue
        return replace(seen, found=left, stamp=stamp, outdated=True)

    def _differs(self, page: Document) -> bool:
        try:
            return self._home.store.read(page.path).digest != page.digest
        except HomeError:
            return True

    def _stamp(self) -> str:
        """Differs when a document, the ledger or the day does. No file is opened for it."""
        home, made = self._home, hashlib.sha256()
        for entry in home.store.list_all():
            made.update(f"{entry.path}\0{entry.size}\0{entry.time.timestamp()}\n".encode("utf-8", "surrogatepass"))
        written = home.books.log.size() if home.books.begun else 0
        made.update(f"{written} {home.reading.today()}".encode())
        return made.hexdigest()


def _line(one: Suggestion, number: int) -> Line:
    if not 1 <= number <= len(one.between):
        raise BadArguments("only between two lines that contradict each other one is chosen: 1 or 2")
    return one.between[number - 1]
