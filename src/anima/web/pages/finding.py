"""What can be found: documents by a question, what was said in sessions, and whom and what the home speaks of.

Promise: a search finds what the chosen listener would find, and notes no recall; when nothing is found it says why, and
what another choice would have found. The owner sees every session of this agent's, what tools answered folded, and what is
damaged where it stood; one that goes on is followed. The list of the graph is the data; the drawing is made from it in the
browser. All text of the home is shown inert, and nothing is changed by looking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from anima import Scope, time_of
from anima.errors import BadArguments, NoSuchSession, printable
from anima.web.draw import TURNS
from anima.web.pages import PageView, WebPage, asked_number, asked_scope, asked_text, is_ticked
from anima.web.served import Served

FIRST_HITS, MOST_HITS = 10, 40
MOST_SAID = 20  # entries of sessions
SPANS = (7, 30, 90, 365)
SESSIONS, MOST_FOUND = 40, 40
GOING_ON = timedelta(minutes=10)
# Records that are told between entries, by what the page calls them.
_BETWEEN = {"Boundary": "boundary", "Flush": "flush", "TrustState": "state", "Tombstone": "forgotten", "Close": "close"}
KINDS = (
    ("person", "People", "●"),
    ("name", "Other names", "○"),
    ("topic", "Topics", "■"),
    ("document", "Documents", "◆"),
)
MOST_NODES = 500
MENTIONS, MONTHS = 12, 12
_SIGN = {kind: sign for kind, _, sign in KINDS}
_AGES = ((30, 0), (120, 1), (365, 2))  # days since it was last named, and how faded it is drawn


def search_page(here: Served, request: Request) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "q": asked_text(request, "q"),
        "scope": asked_scope(request, unsaid=Scope.MAIN),
        "days": asked_number(request, "days", default=0, least=0, most=100_000),
        "limit": asked_number(request, "limit", default=FIRST_HITS, least=1, most=MOST_HITS),
        "explain": is_ticked(request, "explain"),
        "talks": is_ticked(request, "talks"),
    }
    given: dict[str, Any] = {"wish": wish, "spans": SPANS, "address": partial(_same_search, wish)}
    if not wish["q"]:
        return given
    since = here.home.site.today() - timedelta(days=wish["days"] - 1) if wish["days"] else None
    search = partial(here.home.search, wish["q"], explain=wish["explain"])
    answer = search(scope=wish["scope"], since=since, limit=wish["limit"] + 1)
    return given | {
        "hits": answer.hits[: wish["limit"]],
        "notes": answer.notes,
        "more": len(answer) > wish["limit"] and wish["limit"] < MOST_HITS,
        "talks": _talks(here, wish, since) if wish["talks"] else None,
        "instead": [] if answer else list(_instead(partial(search, limit=MOST_HITS), wish, since)),
    }


def _same_search(wish: dict[str, Any], **other: Any) -> str:
    """The address of the same search, with something else about it."""
    fields = {name: int(value) if isinstance(value, bool) else value for name, value in (wish | other).items()}
    return "/search?" + urlencode({name: value for name, value in fields.items() if value})


def _instead(search: Any, wish: dict[str, Any], since: date | None) -> Iterator[dict[str, Any]]:
    """What other choices would have found: in the order in which they are the likelier reason."""
    scope = wish["scope"]
    if since and (found := search(scope=scope)):
        yield {"found": len(found), "most": MOST_HITS, "how": "of any day", "change": {"days": ""}}
    if scope is not Scope.MAIN and (found := search(scope=Scope.MAIN, since=since)):
        yield {"found": len(found), "most": MOST_HITS, "how": "when you ask alone", "change": {"scope": "main"}}
    if found := search(scope=scope, since=since, trusted_only=False):
        paths = sorted({hit.path.text for hit in found})
        yield {"found": len(found), "most": MOST_HITS, "how": "that nobody reviewed yet", "paths": paths[:5]}


def _talks(here: Served, wish: dict[str, Any], since: date | None) -> dict[str, Any]:
    """What was said in sessions, as the chosen listener may search it."""
    talks = here.home.sessions
    if not talks.kept:
        return {"hits": [], "notes": ["No transcripts are kept here: sessions.dir in anima.toml is empty."]}
    if wish["scope"] is not Scope.MAIN:
        return {"hits": [], "notes": ["Only you, alone, may search what was said in sessions."]}
    found = talks.find(wish["q"], limit=MOST_SAID, max_chars=300)
    times = [time_of(hit.timestamp) for hit in found.hits]
    kept = [hit for hit, time in zip(found.hits, times, strict=True) if not since or (time and time.date() >= since)]
    return {"hits": kept, "notes": found.notes}


def sessions(here: Served, request: Request) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "q": asked_text(request, "q"),
        "scope": asked_scope(request, unsaid=None),
        "start": asked_number(request, "start", default=0, least=0, most=1_000_000),
    }
    state_of = partial(_state, here.home.clock())
    talks = here.home.sessions
    given = {"wish": wish, "kept": talks.kept, "hits": None, "state_of": state_of}
    if not talks.kept:
        return given
    if wish["q"]:
        found = talks.find(wish["q"], talks.owner(wish["scope"]), limit=MOST_FOUND, max_chars=300)
        about = {hit.session_id: talks.get(hit.session_id) for hit in found.hits}
        return given | {"hits": found.hits, "notes": found.notes, "about": about}
    start = wish["start"]
    rows = talks.list(talks.owner(wish["scope"]), limit=start + SESSIONS)
    return given | {"rows": rows[start:], "total": rows.total, "size": SESSIONS}


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
    end, is_last = min(start + TURNS, page.total), start + TURNS >= page.total
    given = {"row": row, "page": page, "start": start, "size": TURNS, "newest": newest, "end": end}
    return given | {
        "title": printable(row.summary, 80) or "A session",
        "state": _state(here.home.clock(), row),
        "items": list(_items(page, talks.marks(id, talks.owner()), start=start, is_last=is_last)),
        "taint": sorted(map(str, talks.doubts([id]))),
        "wrote": here.home.past.changes(session=id, limit=20),
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


def graph(here: Served, request: Request) -> dict[str, Any]:
    most = asked_number(request, "most", default=MOST_NODES, least=1, most=MOST_NODES)
    drawn, today = here.graph(most), here.home.site.today()
    ties: dict[int, list[str]] = {}
    for edge in drawn.edges:
        ties.setdefault(edge.one, []).append(f"{edge.other}*{edge.weight}{'l' if edge.linked else ''}")
    nodes = []
    for n, node in enumerate(drawn.nodes):
        days = (today - node.last).days if node.last else 0  # what has no day does not fade
        age = next((age for most, age in _AGES if days <= most), 3)
        nodes.append({"node": node, "sign": _SIGN[node.kind], "age": age, "ties": " ".join(ties.get(n, ()))})
    counts = {kind: sum(node.kind == kind for node in drawn.nodes) for kind, _, _ in KINDS}
    return {"graph": drawn, "nodes": nodes, "kinds": KINDS, "counts": counts, "most": most}


def about(here: Served, request: Request) -> dict[str, Any]:
    name = asked_text(request, "name", most=200)
    if not name:
        raise BadArguments("say a name", hint="choose one in the graph")
    tell = partial(here.home.index.about, name, here.home.site.listener(Scope.MAIN))
    found, today, months = tell(limit=MENTIONS), here.home.site.today(), [0] * MONTHS
    node = here.graph(MOST_NODES).named(name)
    for mention in (found if found.total <= MENTIONS else tell(limit=5_000)).mentions:
        back = (today.year - mention.day.year) * 12 + today.month - mention.day.month if mention.day else MONTHS
        if 0 <= back < MONTHS:  # how often it was named in each of the last months
            months[MONTHS - 1 - back] += 1
    sign = _SIGN[node.kind] if node else "○"
    return {"title": printable(name, 80), "found": found, "node": node, "sign": sign, "months": months}


REPLAY = PageView(path="/{id}", template="session.html", show=replay)
ABOUT = PageView(path="/about", template="about.html", show=about)
PAGES = (
    WebPage("search", "Search", 90, "f", (PageView(show=search_page),), under="search"),
    WebPage("sessions", "Sessions", 40, "t", (PageView(show=sessions), REPLAY)),
    WebPage("graph", "People and graph", 31, "g", (PageView(show=graph), ABOUT), under="memory"),
)
