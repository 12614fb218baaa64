"""Spans: what the parts of the scan see, before they become findings with line numbers; and the patterns they see with.

Promise: findings come out sorted, at most `MOST` of each kind, and the last of a kind says how many were left out. One
kind in great number cannot crowd out another. A pattern is compiled when first used: most texts never need most of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from anima.model import Finding, Severity

MOST = 200


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Span(NamedTuple):
    start: int
    end: int
    kind: str
    severity: Severity
    shown: str
    message: str

    def moved(self, start: int, end: int, *, inside: str) -> Span:
        """The same sight, found in text that was decoded from another place."""
        return self._replace(start=start, end=end, message=f"{self.message} (in {inside})")


def findings(text: str, spans: Iterable[Span]) -> tuple[Finding, ...]:
    """The spans as findings, sorted by where they start."""
    by_kind: dict[str, list[Span]] = {}
    for span in spans:
        by_kind.setdefault(span.kind, []).append(span)
    kept = (each for same in by_kind.values() for each in _first_of(same))
    return tuple(_with_lines(text, sorted(kept)))


def _first_of(same: list[Span]) -> list[Span]:
    """The first and worst of one kind, and for the rest a line that counts them."""
    if len(same) <= MOST:
        return same
    by_weight = sorted(same, key=lambda span: (-span.severity, span.start))
    rest = by_weight[MOST - 1 :]
    message = f"{len(rest)} further findings of this kind are not listed"
    count = min(rest)._replace(severity=rest[0].severity, shown=f"{len(rest)} more", message=message)
    return [*by_weight[: MOST - 1], count]


def _with_lines(text: str, spans: list[Span]) -> Iterable[Finding]:
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
        )
