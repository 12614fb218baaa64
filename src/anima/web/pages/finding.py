"""What can be found: documents by a question, what was said in sessions, and whom and what the home speaks of. And what asks for the
owner: the inbox, what memory could do without, each a list with its detail; and a conversation with the agent, with its cards below.

Promise: a search finds what the chosen listener would find, and notes no recall; when nothing is found it says why, and what another
choice would have found. The owner sees every session of this agent's, what tools answered folded, and what is damaged where it stood;
one that goes on is followed. The list of the graph is the data; the drawing is made from it in the browser. Nothing of a proposal is
rendered or run; a yes is bound to what was shown, and to all of it: a row shows all only of a change of one line in which the scan saw
nothing, and what is decided only by itself is in no batch. All text of the home is shown inert; what was said is drawn by the script,
as text. Looking changes nothing. Not here: the acts and turns (the API).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from anima import Actor, Proposal, Scope, time_of
from anima.agent import PRACTICE
from anima.agent.chats import models_of, waiting
from anima.errors import BadArguments, HomeError, NoSuchProposal, NoSuchSession, printable
from anima.web.draw import MOST_LINES, TURNS, diff_lines
from anima.web.guard import who_of
from anima.web.pages import PageView, WebPage, asked_number, asked_scope, asked_text, is_ticked
from anima.web.served import Served, parted

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


# -- what asks for the owner --------------------------------------------------------------------------------------------------

MOST_ROWS, FIRST_ROWS = 300, 60  # of the inbox on one page; of a part of tidying, and of chats, before more
MOST_DONE = 5  # changes that can be undone here
SHORT = 160  # characters of a line that a row shows whole
CONTEXT = 3  # lines around what is edited


def inbox(here: Served, request: Request) -> dict[str, Any]:
    """Everything that waits, with one of it in detail; the detail alone where only that is asked for."""
    only, part = request.path_params.get("id", ""), request.query_params.get("part")
    given: dict[str, Any] = {"rows": [], "noted": [], "more": 0, "allowed": [], "card": None, "entry": None}
    waiting, noted = here.waits()
    if part != "detail":
        given["rows"] = [_row(here, request, each) for each in waiting[:MOST_ROWS]]
        given["noted"] = noted[: max(0, MOST_ROWS - len(waiting))]
        given["more"] = len(waiting) + len(noted) - len(given["rows"]) - len(given["noted"])
    if part != "rows":
        chosen = only or (waiting[0].id if waiting else noted[0].entry.id if noted else "")
        given["entry"] = next((each for each in noted if each.entry.id == chosen), None)
        given["headings"] = here.headings()
        if chosen and given["entry"] is None:
            with suppress(NoSuchProposal):  # decided meanwhile: the page says so
                given["card"] = card_of(here, request, here.home.inbox.get(chosen), whole=is_ticked(request, "whole"))
    if not waiting and not noted:  # what agents wrote without asking since yesterday, newest first
        since = here.home.clock() - timedelta(days=1)
        recent = [each for each in here.home.past.changes(limit=200) if each.time >= since and not each.approver]
        given["allowed"] = [each for each in recent if each.actor in (Actor.AGENT, Actor.DREAMER)][:20]
    return given | {"only": only, "whole": is_ticked(request, "whole")}


def _row(here: Served, request: Request, proposal: Proposal) -> dict[str, Any]:
    """A proposal in one line. Where that is all there is to it, it counts as shown to whoever asks."""
    lines = [line for line in diff_lines(proposal.diff, 400) if line.kind in ("add", "cut", "note")]
    said = next(
        (line.text for line in lines if line.kind == "add" and line.text.strip()), lines[0].text if lines else ""
    )
    alone = here.home.inbox.alone(proposal)
    is_whole = len(lines) == 1 and len(said) <= SHORT and not alone and not proposal.findings and not proposal.call
    if is_whole:
        here.shown(who_of(request.scope), proposal)
    added = sum(line.kind == "add" for line in lines)
    return {"proposal": proposal, "said": said, "alone": alone, "whole": is_whole, "more": max(0, added - 1)}


def card_of(here: Served, request: Request, proposal: Proposal, *, whole: bool = False) -> dict[str, Any]:
    """A proposal as a card; what is drawn whole of it counts as shown to whoever asks."""
    lines = proposal.diff.count("\n")
    is_whole = whole or lines <= MOST_LINES
    if is_whole:
        here.shown(who_of(request.scope), proposal)
    inbox, change, rule = here.home.inbox, proposal.changes[0], here.home.inbox.rule_for(proposal)
    card: dict[str, Any] = {"proposal": proposal, "rule": rule.text if rule else "", "lines": lines, "edit": None}
    gone = proposal.changes[-1].path.text if proposal.is_first and proposal.changes[-1].kind == "delete" else ""
    start = proposal.diff.find(f"--- a/{gone}") if gone else -1  # the page of the first conversation, folded
    at = start if start >= 0 else len(proposal.diff)
    card |= {"diff": proposal.diff[:at], "gone": gone, "rest": proposal.diff[at:]}
    if not (proposal.call or proposal.forgets) and len(proposal.changes) == 1 and change.kind in ("write", "append"):
        before, _, after = parted(proposal)
        card["edit"] = {"before": before[-CONTEXT:], "after": after[:CONTEXT]}
    return card | {"alone": inbox.alone(proposal), "whole": is_whole, "name": inbox.confirmed_by(proposal)}


def tidy(here: Served, request: Request) -> dict[str, Any]:
    """The page at once, with what is known; the look itself is made for `?part=found`."""
    afresh, part = is_ticked(request, "afresh"), request.query_params.get("part")
    only = request.path_params.get("id", "")
    try:
        looked = here.tidiness.look(afresh=afresh) if afresh or part in ("found", "detail") else here.tidiness.known()
    except HomeError as error:
        return {"wrong": str(error), "card": None}
    done = here.tidiness.tidied(looked)[:MOST_DONE] if looked and part != "detail" else []
    card = looked.found.get(only) if looked else None
    many = len(looked.found) if looked and is_ticked(request, "all") else FIRST_ROWS
    return {"wrong": "", "looked": looked, "done": done, "card": card, "only": only, "many": many}


def chat(here: Served, request: Request) -> dict[str, Any]:
    """A conversation with what it left to decide, or where one begins."""
    id, rows = request.path_params.get("id", ""), here.chats.rows(FIRST_ROWS)
    asked, noted = waiting(here.home, id) if id else ([], [])
    given = {"id": id, "rows": rows, "model": "", "practice": PRACTICE, "wrong": "", "hint": "", "noted": noted}
    given |= {"summary": next((row["summary"] for row in rows if row["id"] == id), "")}
    given |= {"waiting": [card_of(here, request, each) for each in asked]}
    try:
        return given | {"model": models_of(here.home).choice().name}
    except HomeError as error:
        return given | {"wrong": str(error), "hint": error.hint or ""}


PAGES = (
    WebPage("search", "Search", 90, "f", (PageView(show=search_page),), under="search"),
    WebPage("sessions", "Sessions", 40, "t", (PageView(show=sessions), REPLAY)),
    WebPage("graph", "People and graph", 31, "g", (PageView(show=graph), ABOUT), under="memory"),
    WebPage("inbox", "Inbox", 20, "i", (PageView(show=inbox), PageView(path="/{id}", show=inbox))),
    WebPage("tidy", "Tidy", 32, "y", (PageView(show=tidy), PageView(path="/{id}", show=tidy)), under="memory"),
    WebPage("chat", "Chat", 10, "c", (PageView(show=chat), PageView(path="/{id}", show=chat))),
)
