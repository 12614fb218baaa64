"""Phrases: what is looked for when something is to be forgotten, and how a text looks without it. Pure.

Promise: a phrase is found whatever its case, Unicode form, blanks and line breaks are; only whole lines go, and a
bullet takes along what hangs below it; every other line stays as it was, byte for byte. Linear in the text.
Not here: where to look (forget), and what stays forgotten (forgotten).
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from anima.model import DocPath, fold
from anima.text.markdown import bullet_of, fence_after, heading_of, lines_of, unmarked, without_tail

LEAD = 8  # words of a longer phrase that are looked up first
_STAMP = re.compile(r"\[\d{1,2}:\d{2}(?::\d{2})?\]\s+")
_SPEAKER = re.compile(r"(?:User|Agent):\s+")
_ESCAPE = re.compile(r"(?:(?<!\\)\\+u[0-9a-fA-F]{4})+")  # a letter in JSON, or in JSON inside of JSON
_BREAK = re.compile(r"(?<!\\)\\+[nrt]")  # a line end or a tab there
# Scripts that put no blanks between words are taken letter by letter; a sign that is no punctuation is a word too.
_CLOSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CLOSE}]|[^\W_{_CLOSE}]+|[^\w\s\x00-\x7f\ufffd]")
_FEW = 100  # words that are looked for one by one, before a text is cut into words
_STRONG_CHARS, _STRONG_WORDS, _LONG_WORD = 12, 3, 10


class Match(NamedTuple):
    """Where a phrase stands: its first and last line, from 0."""

    first: int
    last: int
    phrase: str


class Flat(NamedTuple):
    """A text as one run of words: folded, without list marks and quote marks, one blank between two words."""

    text: str
    starts: list[int]  # where each line begins in it

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1


def flat(text: str) -> Flat:
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    for line in lines_of(text):
        starts.append(at)
        if words := " ".join(fold(unmarked(_unescaped(line))).split()):
            parts.append(words)
            at += len(words) + 1
    return Flat(" ".join(parts), starts)


def readings(text: str) -> Iterator[Flat]:
    """A text as one run of words; and where it may be JSON, once more with the line ends it tells of as blanks."""
    yield flat(text)
    if _BREAK.search(text):
        yield flat(_BREAK.sub(" ", text))


def _unescaped(text: str) -> str:
    """A text with the letters that JSON wrote as numbers."""
    return _ESCAPE.sub(_letters, text) if "\\u" in text else text


def _letters(escapes: re.Match[str]) -> str:
    numbers = (int(number, 16) for number in escapes[0].replace("\\", "").split("u")[1:])
    return b"".join(number.to_bytes(2, "little") for number in numbers).decode("utf-16-le", "replace")


def words_of(text: str) -> list[str]:
    """The words of a text without its punctuation, folded: what a copy in other clothes shares."""
    return [word for word, _ in placed_words(flat(text).text)]


def placed_words(plain: str) -> list[tuple[str, int]]:
    """The words of a flat text, each with its place in it."""
    return [(found[0], found.start()) for found in _WORD.finditer(plain) if not _is_punctuation(found[0])]


def _is_punctuation(word: str) -> bool:
    return len(word) == 1 and not word.isalnum() and unicodedata.category(word)[0] == "P"


def said_in(line: str) -> str:
    """What a line says: without list mark, time, speaker, heading marks, and what dreaming put behind it."""
    text = unmarked(line).strip()
    if heading := heading_of(text):
        text = heading.title
    for front in (_STAMP, _SPEAKER):
        if found := front.match(text):
            text = text[found.end() :].lstrip()
    return " ".join(without_tail(text, loose=True).split())


def is_strong(said: str) -> bool:
    """Whether a line says enough to be told from others that say the same by chance."""
    words = words_of(said)
    return len(said) >= _STRONG_CHARS and (len(words) >= _STRONG_WORDS or any(len(w) >= _LONG_WORD for w in words))


class Wanted:
    """What is looked for. Lives as long as one plan.

    `texts` are the owner's own words, found anywhere, also inside a word; `lines` is what selected lines say, found as
    a run of words; `whole` are short ones, which count only where they are all of a line.
    """

    def __init__(
        self,
        *,
        texts: Iterable[str] = (),
        lines: Iterable[str] = (),
        whole: Iterable[str] = (),
        pattern: re.Pattern[str] | None = None,
    ) -> None:
        self.texts, self.lines, self.pattern = tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(lines)), pattern
        self._plain = [(plain, text) for text in self.texts if (plain := flat(text).text)]
        self._whole = {plain: text for text in whole if (plain := flat(text).text)}
        self._runs = Runs()
        for text in (*self.lines, *(text for text in self.texts if len(words_of(text)) >= _STRONG_WORDS)):
            self._runs.add(tuple(words_of(text)), text)

    def __bool__(self) -> bool:
        return bool(self.texts or self.lines or self._whole or self.pattern)

    @property
    def phrases(self) -> tuple[str, ...]:
        return (*self.texts, *self.lines)

    def matches(self, text: str) -> Iterator[Match]:
        """Where this text holds what is wanted."""
        if self.pattern is not None:
            yield from self._by_pattern(text)
        if not (self._plain or self._runs or self._whole):
            return
        for found in readings(text):
            yield from self._by_words(found)
        if self._whole:
            yield from self._whole_lines(text)

    def _by_words(self, found: Flat) -> Iterator[Match]:
        for plain, phrase in self._plain:
            at = found.text.find(plain)
            while at >= 0:
                yield Match(found.line_at(at), found.line_at(at + len(plain) - 1), phrase)
                at = found.text.find(plain, at + len(plain))
        if self._runs.may_be_in(found.text):
            placed = placed_words(found.text)
            for start, end, phrase in self._runs.found([word for word, _ in placed]):
                yield Match(found.line_at(placed[start][1]), found.line_at(placed[end - 1][1]), phrase)

    def _by_pattern(self, text: str) -> Iterator[Match]:
        assert self.pattern is not None
        starts = [0]
        for line in lines_of(text):
            starts.append(starts[-1] + len(line))
        for found in self.pattern.finditer(text):
            if found[0].strip():
                first = bisect_right(starts, found.start()) - 1
                yield Match(first, bisect_right(starts, found.end() - 1) - 1, found[0])

    def _whole_lines(self, text: str) -> Iterator[Match]:
        for number, line in enumerate(lines_of(text)):
            said = flat(said_in(line)).text
            if said in self._whole and heading_of(line) is None:
                yield Match(number, number, self._whole[said])

    def hits(self, text: str) -> set[int]:
        """The numbers, from 0, of the lines that hold it."""
        return {number for match in self.matches(text) for number in range(match.first, match.last + 1)}

    def touches(self, text: str) -> bool:
        return next(self.matches(text), None) is not None

    def found(self, text: str) -> set[str]:
        """The phrases a text holds."""
        return {match.phrase for match in self.matches(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """One thing that goes, or went. `place` is line, dreamed, layer, proposal, transcript, torn, history, file, snapshot."""

    place: str
    where: str
    why: str
    text: str = ""
    count: int = 1


class Left(NamedTuple):
    """Something that still holds it, and why."""

    where: str
    why: str


class Sought(Protocol):
    """What is to go, as whoever keeps text is asked for it: by its words, and by where it came from."""

    words: Wanted
    matched: tuple[str, ...]  # what of a pattern was found
    purge: bool  # also from what is kept of the past, and so that no byte of it stays
    layer: str | None  # only what is this person's own; None for everybody's
    own_layer: str  # whose layer goes as a whole; "" for nobody's
    sessions: frozenset[str]  # those that are meant as a whole

    def lines(self, path: DocPath, text: str) -> set[int]:
        """The numbers, from 0, of the lines of a document that are meant by where they came from."""
        ...

    def all_of(self, session: str) -> bool:
        """Whether everything that was said in a session is meant."""
        ...

    def entry(self, session: str, sender: str | None, time: datetime | None, text: str) -> bool:
        """Whether an entry of a transcript is meant by who said it, and when."""
        ...

    def change(self, session: str | None, origins: Sequence[str], time: datetime, text: str) -> bool:
        """Whether a waiting change is meant by who wants it, and when that was."""
        ...


class Runs:
    """Runs of words, looked up at every word of a text: eight lookups a word at most, however many runs there are."""

    def __init__(self) -> None:
        self._by_lead: dict[int, dict[tuple[str, ...], dict[int, dict[tuple[str, ...], str]]]] = {}
        self._firsts: set[str] = set()
        self._longest: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def may_be_in(self, plain: str) -> bool:
        """A quick no, where a flat text holds no run's longest word."""
        return len(self._longest) > _FEW or any(word in plain for word in self._longest)

    def add(self, words: tuple[str, ...], phrase: str) -> None:
        if words:
            self._firsts.add(words[0])
            self._longest.add(max(words, key=len))
            by_lead = self._by_lead.setdefault(min(len(words), LEAD), {})
            by_lead.setdefault(words[:LEAD], {}).setdefault(len(words), {})[words] = phrase

    def found(self, words: list[str]) -> Iterator[tuple[int, int, str]]:
        """(first word, word after the last, phrase) of every run."""
        for start, word in enumerate(words):
            if word not in self._firsts:
                continue
            for length, by_lead in self._by_lead.items():
                for size, runs in by_lead.get(tuple(words[start : start + length]), {}).items():
                    phrase = runs.get(tuple(words[start : start + size]))
                    if phrase is not None:
                        yield start, start + size, phrase


