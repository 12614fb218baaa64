"""Hidden text: characters that a person does not see and a model does, and words in base64, hexadecimal digits, escapes, or
bits of invisible characters, decoded once.

Promise: emoji, flags, keycaps, right-to-left prose, and the joiners of Persian, Arabic and Indic spelling are left alone; what
decodes to bytes that are not words is no finding. What decodes gives readable text or nothing, never raises, and is not
decoded again; at most `BLOB` characters of one blob and `TOTAL` of a text are, and a longer blob's finding says so.
Not here: which characters are invisible (text), carriers and scripts (tables/hidden.toml), what is hidden by markup (orders).
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import permutations, zip_longest
from typing import NamedTuple

from anima.gate.scan.sights import LEAST_KEY, compiled, pattern_of, places, table
from anima.model import Severity
from anima.text import INVISIBLE, INVISIBLES, may_hide, name_of, one_line, visible

BLOB = 65_536  # characters of one blob that are decoded, at most
TOTAL = 262_144  # characters of all blobs of one text
_MANY = 24  # tokens with blobs in them, from which on the text is searched as a whole
UNREAD = "unread"
_PROBE = 256  # what does not begin with words is not decoded further

SYMBOLS = 16_384  # of one run of invisible characters, at most
_SAMPLE = 400  # characters that say whether a text is words


class Blob(NamedTuple):
    start: int
    end: int
    kind: str
    text: str
    whole: bool


def blobs(text: str, tokens: str) -> Iterator[Blob]:
    """The blobs of a text that hold words. One of the kind "unread" says that there was too much to decode. `tokens` are
    what stands between the blanks of the text, each once."""
    left, count = TOTAL, 0
    long = [token for token in tokens.split("\n") if len(token) >= LEAST_KEY]
    for row in table("hidden")["carriers"]:
        kind, pattern, decode = row["kind"], compiled(one_line(row["pattern"])), _DECODED[row["kind"]]
        # Most texts have no word that is long enough for a carrier.
        inside = _begun_in(long, pattern, text) if long and "pair" not in row else ()
        is_spaced = "pair" in row and compiled(row["pair"]).search(tokens)
        for found in pattern.finditer(text) if is_spaced else inside:
            if left <= 0 or count >= 1000:
                yield Blob(*found.span(), UNREAD, "", False)
                return
            piece = found[0][: min(BLOB, left)]
            if (kind == "base64" and _pattern("only_hex").fullmatch(piece)) or not decode(piece[:_PROBE]):
                left -= min(len(piece), _PROBE) if len(piece) > 64 else 0
                continue
            left, count = left - len(piece), count + 1
            yield Blob(*found.span(), kind, decode(piece) or "", len(piece) == len(found[0]))


def _begun_in(tokens: list[str], pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern in a text. Each begins in one of the tokens, and there in the token by itself as well."""
    begun = {token: [found.start() for found in pattern.finditer(token)] for token in tokens if pattern.search(token)}
    if len(begun) > _MANY:
        yield from pattern.finditer(text)
        return
    at = 0
    for start in sorted(
        place + first
        for token, firsts in begun.items()
        for place in places(text, token, len(token))
        for first in firsts
    ):
        if start >= at and (found := pattern.match(text, start)):
            yield found
            at = found.end()


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
        for zero, one in permutations(c for c in alphabet if c != separator):
            bits = run.replace(zero, "0").replace(one, "1")
            groups = bits.split(separator)
            if all(len(group) <= 20 for group in groups):
                yield "".join(chr(int(group, 2)) for group in groups if group)
            yield from _from_widths(bits.replace(separator, ""))
    if len(alphabet) == 2:
        for zero, one in permutations(alphabet):
            yield from _from_widths(run.replace(zero, "0").replace(one, "1"))


def _from_widths(bits: str) -> Iterator[str | None]:
    for width in (8, 7, 16):
        yield _from_binary(bits, width)
        yield _from_binary(bits, width, reverse=True)


