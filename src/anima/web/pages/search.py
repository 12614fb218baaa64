"""Search: hits while you type, each with its lines, and on request what its score is made of.

Promise: it finds what the chosen listener would find, and notes no recall: only an agent's own search counts. When
nothing is found it says why, and what another choice would have found. Text of documents is shown inert.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from anima import Scope, time_of
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, asked_number, asked_scope, asked_text, is_ticked

FEW, MANY = 10, 40
TALKS = 20  # entries of sessions
DAYS = (7, 30, 90, 365)


def show(here: Served, request: Request) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "q": asked_text(request, "q"),
        "scope": asked_scope(request, unsaid=Scope.MAIN),
        "days": asked_number(request, "days", default=0, least=0, most=100_000),
        "limit": asked_number(request, "limit", default=FEW, least=1, most=MANY),
        "explain": is_ticked(request, "explain"),
        "talks": is_ticked(request, "talks"),
    }
    given: dict[str, Any] = {"wish": wish, "spans": DAYS, "address": partial(_address, wish)}
    if not wish["q"]:
        return given
    since = here.home.site.today() - timedelta(days=wish["days"] - 1) if wish["days"] else None
    search = partial(here.home.search, wish["q"], explain=wish["explain"])
    answer = search(scope=wish["scope"], since=since, limit=wish["limit"] + 1)
    return given | {
        "hits": answer.hits[: wish["limit"]],
        "notes": answer.notes,
        "more": len(answer) > wish["limit"] and wish["limit"] < MANY,
        "talks": _talks(here, wish, since) if wish["talks"] else None,
        "instead": [] if answer else list(_instead(partial(search, limit=MANY), wish, since)),
    }


def _address(wish: dict[str, Any], **other: Any) -> str:
    """The address of the same search, with something else about it."""
    fields = {name: int(value) if isinstance(value, bool) else value for name, value in (wish | other).items()}
    return "/search?" + urlencode({name: value for name, value in fields.items() if value})


def _instead(search: Any, wish: dict[str, Any], since: date | None) -> Iterator[dict[str, Any]]:
    """What other choices would have found: in the order in which they are the likelier reason."""
    scope = wish["scope"]
    if since and (found := search(scope=scope)):
        yield {"found": len(found), "most": MANY, "how": "of any day", "change": {"days": ""}}
    if scope is not Scope.MAIN and (found := search(scope=Scope.MAIN, since=since)):
        yield {"found": len(found), "most": MANY, "how": "when you ask alone", "change": {"scope": "main"}}
    if found := search(scope=scope, since=since, trusted_only=False):
        paths = sorted({hit.path.text for hit in found})
        yield {"found": len(found), "most": MANY, "how": "that nobody reviewed yet", "paths": paths[:5]}


def _talks(here: Served, wish: dict[str, Any], since: date | None) -> dict[str, Any]:
    """What was said in sessions, as the chosen listener may search it."""
    talks = here.home.sessions
    if not talks.kept:
        return {"hits": [], "notes": ["No transcripts are kept here: sessions.dir in anima.toml is empty."]}
    if wish["scope"] is not Scope.MAIN:
        return {"hits": [], "notes": ["Only you, alone, may search what was said in sessions."]}
    found = talks.find(wish["q"], limit=TALKS, max_chars=300)
    times = [time_of(hit.timestamp) for hit in found.hits]
    kept = [hit for hit, time in zip(found.hits, times, strict=True) if not since or (time and time.date() >= since)]
    return {"hits": kept, "notes": found.notes}


PAGE = WebPage(name="search", title="Search", order=40, key="f", views=(PageView(show=show),))
