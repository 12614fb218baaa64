"""Instruction phrasing: words that command the agent instead of telling it something.

Promise: works on the folded text (case, accents, look-alikes, styled letters and zero-width characters gone), and on
views of it with spaced-out letters joined, digits read as letters, rotated by 13, or read backwards. Places refer to
the original. Time grows with the text. Not here: a verdict; phrasing alone only marks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import zip_longest
from typing import NamedTuple

from anima.gate.scan.sights import Origins, Sighting, compiled, fold
from anima.model import Severity
from anima.text.invisible import visible
from anima.text.words import read_table

KIND = "instruction"

# Words and separators share no character, so there is one way to read a gap and nothing to backtrack over.
_SEPARATOR, _WORD = r"[\W_]{1,6}", r"[^\W_]{1,24}"
_IN_SENTENCE = r"(?:[^\w.!?\n]|_|[.](?=\w)|\n(?=[^\n])){1,6}"
_GAPS = {
    " ... ": f"{_SEPARATOR}(?:{_WORD}{_SEPARATOR}){{0,10}}?",
    " .. ": f"{_SEPARATOR}(?:{_WORD}{_SEPARATOR}){{0,5}}?",
    " >> ": f"{_IN_SENTENCE}(?:{_WORD}{_IN_SENTENCE}){{0,10}}?",
}
_SQUEEZED_GAPS = {" ... ": "[^\n]{0,50}?", " .. ": "[^\n]{0,25}?", " >> ": "[^\n.]{0,50}?"}
_FEW = "[^\n]{0,16}?"

_WINDOW = 100  # characters before a word in which the phrase may begin

_WORDS = r"[^\W_]+"
_SPACED_LETTERS = r"(?<![^\W_])(?:[^\W\d_][\W_]{1,2}){5,}[^\W\d_](?![^\W_])"
_SPACED = _SPACED_LETTERS
_SPACED_TOO = _SPACED_LETTERS.replace("{5,}", "{2,}")
_LEET = str.maketrans("0134578", "oieastb")
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_ROTATED = frozenset({"vtaber", "qvfertneq", "vafgehpgvbaf", "cerivbhf", "flfgrz", "bireevqr"})
_BACKWARDS = frozenset({"snoitcurtsni", "erongi", "tpmorp", "suoiverp"})


class _Phrase(NamedTuple):
    """What makes a word of the table a command: why, what must follow it, what must stand before it."""

    reason: str
    follows: str
    before: str
    deniable: bool  # not to forget the instructions is the opposite of forgetting them


class _View(NamedTuple):
    """Another way to read the folded text. `back` gives the folded place of a place in the view."""

    text: str
    back: Callable[[int, int], tuple[int, int]]
    squeezed: bool = False  # letters stand so close that words cannot be told apart


def instructions(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Where the text commands. Overlapping sights are one. `text` is only shown; `folded` is searched."""
    taken: list[tuple[int, int]] = []
    words: set[str] = set()  # filled by the first view, which decides whether the others are worth reading
    for view in _views(folded, words):
        for start, end, reason in sorted(_matches(view, words)):
            first, last = origins.span(*view.back(start, end))
            if not _overlaps(taken, first, last):
                shown = _shown(text[first:last], view.text[start:end])
                yield Sighting(first, last, KIND, Severity.WARN, shown, reason)


def _shown(piece: str, read: str) -> str:
    """The words as they stand, and as they read where that is something else."""
    seen = visible(piece, 200)
    bare = "".join(c for c in unicodedata.normalize("NFD", piece.lower()) if unicodedata.category(c) != "Mn")
    disguised = "•" not in piece and (fold(piece) != read or (bare != read and read.isascii()))
    return f"{seen} (reads: {visible(' '.join(read.split()), 200)})" if disguised else seen


