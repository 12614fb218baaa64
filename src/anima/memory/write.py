"""The road in: every write, whoever makes it, passes here in this order and no other.

Change → scan → gate → (ask: a Proposal waits) → home lock → compare with `base` → intent in the ledger → files →
done → unlock → history → Receipt. Promise: no step is left out for anybody; several changes in one batch are all or
nothing; a stale `base` raises StaleWrite with both versions; appends to a log never conflict.
Not here: what a verb wants to write (home, sessions), looking back (keeping).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from anima.errors import BadArguments, BadText, Damaged, HomeError, NoSuchDocument, StaleWrite
from anima.gate import GatePolicy, Situation, judge
from anima.layout.table import Layout
from anima.ledger.chain import Edit, Intent, Line
from anima.memory.forgotten import Forgotten
from anima.memory.inbox import LIFETIME, MOST_PER_SESSION, Pending, Proposal, content_of, diff_of, text_after
from anima.model import (
    UNTRUSTED,
    Actor,
    Answer,
    Change,
    DocPath,
    Finding,
    Kind,
    Origin,
    Receipt,
    Severity,
    Verdict,
    digest_of,
)
from anima.store.batch import Standing, Step, Unconfirmed
from anima.store.folder import MAX_BYTES
from anima.store.place import FolderStore
from anima.text.markdown import lines_of
from anima.text.merge import merge

OWNER_AT_HAND = Situation()
ORDER = "instruction"  # what the scan calls a phrase that commands whoever reads it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    verdict: Verdict
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What one change comes to: the ledger's edit, the store's steps and the new text's digest."""

    edit: Edit
    steps: tuple[Step, ...]
    digest: str | None = None  # None for an append: a long log is not read again only to tell it


