"""A line's past: which versions of its document wrote it, changed it, or left it alone.

Promise: versions in, steps out, nothing read or written; a line is followed as long as it can be told which one it was,
and where it cannot the last step says so. Not here: where versions come from (pages.memory), who wrote a line
(provenance).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from anima.text.markdown import lines_of

MOST_LINES = 2_000  # of the part that differs; beyond, two versions are not compared
ALIKE = 0.3  # the share of words two lines have in common before one counts as the other, changed
_WORD = re.compile(r"\w+")

What = Literal["changed", "written", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One version that touched the line: `changed` it, first had it (`written`), or is as far as it can be followed."""

    revision: str
    what: What
    before: str | None
    after: str


def line_steps(versions: Iterable[tuple[str, str | None]], line: int) -> Iterator[Step]:
    """The steps of a line (from 1) of the first version given; versions come newest first. None: it was not there."""
    found = iter(versions)
    revision, text = next(found, ("", None))
    newer, at = _lines(text), line - 1
    if not 0 <= at < len(newer):
        return
    for older_revision, older_text in found:
        older = _lines(older_text)
        place = _place_before(older, newer, at)
        if place is None:
            what: What = "lost" if newer[at].strip() and newer[at] in older else "written"
            yield Step(revision=revision, what=what, before=None, after=newer[at])
            return
        if older[place] != newer[at]:
            yield Step(revision=revision, what="changed", before=older[place], after=newer[at])
        revision, newer, at = older_revision, older, place
    yield Step(revision=revision, what="written", before=None, after=newer[at])


def _lines(text: str | None) -> list[str]:
    return [line.rstrip("\r\n") for line in lines_of(text or "")]


def _place_before(older: Sequence[str], newer: Sequence[str], at: int) -> int | None:
    """Where a line of the newer version stood in the older one; None when it did not."""
    head, tail = _common(older, newer)
    if at < head:
        return at
    if at >= len(newer) - tail:
        return at - len(newer) + len(older)
    old, new = older[head : len(older) - tail], newer[head : len(newer) - tail]
    if len(old) > MOST_LINES or len(new) > MOST_LINES:
        return None
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if j1 <= at - head < j2:
            return _counterpart(tag, old, head, i1, i2, newer[at], at - head - j1)
    return None


def _counterpart(tag: str, old: Sequence[str], head: int, i1: int, i2: int, line: str, into: int) -> int | None:
    if tag == "equal":
        return head + i1 + into
    if tag != "replace":
        return None
    share, _, place = max((_alike(old[i], line), -abs(i - i1 - into), i) for i in range(i1, i2))
    return head + place if share >= ALIKE else None


def _alike(one: str, other: str) -> float:
    words, more = set(_WORD.findall(one.casefold())), set(_WORD.findall(other.casefold()))
    return len(words & more) / len(words | more) if words | more else float(one.strip() == other.strip())


def _common(older: Sequence[str], newer: Sequence[str]) -> tuple[int, int]:
    """How many lines two versions share at their beginning, and then at their end."""
    most = min(len(older), len(newer))
    head = next((n for n in range(most) if older[n] != newer[n]), most)
    tail = next((n for n in range(most - head) if older[-1 - n] != newer[-1 - n]), most - head)
    return head, tail
