"""Sights: what the parts of the scan see, before they become findings with line numbers; and the folded text they read.

Promise: `fold` maps each character on its own, so a place in the folded text can be traced back to the original.
Findings come out sorted, at most `MOST` of each kind, and the last of a kind says how many were left out: one kind in
great number cannot crowd out another. A pattern is compiled when first used. Not here: what counts as a finding.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from anima.model import Finding, Severity
from anima.text import INVISIBLE, may_hide, read_table


@cache
def _lookalikes() -> dict[str, str]:
    """Characters of other scripts that look like a Latin letter, with the letter."""
    table = read_table("gate/scan", "lookalikes")
    return {other: latin for latin, others in table.items() for other in others}


class _Folds(dict[int, str]):
    """A table for `str.translate` that works out each character once."""

    def __missing__(self, code: int) -> str:
        char, latin = chr(code), _lookalikes()
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        folded = "".join(latin.get(c, c) for c in plain if unicodedata.category(c) != "Mn")
        self[code] = "" if INVISIBLE.match(char) else latin.get(char, folded)
        return self[code]


_FOLDS = _Folds()


def fold(text: str) -> str:
    """The text without case, accents, look-alikes, styled letters and invisible characters."""
    return text.lower() if text.isascii() and not may_hide(text) else text.translate(_FOLDS)


class Origins:
    """Where the characters of a folded text stand in its original; worked out only where somebody asks."""

    _BLOCK = 2048

    def __init__(self, text: str, folded: str) -> None:
        self._text, self._same = text, text.isascii() and len(text) == len(folded)
        self._block_ends: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the folded text."""
        return (start, end) if self._same else (self._index(start), self._index(end - 1) + 1)

    def _index(self, place: int) -> int:
        """Which character of the original gave the folded character at this place."""
        if not self._block_ends:
            blocks = range(0, len(self._text), self._BLOCK)
            self._block_ends = list(accumulate(len(self._piece(at).translate(_FOLDS)) for at in blocks))
        block = bisect_right(self._block_ends, place)
        if block not in self._ends:
            self._ends[block] = list(accumulate(len(_FOLDS[ord(c)]) for c in self._piece(block * self._BLOCK)))
        before = self._block_ends[block - 1] if block else 0
        return block * self._BLOCK + bisect_right(self._ends[block], place - before)

    def _piece(self, at: int) -> str:
        return self._text[at : at + self._BLOCK]


MOST = 200


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Sighting(NamedTuple):
    start: int
    end: int
    kind: str
    severity: Severity
    shown: str
    message: str

    def moved(self, start: int, end: int, *, inside: str) -> Sighting:
        """The same sight, found in text that was decoded from another place."""
        return self._replace(start=start, end=end, message=f"{self.message} (in {inside})")


def findings(text: str, spans: Iterable[Sighting]) -> tuple[Finding, ...]:
    """The spans as findings, sorted by where they start."""
    by_kind: dict[str, list[Sighting]] = {}
    for span in spans:
        by_kind.setdefault(span.kind, []).append(span)
    kept: list[Sighting] = []
    for same in by_kind.values():
        if len(same) > MOST:  # the first and worst, and for the rest a line that counts them
            by_weight = sorted(same, key=lambda span: (-span.severity, span.start))
            same, rest = by_weight[: MOST - 1], by_weight[MOST - 1 :]
            message = f"{len(rest)} further findings of this kind are not listed"
            same += [min(rest)._replace(severity=rest[0].severity, shown=f"{len(rest)} more", message=message)]
        kept += same
    return tuple(_with_lines(text, sorted(kept)))


def _with_lines(text: str, spans: list[Sighting]) -> Iterable[Finding]:
    line, at = 1, 0
    for span in spans:
        line, at = line + text.count("\n", at, span.start), max(at, span.start)
        yield Finding(
            kind=span.kind,
            severity=span.severity,
            start=span.start,
            end=span.end,
            line=line,
            shown=span.shown,
            message=span.message,
            last=line + text.count("\n", span.start, max(span.start, span.end - 1)),
        )
