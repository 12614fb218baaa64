"""Search: hits while you type, each with its lines, and on request what its score is made of.

Promise: it finds what the chosen listener would find, and notes no recall: only an agent's own search counts. When
nothing is found it says why, and what another choice would have found. Text of documents is shown inert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from anima.home import Home
from anima.model import Scope
from anima.search.rank import WEIGHTS, Answer, Hit
from anima.sessions.replay import time_of
from anima.text.words import ask
from anima.web import query
from anima.web.draw import pieces_of
from anima.web.pages import Page, View
from anima.web.pages.sessions import place_of
from anima.web.served import Served

FEW, MANY = 10, 40
SHOWN = 1_200  # characters of a hit
DAYS = (7, 30, 90, 365)
_PARTS = {
    "words": "its own words",
    "meaning": "its meaning",
    "window_words": "words of the lines around it",
    "window_meaning": "meaning of the lines around it",
    "file_words": "words of its file",
    "speaker": "who speaks in it",
    "first_person": "it is in the first person",
    "date": "its date",
}


def show(here: Served, request: Request) -> dict[str, Any]:
    wish = _wish(request)
    given: dict[str, Any] = {
        "title": "Search",
        "wish": wish,
        "scopes": query.SCOPES,
        "spans": DAYS,
        "hits": [],
        "talks": None,
        "notes": [],
        "instead": [],
        "more": False,
        "address": partial(_address, wish),
        "listens": dict(query.SCOPES)[str(wish["scope"])],
    }
    if not wish["q"]:
        return given
    answer = _search(here.home, wish, limit=wish["limit"] + 1)
    hits = [_shown(hit, wish) for hit in answer.hits[: wish["limit"]]]
    more = len(answer) > wish["limit"] and wish["limit"] < MANY
    given |= {
        "hits": hits,
        "notes": answer.notes,
        "more": more,
        "talks": _talks(here.home, wish) if wish["talks"] else None,
        "instead": [] if hits else list(_instead(here.home, wish)),
    }
    return given


def _wish(request: Request) -> dict[str, Any]:
    return {
        "q": query.text(request, "q"),
        "scope": query.scope(request, unsaid=Scope.MAIN),
        "days": query.number(request, "days", default=0, least=0, most=100_000),
        "limit": query.number(request, "limit", default=FEW, least=1, most=MANY),
        "explain": query.ticked(request, "explain"),
        "talks": query.ticked(request, "talks"),
    }


def _address(wish: dict[str, Any], **other: Any) -> str:
    """The address of the same search, with something else about it."""
    fields = {name: int(value) if isinstance(value, bool) else value for name, value in (wish | other).items()}
    return "/search?" + urlencode({name: value for name, value in fields.items() if value})


def _search(home: Home, wish: dict[str, Any], *, limit: int, **other: Any) -> Answer:
    asked_for = {"scope": wish["scope"], "since": _since(home, wish["days"]), "explain": wish["explain"], **other}
    return home.search(wish["q"], limit=limit, **asked_for)


def _since(home: Home, days: int) -> date | None:
    return home.reading.today() - timedelta(days=days - 1) if days else None


def _instead(home: Home, wish: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What other choices would have found: in the order in which they are the likelier reason."""
    if wish["days"] and (found := _search(home, wish, limit=MANY, since=None)):
        yield {"found": len(found), "most": MANY, "how": "of any day", "change": {"days": ""}}
    if wish["scope"] is not Scope.MAIN and (found := _search(home, wish, limit=MANY, scope=Scope.MAIN)):
        yield {"found": len(found), "most": MANY, "how": "when you ask alone", "change": {"scope": "main"}}
    if found := _search(home, wish, limit=MANY, trusted_only=False):
        paths = sorted({hit.path.text for hit in found})
        yield {"found": len(found), "most": MANY, "how": "that nobody has vouched for yet", "paths": paths[:5]}


def _shown(hit: Hit, wish: dict[str, Any]) -> dict[str, Any]:
    text = hit.text.strip("\n")
    pieces = list(pieces_of(text[:SHOWN], frozenset(ask(wish["q"]))))
    return {"hit": hit, "pieces": pieces, "cut": len(text) > SHOWN, "why": _why(hit)}


def _why(hit: Hit) -> list[dict[str, Any]]:
    """The parts of a score, the largest first, each against the most it can be."""
    if not hit.why:
        return []
    largest = max([*hit.why.values(), 1e-9])
    return [
        {
            "name": _PARTS.get(name, name),
            "value": value,
            "most": WEIGHTS.get(name, largest),
            "width": round(100 * value / largest, 1),
        }
        for name, value in sorted(hit.why.items(), key=lambda part: -part[1])
        if value > 0.0005
    ]


def _talks(home: Home, wish: dict[str, Any]) -> dict[str, Any]:
    """What was said in sessions, as the chosen listener may search it."""
    if not home.config.sessions.dir:
        return {"hits": [], "notes": ["No transcripts are kept here: sessions.dir in anima.toml is empty."]}
    if wish["scope"] is not Scope.MAIN:
        return {"hits": [], "notes": ["Only you, alone, may search what was said in sessions."]}
    talks = home.transcripts
    found = talks.search(wish["q"], talks.owner(), limit=20, max_chars=300)
    return {"hits": _said(found.hits, wish, _since(home, wish["days"])), "notes": found.notes}


def _said(hits: Sequence[Any], wish: dict[str, Any], since: date | None) -> list[dict[str, Any]]:
    stems = frozenset(ask(wish["q"]))
    rows = [(hit, time_of(hit.timestamp)) for hit in hits]
    return [
        {
            "hit": hit,
            "time": moment,
            "pieces": list(pieces_of(hit.preview, stems)),
            "place": place_of(hit.session_id, hit.entry),
        }
        for hit, moment in rows
        if since is None or _is_since(moment, since)
    ]


def _is_since(moment: datetime | None, since: date) -> bool:
    return moment is not None and moment.date() >= since


PAGE = Page(name="search", title="Search", order=40, key="f", views=(View(show=show),))
