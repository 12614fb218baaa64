"""Hidden text: characters that a person does not see and a model does, and words in base64, hexadecimal digits, escapes, or
bits of invisible characters, decoded once.

Promise: emoji sequences, flags, keycaps, right-to-left prose, and the joiners of Persian, Arabic and Indic spelling are
left alone; what decodes to bytes that are not words is no finding: keys, digests, pictures and paths stay what they are.
What decodes gives readable text or nothing, never raises, and is not decoded again; at most `BLOB` characters of one blob
and `TOTAL` of a text are decoded, and a longer blob's finding says so. Clean text costs close to nothing.
Not here: which characters are invisible (text), what is hidden by markup (orders).
"""

from __future__ import annotations

import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import permutations, zip_longest
from typing import NamedTuple

from anima.gate.scan.sights import LEAST_BLOB, compiled, places
from anima.model import Severity
from anima.text import INVISIBLE, INVISIBLES, may_hide, name_of, visible

BLOB = 65_536  # characters of one blob that are decoded, at most
TOTAL = 262_144  # characters of all blobs of one text
_BLOBS = 1000  # of one text
_MANY = 24  # tokens with blobs in them, from which on the text is searched as a whole
UNREAD = "unread"
_PROBE = 256  # what does not begin with words is not decoded further

_BASE64 = r"(?<![A-Za-z0-9+/_-])(?:(?:[A-Za-z0-9+/]{60,76}+\r?\n){1,4000}+[A-Za-z0-9+/]{0,76}+={0,2}|[A-Za-z0-9+/_-]{20,}+={0,2})"
_HEX = r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9a-fA-F]{2}){10,}+(?![0-9A-Za-z])"
# The first character stands alone so that the search can skip to it; what must not stand before it comes after.
_SPACED_HEX = r"[0-9a-fA-F](?<![0-9A-Za-z].)[0-9a-fA-F](?:[ ,:]{1,2}(?:0x)?[0-9a-fA-F]{2}){9,}+"
_A_PAIR = r"(?m)(?:^|[,:])(?:0x)?[0-9a-fA-F]{2}(?:[,:]|$)"  # of those that such a run has between its ends
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


def blobs(text: str, tokens: str) -> Iterator[Blob]:
    """The blobs of a text that hold words. One of the kind "unread" says that there was too much to decode.

    `tokens` are what stands between the blanks of the text, each once.
    """
    left, count = TOTAL, 0
    long = [token for token in tokens.split("\n") if len(token) >= LEAST_BLOB]
    spaced = compiled(_SPACED_HEX).finditer(text) if compiled(_A_PAIR).search(tokens) else ()
    for kind, pattern, decode in _CARRIERS:
        # Most texts have no word that is long enough for a carrier.
        inside = _begun_in(long, compiled(pattern), text) if long else ()
        for found in spaced if pattern is _SPACED_HEX else inside:
            if left <= 0 or count >= _BLOBS:
                yield Blob(*found.span(), UNREAD, "", False)
                return
            piece = found[0][: min(BLOB, left)]
            if (kind == "base64" and compiled(_ONLY_HEX).fullmatch(piece)) or not decode(piece[:_PROBE]):
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
            groups = bits.split(separator)
            if all(len(group) <= 20 for group in groups):
                yield "".join(chr(int(group, 2)) for group in groups if group)
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


_CARRIERS: tuple[tuple[str, str, Callable[[str], str | None]], ...] = (
    ("base64", _BASE64, from_base64),
    ("hex", _HEX, from_hex),
    ("hex", _BACKSLASH_HEX, from_hex),
    ("hex", _SPACED_HEX, from_hex),
    ("escapes", _PERCENT, from_escapes),
    ("escapes", _BACKSLASH_U, from_escapes),
    ("escapes", _ENTITIES, from_escapes),
)


TAGS, BIDI, SELECTORS = "tag-characters", "bidi", "variation-selectors"
ZERO_WIDTH, CONTROL, OTHER = "zero-width", "control", "invisible"
NAMES = {
    TAGS: "tag characters",
    BIDI: "direction marks",
    SELECTORS: "variation selectors",
    ZERO_WIDTH: "zero-width characters",
    CONTROL: "control characters",
    OTHER: "invisible characters",
}

