"""A batch of changes written all or nothing into a folder, with its record; and what a crash left of one.

Promise: every base is compared under the lock; texts are staged durably before the ledger says what will happen, so a
begun batch can always be finished; whoever writes or opens next finishes it, or takes it back where nothing was done.
What somebody else wrote in between stays theirs. Whoever calls holds the home lock.
Not here: whether a change may happen (gate), history (place), single files (steps).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from anima.errors import Damaged, HomeError, NoSuchDocument, StaleWrite
from anima.ledger.chain import Edit, Intent, Ledger
from anima.ledger.provenance import Provenance
from anima.model import UNTRUSTED, Change, DocPath, Kind, digest_of
from anima.store import Batch
from anima.store.edits import Present, edit_of, edit_of_append, intent_of, seen_record
from anima.store.folder import Folder, Unconfirmed
from anima.store.steps import Standing, Step, Steps


class _State(Enum):
    """What a crash left of one edit."""

    STANDS = 1
    HALF = 2  # begun, and can be finished
    READY = 3  # not begun, and can be
    TORN = 4  # a piece of an append is there
    LOST = 5  # its text is gone, or somebody else wrote there since: theirs stays


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What one change comes to: the ledger's edit, the steps and the new text's digest."""

    edit: Edit
    steps: tuple[Step, ...]
    digest: str | None = None  # None for an append: a long log is not read again only to tell it


