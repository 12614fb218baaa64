"""Sessions: what was said, to whom and when; found by its words, and replayed page by page.

Promise: the owner sees every session of this agent's; what was said is shown inert, what tools answered is folded, and
what is damaged is said where it stood. A session that goes on is followed. Nothing is changed by looking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from anima.errors import NoSuchSession, printable
from anima.home import Home
from anima.sessions.listing import Listed
from anima.sessions.replay import Boundary, Close, Damage, Flush, Forgotten, Header, Record, State, Turn, time_of
from anima.text.words import ask
from anima.upkeep.numbers import figures
from anima.web import query
from anima.web.draw import pieces_of
from anima.web.pages import Page, View
from anima.web.served import Served

ROWS, TURNS, HITS = 40, 50, 40
SHOWN = 20_000  # characters of one entry
FOLDED = 1_500  # a system's text longer than this is folded, as a tool's always is
GOING_ON = timedelta(minutes=10)
_WHO = {"user": "User", "assistant": "Agent", "tool": "Tool", "system": "System"}


def place_of(id: str, entry: int) -> str:
    """The address of one entry of a session."""
    return f"/sessions/{quote(id, safe='')}?start={entry - entry % TURNS}#e{entry}"


# -- the list ----------------------------------------------------------------------------------------------------------------


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    wish = {
        "q": query.text(request, "q"),
        "scope": query.scope(request, unsaid=None),
        "start": query.number(request, "start", default=0, least=0, most=1_000_000),
    }
    given = {
        "wish": wish,
        "scopes": query.SCOPES,
        "kept": bool(home.config.sessions.dir),
        "rows": [],
        "hits": None,
        "total": 0,
        "end": 0,
        "notes": (),
        "measures": lambda: figures(home),
        "size": ROWS,
    }
    if not given["kept"]:
        return given
    return given | (_found(home, wish) if wish["q"] else _listed(home, wish))


def _listed(home: Home, wish: dict[str, Any]) -> dict[str, Any]:
    talks = home.transcripts
    scopes = frozenset({str(wish["scope"])}) if wish["scope"] else None
    every = talks.rows(replace(talks.owner(), scopes=scopes))
    rows = [_row(home, row) for row in every[wish["start"] : wish["start"] + ROWS]]
    return {"rows": rows, "total": len(every), "end": wish["start"] + len(rows)}


def _row(home: Home, row: Listed) -> dict[str, Any]:
    updated, started = time_of(row.updated_at), time_of(row.started_at)
    return {"row": row, "updated": updated, "started": started, "state": _state(row, updated, home.clock())}


def _state(row: Listed, updated: datetime | None, now: datetime) -> str:
    if row.closed:
        return "ended"
    return "goes on" if updated and now - updated < GOING_ON else "left open"


def _found(home: Home, wish: dict[str, Any]) -> dict[str, Any]:
    """Entries that hold the words, each with the session it is of."""
    talks, stems = home.transcripts, frozenset(ask(wish["q"]))
    scopes = frozenset({str(wish["scope"])}) if wish["scope"] else None
    found = talks.search(wish["q"], replace(talks.owner(), scopes=scopes), limit=HITS, max_chars=300)
    about = {id: talks.listing.get(id) for id in {hit.session_id for hit in found.hits}}
    hits = [
        {
            "hit": hit,
            "time": time_of(hit.timestamp),
            "who": _WHO.get(hit.role, hit.role),
            "about": about[hit.session_id],
            "pieces": list(pieces_of(hit.preview, stems)),
            "place": place_of(hit.session_id, hit.entry),
        }
        for hit in found.hits
    ]
    return {"hits": hits, "notes": found.notes}


# -- one session -------------------------------------------------------------------------------------------------------------


def replay(here: Served, request: Request) -> dict[str, Any]:
    home, id = here.home, str(request.path_params["id"])
    if not home.config.sessions.dir or len(id) > 200:
        raise NoSuchSession("there is no such session", hint="the list of sessions shows those there are")
    talks = home.transcripts
    row = talks.get(id, talks.owner())
    about = _row(home, row)
    newest = max(0, (row.entries - 1) // TURNS * TURNS)
    unsaid = 0 if row.closed else newest
    start = query.number(request, "start", default=unsaid, least=0, most=100_000_000)
    page = talks.read(id, talks.owner(), start=start, limit=TURNS, known=row)
    marks = talks.marks(id, talks.owner())
    return {
        **about,
        "title": printable(row.summary, 80) or "A session",
        "page": page,
        "start": start,
        "size": TURNS,
        "newest": newest,
        "items": list(_items(page.entries, page.damaged, marks, start=start, is_last=start + TURNS >= page.total)),
        "taint": sorted(map(str, talks.doubts([id]))),
        "manifest": _manifest(page.header),
        "wrote": _wrote(home, id),
        "damaged": sum(not each.torn for each in page.damaged),
        "end": min(start + TURNS, page.total),
    }


def _manifest(header: Header | None) -> list[dict[str, str]]:
    """What the prompt was made of, as far as the header says; another program's header may say anything."""
    keys = ("path", "role", "status", "chars_shown", "reason")
    rows = header.manifest if header else ()
    return [{key: str(row.get(key) or "") for key in keys} for row in rows if isinstance(row, Mapping)]


