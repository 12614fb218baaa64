"""A batch of changes written all or nothing into a folder, with its record; and what a crash left of one.

Promise: every base is compared under the lock; texts are staged durably before the ledger says what will happen, so whoever
writes or opens next can finish a begun batch, or take it back. A document is old or new, never mixed; no link is followed or
written through, and what somebody else wrote in between stays theirs. Whoever calls holds the home lock. Not here: whether a
change may happen (gate), history (place).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, Protocol

from anima.errors import BadPath, Damaged, HomeError, NoSuchDocument, Refused, StaleWrite
from anima.ledger import Edit, Intent, Ledger
from anima.ledger.views import Provenance
from anima.model import LONG, MAX_BYTES, Change, DocPath, Kind, Verdict, digest_of
from anima.store import Batch, Rules, text_of
from anima.store.edits import Present, edit_of, intent_of, must_allow, seen_record
from anima.store.folder import Folder
from anima.store.private import STAGE, Machine, only_read_by
from anima.store.safe_open import Unconfirmed, as_damage, assured, held, read_range, signature_of, write_all

# What a crash left of one edit: it stands; half is done, and can be finished; it was not begun, and can be; a piece of an
# append is there; its text is gone, or somebody else wrote there since, and theirs stays.
_State = Literal["stands", "half", "ready", "torn", "lost"]
_Ahead = list[Callable[[], str]]  # what is being staged in threads: each waits for all of it, and gives its place


class Planned(NamedTuple):
    """An edit that is ready to be made: the places it touches as they stood when we looked, that of a staged text first, and
    the bytes that an append adds."""

    edit: Edit
    places: tuple[tuple[DocPath, Present], ...]
    data: bytes = b""


class Batches(Protocol):
    """What the store of a folder does with batches: writes them, and ends those that were interrupted."""

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

    def carry_out(self, batch: Batch) -> tuple[Intent | None, tuple[str, ...]]:
        """Writes a batch: its intent, None where nothing changed, and the digest of each new text. Raises StaleWrite or
        Damaged with nothing changed; only Unconfirmed means that all is written, and the disk did not give its word."""
        found = [self._looked_at(change, is_log=batch.is_log) for change in batch.changes]
        self.keep_before(batch)
        planned, ahead = list[Planned](), _Ahead()
        try:
            for change, present in zip(batch.changes, found, strict=True):
                planned += self._planned(change, present, ahead, is_log=batch.is_log)
        except BaseException:
            staged = [each.edit.temp for each in planned if each.edit.temp]
            with suppress(Exception):  # what was begun is waited for: nothing goes on without the lock
                staged += [wait() for wait in ahead]
            for name in staged:
                self.machine.unstage(name)
            raise
        digests = tuple(digest_of(change.after(at.text)) for change, at in zip(batch.changes, found, strict=True))
        intent = intent_of(batch, [each.edit for each in planned], ledger=self.ledger) if planned else None
        if intent is not None:
            self._write(intent, planned)
        return intent, digests

    def _write(self, intent: Intent, planned: Sequence[Planned]) -> None:
        try:
            if sum(len(each.places) for each in planned) > 1:  # it must be able to go on after the first
                with as_damage("nothing was written"):
                    self.machine.sync_folder(STAGE)
            self.ledger.intend(intent)
            self.do(planned)
        except HomeError as error:
            stands = False
            with suppress(HomeError):  # the disk is still failing; whoever writes or opens next finishes it
                stands = self.recover(back=True).get(intent.id, False)  # so that nothing is half done
            if not stands or isinstance(error, Unconfirmed):
                raise
            return
        with suppress(HomeError):  # intent and files are on the disk: whoever looks next finds that it stands
            self.ledger.done(intent.id, sync=False)

    def _looked_at(self, change: Change, *, is_log: bool) -> Present:
        """What stands there, once it is known where it came from."""
        view, found = self.provenance, self.look(change.path)
        if seen := seen_record(view, change.path, found, key=self.ledger.key, is_log=is_log):
            self.ledger.add(*seen)
        change.check_base(found.text)
        return found

    def look(self, path: DocPath, *, whole: bool = True) -> Present:
        """What stands at a path, checked to be something we may write: a regular file with one name, or nothing. Its text is
        "" where only its size was asked for."""
        actual = self.documents.actual(path)
        found = self.documents.stat(actual) if actual is not None else None
        if actual is None or found is None:
            return Present(actual=actual or self.documents.spelt(path), text=None)
        _check_writable(path, found)
        text = text_of(path, self.documents.raw(path, most=MAX_BYTES)) if whole else ""
        seen, mode = signature_of(found), stat.S_IMODE(found.st_mode)
        return Present(actual=actual, text=text, size=found.st_size, signature=seen, mode=mode)

    def _planned(self, change: Change, found: Present, ahead: _Ahead, *, is_log: bool) -> Iterator[Planned]:
        """What a change comes to; nothing where nothing would change."""
        there = self.look(change.to) if change.kind is Kind.MOVE and change.to is not None else None
        key, begin = self.ledger.key, partial(self._begin, change.path, found.mode, ahead)
        edit = edit_of(change, found, key=key, there=there, is_log=is_log, begin=begin)
        if edit is None:
            return
        here = (change.path, found)
        if edit.kind is Kind.APPEND:
            yield Planned(edit, (here,), (found.gap + change.text).encode("utf-8"))
        elif edit.kind is Kind.DELETE:
            yield Planned(edit, (here,))
        else:
            places = ((change.to, there), here) if there is not None and change.to is not None else (here,)
            staged = ahead[0]() if ahead else self.stage(places[0][0], found.mode, change.after(found.text) or "")
            ahead.clear()  # not before: whoever is interrupted while it waits waits again
            yield Planned(replace(edit, temp=staged), places)

    def stage(self, path: DocPath, mode: int, text: str) -> str:
        """A durable copy of a document's new text, not yet in its place."""
        with as_damage(f"{path}: cannot be written", instead=only_read_by):  # what is in the way there is nobody's path
            return self.machine.stage(text.encode("utf-8"), mode=mode)

    def _begin(self, path: DocPath, mode: int, ahead: _Ahead, new: str) -> None:
        """Begins to stage a long text, and what else leaves the interpreter free; where a thread begins `ahead` has what waits."""
        if len(new) < LONG:
            return
        with suppress(RuntimeError):
            from concurrent.futures import ThreadPoolExecutor

            def staged() -> str:
                beside.shutdown()
                return staging.result()

            beside = ThreadPoolExecutor(2)
            staging = beside.submit(self.stage, path, mode, new)
            ahead.append(staged)
            for work in (self.keep_ahead, self.ledger.key.of, digest_of):
                beside.submit(work, new)

    # -- the files ------------------------------------------------------------------------------------------------------

    def do(self, planned: Sequence[Planned]) -> None:
        """Makes the edits in order. Raises StaleWrite, before the first, when somebody wrote since we looked; Unconfirmed when
        all was done but for the disk's word. Any other error may leave some undone, which `recover` then finishes."""
        for path, found in (place for each in planned for place in each.places):
            if self.documents.signature(found.actual) != found.signature:
                raise self._stale(path)
        for edit, places, data in planned:
            (path, found), (source, old) = places[0], places[-1]
            if edit.kind is Kind.APPEND:
                self._append(path, found, data)
            if edit.temp:
                self.put(path, found.actual, edit.temp)
            if edit.kind in (Kind.DELETE, Kind.MOVE):
                self._remove(source, old.actual)
        changed = (found.actual for edit, places, _ in planned for _, found in places if edit.kind is not Kind.APPEND)
        for folder in dict.fromkeys(actual.rpartition("/")[0] for actual in changed):
            self._confirm_folder(folder)

    def put(self, path: DocPath, actual: str, staged: str) -> None:
        with _written(path):
            self.documents.make_folder(actual.rpartition("/")[0])
            self.machine.move(staged, actual)

    def _remove(self, path: DocPath, actual: str) -> None:
        with _written(path):
            self.machine.unlink(actual, sync=False)  # with the others, at the end

    def _append(self, path: DocPath, found: Present, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK
        with _written(path), held(self.documents.beneath(found.actual, flags)) as fd:
            if signature_of(seen := os.fstat(fd)) != found.signature:
                raise self._stale(path)
            _check_writable(path, seen)
            try:
                write_all(fd, data)
                os.fsync(fd)
            except OSError:
                with assured(path.text):  # half a line is worse than none; one that may not last is no better
                    os.ftruncate(fd, seen.st_size)
                    os.fsync(fd)
                raise

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        must_allow(verdict)
        if self.documents.actual(path) is not None:
            return False
        actual = self.documents.spelt(path)
        with _written(path), suppress(FileExistsError):
            self.documents.make_folder(actual.rpartition("/")[0])
            self.machine.place(actual, pieces, mode=mode, only_new=True)
            return True
        return False

    def _stale(self, path: DocPath) -> StaleWrite:
        theirs = None
        with suppress(HomeError):
            theirs = self.documents.read(path).text
        return StaleWrite(path.text, theirs=theirs, ours=None)

    def _confirm_folder(self, folder: str) -> None:
        with assured(folder or "the home"):
            self.machine.sync_folder(folder)

    # -- after a crash --------------------------------------------------------------------------------------------------

    def recover(self, *, back: bool = False) -> dict[str, bool]:
        """Ends every begun batch, all or nothing: by id, whether it stands now. One of which nothing was done yet is finished
        too, or with `back` given up. Raises Damaged when the disk does not let us; it is then still begun, and tried again."""
        ended = {}
        for intent in self.ledger.pending():
            states = [self._state(edit) for edit in intent.edits]
            begun = "stands" in states or "half" in states
            ended[intent.id] = begun or not (back or "lost" in states or "torn" in states)
            if ended[intent.id]:
                self._finish(intent, states)
                continue
            for edit, state in zip(intent.edits, states, strict=True):
                if state == "torn":
                    self.cut_back(DocPath.parse(edit.path), edit.before or 0)
            self.machine.sweep()  # first, so that what was given up cannot be finished later
            self.ledger.failed(intent.id, why="interrupted")
        self.machine.sweep()  # nobody can need one while we hold the lock and no batch is begun
        return ended

    def _finish(self, intent: Intent, states: list[_State]) -> None:
        """An edit that is lost is passed over: somebody wrote over it, as they might have a moment later."""
        for edit, state in zip(intent.edits, states, strict=True):
            try:
                if state in ("half", "ready"):
                    source, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
                    if edit.kind is not Kind.DELETE and edit.temp and self._digest(target) != edit.digest:
                        self.put(target, self.look(target, whole=False).actual, edit.temp)
                    if edit.kind in (Kind.DELETE, Kind.MOVE) and self._digest(source) == edit.base:
                        self._remove(source, self.look(source, whole=False).actual)
                for path in {edit.path, edit.to or edit.path} if state != "lost" else ():
                    self.confirm(DocPath.parse(path))
            except Damaged as error:
                said = f"change {intent.id} was interrupted and cannot be finished yet: {error}"
                raise Damaged(said, hint=error.hint) from None
            except HomeError:
                continue
        self.ledger.done(intent.id)

    def confirm(self, path: DocPath) -> None:
        """Makes durable what stands, or no longer stands, at a path. Raises Unconfirmed."""
        actual = self.documents.actual(path)
        if actual is not None:
            with assured(path.text), self.documents.regular(actual) as (fd, _):
                os.fsync(fd)
        folder = (actual or self.documents.spelt(path)).rpartition("/")[0]
        if self.documents.stat(folder or ".") is not None:
            self._confirm_folder(folder)

    def cut_back(self, path: DocPath, size: int) -> None:
        """Takes a torn append back, and keeps it aside. Only the bytes after `size` go."""
        self.keep_torn((self.raw(path) or b"")[size:])
        if (actual := self.documents.actual(path)) is None:
            return
        with _written(path), held(self.documents.beneath(actual, os.O_WRONLY | os.O_NONBLOCK)) as fd:
            found = os.fstat(fd)
            _check_writable(path, found)
            if found.st_size > size:
                os.ftruncate(fd, size)
                os.fsync(fd)

    def raw(self, path: DocPath) -> bytes | None:
        """The bytes of a document, whatever they are; None when nothing stands there. Raises BadPath or Damaged."""
        if (actual := self.documents.actual(path)) is None:
            return None
        with _written(path), suppress(FileNotFoundError), self.documents.regular(actual) as (fd, found):
            _check_writable(path, found)
            return read_range(fd, 0, found.st_size)
        return None

    def _state(self, edit: Edit) -> _State:
        """What stands of an edit. Raises Damaged where the disk does not tell."""
        try:
            path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
            if any(self.rules.is_closed(each) or not each.is_markdown for each in (path, target)):
                return "lost"  # no record of ours says so
            if edit.kind is Kind.APPEND:
                return self._append_state(path, edit)
            here, there = self._digest(path), self._digest(target)
            if edit.kind is Kind.DELETE:
                return "stands" if here is None else "ready" if here == edit.base else "lost"
            if there == edit.digest:
                return "half" if edit.kind is Kind.MOVE and here == edit.base else "stands"
            staged = self.machine.staged_bytes(edit.temp or "")
            usable = staged is not None and self.ledger.key.of(staged.decode("utf-8", "replace")) == edit.digest
            if not usable or there != (edit.base if edit.kind is Kind.WRITE else None):
                return "lost"
            return "half" if edit.kind is Kind.MOVE and here is None else "ready"
        except Damaged:
            raise
        except HomeError:
            return "lost"

    def _append_state(self, path: DocPath, edit: Edit) -> _State:
        """Torn is only what can be nothing but ours: whole lines of the intent, and the beginning of one more."""
        key, data = self.ledger.key, self.raw(path) or b""
        before, after = edit.before or 0, edit.after or 0
        tail = data[before:]
        if key.of(tail[: after - before].decode("utf-8", "replace")) == edit.digest:
            return "stands"
        *whole, _ = tail.split(b"\n")
        ours = {"", *key.each(edit.lines)}
        fits = tail and len(tail) <= after - before and (len(tail) < after - before or not tail.endswith(b"\n"))
        if not fits or any(key.line(line.decode("utf-8", "replace")) not in ours for line in whole):
            return "lost"
        return "torn" if self.provenance.is_ours(path, data[:before].decode("utf-8", "replace")) else "lost"

    def _digest(self, path: DocPath) -> str | None:
        with suppress(NoSuchDocument):
            return self.ledger.key.of(self.documents.read(path).text)
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
