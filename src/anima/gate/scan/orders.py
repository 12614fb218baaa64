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
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import zip_longest
from typing import NamedTuple

from anima.gate.scan.sights import Origins, Sighting, compiled, fold
from anima.model import Severity
from anima.text import read_table, visible
from anima.text.markdown import heading_of

# The tags in which a prompt frames what it loads. Content that opens or closes one could step out of its frame.
FRAME_NAMES = tuple("memory memory_context agents_context loaded_context domain_knowledge_context".split())
_NAMES = "|".join(sorted((name.replace("_", "[-_ ]?") for name in FRAME_NAMES), key=len, reverse=True))
_FRAME = (
    rf"<\s{{0,20}}+(?:/\s{{0,20}}+(?:{_NAMES})(?![\w.-])(?:[^<>]{{0,400}}+>)?"
    rf"|(?:{_NAMES})(?:\s[^<>]{{0,400}}+|\s{{0,20}}+/?)>)"
)
_IN_CODE = r"(?:#\s{0,4}include\s{0,4}|\w)$"

_TOKEN = (
    r"<\|[\w▁/.-]{2,40}+\|>|<\s?\|\s?(?:im_start|im_end|endoftext|system|user|assistant|eot_id)\s?\|\s?>"
    r"|\[/?inst\]|<</?sys>>|\[/?system_prompt\]|\[/?(?:available_tools|tool_calls|tool_results)\]"
    r"|</?(?:start_of_turn|end_of_turn|bos|eos|system|system-reminder|system_prompt|function_calls|function_results"
    r"|tool_response|tool_results?|antml:[a-z_]{1,30})(?:\s[^<>]{0,200}+)?>"
)

_SPEAKERS = {
    "human": "human|user|instruction|usuario|utilisateur|benutzer|nutzer|utente|пользователь|用户|ユーザー|ユーザ",
    "model": "assistant|ai|chatbot|response|asistente|assistente|assistent|ассистент|助手|アシスタント",
    "system": "system|developer|sistema|systeme|система|系统|システム",
}
_ORDERS = (
    r"[^\n]{0,80}?\b(?:you are|you must|you will|you may|you now|ignore|disregard|override|the user has|the owner has"
    r"|new instruction|maintenance mode|safety)"
)
_TURNS_APART = 4000  # characters within which two turns are one staged conversation

_HIDDEN_STYLE = (
    r"<[a-z][a-z0-9]{0,15}\s[^<>]{0,200}?(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0"
    r"|opacity\s?:\s?0(?![.\d])|\shidden(?=[\s>/=]))[^<>]{0,200}+>"
)
_IMAGE_WITH_SLOT = r"!\[[^\]\n]{0,200}+\]\([^)\s]{4,300}?[{<$][a-z_]{3,40}[}>]?"
_MARKDOWN_COMMENT = r"(?m)^[ ]{0,3}\[(?://|comment|#|_)\]:[ ]?(?:#|<>)[ ]?[\"'(](?P<text>[^\n]{0,2000})"
_SECTION_MARK = r"<!--\s*(?:private|share\s*:\s*[a-z]+(?:\s*,\s*[a-z]+)*)\s*-->"


def comments(text: str, safe: str) -> Iterator[Sighting]:
    """HTML and Markdown comments, except the section marks on headings, shown as they stand in the safe text."""
    start = text.find("<!--")
    while start >= 0:
        close = text.find("-->", start + 4)
        end = close + 3 if close >= 0 else len(text)
        line = text.rfind("\n", max(0, start - 400), start) + 1
        if not (compiled(_SECTION_MARK).fullmatch(text, start, end) and heading_of(text[line : start + 1])):
            inner = safe[start + 4 : close if close >= 0 else end].strip()
            yield Sighting(start, end, "html-comment", Severity.NOTE, visible(inner), "a comment that is not displayed")
        start = text.find("<!--", end) if close >= 0 else -1
    if "]:" in text:
        for found in compiled(_MARKDOWN_COMMENT).finditer(text):
            shown = visible(safe[found.start("text") : found.end("text")].rstrip("\"')"))
            yield Sighting(*found.span(), "markdown-comment", Severity.NOTE, shown, "a comment that is not displayed")


_MARKS: tuple[tuple[str, str, Severity, str], ...] = (
    (_FRAME, "frame-marker", Severity.DANGER, "a tag that frames memory in a prompt"),
    (_TOKEN, "special-token", Severity.DANGER, "a token of a model's own format"),
    (_HIDDEN_STYLE, "hidden-html", Severity.WARN, "an element that is styled away"),
    (_IMAGE_WITH_SLOT, "instruction", Severity.WARN, "an image whose address carries data away"),
)


