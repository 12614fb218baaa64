"""The inbox: what waits for the owner, each with its exact diff, where it came from, what the scan saw, which rule asked.

Promise: nothing of a proposal is rendered or run; a yes is bound to the content that was shown. When nothing waits, it
says what was allowed without asking since yesterday.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from starlette.requests import Request

from anima import Actor, Proposal
from anima.web.pages import PageView, WebPage
from anima.web.served import Served


def show(here: Served, request: Request) -> dict[str, Any]:
    waiting = here.home.inbox.all()
    batches: dict[str, list[dict[str, Any]]] = {}
    for proposal in waiting:
        card = {"proposal": proposal, "rule": _rule(here, proposal), "is_identity": _is_identity(here, proposal)}
        batches.setdefault(proposal.session or "", []).append(card)
    return {"batches": batches, "allowed": [] if waiting else _allowed(here)}


def _is_identity(here: Served, proposal: Proposal) -> bool:
    paths = [path for change in proposal.changes for path in (change.path, change.to) if path]
    return any(here.home.layout.row_of(path).policy == "identity" for path in paths)


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


PAGE = WebPage(name="inbox", title="Inbox", order=10, key="i", views=(PageView(show=show),))
