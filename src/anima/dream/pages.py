"""The pages dreaming writes: MEMORY.md's dreamed sections, what is past, what was moved out. Text in, text out.

Promise: only machine-written lines that are named go, each exact to the byte; every other byte of the owner's page stays;
a heading of ours that stands over nothing goes too. Not here: which lines (planning), writing (sweeps).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from anima.text.markdown import bullet_text, ended, lines_of, newline_of

HEADING = re.compile(r"## Dreamed (?:until )?(\d{4}-\d\d-\d\d)(?: \d\d:\d\d)? UTC\s*\Z")
_ANY_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|\Z)")
_EVIDENCE = re.compile(r"\s*_\(score=[^()]{1,80}\)_\s*\Z")
_SINCE = re.compile(r"\s*\(since (\d{4}-\d\d-\d\d)\)\s*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?=\S)")
_TIME = re.compile(r"\A(?:\[\d{1,2}:\d{2}(?::\d{2})?\]|\d{1,2}:\d{2}(?::\d{2})?\s+[-–—|])\s*")
PAST = (
    "# What was so\n\nFacts that were replaced by newer ones, with the days from which and until which they held.\n\n"
)
MOVED = (
    "# Remembered, and moved out of MEMORY.md\n\n"
    "Lines of dreams that were asked for least when memory was full, or that turned out to be routine.\n\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One note of a log: its first line's number, its lines, and all its words on one line."""

    line: int
    raws: tuple[str, ...]
    text: str


def items(markdown: str) -> list[Item]:
    """The notes of a log, one for each bullet (with what hangs below it) or plain line; no headings, code or comments."""
    found: list[Item] = []
    fence = ""
    for number, line in enumerate(lines_of(markdown), start=1):
        mark = _FENCE.match(line)
        if fence or mark:
            fence = "" if mark and mark[1].startswith(fence or "\0") else fence or (mark[1] if mark else "")
            continue
        raw = line.rstrip("\r\n")
        bare = raw.strip()
        if not bare or _ANY_HEADING.match(raw) or bare.startswith("<!--"):
            continue
        if raw[:1].isspace() and not _ITEM.match(raw) and found and len(found[-1].raws) < 40:
            last = found[-1]
            found[-1] = Item(line=last.line, raws=(*last.raws, raw), text=f"{last.text} {bare}")
        else:
            found.append(Item(line=number, raws=(raw,), text=_TIME.sub("", bullet_text(raw))))
    return found


def fact_of(line: str) -> tuple[str, date | None]:
    """What a line of MEMORY.md says, without its evidence, and since when it is said to be so."""
    text = _EVIDENCE.sub("", bullet_text(line))
    if found := _SINCE.search(text):
        return text[: found.start()], date.fromisoformat(found[1])
    return text, None


def bullet(fact: str, *, since: date | None, score: float, hits: int, days: int) -> str:
    told = f" (since {since})" if since else ""
    return f"- {fact}{told} _(score={score:.2f}, hits={hits}, days={days})_"


def heading(now: datetime) -> str:
    return f"## Dreamed {now:%Y-%m-%d %H:%M} UTC"


def dreamed_on(markdown: str) -> dict[int, date]:
    """For each line number under a dreamed heading, the night's date."""
    found: dict[int, date] = {}
    night: date | None = None
    for number, line in enumerate(lines_of(markdown), start=1):
        if _ANY_HEADING.match(line):
            mark = HEADING.match(line.rstrip())
            night = date.fromisoformat(mark[1]) if mark else None
        elif night is not None:
            found[number] = night
    return found


def without(markdown: str, numbers: Collection[int]) -> str:
    """The page without some of its lines, and without headings of ours that stand over nothing then."""
    lines = [line for n, line in enumerate(lines_of(markdown), start=1) if n not in numbers]
    return "".join(_without_empty(lines))


def _without_empty(lines: Sequence[str]) -> Iterable[str]:
    kept: list[str] = []
    waiting: list[str] = []  # a heading of ours and the blank lines below it
    for line in lines:
        if waiting and line.strip():
            if not _ANY_HEADING.match(line):
                kept += waiting
            waiting = []
        if HEADING.match(line.rstrip()):
            waiting = [line]
        elif waiting:
            waiting.append(line)
        else:
            kept.append(line)
    return kept


def with_section(markdown: str, title: str, bullets: Sequence[str]) -> str:
    """The page with one more section at its end."""
    if not bullets:
        return markdown
    newline = newline_of(markdown)
    page = ended(markdown) if markdown.strip() else f"# Memory{newline}"
    gap = "" if page.endswith(newline * 2) else newline
    return page + gap + newline.join([title, "", *bullets]) + newline


def folded(markdown: str) -> str:
    """The page with all dreamed sections but the newest in one: fewer headings, the same lines."""
    lines = lines_of(markdown)
    places = [n for n, line in enumerate(lines) if HEADING.match(line.rstrip())]
    if len(places) < 3:
        return markdown
    ends = [next((m for m in range(n + 1, len(lines)) if _ANY_HEADING.match(lines[m])), len(lines)) for n in places]
    newline, old = newline_of(markdown), list(zip(places, ends, strict=True))[:-1]
    until = max(m[1] for n, _ in old if (m := HEADING.match(lines[n].rstrip())))
    body = [line for start, end in old for line in lines[start + 1 : end] if line.strip()]
    inside = {n for start, end in old for n in range(start, end)}
    merged = [f"## Dreamed until {until} UTC{newline}", newline, *(ended(line) for line in body), newline]
    first = old[0][0]
    out: list[str] = []
    for n, line in enumerate(lines):
        out += merged if n == first else [] if n in inside else [line]
    return "".join(out)


def past_line(fact: str, *, since: date | None, until: date, by: str) -> str:
    start = f"{since} to " if since else "until "
    return f"- {fact} _({start}{until}; then: {by})_"


def moved_line(fact: str, *, on: date, hits: int) -> str:
    return f"- {fact} _(moved here on {on}, hits={hits})_"
