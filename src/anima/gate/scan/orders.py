"""Orders: what speaks to the model and not to a reader: comments, tokens and turns of its format, our frames, commands.

Promise: works on the folded text (case, accents, look-alikes, styled letters and zero-width characters gone); commands
also on views of it with spaced-out letters joined, digits read as letters, rotated by 13, or read backwards. A word such
as "user:" in a bullet is no turn. Places refer to the original. Time grows with the text.
Not here: a verdict; phrasing alone only marks. Keeping content inside its frame is the prompt's work.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import zip_longest
from typing import NamedTuple

from anima.gate.scan.sights import Origins, Sighting, compiled, fold, on_lines, pattern_of, places, table
from anima.model import Severity
from anima.text import one_line, rare, visible
from anima.text.markdown import heading_of

# The tags in which a prompt frames what it loads. Content that opens or closes one could step out of its frame.
FRAME_NAMES = tuple("memory memory_context agents_context loaded_context domain_knowledge_context".split())
_NAMES = "|".join(sorted((name.replace("_", "[-_ ]?") for name in FRAME_NAMES), key=len, reverse=True))
_pattern = partial(pattern_of, "marks")


def comments(text: str, safe: str, tokens: str) -> Iterator[Sighting]:
    """HTML and Markdown comments, except the section marks on headings, shown as they stand in the safe text."""
    start = text.find("<!--") if "<!--" in tokens else -1
    while start >= 0:
        close = text.find("-->", start + 4)
        end = close + 3 if close >= 0 else len(text)
        line = text.rfind("\n", max(0, start - 400), start) + 1
        if not (_pattern("section_mark").fullmatch(text, start, end) and heading_of(text[line : start + 1])):
            inner = safe[start + 4 : close if close >= 0 else end].strip()
            yield Sighting(start, end, "html-comment", Severity.NOTE, visible(inner), "a comment that is not displayed")
        start = text.find("<!--", end) if close >= 0 else -1
    for found in on_lines(table("marks")["patterns"]["markdown_comment"], text) if "]:" in tokens else ():
        shown = visible(safe[found.start("text") : found.end("text")].rstrip("\"')"))
        yield Sighting(*found.span(), "markdown-comment", Severity.NOTE, shown, "a comment that is not displayed")


@cache
def _marks() -> list[tuple[str, str, Severity, str]]:
    """Pattern, kind, severity and message of each."""
    rows = table("marks")["marks"]
    patterns = (one_line(row["pattern"]).replace("FRAMES", _NAMES) for row in rows)
    return [
        (each, row["kind"], Severity[row["severity"]], row["message"]) for each, row in zip(patterns, rows, strict=True)
    ]


def marks(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Frame markers, special tokens, staged turns, elements styled away. `text` is only shown; `folded` is searched."""
    for pattern, kind, severity, message in _marks() if "<" in folded or "[" in folded else ():
        for found in compiled(pattern).finditer(folded):
            start, end = origins.span(*found.span())
            shown_to = end + 200 if kind == "hidden-html" else end  # what is styled away stands behind the tag
            # C++ has a header of that name, and a type parameter can have it: `#include <memory>`, `Promise<Memory>`.
            before = folded[max(0, found.start() - 16) : found.start()]
            if found[0] != "<memory>" or not _pattern("in_code").search(before):
                yield Sighting(start, end, kind, severity, visible(text[start:shown_to], 200), message)
    # Lines that stage a conversation: a person's and the model's turn set off by blank lines, or a system's orders.
    previous: re.Match[str] | None = None
    for label in on_lines(_label(), folded) if ":" in folded else ():
        before = folded[max(0, label.start() - 80) : label.start()]
        before = before.replace("\r", "").replace("\t", "").replace(" ", "")
        if before and not before.endswith("\n\n"):
            continue
        start, end = origins.span(*label.span())
        speaker, asked = label.lastgroup, label.lastgroup
        if previous is not None and label.start() - previous.end() <= 4000:  # else it is another conversation
            asked = previous.lastgroup
        commands = speaker == "system" and _pattern("order").match(folded, label.end())
        is_human = label["human"] == "human" and label.start() > 0 and not _pattern("a_name").match(text, end)
        if (speaker != asked and "model" in (speaker, asked)) or commands or is_human:
            line = text[start : end + 120].strip().partition("\n")[0]
            yield Sighting(start, end, "special-token", Severity.DANGER, visible(line, 120), "a line that fakes a turn")
        previous = label


