"""A batch of changes written all or nothing into a folder, with its record; and what a crash left of one.

Promise: nothing is carried out without an allowing Verdict; every base is compared under the lock; texts are staged durably
before the ledger says what will happen, so whoever writes or opens next can finish a begun batch, or take it back. A document
is old or new, never mixed; no link is followed or written through, and what somebody else wrote in between stays theirs.
Whoever calls holds the home lock. Not here: whether a change may happen (gate), history (place).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

from anima.errors import BadPath, Damaged, HomeError, NoSuchDocument, Refused, StaleWrite
from anima.ledger import Edit, Intent, Ledger
from anima.ledger.views import Provenance
from anima.model import LONG, MAX_BYTES, Answer, Change, DocPath, Kind, Verdict, digest_of
from anima.store import Batch, Rules, text_of
from anima.store.edits import Present, edit_of, intent_of, must_allow, seen_record
from anima.store.folder import Folder
from anima.store.private import STAGE, Machine
from anima.store.safe_open import Signature, Unconfirmed, as_damage, assured, held, read_range, signature_of, write_all

# What a crash left of one edit: it stands; half is done, and can be finished; it was not begun, and can be; a piece of an
# append is there; its text is gone, or somebody else wrote there since, and theirs stays.
_State = Literal["stands", "half", "ready", "torn", "lost"]
_Plan = tuple[Edit | None, list["FileStep"], str]  # None where nothing would change; the new text's digest
_Ahead = list[Callable[[], "FileStep"]]  # what is being staged in threads: each waits for all of it
# A batch that the gate allowed before the crash is finished, not judged again.
RECOVERY = Verdict(answer=Answer.ALLOW, rule="recovery", reason="the gate had allowed it before it was interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStep:
    """One file's part of a batch: put a staged text in place, remove the file, or add bytes at its end."""

    path: DocPath
    actual: str
    do: Literal["put", "remove", "append"]
    staged: str | None = None
    data: bytes = b""
    was: Signature | None = None  # what stood there when we looked

    @property
    def folder(self) -> str:
        return self.actual.rpartition("/")[0]


