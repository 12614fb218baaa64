"""The inbox: what waits for the owner, and the owner's yes and no.

Promise: a yes is bound to what was seen and judged again before anything is written; a change that was carried out is
not carried out twice; a proposal that cannot be read can still be denied; what is decided only by itself is said in one
place. Looking begins nothing.
Not here: how a proposal is kept (proposals) and made (write).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from anima.errors import BadArguments, Damaged, HomeError, StaleWrite
from anima.gate import Situation
from anima.memory.proposals import Proposal
from anima.memory.write import Writer
from anima.model import Answer, Change, Kind, Receipt, Severity, Verdict, digest_of
from anima.site import Site
from anima.text.diff import merge

if TYPE_CHECKING:
    from anima.config import Rule


class Inbox:
    """What waits in one home. `forgets` carries out a wish to forget that the owner says yes to."""

    def __init__(self, site: Site, writer: Writer, forgets: Callable[[Proposal], tuple[Receipt, ...]]) -> None:
        self._store, self._layout, self._clock = site.store, site.layout, site.clock
        self._writer, self._kept, self._forgets = writer, writer.proposals, forgets

    def all(self) -> tuple[Proposal, ...]:
        """What waits for the owner, oldest first."""
        return tuple(self._kept.all(self._clock())) if self._store.begun else ()

    def ids(self) -> frozenset[str]:
        """The names of what lies here. No file is opened for it."""
        return self._kept.ids() if self._store.begun else frozenset()

    def get(self, proposal: str) -> Proposal:
        return self._kept.get(proposal, self._clock())

    def approve(
        self, proposal: str, *, approver: str = "python", content: str | None = None, text: str | None = None
    ) -> tuple[Receipt, ...]:
        """Says yes. `content` binds the yes to what was seen, `text` edits it first. Identity files need a terminal or
        the page."""
        waiting = self.get(proposal)
        if content is not None and content != waiting.content:
            raise StaleWrite(waiting.path.text, theirs=waiting.diff, ours=None)
        if waiting.forget is not None:
            if text is not None:
                raise BadArguments("a wish to forget is approved as it is; deny it, and run anima forget yourself")
            return self._forgets(waiting)
        if self._store.ledger.carried_out(proposal):
            self._take_off(proposal)
            return tuple(Receipt(status="written", path=change.path, proposal=proposal) for change in waiting.changes)
        changes = waiting.changes
        if text is not None:
            if len(changes) != 1 or changes[0].kind not in (Kind.WRITE, Kind.APPEND):
                raise BadArguments("only a proposal of one text can be edited before it is approved")
            changes = (replace(changes[0], text=text),)
        changes = tuple(self._rebased(c, base) for c, base in zip(changes, waiting.bases, strict=True))
        receipts = self._writer.submit(changes, situation=Situation(approver=approver), what="approve", of=proposal)
        if all(receipt.status == "written" for receipt in receipts):
            self._take_off(proposal)
        return receipts

    def approvable(self, proposal: str, *, approver: str) -> Proposal | None:
        """The waiting change, if the gate would take a yes from there; None where it would ask again or refuse."""
        waiting = self.get(proposal)
        verdict, _ = self._writer.judge(waiting.changes, waiting.bases, Situation(approver=approver))
        return waiting if verdict.answer is Answer.ALLOW else None

    def alone(self, proposal: Proposal) -> str:
        """Why a proposal is never one of several that get one yes: identity, danger or forget; empty where it may be."""
        paths = [path for change in proposal.changes for path in (change.path, change.to) if path]
        if any(self._layout.row_of(path).policy == "identity" for path in paths):
            return "identity"
        if any(finding.severity >= Severity.DANGER for finding in proposal.findings):
            return "danger"
        return "forget" if proposal.forget is not None else ""

    def deny(self, proposal: str) -> None:
        """Removes a waiting change; one that cannot even be read is removed too."""
        try:
            self.get(proposal)
        except Damaged:
            pass
        with self._store.lock():
            self._kept.remove(proposal)
            self._store.ledger.add("deny", {"proposal": proposal, "rule": "owner"})

    def rule_for(self, proposal: Proposal) -> Rule | None:
        """The narrowest rule that would have allowed a proposal; None where none should."""
        from anima.gate import suggest_rule

        if len(proposal.changes) != 1:
            return None
        change, row_of = proposal.changes[0], self._layout.row_of
        verdict = Verdict(answer=Answer.ASK, rule=proposal.rule, reason=proposal.why)
        to_row = row_of(change.to) if change.to else None
        return suggest_rule(change, verdict, row=row_of(change.path), findings=proposal.findings, to_row=to_row)

    def _take_off(self, proposal: str) -> None:
        try:
            with self._store.lock():
                self._kept.remove(proposal)
        except HomeError:
            pass  # it is carried out, and the ledger knows; approving it again does nothing

    def _rebased(self, change: Change, base: str | None) -> Change:
        """A proposed text carried over to what stands there now. Raises StaleWrite where the two do not go together."""
        now = self._writer.text_of(change.path)
        if change.kind is Kind.APPEND:
            return replace(change, base=None)
        digest = "" if now is None else digest_of(now)
        if now == base:
            return replace(change, base=digest)
        if change.kind is Kind.WRITE and base is not None and now is not None:
            merged = merge(base, now, change.text)
            if merged is not None:
                return replace(change, text=merged, base=digest)
        raise StaleWrite(change.path.text, theirs=now, ours=change.after(base))
