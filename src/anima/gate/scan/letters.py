"""Characters: which ones a reader cannot see, which contexts make them honest, and the folded form for matching.

Promise: `fold` maps each character on its own, so a place in the folded text can be traced back to the original.
Not here: what counts as a finding.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

from anima.gate.scan.lazy import lazy

ZWSP, ZWNJ, ZWJ, LRM, RLM, ALM, BOM = "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u061c", "\ufeff"
TEXT_STYLE, EMOJI_STYLE = "\ufe0e", "\ufe0f"
SOFT_HYPHEN = "\u00ad"
BLACK_FLAG = "\U0001f3f4"

TAGS = "\U000e0000-\U000e007f"
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
BIDI = "\u202a-\u202e\u2066-\u2069"
OVERRIDES = "\u202d\u202e"
CONTROLS = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
)
OTHERS = (
    "\u2028\u2029\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)

SUSPECT_CLASS = f"{CONTROLS}{ZERO_WIDTH}{BIDI}{SELECTORS}{TAGS}{OTHERS}"
PLAIN = bytes([9, 10, 12, 13, *range(32, 127)])
SUSPECT = re.compile(f"[{SUSPECT_CLASS}]")
SUSPECT_RUN = lazy(f"[{SUSPECT_CLASS}]+")

# Letters of right-to-left scripts; letters that join or stack, where ZWJ and ZWNJ are part of correct spelling.
RTL = lazy("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
JOINING_CLASS = (
    "\u0600-\u061b\u061d-\u07ff\u0840-\u0dff\u0f00-\u109f\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a\u1810-\u18af"
    "\u1900-\u1cff\ua800-\ua8ff\ua900-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
JOINING = lazy(f"[{JOINING_CLASS}]")
# Scripts written without spaces, where a zero-width space marks a word border.
UNSPACED = lazy(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\uaa7f\u3040-\u30ff\u3400-\u9fff]"
)
IDEOGRAPH = lazy("[\u2e80-\u2fd5\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
MONGOLIAN = lazy("[\u1800-\u180f\u1820-\u18aa]")
JAMO = lazy("[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc]")
EMOJI_CLASS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
EMOJI = lazy(f"[{EMOJI_CLASS}]")
# The tag sequences that fonts draw: England, Scotland, Wales, Northern Ireland, and the states of two countries.
FLAG_TAGS = lazy(
    "(?:{gb}(?:{eng}|{sct}|{wls}|{nir})|(?:{us}|{ca})[\U000e0061-\U000e007a]{{2}})\U000e007f".format(
        **{w: "".join(chr(0xE0000 + ord(c)) for c in w) for w in ("gb", "eng", "sct", "wls", "nir", "us", "ca")}
    )
)


def suspicious(text: str) -> bool:
    """Whether the text holds any character that may be invisible. Fast, because plain ASCII is dropped first."""
    rest = text.encode("utf-8", "surrogatepass").translate(None, PLAIN)
    return bool(rest) and SUSPECT.search(rest.decode("utf-8", "surrogatepass")) is not None


def name_of(char: str) -> str:
    """The visible form of one invisible character."""
    return f"⟨U+{ord(char):04X}⟩"


def visible(text: str, limit: int = 400) -> str:
    """Text that is safe to print and to read: line breaks and invisible characters shown, long text cut."""
    piece = text[:limit].replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")
    shown = SUSPECT.sub(lambda found: name_of(found[0]), piece)
    shown = "".join(c if c.isprintable() else name_of(c) if unicodedata.category(c) != "Zs" else " " for c in shown)
    return shown if len(text) <= limit else shown + "…"


_FAMILIES = (
    lazy("[\u00a0-\u024f\u2010-\u2026]"),
    lazy("[\u0370-\u052f]"),
    lazy("[\u0590-\u08ff]"),
    lazy("[\u0900-\u0dff]"),
    lazy("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"),
    lazy("[\uac00-\ud7af]"),
)


def readable(text: str) -> bool:
    """Whether decoded characters are words of one script rather than noise."""
    if len(text) < 3 or not any(c.isalpha() for c in text):
        return False
    plain = sum(c in " \n" or (c.isascii() and c.isprintable()) for c in text)
    script = plain + max(len(family.findall(text)) for family in _FAMILIES)
    letters = sum(c.isalpha() or c == " " for c in text)
    return script >= 0.9 * len(text) and letters >= 0.6 * len(text)


def _lookalikes() -> dict[str, str]:
    """Characters of other scripts that look like a Latin letter, as the letter."""
    table: dict[str, str] = {}
    groups = {
        "a": "аɑαᴀ∂⍺",
        "b": "вʙΒ",
        "c": "сϲᴄⅽ",
        "d": "ԁᴅɗ",
        "e": "еєεᴇ℮ҽ",
        "f": "ꜰƒ",
        "g": "ɡɢց",
        "h": "һнʜհΗ",
        "i": "іɪıιӏⅰΙ",
        "j": "јᴊϳ",
        "k": "кκᴋ",
        "l": "ⅼʟǀ",
        "m": "мᴍⅿΜ",
        "n": "пηɴոΝ",
        "o": "оοσᴏօ",
        "p": "рρᴘ",
        "q": "ԛզ",
        "r": "гʀ",
        "s": "ѕꜱ",
        "t": "тτᴛΤ",
        "u": "υᴜսц",
        "v": "νᴠѵ",
        "w": "ѡᴡωԝ",
        "x": "хχ",
        "y": "уγʏΥ",
        "z": "ᴢΖ",
        "'": "’‘ʼ＇´",
        '"': "“”„«»",
        "-": "‐‑‒–—−",
    }
    for latin, others in groups.items():
        table.update(dict.fromkeys(others, latin))
    return table


_LOOKALIKES = _lookalikes()


class _Folds(dict[int, str]):
    """A table for `str.translate` that works out each character once."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_char(chr(code))
        return folded


def _fold_char(char: str) -> str:
    if SUSPECT.match(char):
        return ""
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    return "".join(_LOOKALIKES.get(c, c) for c in plain if unicodedata.category(c) != "Mn")


_FOLDS = _Folds()


def fold(text: str) -> str:
    """The text without case, accents, look-alikes, styled letters and invisible characters."""
    return text.lower() if text.isascii() and not suspicious(text) else text.translate(_FOLDS)


def plain_lower(text: str) -> str:
    """Lower case with every character in its old place."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "I").lower()


def long_words(text: str, least: int) -> str:
    """The words of at least so many characters, separated by blanks: where keys and blobs can be."""
    return " ".join([word for word in text.split() if len(word) >= least])


class Origins:
    """Where the characters of a folded text stand in its original; worked out only where somebody asks."""

    _BLOCK = 2048

    def __init__(self, text: str, folded: str) -> None:
        self._text, self._same = text, text.isascii() and len(text) == len(folded)
        self._block_ends: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the folded text."""
        return (start, end) if self._same else (self._index(start), self._index(end - 1) + 1)

    def _index(self, place: int) -> int:
        """Which character of the original gave the folded character at this place."""
        if not self._block_ends:
            blocks = range(0, len(self._text), self._BLOCK)
            self._block_ends = list(accumulate(len(self._piece(at).translate(_FOLDS)) for at in blocks))
        block = bisect_right(self._block_ends, place)
        if block not in self._ends:
            self._ends[block] = list(accumulate(len(_FOLDS[ord(c)]) for c in self._piece(block * self._BLOCK)))
        before = self._block_ends[block - 1] if block else 0
        return block * self._BLOCK + bisect_right(self._ends[block], place - before)

    def _piece(self, at: int) -> str:
        return self._text[at : at + self._BLOCK]