# -- a text without it ----------------------------------------------------------------------------------------------------


def cut(text: str, hits: Collection[int]) -> str:
    """The text without these lines, and without what hangs below a list item whose first line is among them."""
    lines = lines_of(text)
    gone = with_hanging(lines, hits)
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def with_hanging(lines: list[str], hits: Collection[int]) -> set[int]:
    """The lines that go: those that were hit, and the deeper ones below a list item that was."""
    gone, held = set(hits), set(hits)
    depth: int | None = None  # of the item that went; None where none did
    fence = ""
    for number, line in enumerate(lines):
        fence = fence_after(line, fence) if depth is None else fence
        indent = len(line) - len(line.lstrip(" \t"))
        if depth is not None and number not in held:
            if line.strip() and indent > depth:
                gone.add(number)
                continue
            depth = depth if not line.strip() else None
        if number in held and not fence:
            item = bullet_of(line)
            depth = len(item.indent) if item else depth
    return gone


# -- bytes ----------------------------------------------------------------------------------------------------------------


def forms_of(phrase: str) -> set[bytes]:
    """A phrase as files hold it: both Unicode forms, escaped as JSON does, in UTF-8 and UTF-16."""
    texts = {form for kind in ("NFC", "NFD") for form in (unicodedata.normalize(kind, phrase), phrase)}
    texts |= {" ".join(text.split()) for text in texts}
    texts |= {json.dumps(text)[1:-1] for text in texts} | {json.dumps(text, ensure_ascii=False)[1:-1] for text in texts}
    found = {text.encode("utf-8", "surrogatepass") for text in texts}
    return found | {text.encode(kind, "surrogatepass") for text in texts for kind in ("utf-16-le", "utf-16-be")}


def blanked(data: bytes, phrases: Iterable[str]) -> bytes:
    """The same number of bytes, with every phrase in them made blank."""
    for phrase in phrases:
        forms = sorted((re.escape(form) for form in forms_of(phrase) if form.strip()), key=len, reverse=True)
        data = re.sub(b"|".join(forms), lambda found: b" " * len(found[0]), data, flags=re.IGNORECASE)
    return data


def loose(data: bytes) -> str:
    """Whatever text bytes might hold, with the escapes of JSON undone."""
    text = data.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    text = _unescaped(text)
    for escape, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ('\\"', '"'), ("\\/", "/"), ("\\\\", "\\")):
        text = text.replace(escape, meant)
    return text