class Writing:
    """Carries changes into one home."""

    def __init__(
        self, books: FolderStore, layout: Layout, policy: GatePolicy, *, clock: Callable[[], datetime]
    ) -> None:
        self.books, self.layout, self.policy, self.clock = books, layout, policy, clock
        self.pending, self.forgotten = Pending(books.machine), Forgotten(books.machine, lambda: books.key)
        self.forgets: Callable[[Proposal], tuple[Receipt, ...]] | None = None  # approves a wish to forget
        self.watchers: list[Callable[[tuple[DocPath, ...]], None]] = []  # told which documents changed

    def submit(
        self,
        changes: Sequence[Change],
        *,
        situation: Situation = OWNER_AT_HAND,
        what: str = "write",
        of: str | None = None,
    ) -> tuple[Receipt, ...]:
        """What becomes of a batch: written, pending or refused, a Receipt for each change."""
        changes = tuple(_checked(change) for change in changes)
        _check_distinct(changes)
        bases = tuple(None if _is_free(change) else self._text(change.path) for change in changes)
        for change, base in zip(changes, bases, strict=True):
            _check_base(change, base)
        judged = self._judge(changes, bases, situation)
        if judged.verdict.answer is Answer.DENY:
            return self._refused(changes, judged)
        if judged.verdict.answer is Answer.ASK:
            return self._proposed(changes, judged)
        receipts = self.carry_out(
            changes, judged.verdict, judged.findings, what=what, of=of, approver=situation.approver
        )
        self._wanted_again(changes, bases, situation)
        return receipts

    def _wanted_again(self, changes: Sequence[Change], bases: Sequence[str | None], situation: Situation) -> None:
        """What the owner writes themselves, or says yes to, is forgotten no longer."""
        if not self.forgotten:
            return
        for change, base in zip(changes, bases, strict=True):
            owners_own = change.actor is Actor.OWNER and change.session is None
            if (owners_own or situation.approver) and (added := "".join(line for _, line in _added(base, change))):
                with self.books.machine.lock.hold():
                    self.forgotten.take_off(added)

    def propose(self, changes: Sequence[Change], *, rule: str, reason: str) -> tuple[Receipt, ...]:
        """Puts a batch before the owner, whatever the gate would allow; what it denies is refused all the same."""
        changes = tuple(_checked(change) for change in changes)
        judged = self._judge(changes, tuple(self._text(change.path) for change in changes), OWNER_AT_HAND)
        if judged.verdict.answer is Answer.DENY:
            return self._refused(changes, judged)
        return self._proposed(changes, replace(judged, verdict=Verdict(answer=Answer.ASK, rule=rule, reason=reason)))

    # -- scan and gate --------------------------------------------------------------------------------------------------

    def _judge(self, changes: Sequence[Change], bases: Sequence[str | None], situation: Situation) -> _Judged:
        """The strictest verdict of the batch, and everything the scan saw in what would be new."""
        strictest: Verdict | None = None
        found: list[Finding] = []
        for change, base in zip(changes, bases, strict=True):
            own = (*scan_added(base, change), *self._recognised(base, change))
            found += own
            exists = base is not None or (_is_free(change) and self.books.documents.exists(change.path))
            fits = replace(situation, size=len(change.text.encode()), exists=exists)
            to_row = self.layout.row_of(change.to) if change.to else None
            verdict = judge(
                change,
                row=self.layout.row_of(change.path),
                to_row=to_row,
                policy=self.policy,
                findings=own,
                situation=fits,
            )
            if strictest is None or _RANK[verdict.answer] > _RANK[strictest.answer]:
                strictest = verdict
        if strictest is None:
            raise BadArguments("there is nothing to write")
        return _Judged(verdict=strictest, findings=tuple(found))

    def _recognised(self, base: str | None, change: Change) -> list[Finding]:
        """What of a change was forgotten before. The owner's own hand is not asked."""
        if not self.forgotten or change.kind in (Kind.DELETE, Kind.MOVE):
            return []
        if change.actor in (Actor.OWNER, Actor.IMPORTER) and change.session is None:
            return []
        added = _added(base, change)
        hits = sorted(self.forgotten.hits("".join(line for _, line in added)))
        return [
            Finding(
                kind="forgotten",
                severity=Severity.DANGER,
                start=0,
                end=0,
                line=added[n][0],
                shown="",
                message="the owner had this forgotten",
            )
            for n in hits
        ]

    def _refused(self, changes: Sequence[Change], judged: _Judged) -> tuple[Receipt, ...]:
        first = changes[0]
        fields = {
            "path": first.path.text,
            "rule": judged.verdict.rule,
            "actor": str(first.actor),
            "session": first.session,
        }
        self.books.append("deny", {k: v for k, v in fields.items() if v is not None}, sync=False)
        return tuple(_receipt(change, "refused", judged) for change in changes)

    def _proposed(self, changes: tuple[Change, ...], judged: _Judged) -> tuple[Receipt, ...]:
        now, content = self.clock(), content_of(changes)
        bases = tuple(self._text(change.path) for change in changes)
        with self.books.machine.lock.hold():
            session = changes[0].session
            proposal = self.pending.twin(content, session, now)
            if proposal is None:
                waiting = sum(p.session == session for p in self.pending.all(now))
                if waiting >= MOST_PER_SESSION:
                    full = Verdict(
                        answer=Answer.DENY,
                        rule="too-many-pending",
                        reason=f"{waiting} changes of this session wait for the owner already",
                    )
                    return self._refused(changes, replace(judged, verdict=full))
                record = self.books.ledger.add(
                    "proposal", {"content": self.books.key.of(content), "rule": judged.verdict.rule}
                )
                proposal = Proposal(
                    id=f"p{record.n}",
                    changes=changes,
                    created=now,
                    expires=now + LIFETIME,
                    rule=judged.verdict.rule,
                    why=judged.verdict.reason,
                    findings=judged.findings,
                    diff=diff_of(changes, bases),
                    content=content,
                    bases=bases,
                )
                self.pending.save(proposal)
        return tuple(_receipt(change, "pending", judged, proposal=proposal.id) for change in changes)

    # -- approval -------------------------------------------------------------------------------------------------------

    def approve(
        self, proposal: str, *, approver: str, content: str | None = None, text: str | None = None
    ) -> tuple[Receipt, ...]:
        """Carries a waiting change out, judged again. `content` binds the yes to what was seen; `text` edits it first."""
        waiting = self.pending.get(proposal, self.clock())
        if content is not None and content != waiting.content:
            raise StaleWrite(waiting.path.text, theirs=waiting.diff, ours=None)
        if waiting.forget is not None:
            if self.forgets is None or text is not None:
                raise BadArguments("a wish to forget is approved as it is; deny it, and run anima forget yourself")
            return self.forgets(waiting)
        if self._carried_out_before(proposal):
            self._take_off(proposal)
            return tuple(Receipt(status="written", path=change.path, proposal=proposal) for change in waiting.changes)
        changes = waiting.changes
        if text is not None:
            if len(changes) != 1 or changes[0].kind not in (Kind.WRITE, Kind.APPEND):
                raise BadArguments("only a proposal of one text can be edited before it is approved")
            changes = (replace(changes[0], text=text),)
        changes = tuple(self._rebased(c, base) for c, base in zip(changes, waiting.bases, strict=True))
        receipts = self.submit(changes, situation=Situation(approver=approver), what="approve", of=proposal)
        if all(receipt.status == "written" for receipt in receipts):
            self._take_off(proposal)
        return receipts

    def approvable(self, proposal: str, *, approver: str) -> Proposal | None:
        """The waiting change, if the gate would take a yes from there; None where it would ask again or refuse."""
        waiting = self.pending.get(proposal, self.clock())
        judged = self._judge(waiting.changes, waiting.bases, Situation(approver=approver))
        return waiting if judged.verdict.answer is Answer.ALLOW else None

    def _take_off(self, proposal: str) -> None:
        try:
            with self.books.machine.lock.hold():
                self.pending.remove(proposal)
        except HomeError:
            pass  # it is carried out, and the ledger knows; approving it again does nothing

    def _carried_out_before(self, proposal: str) -> bool:
        """Whether a crash came between carrying a proposal out and taking it off the list."""
        begun = {}
        for record in self.books.ledger.records(int(proposal[1:]), kinds=("intent", "done")):
            if record.kind == "intent" and record.fields.get("of") == proposal:
                begun[record.fields.get("id")] = True
            elif record.kind == "done" and record.fields.get("id") in begun:
                return True
        return False

    def deny(self, proposal: str) -> Proposal | None:
        """Removes a waiting change; one that cannot even be read is removed too."""
        try:
            waiting: Proposal | None = self.pending.get(proposal, self.clock())
        except Damaged:
            waiting = None
        with self.books.machine.lock.hold():
            self.pending.remove(proposal)
            self.books.ledger.add("deny", {"proposal": proposal, "rule": "owner"})
        return waiting

    def _rebased(self, change: Change, base: str | None) -> Change:
        """A proposed text carried over to what stands there now. Raises StaleWrite where the two do not go together."""
        now = self._text(change.path)
        if change.kind is Kind.APPEND or now == base:
            return replace(change, base=None if change.kind is Kind.APPEND else _digest(now))
        if change.kind is Kind.WRITE and base is not None and now is not None:
            merged = merge(base, now, change.text)
            if merged is not None:
                return replace(change, text=merged, base=_digest(now))
        raise StaleWrite(change.path.text, theirs=now, ours=text_after(change, base))

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def carry_out(
        self,
        changes: tuple[Change, ...],
        verdict: Verdict,
        findings: tuple[Finding, ...],
        *,
        what: str,
        of: str | None = None,
        approver: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Writes an allowed batch, all or nothing. Raises StaleWrite or Damaged with nothing changed.

        Only Unconfirmed means that all is written, and the disk did not give its word for it.
        """
        books, judged = self.books, _Judged(verdict=verdict, findings=findings)
        with books.machine.lock.hold():
            books.finish()
            if what == "approve" and of and self._carried_out_before(of):  # by somebody else, a moment ago
                return tuple(_receipt(change, "written", judged, proposal=of) for change in changes)
            plans = self._plans(changes)
            edits = self._marked(tuple(plan.edit for plan in plans if plan), changes, findings)
            intent = self._intent(changes[0], edits, verdict, what, of, approver) if edits else None
            if intent is not None:
                self._write(intent, [step for plan in plans if plan for step in plan.steps], verdict)
        paths = tuple({path.key: path for c in changes for path in (c.path, c.to) if path}.values())
        for watcher in self.watchers:
            watcher(paths)
        revision = None if intent is None or _is_log(changes) else books.commit(reason=changes[0].reason)
        return tuple(
            _receipt(change, "written", judged, revision=revision, digest=plan.digest if plan else None, intent=intent)
            for change, plan in zip(changes, plans, strict=True)
        )

    def _write(self, intent: Intent, steps: list[Step], verdict: Verdict) -> None:
        books = self.books
        try:
            marked = any(line.taint for edit in intent.edits for line in edit.lines)
            if intent.approver is None and (marked or ({intent.origin} | intent.taint) & UNTRUSTED):
                books.mark_doubt()
            if len(steps) > 1:
                books.hand.hold_staged()
            books.ledger.intend(intent)
            books.hand.carry_out(steps, verdict)
        except HomeError as error:
            if not self._stands_after_all(intent) or isinstance(error, Unconfirmed):
                raise
            return
        try:
            books.ledger.done(intent.id, sync=False)
        except HomeError:
            pass  # the intent is on the disk and the files are: whoever looks next finds that it stands

    def _stands_after_all(self, intent: Intent) -> bool:
        """After an error: what was begun is finished, what was not is given up, so that nothing is half done."""
        try:
            return self.books.settle(back=True).get(intent.id, False)
        except HomeError:
            return False  # the disk is still failing; whoever writes or opens next finishes it

    def _intent(
        self, change: Change, edits: tuple[Edit, ...], verdict: Verdict, what: str, of: str | None, approver: str | None
    ) -> Intent:
        reason = self.books.key.of(change.reason) if change.reason else None
        return Intent(
            id=str(self.books.ledger.tip.n + 1),
            what=what,
            edits=edits,
            actor=change.actor,
            origin=change.origin,
            session=change.session,
            scope=change.scope,
            taint=change.taint,
            rule=verdict.rule,
            approver=approver,
            reason=reason,
            of=of,
        )

    def _plans(self, changes: tuple[Change, ...]) -> list[_Plan | None]:
        """What each change comes to, None where nothing would change. What stood there before is in history by then."""
        log = _is_log(changes)
        standings = [self._look(change, log=log) for change in changes]
        if not log or self.books.has_late_text:
            self.books.commit()  # so that this change can be taken back alone
        plans: list[_Plan | None] = []
        try:
            for change, standing in zip(changes, standings, strict=True):
                plans.append(self._plan(change, standing, log=log))
        except BaseException:
            self.books.hand.let_go(step for plan in plans if plan for step in plan.steps)
            raise
        return plans

    def _look(self, change: Change, *, log: bool) -> Standing:
        """What stands there, once it is known where it came from. A log that is as we left it is not read."""
        if log and self.books.view.knows(change.path):
            standing = self.books.hand.look(change.path, whole=False)
            if standing.signature is not None and self.books.view.size_of(change.path) == standing.size:
                return standing
        standing = self.books.hand.look(change.path)
        self._note_standing(change.path, standing)
        _check_base(change, standing.text)
        return standing

    def _plan(self, change: Change, standing: Standing, *, log: bool) -> _Plan | None:
        if change.kind is Kind.MOVE:
            return self._plan_move(change, standing)
        if log and standing.signature is not None:
            return self._plan_append(change, standing)
        new = text_after(change, standing.text)
        if new == standing.text:
            return None
        if new is None:
            edit = Edit(path=standing.actual, kind=Kind.DELETE, base=self._keyed(standing.text), before=standing.size)
            return _Plan(edit=edit, steps=(self.books.hand.removal(change.path, standing),), digest="")
        return self._plan_write(change, standing, new)

    def _plan_append(self, change: Change, standing: Standing) -> _Plan:
        step = self.books.hand.addition(change.path, standing, change.text.encode("utf-8"))
        after = standing.size + len(step.data)
        if after > MAX_BYTES:
            raise BadText(
                change.path.text, f"it would grow past {MAX_BYTES:,} bytes", hint="move older lines to another document"
            )
        edit = Edit(
            path=standing.actual,
            kind=Kind.APPEND,
            digest=self.books.key.of(step.data.decode("utf-8")),
            before=standing.size,
            after=after,
            lines=self._lines("", change.text),
        )
        return _Plan(edit=edit, steps=(step,))

    def _plan_write(self, change: Change, standing: Standing, new: str) -> _Plan:
        size = len(new.encode("utf-8"))
        if size > MAX_BYTES:
            raise BadText(change.path.text, f"it would have {size:,} bytes; a document has at most {MAX_BYTES:,}")
        step = self.books.hand.stage(change.path, standing, new)
        edit = Edit(
            path=standing.actual,
            kind=Kind.WRITE,
            base=self._keyed(standing.text),
            digest=self.books.key.of(new),
            before=standing.size,
            after=size,
            temp=step.staged,
            lines=self._lines(standing.text or "", new),
        )
        return _Plan(edit=edit, steps=(step,), digest=digest_of(new))

    def _plan_move(self, change: Change, standing: Standing) -> _Plan:
        if standing.text is None:
            raise NoSuchDocument(change.path.text)
        assert change.to is not None
        there = self.books.hand.look(change.to)
        if there.text is not None:
            raise StaleWrite(change.to.text, theirs=there.text, ours=standing.text)
        step = self.books.hand.stage(change.to, there, standing.text, mode=standing.mode)
        keyed = self._keyed(standing.text)
        edit = Edit(
            path=standing.actual,
            kind=Kind.MOVE,
            to=there.actual,
            base=keyed,
            digest=keyed,
            before=standing.size,
            after=standing.size,
            temp=step.staged,
        )
        steps = (step, self.books.hand.removal(change.path, standing))
        return _Plan(edit=edit, steps=steps, digest=digest_of(standing.text))

    def _marked(
        self, edits: tuple[Edit, ...], changes: Sequence[Change], findings: Sequence[Finding]
    ) -> tuple[Edit, ...]:
        """A line of an agent's that speaks like an order is written, and marked as nobody's to obey: prompts and dreams
        leave it out until the owner vouches for it."""
        if changes[0].actor is not Actor.AGENT or not any(f.kind == ORDER for f in findings):
            return edits
        from anima.gate.scan import scan_text

        lines = {line for change in changes for line in lines_of(change.text)}
        orders = {self.books.key.line(line) for line in lines if any(f.kind == ORDER for f in scan_text(line))}
        orders = orders or set(map(self.books.key.line, lines))  # it runs over several of them
        return tuple(
            replace(
                edit,
                lines=tuple(replace(n, taint=n.taint | {Origin.PEER}) if n.digest in orders else n for n in edit.lines),
            )
            for edit in edits
        )

    def _lines(self, old: str, new: str) -> tuple[Line, ...]:
        """The digests of lines that are new; those that stay keep the source they have."""
        held = {line.strip() for line in lines_of(old)}
        added = dict.fromkeys(self.books.key.line(line) for line in lines_of(new) if line.strip() not in held)
        return tuple(Line(digest=digest) for digest in added if digest)

    def _note_standing(self, path: DocPath, standing: Standing) -> None:
        """Writes down a document we did not leave like this, so that its lines are known for what they are."""
        view, text = self.books.view, standing.text
        known = view.knows(path)
        if view.is_ours(path, text) if known else text is None:
            return
        fields: dict[str, object] = {"path": standing.actual, "digest": self._keyed(text), "size": standing.size}
        fields["lines"] = view.new_lines(path, text or "")
        self.books.ledger.add("outside" if known else "found", {k: v for k, v in fields.items() if v is not None})

    def _keyed(self, text: str | None) -> str | None:
        return None if text is None else self.books.key.of(text)

    def _text(self, path: DocPath) -> str | None:
        try:
            return self.books.documents.read(path).text
        except NoSuchDocument:
            return None


_RANK = {Answer.ALLOW: 0, Answer.ASK: 1, Answer.DENY: 2}


def _digest(text: str | None) -> str:
    return "" if text is None else digest_of(text)


def _is_free(change: Change) -> bool:
    """Whether a change is an append that goes with whatever stands there."""
    return change.kind is Kind.APPEND and change.base is None


def _is_log(changes: Sequence[Change]) -> bool:
    """Whether this is one append: it conflicts with nobody, and gets its revision with others, later."""
    return len(changes) == 1 and _is_free(changes[0])


def _check_distinct(changes: Sequence[Change]) -> None:
    named = Counter(path.key for change in changes for path in (change.path, change.to) if path)
    if twice := next((key for key, times in named.items() if times > 1), None):
        raise BadArguments(f"{twice}: a batch says of each document once what becomes of it")


def _checked(change: Change) -> Change:
    """A change whose text can be written at all."""
    try:
        change.text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadText(change.path.text, "the text holds half a character (a lone surrogate)") from None
    if "\x00" in change.text:
        raise BadText(change.path.text, "the text holds a NUL character")
    if change.kind is Kind.MOVE and (change.to is None or change.to.key == change.path.key):
        raise BadArguments(f"{change.path}: a move needs another place to go to")
    if change.kind is Kind.APPEND:
        if not change.text.strip():
            raise BadArguments(f"{change.path}: there is nothing to append")
        return change if change.text.endswith("\n") else replace(change, text=change.text + "\n")
    return change


def _check_base(change: Change, now: str | None) -> None:
    if change.base is not None and change.base != _digest(now):
        raise StaleWrite(change.path.text, theirs=now, ours=text_after(change, now))
    if change.kind in (Kind.DELETE, Kind.MOVE) and now is None:
        raise NoSuchDocument(change.path.text)


def scan_added(base: str | None, change: Change) -> tuple[Finding, ...]:
    """What the scan sees in the lines a change would add; their numbers are those of the new text."""
    from anima.gate.scan import scan_text

    if change.kind in (Kind.DELETE, Kind.MOVE):
        return ()
    if change.kind is Kind.APPEND or base is None:
        return scan_text(change.text)
    added = _added(base, change)
    found = scan_text("".join(line for _, line in added))
    return tuple(replace(f, line=added[min(f.line, len(added)) - 1][0]) for f in found)


def _added(base: str | None, change: Change) -> list[tuple[int, str]]:
    """The lines a change would add, with their numbers in the new text."""
    held = Counter(lines_of(base or "") if change.kind is Kind.WRITE else ())
    added: list[tuple[int, str]] = []
    for number, line in enumerate(lines_of(change.text), start=1):
        if held[line] > 0:
            held[line] -= 1
        else:
            added.append((number, line))
    return added


def _receipt(
    change: Change,
    status: str,
    judged: _Judged,
    *,
    revision: str | None = None,
    digest: str | None = None,
    proposal: str | None = None,
    intent: Intent | None = None,
) -> Receipt:
    return Receipt(
        status=status,
        path=change.to or change.path,
        revision=revision,
        digest=digest,
        proposal=proposal,
        rule=judged.verdict.rule,
        reason=judged.verdict.reason,
        findings=judged.findings,
        change=intent.id if intent else None,
    )


def owners(
    path: DocPath, kind: Kind, text: str = "", *, base: str | None = None, to: DocPath | None = None, reason: str = ""
) -> Change:
    """A change by the owner's own hand."""
    return Change(
        path=path, kind=kind, text=text, base=base, to=to, actor=Actor.OWNER, origin=Origin.OWNER, reason=reason
    )


__all__ = ["OWNER_AT_HAND", "Writing", "owners", "scan_added"]
