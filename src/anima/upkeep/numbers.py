"""A home in figures: sessions, recalls, writes and memory, day by day.

Promise: everything is counted from transcripts, ledger and history; nothing is kept for it. Days are the user's.
Not here: how it is drawn (cli, web), what an agent may be told of it (sessions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import NamedTuple

from anima.errors import HomeError
from anima.memory.past import Past
from anima.model import DocPath, Nights
from anima.site import Site
from anima.text.markdown import bullet_of, lines_of

_REVISIONS = 2_000


class PastTalk(NamedTuple):
    """One session as far as it counts here; `started` is None where that is not known."""

    started: datetime | None
    entries: int
    persona: str | None


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


def figures(
    site: Site, *, past: Callable[[], Past], talks: Sequence[PastTalk], nights: Nights, days: int = 30
) -> Figures:
    zone, today = site.zone(), site.today()
    wanted = [today - timedelta(days=back) for back in reversed(range(max(1, days)))]
    begun = Counter(talk.started.astimezone(zone).date() for talk in talks if talk.started)
    recalls, writes = Counter[date](), Counter[date]()
    for record in site.store.ledger.records(kinds=("recall", "intent")) if site.store.begun else ():
        (recalls if record.kind == "recall" else writes)[record.time.astimezone(zone).date()] += 1
    grown = _grown(site, past, zone, wanted)
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
        sessions=len(talks),
        entries=sum(talk.entries for talk in talks),
        recalls=recalls.total(),
        writes=writes.total(),
        memories=grown[wanted[-1]][0],
        memory_chars=grown[wanted[-1]][1],
        personas=tuple(Counter(talk.persona for talk in talks if talk.persona).most_common()),
        dreams=nights,
    )


def _grown(site: Site, past: Callable[[], Past], zone: tzinfo | None, days: list[date]) -> dict[date, tuple[int, int]]:
    """The bullets and characters of MEMORY.md at the end of each day."""
    path, documents = DocPath.parse(site.layout.curated), site.store.documents
    marks = sorted(_sizes(past(), path, zone), key=lambda mark: mark[0]) if site.store.begun else []
    found: dict[date, tuple[int, int]] = {}
    now, at = (0, 0), 0
    for day in days:
        while at < len(marks) and marks[at][0].date() <= day:
            now, at = marks[at][1], at + 1
        found[day] = now
    found[days[-1]] = _size(documents.read(path).text) if documents.exists(path) else (0, 0)
    return found


def _sizes(past: Past, path: DocPath, zone: tzinfo | None) -> Iterator[tuple[datetime, tuple[int, int]]]:
    """How large the document was after each revision, as far as history holds it; the last one of each day counts."""
    seen: set[date] = set()
    try:
        for revision in past.log(path, limit=_REVISIONS):
            moment = revision.time.astimezone(zone)
            if moment.date() not in seen:
                seen.add(moment.date())
                yield moment, _size(past.text_at(path, revision.id) or "")
    except HomeError:
        return


def _size(text: str) -> tuple[int, int]:
    bullets = [bullet for line in lines_of(text) if (bullet := bullet_of(line))]
    return sum(bullet.is_point and bool(bullet.text) for bullet in bullets), len(text)