def _from_binary(bits: str, width: int, *, reverse: bool = False) -> str | None:
    groups = [bits[at : at + width] for at in range(0, len(bits) - width + 1, width)]
    values = [int(group[::-1] if reverse else group, 2) for group in groups]
    return _words_of(bytes(values)) if width == 8 else "".join(map(chr, values)) if values else None


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
    text = _words_of(raw)
    return text if text and readable(text[:_SAMPLE]) else None


def _words_of(raw: bytes) -> str | None:
    if len(raw) >= 8 and raw[1::2].count(0) * 4 > len(raw):
        return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace")
    for tail in range(min(4, len(raw))):  # a cut may have fallen inside a character
        try:
            return raw[: len(raw) - tail].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(raw) - 4:
                return None
    return None


def readable(text: str) -> bool:
    """Whether decoded characters are words of one script rather than noise."""
    if len(text) < 3 or not any(c.isalpha() for c in text):
        return False
    plain = sum(c in " \n" or (c.isascii() and c.isprintable()) for c in text)
    script = plain + max(len(compiled(family).findall(text)) for family in table("hidden")["families"])
    return script >= 0.9 * len(text) and sum(c.isalpha() or c == " " for c in text) >= 0.6 * len(text)


_DECODED = {"base64": from_base64, "hex": from_hex, "escapes": from_escapes}
TAGS, BIDI, SELECTORS = "tag-characters", "bidi", "variation-selectors"
ZERO_WIDTH, CONTROL, OTHER = "zero-width", "control", "invisible"
ZWNJ, ZWJ, LRM, RLM, ALM, BOM = "\u200c", "\u200d", "\u200e", "\u200f", "\u061c", "\ufeff"
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"
_pattern = partial(pattern_of, "hidden")
_ALL = "".join(INVISIBLES.values())
_OPENING, _CLOSING = "\u202a\u202b\u2066\u2067\u2068", "\u202c\u2069"
_OF_KIND = {kind: f"[{chars}]+" for kind, chars in INVISIBLES.items()}
_TAME = str.maketrans("<>[]⟨⟩", "‹›⟦⟧‹›")  # decoded text becomes no markup where it is shown
_SPELLED_OUT = 8  # characters that `reveal` names one by one


class Spot(NamedTuple):
    """A place with hidden characters. `solid` says that nothing visible stands between them."""

    start: int
    end: int
    kind: str
    severity: Severity
    decoded: str | None = None
    solid: bool = True


def reveal(text: str) -> str:
    """The text with every hidden character in a visible form; the same object when there is none."""
    if not may_hide(text) or not (found := spots(text)):
        return text
    pieces, at = [], 0
    for start, end, shown in sorted(part for spot in found for part in _replacements(text, spot)):
        if start >= at:
            pieces += [text[at:start], shown]
            at = end
    return "".join([*pieces, text[at:]])


def _replacements(text: str, spot: Spot) -> Iterator[tuple[int, int, str]]:
    if not spot.solid:
        for part in compiled(_OF_KIND[spot.kind]).finditer(text, spot.start, spot.end):
            yield part.start(), part.end(), "".join(map(name_of, part[0]))
    elif spot.decoded:
        yield spot.start, spot.end, f"⟨hidden: {visible(spot.decoded).translate(_TAME)}⟩"
    else:
        named = "".join(map(name_of, text[spot.start : min(spot.end, spot.start + _SPELLED_OUT)]))
        more = spot.end - spot.start - _SPELLED_OUT
        yield spot.start, spot.end, f"{named}⟨and {more} more⟩" if more > 0 else named


def spots(text: str) -> list[Spot]:
    """Every place with hidden characters, in order, close ones joined."""
    if not INVISIBLE.search(_pattern("explained").sub("", text)):
        return list(_bits_per_letter(text))
    runs = list(_strange_runs(text))
    found = [*_clusters(text, (run for run in runs if run.kind != BIDI)), *_bits_per_letter(text)]
    found += _bidi_lines(text, [run for run in runs if run.kind == BIDI])
    return sorted(found, key=lambda spot: spot[:2])


