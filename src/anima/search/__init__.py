"""Finding: units of text, words and meaning, one ranking, and an index that can be deleted and made again. Here: how a part of
the index is packed, a header, rows of its units, and places of its words.

Promise: the one form of it, for who makes arrays of it (`field`) and for who looks up some words by their bytes, where
nothing heavy may be imported (`connect.hook`): standard library only. Not here: what is packed (`index`), where it is
kept (`tables`).
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

CUTTING: Final = "lines-6"  # changes whenever the same text would be cut otherwise
PACKING: Final = "packed-3"  # changes whenever ROW or the form of places does
ROW: Final = {
    "start": "i",
    "end": "i",
    "length": "i",  # words of the unit and half of its trail's, times two
    "scopes": "i",
    "first": "h",  # words in the first person
    "speaker": "h",  # from 1, among the part's speakers; 0 for nobody
    "trusted": "?",
    "embedded": "?",  # whether it has a vector
    "text": "Q",  # the hash of what was embedded
}
UNIT: Final = struct.Struct(f"<{''.join(ROW.values())}")
OWNER_ALONE: Final = 1 << 5  # of `scopes`, above the bits of every scope: the owner in MAIN, and nobody else there
_PLACE = 12  # bytes: a word's hash, and unit << 8 | count


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a part begins, and all that cutting must know of what stands above. `above` is opaque, and bounded."""

    line: int = 1
    front: int = 0  # the last line of the document's front matter
    above: str = ""


def hash_bytes(text: str) -> bytes:
    """64 bits of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def opened(packed: bytes) -> tuple[list[Any], bytes, bytes]:
    """The header of a part, the rows of its units, and the places of its words."""
    header, _, rest = packed.partition(b"\n")
    *found, size = json.loads(header.decode())
    return found, rest[:size], rest[size:]


def places_of(word: bytes, places: bytes) -> Iterator[tuple[int, int]]:
    """The units in which a word stands, by its hash, and how often."""
    at = places.find(word)
    while at >= 0:
        if at % _PLACE == 0:
            place = int.from_bytes(places[at + 8 : at + _PLACE], "little")
            yield place >> 8, place & 0xFF
        at = places.find(word, at + 1)
