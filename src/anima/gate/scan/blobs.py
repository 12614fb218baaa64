"""Blobs: text in base64, hexadecimal digits or escapes, decoded once.

Promise: at most `BLOB` characters of one blob and `TOTAL` of a text are decoded; a longer blob's finding says so. What
decodes to bytes that are not words is no finding: keys, digests, pictures and paths stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from anima.gate.scan import decoding
from anima.gate.scan.lazy import lazy
from anima.gate.scan.letters import long_words

BLOB = 65_536  # characters of one blob that are decoded, at most
TOTAL = 262_144  # characters of all blobs of one text
MOST = 1000  # blobs of one text
UNREAD = "unread"
_PROBE = 256  # what does not begin with words is not decoded further

_BASE64 = lazy(
    r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/]{60,76}+\r?\n){1,4000}+[A-Za-z0-9+/]{0,76}+={0,2}|[A-Za-z0-9+/_-]{20,}+={0,2})"
)
_HEX = lazy(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}){10,}+(?![0-9A-Za-z])")
# The first character stands alone so that the search can skip to it; what must not stand before it comes after.
_SPACED_HEX = lazy(r"[0-9a-fA-F](?<![0-9A-Za-z].)[0-9a-fA-F](?:[ ,:]{1,2}(?:0x)?[0-9a-fA-F]{2}){9,}+")
_BACKSLASH_HEX = lazy(r"(?:\\x[0-9a-fA-F]{2}){8,}+")
_PERCENT = lazy(r"(?:%[0-9a-fA-F]{2}){8,}+")
_BACKSLASH_U = lazy(r"(?:\\u\{?[0-9a-fA-F]{4,6}\}?){6,}+")
_ENTITIES = lazy(r"(?:&#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});){6,}+")
_ONLY_HEX = lazy(r"[0-9a-fA-F]+=*")


class Blob(NamedTuple):
    start: int
    end: int
    kind: str
    text: str
    whole: bool


def blobs(text: str) -> Iterator[Blob]:
    """The blobs of a text that hold words. One of the kind "unread" says that there was too much to decode."""
    left, count, words = TOTAL, 0, long_words(text, 16)
    for kind, pattern, decode, sign in _CARRIERS:
        for found in pattern.finditer(text) if _worthwhile(pattern, sign, text, words) else ():
            if left <= 0 or count >= MOST:
                yield Blob(*found.span(), UNREAD, "", False)
                return
            piece = found[0][: min(BLOB, left)]
            if (kind == "base64" and _ONLY_HEX.fullmatch(piece)) or not decode(piece[:_PROBE]):
                left -= min(len(piece), _PROBE) if len(piece) > 64 else 0
                continue
            left, count = left - len(piece), count + 1
            yield Blob(*found.span(), kind, decode(piece) or "", len(piece) == len(found[0]))


def _worthwhile(pattern: re.Pattern[str], sign: str, text: str, words: str) -> bool:
    """Whether a carrier can be there at all; most texts have no word long enough."""
    return sign in words and pattern.search(words) is not None if sign != " " else " " in text


_CARRIERS: tuple[tuple[str, re.Pattern[str], Callable[[str], str | None], str], ...] = (
    ("base64", _BASE64, decoding.from_base64, ""),
    ("hex", _HEX, decoding.from_hex, ""),
    ("hex", _BACKSLASH_HEX, decoding.from_hex, "\\x"),
    ("hex", _SPACED_HEX, decoding.from_hex, " "),
    ("escapes", _PERCENT, decoding.from_escapes, "%"),
    ("escapes", _BACKSLASH_U, decoding.from_escapes, "\\u"),
    ("escapes", _ENTITIES, decoding.from_escapes, "&#"),
)