def messages(text: str) -> list[Spot]:
    """The spots, and where strays all over a text read as one message, that message instead of the strays."""
    found = spots(text)
    strays = [spot for spot in found if spot.kind == ZERO_WIDTH and spot.severity is Severity.WARN]
    if len(strays) < 16:  # too few to be worth reading as bits
        return found
    decoded = from_bits("".join(text[spot.start] for spot in strays[:SYMBOLS]))
    if decoded is None:
        return found
    whole = Spot(strays[0].start, strays[-1].end, ZERO_WIDTH, Severity.DANGER, decoded, solid=False)
    rest = [spot for spot in found if spot.kind != ZERO_WIDTH or spot.severity is not Severity.WARN]
    return sorted([whole, *rest], key=lambda spot: spot[:2])


def _strange_runs(text: str) -> Iterator[Spot]:
    """Runs of hidden characters of one class that no neighbour explains."""
    right_to_left = _RightToLeft(text)
    for run in compiled(f"[{_ALL}]+").finditer(text):
        start, end = run.span()
        if text[start - 1 : start] == "\U0001f3f4" and (flag := _pattern("flag_tags").match(text, start, end)):
            start = flag.end()
        # What belongs there, at its front and back, is no part of it.
        while start < end and _belongs(text, start, right_to_left):
            start += 1
        while start < end and _belongs(text, end - 1, right_to_left):
            end -= 1
        while start < end:
            kind = _kind_of(text[start])
            same = compiled(_OF_KIND[kind]).match(text, start, end) if end - start > 1 else None
            stop = same.end() if same else end
            found = text[start:stop]
            is_strange = kind == SELECTORS and found not in (TEXT_STYLE, EMOJI_STYLE)
            is_strong = kind == CONTROL and _pattern("strong_control").match(found)
            is_danger = kind in (TAGS, BIDI) or len(found) > 1 or is_strange or is_strong
            is_break = kind == OTHER and set(found) <= {"\u2028", "\u2029"}
            yield Spot(start, stop, kind, Severity.DANGER if is_danger and not is_break else Severity.WARN)
            start = stop


@cache
def _kind_of(char: str) -> str:
    return next(kind for kind, pattern in _OF_KIND.items() if compiled(pattern).match(char))


def _belongs(text: str, at: int, right_to_left: _RightToLeft) -> bool:
    """Whether the neighbours explain the hidden character at this place."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if char in (EMOJI_STYLE, TEXT_STYLE):
        return bool(before) and (before in "0123456789#*\u2139" or unicodedata.category(before)[0] in "SP")
    if char in (ZWJ, ZWNJ):
        if before == ZWNJ == char:  # typed twice, as Persian keyboards make easy
            before = text[at - 2 : at - 1]
        emoji_before = _pattern("emoji").match(before) or before == EMOJI_STYLE or before == "\U000e007f"
        joins = _pattern("joining").match(before) or _pattern("joining").match(after)
        return bool(joins or (char == ZWJ and emoji_before and _pattern("emoji").match(after)))
    if char in (LRM, RLM, ALM):
        return right_to_left.near(at) and len(_pattern("marks").findall(text[max(at - 2, 0) : at + 3])) <= 2
    if char == BOM:
        return at == 0
    if char == "\u00ad":  # a soft hyphen
        return before.isalpha() and after.isalpha()
    if char == "\u034f":
        return bool(before) and unicodedata.category(before) in ("Mn", "Lo")
    if char in "\ufe00\ufe01\ufe02" and before and unicodedata.category(before) == "Sm":
        return True
    return _pattern("by_neighbours").match(text, at) is not None


class _RightToLeft:
    """Whether a line holds right-to-left letters; remembers the last line it was asked about."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.start, self.end, self._answer = 0, -1, False

    def near(self, at: int) -> bool:
        if not self.start <= at <= self.end:
            self.start = self._text.rfind("\n", 0, at) + 1
            newline = self._text.find("\n", at)
            self.end = newline if newline >= 0 else len(self._text)
            self._answer = _pattern("right_to_left").search(self._text, self.start, self.end) is not None
        return self._answer


