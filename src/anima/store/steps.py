"""The writing half of the folder store: stage, then carry out, and finish what a crash left half done.

Promise: nothing is carried out without an allowing Verdict; a text is durably staged before the ledger says that it
will be used, so every begun batch can be finished; a document is old or new, never mixed; links are neither followed
nor written through. Whoever calls holds the home lock. Not here: the ledger, the gate, the order of things (writing).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from anima.errors import BadPath, Damaged, HomeError, Refused, StaleWrite
from anima.model import Answer, DocPath, Verdict
from anima.store.folder import Folder, Signature, Unconfirmed, signature_of, write_all
from anima.store.private import STAGE, Machine, read_all
from anima.store.safe_open import open_beneath, open_regular

# A batch that the gate allowed before the crash is finished, not judged again.
RECOVERY = Verdict(answer=Answer.ALLOW, rule="recovery", reason="the gate had allowed it before it was interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A document as it stands on disk now: how it is spelt there, its text, and what tells that it changed."""

    actual: str
    text: str | None  # None: nothing stands there; "" too when only its size was asked for
    signature: Signature | None
    mode: int = 0o600

    @property
    def size(self) -> int:
        return self.signature[2] if self.signature else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
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

    # -- before: look, and stage ----------------------------------------------------------------------------------------

    def look(self, path: DocPath, *, whole: bool = True) -> Standing:
        """What stands at a path, checked to be something we may write: a regular file with one name, or nothing."""
        actual = self._store.actual(path)
        found = self._store.stat(actual) if actual is not None else None
        if actual is None or found is None:
            return Standing(actual=actual or self._spelt(path), text=None, signature=None)
        _check_writable(path, found)
        text = self._store.read(path).text if whole else ""
        return Standing(actual=actual, text=text, signature=signature_of(found), mode=stat.S_IMODE(found.st_mode))

    def _spelt(self, path: DocPath) -> str:
        """The path of a document to be, in the spelling of the folders that are there."""
        spelt, parts = "", path.parts
        for n, part in enumerate(parts):
            there = self._store.actual(DocPath.parse("/".join(parts[: n + 1])))
            spelt = there if there is not None else f"{spelt}/{part}".lstrip("/")
        return spelt

    def stage(self, path: DocPath, standing: Standing, text: str, *, mode: int | None = None) -> Step:
        """A durable copy of a document's new text, not yet in its place."""
        try:
            staged = self._machine.stage(text.encode("utf-8"), mode=standing.mode if mode is None else mode)
        except OSError as error:
            raise _unwritten(path, error) from None
        return Step(path=path, actual=standing.actual, do="put", staged=staged, was=standing.signature)

    def hold_staged(self) -> None:
        """Makes the names of staged texts durable: a batch of several must be able to go on after the first."""
        try:
            self._machine.sync_folder(STAGE)
        except OSError as error:
            raise Damaged(f"nothing was written ({os.strerror(error.errno or 0)})") from None

    def let_go(self, steps: Iterable[Step]) -> None:
        """Forgets what was staged for steps that are not carried out."""
        for step in steps:
            if step.staged:
                self._machine.unstage(step.staged)

    def removal(self, path: DocPath, standing: Standing) -> Step:
        return Step(path=path, actual=standing.actual, do="remove", was=standing.signature)

    def addition(self, path: DocPath, standing: Standing, data: bytes) -> Step:
        """Bytes for the end of a file, with a line end first when the file lacks its last one."""
        try:
            if standing.size and self._last_byte(standing.actual) != b"\n":
                data = b"\n" + data
        except OSError as error:
            raise _unwritten(path, error) from None
        return Step(path=path, actual=standing.actual, do="append", data=data, was=standing.signature)

    def _last_byte(self, actual: str) -> bytes:
        fd, found = open_regular(self._store.fd, actual)
        try:
            return os.pread(fd, 1, max(0, found.st_size - 1))
        finally:
            os.close(fd)

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def carry_out(self, steps: Iterable[Step], verdict: Verdict) -> None:
        """Does the steps in order. Raises StaleWrite, before the first of them, when somebody wrote since we looked.

        Raises Unconfirmed when all was done and only the disk's word for it is missing; any other error may leave
        some steps done, which recovery then finishes.
        """
        if verdict.answer is not Answer.ALLOW:
            raise Refused(f"the gate said {verdict.answer}: {verdict.reason}", rule=verdict.rule)
        steps = list(steps)
        for step in steps:
            if self._store.signature(step.actual) != step.was:
                raise self._stale(step.path)
        for step in steps:
            self._do(step)
        for folder in dict.fromkeys(step.folder for step in steps if step.do != "append"):
            self._confirm_folder(folder)

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        """Puts a file that is no document where nothing stands, whole or not at all; False where something does."""
        if verdict.answer is not Answer.ALLOW:
            raise Refused(f"the gate said {verdict.answer}: {verdict.reason}", rule=verdict.rule)
        if self._store.actual(path) is not None:
            return False
        actual = self._spelt(path)
        try:
            staged = self._machine.stage(pieces, mode=mode)
            try:
                self._store.make_folder(actual.rpartition("/")[0])
                self._machine.move(staged, actual, only_new=True)
                self._machine.sync_folder(actual.rpartition("/")[0])
            finally:
                self._machine.unstage(staged)
                self._store.forget(actual)
        except FileExistsError:
            return False
        except OSError as error:
            raise _unwritten(path, error) from None
        return True

    def _stale(self, path: DocPath) -> StaleWrite:
        try:
            theirs = self._store.read(path).text
        except HomeError:
            theirs = None
        return StaleWrite(path.text, theirs=theirs, ours=None)

    def _do(self, step: Step) -> None:
        try:
            if step.do == "put":
                self._put(step)
            elif step.do == "remove":
                self._machine.unlink(step.actual, sync=False)  # with the others, at the end
            else:
                self._append(step)
        except OSError as error:
            raise _unwritten(step.path, error) from None
        finally:
            self._store.forget(step.actual)

    def _put(self, step: Step) -> None:
        if self._store.stat(step.folder or ".") is None:
            self._store.make_folder(step.folder)
        self._machine.move(step.staged or "", step.actual)

    def _append(self, step: Step) -> None:
        fd = open_beneath(self._store.fd, step.actual, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            if signature_of(found := os.fstat(fd)) != step.was:
                raise self._stale(step.path)
            _check_writable(step.path, found)
            try:
                write_all(fd, step.data)
                os.fsync(fd)
            except OSError as error:
                self._take_back(fd, found.st_size, step.path)
                raise error
        finally:
            os.close(fd)

    def _take_back(self, fd: int, size: int, path: DocPath) -> None:
        """Cuts off what was just written: half a line is worse than none, and a line that may not last is no better."""
        try:
            os.ftruncate(fd, size)
            os.fsync(fd)
        except OSError as error:
            raise _unconfirmed(path.text, error) from None

    def _confirm_folder(self, folder: str) -> None:
        try:
            self._machine.sync_folder(folder)
        except OSError as error:
            raise _unconfirmed(folder or "the home", error) from None

    # -- after a crash --------------------------------------------------------------------------------------------------

    def staged_bytes(self, staged: str | None) -> bytes | None:
        """The staged text of an interrupted batch, if it is still there."""
        return self._machine.staged_bytes(staged) if staged else None

    def finish_put(self, path: DocPath, staged: str) -> None:
        """Puts a staged text of an interrupted batch in its place."""
        standing = self.look(path, whole=False)
        step = Step(path=path, actual=standing.actual, do="put", staged=staged, was=standing.signature)
        self.carry_out([step], RECOVERY)

    def finish_removal(self, path: DocPath) -> None:
        standing = self.look(path, whole=False)
        if standing.signature is not None:
            self.carry_out([self.removal(path, standing)], RECOVERY)

    def confirm(self, path: DocPath) -> None:
        """Makes durable what stands, or no longer stands, at a path. Raises Unconfirmed."""
        actual = self._store.actual(path)
        try:
            if actual is not None:
                fd, _ = open_regular(self._store.fd, actual)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
        except OSError as error:
            raise _unconfirmed(path.text, error) from None
        folder = (actual or self._spelt(path)).rpartition("/")[0]
        if self._store.stat(folder or ".") is not None:
            self._confirm_folder(folder)

    def raw(self, path: DocPath) -> bytes | None:
        """The bytes of a document, whatever they are; None when nothing stands there. Raises BadPath or Damaged."""
        actual = self._store.actual(path)
        if actual is None:
            return None
        try:
            fd, found = open_regular(self._store.fd, actual)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unwritten(path, error) from None
        try:
            _check_writable(path, found)
            return read_all(fd)
        except OSError as error:
            raise _unwritten(path, error) from None
        finally:
            os.close(fd)

    def cut_back(self, path: DocPath, size: int) -> None:
        """Takes a torn append back. Only the bytes after `size` go."""
        actual = self._store.actual(path)
        if actual is None:
            return
        try:
            fd = open_beneath(self._store.fd, actual, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise _unwritten(path, error) from None
        try:
            found = os.fstat(fd)
            _check_writable(path, found)
            if found.st_size > size:
                os.ftruncate(fd, size)
                os.fsync(fd)
        except OSError as error:
            raise _unwritten(path, error) from None
        finally:
            os.close(fd)
            self._store.forget(actual)

    def sweep(self) -> None:
        """Forgets every staged text. Nobody can need one while we hold the lock and no batch is begun."""
        self._machine.sweep()


def _check_writable(path: DocPath, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise BadPath(path.text, "this is not a regular file, so it is not written")
    if found.st_nlink > 1:
        raise Refused(
            f"{path}: the file has several names (hard links), so it is not written",
            rule="several-links",
            hint="copy it, and put the copy in its place",
        )


def _unconfirmed(what: str, error: OSError) -> Unconfirmed:
    return Unconfirmed(
        f"{what}: it is written, but the disk did not confirm it ({os.strerror(error.errno or 0)})",
        hint="look at the disk; the next write or opening makes sure of it",
    )


def _unwritten(path: DocPath, error: OSError) -> Exception:
    if error.errno in (errno.ELOOP, errno.EXDEV):
        return BadPath(path.text, "it lies behind a link or on another file system; nothing was written")
    hint = "free some space and try again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    return Damaged(f"{path}: cannot be written ({os.strerror(error.errno or 0)})", hint=hint)
