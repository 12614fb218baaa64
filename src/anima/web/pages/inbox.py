"""The inbox: what waits for the owner, each with its exact diff, where it came from, what the scan saw, which rule asked.

Promise: nothing of a proposal is rendered or run; a yes is bound to the content that was shown. When nothing waits, it
says what was allowed without asking since yesterday.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.requests import Request

from anima.gate import suggest_rule
from anima.gate.sentences import APPROVAL_PLACES
from anima.home import Home
from anima.layout.table import Policy
from anima.memory.inbox import Proposal
from anima.model import Actor, Answer, Kind, Severity, Verdict
from anima.web.pages import Page, View
from anima.web.served import Served

_SIGNS = {Severity.NOTE: "note", Severity.WARN: "warn", Severity.DANGER: "danger"}
_WHO = {
    "agent": "The agent",
    "dreamer": "Dreaming",
    "importer": "An import",
    "outside": "Somebody outside",
    "owner": "You",
}


def show(here: Served, request: Request) -> dict[str, Any]:
    home = here.home
    waiting = home.pending()
    batches: dict[str, list[dict[str, Any]]] = {}
    for proposal in waiting:
        batches.setdefault(proposal.session or "", []).append(_card(home, proposal))
    return {
        "batches": [_batch(name, cards) for name, cards in batches.items()],
        "waiting": len(waiting),
        "allowed": [] if waiting else _allowed(home),
    }


def _batch(session: str, cards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"session": session, "name": session[:8] if session else "none", "cards": cards}


def _card(home: Home, proposal: Proposal) -> dict[str, Any]:
    first = proposal.changes[0]
    rows = [home.layout.row_of(change.to or change.path) for change in proposal.changes]
    rows += [home.layout.row_of(change.path) for change in proposal.changes if change.to]
    editable = len(proposal.changes) == 1 and first.kind in (Kind.WRITE, Kind.APPEND)
    return {
        "proposal": proposal,
        "first": first,
        "origin": _origin(proposal),
        "editable": editable,
        "is_identity": any(row.policy is Policy.IDENTITY for row in rows),
        "places": sorted(APPROVAL_PLACES),
        "findings": [{"sign": _SIGNS[f.severity], "finding": f} for f in proposal.findings],
        "rule": _rule(home, proposal),
        "verb": _verb(proposal),
    }


def _verb(proposal: Proposal) -> str:
    first = proposal.changes[0]
    if len(proposal.changes) > 1:
        return f"{len(proposal.changes)} changes"
    if first.kind is Kind.WRITE:
        return "change" if proposal.bases[0] is not None else "make"
    return {Kind.APPEND: "add to", Kind.MOVE: "move", Kind.DELETE: "delete"}[first.kind]


def _origin(proposal: Proposal) -> str:
    """Where it came from, as a sentence."""
    first = proposal.changes[0]
    who = _WHO.get(str(first.actor), str(first.actor))
    where = f" in a {first.scope} session" if first.scope else ""
    after = f", after it read text from {', '.join(sorted(first.taint))}" if first.taint else ""
    return f"{who}{where}{after}"


def _rule(home: Home, proposal: Proposal) -> str:
    """The rule that would allow this kind of change from now on, as anima.toml would hold it; empty where none should."""
    if len(proposal.changes) != 1:
        return ""
    change = proposal.changes[0]
    verdict = Verdict(answer=Answer.ASK, rule=proposal.rule, reason=proposal.why)
    to_row = home.layout.row_of(change.to) if change.to else None
    found = suggest_rule(
        change, verdict, row=home.layout.row_of(change.path), findings=proposal.findings, to_row=to_row
    )
    if found is None:
        return ""
    when = ", ".join(f"{name} = {_toml(value)}" for name, value in found.when)
    return f'[[gate.rule]]\nid = "{found.id}"\nwhen = {{ {when} }}\nthen = "{found.then}"\n'


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _allowed(home: Home) -> list[Any]:
    """What agents wrote without asking since yesterday, the newest first."""
    if not home.books.begun:
        return []
    since = home.clock() - timedelta(days=1)
    recent = home.keeping.changes(limit=200)
    return [e for e in recent if e.time >= since and e.actor in (Actor.AGENT, Actor.DREAMER) and not e.approver][:20]


PAGE = Page(name="inbox", title="Inbox", order=10, key="i", views=(View(show=show),))