def _overlaps(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether the place touches one already taken; takes it if not."""
    at = bisect_right(taken, (start, end))
    before = at > 0 and taken[at - 1][1] > start
    after = at < len(taken) and taken[at][0] < end
    if not before and not after:
        taken.insert(at, (start, end))
    return before or after


def _views(folded: str, words: set[str]) -> Iterator[_View]:
    yield _View(folded, _same)
    if any(word.translate(_LEET) in _long_words() for word in words if not word.isalpha()):
        yield _View(folded.translate(_LEET), _same)
    if not words.isdisjoint(_ROTATED):
        yield _View(folded.translate(_ROT13), _same)
    if not words.isdisjoint(_BACKWARDS):
        size = len(folded)
        yield _View(folded[::-1], lambda start, end: (size - end, size - start))
    if compiled(_SPACED).search(folded):
        yield _joined(folded)


def _same(start: int, end: int) -> tuple[int, int]:
    return start, end


class _Piece(NamedTuple):
    start: int  # in the view
    place: int  # in the folded text
    end: int
    joined: bool


def _joined(folded: str) -> _View:
    """The neighbourhoods of spaced-out words, with those words pulled together."""
    texts: list[str] = []
    pieces: list[_Piece] = []
    size = at = 0
    runs = list(compiled(_SPACED_TOO).finditer(folded))  # next to a long one, short ones count as well
    for run, following in zip_longest(runs, runs[1:]):
        stop = min(run.end() + _WINDOW, following.start() if following else len(folded))
        begin = max(at, run.start() - _WINDOW)
        for place, end, joined in ((begin, run.start(), False), (*run.span(), True), (run.end(), stop, False)):
            text = "".join(compiled(_WORDS).findall(folded, place, end)) if joined else folded[place:end]
            pieces.append(_Piece(size, place, end, joined))
            texts.append(text)
            size += len(text)
        at = stop
    return _View("".join(texts), partial(_unjoined, pieces), squeezed=True)


def _unjoined(pieces: list[_Piece], start: int, end: int) -> tuple[int, int]:
    first = pieces[bisect_right(pieces, start, key=lambda piece: piece.start) - 1]
    last = pieces[bisect_right(pieces, end - 1, key=lambda piece: piece.start) - 1]
    # Inside a pulled-together word the exact letter is not worth knowing.
    begin = first.place if first.joined else first.place + start - first.start
    return begin, last.end if last.joined else last.place + end - last.start


def _matches(view: _View, words: set[str]) -> Iterator[tuple[int, int, str]]:
    """Every phrase of the book in one reading of the view."""
    text, book = view.text, _book()
    for word, at in _everywhere(text, book) if view.squeezed else _words_of(text, book, words):
        for phrase in book[word]:
            found = _compiled(phrase.follows, view.squeezed).match(text, at + len(word))
            start = _led(text, at, _before(phrase.before, view.squeezed)) if found else -1
            if found and start >= 0 and not _is_denied(text, start, phrase):
                yield start, _word_end(text, found.end()), phrase.reason


def _words_of(text: str, book: dict[str, list[_Phrase]], words: set[str]) -> Iterator[tuple[str, int]]:
    """The words of the book, where they stand; adds every word it meets to `words`."""
    for found in compiled(_WORDS).finditer(text):
        word = found[0]
        words.add(word)
        if word in book:
            yield word, found.start()
    if not text.isascii() or ".md" in text:
        letters = set(text)
        yield from _everywhere(text, [word for word in _unbordered() if letters.issuperset(word)])


def _everywhere(text: str, words: Iterable[str]) -> Iterator[tuple[str, int]]:
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield word, at
            at = text.find(word, at + len(word))


def _word_end(text: str, at: int) -> int:
    rest = None if compiled(_CJK).match(text, at - 1) else compiled(_REST_OF_WORD).match(text, at)
    return rest.end() if rest else at


def _led(text: str, at: int, before: re.Pattern[str] | None) -> int:
    """Where the phrase begins, or -1 when what must stand before the word does not."""
    if before is None:
        return at
    found = before.search(text, max(0, at - _WINDOW), at)
    return found.start() if found else -1


_REST_OF_WORD = r"[^\W_]{0,24}"
_CJK = "[\u3040-\u30ff\u3400-\u9fff]"
_NEGATION = r"(?:\bnot|n't|\bn|\bnever|\bnon|\bno|\bne|\bnie|\bniemals|\bnao|не)[\W_]{1,3}$"


def _is_denied(text: str, at: int, phrase: _Phrase) -> bool:
    return phrase.deniable and compiled(_NEGATION).search(text, max(0, at - 12), at) is not None


@cache
def _book() -> dict[str, list[_Phrase]]:
    """The phrases of the table by the words to look for, folded."""
    table = read_table("gate/scan", "orders")
    reasons = table.pop("reasons")
    book: dict[str, list[_Phrase]] = {}
    for language in table.values():
        for reason, entries in language.items():
            for entry in entries:
                words, follows, before = (_pattern(entry.get(name, "")) for name in ("words", "follows", "before"))
                deniable = reason == "override" and not before
                for word in words.split("|"):
                    book.setdefault(word, []).append(_Phrase(reasons[reason], follows, before, deniable))
    return book


def _pattern(pattern: str) -> str:
    return fold(re.sub(r"\n *", "", pattern))


@cache
def _unbordered() -> tuple[str, ...]:
    """The words of scripts without blanks; they have no border to look for."""
    return tuple(word for word in _book() if compiled(_CJK).search(word) or "." in word)


@cache
def _long_words() -> frozenset[str]:
    return frozenset({*(word for word in _book() if len(word) >= 5), "previous", "instructions", "system"})


@cache
def _compiled(pattern: str, squeezed: bool) -> re.Pattern[str]:
    return re.compile(_expanded(pattern, squeezed))


@cache
def _before(pattern: str, squeezed: bool) -> re.Pattern[str] | None:
    border = "" if squeezed or compiled(_CJK).search(pattern) else r"(?<![^\W_])"
    return re.compile(f"{border}{_expanded(pattern, squeezed)}$") if pattern else None


def _expanded(pattern: str, squeezed: bool) -> str:
    for mark, gap in (_SQUEEZED_GAPS if squeezed else _GAPS).items():
        pattern = pattern.replace(mark, gap)
    return pattern.replace("~", _FEW).replace(" ", r"[\W_]{0,6}" if squeezed else _SEPARATOR)