class Batches:
    """Writes the batches of one folder, and ends those that were interrupted."""

    def __init__(
        self,
        folder: Folder,
        steps: Steps,
        *,
        ledger: Callable[[], Ledger],
        provenance: Callable[[], Provenance],
        is_closed: Callable[[DocPath], bool],
        keep_torn: Callable[[bytes], None],
        mark_doubt: Callable[[], None],
    ) -> None:
        self._folder, self._steps = folder, steps
        self._ledger, self._provenance, self._is_closed = ledger, provenance, is_closed
        self._keep_torn, self._mark_doubt = keep_torn, mark_doubt

    # -- writing --------------------------------------------------------------------------------------------------------

    def write(
        self, batch: Batch, *, before_texts: Callable[[], object]
    ) -> tuple[Intent | None, tuple[str | None, ...]]:
        """Writes a batch: its intent, None where nothing changed, and the digest of each new text.

        `before_texts` is called once every base was compared and before anything is staged. Raises StaleWrite or
        Damaged with nothing changed; only Unconfirmed means that all is written, and the disk did not give its word.
        """
        standings = [self._look(change, is_log=batch.is_log) for change in batch.changes]
        before_texts()
        plans = self._plan_all(batch, standings)
        edits = [plan.edit for plan in plans if plan]
        intent = intent_of(batch, edits, ledger=self._ledger()) if edits else None
        if intent is not None:
            self._carry_out(intent, [step for plan in plans if plan for step in plan.steps], batch)
        return intent, tuple(plan.digest if plan else None for plan in plans)

    def _carry_out(self, intent: Intent, steps: list[Step], batch: Batch) -> None:
        try:
            marked = any(line.taint for edit in intent.edits for line in edit.lines)
            if intent.approver is None and (marked or ({intent.origin} | intent.taint) & UNTRUSTED):
                self._mark_doubt()
            if len(steps) > 1:
                self._steps.hold_staged()
            self._ledger().intend(intent)
            self._steps.carry_out(steps, batch.verdict)
        except HomeError as error:
            if not self._stands_after_all(intent) or isinstance(error, Unconfirmed):
                raise
            return
        try:
            self._ledger().done(intent.id, sync=False)
        except HomeError:
            pass  # the intent is on the disk and the files are: whoever looks next finds that it stands

    def _stands_after_all(self, intent: Intent) -> bool:
        """After an error: what was begun is finished, what was not is given up, so that nothing is half done."""
        try:
            return self.settle(back=True).get(intent.id, False)
        except HomeError:
            return False  # the disk is still failing; whoever writes or opens next finishes it

    # -- what each change comes to --------------------------------------------------------------------------------------

    def _look(self, change: Change, *, is_log: bool) -> Standing:
        """What stands there, once it is known where it came from. A log that is as we left it is not read."""
        view = self._provenance()
        if is_log and view.knows(change.path):
            standing = self._steps.look(change.path, whole=False)
            if standing.signature is not None and view.size_of(change.path) == standing.size:
                return standing
        standing = self._steps.look(change.path)
        self._note_standing(change.path, standing)
        change.check_base(standing.text)
        return standing

    def _note_standing(self, path: DocPath, standing: Standing) -> None:
        """Writes down a document we did not leave like this, so that its lines are known for what they are."""
        if seen := seen_record(self._provenance(), path, _present(standing), key=self._ledger().key):
            self._ledger().add(*seen)

    def _plan_all(self, batch: Batch, standings: list[Standing]) -> list[_Plan | None]:
        """What each change comes to, None where nothing would change."""
        plans: list[_Plan | None] = []
        try:
            for change, standing in zip(batch.changes, standings, strict=True):
                plans.append(self._plan(change, standing, is_log=batch.is_log))
        except BaseException:
            self._steps.let_go(step for plan in plans if plan for step in plan.steps)
            raise
        return plans

    def _plan(self, change: Change, standing: Standing, *, is_log: bool) -> _Plan | None:
        key = self._ledger().key
        if is_log and standing.signature is not None:
            step = self._steps.addition(change.path, standing, change.text.encode("utf-8"))
            piece = step.data.decode("utf-8")
            edit = edit_of_append(change, actual=standing.actual, size=standing.size, piece=piece, key=key)
            return _Plan(edit=edit, steps=(step,))
        there = self._look_at_target(change, standing) if change.kind is Kind.MOVE else None
        found = edit_of(change, _present(standing), key=key, there=_present(there) if there else None)
        if found is None:
            return None
        removal = self._steps.removal(change.path, standing)
        if found.kind is Kind.DELETE:
            return _Plan(edit=found, steps=(removal,), digest="")
        if there is not None:
            step = self._steps.stage(change.to or change.path, there, standing.text or "", mode=standing.mode)
            edit = replace(found, temp=step.staged)
            return _Plan(edit=edit, steps=(step, removal), digest=digest_of(standing.text or ""))
        new = change.after(standing.text) or ""
        step = self._steps.stage(change.path, standing, new)
        return _Plan(edit=replace(found, temp=step.staged), steps=(step,), digest=digest_of(new))

    def _look_at_target(self, change: Change, standing: Standing) -> Standing:
        """What stands where a move goes: nothing, or the move is stale."""
        if standing.text is None:
            raise NoSuchDocument(change.path.text)
        assert change.to is not None
        there = self._steps.look(change.to)
        if there.text is not None:
            raise StaleWrite(change.to.text, theirs=there.text, ours=standing.text)
        return there

    def _keyed(self, text: str | None) -> str | None:
        return None if text is None else self._ledger().key.of(text)

    # -- after a crash --------------------------------------------------------------------------------------------------

    def settle(self, *, back: bool = False) -> dict[str, bool]:
        """Ends every begun batch, all or nothing: by id, whether it stands now.

        A batch of which nothing was done yet is finished too, or with `back` given up. Raises Damaged when the disk
        does not let us; the batch is then still begun, and is tried again before anything else is written.
        """
        ended = {}
        for intent in self._ledger().pending():
            states = [self._state(edit) for edit in intent.edits]
            begun = _State.STANDS in states or _State.HALF in states
            ended[intent.id] = begun or not (back or _State.LOST in states or _State.TORN in states)
            if ended[intent.id]:
                self._finish(intent, states)
            else:
                self._give_up(intent, states)
        self._steps.sweep()
        return ended

    def _finish(self, intent: Intent, states: list[_State]) -> None:
        """An edit that is lost is passed over: somebody wrote over it, as they might have a moment later."""
        for edit, state in zip(intent.edits, states, strict=True):
            try:
                if state in (_State.HALF, _State.READY):
                    self._carry_on(edit)
                for path in {edit.path, edit.to or edit.path} if state is not _State.LOST else ():
                    self._steps.confirm(DocPath.parse(path))
            except Damaged as error:
                raise Damaged(
                    f"change {intent.id} was interrupted and cannot be finished yet: {error}", hint=error.hint
                ) from None
            except HomeError:
                continue
        self._ledger().done(intent.id)

    def _give_up(self, intent: Intent, states: list[_State]) -> None:
        for edit, state in zip(intent.edits, states, strict=True):
            if state is _State.TORN:
                path, size = DocPath.parse(edit.path), edit.before or 0
                self._keep_torn((self._steps.raw(path) or b"")[size:])
                self._steps.cut_back(path, size)
        self._steps.sweep()  # first, so that what was given up cannot be finished later
        self._ledger().failed(intent.id, why="interrupted")

    def _carry_on(self, edit: Edit) -> None:
        path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
        if edit.kind is not Kind.DELETE and edit.temp and self._digest(target) != edit.digest:
            self._steps.finish_put(target, edit.temp)
        if edit.kind in (Kind.DELETE, Kind.MOVE) and self._digest(path) == edit.base:
            self._steps.finish_removal(path)

    def _state(self, edit: Edit) -> _State:
        """What stands of an edit. Raises Damaged where the disk does not tell."""
        try:
            path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
            if not (self._is_open(path) and self._is_open(target)):
                return _State.LOST  # no record of ours says so
            if edit.kind is Kind.APPEND:
                return self._append_state(path, edit)
            return self._text_state(edit, here=self._digest(path), there=self._digest(target))
        except Damaged:
            raise
        except HomeError:
            return _State.LOST

    def _is_open(self, path: DocPath) -> bool:
        return path.is_markdown and not self._is_closed(path)

    def _text_state(self, edit: Edit, *, here: str | None, there: str | None) -> _State:
        if edit.kind is Kind.DELETE:
            return _State.STANDS if here is None else _State.READY if here == edit.base else _State.LOST
        if there == edit.digest:
            return _State.HALF if edit.kind is Kind.MOVE and here == edit.base else _State.STANDS
        staged = self._steps.staged_bytes(edit.temp)
        usable = staged is not None and self._keyed(staged.decode("utf-8", "replace")) == edit.digest
        if not usable or there != (edit.base if edit.kind is Kind.WRITE else None):
            return _State.LOST
        return _State.HALF if edit.kind is Kind.MOVE and here is None else _State.READY

    def _append_state(self, path: DocPath, edit: Edit) -> _State:
        """Torn is only what can be nothing but ours: whole lines of the intent, and the beginning of one more."""
        key, data = self._ledger().key, self._steps.raw(path) or b""
        before, after = edit.before or 0, edit.after or 0
        tail = data[before:]
        if key.of(tail[: after - before].decode("utf-8", "replace")) == edit.digest:
            return _State.STANDS
        *whole, _ = tail.split(b"\n")
        ours = {"", *(line.digest for line in edit.lines)}
        fits = tail and len(tail) <= after - before and (len(tail) < after - before or not tail.endswith(b"\n"))
        if not fits or any(key.line(line.decode("utf-8", "replace")) not in ours for line in whole):
            return _State.LOST
        is_ours = self._provenance().is_ours(path, data[:before].decode("utf-8", "replace"))
        return _State.TORN if is_ours else _State.LOST

    def _digest(self, path: DocPath) -> str | None:
        try:
            return self._keyed(self._folder.read(path).text)
        except NoSuchDocument:
            return None


def _present(standing: Standing) -> Present:
    return Present(actual=standing.actual, text=standing.text, size=standing.size)
