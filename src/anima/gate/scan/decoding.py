"""Decoding: the text that a carrier holds, if it holds any.

Promise: every function gives readable text or None, never raises on any input, and looks at no more than the caller
hands over. Decoding is done once; what comes out is not decoded again.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from itertools import permutations

from anima.gate.scan.letters import readable

SYMBOLS = 16_384  # of one run of invisible characters, at most
_SAMPLE = 400


def from_tags(run: str) -> str | None:
    """ASCII hidden in the tag block, one character each."""
    return "".join(chr(ord(c) - 0xE0000) for c in run[:SYMBOLS] if 0xE0020 <= ord(c) <= 0xE007E) or None


def from_selectors(run: str) -> str | None:
    """Bytes, half bytes or bits hidden in variation selectors."""
    values = [_selector(c) for c in run[:SYMBOLS]]
    if len(set(values)) == 2:
        return from_bits(run)
    halves = [16 * high + low for high, low in zip(values[::2], values[1::2], strict=False)] if max(values) < 16 else []
    return text_of(bytes(values)) or text_of(bytes(halves))


def _selector(char: str) -> int:
    code = ord(char)
    return code - 0xFE00 if code <= 0xFE0F else (code - 0xE0100 + 16) & 0xFF


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
