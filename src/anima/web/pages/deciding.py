"""What asks for the owner: the inbox, what memory could do without, and the health of the home.

Promise: nothing of a proposal is rendered or run; a yes is bound to the content that was shown, and to all of it: a long
diff is cut in the inbox and gets its yes on a page of its own; what is decided only by itself is in no batch. Looking
changes nothing: the page of tidying is there at once, and the look at memory comes after it. All text of the home is shown
inert. Not here: the acts (the API), finding what to tidy (the home).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from starlette.requests import Request

from anima import Actor, HomeError, Proposal
from anima.web.draw import MOST_LINES
from anima.web.guard import who_of
from anima.web.pages import PageView, WebPage
from anima.web.served import Served, is_ticked

MOST_NOTED = 100  # noted lines on the page at once
MOST_SUGGESTED = 50  # suggestions of a part
MOST_DONE = 5  # changes that can be undone here
_ROUND = 200  # changes among which those are looked for
MOST_SNAPSHOTS = 20  # snapshots that are listed


def inbox(here: Served, request: Request) -> dict[str, Any]:
    """Everything that waits; or one of it, whole however long it is."""
    only = request.path_params.get("id")
    waiting = [one for one in here.home.inbox.all() if only in (None, one.id)]
    batches: dict[str, list[dict[str, Any]]] = {}
    for proposal in waiting:
        card = card_of(here, request, proposal, whole=only is not None)
        batches.setdefault(proposal.session or "", []).append(card)
    noted = [] if only else list(here.home.inbox.noted())
    # What agents wrote without asking since yesterday, the newest first.
    since = here.home.clock() - timedelta(days=1)
    recent = () if waiting or only or noted else here.home.past.changes(limit=200)
    agents = [e for e in recent if e.time >= since and e.actor in (Actor.AGENT, Actor.DREAMER) and not e.approver]
    more = max(0, len(noted) - MOST_NOTED)
    return {"batches": batches, "only": only, "allowed": agents[:20], "noted": noted[:MOST_NOTED], "more": more}


def card_of(here: Served, request: Request, proposal: Proposal, *, whole: bool = False) -> dict[str, Any]:
    """A proposal as a card; what is drawn whole of it counts as shown to whoever asks."""
    lines = proposal.diff.count("\n")
    is_whole = whole or lines <= MOST_LINES
    if is_whole:
        here.shown(who_of(request.scope), proposal)
    inbox, card = here.home.inbox, {"proposal": proposal, "rule": _rule(here, proposal), "lines": lines}
    return card | {"alone": inbox.alone(proposal), "whole": is_whole, "name": inbox.confirmed_by(proposal)}


def _rule(here: Served, proposal: Proposal) -> str:
    """The rule that would allow this kind of change from now on, as anima.toml would hold it; empty where none should."""
    found = here.home.inbox.rule_for(proposal)
    if found is None:
        return ""
    when = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in found.when)
    return f'[[gate.rule]]\nid = "{found.id}"\nwhen = {{ {when} }}\nthen = "{found.then}"\n'


def tidy(here: Served, request: Request) -> dict[str, Any]:
    """The page at once, with what is known; the look itself is made for `?part=found`."""
    afresh = is_ticked(request, "afresh")
    try:
        is_asked = afresh or request.query_params.get("part") == "found"
        looked = here.tidiness.look(afresh=afresh) if is_asked else here.tidiness.known()
    except HomeError as error:
        return {"wrong": str(error)}
    # What was tidied lately and not taken back since.
    entries = here.home.past.changes(limit=_ROUND) if looked else ()
    undone = {entry.of for entry in entries if entry.what == "undo"}
    done = [entry for entry in entries if entry.what == "tidy" and entry.id not in undone][:MOST_DONE]
    return {"wrong": "", "looked": looked, "many": MOST_SUGGESTED, "done": done}


def health(here: Served, request: Request) -> dict[str, Any]:
    ledger, fault = None, ""
    try:
        ledger = here.home.past.audit()
    except HomeError as error:
        fault = str(error)
    given: dict[str, Any] = {
        "remarks": here.remarks(),
        "ledger": ledger,
        "fault": fault,
        "tokens": here.keyring.all(),
        "root": here.home.name,
        "dialect": here.home.dialect,
    }
    # Snapshots by name alone: an archive holds the home's key, so none is given out here.
    given |= {"snapshots": [], "wrong": "", "next": None, "place": here.home.snapshots.place, "many": MOST_SNAPSHOTS}
    try:
        return given | {"snapshots": here.home.snapshots.all(), "next": here.home.next_snapshot()}
    except HomeError as error:
        return given | {"wrong": str(error)}


PAGES = (
    WebPage(
        name="inbox", title="Inbox", order=10, key="i", views=(PageView(show=inbox), PageView(path="/{id}", show=inbox))
    ),
    WebPage(name="tidy", title="Tidy", order=65, key="y", views=(PageView(show=tidy),)),
    WebPage(name="health", title="Health", order=80, key="h", views=(PageView(show=health),)),
)
