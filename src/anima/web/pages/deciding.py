"""What asks for the owner: the inbox, what memory could do without, each a list with its detail; and a conversation with the
agent, with its cards below it.

Promise: nothing of a proposal is rendered or run; a yes is bound to what was shown, and to all of it: a row shows all only of a
change of one line in which the scan saw nothing, and what is decided only by itself is in no batch. Looking changes nothing. All
text of the home is shown inert; what was said is drawn by the script, as text. Not here: the acts and turns (the API).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.requests import Request

from anima import Actor, Proposal
from anima.agent import PRACTICE
from anima.agent.chats import models_of, waiting
from anima.errors import HomeError, NoSuchProposal
from anima.web.draw import MOST_LINES, diff_lines
from anima.web.guard import who_of
from anima.web.pages import PageView, WebPage, is_ticked
from anima.web.served import Served, parted

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
        if chosen and given["entry"] is None:
            try:
                given["card"] = card_of(here, request, here.home.inbox.get(chosen), whole=is_ticked(request, "whole"))
            except NoSuchProposal:
                pass  # decided meanwhile: the page says so
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
    WebPage("inbox", "Inbox", 20, "i", (PageView(show=inbox), PageView(path="/{id}", show=inbox))),
    WebPage("tidy", "Tidy", 32, "y", (PageView(show=tidy), PageView(path="/{id}", show=tidy)), under="memory"),
    WebPage("chat", "Chat", 10, "c", (PageView(show=chat), PageView(path="/{id}", show=chat))),
)