@cache
def _label() -> str:
    speakers: dict[str, str] = table("marks")["turns"]
    roles = "|".join(f"(?P<{role}>{fold(names)})" for role, names in speakers.items())
    return rf"[ \t]{{0,3}}(?:#{{1,6}} ?|\*\*)?(?:{roles})(?:\*\*)?[ ]?:(?:\*\*)?"


# -- commands ---------------------------------------------------------------------------------------------------------------

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
WORDS = r"[^\W_]+"
_LONG = 200_000  # characters from which on it pays to compile a pattern for the words of one text
_BLANKED = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_SKELETON = bytes(code if code == 32 or not chr(code).isalpha() else ord("a") for code in _BLANKED)
_LEET = str.maketrans("0134578", "oieastb")
_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")
_ROTATED = frozenset("vtaber qvfertneq vafgehpgvbaf cerivbhf flfgrz bireevqr".split())
_BACKWARDS = frozenset("snoitcurtsni erongi tpmorp suoiverp".split())


class _Phrase(NamedTuple):
    """What makes a word of the table a command: why, what must follow it, what must stand before it."""

    reason: str
    follows: str
    before: str
    deniable: bool  # not to forget the instructions is the opposite of forgetting them


class _View(NamedTuple):
    """Another way to read the folded text. `back` gives the folded place of a place in the view."""

    text: str
    words: frozenset[str] | None  # None where letters stand so close that words cannot be told apart
    back: Callable[[int, int], tuple[int, int]] = lambda start, end: (start, end)


def instructions(text: str, folded: str, origins: Origins, words: frozenset[str]) -> Iterator[Sighting]:
    """Where the text commands. Overlapping sights are one. `text` is only shown; `folded`, of these words, is searched."""
    taken: list[tuple[int, int]] = []
    for view in _views(folded, words):
        for start, end, reason in sorted(_matches(view)):
            first, last = origins.span(*view.back(start, end))
            at = bisect_right(taken, (first, last))
            if (at > 0 and taken[at - 1][1] > first) or (at < len(taken) and taken[at][0] < last):
                continue  # it touches one already taken
            taken.insert(at, (first, last))
            shown = _shown(text[first:last], view.text[start:end])
            yield Sighting(first, last, "instruction", Severity.WARN, shown, reason)


def _shown(piece: str, read: str) -> str:
    """The words as they stand, and as they read where that is something else."""
    seen = visible(piece, 200)
    bare = "".join(c for c in unicodedata.normalize("NFD", piece.lower()) if unicodedata.category(c) != "Mn")
    disguised = "•" not in piece and (fold(piece) != read or (bare != read and read.isascii()))
    return f"{seen} (reads: {visible(' '.join(read.split()), 200)})" if disguised else seen


def _views(folded: str, words: frozenset[str]) -> Iterator[_View]:
    yield _View(folded, words)
    seen = set(words)
    for letters in (_LEET, _ROT13):
        if _is_leet(folded, words) if letters is _LEET else not seen.isdisjoint(_ROTATED):
            # All these letters are ASCII, which is the same in bytes.
            raw = folded.encode("utf-8", "surrogatepass").translate(bytes(letters.get(n, n) for n in range(256)))
            read = raw.decode("utf-8", "surrogatepass")
            found = frozenset(compiled(WORDS).findall(read))  # among the words there need not be every number
            seen |= found
            yield _View(read, found)
    if not seen.isdisjoint(_BACKWARDS):
        size, backwards = len(folded), frozenset(word[::-1] for word in words)
        yield _View(folded[::-1], backwards, lambda start, end: (size - end, size - start))
    if runs := _spaced(folded) if any(len(word) == 1 and not word.isdecimal() for word in words) else []:
        yield _joined(folded, runs)


