"""Encoded text: base64, hexadecimal digits, escapes, and bits in invisible characters, decoded once.

Promise: what decodes gives readable text or nothing, and never raises; what comes out is not decoded again. At most
`BLOB` characters of one blob and `TOTAL` of a text are decoded; a longer blob's finding says so. What decodes to bytes
that are not words is no finding: keys, digests, pictures and paths stay what they are.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import NamedTuple

from anima.gate.scan.sights import compiled

BLOB = 65_536  # characters of one blob that are decoded, at most
TOTAL = 262_144  # characters of all blobs of one text
MOST = 1000  # blobs of one text
UNREAD = "unread"
_PROBE = 256  # what does not begin with words is not decoded further

_BASE64 = r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/]{60,76}+\r?\n){1,4000}+[A-Za-z0-9+/]{0,76}+={0,2}|[A-Za-z0-9+/_-]{20,}+={0,2})"
_HEX = r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}){10,}+(?![0-9A-Za-z])"
# The first character stands alone so that the search can skip to it; what must not stand before it comes after.
_SPACED_HEX = r"[0-9a-fA-F](?<![0-9A-Za-z].)[0-9a-fA-F](?:[ ,:]{1,2}(?:0x)?[0-9a-fA-F]{2}){9,}+"
_BACKSLASH_HEX = r"(?:\\x[0-9a-fA-F]{2}){8,}+"
_PERCENT = r"(?:%[0-9a-fA-F]{2}){8,}+"
_BACKSLASH_U = r"(?:\\u\{?[0-9a-fA-F]{4,6}\}?){6,}+"
_ENTITIES = r"(?:&#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});){6,}+"
_ONLY_HEX = r"[0-9a-fA-F]+=*"
SYMBOLS = 16_384  # of one run of invisible characters, at most
_SAMPLE = 400  # characters that say whether a text is words


class Blob(NamedTuple):
    start: int
    end: int
    kind: str
    text: str
    whole: bool


def blobs(text: str) -> Iterator[Blob]:
    """The blobs of a text that hold words. One of the kind "unread" says that there was too much to decode."""
    left, count, words = TOTAL, 0, " ".join([word for word in text.split() if len(word) >= 16])
    for kind, pattern, decode, sign in _CARRIERS:
        # Most texts have no word that is long enough for a carrier.
        worth = " " in text if sign == " " else sign in words and compiled(pattern).search(words) is not None
        for found in compiled(pattern).finditer(text) if worth else ():
            if left <= 0 or count >= MOST:
                yield Blob(*found.span(), UNREAD, "", False)
                return
            piece = found[0][: min(BLOB, left)]
            if (kind == "base64" and compiled(_ONLY_HEX).fullmatch(piece)) or not decode(piece[:_PROBE]):
                left -= min(len(piece), _PROBE) if len(piece) > 64 else 0
                continue
            left, count = left - len(piece), count + 1
            yield Blob(*found.span(), kind, decode(piece) or "", len(piece) == len(found[0]))


def from_tags(run: str) -> str | None:
    """ASCII hidden in the tag block, one character each."""
    return "".join(chr(ord(c) - 0xE0000) for c in run[:SYMBOLS] if 0xE0020 <= ord(c) <= 0xE007E) or None


def from_selectors(run: str) -> str | None:
    """Bytes, half bytes or bits hidden in variation selectors."""
    codes = [ord(c) for c in run[:SYMBOLS]]
    values = [code - 0xFE00 if code <= 0xFE0F else (code - 0xE0100 + 16) & 0xFF for code in codes]
    if len(set(values)) == 2:
        return from_bits(run)
    halves = [16 * high + low for high, low in zip(values[::2], values[1::2], strict=False)] if max(values) < 16 else []
    return text_of(bytes(values)) or text_of(bytes(halves))


def from_bits(run: str) -> str | None:
    """Text hidden in two to four different invisible characters, whatever they stand for."""
    run = run[:SYMBOLS]
    alphabet = list(dict.fromkeys(run))
    if not 2 <= len(alphabet) <= 4:
        return None
    words = [text for text in _readings(run, alphabet) if text and readable(text[:_SAMPLE])]
    return max(words, key=lambda text: sum(map(str.isascii, text[:_SAMPLE])) / len(text[:_SAMPLE]), default=None)


def _readings(run: str, alphabet: list[str]) -> Iterator[str | None]:
    if len(alphabet) == 4:
        for digits in permutations(alphabet):
            table = str.maketrans({c: f"{value:02b}" for value, c in enumerate(digits)})
            yield _from_binary(run.translate(table), 8)
    for separator in alphabet if len(alphabet) == 3 else []:
        zero, one = (c for c in alphabet if c != separator)
        for bits in _both_ways(run, zero, one):
            yield _from_groups(bits.split(separator))
            yield from _from_widths(bits.replace(separator, ""))
    if len(alphabet) == 2:
        for bits in _both_ways(run, *alphabet):
            yield from _from_widths(bits)


def _both_ways(run: str, zero: str, one: str) -> Iterator[str]:
    yield run.replace(zero, "0").replace(one, "1")
    yield run.replace(zero, "1").replace(one, "0")


def _from_widths(bits: str) -> Iterator[str | None]:
    for width in (8, 7, 16):
        yield _from_binary(bits, width)
        yield _from_binary(bits, width, reverse=True)


def _from_binary(bits: str, width: int, *, reverse: bool = False) -> str | None:
    groups = [bits[at : at + width] for at in range(0, len(bits) - width + 1, width)]
    values = [int(group[::-1] if reverse else group, 2) for group in groups]
    return _decoded(bytes(values)) if width == 8 else "".join(map(chr, values)) if values else None


def _from_groups(groups: list[str]) -> str | None:
    if any(len(group) > 20 for group in groups):
        return None
    return "".join(chr(int(group, 2)) for group in groups if group)


def from_base64(token: str) -> str | None:
    """Text in base64, standard or for URLs, with or without padding and line breaks."""
    letters = re.sub(r"[\s=]+", "", token).replace("-", "+").replace("_", "/")
    if len(letters) % 4 == 1:
        letters = letters[:-1]  # cut off in the middle, by us or by the writer
    try:
        return text_of(binascii.a2b_base64(letters + "=" * (-len(letters) % 4)))
    except binascii.Error:
        return None


def from_hex(token: str) -> str | None:
    """Text in hexadecimal digits, with or without separators."""
    digits = re.sub(r"0x|\\x|[^0-9a-fA-F]", "", token)
    return text_of(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def from_escapes(token: str) -> str | None:
    """Text in percent signs, backslash-u escapes or numeric entities."""
    if token.startswith("%"):
        return from_hex(token)
    codes = re.findall(r"[uU]\{?([0-9a-fA-F]+)|&#[xX]([0-9a-fA-F]+)|&#([0-9]+)", token)
    values = [int(u or x, 16) if u or x else int(d) for u, x, d in codes]
    text = "".join(chr(value) for value in values if value < 0x110000 and not 0xD800 <= value < 0xE000)
    return text if readable(text[:_SAMPLE]) else None


def text_of(raw: bytes) -> str | None:
    """The bytes as text, if that is what they are."""
    text = _decoded(raw)
    return text if text and readable(text[:_SAMPLE]) else None


def _decoded(raw: bytes) -> str | None:
    if len(raw) >= 8 and raw[1::2].count(0) * 4 > len(raw):
        return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace")
    for tail in range(min(4, len(raw))):  # a cut may have fallen inside a character
        try:
            return raw[: len(raw) - tail].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(raw) - 4:
                return None
    return None


_FAMILIES = (
    "[\u00a0-\u024f\u2010-\u2026] [\u0370-\u052f] [\u0590-\u08ff] [\u0900-\u0dff] "
    "[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef] [\uac00-\ud7af]"
).split(" ")


def readable(text: str) -> bool:
    """Whether decoded characters are words of one script rather than noise."""
    if len(text) < 3 or not any(c.isalpha() for c in text):
        return False
    plain = sum(c in " \n" or (c.isascii() and c.isprintable()) for c in text)
    script = plain + max(len(compiled(family).findall(text)) for family in _FAMILIES)
    letters = sum(c.isalpha() or c == " " for c in text)
    return script >= 0.9 * len(text) and letters >= 0.6 * len(text)


_CARRIERS: tuple[tuple[str, str, Callable[[str], str | None], str], ...] = (
    ("base64", _BASE64, from_base64, ""),
    ("hex", _HEX, from_hex, ""),
    ("hex", _BACKSLASH_HEX, from_hex, "\\x"),
    ("hex", _SPACED_HEX, from_hex, " "),
    ("escapes", _PERCENT, from_escapes, "%"),
    ("escapes", _BACKSLASH_U, from_escapes, "\\u"),
    ("escapes", _ENTITIES, from_escapes, "&#"),
)
