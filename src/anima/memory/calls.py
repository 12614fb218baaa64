"""Calls of tools from outside that wait for the owner: asked, decided, and carried out once.

Promise: a waiting call is a proposal that writes nothing; its yes stands in the ledger and comes from a terminal or the
page, as for identity files, or from a button in the owner's own chat on a channel; whoever carries it out says so in the
ledger first, so that it is never done twice, in whichever process and after any kill.
Not here: carrying it out (agent), what the conversation hears of it (sessions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from anima.errors import BadArguments, Refused
from anima.gate import APPROVAL_PLACES, CHANNEL
from anima.gate.scan import scan_text
from anima.memory.proposals import LIFETIME, MOST_PER_SESSION, Proposal, Proposals, call_shown, content_of
from anima.model import Change
from anima.site import Site

RULE = "outside-call"
WHY = "it is not on your list of tools that only read"
_LEASES = 8  # files of locks that there are at most
_STEP = "call"  # the kind of record in the ledger
Step = Literal["waits", "approved", "begun"]


class WaitingCalls:
    """The calls of one home that wait."""

    def __init__(self, site: Site, proposals: Proposals) -> None:
        self._store, self._clock, self._kept = site.store, site.clock, proposals

    def ask(self, change: Change, call: Mapping[str, str]) -> Proposal | None:
        """A call that waits from now on, or the same one that does already; None when too much of its session waits.
        `change` says who asks: it is never made."""
        now, content = self._clock(), content_of((change,), call)
        with self._store.lock():
            waits = self._kept.of(change.session, now)
            if (twin := next((p for p in waits if p.content == content), None)) is not None:
                return twin
            if len(waits) >= MOST_PER_SESSION:
                return None
            return self._kept.keep(
                Proposal(
                    id="",
                    changes=(change,),
                    created=now,
                    expires=now + LIFETIME,
                    rule=RULE,
                    why=WHY,
                    findings=tuple(scan_text(call["text"])),
                    diff=call_shown(call),
                    content=content,
                    bases=(None,),
                    call=call,
                )
            )

    def of(self, session: str) -> list[Proposal]:
        """The calls of a session that are not answered yet, in the order in which they were asked."""
        waits = self._kept.of(session, self._clock()) if self._store.begun else []
        return sorted((p for p in waits if p.call is not None), key=self._kept.number)

    def step(self, proposal: Proposal) -> Step:
        """How far a call has come."""
        records = self._store.ledger.records(self._kept.number(proposal), kinds=(_STEP,))
        steps = [record.fields.get("step") for record in records if record.fields.get("proposal") == proposal.id]
        return "begun" if "begun" in steps else "approved" if steps[-1:] == ["approved"] else "waits"

    def approve(self, proposal: Proposal, approver: str) -> None:
        """The owner's yes. Raises Refused for one from anywhere but a terminal, the page or their own chat on a channel."""
        if approver not in {*APPROVAL_PLACES, CHANNEL}:
            raise Refused(
                f"{proposal.id} is a call of a tool from outside: you decide it at a terminal or on the page",
                rule=RULE,
                hint="anima review, or the inbox",
            )
        self._note(proposal, "approved", approver=approver)

    def deny(self, proposal: Proposal) -> None:
        """The owner's no, which takes back a yes. Raises BadArguments for a call that was begun."""
        with self._store.lock():
            if self.step(proposal) == "begun":
                raise BadArguments(f"{proposal.id} was begun already")
            self._note(proposal, "denied")

    @contextmanager
    def claimed(self, proposal: Proposal) -> Iterator[bool]:
        """Whoever is inside carries the call out, and nobody else; False where somebody began before, and did not come to
        the end. Raises HomeBusy while somebody does, and Refused without a yes."""
        with self._store.lease(f"call-{self._kept.number(proposal) % _LEASES}", patience=0):
            with self._store.lock():
                step = self.step(proposal)
                if step == "waits":
                    raise Refused(f"nobody said yes to {proposal.id}", rule=RULE)
                if step == "approved":
                    self._note(proposal, "begun")
            yield step == "approved"

    def answered(self, proposal: Proposal) -> None:
        """The conversation has its answer: it waits no longer."""
        with self._store.lock():
            self._kept.remove(proposal.id)

    def _note(self, proposal: Proposal, step: Literal["approved", "denied", "begun"], **more: str) -> None:
        with self._store.lock():
            self._store.ledger.add(_STEP, {"proposal": proposal.id, "step": step, **more})