def _wrote(home: Home, id: str) -> list[Any]:
    return home.keeping.changes(session=id, limit=20) if home.books.begun else []


def _items(
    turns: Sequence[Turn], damaged: Sequence[Damage], marks: Sequence[Record], *, start: int, is_last: bool
) -> Iterator[dict[str, Any]]:
    """Entries, what is damaged, and what happened between them, in order of their time and place."""
    lost = {each.entry: each for each in damaged if not each.torn}
    waiting = [mark for mark in marks if isinstance(mark, Boundary | Flush | State | Forgotten | Close)]
    if not turns and not lost and start:
        return
    if turns:
        waiting = [mark for mark in waiting if mark.timestamp >= turns[0].timestamp or turns[0].number == 0]
    for turn in turns:
        for number in [number for number in lost if number < turn.number]:
            yield _lost(lost.pop(number))
        while waiting and waiting[0].timestamp < turn.timestamp:
            yield _mark(waiting.pop(0))
        yield _turn(turn)
    yield from map(_lost, lost.values())
    if is_last:
        yield from map(_mark, waiting)
        yield from (_lost(each) for each in damaged if each.torn)


def _lost(damage: Damage) -> dict[str, Any]:
    return {"kind": "damage", "id": f"d{damage.line}", "line": damage.line, "why": damage.why, "torn": damage.torn}


def _turn(turn: Turn) -> dict[str, Any]:
    text = turn.content
    fold = turn.role == "tool" or (turn.role == "system" and len(text) > FOLDED)
    return {
        "kind": "turn",
        "id": f"e{turn.number}",
        "turn": turn,
        "who": _WHO.get(turn.role, turn.role),
        "time": turn.time,
        "text": text[:SHOWN],
        "cut": max(0, len(text) - SHOWN),
        "fold": fold,
        "first": _first(text),
        "role": turn.role if turn.role in _WHO else "other",
    }


def _first(text: str) -> str:
    line = text[:400].strip().partition("\n")[0]
    return line[:90] + ("…" if len(line) > 90 or len(text.strip()) > len(line) else "")


def _mark(mark: Record) -> dict[str, Any]:
    assert isinstance(mark, Boundary | Flush | State | Forgotten | Close)
    said, more = _sentence(mark)
    return {
        "kind": "mark",
        "id": f"m-{type(mark).__name__.lower()}-{mark.timestamp}",
        "said": said,
        "more": more,
        "time": time_of(mark.timestamp),
    }


def _sentence(mark: Boundary | Flush | State | Forgotten | Close) -> tuple[str, str]:
    match mark:
        case Boundary():
            return f"The context was shortened here; it held {mark.token_count:,} tokens.", mark.summary or ""
        case Flush():
            return "What was worth keeping was written down.", ""
        case State():
            what = ", ".join(sorted(mark.taint))
            return (f"Untrusted text came in: {what}." if what else "You vouched for what was read."), ""
        case Forgotten():
            return f"Here stood {mark.entries:,} entries that were forgotten.", ""
        case Close():
            return "The session ended.", mark.reason


PAGE = Page(
    name="sessions",
    title="Sessions",
    order=50,
    key="t",
    views=(View(show=show), View(path="/{id}", template="session.html", show=replay)),
)
