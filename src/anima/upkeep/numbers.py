"""A home in figures: sessions, recalls, writes and memory, day by day.

Promise: everything is counted from transcripts, ledger and history; nothing is kept for it. Days are the user's.
Not here: how it is drawn (cli, web), what an agent may be told of it (knowing).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from anima.errors import HomeError
from anima.model import DocPath, Nights
from anima.sessions.replay import time_of
from anima.text.markdown import bullet_of, lines_of

if TYPE_CHECKING:
    from anima.home import Home

_REVISIONS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: sessions begun, recalls, changes written, and the bullets of MEMORY.md at its end."""

    day: date
    sessions: int
    recalls: int
    writes: int
    memories: int
    memory_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The days, oldest first, and what they come to. Totals are of all time."""

    days: tuple[Day, ...]
    sessions: int
    entries: int
    recalls: int
    writes: int
    memories: int
    memory_chars: int
    personas: tuple[tuple[str, int], ...]
    dreams: Nights


def figures(home: Home, *, days: int = 30) -> Figures:
    zone, today = home.site.zone(), home.site.today()
    wanted = [today - timedelta(days=back) for back in reversed(range(max(1, days)))]
    rows = list(home.transcripts.rows(home.transcripts.owner())) if home.config.sessions.dir else []
    begun = Counter(moment.astimezone(zone).date() for row in rows if (moment := time_of(row.started_at)))
    recalls, writes = _counted(home, zone)
    grown = _grown(home, zone, wanted)
    return Figures(
        days=tuple(
            Day(
                day=day,
                sessions=begun[day],
                recalls=recalls[day],
                writes=writes[day],
                memories=grown[day][0],
                memory_chars=grown[day][1],
            )
            for day in wanted
        ),
        sessions=len(rows),
        entries=sum(row.entries for row in rows),
        recalls=recalls.total(),
        writes=writes.total(),
        memories=grown[wanted[-1]][0],
        memory_chars=grown[wanted[-1]][1],
        personas=tuple(Counter(row.persona for row in rows if row.persona).most_common()),
        dreams=home.dreams.nights(),
    )


def _counted(home: Home, zone: tzinfo | None) -> tuple[Counter[date], Counter[date]]:
    """Recalls and changes a day."""
    recalls: Counter[date] = Counter()
    writes: Counter[date] = Counter()
    if home.books.begun:
        for record in home.books.ledger.records(kinds=("recall", "intent")):
            (recalls if record.kind == "recall" else writes)[record.time.astimezone(zone).date()] += 1
    return recalls, writes


def _grown(home: Home, zone: tzinfo | None, days: list[date]) -> dict[date, tuple[int, int]]:
    """The bullets and characters of MEMORY.md at the end of each day."""
    path = DocPath.parse(home.layout.curated)
    marks = sorted(_sizes(home, path, zone), key=lambda mark: mark[0])
    found: dict[date, tuple[int, int]] = {}
    now, at = (0, 0), 0
    for day in days:
        while at < len(marks) and marks[at][0].date() <= day:
            now, at = marks[at][1], at + 1
        found[day] = now
    found[days[-1]] = _size(home.read(path).text) if home.exists(path) else (0, 0)
    return found


def _sizes(home: Home, path: DocPath, zone: tzinfo | None) -> Iterator[tuple[datetime, tuple[int, int]]]:
    """How large the document was after each revision, as far as history holds it; the last one of each day counts."""
    seen: set[date] = set()
    try:
        for revision in home.past.log(path, limit=_REVISIONS) if home.books.begun else ():
            moment = revision.time.astimezone(zone)
            if moment.date() not in seen:
                seen.add(moment.date())
                yield moment, _size(home.past.text_at(path, revision.id) or "")
    except HomeError:
        return


def _size(text: str) -> tuple[int, int]:
    bullets = [bullet for line in lines_of(text) if (bullet := bullet_of(line))]
    return sum(bullet.is_point and bool(bullet.text) for bullet in bullets), len(text)
