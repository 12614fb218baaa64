"""The machine's own folder in a home, `.anima/`: ledger, key, lock, waiting proposals, staged texts.

Promise: made on the first write, 0700 with 0600 files whatever the umask; every replace is atomic and durable; nothing
here follows a link. No document path can reach it (DocPath refuses a leading dot). Not here: what the files mean.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from anima.errors import Damaged, Refused
from anima.store.folder import MACHINE, RESTORED, Folder, is_restoring, write_all
from anima.store.folder import STAGE as STAGE
from anima.store.lock import HomeLock, flock
from anima.store.safe_open import held, open_beneath, open_folder, regular

FOLDER = MACHINE
IGNORE = f"{FOLDER}/.gitignore"
ASIDE = "aside"  # beneath the folder: whatever was taken out of its place, by a repair or after a crash
TORN = f"{ASIDE}/torn"
MAX_BYTES = 256 * 2**20  # of one small file; a proposal holds a few documents at most
_STAGED = re.compile(rf"{re.escape(STAGE)}/[0-9a-f]{{16}}")


class Machine:
    """The `.anima` folder of one store."""

    def __init__(self, store: Folder) -> None:
        self._store = self.store = store
        lock = f"{FOLDER}/lock"
        self.lock = HomeLock(
            lambda: self.own(lock, os.O_RDWR | os.O_CREAT), lambda: store.stat(lock), entered=self._look_round
        )

    def _look_round(self) -> None:
        """Under the home lock, first thing: a restore that was cut short is finished, and one that came since is told."""
        if is_restoring(self._store):
            from anima.store.swap import carry_on

            carry_on(self._store, self)
        self.check_epoch()

    def check_epoch(self) -> None:
        """Raises Refused when the home was restored since this store was opened: what we know of it is of another one."""
        if self._store.signature(RESTORED) != self._store.epoch:
            raise Refused(
                "this home was restored from a snapshot while it was open here; nothing was changed",
                rule="restored",
                hint="open it again; a server is started again",
            )

    def lease(self, name: str) -> HomeLock:
        """A lock of its own for work that must not hold the home's; like that one it dies with its holder."""
        path = f"{FOLDER}/{name}"
        return HomeLock(lambda: self.own(path, os.O_RDWR | os.O_CREAT), lambda: self._store.stat(path), counts=True)

    @property
    def exists(self) -> bool:
        return self._store.stat(FOLDER) is not None

    def make(self) -> None:
        """Makes the folder if it is not there yet, and has git leave it alone in whosever repository the home stands."""
        if self._store.stat(STAGE) is None:
            self._store.make_folder(STAGE)
        if self._store.stat(IGNORE) is None:
            with suppress(OSError):
                self._put(IGNORE, b"*\n", True)

    def key(self) -> bytes:
        """The home's secret, made once. Two processes that make it at the same moment agree on one."""
        if (found := self.get("key")) is not None:
            return found
        with self.lock.hold():
            self.put("key", secrets.token_bytes(48), only_new=True)
            found = self.get("key")
        if found is None:
            raise Damaged("the home's key cannot be read back")
        return found

    def log(self, name: str) -> FileLog:
        return FileLog(self, f"{FOLDER}/{name}")

    # -- small files --------------------------------------------------------------------------------------------------

    def get(self, name: str) -> bytes | None:
        """A small file's bytes, or None."""
        with _usable(name), suppress(FileNotFoundError), regular(self._store.fd, f"{FOLDER}/{name}") as (fd, found):
            if found.st_size > MAX_BYTES:
                raise Damaged(f"{name} is too large to be ours ({found.st_size:,} bytes)")
            return read_all(fd)
        return None

    def version(self, name: str) -> str | None:
        """What tells that a small file was replaced; None when there is none."""
        return self._store.version(f"{FOLDER}/{name}")

    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        """Replaces a small file atomically and durably; with `only_new`, leaves one that is there."""
        folder = f"{FOLDER}/{name}".rpartition("/")[0]
        with _usable(name), suppress(FileExistsError):
            self._store.make_folder(folder)
            try:
                self._put(f"{FOLDER}/{name}", data, only_new)
            except FileNotFoundError:  # somebody swept what we had staged; whoever holds the home lock is spared that
                self._put(f"{FOLDER}/{name}", data, only_new)
            self.sync_folder(folder)

    def _put(self, path: str, data: bytes, only_new: bool) -> None:
        staged = self.stage(data)
        try:
            self.move(staged, path, only_new=only_new)
        finally:
            self.unstage(staged)

    def remove(self, name: str) -> bool:
        """Deletes a small file durably; False when there was none."""
        with _usable(name), suppress(FileNotFoundError):
            self.unlink(f"{FOLDER}/{name}")
            return True
        return False

    def names(self, folder: str) -> list[str]:
        return [name for name in self._store.raw_names(f"{FOLDER}/{folder}") if not name.startswith(".")]

    # -- staging: a whole text on disk before anybody says that it will be used ------------------------------------------

    def stage(self, data: bytes | Iterable[bytes], *, mode: int = 0o600) -> str:
        """Puts bytes, whole or in pieces, into a nameless place of ours, on the disk; gives its path. Raises OSError."""
        name = f"{STAGE}/{secrets.token_hex(8)}"
        fd = self._made(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.fchmod(fd, mode)
            for piece in (data,) if isinstance(data, bytes) else data:
                write_all(fd, piece)
            os.fsync(fd)
        except BaseException:
            self.unstage(name)
            raise
        finally:
            os.close(fd)
        return name

    def scratch(self) -> int:
        """A descriptor of a file without a name, on the home's own disk: it is gone when it is closed. Raises OSError."""
        name = f"{STAGE}/{secrets.token_hex(8)}"
        fd = self._made(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.unstage(name)
        return fd

    def unstage(self, name: str) -> None:
        """Forgets a staged text that is not used. One that stays behind is swept up at the next recovery."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._store.fd)

    def staged(self) -> Iterator[str]:
        return (f"{STAGE}/{name}" for name in self._store.raw_names(STAGE))

    def sweep(self) -> None:
        """Forgets staged texts, but for those that somebody holds a lock on. Whoever calls holds the home lock."""
        for name in list(self.staged()):
            with suppress(OSError), regular(self._store.fd, name) as (fd, _):
                if flock(fd):  # else it is being written
                    self.unstage(name)

    def staged_bytes(self, name: str) -> bytes | None:
        """A staged text; None when there is none, or when the name is none that we give."""
        return self.get(name.removeprefix(f"{FOLDER}/")) if _STAGED.fullmatch(name) else None

    def move(self, staged: str, target: str, *, only_new: bool = False) -> None:
        """Puts a staged text in its place. The folder is held by descriptor, so that no link on the way leads outside."""
        folder, _, name = target.rpartition("/")
        with held(open_folder(self._store.fd, folder)) as fd:
            if only_new:
                os.link(staged, name, src_dir_fd=self._store.fd, dst_dir_fd=fd, follow_symlinks=False)
            else:
                os.rename(staged, name, src_dir_fd=self._store.fd, dst_dir_fd=fd)

    # -- descriptors ----------------------------------------------------------------------------------------------------

    def _made(self, path: str, flags: int) -> int:
        try:
            return open_beneath(self._store.fd, path, flags, 0o600)
        except FileNotFoundError:
            self.make()
            return open_beneath(self._store.fd, path, flags, 0o600)

    def own(self, path: str, flags: int) -> int:
        """A file that is ours for good (lock, ledger), made when it is missing. Raises Damaged for anything odd."""
        with _usable(path):
            fd = self._made(path, flags | os.O_NONBLOCK)
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                    raise Damaged(f"{_short(path)} is not a regular file with one name; nothing was changed")
                if stat.S_IMODE(found.st_mode) != 0o600:
                    os.fchmod(fd, 0o600)
            except BaseException:
                os.close(fd)
                raise
            return fd

    def unlink(self, path: str, *, sync: bool = True) -> None:
        """Deletes a file beneath the home, with `sync` durably. Raises OSError."""
        folder, _, name = path.rpartition("/")
        with held(open_folder(self._store.fd, folder)) as fd:
            os.unlink(name, dir_fd=fd)
            if sync:
                os.fsync(fd)

    def sync_folder(self, folder: str) -> None:
        """Makes a folder's names durable. Raises OSError."""
        with held(open_folder(self._store.fd, folder)) as fd:
            os.fsync(fd)


class FileLog:
    """An append-only file of the machine's; the ledger's `Log`. Opened on first use, kept open."""

    def __init__(self, machine: Machine, path: str) -> None:
        self._machine, self._path, self._fd = machine, path, -1

    def _handle(self) -> int:
        if self._fd < 0:
            self._fd = self._machine.own(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if os.fstat(self._fd).st_size == 0:
                with _usable(self._path):
                    self._machine.sync_folder(self._path.rpartition("/")[0])
        return self._fd

    def size(self) -> int:
        found = os.fstat(self._handle())
        if found.st_nlink == 0:  # what we would write now, nobody could read again
            self._machine.check_epoch()
            raise Damaged(
                f"{_short(self._path)} was deleted while the home was open; nothing was changed",
                hint="restore .anima from a backup, or open the home again to begin anew",
            )
        return found.st_size

    def read(self, start: int, end: int | None = None) -> bytes:
        """The bytes of a range; fewer where the log ends before it."""
        want = (self.size() if end is None else end) - start
        pieces, at = [], start
        with _usable(self._path):
            while want > 0 and (piece := os.pread(self._handle(), min(want, 1 << 20), at)):
                pieces.append(piece)
                at, want = at + len(piece), want - len(piece)
        return b"".join(pieces)

    def append(self, data: bytes, *, sync: bool) -> None:
        """One write, continued when it is short. After an error the record stands whole, or not at all, or torn."""
        before = self.size()
        with _usable(self._path):
            try:
                write_all(self._handle(), data)
            except OSError:
                with suppress(OSError):  # readers pass over a torn line, and whoever adds next cuts it
                    os.ftruncate(self._handle(), before)
                raise
            if sync:
                os.fsync(self._handle())

    def truncate(self, size: int) -> None:
        with _usable(self._path):
            os.ftruncate(self._handle(), size)
            os.fsync(self._handle())

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read_all(fd: int) -> bytes:
    pieces = []
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _short(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/")


@contextmanager
def _usable(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise Damaged(f"{_short(name)} cannot be used ({why}); nothing was changed") from None
