"""Lines: those of a Markdown document that say something by themselves, and what hygiene finds about them. Pure.

Promise: no front matter, code, comment, table, quote, task or managed block is given, nor a line that hangs together with
the one before or after it, because such a line says something only in its place. Numbers are those of the file; each line
comes with its headings. Linear in the text. Not here: which lines are the same (twins), reading files (upkeep).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal, NamedTuple

from anima.text.bank import outside_blocks
from anima.text.markdown import (
    bullet_of,
    comment_after,
    fence_after,
    front_matter_end,
    heading_of,
    lines_of,
    marks_in,
    paint,
)
from anima.text.phrases import is_strong, said_in
from anima.text.reading import ToldLine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]  # one row of length one for each text

Kind = Literal["merge", "archive", "choose"]
Sameness = Literal["exact", "punctuation", "dates", "reworded", "contained", "meaning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A line that says what another says, how it is the same, and what shows it.

    `covered` tells whether the line that is kept says all of it, so that nothing is lost when this one goes.
    """

    line: ToldLine
    how: Sameness
    score: float
    evidence: str
    covered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Lines that say one thing. Kept is the one of the best place, the fullest there, or else the first."""

    keep: ToldLine
    twins: tuple[Twin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two lines that cannot both hold. `newer` is the one of the later day, None when that is not known."""

    one: ToldLine
    other: ToldLine
    why: str
    newer: ToldLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A daily log older than it should be."""

    path: str
    day: date
    age: int  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something to do, as a sentence and as what it takes: lines to take out, a document to move, or a choice.

    A choice has its two lines in `between`, and takes none out before somebody chose.
    """

    kind: Kind
    sentence: str
    keep: ToldLine | None = None
    remove: tuple[ToldLine, ...] = ()
    between: tuple[ToldLine, ...] = ()
    evidence: tuple[str, ...] = ()  # one for each line that goes; for a choice, why
    path: str = ""
    to: str = ""


# -- statements -----------------------------------------------------------------------------------------------------------

_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*\Z")
_NOT_SAID = re.compile(r"\s*(?:[|>]|!\[|\[[^\]]*\]:|<|(?:[-*_]\s*){3,}\Z)")
_LIMIT = 1_000  # characters: what is longer is no note of one fact


class Statement(NamedTuple):
    """A line that says something. `under` are the headings above it, from the outermost; `marked` is for some eyes only."""

    number: int
    text: str
    under: tuple[str, ...]
    marked: bool


def statements(text: str) -> Iterator[Statement]:
    """The lines that say something by themselves, in order."""
    if "anima:kept" in text:
        text = outside_blocks(text)
    lines, marks, marked = lines_of(text), marks_in(text), bytearray(len(text))
    paint(marked, marks.private, b"\x01")
    paint(marked, ((start, end) for start, end, _ in marks.shared), b"\x01")
    kinds = _kinds(lines, text[: front_matter_end(text)].count("\n"))
    at, under = 0, list[tuple[int, str]]()
    for place, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        if kind == "heading":
            heading = heading_of(line) or (2, line.strip())
            under = [above for above in under if above[0] < heading[0]] + [heading]
        elif kind in ("item", "plain") and len(line) <= _LIMIT and _is_alone(lines, kinds, place):
            said = Statement(place + 1, line.strip(), tuple(title for _, title in under), bool(marked[at]))
            yield from [said] if is_strong(said_in(line)) else []
        at += len(line)


def _kinds(lines: list[str], front: int) -> list[str]:
    """What each line is: blank, heading, item, plain, hanging (it belongs to the one above), or other."""
    kinds: list[str] = []
    fence, comment, depth = "", False, -1  # of the list we are in
    for place, line in enumerate(lines):
        before = fence
        if not comment and place >= front:
            fence = fence_after(line, fence)
        kind = "other" if place < front or comment or before or fence else _kind(line)
        comment = not fence and comment_after(line, comment)
        if kind == "item":  # one that is deeper than its list hangs on the one above it
            indent = len(line) - len(line.lstrip())
            kind, depth = ("hanging", depth) if 0 <= depth < indent else (kind, indent)
        elif kind in ("heading", "plain"):
            depth = -1
        if kind in ("plain", "other") and kinds[-1:] == ["plain"] and _UNDERLINE.match(line):
            kinds[-1], kind = "heading", "other"
        kinds.append(kind)
    return kinds


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if heading_of(line):
        return "heading"
    item = bullet_of(line, dots=True)
    if item and len(item.indent.expandtabs(4)) <= 3:
        return "other" if item.box or "<!--" in line else "item"
    if line[0] in " \t":
        return "hanging"
    return "other" if _NOT_SAID.match(line) or "<!--" in line else "plain"


def _is_alone(lines: list[str], kinds: list[str], place: int) -> bool:
    """Whether a line hangs together with no other. Prose that is wrapped goes on in small letters."""
    kind, after = kinds[place], kinds[place + 1 : place + 3]
    if next((each for each in after if each != "blank"), "") == "hanging":
        return False
    if after[:1] == ["plain"] and (kind == "item" or lines[place + 1][:1].islower()):
        return False
    before = kinds[place - 1] if place else "blank"
    return kind == "item" or before in ("blank", "heading") or (before == "plain" and not lines[place][:1].islower())