def _is_leet(folded: str, words: frozenset[str]) -> bool:
    """Whether one of the words, or a number that need not be among them, is a word of the book in digits."""
    digits = "\n".join(word for word in words if not word.isalpha())
    if not _long_words().isdisjoint(digits.translate(_LEET).split("\n")):
        return True
    sizes = {len(word) for word in words if word.isdecimal()}  # another number as long as one that is not there is
    numbers = (number for number in _numbers() if len(number) in sizes)
    found = ((at, at + len(number)) for number in numbers for at in places(folded, number))
    return not all(folded[at - 1 : at].isalnum() or folded[end : end + 1].isalnum() for at, end in found)


def _spaced(folded: str) -> list[tuple[int, int]]:
    """Where letters stand alone, three or more in a row; nothing where they are never six, which is a word spaced out."""
    if any(char.isalnum() for char in rare(folded)):
        is_spaced = _pattern("spaced_out").search(folded) is not None
        return [run.span() for run in _pattern("spaced").finditer(folded)] if is_spaced else []
    # The same in fewer signs, of which it can be told where to look.
    plain = b" %s " % folded.encode("ascii", "replace").translate(_SKELETON)
    is_spaced = re.search(rb" a (?: ?a ){4,} ?a(?= )", plain) is not None
    return [(run.start(), run.end() - 1) for run in re.finditer(rb" a (?: ?a )+ ?a(?= )", plain)] if is_spaced else []


def _joined(folded: str, runs: list[tuple[int, int]]) -> _View:
    """The neighbourhoods of spaced-out words, with those words pulled together."""
    texts: list[str] = []
    starts: list[int] = []  # of the pieces in the view,
    pieces: list[tuple[int, int, bool]] = []  # and their places in the folded text
    size = at = 0
    for (first, last), following in zip_longest(runs, runs[1:]):
        stop = min(last + _WINDOW, following[0] if following else len(folded))
        begin = max(at, first - _WINDOW)
        for place, end, joined in ((begin, first, False), (first, last, True), (last, stop, False)):
            texts.append("".join(compiled(WORDS).findall(folded, place, end)) if joined else folded[place:end])
            pieces.append((place, end, joined))
            starts.append(size)
            size += len(texts[-1])
        at = stop

    def back(start: int, end: int) -> tuple[int, int]:
        (one, two) = (bisect_right(starts, place) - 1 for place in (start, end - 1))
        (first, _, is_word), (last, stop, ends_word) = pieces[one], pieces[two]
        # Inside a pulled-together word the exact letter is not worth knowing.
        return first if is_word else first + start - starts[one], stop if ends_word else last + end - starts[two]

    return _View("".join(texts), None, back)


def _matches(view: _View) -> Iterator[tuple[int, int, str]]:
    """Every phrase of the book in one reading of the view."""
    text, squeezed = view.text, view.words is None
    for word, at, phrases in _everywhere(text, _book()) if view.words is None else _in_words(text, view.words):
        for phrase in phrases:
            found = _compiled(phrase.follows, squeezed).match(text, at + len(word))
            before = _compiled(phrase.before, squeezed, before=True) if found and phrase.before else None
            led = before.search(text, max(0, at - _WINDOW), at) if before else None
            if found is None or (before and led is None):
                continue
            start, end = led.start() if led else at, found.end()
            if phrase.deniable and _pattern("negation").search(text, max(0, start - 12), start):
                continue
            rest = None if _pattern("cjk").match(text, end - 1) else _pattern("rest_of_word").match(text, end)
            yield start, rest.end() if rest else end, phrase.reason


def _in_words(text: str, words: frozenset[str]) -> Iterator[tuple[str, int, list[_Phrase]]]:
    """The words of the book where they stand, each with the phrases for which the right words stand before it."""
    book = _live(words)
    yield from _everywhere(text, {word: book[word] for word in _unbordered().intersection(book)})
    if not (known := words.intersection(book)):
        return
    # Blanks for all that is in no word of ASCII; what else there is, only makes for a second look.
    plain = text.encode("ascii", "replace").translate(_BLANKED).decode()
    led = {word: [(phrase, _needs(phrase)[0]) for phrase in book[word]] for word in known}
    for word, at in _standing(text, plain, known):
        before = plain[max(0, at - _WINDOW) : at].split()
        if phrases := [phrase for phrase, leads in led[word] if not leads or not leads.isdisjoint(before)]:
            yield word, at, phrases


