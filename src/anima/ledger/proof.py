"""What proves a record: the home's key, with which every record of a ledger is sealed.

Promise: nobody without the key can make a record, change one or put a chain together anew.
Not here: which records there are and in which order (chain), whether a whole chain hangs together (verify).
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from anima.errors import Damaged
from anima.text.markdown import bullet_text

FORMAT = 3  # of the home as a whole; a ledger begins with it, and a greater number is refused
_HALF = 2**24  # of a record's number, which is hidden half by half
ORIGINAL = "0" * 64  # what the first record names as the one before it

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class Log(Protocol):
    """An append-only run of bytes, as the store gives it. Its errors are those of `anima.errors`."""

    def size(self) -> int: ...

    def read(self, start: int, end: int | None = None) -> bytes:
        """The bytes of a range, fewer where the log ends before it."""

    def append(self, data: bytes, *, sync: bool) -> None:
        """Add in one write; with `sync`, return only when it is on the disk."""

    def truncate(self, size: int) -> None:
        """Cut the log. The ledger asks for it only to remove an unterminated last line."""


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


class Key:
    """Makes the keyed digests of one home. Whoever has not the key can neither guess nor test a text."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if not 16 <= len(secret) <= 64:
            raise Damaged("the home's key has not the right length", hint="put the key of this home back from a backup")
        self._secret = secret

    def __repr__(self) -> str:
        return f"Key({self.id[:8]}…)"

    def seal(self, data: bytes) -> str:
        """The hash of a record, which only the key can make."""
        return hashlib.blake2b(data, digest_size=32, key=self._secret, person=b"anima record").hexdigest()

    @property
    def id(self) -> str:
        """A public name for the key; it stands in the ledger's first record, so that a wrong key is noticed."""
        return self._digest(b"", b"anima key")

    def of(self, text: str) -> str:
        """The digest of a whole text, exact to the byte."""
        return self._digest(text.encode("utf-8", "surrogatepass"), b"anima text")

    def line(self, text: str) -> str:
        """The digest of one line, the same wherever the line stands; "" for a line that says nothing.

        Equal for lines that differ only in line ending, blanks at either end, the width of blanks in between, the
        list marker (bullet or number, so that moving a line in a numbered list changes nothing) or Unicode form (NFC).
        """
        words = bullet_text(" ".join(text.split()))
        if not words:
            return ""
        if not words.isascii():
            words = unicodedata.normalize("NFC", words)
        return self._digest(words.encode("utf-8", "surrogatepass"), b"anima line")

    def phrase(self, words: str) -> str:
        """The digest of a phrase that stays forgotten, of its words as `forgotten` cuts them."""
        return self._digest(words.encode("utf-8", "surrogatepass"), b"anima forgot")

    def lines(self, text: str) -> list[str]:
        """The digest of each line of a text, in order; lines end at LF."""
        return [self.line(line) for line in text.split("\n")]

    def name_of(self, number: int) -> str:
        """The public name of a record's number, which tells whoever has not the key nothing of how many there are."""
        left, right = divmod(number, _HALF)
        for turn in range(4):
            left, right = right, left ^ self._mixed(turn, right)
        return f"{left:06x}{right:06x}"

    def number_of(self, name: str) -> int:
        """The number behind a name; what is shorter is the number itself, as names once were."""
        if len(name) < 12:
            return int(name)
        left, right = divmod(int(name, 16), _HALF)
        for turn in reversed(range(4)):
            left, right = right ^ self._mixed(turn, left), left
        return left * _HALF + right

    def _mixed(self, turn: int, half: int) -> int:
        return int(self._digest(f"{turn} {half}".encode(), b"anima number")[:6], 16)

    def _digest(self, data: bytes, purpose: bytes) -> str:
        return hashlib.blake2b(data, digest_size=16, key=self._secret, person=purpose).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the ledger. `t` is ISO time in UTC; `fields` is what its kind says."""

    n: int
    t: str
    kind: str
    fields: Mapping[str, Any]
    prev: str
    hash: str

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.t)


def sound(line: bytes, key: Key | None) -> Record | None:
    """The record a line holds if it is what was written; without the key, if it holds one."""
    record = parse(line.decode("latin-1"))
    return record if record is not None and holds(record, line, key) else None


def holds(record: Record, line: bytes, key: Key | None) -> bool:
    """Whether a record is what was written: without its hash, the line's bytes are what was hashed."""
    if key is None:
        return True
    return key.seal(line.replace(f'"hash":"{record.hash}",'.encode("latin-1", "replace"), b"", 1)) == record.hash


def first_of(log: Log) -> tuple[Record | None, bytes]:
    """The first record as it stands there, unproven, and its line."""
    line = log.read(0, 4096).partition(b"\n")[0]
    return parse(line.decode("latin-1")), line


def sealed(n: int, t: str, kind: str, fields: Mapping[str, Any], *, prev: str, key: Key) -> tuple[Record, bytes]:
    """A record and its line: the hash is that of the line without it, made with the key."""
    body = {**fields, "n": n, "t": t, "kind": kind, "prev": prev}
    digest = key.seal(_encode(body).encode("ascii"))
    data = _encode({**body, "hash": digest}).encode("ascii") + b"\n"
    return Record(n=n, t=t, kind=kind, fields=dict(fields), prev=prev, hash=digest), data


def parse(line: str) -> Record | None:
    """The record a line holds, unchecked; None if it is none."""
    try:
        raw = json.loads(line)
        n, t, kind, prev, digest = raw.pop("n"), raw.pop("t"), raw.pop("kind"), raw.pop("prev"), raw.pop("hash")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    if type(n) is not int or not type(t) is type(kind) is type(prev) is type(digest) is str:
        return None
    return Record(n=n, t=t, kind=kind, fields=raw, prev=prev, hash=digest)
