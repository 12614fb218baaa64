"""The inbox: what waits for the owner, each with its exact diff, where it came from, what the scan saw, which rule asked.

Promise: nothing of a proposal is rendered or run; a yes is bound to the content that was shown, and to all of it: a long
diff is cut here and gets its yes on a page of its own. What is decided only by itself is in no batch. When nothing waits,
it says what was allowed without asking since yesterday.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from starlette.requests import Request

from anima import Actor, Proposal
from anima.web.draw import MOST_LINES
from anima.web.guard import who_of
from anima.web.pages import PageView, WebPage
from anima.web.served import Served

MOST_NOTED = 100  # noted lines on the page at once


def show(here: Served, request: Request) -> dict[str, Any]:
    """Everything that waits; or one of it, whole however long it is."""
    only = request.path_params.get("id")
    waiting = [one for one in here.home.inbox.all() if only in (None, one.id)]
    batches: dict[str, list[dict[str, Any]]] = {}
    for proposal in waiting:
        alone, lines = here.home.inbox.alone(proposal), proposal.diff.count("\n")
        is_whole = only is not None or lines <= MOST_LINES
        if is_whole:
            here.shown(who_of(request.scope), proposal)
        card = {"proposal": proposal, "rule": _rule(here, proposal), "alone": alone, "lines": lines, "whole": is_whole}
        card["name"] = here.home.inbox.confirmed_by(proposal)
        batches.setdefault(proposal.session or "", []).append(card)
    noted = [] if only else list(here.home.inbox.noted())
    allowed = [] if waiting or only or noted else _allowed(here)
    more = max(0, len(noted) - MOST_NOTED)
    return {"batches": batches, "only": only, "allowed": allowed, "noted": noted[:MOST_NOTED], "more": more}


def _rule(here: Served, proposal: Proposal) -> str:
    """The rule that would allow this kind of change from now on, as anima.toml would hold it; empty where none should."""
    found = here.home.inbox.rule_for(proposal)
    if found is None:
        return ""
    when = ", ".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in found.when)
    return f'[[gate.rule]]\nid = "{found.id}"\nwhen = {{ {when} }}\nthen = "{found.then}"\n'


def _allowed(here: Served) -> list[Any]:
    """What agents wrote without asking since yesterday, the newest first."""
    since = here.home.clock() - timedelta(days=1)
    recent = here.home.past.changes(limit=200)
    return [e for e in recent if e.time >= since and e.actor in (Actor.AGENT, Actor.DREAMER) and not e.approver][:20]


PAGE = WebPage(
    name="inbox", title="Inbox", order=10, key="i", views=(PageView(show=show), PageView(path="/{id}", show=show))
)
