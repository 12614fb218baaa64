"""Sessions: what was said, to whom and when; found by its words, and replayed page by page.

Promise: the owner sees every session of this agent's; what was said is shown inert, what tools answered is folded, and
what is damaged is said where it stood. A session that goes on is followed. Nothing is changed by looking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from starlette.requests import Request

from anima import time_of
from anima.errors import NoSuchSession, printable
from anima.web.draw import TURNS
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, asked_number, asked_scope, asked_text

ROWS, HITS = 40, 40
GOING_ON = timedelta(minutes=10)
# Records that are told between entries, by what the page calls them.
_BETWEEN = {
    "Boundary": "boundary",
    "Flush": "flush",
    "TrustState": "state",
    "Tombstone": "forgotten",
    "Close": "close",
}


def show(here: Served, request: Request) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "q": asked_text(request, "q"),
        "scope": asked_scope(request, unsaid=None),
        "start": asked_number(request, "start", default=0, least=0, most=1_000_000),
    }
    state_of = partial(_state, here.home.clock())
    talks, measures = here.home.sessions, here.home.upkeep.numbers
    given = {"wish": wish, "kept": talks.kept, "hits": None, "measures": measures, "state_of": state_of}
    if not talks.kept:
        return given
    if wish["q"]:
        found = talks.find(wish["q"], talks.owner(wish["scope"]), limit=HITS, max_chars=300)
        about = {hit.session_id: talks.get(hit.session_id) for hit in found.hits}
        return given | {"hits": found.hits, "notes": found.notes, "about": about}
    start = wish["start"]
    rows = talks.list(talks.owner(wish["scope"]), limit=start + ROWS)
    return given | {"rows": rows[start:], "total": rows.total, "size": ROWS}


def _state(now: datetime, row: Any) -> str:
    updated = time_of(row.updated_at)
    return "ended" if row.closed else "goes on" if updated and now - updated < GOING_ON else "left open"


def replay(here: Served, request: Request) -> dict[str, Any]:
    id, talks = str(request.path_params["id"]), here.home.sessions
    if not talks.kept or len(id) > 200:
        raise NoSuchSession("there is no such session", hint="the list of sessions shows those there are")
    row = talks.get(id, talks.owner())
    newest = max(0, (row.entries - 1) // TURNS * TURNS)
    start = asked_number(request, "start", default=0 if row.closed else newest, least=0, most=100_000_000)
    page = talks.read(id, talks.owner(), start=start, limit=TURNS, known=row)
    is_last = start + TURNS >= page.total
    return {
        "title": printable(row.summary, 80) or "A session",
        "row": row,
        "state": _state(here.home.clock(), row),
        "page": page,
        "start": start,
        "size": TURNS,
        "newest": newest,
        "items": list(_items(page, talks.marks(id, talks.owner()), start=start, is_last=is_last)),
        "taint": sorted(map(str, talks.doubts([id]))),
        "wrote": here.home.past.changes(session=id, limit=20),
        "end": min(start + TURNS, page.total),
    }


def _items(page: Any, records: Sequence[Any], *, start: int, is_last: bool) -> Iterator[tuple[str, Any]]:
    """Entries, what is damaged, and what happened between them, each with its kind, in order of their time and place."""
    turns, lost = page.entries, {each.entry: each for each in page.damaged if not each.torn}
    named = ((_BETWEEN.get(type(record).__name__), record) for record in records)
    waiting = [(kind, record) for kind, record in named if kind]
    if not turns and not lost and start:
        return
    if turns and turns[0].number != 0:
        waiting = [(kind, mark) for kind, mark in waiting if mark.timestamp >= turns[0].timestamp]
    for turn in turns:
        for number in [number for number in lost if number < turn.number]:
            yield "damage", lost.pop(number)
        while waiting and waiting[0][1].timestamp < turn.timestamp:
            yield waiting.pop(0)
        yield "turn", turn
    yield from (("damage", each) for each in lost.values())
    if is_last:
        yield from waiting
        yield from (("damage", each) for each in page.damaged if each.torn)


PAGE = WebPage(
    name="sessions",
    title="Sessions",
    order=50,
    key="t",
    views=(PageView(show=show), PageView(path="/{id}", template="session.html", show=replay)),
)