class Steps:
    """Does the steps that write documents of one folder."""

    def __init__(self, store: Folder, machine: Machine) -> None:
        self._store, self._machine = store, machine

    def look(self, path: DocPath, *, whole: bool = True) -> Present:
        """What stands at a path, checked to be something we may write: a regular file with one name, or nothing. Its text is
        "" where only its size was asked for."""
        actual = self._store.actual(path)
        found = self._store.stat(actual) if actual is not None else None
        if actual is None or found is None:
            return Present(actual=actual or self._store.spelt(path), text=None)
        _check_writable(path, found)
        text = text_of(path, self._store.raw(path, most=MAX_BYTES)) if whole else ""
        seen, mode = signature_of(found), stat.S_IMODE(found.st_mode)
        return Present(actual=actual, text=text, size=found.st_size, signature=seen, mode=mode)

    def stage(self, path: DocPath, standing: Present, text: str, *, mode: int | None = None) -> FileStep:
        """A durable copy of a document's new text, not yet in its place."""
        with as_damage(f"{path}: cannot be written"):  # what stands in the way there is nobody's path
            staged = self._machine.stage(text.encode("utf-8"), mode=standing.mode if mode is None else mode)
        return FileStep(path=path, actual=standing.actual, do="put", staged=staged, was=standing.signature)

    def removal(self, path: DocPath, standing: Present) -> FileStep:
        return FileStep(path=path, actual=standing.actual, do="remove", was=standing.signature)

    def carry_out(self, steps: Iterable[FileStep], verdict: Verdict) -> None:
        """Does the steps in order. Raises StaleWrite, before the first, when somebody wrote since we looked; Unconfirmed when
        all was done but for the disk's word. Any other error may leave some steps done, which recovery then finishes."""
        must_allow(verdict)
        steps = list(steps)
        for step in steps:
            if self._store.signature(step.actual) != step.was:
                raise self._stale(step.path)
        for step in steps:
            try:
                with _written(step.path):
                    self._do(step)
            finally:
                self._store.forget(step.actual)
        for folder in dict.fromkeys(step.folder for step in steps if step.do != "append"):
            self._confirm_folder(folder)

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        must_allow(verdict)
        if self._store.actual(path) is not None:
            return False
        actual = self._store.spelt(path)
        with _written(path), suppress(FileExistsError):
            self._store.make_folder(actual.rpartition("/")[0])
            try:
                self._machine.place(actual, pieces, mode=mode, only_new=True)
                return True
            finally:
                self._store.forget(actual)
        return False

    def _stale(self, path: DocPath) -> StaleWrite:
        try:
            theirs = self._store.read(path).text
        except HomeError:
            theirs = None
        return StaleWrite(path.text, theirs=theirs, ours=None)

    def _do(self, step: FileStep) -> None:
        if step.do == "put":
            if self._store.stat(step.folder or ".") is None:
                self._store.make_folder(step.folder)
            self._machine.move(step.staged or "", step.actual)
            return
        if step.do == "remove":
            self._machine.unlink(step.actual, sync=False)  # with the others, at the end
            return
        with held(self._store.beneath(step.actual, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)) as fd:
            if signature_of(found := os.fstat(fd)) != step.was:
                raise self._stale(step.path)
            _check_writable(step.path, found)
            try:
                write_all(fd, step.data)
                os.fsync(fd)
            except OSError:
                with assured(step.path.text):  # half a line is worse than none; one that may not last is no better
                    os.ftruncate(fd, found.st_size)
                    os.fsync(fd)
                raise

    def _confirm_folder(self, folder: str) -> None:
        with assured(folder or "the home"):
            self._machine.sync_folder(folder)

    # -- after a crash --------------------------------------------------------------------------------------------------

    def finish(self, path: DocPath, staged: str | None) -> None:
        """Puts a staged text of an interrupted batch in its place, or with none removes what stands there."""
        standing = self.look(path, whole=False)
        if staged is not None:
            step = FileStep(path=path, actual=standing.actual, do="put", staged=staged, was=standing.signature)
            self.carry_out([step], RECOVERY)
        elif standing.signature is not None:
            self.carry_out([self.removal(path, standing)], RECOVERY)

    def confirm(self, path: DocPath) -> None:
        """Makes durable what stands, or no longer stands, at a path. Raises Unconfirmed."""
        actual = self._store.actual(path)
        if actual is not None:
            with assured(path.text), self._store.regular(actual) as (fd, _):
                os.fsync(fd)
        folder = (actual or self._store.spelt(path)).rpartition("/")[0]
        if self._store.stat(folder or ".") is not None:
            self._confirm_folder(folder)

    def raw(self, path: DocPath) -> bytes | None:
        """The bytes of a document, whatever they are; None when nothing stands there. Raises BadPath or Damaged."""
        actual = self._store.actual(path)
        if actual is None:
            return None
        with _written(path), suppress(FileNotFoundError), self._store.regular(actual) as (fd, found):
            _check_writable(path, found)
            return read_range(fd, 0, found.st_size)
        return None

    def cut_back(self, path: DocPath, size: int) -> None:
        """Takes a torn append back. Only the bytes after `size` go."""
        actual = self._store.actual(path)
        if actual is None:
            return
        with _written(path), held(self._store.beneath(actual, os.O_WRONLY | os.O_NONBLOCK)) as fd:
            found = os.fstat(fd)
            _check_writable(path, found)
            if found.st_size > size:
                os.ftruncate(fd, size)
                os.fsync(fd)
        self._store.forget(actual)


class BatchStore(Protocol):
    """The store of a folder, as far as batches need it."""

    documents: Folder
    machine: Machine
    rules: Rules

    @property
    def ledger(self) -> Ledger: ...
    @property
    def provenance(self) -> Provenance: ...
    def keep_before(self, batch: Batch) -> None: ...
    def keep_ahead(self, text: str) -> None: ...
    def keep_torn(self, torn: bytes) -> None: ...


