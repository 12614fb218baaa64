"""The end of a home's chain, noted where nobody who only has the home's files can reach it.

Promise: what is noted is a record that no crash can take back, so a crash is never taken for a hand; it is renewed as
the chain grows and only while the chain still holds what was noted before: else it is the proof. Where nothing can be
noted, all goes on. Not here: where it is kept (layout.trust), what a missing record means (ledger.verify).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from anima.errors import HomeError
from anima.ledger.chain import Ledger, Record
from anima.ledger.proof import parse


class Head(Protocol):
    """Keeps one (number, hash). Writing raises OSError where it cannot be."""

    def get(self) -> tuple[int, str] | None: ...

    def put(self, n: int, digest: str) -> None: ...

    def drop(self) -> None: ...


class Heads:
    """What is noted of one home; nothing, where nobody keeps it."""

    def __init__(self, head: Head | None) -> None:
        self._head = head

    def all(self) -> list[tuple[int, str]]:
        noted = self._head.get() if self._head is not None else None
        return [noted] if noted else []

    def note(self, ledger: Ledger, record: Record) -> None:
        """Notes a record of this ledger that is on the disk. Whoever calls holds the home lock."""
        if self._head is not None:
            with suppress(HomeError, OSError):
                if all(ledger.holds(*noted) for noted in self.all()):
                    self._head.put(record.n, record.hash)

    @contextmanager
    def renewing(self, last_record: Callable[[], bytes]) -> Iterator[None]:
        """Another chain takes the place of the one that was noted: from here on nothing is, should we be killed, and
        when it stands, its end. Whoever calls holds the home lock."""
        if self._head is None:
            yield
            return
        with suppress(OSError):
            self._head.drop()
        yield
        with suppress(OSError):
            if (last := parse(last_record().decode("latin-1"))) is not None:
                self._head.put(last.n, last.hash)


__all__ = ["Head", "Heads"]