def marks(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Frame markers, special tokens, staged turns, elements styled away. `text` is only shown; `folded` is searched."""
    for pattern, kind, severity, message in _MARKS if "<" in folded or "[" in folded else ():
        for found in compiled(pattern).finditer(folded):
            start, end = origins.span(*found.span())
            shown_to = end + 200 if pattern is _HIDDEN_STYLE else end  # what is styled away stands behind the tag
            # C++ has a header of that name, and a type parameter can have it: `#include <memory>`, `Promise<Memory>`.
            before = folded[max(0, found.start() - 16) : found.start()]
            if found[0] != "<memory>" or not compiled(_IN_CODE).search(before):
                yield Sighting(start, end, kind, severity, visible(text[start:shown_to], 200), message)
    yield from _turns(text, folded, origins)


@cache
def _labels() -> re.Pattern[str]:
    roles = "|".join(f"(?P<{role}>{fold(names)})" for role, names in _SPEAKERS.items())
    return re.compile(rf"(?<![^\n])[ \t]{{0,3}}(?:#{{1,6}} ?|\*\*)?(?:{roles})(?:\*\*)?[ ]?:(?:\*\*)?")


_A_NAME = r"[ \t]{0,4}(?:[A-ZÀ-Þ][\w'-]{0,24}+[ \t]?){1,3}(?:\n|$)"  # "Human: Luis" says who the human is


def _turns(text: str, folded: str, origins: Origins) -> Iterator[Sighting]:
    """Lines that stage a conversation: a person's and the model's turn set off by blank lines, or a system's orders."""
    previous: re.Match[str] | None = None
    for label in _labels().finditer(folded) if ":" in folded else ():
        before = folded[max(0, label.start() - 80) : label.start()]
        before = before.replace("\r", "").replace("\t", "").replace(" ", "")
        if before and not before.endswith("\n\n"):
            continue
        start, end = origins.span(*label.span())
        speaker, asked = label.lastgroup, label.lastgroup
        if previous is not None and label.start() - previous.end() <= _TURNS_APART:
            asked = previous.lastgroup
        commands = speaker == "system" and compiled(_ORDERS).match(folded, label.end())
        is_human = label["human"] == "human" and label.start() > 0 and not compiled(_A_NAME).match(text, end)
        if (speaker != asked and "model" in (speaker, asked)) or commands or is_human:
            line = text[start : end + 120].strip().partition("\n")[0]
            yield Sighting(start, end, "special-token", Severity.DANGER, visible(line, 120), "a line that fakes a turn")
        previous = label


# -- commands ---------------------------------------------------------------------------------------------------------------

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
_SPACED = r"(?<![^\W_])(?:[^\W\d_][\W_]{1,2}){5,}[^\W\d_](?![^\W_])"
_SPACED_TOO = _SPACED.replace("{5,}", "{2,}")
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
    back: Callable[[int, int], tuple[int, int]] = lambda start, end: (start, end)
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
    yield _View(folded)
    if any(word.translate(_LEET) in _long_words() for word in words if not word.isalpha()):
        yield _View(folded.translate(_LEET))
    if not words.isdisjoint(_ROTATED):
        yield _View(folded.translate(_ROT13))
    if not words.isdisjoint(_BACKWARDS):
        size = len(folded)
        yield _View(folded[::-1], lambda start, end: (size - end, size - start))
    if compiled(_SPACED).search(folded):
        yield _joined(folded)


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
            before = _before(phrase.before, view.squeezed) if found else None
            led = before.search(text, max(0, at - _WINDOW), at) if before else None
            if found is None or (before and led is None):
                continue
            start, end = led.start() if led else at, found.end()
            if phrase.deniable and compiled(_NEGATION).search(text, max(0, start - 12), start):
                continue
            rest = None if compiled(_CJK).match(text, end - 1) else compiled(_REST_OF_WORD).match(text, end)
            yield start, rest.end() if rest else end, phrase.reason


def _words_of(text: str, book: dict[str, list[_Phrase]], words: set[str]) -> Iterator[tuple[str, int]]:
    """The words of the book, where they stand; adds every word it meets to `words`."""
    words.update(compiled(_WORDS).findall(text))
    if not words.isdisjoint(book):  # a match object for every word of a long text is dear
        yield from ((found[0], found.start()) for found in compiled(_WORDS).finditer(text) if found[0] in book)
    if not text.isascii() or ".md" in text:
        letters = set(text)
        yield from _everywhere(text, [word for word in _unbordered() if letters.issuperset(word)])


def _everywhere(text: str, words: Iterable[str]) -> Iterator[tuple[str, int]]:
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield word, at
            at = text.find(word, at + len(word))


_REST_OF_WORD = r"[^\W_]{0,24}"
_CJK = "[\u3040-\u30ff\u3400-\u9fff]"
_NEGATION = r"(?:\bnot|n't|\bn|\bnever|\bnon|\bno|\bne|\bnie|\bniemals|\bnao|не)[\W_]{1,3}$"


@cache
def _book() -> dict[str, list[_Phrase]]:
    """The phrases of the table by the words to look for, folded."""
    table = read_table("gate/scan", "orders")
    reasons = table.pop("reasons")
    book: dict[str, list[_Phrase]] = {}
    for language in table.values():
        for reason, entries in language.items():
            for entry in entries:
                texts = (entry.get(name, "") for name in ("words", "follows", "before"))
                words, follows, before = (fold(re.sub(r"\n *", "", text)) for text in texts)
                deniable = reason == "override" and not before
                for word in words.split("|"):
                    book.setdefault(word, []).append(_Phrase(reasons[reason], follows, before, deniable))
    return book


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
