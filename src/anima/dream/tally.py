"""Tallies: what recalls say of each line, a view of the ledger's `recall` records.

Promise: folded record by record, so that a night costs what is new since the last; only searches of the owner's own main
sessions count; the same question on the same day counts once. A hit is strong when it came first, or nearly as high as
the first. Pure. Not here: which line a digest belongs to (sweeps), what a tally is worth (score).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

STRONG = 0.85  # of the best hit's score
FIRST = 1


class Noted(Protocol):
    """A record of the ledger."""

    @property
    def n(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


@dataclass(slots=True)
class Tally:
    """Of one line: every hit, and apart from that the strong ones by question and day."""

    hits: int = 0
    strong: set[tuple[str, str]] = field(default_factory=set)  # (day, question)
    questions: set[str] = field(default_factory=set)  # of any hit
    days: set[str] = field(default_factory=set)
    ranked: float = 0.0  # sum of 1 / rank
    scored: float = 0.0  # sum of the hits' own scores
    relative: float = 0.0  # sum of shares of the best hit's score
    first: str = ""
    last: str = ""

    def add(self, *, day: str, question: str, rank: int, score: float, relative: float) -> None:
        self.hits += 1
        self.questions.add(question)
        self.days.add(day)
        self.ranked += 1 / max(1, rank)
        self.scored += score
        self.relative += relative
        self.first = min(self.first or day, day)
        self.last = max(self.last, day)
        if rank == FIRST or relative >= STRONG:
            self.strong.add((day, question))

    def join(self, other: Tally) -> None:
        """Takes another line's tally in: two lines that say the same share their recalls."""
        self.hits += other.hits
        self.strong |= other.strong
        self.questions |= other.questions
        self.days |= other.days
        self.ranked += other.ranked
        self.scored += other.scored
        self.relative += other.relative
        self.first = min(self.first or other.first, other.first or self.first)
        self.last = max(self.last, other.last)

    @property
    def strong_days(self) -> set[str]:
        return {day for day, _ in self.strong}

    @property
    def strong_questions(self) -> set[str]:
        return {question for _, question in self.strong}


class Tallies:
    """The folded view. `through` is the number of the last record in it."""

    def __init__(self) -> None:
        self.through = 0
        self.recalls = 0
        self._lines: dict[tuple[str, str], Tally] = {}
        self.by_day: dict[str, int] = {}

    def fold(self, records: Iterable[Noted]) -> int:
        """Takes records in; gives how many recalls were among them."""
        before = self.recalls
        for record in records:
            self.through = record.n
            if record.kind == "recall" and record.fields.get("scope") == "main" and not record.fields.get("layer"):
                self._recall(record.fields)
        return self.recalls - before

    def _recall(self, fields: Mapping[str, Any]) -> None:
        day, question, hits = str(fields.get("day", "")), str(fields.get("query", "")), fields.get("hits") or ()
        best = max((float(hit.get("score", 0)) for hit in hits), default=0.0)
        self.recalls += 1
        self.by_day[day] = self.by_day.get(day, 0) + 1
        for hit in hits:
            score = float(hit.get("score", 0))
            share = score / best if best > 0 else 0.0
            path, rank = str(hit.get("path", "")), int(hit.get("rank", 99))
            for digest in hit.get("lines", ())[:4]:
                tally = self._lines.setdefault((path, digest), Tally())
                tally.add(day=day, question=question, rank=rank, score=score, relative=share)

    def of(self, path: str, digest: str) -> Tally | None:
        return self._lines.get((path, digest))

    def __len__(self) -> int:
        return len(self._lines)