class Batches:
    """Writes the batches of one folder, and ends those that were interrupted."""

    def __init__(self, store: BatchStore) -> None:
        self._of, self._folder, self._machine = store, store.documents, store.machine
        self.steps = Steps(self._folder, self._machine)

    def write(self, batch: Batch) -> tuple[Intent | None, tuple[str, ...]]:
        """Writes a batch: its intent, None where nothing changed, and the digest of each new text. Raises StaleWrite or
        Damaged with nothing changed; only Unconfirmed means that all is written, and the disk did not give its word."""
        standings = [self._look(change) for change in batch.changes]
        self._of.keep_before(batch)
        plans, ahead = list[_Plan](), _Ahead()
        try:
            for change, standing in zip(batch.changes, standings, strict=True):
                plans.append(self._plan(change, standing, ahead, is_log=batch.is_log))
        except BaseException:
            with suppress(Exception):  # what was begun is waited for: nothing goes on without the lock
                plans += [(None, [staged()], "") for staged in ahead]
            for staged in [step.staged for _, steps, _ in plans for step in steps if step.staged]:
                self._machine.unstage(staged)
            raise
        edits = [edit for edit, _, _ in plans if edit]
        intent = intent_of(batch, edits, ledger=self._of.ledger) if edits else None
        if intent is not None:
            self._carry_out(intent, [step for _, steps, _ in plans for step in steps], batch)
        return intent, tuple(digest for _, _, digest in plans)

    def _carry_out(self, intent: Intent, steps: list[FileStep], batch: Batch) -> None:
        try:
            if len(steps) > 1:  # a batch of several must be able to go on after the first
                with as_damage("nothing was written"):
                    self._machine.sync_folder(STAGE)
            self._of.ledger.intend(intent)
            self.steps.carry_out(steps, batch.verdict)
        except HomeError as error:
            stands = False
            with suppress(HomeError):  # the disk is still failing; whoever writes or opens next finishes it
                stands = self.settle(back=True).get(intent.id, False)  # so that nothing is half done
            if not stands or isinstance(error, Unconfirmed):
                raise
            return
        with suppress(HomeError):  # intent and files are on the disk: whoever looks next finds that it stands
            self._of.ledger.done(intent.id, sync=False)

    def _look(self, change: Change) -> Present:
        """What stands there, once it is known where it came from."""
        view, standing = self._of.provenance, self.steps.look(change.path)
        if seen := seen_record(view, change.path, standing, key=self._of.ledger.key):
            self._of.ledger.add(*seen)
        change.check_base(standing.text)
        return standing

    def _plan(self, change: Change, standing: Present, ahead: _Ahead, *, is_log: bool) -> _Plan:
        """What a change comes to."""
        there = self.steps.look(change.to) if change.kind is Kind.MOVE and change.to is not None else None
        key, begin = self._of.ledger.key, partial(self._begin, change.path, standing, ahead)
        edit = edit_of(change, standing, key=key, there=there, is_log=is_log, begin=begin)
        if edit is None or edit.kind is Kind.APPEND:
            data, was = (standing.gap + change.text).encode("utf-8"), standing.signature
            step = FileStep(path=change.path, actual=standing.actual, do="append", data=data, was=was)
            return edit, [step] if edit else [], digest_of(change.after(standing.text))
        removal = self.steps.removal(change.path, standing)
        if edit.kind is Kind.DELETE:
            return edit, [removal], ""
        if there is not None and change.to is not None:
            new, target = standing.text or "", change.to
            steps = [self.steps.stage(target, there, new, mode=standing.mode), removal]
        else:
            new = change.after(standing.text) or ""
            steps = [ahead[0]() if ahead else self.steps.stage(change.path, standing, new)]
            ahead.clear()
        return replace(edit, temp=steps[0].staged), steps, digest_of(new)

    def _begin(self, path: DocPath, standing: Present, ahead: _Ahead, new: str) -> None:
        """Begins to stage a long text, and what else leaves the interpreter free; where a thread begins `ahead` has what waits."""
        if len(new) < LONG:
            return
        with suppress(RuntimeError):
            from concurrent.futures import ThreadPoolExecutor

            def staged() -> FileStep:
                beside.shutdown()
                return staging.result()

            beside = ThreadPoolExecutor(2)
            staging = beside.submit(self.steps.stage, path, standing, new)
            ahead.append(staged)
            for work in (self._of.keep_ahead, self._of.ledger.key.of, digest_of):
                beside.submit(work, new)

    # -- after a crash --------------------------------------------------------------------------------------------------

    def settle(self, *, back: bool = False) -> dict[str, bool]:
        """Ends every begun batch, all or nothing: by id, whether it stands now. One of which nothing was done yet is finished
        too, or with `back` given up. Raises Damaged when the disk does not let us; it is then still begun, and tried again."""
        ended = {}
        for intent in self._of.ledger.pending():
            states = [self._state(edit) for edit in intent.edits]
            begun = "stands" in states or "half" in states
            ended[intent.id] = begun or not (back or "lost" in states or "torn" in states)
            if ended[intent.id]:
                self._finish(intent, states)
                continue
            for edit, state in zip(intent.edits, states, strict=True):
                if state == "torn":
                    path, size = DocPath.parse(edit.path), edit.before or 0
                    self._of.keep_torn((self.steps.raw(path) or b"")[size:])
                    self.steps.cut_back(path, size)
            self._machine.sweep()  # first, so that what was given up cannot be finished later
            self._of.ledger.failed(intent.id, why="interrupted")
        self._machine.sweep()  # nobody can need one while we hold the lock and no batch is begun
        return ended

    def _finish(self, intent: Intent, states: list[_State]) -> None:
        """An edit that is lost is passed over: somebody wrote over it, as they might have a moment later."""
        for edit, state in zip(intent.edits, states, strict=True):
            try:
                if state in ("half", "ready"):
                    source, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
                    if edit.kind is not Kind.DELETE and edit.temp and self._digest(target) != edit.digest:
                        self.steps.finish(target, edit.temp)
                    if edit.kind in (Kind.DELETE, Kind.MOVE) and self._digest(source) == edit.base:
                        self.steps.finish(source, None)
                for path in {edit.path, edit.to or edit.path} if state != "lost" else ():
                    self.steps.confirm(DocPath.parse(path))
            except Damaged as error:
                said = f"change {intent.id} was interrupted and cannot be finished yet: {error}"
                raise Damaged(said, hint=error.hint) from None
            except HomeError:
                continue
        self._of.ledger.done(intent.id)

    def _state(self, edit: Edit) -> _State:
        """What stands of an edit. Raises Damaged where the disk does not tell."""
        try:
            path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
            if any(self._of.rules.is_closed(each) or not each.is_markdown for each in (path, target)):
                return "lost"  # no record of ours says so
            if edit.kind is Kind.APPEND:
                return self._append_state(path, edit)
            here, there = self._digest(path), self._digest(target)
            if edit.kind is Kind.DELETE:
                return "stands" if here is None else "ready" if here == edit.base else "lost"
            if there == edit.digest:
                return "half" if edit.kind is Kind.MOVE and here == edit.base else "stands"
            staged = self._machine.staged_bytes(edit.temp or "")
            usable = staged is not None and self._of.ledger.key.of(staged.decode("utf-8", "replace")) == edit.digest
            if not usable or there != (edit.base if edit.kind is Kind.WRITE else None):
                return "lost"
            return "half" if edit.kind is Kind.MOVE and here is None else "ready"
        except Damaged:
            raise
        except HomeError:
            return "lost"

    def _append_state(self, path: DocPath, edit: Edit) -> _State:
        """Torn is only what can be nothing but ours: whole lines of the intent, and the beginning of one more."""
        key, data = self._of.ledger.key, self.steps.raw(path) or b""
        before, after = edit.before or 0, edit.after or 0
        tail = data[before:]
        if key.of(tail[: after - before].decode("utf-8", "replace")) == edit.digest:
            return "stands"
        *whole, _ = tail.split(b"\n")
        ours = {"", *key.each(edit.lines)}
        fits = tail and len(tail) <= after - before and (len(tail) < after - before or not tail.endswith(b"\n"))
        if not fits or any(key.line(line.decode("utf-8", "replace")) not in ours for line in whole):
            return "lost"
        is_ours = self._of.provenance.is_ours(path, data[:before].decode("utf-8", "replace"))
        return "torn" if is_ours else "lost"

    def _digest(self, path: DocPath) -> str | None:
        try:
            return self._of.ledger.key.of(self._folder.read(path).text)
        except NoSuchDocument:
            return None


def _check_writable(path: DocPath, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise BadPath(path.text, "this is not a regular file, so it is not written")
    if found.st_nlink > 1:
        said = f"{path}: the file has several names (hard links), so it is not written"
        raise Refused(said, rule="several-links", hint="copy it, and put the copy in its place")


def _written(path: DocPath) -> AbstractContextManager[None]:
    def elsewhere(error: OSError) -> BadPath | None:
        said = "it lies behind a link or a file, or on another file system; nothing was written"
        return BadPath(path.text, said) if error.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR) else None

    return as_damage(f"{path}: cannot be written", instead=elsewhere)
