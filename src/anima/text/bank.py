"""Bank pages, read: the blocks that reflection keeps in them, the entities that a text names, and what held on a date.

Promise: pure and linear. Line numbers stay when a block is blanked. A line holds from its first day to the day before
its last, where its successor begins. Not here: what is retained, and how pages are made (dream.bank).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from anima.errors import BadPath
from anima.model import DocPath
from anima.text.markdown import bullet_of, bullet_text, lines_of, without_tail

FOLDER = "bank"
PAST = "past.md"  # the topic that holds what was true once
KEPT = "kept.md"  # and the one of lines that memory had no room for
BEGIN = "<!-- anima:kept (made anew by reflection; your own words go above or below) -->"
END = "<!-- /anima:kept -->"
_ENTITY = re.compile(r"(?<![\w@])@([^\W\d_][\w.-]{0,40})|\[\[([^\]|#\n]{1,80})(?:[|#][^\]\n]{0,200})?\]\]")
_BEGIN, _END = re.compile(r"[ \t]*<!-- anima:kept\b[^>\n]*-->[ \t]*\r?\n?\Z"), re.compile(r"[ \t]*<!-- /anima:kept -->")
_DAY = r"(\d{4}-\d{2}-\d{2})"
_WAS = re.compile(rf"\s_\((?:{_DAY} to |until ){_DAY}; then: ", re.ASCII)
_HELD = re.compile(rf"\((?:since {_DAY}|(?:from {_DAY} )?until {_DAY})\)\Z", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A line that held on a date. With neither `since` nor `until` nobody wrote down when it began."""

    text: str
    path: str
    line: int
    since: date | None
    until: date | None


def is_point(line: str) -> bool:
    bullet = bullet_of(line)
    return bullet is not None and bullet.is_point and len(bullet.indent) <= 3 and bool(bullet.text)


def entities_in(text: str) -> tuple[str, ...]:
    """The entities a statement names, each once: `@Ana`, `[[Casa Azul]]`."""
    names = ((match[1] or match[2]).replace("_", " ").strip(" .-") for match in _ENTITY.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name))


def slug_of(name: str) -> str:
    """A name as part of a path: plain letters, safe on every file system, never empty."""
    slug = re.sub(r"[\W_]+", "-", plain(name)).strip("-")
    digest = hashlib.sha256(plain(name).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    if len(slug.encode("utf-8", "surrogatepass")) > 120:
        slug = f"{slug[:30]}-{digest}"
    try:
        return DocPath.parse(f"{FOLDER}/entities/{slug}.md").name.removesuffix(".md")
    except BadPath:
        return f"entity-{digest}"


def outside_blocks(text: str) -> str:
    """The text with the lines of managed blocks emptied, so that line numbers stay: what a person wrote."""
    lines = lines_of(text)
    for start, end in blocks_in(lines):
        lines[start:end] = ["\n"] * (end - start)
    return "".join(lines)


def blocks_in(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Each begin mark with the next end mark, when no other begin stands between: a lone mark owns nothing."""
    found, begun = list[tuple[int, int]](), -1
    for number, line in enumerate(lines):
        if _BEGIN.match(line):
            begun = number
        elif begun >= 0 and _END.match(line) and not line.strip().removeprefix(END):
            found.append((begun, number + 1))
            begun = -1
    return found


def facts_at(texts: Mapping[str, str], name: str, at: date) -> tuple[Fact, ...]:
    """What the lines that name it say of a date, dated ones first, the latest beginning first.

    A line ends `(since 2026-02-03)`, `(from 2026-01-03 until 2026-02-03)` or `(until 2026-02-03)`, or as dreaming puts
    it, `_(2026-01-03 to 2026-02-03; then: …)_` or `_(until 2026-02-03; then: …)_`; it holds from its first day to the
    day before its last, where its successor begins. A line without dates holds as far as anybody knows, except in
    `past.md`. What came after a fact is no part of it.
    """
    wanted = re.compile(rf"(?<!\w){re.escape(plain(name))}(?!\w)")
    found = []
    for path, text in texts.items():
        for number, line in enumerate(lines_of(text), start=1):
            if is_point(line) and wanted.search(plain(line)):
                fact = _fact(line, path, number)
                is_past = not (fact.since or fact.until) and path.rpartition("/")[2] == PAST
                holds = (fact.since or date.min) <= at and (fact.until is None or at < fact.until)
                if not is_past and holds and wanted.search(plain(fact.text)):
                    found.append(fact)
    found.sort(key=lambda f: (f.since is None and f.until is None, -(f.since or date.min).toordinal(), f.path, f.line))
    return tuple(found)


def _fact(line: str, path: str, number: int) -> Fact:
    text = without_tail(bullet_text(line))
    was = _WAS.search(text) if text.endswith(")_") else None
    at = was.start() if was else max(0, text.rfind("("))
    dated = was or _HELD.match(text, at)
    try:
        *begins, ends = dated.groups() if dated else (None,)
        days = (next(filter(None, begins), None), ends)
        since, until = (date.fromisoformat(day) if day else None for day in days)
    except ValueError:  # a day that no month has is no date; the line stays as it is
        return Fact(text=text, path=path, line=number, since=None, until=None)
    return Fact(text=text[:at].rstrip() if dated else text, path=path, line=number, since=since, until=until)


def plain(text: str) -> str:
    kept = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return " ".join(kept.split())
