"""The ledger of a home as it stands, only to look at: no lock, nothing begun, nothing changed.

Promise: what cannot be read is nothing, or a sentence. Not here: the ledger that is added to (place).
"""

from __future__ import annotations

from dataclasses import dataclass

from anima.errors import Damaged
from anima.ledger.chain import Key, Ledger
from anima.store.place import FolderStore
from anima.store.private import FOLDER

LEDGER, KEY = "ledger.jsonl", "key"


def kind_of(store: FolderStore, name: str) -> str | None:
    """What stands under a name in `.anima`."""
    return store.documents.kind_of(f"{FOLDER}/{name}")


@dataclass(frozen=True, slots=True)
class Still:
    """A ledger as it was read: a Log that nobody can add to."""

    data: bytes

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int | None = None) -> bytes:
        return self.data[start:end]

    def append(self, data: bytes, *, sync: bool) -> None:
        raise Damaged("a ledger that is only looked at cannot be written")

    def truncate(self, size: int) -> None:
        raise Damaged("a ledger that is only looked at cannot be cut")


def ledger_bytes(store: FolderStore) -> bytes:
    """The bytes of the ledger, opened for this look alone; none where none is."""
    if kind_of(store, LEDGER) != "file":
        return b""
    return store.documents.bytes_of(f"{FOLDER}/{LEDGER}") or b""


def still_ledger(store: FolderStore) -> Ledger:
    """The ledger as it stands; where its key is none, what it says is not proven."""
    return Ledger(Still(ledger_bytes(store)), key=key_of(store)[0], clock=store.clock)


def key_of(store: FolderStore) -> tuple[Key | None, str]:
    """The key, or what is wrong with it."""
    raw = store.machine.get(KEY) if kind_of(store, KEY) == "file" else None
    if raw is None:
        return None, "The key of the ledger is gone; its digests mean nothing without it."
    if raw and not any(raw):
        return None, "The key of the ledger holds nothing but zeros, which anybody can guess."
    try:
        return Key(raw), ""
    except Damaged:
        return None, f"The key of the ledger has {len(raw):,} bytes, which no key of ours has."
