"""Diffs and merges: what a change does to a text, and what two changes of one text come to, line by line.

Promise: a diff is computed from what will be written, never kept. Of a merge every line either side took out is gone,
every line either side put in is there; where both changed the same place in different ways there is no answer (None)
rather than a guess. Pure. Not here: diffs between revisions (store.git).
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import takewhile
from operator import eq

from anima.model import Change

MAX_LINES, FEW_LINES = 20_000, 1_000  # among more than a few, lines that stand there very often tie nothing together
_Hunk = tuple[int, int, tuple[str, ...]]  # lines start..end of the base become these


def unified(old: str, new: str, *, before: str = "a", after: str = "b") -> str:
    """The exact unified diff of two texts; empty where they are equal."""
    olds, news = (text.splitlines(keepends=True) for text in (old, new))
    lines = unified_diff(olds, news, fromfile=before, tofile=after, n=2)
    return "".join(line if line.endswith("\n") else line + "\n\\ no newline at the end\n" for line in lines)


def diff_of(changes: Sequence[Change], bases: Sequence[str | None], *, whole: bool = False) -> str:
    """The exact unified diff of a batch of changes against the texts that stand there, None for nothing. `whole`: of a
    document that moves all is shown, since it may say something else where it goes."""
    drawn = ""
    for change, base in zip(changes, bases, strict=True):
        new, name = change.after(base), change.path.text
        to = change.to.text if change.to else name
        before, after = f"a/{name}" if base is not None else "/dev/null", f"b/{to}" if new is not None else "/dev/null"
        old = "" if whole and change.to else base or ""
        drawn += unified(old, new or "", before=before, after=after) or f"--- a/{name}\n+++ b/{to}\n"
    return drawn


def merge(base: str, ours: str, theirs: str) -> str | None:
    """Both changes applied to the base, or None where they touch the same lines differently."""
    if base in (ours, theirs) or ours == theirs:
        return ours if theirs == base else theirs
    lines = base.splitlines(keepends=True)
    for back in (True, False) if len(lines) <= MAX_LINES else ():  # which of two like lines went may be told either way
        hunks = {
            hunk: None for other in (ours, theirs) for hunk in _hunks(lines, other.splitlines(keepends=True), back)
        }
        if (ordered := _ordered(sorted(hunks, key=lambda hunk: hunk[:2]))) is not None:
            for start, end, text in reversed(ordered):
                lines[start:end] = text
            return "".join(lines)
    return None


def _ordered(hunks: Sequence[_Hunk]) -> list[_Hunk] | None:
    """Those of both sides as they follow one another; None where two touch the same lines."""
    ordered: list[_Hunk] = []
    for hunk in hunks:
        start, end, text = ordered[-1] if ordered else (-1, -1, ())
        if start == end == hunk[0] == hunk[1]:
            ordered[-1] = (start, end, text + hunk[2])  # both only add at one place: keep both
        elif hunk[0] < end:
            return None
        else:
            ordered.append(hunk)
    return ordered


def _hunks(base: list[str], new: list[str], back: bool) -> list[_Hunk]:
    """What is the same at both ends is left out first, with `back` from the end first."""
    end = sum(takewhile(bool, map(eq, reversed(base), reversed(new)))) if back else 0
    at = sum(takewhile(bool, map(eq, base[: len(base) - end], new[: len(new) - end])))
    end = end or sum(takewhile(bool, map(eq, reversed(base[at:]), reversed(new[at:]))))
    old, new = base[at : len(base) - end], new[at : len(new) - end]
    steps = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > FEW_LINES).get_opcodes()
    return [(at + i1, at + i2, tuple(new[j1:j2])) for tag, i1, i2, j1, j2 in steps if tag != "equal"]
