"""Phrases: what is looked for when something is to be forgotten, and how a text looks without it. Pure.

Promise: a phrase is found as whole words, in scripts that part them, whatever its case, Unicode form, blanks and line
breaks are; one of several words also across punctuation, markup, link targets and characters nobody sees, between its
words and inside them; only whole lines go, and a bullet takes along what hangs below it; every other line stays as it
was, byte for byte. Linear in the text. Not here: where to look (forget), and what stays forgotten (forgotten).
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

from anima.model import DocPath, fold
from anima.text import INVISIBLE, INVISIBLES
from anima.text.markdown import bullet_of, fence_after, heading_of, lines_of, unmarked, without_tail

_Texts = Iterable[str]
BROKEN_OFF = "…"  # stands where a text was cut
LEAD = 8  # words of a longer phrase that are looked up first
_FRONT = re.compile(r"\A(?:\[\d{1,2}:\d{2}(?::\d{2})?\]\s+)?(?:(?:User|Agent):\s+)?")  # when it was said, and by whom
_ESCAPE = re.compile(r"(?:(?<!\\)\\+u[0-9a-fA-F]{4})+")  # a letter in JSON, or in JSON inside of JSON
_BREAK = re.compile(r"(?<!\\)\\+[nrt]")  # a line end or a tab there
# Scripts that put no blanks between words are taken letter by letter; a sign that is no punctuation is a word too.
_CLOSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CLOSE}]|[^\W_{_CLOSE}]+|[^\w\s\x00-\x7f\ufffd]")
# Two letters of one word; not of scripts in which a word has no end to be seen: no blanks, or particles that hang on to it.
_WITHIN = re.compile(rf"[^\W_{_CLOSE}\uac00-\ud7af]{{2}}")
# What may stand inside a word, and may part two: emphasis, and what nobody sees; and the hump of a CamelCase word.
_SOFT, _HUMP = "\x01", "\x02"
_NO_LETTER = bytes(byte for byte in range(128) if not chr(byte).isalnum())
_JOINTS = re.compile(rf"[*_~`{''.join(INVISIBLES.values())}]+|(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
# What a reader of the page does not see: the targets of links, the marks of footnotes, tags and comments.
_UNDRAWN = re.compile(
    r"(?<=\])(?:\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,200}\])|(?<=\[\[)[^\[\]|\n]{0,400}\||\[\^[^\[\]\n]{1,100}\]"
    r"|<(?:!--[^\n]{0,2000}?--|/?[A-Za-z][^<>\n]{0,2000})>"
)
_BETWEEN = rb"(?:[^0-9A-Za-z\x80-\xff]|\xc2\xad|\xe2\x80[\x8b-\x8f]|\xe2\x81\xa0|\xef\xbb\xbf){1,12}?"
_FEW = 100  # words that are looked for one by one, before a text is cut into words
_GAP = 400  # characters that may stand between two words of a phrase
_OPEN_END = 4  # letters; a word of so many is also found with an ending, or as the end of a longer one
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
    """A text with nothing left of what may stand inside a word."""
    return _run(_unmarked_lines(text), joined=True)


def _run(lines: Iterable[str], *, joined: bool) -> Flat:
    parts, starts, at = list[str](), list[int](), 0
    for line in lines:
        starts.append(at)
        line = line.replace(_SOFT, "").replace(_HUMP, "") if joined else line
        if words := " ".join(line.split()):
            parts.append(words)
            at += len(words) + 1
    return Flat(" ".join(parts), starts)


def _unmarked_lines(text: str) -> list[str]:
    """The lines, folded, without what sets them in; with marks where a word has a joint."""
    lines = [_decoded(unmarked(_unescaped(line))) for line in lines_of(text)]
    if "\0" in text:  # no text but bytes: what no text holds parts two things
        lines = [_CONTROL.sub("\ufffd", line) for line in lines]
    return [fold(_JOINTS.sub(lambda found: _SOFT if found[0] else _HUMP, line)) for line in lines]


def _decoded(text: str) -> str:
    """A text with the letters that a page or an address wrote as numbers."""
    text = html.unescape(text) if "&" in text else text
    return _PERCENT.sub(lambda found: unquote(found[0]), text) if "%" in text else text


class Reading(NamedTuple):
    """One way to read a text: as one run of words, and as it stands with the joints of its words."""

    plain: Flat
    jointed: Flat

    def cuts(self) -> Iterator[list[tuple[str, int]]]:
        """Its words, each with its place in the jointed text: parted at emphasis, then whole, then at humps too."""
        atoms = atoms_of(self.jointed.text)
        joints = {atom.joint for atom in atoms}
        yield _joined(atoms, _HUMP)
        if _SOFT in joints:
            yield _joined(atoms, _SOFT + _HUMP)
        if _HUMP in joints:
            yield _joined(atoms, "")

    def found(self, runs: Runs) -> Iterator[tuple[int, int, Any]]:
        """(first line, last line, phrase) of every run of words that stands in it."""
        for placed in self.cuts():
            for start, end, phrase in runs.found([word for word, _ in placed]):
                yield self.jointed.line_at(placed[start][1]), self.jointed.line_at(placed[end - 1][1]), phrase


def readings(text: str, *, hold: Callable[[bytes], bool] | None = None) -> Iterator[Reading]:
    """A text as it stands, and as a page shows it; where it may be JSON, also with the line ends it tells of as blanks. `hold`
    is asked with nothing but the letters of a reading whether it is worth cutting into words."""
    texts = {text: None}
    if "[" in text or "<" in text:
        texts[_UNDRAWN.sub(_SOFT, text)] = None
    for each in list(texts) if "\\" in text else ():
        texts[_BREAK.sub(" ", each)] = None
    for each in texts:
        if hold is None or hold(_letters_in(each)):
            lines = _unmarked_lines(each)
            yield Reading(_run(lines, joined=True), _run(lines, joined=False))


def _letters_in(text: str) -> bytes:
    """A text folded and without blanks, marks and what nobody sees: every word that can be read in it is in there."""
    text = _decoded(_unescaped(text))
    seen = text if text.isascii() else INVISIBLE.sub("", text)
    return fold(seen).encode("utf-8", "surrogatepass").translate(None, _NO_LETTER)


class Atom(NamedTuple):
    """A piece of a word, or a word; and what joins it to the one before, "" for nothing."""

    word: str
    at: int
    joint: str


def atoms_of(jointed: str) -> list[Atom]:
    atoms: list[Atom] = []
    end = -1
    for found in _WORD.finditer(jointed):
        if len(found[0]) > 1 or found[0].isalnum() or unicodedata.category(found[0])[0] != "P":
            gap = jointed[end : found.start()] if end >= 0 else " "
            joint = "" if not gap or gap.strip(_SOFT + _HUMP) else _SOFT if _SOFT in gap else _HUMP
            atoms.append(Atom(found[0], found.start(), joint))
            end = found.end()
    return atoms


def _joined(atoms: Iterable[Atom], joints: str) -> list[tuple[str, int]]:
    words: list[tuple[str, int]] = []
    for atom in atoms:
        if atom.joint and atom.joint in joints:
            words[-1] = (words[-1][0] + atom.word, words[-1][1])
        else:
            words.append((atom.word, atom.at))
    return words


def _unescaped(text: str) -> str:
    """A text with the letters that JSON wrote as numbers."""

    def letters(escapes: re.Match[str]) -> str:
        numbers = bytes.fromhex("".join(escapes[0].replace("\\", "").split("u")))
        return numbers.decode("utf-16-be", "replace")

    return _ESCAPE.sub(letters, text) if "\\u" in text else text


def words_of(text: str) -> list[str]:
    """The words of a text without its punctuation, folded: what a copy in other clothes shares."""
    return [word for word, _ in _joined(atoms_of(_run(_unmarked_lines(text), joined=False).text), _HUMP)]


def said_in(line: str) -> str:
    """What a line says: without list mark, time, speaker, heading marks, and what dreaming put behind it."""
    text = unmarked(line).strip()
    if heading := heading_of(text):
        text = heading.title
    return " ".join(without_tail(_FRONT.sub("", text, count=1), loose=True).split())


def is_strong(said: str) -> bool:
    """Whether a line says enough to be told from others that say the same by chance."""
    words = words_of(said)
    return len(said) >= _STRONG_CHARS and (len(words) >= _STRONG_WORDS or any(len(w) >= _LONG_WORD for w in words))


class Wanted:
    """What is looked for. Lives as long as one plan. `texts` are the owner's own words, found wherever they stand as words;
    `lines` is what selected lines say, found as a run of words; `whole` are short ones, which count only where they are all
    of a line."""

    def __init__(
        self, *, texts: _Texts = (), lines: _Texts = (), whole: _Texts = (), pattern: re.Pattern[str] | None = None
    ) -> None:
        self.texts, self.lines, self.pattern = tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(lines)), pattern
        self.phrases = (*self.texts, *self.lines)
        self._plain = [(plain, text) for text in self.texts if (plain := flat(text).text)]
        self._whole = {plain: text for text in whole if (plain := flat(text).text)}
        self._runs = Runs()
        # Also where emphasis or a hump ends it.
        alone = [text for plain, text in self._plain if words_of(text) == [plain]]
        for text in (*self.lines, *alone):
            self._runs.add(tuple(words_of(text)), text)
        self._begun: dict[str, list[list[str]]] = {}  # by their first words
        for words in filter(None, map(words_of, self.phrases)):
            self._begun.setdefault(words[0], []).append(words)
        self._room = 2 * max(map(len, self.phrases), default=0)
        # The words of each as bytes: all of them are in whatever holds it.
        self._signs = [[each.word.encode() for each in atoms_of(p) if each.word.isalnum()] for p, _ in self._plain]
        self._loose = [_Loose(words, text) for text in self.texts if _can_be_loose(words := words_of(text))]

    def __bool__(self) -> bool:
        return bool(self.texts or self.lines or self._whole or self.pattern)

    def matches(self, text: str) -> Iterator[Match]:
        """Where this text holds what is wanted."""
        if self.pattern is not None:
            starts = [0, *accumulate(map(len, lines_of(text)))]
            for one in self.pattern.finditer(text):
                if one[0].strip():
                    first, last = (bisect_right(starts, at) - 1 for at in (one.start(), one.end() - 1))
                    yield Match(first, last, one[0])
        if not (self._plain or self._runs or self._whole):
            return
        for found in readings(text, hold=self._may_be_in):
            yield from self._by_words(found)
        for number, line in enumerate(lines_of(text)) if self._whole else ():
            said = flat(said_in(line)).text
            if said in self._whole and heading_of(line) is None:
                yield Match(number, number, self._whole[said])

    def _may_be_in(self, letters: bytes) -> bool:
        """A quick no, from the letters of a text."""
        if len(self._signs) > _FEW or any(all(sign in letters for sign in signs) for signs in self._signs):
            return True
        return bool(self._runs) and self._runs.may_be_in(letters)

    def _by_words(self, found: Reading) -> Iterator[Match]:
        flat = found.plain
        for plain, phrase in self._plain:
            at = flat.text.find(plain)
            while at >= 0:
                end = at + len(plain)
                is_whole = not (_goes_on(flat.text, at) or _goes_on(flat.text, end))
                if is_whole:
                    yield Match(flat.line_at(at), flat.line_at(end - 1), phrase)
                at = flat.text.find(plain, end if is_whole else at + 1)
        yield from (Match(*run) for run in found.found(self._runs)) if self._runs else ()
        for loose in self._loose:
            for first, last in loose.found(found.jointed.text):
                yield Match(found.jointed.line_at(first), found.jointed.line_at(last), loose.phrase)

    def hits(self, text: str) -> set[int]:
        """The numbers, from 0, of the lines that hold it."""
        return {number for match in self.matches(text) for number in range(match.first, match.last + 1)}

    def touches(self, text: str) -> bool:
        """Whether a text holds it, or the beginning of it, broken off: history and transcripts cut what is long."""
        if next(self.matches(text), None) is not None:
            return True
        for piece in text.split(BROKEN_OFF)[:-1] if self._begun else ():
            words = words_of(piece[-self._room :])
            for start in (n for n, word in enumerate(words) if word in self._begun):
                *front, cut = words[start:]  # the last word may be cut, too
                wholes = (whole for whole in self._begun[words[start]] if len(whole) > len(front))
                begins = any(front == whole[: len(front)] and whole[len(front)].startswith(cut) for whole in wholes)
                if begins and is_strong(" ".join((*front, cut))):
                    return True
        return False

    def found(self, text: str) -> set[str]:
        """The phrases a text holds."""
        return {match.phrase for match in self.matches(text)}


def _goes_on(text: str, at: int) -> bool:
    """Whether a place in a text lies inside a word."""
    return at > 0 and _WITHIN.match(text, at - 1) is not None


def _can_be_loose(words: Sequence[str]) -> bool:
    """Whether a phrase says enough to be told from the same words that stand side by side by chance, such as 3.5."""
    named = any(len(word) > 2 and not word.isdigit() for word in words)
    return len(words) >= _STRONG_WORDS or (len(words) > 1 and named)


class _Loose:
    """A phrase of several words: between two of them stands anything that is no word, inside one only joints."""

    def __init__(self, words: Sequence[str], phrase: str) -> None:
        self.phrase, self._run = phrase, "".join(words)
        self._breaks = {sum(map(len, words[:number])) for number in range(1, len(words))}
        self._open = (len(words[0]) >= _OPEN_END, len(words[-1]) >= _OPEN_END)
        spelled = (rf"[{_SOFT}{_HUMP}]*".join(map(re.escape, word)) for word in words)
        self._near = re.compile(rf"[\W_]{{0,{_GAP}}}".join(spelled))

    def found(self, jointed: str) -> Iterator[tuple[int, int]]:
        """Where its first and its last piece stand, each time it stands in a text."""
        for near in self._near.finditer(jointed):
            start = max(0, near.start() - 1)  # one more at each end, to see whether a word goes on there
            atoms = atoms_of(jointed[start : near.end() + 1])
            begins = list(accumulate((len(atom.word) for atom in atoms), initial=0))
            letters = "".join(atom.word for atom in atoms)
            at = letters.find(self._run)
            while at >= 0:
                end = at + len(self._run)
                first, last = bisect_right(begins, at) - 1, bisect_right(begins, end - 1) - 1
                joints = {begins[number] - at: atoms[number].joint for number in range(first + 1, last + 1)}
                is_whole = self._breaks <= joints.keys() and all(joints[n] for n in joints.keys() - self._breaks)
                if is_whole and (begins[first] == at or self._open[0]) and (begins[last + 1] == end or self._open[1]):
                    yield start + atoms[first].at, start + atoms[last].at
                at = letters.find(self._run, at + 1)


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

    def all_of(self, session: str) -> bool:
        """Whether everything that was said in a session is meant."""

    def entry(self, session: str, sender: str | None, time: datetime | None, text: str) -> bool:
        """Whether an entry of a transcript is meant by who said it, and when."""

    def change(self, session: str | None, origins: Sequence[str], time: datetime, text: str) -> bool:
        """Whether a waiting change is meant by who wants it, and when that was."""


class Runs:
    """Runs of words, looked up at every word of a text: eight lookups a word at most, however many runs there are."""

    def __init__(self, key: Callable[[Sequence[str]], Hashable] = tuple) -> None:
        self._key = key  # what is kept of words: themselves, or a digest
        self._by_lead: dict[int, dict[Hashable, dict[int, dict[Hashable, Any]]]] = {}
        self._firsts: set[str] = set()  # empty where words are not kept
        self._longest: set[bytes] = set()

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def may_be_in(self, letters: bytes) -> bool:
        """A quick no, where the letters of a text hold no run's longest word."""
        return len(self._longest) > _FEW or any(word in letters for word in self._longest)

    def add(self, words: tuple[str, ...], phrase: str) -> None:
        if words:
            self._firsts.add(words[0])
            self._longest.add(max(words, key=len).encode())
            self.put(len(words), words[:LEAD], words, phrase)

    def put(self, size: int, lead: Hashable, whole: Hashable, phrase: Any) -> None:
        """A run of so many words, by the keys of its first words and of all."""
        by_lead = self._by_lead.setdefault(min(size, LEAD), {})
        by_lead.setdefault(lead, {}).setdefault(size, {})[whole] = phrase

    def found(self, words: list[str]) -> Iterator[tuple[int, int, Any]]:
        """(first word, word after the last, phrase) of every run."""
        for start, word in enumerate(words):
            if self._firsts and word not in self._firsts:
                continue
            for length, by_lead in self._by_lead.items():
                lead = self._key(words[start : start + length]) if start + length <= len(words) else None
                for size, runs in by_lead.get(lead, {}).items():
                    whole = lead if size == length else self._key(words[start : start + size])
                    if start + size <= len(words) and (phrase := runs.get(whole)) is not None:
                        yield start, start + size, phrase


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
        if _can_be_loose(words_of(phrase)):  # then anything may stand between its words
            for kind in ("utf-8", "utf-16-le", "utf-16-be"):
                forms.append(_BETWEEN.join(re.escape(word.encode(kind, "surrogatepass")) for word in phrase.split()))
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
