"""Units: a document cut along its Markdown into small pieces that know their lines.

Promise: every line that tells something belongs to a unit; litter does not (`is_litter`; headings, and the first row of
a table, are the trail of what is below them). A unit's lines are exact; several units may share one long line, cut at
sentences. Linear time on any text. Units come in parts of some dozens; cutting can begin again at any part, and gives
what cutting the whole would have given. Not here: words (`text`), and who may see a document (`current`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from anima.errors import BadArguments
from anima.layout import starter_lines
from anima.search import Place
from anima.text import fold
from anima.text.markdown import bullet_of, comment_after, fence_after, heading_of

SHORT = 300  # a unit up to this many characters stays whole
PIECE = 250  # longer ones are cut into pieces of about this size
LONGEST_TRAIL = 200
PART = 32  # a part ends with the first block that brings it to so many units
LONGEST_FRONT = 400  # lines
LONGEST_COMMENT = 2000  # what is not closed after so many characters is text that begins like a comment

_SENTENCE = re.compile(r"[^.!?。！？]*(?:[.!?]+(?:[\"'”’)*_\]]*)(?=\s|$)\s*|[。！？]+|[.!?]+|$)")
_SPEAKER = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)?([^\W\d_][\w.'’ -]{0,30}?)(?::(?:\*\*|__)|(?:\*\*|__)?:)(?:\s|$)"
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TOLD = re.compile(r"[^\W_]")
_RULED = re.compile(r"[ \t]*\|[ \t|:-]*-[ \t|:-]*\r?\Z")  # what stands between the first row of a table and the rest


class Unit(NamedTuple):
    """A piece of a document. `text` may be part of its lines; `speaker` is folded, "" when nobody is named."""

    start_line: int
    end_line: int
    text: str
    trail: str
    block: str  # item, row, code, front, text
    speaker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some dozens of units and their whole text; the texts of all parts make up the document. How a part was cut follows from its
    place, its text and the line `ahead` of it (None at the end of the document), which decides whether its last block ends there."""

    place: Place
    text: str
    ahead: str | None
    units: tuple[Unit, ...]


def cut_parts(rest: str, place: Place) -> Iterator[Part]:
    """The parts of a document from `place` on, where `rest` begins. There is always one, if only of blank lines."""
    lines = (rest.removeprefix("\ufeff") if place.line == 1 else rest).split("\n")
    mark = "\ufeff" if place.line == 1 and rest.startswith("\ufeff") else ""
    reading = _Reading(place)
    base, begun, found = place.line, place, list[Unit]()
    for end, units in _blocks(lines, base, reading):
        found += units
        following = end + 1
        if len(found) < PART or following >= base + len(lines):
            continue
        text = mark + "".join(f"{line}\n" for line in lines[begun.line - base : following - base])
        yield Part(place=begun, text=text, ahead=lines[following - base], units=tuple(found))
        begun, found, mark = reading.place(following), [], ""
    yield Part(place=begun, text=mark + "\n".join(lines[begun.line - base :]), ahead=None, units=tuple(found))


def front_of(text: str) -> int:
    """The line that closes YAML front matter, or 0."""
    lines = text.removeprefix("\ufeff").split("\n", LONGEST_FRONT)[:LONGEST_FRONT]
    if lines[0].rstrip() != "---":
        return 0
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() in ("---", "..."):
            return number
    return 0


class _Reading:
    """What is known when a line is reached: the headings above, those of an open table, who was last named as speaking,
    and an open fence."""

    def __init__(self, place: Place) -> None:
        self._titles: list[tuple[int, str]] = []
        self.table = self.speaker = self.fence = ""
        self.front = place.front
        if place.above:
            titles, self.table, self.speaker, self.fence = json.loads(place.above)
            self._titles = [(level, title) for level, title in titles]
        self._join()

    def place(self, line: int) -> Place:
        above = json.dumps([self._titles, self.table, self.speaker, self.fence])
        return Place(line=line, front=self.front, above=above)

    def enter(self, level: int, title: str) -> None:
        self._titles = [held for held in self._titles if held[0] < level]
        self._titles.append((level, _COMMENT.sub("", title[: 2 * LONGEST_TRAIL]).strip()[:LONGEST_TRAIL]))
        self.speaker = ""
        self._join()

    def in_table(self, first: str) -> None:
        """The first row of a table has been read; none, at its end."""
        if first != self.table:
            self.table = first
            self._join()

    def _join(self) -> None:
        titles = [*(held[1] for held in self._titles), self.table]
        self.text = " > ".join(title for title in titles if title)[-LONGEST_TRAIL:]