def _clusters(text: str, loose: Iterable[Spot]) -> Iterator[Spot]:
    """Spots of one class with at most two visible characters between them, as one from the third on."""
    group: list[Spot] = []
    for spot in loose:
        if group and (spot.kind != group[-1].kind or spot.start - group[-1].end > 2):
            yield from _joined(text, group)
            group = []
        group = [*group[:3], spot]  # of a long cluster only its ends matter
    yield from _joined(text, group)


def _joined(text: str, group: list[Spot]) -> Iterable[Spot]:
    if len(group) < 3:
        return [spot._replace(decoded=_decoded(spot.kind, text[spot.start : spot.end])) for spot in group]
    start, end, kind = group[0].start, group[-1].end, group[0].kind
    parts = compiled(_OF_KIND[kind]).findall(text, start, min(end, start + 3 * SYMBOLS))
    decoded = _decoded(kind, "".join(parts))
    if not decoded and kind in (ZERO_WIDTH, SELECTORS):  # letters that hidden characters pulled apart
        decoded = INVISIBLE.sub("", text[max(start - 1, 0) : end + 1][:SYMBOLS])
    return [Spot(start, end, kind, Severity.DANGER, decoded, solid=False)]


def _decoded(kind: str, run: str) -> str | None:
    if kind == TAGS:  # ASCII, one character each
        return "".join(chr(ord(c) - 0xE0000) for c in run[:SYMBOLS] if 0xE0020 <= ord(c) <= 0xE007E) or None
    if kind == SELECTORS:
        return from_selectors(run)
    return from_bits(run) if kind == ZERO_WIDTH and len(run) >= 16 else None


def _bidi_lines(text: str, loose: list[Spot]) -> Iterator[Spot]:
    """One spot for each line whose direction marks are overriding, unbalanced or needless."""
    right_to_left = _RightToLeft(text)
    first: Spot | None = None
    for spot, following in zip_longest(loose, loose[1:]):
        first, is_rtl = first or spot, right_to_left.near(spot.start)
        if following is not None and following.start <= right_to_left.end:
            continue
        run = "".join(compiled(_OF_KIND[BIDI]).findall(text, first.start, spot.end))
        if not (is_rtl and _balanced(run)):
            start, end = first.start, spot.end if run[-1] in _CLOSING else right_to_left.end
            stored = INVISIBLE.sub("", text[start : min(end, start + SYMBOLS)])
            yield Spot(start, end, BIDI, Severity.DANGER, f"{stored}\n{stored[::-1]}", solid=False)
        first = None


def _balanced(run: str) -> bool:
    depth = 0
    for mark in run:
        depth += 1 if mark in _OPENING else -1
        if depth < 0 or mark in "\u202d\u202e":  # these override
            return False
    return depth == 0


def _bits_per_letter(text: str) -> Iterator[Spot]:
    """Joiners or selectors after every letter or two: each is correct on its own, together they are a message."""
    if text.count(ZWJ) + text.count(ZWNJ) >= 8:
        for run in _pattern("joiner_per_letter").finditer(text):
            yield _carried(run, ZERO_WIDTH, from_bits)
    if _pattern("rare_selector").search(text):
        for run in compiled(f"(?:[^\\s{_ALL}][{INVISIBLES[SELECTORS]}]){{8,}}").finditer(text):
            if len(set(run[0][1::2])) > 1:
                yield _carried(run, SELECTORS, from_selectors)


def _carried(run: re.Match[str], kind: str, decode: Callable[[str], str | None]) -> Spot:
    symbols = "".join(compiled(_OF_KIND[kind]).findall(run[0][: 3 * SYMBOLS]))
    return Spot(run.start(), run.end(), kind, Severity.DANGER, decode(symbols), solid=False)
