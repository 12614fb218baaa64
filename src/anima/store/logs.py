"""Append-only line files in one folder of a home: transcripts, as bytes.

Promise: a record goes in with one write and is never glued to a torn one before it, which is put aside first. Writers of all
threads and processes stand in one line, by a lock on the file itself, and notice when it was replaced beneath them. All is
opened beneath the home, follows no link, and is for its owner alone (0600 in 0700). Reading needs no lock and holds one block.
Not here: what a line means (sessions).
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

from anima.errors import BadArguments, Damaged, NoSuchSession
from anima.model import DocPath
from anima.store import ID, Logs, LogState, Mend, OpenLog, never_whole
from anima.store.folder import Folder
from anima.store.lock import PATIENCE, Handle, flock, patiently, unlock
from anima.store.private import Machine
from anima.store.safe_open import append_all, as_damage, assured, held, open_folder, open_regular, read_range

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOTSUP, errno.EXDEV})


class LineFolder(Logs):
    """The line files of one folder, each by its id: its `Logs`. Lives as long as the home's store."""

    def __init__(
        self, store: Folder, machine: Machine, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole
    ) -> None:
        self._store, self._machine = store, machine
        self.folder, self.suffix, self.mend, self.state = DocPath.parse(folder).text, suffix, mend, machine

    def versions(self) -> dict[str, str]:
        """A walk that costs little more than its stats. Links and other things that are no files are left out. Raises Damaged
        when the disk does not tell."""
        suffix, cut, is_id = self.suffix, -len(self.suffix), ID.match
        found: dict[str, str] = {}
        if self._store.kind_of(self.folder) != "folder":
            return found
        shown, nothing = as_damage(f"{self.folder}: cannot be read"), suppress(FileNotFoundError, PermissionError)
        with shown, nothing, held(open_folder(self._store.fd, self.folder)) as fd, os.scandir(fd) as names:
            for item in names:
                if not item.name.endswith(suffix) or not is_id(id := item.name[:cut]):
                    continue
                try:  # a `with` for each of ten thousand names would cost a tenth more
                    seen = item.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(seen.st_mode):
                    found[id] = f"{seen.st_ino}.{seen.st_mtime_ns}.{seen.st_size}"
        return found

    def look(self, id: str) -> LogState | None:
        found = self._store.stat(f"{self.folder}/{id}{self.suffix}") if ID.match(id) else None
        return _state(id, found) if found and stat.S_ISREG(found.st_mode) else None

    def open(self, id: str) -> LineFile:
        with _explained(id):
            fd, found = open_regular(self._store.fd, self.path_of(id))
        if not self._store.holds_every_name(found):
            os.close(fd)
            raise _linked(id)
        return LineFile(self, id, fd)

    def append_to(self, id: str) -> LineFile:
        return LineFile(self, id, self._open(id, os.O_RDWR | os.O_APPEND))

    def made(self, id: str) -> LineFile:
        try:
            self._machine.make()
            self._store.make_folder(self.folder)
            fd = self._open(id, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            self._machine.sync_folder(self.folder)  # or a crash could lose the name and keep the bytes
        except (OSError, NoSuchSession):
            raise Damaged(f"{self.folder} cannot hold transcripts; it must be a folder that is ours to write") from None
        return LineFile(self, id, fd)

    def _open(self, id: str, flags: int) -> int:
        with _explained(id):
            fd = self._store.beneath(self.path_of(id), flags | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise NoSuchSession(f"{id}: there is no such session")
        if os.fstat(fd).st_nlink > 1:
            os.close(fd)
            raise _linked(id)
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o600)
        return fd

    def get(self, name: str) -> bytes | None:
        with suppress(OSError), self._store.regular(f"{self.folder}/{name}") as (fd, found):
            return read_range(fd, 0, found.st_size)
        return None

    def put(self, name: str, data: bytes) -> bool:
        with suppress(OSError, Damaged):
            self._machine.make()
            self._machine.place(f"{self.folder}/{name}", data, sync=False)
            return True
        return False

    def drop(self, id: str) -> bool:
        with suppress(OSError):
            os.unlink(self.path_of(id), dir_fd=self._store.fd)
            return True
        return False


class LineFile(Handle, OpenLog):
    """One line file: an `OpenLog`."""

    def __init__(self, folder: LineFolder, id: str, fd: int) -> None:
        self.logs: LineFolder
        self.logs, self.id = folder, id
        self._store, self._machine = folder._store, folder._machine
        self.replaced = 0  # how often another file took this one's place while it was open
        self._fd, self._mutex = fd, threading.RLock()

    def close(self) -> None:
        with self._mutex:
            super().close()

    def state(self) -> LogState:
        return _state(self.id, os.fstat(self._open_fd()))

    def read(self, start: int, end: int) -> bytes:
        with _explained(self.id):
            return read_range(self._open_fd(), start, end)

    def sync(self) -> None:
        with self._mutex, assured(f"the transcript of session {self.id}"):
            os.fsync(self._open_fd())

    def follow(self) -> None:
        with self.alone():
            pass

    def rewrite(self, make: Callable[[], Iterable[bytes]]) -> None:
        with self._mutex:
            with self.alone(), _explained(self.id):
                self._machine.make()
                self._machine.place(self.logs.path_of(self.id), make())
            self._reopen()

    def _open_fd(self) -> int:
        if self._fd < 0:
            raise BadArguments(f"the file of session {self.id} is closed")
        return self._fd

    def add(self, data: bytes, at: int) -> None:
        """One write, continued when it is short. What could not be finished is taken back."""
        with _explained(self.id):
            append_all(self._fd, data, at)

    def cut(self, size: int) -> None:
        with _explained(self.id):
            os.ftruncate(self._fd, size)

    @contextmanager
    def alone(self) -> Iterator[int]:
        """The file at our path is ours alone inside; it is opened anew when it is another one by now."""
        with self._mutex:
            while True:
                with as_damage(f"session {self.id} cannot be locked", "; nothing was changed in it"):
                    patiently(partial(flock, self._open_fd()), PATIENCE, lambda: f"another writer of session {self.id}")
                try:
                    found = self._store.stat(self.logs.path_of(self.id))
                    if found is None:
                        raise NoSuchSession(f"{self.id}: its transcript was removed")
                    if found.st_ino == (here := os.fstat(self._fd)).st_ino:
                        yield here.st_size
                        return
                finally:
                    unlock(self._fd, self._reopen)
                self._reopen()

    def _reopen(self) -> None:
        fresh = self.logs._open(self.id, os.O_RDWR | os.O_APPEND)
        os.close(self._fd)
        self._fd = fresh
        self.replaced += 1


def _state(id: str, found: os.stat_result) -> LogState:
    try:
        moment = datetime.fromtimestamp(found.st_mtime, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    shared = ".shared" if found.st_nlink > 1 else ""  # another name leads there, perhaps from outside: it is not read
    version = f"{found.st_ino}.{found.st_mtime_ns}.{found.st_size}{shared}"
    return LogState(id, str(found.st_ino), found.st_size, version, moment)


def _linked(id: str) -> Damaged:
    hint = "copy it over itself if you know what it is"
    return Damaged(f"session {id}: its file has another name (a hard link)", hint=hint)


def _explained(id: str) -> AbstractContextManager[None]:
    def absent(error: OSError) -> NoSuchSession | None:
        return NoSuchSession(f"{id}: there is no such session") if error.errno in _ABSENT else None

    return as_damage(f"the transcript of session {id} cannot be used", "; nothing was changed in it", instead=absent)