def _blocks(lines: list[str], base: int, reading: _Reading) -> Iterator[tuple[int, list[Unit]]]:
    """Runs of lines that belong together: the last line of each, and its units. One pass; each line is looked at a fixed number
    of times. Whenever a block is given, `reading` is as it must be for the line after that block."""
    start, block, size, is_open, speaker, beyond = 0, "", 0, False, "", base + len(lines)
    for number, line in enumerate([*lines, ""], base):
        kind = _kind(line, number, reading.front, reading.fence)
        if start and is_open and number < beyond and size <= LONGEST_COMMENT:
            is_open, size = comment_after(line, True), size + len(line) + 1
            if not is_open:
                yield number, _units(lines, base, start, number, block, reading.text, speaker)
                start = 0
            continue
        if start and (number == beyond or _breaks(block, kind, size, line)):
            yield number - 1, _units(lines, base, start, number - 1, block, reading.text, speaker)
            start = 0
        if kind == "fence":
            reading.fence = fence_after(line, reading.fence)
            kind = "code"
        if kind != "row":
            reading.in_table("")
        if kind == "blank" or number == beyond:
            continue
        if heading := heading_of(line) if kind == "heading" else None:
            reading.enter(*heading)
            continue
        if kind == "row" and not reading.table and number + 1 < beyond and _RULED.match(lines[number + 1 - base]):
            reading.in_table(" ".join(line.replace("|", " ").split())[:LONGEST_TRAIL])
            continue
        if not start:
            start, size = number, 0
            block = "text" if kind == "indented" else kind
            is_open = line.lstrip().startswith("<!--") and block == "text" and comment_after(line, False)
            speaker = _speaker(reading, line, block)
        size += len(line) + 1


def _kind(line: str, number: int, front: int, fence: str) -> str:
    if number <= front:
        return "front"
    if fence_after(line, fence) != fence:
        return "fence"
    if fence:
        return "code"
    if not line.strip():
        return "blank"
    if heading_of(line):
        return "heading"
    if (bullet := bullet_of(line)) and (bullet.text or bullet.box):
        return "item"
    if line.lstrip().startswith("|"):
        return "row"
    return "indented" if line[0] in " \t" else "text"


def _breaks(block: str, kind: str, size: int, line: str) -> bool:
    """Whether a line of this kind begins a new block after the one that is open."""
    if kind in ("blank", "heading", "item", "row"):
        return True
    if size + len(line) > SHORT and kind != "fence":
        return True
    if kind in ("fence", "code", "front"):
        return block != ("code" if kind == "fence" else kind)
    if block in ("code", "front", "row"):
        return True
    return kind == "text" and bool(_SPEAKER.match(line))


def _speaker(reading: _Reading, line: str, block: str) -> str:
    """Who speaks in a block: named at its head, or, in running text, named before."""
    match = _SPEAKER.match(line) if block in ("item", "text") else None
    name = fold(match[1].strip()) if match else ""
    if block == "text" and name:
        reading.speaker = name
    if block == "item" and name:
        return name
    return reading.speaker


def _units(lines: list[str], base: int, start: int, end: int, block: str, trail: str, speaker: str) -> list[Unit]:
    while end > start and not lines[end - base].strip():
        end -= 1
    text = "\n".join(line.rstrip("\r") for line in lines[start - base : end - base + 1])
    if is_litter(text):
        return []
    pieces = _sentences(text) if len(text) > SHORT else [text] if text.strip() else ()
    return [Unit(start, end, piece, trail, block, speaker) for piece in pieces]


def is_litter(text: str) -> bool:
    """What tells nothing of this home: no word at all, comments alone, and lines as a new home has them."""
    if text.lstrip().startswith("<!--") and len(text) <= 2 * LONGEST_COMMENT:
        text = _COMMENT.sub("", text)
    return not _TOLD.search(text) or all(line.strip() in starter_lines() for line in text.split("\n"))


def _sentences(text: str) -> Iterator[str]:
    """Sentences gathered to pieces of about PIECE characters; a sentence longer than SHORT is cut at blanks."""
    held = ""
    for match in _SENTENCE.finditer(text):
        sentence = match[0]
        while sentence:
            at = sentence.rfind(" ", SHORT // 2, SHORT) + 1 or SHORT if len(sentence) > SHORT else len(sentence)
            part, sentence = sentence[:at], sentence[at:]
            if held and len(held) + len(part) > PIECE:
                yield held.strip()
                held = ""
            held += part
    if held.strip():
        yield held.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkConfig:
    """How plain chunks are cut, in characters."""

    chunk_size: int = 1000
    chunk_overlap: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A plain chunk: whole lines where they fit, parts of a line where one line is longer than a chunk."""

    start_line: int
    end_line: int
    text: str


def chunk_document(text: str, config: ChunkConfig | None = None) -> list[Chunk]:
    """Chunks of at most `chunk_size` characters along lines, each beginning with the end of the one before: whole lines
    within `chunk_overlap`, or just so many characters of a line that is longer. Blank ones are left out."""
    config = config or ChunkConfig()
    size, overlap = config.chunk_size, config.chunk_overlap
    if size < 1 or not 0 <= overlap < size:
        raise BadArguments("a chunk has a size of at least 1 and an overlap smaller than its size")
    chunks: list[Chunk] = []
    begin = seen = line = 0  # `seen` is where the last chunk ended, `line` how many ended before this one
    while begin < len(text):
        end = after = min(begin + size, len(text))
        if end < len(text) and (border := text.rfind("\n", max(begin, seen), end + 1)) >= 0:
            end, after = border, border + 1
        part = text[begin:end]
        if part.strip():
            chunks.append(Chunk(start_line=line + 1, end_line=line + 1 + part.count("\n"), text=part))
        if after == len(text):
            break
        # The next one begins at the first line within the overlap, or in the middle of one that is longer.
        target, seen = after - overlap, after
        following = text.find("\n", max(target - 1, begin), after - 1) + 1 or (target if target > begin else after)
        line += text.count("\n", begin, following)
        begin = following
    return chunks
