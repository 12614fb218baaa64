"""Asking: a change that waits is put to the person at the client, where the client can ask and the gate allows it.

Promise: whoever asks never answers, so nobody is asked but at a server that the owner started on standard streams with
a flag that says so (server); asked only in a session with the owner alone, only for what the gate would take a yes to
from there (never an identity file), only where nothing dangerous was found and the whole diff can be shown; the text
shown is inert and cannot leave its frame; the yes is bound to the content that was shown. An answer is no proof of a
person, so the ledger says that it came this way. Not here: judging and writing (gate, writing).
"""

from __future__ import annotations

from typing import Any, Literal

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from anima import Home, NotFound, Proposal, Severity
from anima.mcp.visits import Answer, Visit

PLACE = "elicitation"
QUESTION = "approve"
MOST_SHOWN = 4_000
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve this change",
            "description": "Yes writes exactly what is shown; no removes the proposal.",
            "default": False,
        }
    },
    "required": ["approve"],
}
Decision = Literal["yes", "no", "later"]


def can_ask(capabilities: types.ClientCapabilities | None, *, version: str, can_send: bool) -> bool:
    """Whether a form can reach a person. A bare `elicitation` means forms; one that only has addresses does not."""
    asked = capabilities.elicitation if capabilities is not None else None
    if asked is None or (asked.form is None and asked.url is not None):
        return False
    return version in MODERN_PROTOCOL_VERSIONS or can_send


def to_ask(visit: Visit, answer: Answer) -> Proposal | None:
    """The proposal behind a `pending` answer, if it may be decided at the client."""
    if answer.get("status") != "pending" or not visit.session.listener.sees_all:
        return None
    try:
        waiting = visit.visitor.home.inbox.approvable(str(answer.get("proposal")), approver=PLACE)
    except NotFound:
        return None
    if waiting is None or len(waiting.diff) > MOST_SHOWN:
        return None
    return None if any(found.severity >= Severity.DANGER for found in waiting.findings) else waiting


def question(waiting: Proposal) -> types.ElicitRequestFormParams:
    first = waiting.changes[0]
    lines = [f"The agent wants to change {_inert(first.path.text)}; it waits because {waiting.why}."]
    if first.taint:
        lines.append(f"It was written after reading text from: {', '.join(sorted(first.taint))}.")
    if first.reason:
        lines.append(f"The agent's reason: {_inert(first.reason)}")
    lines += [f"The scan saw, in line {found.line}: {_inert(found.message)}" for found in waiting.findings[:10]]
    lines += [f"Proposal {waiting.id}, exactly:", *(f"| {_inert(line)}" for line in waiting.diff.splitlines())]
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=SCHEMA)


def _inert(text: str) -> str:
    """Text on one line that cannot turn a direction, move a cursor or hide."""
    return "".join(c if c.isprintable() or c == "\t" else f"⟨U+{ord(c):04X}⟩" for c in text)


def decision(result: object) -> Decision:
    """Only a form that was sent off with a plain true is a yes."""
    if not isinstance(result, types.ElicitResult) or result.action != "accept":
        return "later"
    said = (result.content or {}).get("approve")
    return "yes" if said is True else "no" if said is False else "later"


def decide(home: Home, answer: Answer, content: str, decided: Decision) -> Answer:
    """What became of a proposal after the person said yes or no."""
    proposal = str(answer["proposal"])
    kept = {name: value for name, value in answer.items() if name not in ("reason", "review", "repeated")}
    if decided == "no":
        home.inbox.deny(proposal)
        return kept | {"status": "refused", "rule": "owner", "reason": "the owner said no to it"}
    receipt = home.inbox.approve(proposal, approver=PLACE, content=content)[0]
    if receipt.status != "written":
        return answer
    return kept | {"status": "written", "rule": receipt.rule, "revision": receipt.revision and receipt.revision[:12]}