ZWNJ, ZWJ, LRM, RLM, ALM, BOM = "\u200c", "\u200d", "\u200e", "\u200f", "\u061c", "\ufeff"
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"
SOFT_HYPHEN = "\u00ad"
_BLACK_FLAG = "\U0001f3f4"
_OVERRIDES = "\u202d\u202e"
# Letters of right-to-left scripts; letters that join or stack, where ZWJ and ZWNJ are part of correct spelling.
_RTL = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_JOINING_LETTERS = (
    "\u0600-\u061b\u061d-\u07ff\u0840-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a\u1810-\u18af"
    "\u1900-\u1cff\ua800-\ua8ff\ua900-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
_JOINING = f"[{_JOINING_LETTERS}]"
# Scripts written without spaces, where a zero-width space marks a word border.
_UNSPACED = "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\uaa7f\u3040-\u30ff\u3400-\u9fff]"
_JAMO = "[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc]"
# Behind an ideograph, a Mongolian letter or what has variants a selector belongs; around Hangul, its fillers.
_BY_NEIGHBOURS = (
    f"\u200b(?:(?<={_UNSPACED}.)|(?={_UNSPACED}))|[\u115f\u1160\u3164\uffa0](?:(?<={_JAMO}.)|(?={_JAMO}))"
    "|[\U000e0100-\U000e011f](?<=[\u2e80-\u2fd5\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff].)"
    "|[\u180b-\u180f](?<=[\u1800-\u180f\u1820-\u18aa].)"
    "|[\ufe00-\ufe02](?<=[0、。，．！：；？\u1000-\u109f\ua840-\ua877\uaa60-\uaa7f\u3400-\u9fff\uf900-\ufaff].)"
)
_EMOJI_SIGNS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_EMOJI = f"[{_EMOJI_SIGNS}]"
# The tag sequences that fonts draw: England, Scotland, Wales, Northern Ireland, and the states of two countries.
_FLAG_TAGS = "(?:{gb}(?:{eng}|{sct}|{wls}|{nir})|(?:{us}|{ca})[\U000e0061-\U000e007a]{{2}})\U000e007f".format(
    **{w: "".join(chr(0xE0000 + ord(c)) for c in w) for w in ("gb", "eng", "sct", "wls", "nir", "us", "ca")}
)
_ALL = "".join(INVISIBLES.values())
_RUN = f"[{_ALL}]+"
_OPENING, _CLOSING = "\u202a\u202b\u2066\u2067\u2068", "\u202c\u2069"
# These move the cursor, delete, switch the terminal or end a string; single others come from broken conversions.
_STRONG_CONTROL = "[\x00\x08\x1b\x7f\x90\x9b\x9d]"
# The common cases of `_belongs` in one pattern, so that a page full of emoji or Persian costs little.
_EXPLAINED = (
    f"[\u200c\u200d\ufe0f](?:(?<=[{_EMOJI_SIGNS}0-9#*]\ufe0f)|(?<=[{_JOINING_LETTERS}]\u200c)(?=[{_JOINING_LETTERS}])"
    f"|(?<=[{_EMOJI_SIGNS}\ufe0f]\u200d)(?=[{_EMOJI_SIGNS}]))"
)
OVERRIDE = f"[{_OVERRIDES}]"
_LINE_BREAKS = frozenset("\u2028\u2029")
_JOINER_PER_LETTER = f"(?:[{_JOINING_LETTERS}]{{1,2}}[\u200c\u200d]{{1,3}}){{8,}}"
_SELECTOR_PER_LETTER = f"(?:[^\\s{_ALL}][{INVISIBLES[SELECTORS]}]){{8,}}"
_RARE_SELECTOR = "[\ufe00-\ufe0e\U000e0100-\U000e01ef]"
_MARKS = "[\u061c\u200e\u200f]"
_OF_KIND = {kind: f"[{chars}]+" for kind, chars in INVISIBLES.items()}
_TAME = str.maketrans("<>[]⟨⟩", "‹›⟦⟧‹›")  # decoded text becomes no markup where it is shown
_NEAR = 2  # visible characters between two hidden ones of one cluster
_SCATTERED = 16  # strays in one text that are worth reading as bits
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
    if not INVISIBLE.search(compiled(_EXPLAINED).sub("", text)):
        return list(_bits_per_letter(text))
    runs = list(_strange_runs(text))
    found = [*_clusters(text, (run for run in runs if run.kind != BIDI)), *_bits_per_letter(text)]
    found += _bidi_lines(text, [run for run in runs if run.kind == BIDI])
    return sorted(found, key=lambda spot: spot[:2])


def messages(text: str) -> list[Spot]:
    """The spots, and where strays all over a text read as one message, that message instead of the strays."""
    found = spots(text)
    strays = [spot for spot in found if spot.kind == ZERO_WIDTH and spot.severity is Severity.WARN]
    if len(strays) < _SCATTERED:
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
    for run in compiled(_RUN).finditer(text):
        start, end = run.span()
        if text[start - 1 : start] == _BLACK_FLAG and (flag := compiled(_FLAG_TAGS).match(text, start, end)):
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
            is_strong = kind == CONTROL and compiled(_STRONG_CONTROL).match(found)
            is_danger = kind in (TAGS, BIDI) or len(found) > 1 or is_strange or is_strong
            is_break = kind == OTHER and _LINE_BREAKS.issuperset(found)
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
        emoji_before = compiled(_EMOJI).match(before) or before == EMOJI_STYLE or before == "\U000e007f"
        joins = compiled(_JOINING).match(before) or compiled(_JOINING).match(after)
        return bool(joins or (char == ZWJ and emoji_before and compiled(_EMOJI).match(after)))
    if char in (LRM, RLM, ALM):
        return right_to_left.near(at) and len(compiled(_MARKS).findall(text[max(at - 2, 0) : at + 3])) <= 2
    if char == BOM:
        return at == 0
    if char == SOFT_HYPHEN:
        return before.isalpha() and after.isalpha()
    if char == "\u034f":
        return bool(before) and unicodedata.category(before) in ("Mn", "Lo")
    if char in "\ufe00\ufe01\ufe02" and before and unicodedata.category(before) == "Sm":
        return True
    return compiled(_BY_NEIGHBOURS).match(text, at) is not None


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
            self._answer = compiled(_RTL).search(self._text, self.start, self.end) is not None
        return self._answer


def _clusters(text: str, loose: Iterable[Spot]) -> Iterator[Spot]:
    """Spots of one class with at most two visible characters between them, as one from the third on."""
    group: list[Spot] = []
    for spot in loose:
        if group and (spot.kind != group[-1].kind or spot.start - group[-1].end > _NEAR):
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
    if kind == TAGS:
        return from_tags(run)
    if kind == SELECTORS:
        return from_selectors(run)
    return from_bits(run) if kind == ZERO_WIDTH and len(run) >= 16 else None


def _bidi_lines(text: str, loose: list[Spot]) -> Iterator[Spot]:
    """One spot for each line whose direction marks are overriding, unbalanced or needless."""
    right_to_left = _RightToLeft(text)
    first: Spot | None = None
    for spot, following in zip_longest(loose, loose[1:]):
        first = first or spot
        is_rtl = right_to_left.near(spot.start)
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
        if depth < 0 or mark in _OVERRIDES:
            return False
    return depth == 0


def _bits_per_letter(text: str) -> Iterator[Spot]:
    """Joiners or selectors after every letter or two: each is correct on its own, together they are a message."""
    if text.count(ZWJ) + text.count(ZWNJ) >= 8:
        for run in compiled(_JOINER_PER_LETTER).finditer(text):
            yield _carried(run, ZERO_WIDTH, from_bits)
    if compiled(_RARE_SELECTOR).search(text):
        for run in compiled(_SELECTOR_PER_LETTER).finditer(text):
            if len(set(run[0][1::2])) > 1:
                yield _carried(run, SELECTORS, from_selectors)


def _carried(run: re.Match[str], kind: str, decode: Callable[[str], str | None]) -> Spot:
    symbols = "".join(compiled(_OF_KIND[kind]).findall(run[0][: 3 * SYMBOLS]))
    return Spot(run.start(), run.end(), kind, Severity.DANGER, decode(symbols), solid=False)
