"""Placing: the section of a page that a line belongs to, and the page with the line there.

Promise: the one rule for everything that is added to memory, by whomever: the section that was named (made when there is
none), else the one whose heading and lines it is most like, by words and by what the table says stands under such a
heading, else `## Notes`. Only who names a heading that is shared, private or dreamed gets under it. The same page and
line give the same place; no model is asked, and what is read of a page is bounded. Not here: who may (gate), the write (memory).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from anima.text.markdown import (
    BOM,
    Section,
    add_last,
    add_section,
    add_to,
    all_sections,
    bullet_of,
    bullet_text,
    comment_after,
    fence_after,
    heading_of,
    lines_of,
    marked_at,
    newline_of,
    own_end,
    sections,
    without_tail,
)
from anima.text.words import ask, cut, read_table

NOTES = "Notes"
LEAST = 0.45  # what must speak for a section before a line goes there unasked
CLEARLY = 2  # so many times as much for a section that is not to be had, and the line belongs to none of the others
IN_HEADING, IN_TABLE, IN_LINES = 2.0, 0.8, 1.0
LEADING, LEADERS = 1.5, 2  # a line begins with what it is about
MOST_LINES, MOST_SECTIONS = 100, 200  # of a section, the newest; of a page
_FIELD = re.compile(
    r"^ {0,3}(?:[-*+][ \t]+)?(?P<bold>\*\*|__|)(?P<name>[^:*_\n]{1,40})(?::(?P=bold)|(?P=bold):)(?P<value>[^\r\n]*)",
    re.MULTILINE,
)
_DREAMED = re.compile(r"Dreamed (?:until )?\d{4}-\d\d-\d\d\b")


class Landed(NamedTuple):
    """A page with a line put in, and the heading it stands under; None where the page has no sections."""

    text: str
    section: str | None


def placed(text: str, line: str, *, section: str | None = None) -> Landed:
    """The page with one more bullet, further lines hanging below it, where it belongs."""
    if not text.strip(BOM).strip():
        text = f"{text}# Memory{newline_of(text)}"
    found = [part for part in sections(text) if part.level and not part.claimed]
    level = marked_at(all_sections(text), len(text), also=_DREAMED)
    if section is not None:
        target = _titled(text, section)
    elif len(found) < 2 and level is None:  # one list, whatever it says
        last = lines_of(text)[-1]
        bullet = bullet_of(last)
        gap = "" if (bullet and bullet.is_point) or not last.strip() else newline_of(text)
        return Landed(add_last(text, gap + line), None)
    else:
        target = _most_alike(text, found, line)
    if target is not None:
        return Landed(add_to(text, found, target, line), target.title)
    title = section or NOTES
    return Landed(add_section(text, title, line, level=min(level or 2, 2)), title)


def filled(text: str, content: str) -> str:
    """A page that says who somebody is, with what was learned of them: values go to the page's fields (`- **Name:** …`;
    a new one comes after the others), lines under a heading that it has go there, and the rest comes at its end."""
    under, rest = "", list[str]()
    for line in lines_of(content.strip("\r\n") + "\n"):
        heading, said = heading_of(line), _FIELD.match(line)
        fields = list(_fields(text))
        name = said["name"].strip().casefold() if said and said["value"].strip() and fields else ""
        field = next((each for each in fields if name and each["name"].strip().casefold() == name), None)
        if said and field:
            text = f"{text[: field.start('value')]} {said['value'].strip()}{text[field.end('value') :]}"
        elif said and name and said["bold"]:
            at = fields[-1].end()
            text = f"{text[:at]}{newline_of(text)}{said[0].strip()}{text[at:]}"
        elif heading and (known := _titled(text, heading.title)):
            under = known.title
        elif heading or not under:
            under, rest = "", [*rest, line]
        elif line.strip():
            text = placed(text, line.rstrip("\r\n"), section=under).text
    left = "".join(rest).strip("\r\n")
    return add_last(text, f"{opening_for(text) or newline_of(text)}{left}") if left.strip() else text


def _fields(text: str) -> Iterator[re.Match[str]]:
    """The fields of a page that a reader sees: bold labels outside of code and comments."""
    at, fence, inside = 0, "", False
    for line in lines_of(text):
        before, fence = fence or inside, fence if inside else fence_after(line, fence)
        inside = not fence and comment_after(line, inside)
        found = None if before or fence or line.lstrip().startswith("<!--") else _FIELD.match(text, at)
        if found and found["bold"]:
            yield found
        at += len(line)


def _titled(text: str, title: str) -> Section | None:
    found = (part for part in sections(text) if part.level and not part.claimed)
    return next((part for part in found if part.title.casefold() == title.casefold()), None)


def opening_for(text: str) -> str:
    """What must stand between a text and lines added at its end: nothing, unless its last section is marked."""
    level = marked_at(all_sections(text), len(text), also=_DREAMED)
    if level is None:
        return ""
    newline = newline_of(text)
    return f"{newline}{'#' * min(level, 2)} {NOTES}{newline}{newline}"


def _most_alike(text: str, found: Sequence[Section], line: str) -> Section | None:
    """The section that most speaks for, if enough does; else the one for all the rest, if there is one."""
    words, marks = _words(line), all_sections(text)
    known = [_Known(text, found, part, words) for part in found[:MOST_SECTIONS]]
    spread = Counter(word for part in known for word in words if part.said[word])
    points = [part.points(words, spread, len(known)) for part in known]
    free = [n for n, part in enumerate(known) if part.is_place and marked_at(marks, part.end, also=_DREAMED) is None]
    best = max(free, key=lambda number: (points[number], -number), default=None)
    if best is not None and points[best] >= max(LEAST, max(points) / CLEARLY):
        return found[best]
    return next((found[n] for n in free if found[n].title.casefold() == NOTES.casefold()), None)


class _Known:
    """One section, and what it says of each word of a line: by its heading, its own lines, and what usually stands there."""

    def __init__(self, text: str, found: Sequence[Section], section: Section, words: Sequence[str]) -> None:
        self.end = own_end(found, section)
        lines = [line for line in lines_of(text[section.body : self.end])[-MOST_LINES:] if line.strip()]
        self.is_place = section.level > 1 or any(map(bullet_of, lines))  # else it is the title of the page
        heading = frozenset(cut(section.title))
        usual = frozenset[str]().union(*(_stems(under) for heads, under in _table() if heads & heading))
        times = Counter(word for line in lines for word in frozenset(cut(line)).intersection(words))
        self.said = dict.fromkeys(words, 0.0)
        for word in words:
            if word in heading:
                self.said[word] = IN_HEADING
            elif times[word]:
                self.said[word] = IN_LINES * (1 + math.log(times[word]) / 2) + IN_TABLE / 2 * (word in usual)
            elif word in usual:
                self.said[word] = IN_TABLE

    def points(self, words: Sequence[str], spread: Counter[str], sections: int) -> float:
        """How much speaks for this section: rare words more than others, and those more with which the line begins."""
        total = 0.0
        for place, word in enumerate(words):
            if self.said[word]:
                rare = math.log(1 + sections / spread[word]) / math.log(1 + sections)
                total += rare * self.said[word] * (LEADING if place < LEADERS else 1)
        return total / math.sqrt(len(words) or 1)


def _words(line: str) -> list[str]:
    """The words of a line that may say where it belongs, each once; a question has one more."""
    text = without_tail(bullet_text(line), loose=True)
    found = [word for word in ask(text) if len(word) > 1 and not word.isdigit() and word not in _small()]
    return [*found, *cut("question")] if text.rstrip().endswith("?") else found


@cache
def _small() -> frozenset[str]:
    return _stems(read_table("text", "sections")["small"])


@cache
def _table() -> tuple[tuple[frozenset[str], str], ...]:
    """The words of headings, and those that stand under such a heading."""
    rows = (row.partition(":") for row in read_table("text", "sections")["goes"])
    return tuple((_stems(heads), words) for heads, _, words in rows)


@cache
def _stems(words: str) -> frozenset[str]:
    return frozenset(cut(words))