def _standing(text: str, plain: str, words: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Where these words stand by themselves."""
    if len(text) < _LONG or not "".join(words).isascii():
        yield from ((word[0], word.start()) for word in compiled(WORDS).finditer(text) if word[0] in words)
        return
    endings: dict[str, list[str]] = {}  # by the first letter, which is all that most words are asked for
    for word in words:
        endings.setdefault(word[0], []).append(word[1:])
    starts = "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in endings.items())
    for found in re.finditer(f" (?:{starts})(?= )", f" {plain} "):
        start, end = found.start(), found.end() - 1
        if not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            yield found[0][1:], start


def _everywhere(text: str, book: dict[str, list[_Phrase]]) -> Iterator[tuple[str, int, list[_Phrase]]]:
    return ((word, at, phrases) for word, phrases in book.items() for at in places(text, word, len(word)))


def _live(words: frozenset[str]) -> dict[str, list[_Phrase]]:
    """The part of the book that can be in a text of these words at all."""
    book, whole = _book(), "\n".join(["", *words, ""])
    known = {word for word in words if word in book}
    if not whole.isascii() or "md" in words:
        known |= {word for word in _unbordered() if all(part in whole for part in word.split("."))}
    live = dict[str, list[_Phrase]]()
    for word in known:
        for phrase in book[word]:
            leads, next_ones = _needs(phrase)
            if not (leads and leads.isdisjoint(words)) and (not next_ones or any(each in whole for each in next_ones)):
                live.setdefault(word, []).append(phrase)
    return live


@cache
def _needs(phrase: _Phrase) -> tuple[frozenset[str], frozenset[str]]:
    """Words of which one must stand before a phrase, and what the next one must begin with, line breaks for its borders;
    nothing where a pattern does not begin with a word, or a choice of words in brackets."""
    words = r"((?:[^\W_]|[ |])+)"
    before = re.match(rf"\({words}\) |([^\W_]+) ", phrase.before if phrase.before.isascii() else "")
    after = re.match(rf" (?:\.{{2,3}} |>> )?\({words}\)(?![?*{{])( ?)", phrase.follows)
    leads = (before[1] or before[2]).split("|") if before else []
    following = [f"{choice}{after[2]}" for choice in after[1].split("|")] if after else []
    begun = ("\n" + choice.split()[0] + ("\n" if " " in choice else "") for choice in following)
    return frozenset(choice.split()[0] for choice in leads), frozenset(begun)


@cache
def _book() -> dict[str, list[_Phrase]]:
    """The phrases of the table by the words to look for, folded."""
    reasons = table("orders")["reasons"]
    book: dict[str, list[_Phrase]] = {}
    for language in (each for name, each in table("orders").items() if name != "reasons"):
        for reason, entries in language.items():
            for entry in entries:
                texts = (entry.get(name, "") for name in ("words", "follows", "before"))
                words, follows, before = (fold(re.sub(r"\n *", "", text)) for text in texts)
                deniable = reason == "override" and not before
                for word in words.split("|"):
                    book.setdefault(word, []).append(_Phrase(reasons[reason], follows, before, deniable))
    return book


@cache
def _unbordered() -> frozenset[str]:
    """The words of scripts without blanks; they have no border to look for."""
    return frozenset(word for word in _book() if _pattern("cjk").search(word) or "." in word)


@cache
def _long_words() -> frozenset[str]:
    return frozenset({*(word for word in _book() if len(word) >= 5), "previous", "instructions", "system"})


@cache
def _numbers() -> tuple[str, ...]:
    """The numbers that read as a word."""
    digits = {letter: digit for digit, letter in _LEET.items()}
    return tuple(word.translate(digits) for word in _long_words() if digits.keys() >= set(map(ord, word)))


@cache
def _compiled(pattern: str, squeezed: bool, *, before: bool = False) -> re.Pattern[str]:
    """A pattern of the book as it is looked for; with `before`, up to where it ends."""
    border = "" if squeezed or _pattern("cjk").search(pattern) else r"(?<![^\W_])"
    for mark, gap in (_SQUEEZED_GAPS if squeezed else _GAPS).items():
        pattern = pattern.replace(mark, gap)
    pattern = pattern.replace("~", _FEW).replace(" ", r"[\W_]{0,6}" if squeezed else _SEPARATOR)
    return re.compile(f"{border}{pattern}$" if before else pattern)
